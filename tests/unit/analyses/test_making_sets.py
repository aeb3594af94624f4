"""Which functions a set is of, and how their pads come to be: without a long stop."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses import setmaking
from darc.analyses.analysis import AnalysisBrief, Step
from darc.analyses.functionset import FunctionProfiles
from darc.analyses.why import SuspectProfiles
from darc.app import progress
from darc.code import patterns
from darc.code.callers import most_called
from darc.code.live import NotNowError
from darc.code.modules import Module
from darc.code.patterns import Chosen, choose, parse_patterns, told_of_missing
from darc.code.program import Program
from darc.code.symscans import Symbol
from darc.collectors import memberpads
from darc.collectors.losses import Losses, Unmeasured
from darc.collectors.memberpads import MemberPads
from darc.collectors.set_collector import SetCollector
from darc.collectors.setcount import SetCounting
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import NotFoundError, TimeUpError
from darc.model.ftree import Fnode, Function
from darc.model.leftout import CALLED_OFF, NO_TIME
from darc.model.membercounts import MemberCounts
from darc.model.parameters import Parameters
from darc.search.suspects import suspects
from darc.target.ownthread import Turn
from darc.target.target import Target
from darc.views.general.live import live
from darc.views.general.status import status
from darc.views.style import Style
from tests.fake_symbols import FakeSymbols
from tests.fake_target import FakeScreen
from tests.unit.movedtime import MovedTime

CODE = b"\xe8\x1b\x00\x00\x00" * 3 + b"\xe8\xfc\xff\xff\xff" + b"\x90" * 200
"""Calls of 0x20, 0x25, 0x2a and 0x10, as it is at 0."""


@dataclass
class Image:
    symbols: FakeSymbols
    segments = (SimpleNamespace(address=0, size=len(CODE), executable=True),)

    frames = SimpleNamespace(starts=[])
    calls: dict[int, int] = field(default_factory=dict)
    """What functions call, by their addresses."""

    def loaded(self, address: int, size: int) -> bytes:
        if size == 1 and address in self.calls:
            far = self.calls[address] - address - 5
            return b"\xe8" + far.to_bytes(4, "little", signed=True)
        return CODE[address : address + size]


@dataclass
class OneFileProgram:
    """A program of one file, which notes whose names it was asked for."""

    symbols: list[str]
    named: list[int] = field(default_factory=list)
    has_more = False
    first_file = None

    def __post_init__(self) -> None:
        made = [
            Symbol(name=s, address=n, size=1, ifunc=False, exported=True)
            for n, s in enumerate(self.symbols, 0x10)
        ]
        module = SimpleNamespace(
            name="prog", path="/prog", bias=0, start=0, end=0x50, image=Image(FakeSymbols(made))
        )
        self.modules = [module]

    def module_at(self, _address: int) -> object:
        return self.modules[0]

    @property
    def names(self) -> OneFileProgram:
        return self

    def operations(self, _name: str) -> list[int]:
        return []

    def is_code(self, _address: int) -> bool:
        return True

    def code_among(self, addresses: Sequence[int]) -> list[tuple[int, int]]:
        return [(0, len(addresses))]

    def function_at(self, address: int) -> Function:
        self.named.append(address)
        symbol = self.symbols[address - 0x10]
        return Function(
            name=f"the {symbol}", symbol=symbol, module="prog", address=address, offset=address
        )

    def choose(self, text: str, most: int, tell: Callable[[str], None] = print) -> Chosen:
        program = cast("Program", self)
        target = cast("Target", None)
        found = choose(program, target, patterns=parse_patterns([text]), own=None, progress=tell)
        return most_called(program, found, most, progress=tell)


SYMBOLS = [f"_ZN2ns5Cache5get{n:02}Ei" for n in range(40)]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symbols that are demangled for a pattern."""
    asked: list[str] = []

    def note(symbol: str) -> str:
        asked.append(symbol)
        return symbol

    monkeypatch.setattr(patterns, "display_name", note)
    return asked


def test_of_all_functions_only_those_that_are_timed_are_demangled(shown: list[str]) -> None:
    world = OneFileProgram(SYMBOLS)
    told: list[str] = []
    chosen = world.choose("*", 4, told.append)
    assert shown == []
    kept = [function.address for function in chosen.functions]
    assert kept == [0x10, 0x20, 0x25, 0x2A]
    assert sorted(world.named) == sorted(kept)
    assert {why.text for _, why in chosen.left_out} == {
        "fewer calls lead to them than to the 4 that can be timed at once"
    }
    assert [function.symbol for function, _ in chosen.left_out] == [
        s for n, s in enumerate(SYMBOLS, 0x10) if n not in kept
    ]
    assert told == ["looks for functions in file 1 of 1", "counts the calls in file 1 of 1"]


def test_all_of_a_stripped_program_are_its_own_and_not_those_that_it_shows() -> None:
    """As of a server that shows functions to plugins: by its frame information. Others are called
    by their names, and so are those of a file that has symbols of nearly all."""
    world = OneFileProgram(["shown", "exported"])
    program, target = cast("Program", world), cast("Target", None)
    image = world.modules[0].image
    image.frames = SimpleNamespace(starts=[0x10, 0x18, 0x20, 0x28])
    image.symbols.stripped = True
    own = cast("Module", world.modules[0])

    def names(*texts: str) -> list[str]:
        found = choose(program, target, parse_patterns(texts), own=own)
        return [function.name for function in found.functions]

    assert names("*") == ["shown", "exported", "prog+0x18", "prog+0x20", "prog+0x28"]
    assert names("*", "shown") == names("*")
    assert names("sh*") == ["shown"]
    image.frames.starts = [0x10, 0x11]
    assert names("*") == ["shown", "exported"]


def test_what_has_no_name_in_a_file_that_was_not_stripped_is_no_function_of_it() -> None:
    """As the ways into other files (.plt), of which a small program has as many as functions."""
    world = OneFileProgram(["main", "work"])
    world.modules[0].image.frames = SimpleNamespace(starts=[0x10, 0x11, 0x18, 0x20, 0x28])
    found = choose(
        cast("Program", world),
        cast("Target", None),
        parse_patterns(["*"]),
        own=cast("Module", world.modules[0]),
    )
    assert [function.name for function in found.functions] == ["main", "work"]


def test_those_that_most_call_come_first() -> None:
    world = OneFileProgram([f"f{n}" for n in range(20)])
    assert [f.address for f in world.choose("*", 2).functions] == [0x10, 0x20]
    assert next(f.name for f in world.choose("f1?", 20).functions) == "the f10"


def test_those_under_way_and_what_they_call_come_before() -> None:
    world = OneFileProgram([f"f{n}" for n in range(0x40)])
    program, target = cast("Program", world), cast("Target", None)
    found = choose(program, target, parse_patterns(["*"]), own=None)
    near = most_called(program, found, 4, active=lambda: [0x3F])
    assert [f.address for f in near.functions] == [0x3F, 0x10, 0x20, 0x25]
    world.modules[0].image.calls = {0x3F: 0x30}
    near = most_called(program, found, 4, active=lambda: [0x3F])
    assert [f.address for f in near.functions] == [0x3F, 0x30, 0x10, 0x20]


def test_a_languages_runtime_comes_last() -> None:
    """Everybody calls it; it is what is asked for where nothing else is."""
    world = OneFileProgram([f"f{n}" for n in range(0x20)])
    program, target = cast("Program", world), cast("Target", None)
    found = choose(program, target, parse_patterns(["*"]), own=None)
    of_c = {0x10, 0x20}
    mixed = [
        dataclasses.replace(one, module="libc.so.6") if one.address in of_c else one
        for one in found.functions
    ]
    chosen = most_called(program, Chosen(tuple(mixed)), 30)
    assert of_c.isdisjoint(f.address for f in chosen.functions)
    alone = [dataclasses.replace(one, module="libc.so.6") for one in found.functions]
    chosen = most_called(program, Chosen(tuple(alone)), 2)
    assert {f.address for f in chosen.functions} == of_c


def test_a_pattern_demangles_what_may_have_its_words_alone(shown: list[str]) -> None:
    world = OneFileProgram([*SYMBOLS, "read_page", "_ZN2ns4PageC1Ev"])
    with pytest.raises(Exception, match="no function is called"):
        world.choose("Page::*", 10)
    assert shown == ["_ZN2ns4PageC1Ev"]


def test_a_pattern_that_means_nothing_is_told_and_the_others_go_on() -> None:
    world = OneFileProgram(["ks_read", "ks_write"])

    def of(text: str) -> Chosen:
        program, target = cast("Program", world), cast("Target", None)
        return choose(program, target, parse_patterns(text.split()), own=None)

    chosen = of("ks_* ks_file_operations")
    assert [function.symbol for function in chosen.functions] == ["ks_read", "ks_write"]
    assert chosen.missing == ("no function is called ks_file_operations",)
    with pytest.raises(NotFoundError, match=r"no function is called none_\*"):
        of("none_* nor_this")


def test_of_many_patterns_that_mean_nothing_the_number_is_told() -> None:
    words = [f"no function is called f{n}" for n in range(6)]
    assert told_of_missing(words) == [*words[:4], "2 other patterns mean no function"]
    assert told_of_missing(words[:5]) == words[:5]


# ---------------------------------------------------------------------- making the pads


@pytest.fixture
def clock(run_time: MovedTime, monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    monkeypatch.setattr(setmaking, "time", run_time)
    monkeypatch.setattr(memberpads, "time", run_time)
    return run_time


class Members:
    """Stands for the installer: which pads there are."""

    def __init__(self) -> None:
        self.members: set[int] = set()

    def enable_members(self) -> Mapping[int, str]:
        return {}


class Uninterrupted:
    """A helper that nobody interrupts, while the program runs."""

    may_look = True

    def __init__(self, made: Set) -> None:
        self._made = made

    def memory(self) -> object:
        return None if self._made.stopped else (None, None)

    def is_over(self) -> bool:
        return False

    @contextlib.contextmanager
    def helping(self, _memory: object) -> Iterator[None]:
        yield

    def goes_on(self) -> None:
        pass


class Pads(MemberPads):
    """They take as long as ``made`` says."""

    def __init__(self, made: Set, count: int) -> None:
        self.functions = tuple(
            Function(name=f"f{n}", symbol=f"f{n}", module="prog", address=n, offset=n)
            for n in range(count)
        )
        self._to_make = collections.deque(range(1, count))
        self._at_stop = collections.deque()
        self.left_out = {}
        self._ahead = Uninterrupted(made)  # type: ignore[assignment]
        self._made = made

    def make(self, number: int) -> str | None:
        made = self._made
        if not made.stopped and number <= made.not_now:
            raise NotNowError
        made.clock.now += made.cost
        made.members.members.add(number)
        return None


class Counting(SetCounting):
    """None was called."""

    hz = 10**9

    def await_user(self) -> None:
        pass

    def counts(self) -> Mapping[Function, MemberCounts]:
        return {}


class Set(SetCollector):
    """A set whose pads take ``cost`` seconds each; those in ``at_stop`` cannot be made while the
    program runs."""

    unsettled_seconds = 0.0

    def __init__(self, clock: MovedTime, count: int, cost: float, at_stop: int = 0) -> None:
        self._is_in = False
        self._losses = Losses({Unmeasured.BLOCKS: "", Unmeasured.CONTEXTS: ""})
        self.clock, self.cost, self.not_now = clock, cost, at_stop
        self.stopped = True
        self.members = Members()
        self.members.members.add(0)
        self._parts = SimpleNamespace(installer=self.members)  # type: ignore[assignment]
        self.pads = Pads(self, count)
        nothing = cast(Any, None)
        self.counting = Counting(nothing, nothing, self.pads, self._losses)
        self._debuggee = SimpleNamespace(  # type: ignore[assignment]
            is_readable_while_it_runs=True, sees_all_threads=True
        )

    busy_seconds = 0.0
    tick = None


def analysis_of(made: Set, kind: type[FunctionProfiles], **how: Any) -> FunctionProfiles:
    root = Fnode(made.pads.functions[0])
    nobody = cast("SwitchWatch", None)
    program = cast("Program", None)
    notes: list[str] = []
    return kind(
        AnalysisBrief(
            program=program,
            collector=made,
            root=root,
            spec="*",
            parameters=Parameters(),
            note=notes.append,
            switches=nobody,
        ),
        **how,
    )


def run(made: Set, analysis: FunctionProfiles) -> list[float]:
    """The program runs until the functions are timed. How long it stood still at each stop."""
    stops = []
    while not made.is_in:
        analysis.goes_on()
        made.stopped = False
        while analysis.urgent is None:
            analysis.look_ahead(0.005)
            made.clock.now += 0.001
        made.stopped = True
        begin = made.clock.now
        analysis.stands()
        assert analysis.decide() is Step.GO_ON
        stops.append(made.clock.now - begin)
    analysis.goes_on()
    return stops


def test_how_far_it_is_is_told_while_probes_are_made(clock: MovedTime) -> None:
    """There, "0 calls" would say that nothing is called."""
    made = Set(clock, 1955, cost=0.001)
    analysis = analysis_of(made, FunctionProfiles, seconds=5.0)
    made.pads._to_make = collections.deque(range(46, 1955))
    assert live(analysis.live_snapshot(True, False), Style(200)) == (
        "darc: *: makes probe 47 of 1,955 · 0s"
    )
    told = status(analysis.snapshot(True), Style())
    assert told == "darc: *: profiling\n  makes probe 47 of 1,955: nothing is timed yet"
    analysis.finish_early("the time is up")
    ended = status(analysis.snapshot(False), Style())
    assert ended == "darc: *: done\n  it ended as it made probe 47 of 1,955: nothing was timed"
    again = Set(clock, 60, cost=0.001)
    analysis = analysis_of(again, FunctionProfiles, seconds=5.0)
    run(again, analysis)
    assert "makes" not in status(analysis.snapshot(True), Style())


def test_when_patience_is_over_what_is_made_is_timed(clock: MovedTime) -> None:
    """And no pad is made at the stop, however many there are left."""
    made = Set(clock, 300, cost=0.1)
    stops = run(made, analysis_of(made, FunctionProfiles, seconds=5.0))
    assert stops == [0.0]
    assert 80 < made.timed < 150
    assert len(made.pads.left_out) == 300 - made.timed
    assert set(made.pads.left_out.values()) == {NO_TIME}


def test_where_few_pads_are_made_there_is_more_patience(clock: MovedTime) -> None:
    """Of a very large program 48 of 2,000 were made, and nothing stood out of these."""
    made = Set(clock, 2000, cost=0.1)
    run(made, analysis_of(made, FunctionProfiles, seconds=5.0))
    assert 200 < made.timed < 350
    slow = Set(clock, 2000, cost=0.02)
    run(slow, analysis_of(slow, FunctionProfiles, seconds=5.0))
    assert 500 <= slow.timed < 700


def test_pads_that_are_made_at_stops_take_several(clock: MovedTime) -> None:
    made = Set(clock, 100, cost=0.01, at_stop=60)
    stops = run(made, analysis_of(made, FunctionProfiles, seconds=5.0))
    assert made.timed == 100
    assert made.pads.left_out == {}
    assert len(stops) > 3
    assert max(stops) < 0.2


def test_time_counts_from_when_functions_are_timed(clock: MovedTime) -> None:
    made = Set(clock, 2000, cost=0.1)
    analysis = analysis_of(made, SuspectProfiles, limit=4.0)
    before = clock.now
    run(made, analysis)
    assert clock.now - before > 4
    assert analysis.seconds_left == 4.0
    assert isinstance(analysis, SuspectProfiles)
    assert analysis.timed_from == clock.now
    clock.now += 1
    assert analysis.seconds_left == 3.0


class Calls(Counting):
    """A million calls a second of two functions, of which one has slow ones."""

    call_cost = 100

    def __init__(self, clock: MovedTime, pads: MemberPads) -> None:
        losses = Losses({Unmeasured.BLOCKS: "", Unmeasured.CONTEXTS: ""})
        super().__init__(cast(Any, None), cast(Any, None), pads, losses)
        self.clock, self.begin, self.pads = clock, clock.now, pads

    def counts(self) -> Mapping[Function, MemberCounts]:
        n = round(1000 * (self.clock.now - self.begin))
        bins = ({6: 1000 * n}, {6: 1000 * n, 21: n // 10}) if n else ()
        totals = [sum(round(c * 1.5 * 2**b) for b, c in one.items()) for one in bins]
        return {
            function: MemberCounts(
                calls=sum(one.values()),
                sum=total,
                max=2**22,
                left=0,
                dropped=0,
                lost=0,
                foreign=0,
                jumps=0,
                bins=one,
            )
            for function, one, total in zip(self.pads.functions, bins, totals, strict=False)
        }


def given_up(made: Set, analysis: FunctionProfiles) -> list[set[str]]:
    """The program runs up to the end of the analysis. Which functions went out at each stop."""
    out: list[set[str]] = []
    made.give_up = lambda functions: out.append({f.name for f in functions})  # type: ignore[method-assign]
    while analysis.decide() is Step.GO_ON:
        made.clock.now += 0.05
        analysis.look()
    return out


def test_what_stands_out_goes_out_when_enough_is_known_of_it(clock: MovedTime) -> None:
    made = Set(clock, 2, cost=0.01)
    analysis = analysis_of(made, SuspectProfiles, limit=10.0)
    run(made, analysis)
    made.counting = Calls(clock, made.pads)
    out = given_up(made, analysis)
    assert out == [{"f0"}, {"f1"}]
    rows = {row.function.name: row for row in analysis.known.rows}
    assert rows["f1"].until is not None
    assert 0.6 <= rows["f1"].until < 3
    assert len(rows["f1"].slices) >= 2
    assert [one.name for one in suspects(analysis.known)] == ["f1"]


class Recursive(Calls):
    """One function has slow calls, in each of which it calls itself a thousand times: that is what
    these take."""

    def counts(self) -> Mapping[Function, MemberCounts]:
        first, second = self.pads.functions
        plain = super().counts()
        n, own = round(1000 * (self.clock.now - self.begin)), self.call_cost
        latency = 1500 * own
        own_calls = dataclasses.replace(
            plain[first],
            calls=n,
            sum=n * latency,
            bins={latency.bit_length() - 1: n},
            recursions=1000 * n,
        )
        return {first: own_calls, second: plain[second]} if n else {}


def test_what_calls_itself_most_of_its_time_goes_out(clock: MovedTime) -> None:
    """Its probe would be what is measured, in all that call it as well."""
    made = Set(clock, 2, cost=0.01)
    analysis = analysis_of(made, FunctionProfiles, seconds=2.0)
    run(made, analysis)
    made.counting = Recursive(clock, made.pads)
    out = given_up(made, analysis)
    assert out[0] == {"f0"}


def test_a_stop_of_the_debuggers_own_puts_it_off_for_a_moment(clock: MovedTime) -> None:
    """As for each new thread: there is more to be done, at once."""
    made = Set(clock, 100, cost=0.01)
    before = clock.now
    assert made.pads.look_ahead(lambda: (), 0, 0.005)
    assert made.timed == 1
    assert 0 < clock.now - before < 0.1


# ------------------------------------------------------------------------------- progress


class Prompt(FakeScreen):
    def __init__(self) -> None:
        super().__init__(Turn())
        self.told: list[str | None] = []

    def live(self, text: str | None) -> None:
        self.told.append(text)


def test_what_takes_longer_than_a_second_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, screen = MovedTime(), Prompt()
    monkeypatch.setattr(progress, "time", clock)
    tell = progress.Progress(screen)
    for number in range(1, 151):
        tell(f"counts the calls in file {number} of 150")
        clock.now += 0.01
    assert screen.told[0] == "darc: counts the calls in file 101 of 150"
    assert 3 <= len(screen.told) <= 7


def test_what_does_not_tell_how_far_it_is_is_told_with_the_seconds() -> None:
    screen, is_told = Prompt(), threading.Event()

    def live(text: str | None) -> None:
        screen.told.append(text)
        is_told.set()

    screen.live = live  # type: ignore[method-assign]
    with progress.Progress(screen).over("looks for handle"):
        assert is_told.wait(60)
    assert re.fullmatch(r"darc: looks for handle · \d+s", screen.told[0] or "")
    assert screen.told[-1] is None
    count = len(screen.told)
    for one in threading.enumerate():
        if one.name == "darc progress":
            one.join(60)
    assert len(screen.told) == count, "nothing is shown behind its end"


def test_in_batch_what_does_not_tell_how_far_it_is_is_told_in_lines() -> None:
    is_told, lines = threading.Event(), list[str]()

    class Batch(Prompt):
        has_live_line = False
        is_script = True

        def leave_at_command(self, text: str) -> None:
            lines.append(text)
            is_told.set()

    with progress.Progress(Batch()).over("looks for handle"):
        assert is_told.wait(60)
    assert re.fullmatch(r"darc: looks for handle · \d+s", lines[0])
    is_told.clear()
    with progress.Progress(Batch()).over(f"looks for {'x' * 10_000}"):
        assert is_told.wait(60)
    assert len(lines[-1]) < 300


def test_what_takes_as_long_as_it_may_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, screen = MovedTime(), Prompt()
    monkeypatch.setattr(progress, "time", clock)
    tell = progress.Progress(screen, clock.now - 7, limit=10.0)
    with tell.over("looks for handle"):
        clock.now += 3
        tell("looks at file 1 of 2")
        clock.now += 1
        with pytest.raises(
            TimeUpError, match=r"\(max-time 10s\) while darc looks at file 2 of 2: "
        ):
            tell("looks at file 2 of 2")
    tell("goes on while the program runs, for which the search's own limit is")


def test_where_the_debugger_is_to_end_it_is_broken_off() -> None:
    class Leaving(Prompt):
        def is_to_end(self) -> bool:
            return True

    tell = progress.Progress(Leaving())
    elsewhere = threading.Thread(target=tell, args=("helps",))
    with tell.over("looks for handle"):
        elsewhere.start()
        elsewhere.join(60)
        with pytest.raises(KeyboardInterrupt):
            tell("looks at file 1 of 2")


def test_where_there_is_no_live_line_it_tells_more_and_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Batch(Prompt):
        has_live_line = False

    clock, screen = MovedTime(), Batch()
    monkeypatch.setattr(progress, "time", clock)
    tell = progress.Progress(screen)
    for number in range(300):
        tell(f"does {number}")
        clock.now += 0.125  # without a rest in binary digits
    told = (8, 24, 56, *range(96, 300, 40))
    assert screen.emitted == [f"darc: does {number}\n" for number in told]
    assert screen.told == []


class AtOnce(MemberPads):
    """Each pad takes a moment, and the user presses Ctrl-C while that of ``last`` is made."""

    def __init__(self, count: int, last: int) -> None:
        self.told: list[str] = []
        self.made: list[int] = []
        super().__init__(
            cast("Program", None),
            cast(Any, SimpleNamespace(landmarks=lambda _: ())),
            foothold=cast(Any, None),
            installer=cast(Any, None),
            ahead=cast(Any, None),
            functions=[
                Function(name=f"f{n}", symbol=f"f{n}", module="prog", address=n, offset=n)
                for n in range(count)
            ],
            tell=self.told.append,
            is_called_off=lambda: last in self.made,
        )

    def make(self, number: int) -> str | None:
        self.made.append(number)
        return None


def test_ctrl_c_while_pads_are_made_at_once() -> None:
    pads = AtOnce(2000, last=2)
    pads.begin(runs=False)
    assert pads.made == [0, 1, 2]
    assert len(pads.told) == 3
    assert pads.is_all_made
    assert set(pads.left_out.values()) == {CALLED_OFF}
    assert len(pads.left_out) == 1997


def test_what_a_level_has_no_time_for_is_left_out_and_made_where_there_is_some() -> None:
    pads = AtOnce(1, last=-1)
    more = [
        Function(name=f"g{n}", symbol=f"g{n}", module="prog", address=n, offset=n)
        for n in (10, 11, 12)
    ]
    pads.add(more, lambda: None, until=time.monotonic())
    assert pads.made == [1]  # one at least
    assert pads.left_out == {more[1]: NO_TIME, more[2]: NO_TIME}
    pads.add(more[1:], lambda: None)
    assert pads.made == [1, 4, 5]
    assert not pads.left_out
