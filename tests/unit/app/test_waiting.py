"""Requests that wait for a library, for f0 to be chosen, or for its first call."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import pytest

from darc.app import finding, waiting
from darc.app.finding import Request
from darc.app.waiting import Waiting
from darc.model.errors import DarcError, NotFoundError, UnchosenError, UnsupportedError
from darc.model.parameters import Parameters, Probes
from darc.target.outcome import Outcome
from tests.fake_target import FakeTarget

ENTRY, RESOLVER, CALLER, BEGIN, STACK = 0x1000, 0x1040, 0x1080, 0x10C0, 0x7000
ABSENT = NotFoundError("no function is called late")


class Debuggee:
    """A process that begins at ``BEGIN``, or has begun."""

    tells_of_files = True
    danger: str | None = None
    begins: int | None = None
    refuses: DarcError | None = None
    maps: bytes | None = None
    is_readable_while_it_runs = False
    lost_breakpoint = False
    bell: Callable[[], Outcome] | None = None

    def __init__(self) -> None:
        self.sent = threading.Event()

    def arm_limit(self, handler: Callable[[], Outcome]) -> int:
        self.bell = handler
        return 23

    def disarm_limit(self) -> None:
        self.bell = None

    def lacks_breakpoint(self, address: int) -> bool:
        return self.lost_breakpoint

    def is_signalled(self, number: int) -> bool:
        return False

    def send(self, number: int) -> None:
        self.sent.set()

    def mapped(self) -> bytes | None:
        return self.maps

    def danger_of_breakpoints(self) -> str | None:
        return self.danger

    def entry(self) -> int | None:
        return self.begins

    def is_at_start(self) -> bool:
        return True

    def check(self, program: object, function: object, spec: str) -> list[str]:
        if self.refuses is not None:
            raise self.refuses
        return []


class Program:
    modules = ()

    @property
    def names(self) -> Program:
        return self

    def function_at(self, entry: int) -> int:
        return entry


class Copies:
    """No function has copies."""

    def __init__(self, *_: object) -> None: ...

    def private_copies(self, entry: int, *, live: bool) -> list[str]:
        return []


class App:
    def __init__(self) -> None:
        self.debuggee = Debuggee()
        self.begun: list[int] = []
        self.said: list[str] = []
        self.refuses: DarcError | None = None
        self.looks = 0
        self.went_on = 0
        self.maps_more: Callable[[], object] = lambda: None

    def look(self) -> tuple[Debuggee, Program]:
        self.looks += 1
        return self.debuggee, Program()

    def begin(self, program: object, entry: int, request: Request) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.begun.append(entry)
        self.maps_more()

    def goes_on(self) -> None:
        self.went_on += 1

    def emit(self, text: str) -> None:
        self.said.append(text)


class WaitingUser:
    def __init__(self) -> None:
        self.target = FakeTarget()
        self.target.process = 7
        self.target.map(ENTRY, bytes(0x100))
        self.target.map(STACK, CALLER.to_bytes(8, "little"))
        self.target.add_thread(7, rsp=STACK)
        self.app = App()
        self.waiting = Waiting(self.target, self.app)  # type: ignore[arg-type]
        self.found: int | DarcError = ABSENT
        """What the program says of the function's name."""

    def find(self, *_: object, **__: object) -> int:
        if isinstance(self.found, DarcError):
            raise self.found
        return self.found

    def request(self, probes: Probes = Probes.AUTO) -> Request:
        return Request("start", "late", Parameters(probes=probes), lambda _: None)  # type: ignore[arg-type, return-value]

    @property
    def is_clean(self) -> bool:
        return not self.target.breaks.on_hit and self.target.breaks.once is None

    def for_library(self, probes: Probes = Probes.AUTO) -> None:
        self.waiting.for_library(self.request(probes), self.app.debuggee, ABSENT)  # type: ignore[arg-type]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> WaitingUser:
    world = WaitingUser()
    monkeypatch.setattr(finding, "find", world.find)
    monkeypatch.setattr(waiting, "Lookup", Copies)
    return world


def test_the_analysis_begins_at_the_first_call_behind_a_library(world: WaitingUser) -> None:
    world.for_library()
    assert world.app.said == [f"darc: {ABSENT}: waits for a library that has it"]
    world.waiting.modules_changed()
    assert world.is_clean  # it came with another one
    world.found = ENTRY
    world.waiting.modules_changed()
    assert world.app.begun == []
    world.target.arrive(ENTRY)
    assert world.app.begun == [ENTRY]
    assert not world.waiting
    assert world.is_clean


@pytest.mark.parametrize("found", [ABSENT, ENTRY, UnchosenError("late is chosen", RESOLVER)])
def test_files_are_looked_at_once_as_long_as_no_other_is_mapped(
    world: WaitingUser, found: int | DarcError
) -> None:
    """The debugger tells of each of a hundred libraries that a program has mapped."""
    world.app.debuggee.maps = b"all of them"
    world.for_library()
    world.found = found
    for _ in range(100):
        world.waiting.modules_changed()
    assert world.app.looks <= 2  # and once as it is waited for
    world.app.debuggee.maps = b"one more"
    world.found = ENTRY
    world.waiting.modules_changed()
    world.target.arrive(ENTRY)
    assert world.app.begun == [ENTRY]


def test_what_the_debugger_has_read_is_asked_for_each_file(world: WaitingUser) -> None:
    """Of it alone: to look through all files again takes a tenth of a second."""
    world.app.debuggee.maps = b"all of them"
    request = dataclasses.replace(world.request(), function="late.c:late")
    world.waiting.for_library(request, world.app.debuggee, ABSENT)  # type: ignore[arg-type]
    for _ in range(100):
        world.waiting.modules_changed()
    assert world.app.looks <= 2
    world.found = ENTRY
    world.target.symbols.sources["late.c", "late"] = [ENTRY]
    world.waiting.modules_changed()
    world.target.arrive(ENTRY)
    assert world.app.begun == [ENTRY]


def test_nobody_waits_where_the_user_does_not_want_to(world: WaitingUser) -> None:
    world.target.screen.pending = False
    with pytest.raises(NotFoundError):
        world.for_library()
    assert not world.waiting


@pytest.mark.parametrize("probes", [Probes.AUTO, Probes.BREAKPOINT])
def test_a_breakpoint_that_waits_may_be_the_end_of_an_attached_program(
    world: WaitingUser, probes: Probes
) -> None:
    """It waits only for a user who has asked for breakpoints."""
    world.app.debuggee.danger = "it was attached to"
    if probes is Probes.BREAKPOINT:
        world.for_library(probes)
        assert world.waiting
        return
    with pytest.raises(NotFoundError, match="attached"):
        world.for_library(probes)
    assert not world.waiting


def test_what_is_taken_back_leaves_no_breakpoint(world: WaitingUser) -> None:
    world.found = ENTRY
    world.for_library()
    world.waiting.modules_changed()
    assert not world.is_clean
    world.waiting.cancel()
    assert world.is_clean
    assert not world.waiting


def test_the_function_is_what_the_program_chooses(world: WaitingUser) -> None:
    """An IFUNC: its resolver returns it."""
    error = UnchosenError("late is chosen when it is first called", RESOLVER)
    world.waiting.for_choice(world.request(), world.app.debuggee, error)  # type: ignore[arg-type]
    world.target.arrive(RESOLVER)
    assert set(world.target.breaks.on_hit) == {CALLER}
    world.target.threads.write_register(7, "rax", ENTRY)
    world.target.arrive(CALLER)
    assert not world.target.breaks.on_hit
    world.target.arrive(ENTRY)
    assert world.app.begun == [ENTRY]


def test_an_analysis_that_cannot_begin_is_told_and_forgotten(world: WaitingUser) -> None:
    world.found, world.app.refuses = ENTRY, UnsupportedError("cannot time late: it is too short")
    world.for_library()
    world.waiting.modules_changed()
    world.target.arrive(ENTRY)
    assert world.app.said[-1] == "darc: cannot time late: it is too short"
    assert isinstance(world.waiting.failure, UnsupportedError)
    assert not world.waiting
    assert world.is_clean


def test_where_a_program_was_attached_to_another_one_is_meant(world: WaitingUser) -> None:
    """'run' may begin the file of one that has ended anew, which is not what was there."""
    world.waiting.for_program(world.request())
    world.waiting.went_on(attached=True)
    world.waiting.for_program(world.request())
    assert world.app.said == [
        "darc: waits for late: type 'run'",
        "darc: waits for late: the debugger has no program: attach to one and type 'darc start' "
        "again, or type 'run'",
    ]


def test_what_will_fail_is_told_when_the_program_begins(world: WaitingUser) -> None:
    """Not at its end: everything that is loaded with it is there."""
    world.app.debuggee.begins = BEGIN
    world.app.debuggee.refuses = UnsupportedError("cannot time late: it returns twice")
    world.waiting.for_program(world.request())
    world.waiting.modules_changed()
    assert set(world.target.breaks.on_hit) == {BEGIN}
    world.found = ENTRY
    world.target.arrive(BEGIN)
    assert world.app.said[-1] == "darc: cannot time late: it returns twice"
    assert not world.waiting
    assert world.is_clean


def test_a_name_that_nothing_has_is_told_when_the_program_begins_and_waits_on(
    world: WaitingUser,
) -> None:
    world.app.debuggee.begins = BEGIN
    world.waiting.for_program(world.request())
    world.waiting.modules_changed()
    world.target.arrive(BEGIN)
    assert world.app.said[-1] == f"darc: {ABSENT}: waits for a library that has it"
    assert world.waiting
    assert world.is_clean
    world.found = ENTRY
    world.waiting.modules_changed()
    world.target.arrive(ENTRY)
    assert world.app.begun == [ENTRY]


def test_a_program_that_was_killed_at_a_stop_is_analysed_again_in_the_next_run(
    world: WaitingUser,
) -> None:
    world.waiting.for_another(world.request())
    assert not world.waiting
    world.waiting.next_program()
    assert world.waiting
    assert world.app.said == ["darc: analyses late again in this run of the program"]


def test_a_program_that_is_killed_as_it_begins_has_the_function(
    world: WaitingUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody had the time to look: it is not said to be missing, and near itself."""

    class File:
        def __init__(self, *_: object) -> None:
            self.symbols = [self]
            self.name = "late"

    monkeypatch.setattr(waiting, "load_image", File)
    world.for_library()
    world.waiting.program_ended()
    assert world.app.said[1:] == ["darc: the program ended before late was called"]


def test_a_breakpoint_that_vanishes_is_waited_for_no_more(world: WaitingUser) -> None:
    """The debugger has taken it out of a child that shares the program's memory."""
    debuggee = world.app.debuggee
    debuggee.is_readable_while_it_runs = True
    world.found = ENTRY
    world.for_library()
    world.waiting.modules_changed()
    assert debuggee.bell is not None
    assert debuggee.bell() is Outcome.CONTINUE  # a signal that the program ignores
    assert world.waiting
    debuggee.lost_breakpoint = True
    assert debuggee.sent.wait(60)
    assert debuggee.bell() is Outcome.CONTINUE
    assert (world.app.begun, world.app.went_on) == ([ENTRY], 1)
    assert "another process shares the program's memory" in world.app.said[-1]
    assert not world.waiting
    assert world.is_clean


def test_nothing_is_watched_when_nothing_waits(world: WaitingUser) -> None:
    debuggee = world.app.debuggee
    debuggee.is_readable_while_it_runs = True
    world.found = ENTRY
    world.for_library()
    world.waiting.modules_changed()
    before = threading.active_count()
    world.waiting.cancel()
    assert debuggee.bell is None
    assert threading.active_count() == before - 1


def test_what_darc_maps_itself_is_no_file_that_f0_may_be_in(world: WaitingUser) -> None:
    """The debugger tells of it in the middle: it would wait for the call once more."""
    world.app.maps_more = world.waiting.modules_changed
    world.found = ENTRY
    world.for_library()
    world.waiting.modules_changed()
    world.target.arrive(ENTRY)
    assert world.app.begun == [ENTRY]
    assert world.is_clean
