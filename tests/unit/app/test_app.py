"""The application on a made-up program: what its commands and the program's events come to."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.rootcauses import RootCauses
from darc.app import commands
from darc.app.app import App
from darc.app.finding import Request
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.collectors.breakpoints import BreakpointCollector
from darc.collectors.collector import Way
from darc.collectors.finder import Finder, FinderBrief, FoundFunctions
from darc.collectors.set_collector import SetCollector
from darc.debuggee.nature import Nature
from darc.debuggee.process import PROCESS
from darc.model.bare import Bare
from darc.model.errors import (
    DarcError,
    NotFoundError,
    TargetError,
    UnsupportedError,
    UsageError,
)
from darc.model.status import Status
from darc.session.pauses import Pauses
from darc.session.session import Session
from darc.target.target import Target
from darc.views.exporters.json import to_json
from kgdb.debuggee import KERNEL
from tests.unit.assembly import Code
from tests.unit.machine import PLAIN, Debuggee, Machine
from tests.unit.machine import Pads as MadeUpPads
from tests.unit.users import OPTIONS, UserOf


class Pads(MadeUpPads):
    """Notes how often what others left in the program was looked for."""

    left: list[str]
    looks: list[bool]

    def clean_up(
        self, program: object, *, unmap: bool = True, of_memory: bool = False
    ) -> list[str]:
        self.looks.append(unmap)
        return self.left


class Stopped(Debuggee):
    """What the debugger has stopped. It notes who is told that it is let go of."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine.target, machine.code)
        self._pads = self.found = Pads(machine.target, 1)
        self.found.left, self.found.looks = [], []
        self.farewells: list[bool] = []

    def program(self) -> Program:
        return cast(Program, self._program)

    def check(self, *_: object) -> list[str]:
        return []

    def is_at_start(self) -> bool:
        return False

    def watch_over(self) -> Callable[[bool], None]:
        return self.farewells.append


class User(UserOf[Stopped]):
    """Somebody at a debugger that has stopped the program."""

    def __init__(self, code: Code) -> None:
        super().__init__(code, Stopped, {**OPTIONS, "probes": "breakpoint"})


@pytest.fixture
def user(assembled: Callable[[str], Code]) -> User:
    return User(assembled(PLAIN))


def test_from_start_to_the_answer(user: User) -> None:
    user.start()
    assert user.said.endswith(": 'continue'\n")
    assert not user.target.breaks.on_hit  # the program has not gone on
    assert user.app.is_busy
    user.go_on()
    shown = user.app.snapshot()
    assert [node.function.name for node in shown.paths[0].nodes] == ["f", "g", "w"]
    assert "w" in user.said
    assert not user.app.is_busy
    assert user.is_clean


def test_what_a_request_was_spelled_by_is_what_begins(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is the debuggee made once, also where the user has typed a number; and anew for what asks
    once more."""
    made, choose = list[Stopped](), user.app._beginning._choose

    def noted(target: Target) -> Debuggee:
        made.append(cast(Stopped, choose(target)))
        return made[-1]

    monkeypatch.setattr(user.app._beginning, "_choose", noted)
    place = f"*{user.machine.code.symbols['f']:#x}"
    lookup = user.app.lookup()
    request = Request("start", place, user.app.parameters, RootCauses, lookup=lookup)
    user.app.analyse(request)
    assert len(made) == 1
    user.app.stop()
    made.clear()
    user.app.analyse(request)
    assert len(made) == 1
    assert user.app.is_busy


class Slow(Finder):
    """Of an analysis that asks nobody which function it is of."""

    text = "what is slow"

    def __init__(self, code: Code) -> None:
        self.code = code

    def find(self, brief: FinderBrief) -> FoundFunctions:
        return FoundFunctions(self.code.symbols["g"], Way(BreakpointCollector), ["w is left alone"])


def test_an_analysis_brings_what_tells_what_it_is_of(user: User) -> None:
    """Nothing here knows its finder, nor what it looks for."""
    finder = Slow(user.machine.code)
    user.app.analyse(Request("slow", "main", user.app.parameters, RootCauses, finder=finder))
    session = user.app.session
    assert session is not None
    assert session.root.function.name == "g"
    assert session.spec == "what is slow"
    assert user.said.startswith("darc: w is left alone\n")
    assert "w is left alone" in user.app.snapshot().notes


def test_a_command_that_has_begun_something_says_that_it_may(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its author hears it at the first try."""
    start = commands.find_command("start")
    hidden = dataclasses.replace(start, begins=False, saves="", goes_on=None)
    monkeypatch.setitem(cast(Any, commands.COMMANDS), "start", hidden)
    with pytest.raises(AssertionError, match=r"^darc start has begun .* begins=True"):
        user.start()


@pytest.mark.parametrize("own", [None, Way(BreakpointCollector), Way(SetCollector)])
def test_copies_are_looked_for_where_one_function_was_named(
    user: User, own: Way | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its calls are counted in a way of the analysis's own."""
    copies: list[int] = []

    def private_copies(_: Lookup, entry: int, *, live: bool) -> list[str]:
        copies.append(entry)
        return []

    monkeypatch.setattr(Lookup, "private_copies", private_copies)
    at = user.machine.code.symbols["f"]
    request = Request("start", f"*{at:#x}", user.app.parameters, RootCauses, way=own)
    with contextlib.suppress(DarcError):  # there are no pads here
        user.app.analyse(request)
    assert bool(copies) == (own is None or own.collector is not SetCollector)


def test_stop_takes_every_probe_out(user: User) -> None:
    user.start()
    user.go_on(10)
    assert user.app.is_busy
    _ = user.said
    user.app.stop()
    assert user.said == "darc: every probe is out\n"
    assert user.is_clean
    assert not user.app.is_busy
    assert user.app.snapshot().status is Status.STOPPED
    profile = user.app.snapshot().profile
    assert profile is not None
    assert profile.count == 10


def test_stop_without_an_analysis(user: User) -> None:
    with pytest.raises(UsageError, match="nothing is being analysed"):
        user.app.stop()
    user.debuggee.found.left = ["probes of a debugger that was killed are out"]
    user.app.stop()
    assert user.said == "darc: probes of a debugger that was killed are out\n"


def test_stop_when_the_program_cannot_be_looked_at_any_more(user: User) -> None:
    """It has made itself undumpable since: what the analysis had in it is out all the same."""
    user.start()
    user.go_on()
    _ = user.said

    def refused(*_: object, **__: object) -> list[str]:
        raise TargetError("cannot read the mappings of process 1")

    user.debuggee.found.clean_up = refused  # type: ignore[method-assign]
    user.app.stop()
    assert user.said == "darc: every probe is out\n"
    fresh = App(user.target, lambda _: user.debuggee)
    with pytest.raises(TargetError, match="cannot read"):
        fresh.stop()


def test_another_start_while_one_is_under_way(user: User) -> None:
    user.start()
    first = user.app.session
    with pytest.raises(UsageError, match="analysed: 'darc stop' before 'darc start'"):
        user.start("g")
    assert user.app.session is first
    user.go_on()
    assert user.app.snapshot().paths  # it has lost nothing by that


def test_start_while_the_program_runs(user: User) -> None:
    user.target.running = True
    with pytest.raises(UsageError, match="interrupt it"):
        user.start()
    assert not user.app.is_busy


def test_two_analyses_one_after_the_other(user: User) -> None:
    user.start()
    user.go_on()
    first = user.app.snapshot()
    user.start("g")
    user.go_on()
    second = user.app.snapshot()
    assert [node.function.name for node in first.paths[0].nodes] == ["f", "g", "w"]
    assert [node.function.name for node in second.paths[0].nodes] == ["g", "w"]
    assert {place.name for tree in user.app.measured() for place in tree.children} == {"f", "g"}
    assert user.is_clean


def test_a_parameter_that_comes_too_late_is_told(user: User) -> None:
    """An analysis that has begun does not hear of it."""
    user.app.set_parameter("max-time", "5s")
    assert not user.said
    user.start()
    _ = user.said
    user.app.set_parameter("verbose", "off")
    user.app.set_parameter("max-time", "5s")
    assert not user.said
    user.app.set_parameter("max-time", "10s")
    assert user.said == (
        "darc: max-time 10s holds for the next analysis; that of *0x"
        f"{user.machine.code.symbols['f']:x} goes on with 5s: 'darc stop', and start it again\n"
    )
    user.app.stop()
    _ = user.said
    user.app.set_parameter("max-time", "20s")
    assert not user.said


def test_a_start_that_finds_nothing_leaves_what_was_shown(user: User) -> None:
    user.start()
    user.go_on()
    shown = user.app.snapshot()
    user.target.screen.pending = False
    with pytest.raises(NotFoundError, match="no code is mapped"):
        commands.run(user.app, "start", "*0x10")
    assert not user.app.is_busy
    assert shown.paths
    assert to_json(user.app.snapshot()) == to_json(shown)
    assert user.is_clean


def test_ctrl_c_as_the_probes_are_laid_down_says_that_it_is_set_up(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is the last of it; over a slow line it takes a while. 'Quit' alone reads as nothing."""

    def interrupted(pauses: Pauses) -> None:
        del pauses
        raise KeyboardInterrupt

    monkeypatch.setattr(Pauses, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        user.start()
    assert "it was set up by then: 'continue' goes on, 'darc stop' ends it" in user.said
    assert user.app.is_busy
    user.app.stop()
    assert user.is_clean


def test_ctrl_c_before_it_is_set_up_leaves_what_was_shown(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.start()
    user.go_on()
    shown = user.app.snapshot()

    def interrupted(session: Session) -> None:
        del session
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        user.start()
    assert "it was set up" not in user.said
    assert to_json(user.app.snapshot()) == to_json(shown)
    assert user.is_clean


def test_a_stop_of_the_users_shows_no_probe(user: User) -> None:
    user.start()
    user.go_on(10)
    assert not user.target.breaks.on_hit
    assert user.app.is_busy
    user.go_on()
    assert user.app.snapshot().paths


def test_the_debugger_lets_the_program_go(user: User) -> None:
    user.start()
    user.go_on(10)
    user.target.was_attached = True
    user.app.observer.on_leave()
    assert user.is_clean
    assert not any("sleep" in note for note in user.app.snapshot().notes)
    assert not user.app.is_busy
    assert user.debuggee.farewells == [False]
    user.app.observer.on_leave()  # the end of the debugger behind it
    assert user.debuggee.farewells == [False]


def test_the_debugger_lets_go_of_a_program_that_runs(user: User) -> None:
    """Nothing can be taken out of it: that is refused, and where it happens all the same, told, at
    once and whenever the user asks for what cannot be."""
    user.app.observer.check_leaving()
    user.start()
    user.go_on(10)
    user.target.was_attached = True
    user.app.observer.check_leaving()
    user.app.observer.goes_on()
    user.target.running = True
    with pytest.raises(UsageError, match="type 'interrupt' first"):
        user.app.observer.check_leaving()
    user.app.observer.on_leave()
    asleep = "the program was let go of while it ran: the probes in it sleep; attach to it again"
    assert asleep in user.said
    assert asleep in "".join(user.app.snapshot().notes)
    assert user.debuggee.farewells == [True]  # the debugger stops it to let it go
    user.target.end()
    commands.run(user.app, "stop", "")
    assert asleep in (told := user.said)
    assert "every probe is out" not in told


@pytest.mark.parametrize(
    ("size", "told"),
    [(64 << 10, None), (1736 << 10, "2 MiB"), (2 << 20, "2 MiB"), (13 << 20, "13 MiB")],
)
def test_memory_that_stays_in_a_program_is_told_of(user: User, size: int, told: str | None) -> None:
    """But for landings, which always do."""
    foothold = SimpleNamespace(size=size, give_back=lambda: False, close=lambda: None)
    user.app._stay.remains = cast(Any, foothold)
    user.target.was_attached = True
    user.app.observer.on_leave()
    said = user.said
    assert "of its tables stay in the program's memory" in said if told else not said
    assert told is None or f"up to {told} of its tables" in said


@pytest.mark.parametrize("why", [UnsupportedError, KeyboardInterrupt])
def test_an_analysis_that_is_refused_leaves_no_memory(
    user: User, monkeypatch: pytest.MonkeyPatch, why: type[BaseException]
) -> None:
    """At once: as the program goes on the debugger may be ended by a signal."""
    done = list[str]()

    def give_back() -> bool:
        done.append("given back")
        return True

    def refuse(session: Session) -> None:
        left = SimpleNamespace(size=0, give_back=give_back)
        session._collecting.remains = cast(Any, left)
        raise why("no room for a pad")

    monkeypatch.setattr(Session, "install", refuse)
    with pytest.raises(why):
        user.start()
    assert done == ["given back"]
    assert user.app._stay.remains is None


@pytest.mark.parametrize(("size", "is_told"), [(0, False), (20 << 10, True)])
def test_memory_that_the_program_does_not_let_go_is_told_of(
    user: User, size: int, is_told: bool
) -> None:
    remains = SimpleNamespace(size=size, give_back=lambda: True, close=lambda: None)
    user.app._stay.remains = cast(Any, remains)
    user.target.was_attached = True
    user.app.observer.on_leave()
    assert ("20 KiB of its memory stay in the program, which has sealed" in user.said) == is_told
    assert user.app._stay.remains is None


def test_the_program_ends(user: User) -> None:
    user.start()
    user.go_on(10)
    user.app.observer.goes_on()
    _ = user.said
    user.target.end()
    user.app.observer.on_exit()
    assert user.app.snapshot().status is Status.ENDED
    assert not user.app.is_busy
    assert user.said
    assert user.debuggee.farewells == [False]


@pytest.mark.parametrize("nature", [PROCESS, KERNEL])
def test_a_program_that_is_killed_at_a_stop_begins_anew_with_run(
    user: User, monkeypatch: pytest.MonkeyPatch, nature: Nature
) -> None:
    """A kernel has no 'run'."""
    monkeypatch.setattr(type(user.debuggee), "nature", nature)
    user.start()
    user.go_on(10)
    _ = user.said
    assert user.app.observer.may_be_killed()
    user.target.end()
    user.app.observer.on_exit()
    assert ("begins anew with the next 'run'" in user.said) == (nature is PROCESS)
    assert user.app.snapshot().status is Status.ENDED


def test_a_program_that_ends_by_the_signal_at_which_it_stood(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was let go on without probes."""
    monkeypatch.setattr(type(user.target), "bare", Bare.SIGNAL)
    user.start()
    user.go_on(10)
    _ = user.said
    user.app.observer.went_on()
    user.target.end()
    user.app.observer.on_exit()
    assert "program ended: " in user.said
    assert not user.app.is_busy


def test_the_debugger_loses_the_program(user: User) -> None:
    user.start()
    user.app.observer.goes_on()
    _ = user.said
    user.app.observer.on_lost(1)
    assert "the debugger has lost process 1, which lives" in user.said
    assert not user.app.is_busy
    assert user.debuggee.farewells == [True]
    assert user.app.snapshot().status is Status.STOPPED


def test_a_child_that_is_followed_is_rid_of_copies(user: User) -> None:
    """It may share its memory with its parent, which is analysed further."""
    user.start()
    user.debuggee.found.looks.clear()
    journal = user.target.journal
    user.app.observer.on_child()
    assert user.debuggee.found.looks == [False]
    assert user.target.journal is journal
    user.go_on()
    assert user.app.snapshot().paths
