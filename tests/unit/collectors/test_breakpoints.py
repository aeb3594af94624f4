"""Collecting with breakpoints, on programs of a few instructions that a fake machine runs."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from darc.analyses.analysis import AnalysisBrief, Step
from darc.analyses.rootcauses import RootCauses
from darc.code.program import Program
from darc.collectors.breakpoints import BreakpointCollector
from darc.collectors.collector import CollectorBrief
from darc.collectors.hitlimits import FREE_HITS, HITS_PER_CALL, MAX_HITS
from darc.model.errors import NotFoundError, UsageError
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters
from darc.model.profile import bin_of
from darc.model.snapshot import SiteState
from darc.model.status import Status
from darc.target.outcome import Outcome
from darc.views import render
from darc.views.style import Style
from tests.unit.assembly import Assemble, Code
from tests.unit.machine import MS, PLAIN, STACK, TID, Debuggee, Machine, ThrownError


class Bench:
    """A machine with an analysis of one of its functions."""

    def __init__(self, code: Code, f0: str = "f", **parameters: Any) -> None:
        self.machine = Machine(code)
        settings: dict[str, Any] = {"peak": ">10ms", "start_ops": 20, "decision_ops": 4}
        self.parameters = Parameters(**{"lookahead": 1, **settings, **parameters})
        self.notes: list[str] = []
        target, program = self.machine.target, self.machine.code
        as_read = cast(Program, program)
        self.root = Fnode(program.names.function_at(program.symbols[f0]))
        self.debuggee = debuggee = Debuggee(self.machine.target, program)
        self.collector = BreakpointCollector(
            CollectorBrief(
                target=target,
                program=as_read,
                debuggee=debuggee,
                root=self.root,
                spec=f0,
                parameters=self.parameters,
                listener=self,
                note=self.notes.append,
            )
        )
        self.collector._clock._read = lambda: self.machine.now
        self.late = False
        self.gave_up: list[str] = []
        self.collector.install(program.function(program.symbols[f0]), self.parameters.profile_calls)
        self.analysis = RootCauses(
            AnalysisBrief(
                program=as_read,
                collector=self.collector,
                root=self.root,
                spec=f0,
                parameters=self.parameters,
                note=self.notes.append,
            )
        )

    def is_due(self) -> bool:
        return self.late

    @property
    def seconds_left(self) -> float | None:
        return None

    def decide(self) -> Outcome:
        if self.late:
            self.analysis.finish_early("the time is up")
        elif self.analysis.decide() is not Step.END:
            return Outcome.CONTINUE
        self.collector.remove()
        return Outcome.STOP

    def give_up(self, why: str) -> Outcome:
        self.gave_up.append(why)
        self.collector.remove()
        return Outcome.STOP

    damaged = vanished = give_up

    def before_resume(self) -> None:
        pass

    def exits(self) -> None:
        pass

    @property
    def found(self) -> list[list[str]]:
        paths = self.analysis.snapshot(True).paths
        return [[node.function.name for node in path.nodes] for path in paths]

    def run(self, calls: int = 400, caller: str = "main") -> None:
        """Calls f0 again and again, until the program is stopped for the user."""
        for self.call in range(calls):
            if self.machine.stopped:
                return
            self.machine.call(caller)

    def slow(self, name: str, ns: int = 40 * MS) -> None:
        """Every fifth call, one function is slow."""
        self.call = 0
        self.machine.latency = lambda called: ns * (called == name and self.call % 5 == 0)


@pytest.mark.parametrize(
    ("slow", "path"),
    [("w", ["f", "g", "w"]), ("g", ["f", "g"]), ("h", ["f", "h"]), ("f", ["f"])],
)
def test_path(assembled: Assemble, slow: str, path: list[str]) -> None:
    """And in the end nothing is left."""
    bench = Bench(assembled(PLAIN))
    bench.slow(slow)
    bench.run()
    assert bench.found == [path]
    assert bench.machine.stopped
    assert bench.analysis.status is Status.FOUND
    assert bench.machine.target.breaks.on_hit == {}
    assert not bench.debuggee.begun


def test_why_its_causes_may_be_wrong_is_told(
    assembled: Assemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a kernel."""
    bench = Bench(assembled(PLAIN))
    assert bench.collector.losses() == []
    monkeypatch.setattr(type(bench.debuggee), "breakpoints_doubt", "hits slow others down")
    assert bench.collector.losses() == ["hits slow others down"]


@pytest.mark.parametrize(
    ("doubt", "blur", "is_sure"),
    [(None, 10e-3, True), ("hits slow others down", 1e-3, True), ("as in a kernel", 10e-3, False)],
)
def test_causes_of_calls_as_short_as_what_hits_cost_others_are_possible_ones(
    assembled: Assemble,
    monkeypatch: pytest.MonkeyPatch,
    doubt: str | None,
    blur: float,
    *,
    is_sure: bool,
) -> None:
    bench = Bench(assembled(PLAIN))
    monkeypatch.setattr(type(bench.debuggee), "breakpoints_doubt", doubt)
    monkeypatch.setattr(type(bench.debuggee), "breakpoints_blur", blur)
    bench.slow("h")
    bench.run()
    snapshot = bench.analysis.snapshot(True)
    assert [path.is_sure for path in snapshot.paths] == [is_sure]
    assert f"darc: {'root' if is_sure else 'possible'} cause of" in render.paths(snapshot, Style())


def test_profile_is_without_the_hits(assembled: Assemble) -> None:
    bench = Bench(assembled(PLAIN), peak=None, start_ops=50)
    bench.slow("h")
    bench.run()
    profile = bench.collector.counting.profile()
    profile.check()
    assert profile.count >= 50
    slow = profile.bins[bin_of(40 * MS, 1)]
    assert slow == profile.count // 5
    assert profile.total == slow * 40 * MS + (profile.count - slow) * Machine.COST // 2


def test_only_the_outermost_call_counts(
    assembled: Assemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recursion is followed in the ftree."""
    source = "f: sub rsp,8\ncall g\nadd rsp,8\nret\ng: sub rsp,8\ncall f2\nadd rsp,8\nret\n"
    bench = Bench(assembled(source + "f2: jmp f\nmain: call f\nret\n"))
    frames: list[str] = []
    run = bench.machine._run

    def limited(entry: int) -> None:
        name = bench.machine.code.names.function_at(entry).symbol
        if frames.count("f") == 3:
            bench.machine.registers["rsp"] += 8
            return
        frames.append(name)
        try:
            run(entry)
        finally:
            frames.pop()

    monkeypatch.setattr(bench.machine, "_run", limited)
    bench.call = 0
    bench.machine.latency = lambda name: (
        40 * MS * (name == "g" and frames.count("f") == 2 and bench.call % 5 == 0)
    )
    bench.run()
    assert bench.found == [["f", "g", "f2", "f", "g"]]


def test_tail_call(assembled: Assemble) -> None:
    """f0 itself and a callee hand their frames over."""
    source = "f: sub rsp,8\ncall g\nadd rsp,8\njmp h\ng: jmp w\nh: ret\nw: ret\n"
    for slow, path in (("w", ["f", "g", "w"]), ("h", ["f", "h"])):
        bench = Bench(assembled(source + "main: call f\nnop\nret\n"))
        bench.slow(slow)
        bench.run()
        assert bench.found == [path]


def test_indirect_call(assembled: Assemble) -> None:
    source = "f: sub rsp,8\ncall r11\nadd rsp,8\nret\ng: ret\nh: ret\nmain: call f\nret\n"
    bench = Bench(assembled(source))
    symbols = bench.machine.code.symbols
    bench.slow("h")
    plain = bench.machine.latency

    def latency(name: str) -> int:
        bench.machine.registers["r11"] = symbols["gh"[bench.call % 5 == 0]]
        return plain(name)

    bench.machine.latency = latency
    bench.run()
    assert bench.found == [["f", "h"]]


@pytest.mark.parametrize("catcher", ["f", "g"])
def test_calls_that_end_by_an_exception(assembled: Assemble, catcher: str) -> None:
    bench = Bench(assembled(PLAIN))
    bench.slow("w")
    bench.machine.throws = lambda name: name == "w" and bench.call % 5 == 0
    bench.machine.catches = {catcher}
    bench.run()
    assert bench.found == [["f", "g", "w"]]


def test_exceptions_that_leave_f0(assembled: Assemble) -> None:
    """They are operations as well, up to the handler."""
    bench = Bench(assembled(PLAIN))
    bench.slow("w")
    bench.machine.throws = lambda name: name == "w" and bench.call % 5 == 0
    bench.machine.catches = {"main"}
    bench.run()
    assert bench.found == [["f", "g", "w"]]


def test_frames_that_vanish(assembled: Assemble) -> None:
    """Nothing tells of their end: f0's is not measured, and what comes later is."""
    bench = Bench(assembled(PLAIN), peak=None, start_ops=20)
    bench.slow("w", 0)
    bench.machine.throws = lambda name: name == "w" and bench.call % 2 == 1
    top = bench.machine.registers["rsp"]
    for bench.call in range(40):
        try:
            bench.machine.call("main")
        except ThrownError:
            bench.machine.registers["rsp"] = top
            bench.machine.now += 70 * MS
    profile = bench.collector.counting.profile()
    assert profile.count == 20
    assert max(profile.bins) < 20


def test_threads_are_told_apart(assembled: Assemble) -> None:
    """Hits of one stop the other; what it took is taken out of both."""
    bench = Bench(assembled(PLAIN))
    machine = bench.machine
    machine.target.map(STACK - 0x40000, bytes(0x10000))
    bench.call = nested = 0

    def latency(name: str) -> int:
        nonlocal nested
        if name == "h" and machine.target.current == TID and not nested:
            nested = 1
            machine.switch(TID + 1, STACK - 0x30000)
            machine.call("main")
            machine.switch(TID, STACK)
            nested = 0
        return 40 * MS * (name == "w" and bench.call % 5 == 0 and not nested)

    machine.latency = latency
    bench.run()
    assert bench.found == [["f", "g", "w"]]


def test_one_thread_alone(assembled: Assemble) -> None:
    bench = Bench(assembled(PLAIN), thread=TID, peak=None)
    bench.slow("w")
    bench.machine.target.map(STACK - 0x40000, bytes(0x10000))
    bench.run(10)
    bench.machine.switch(TID + 1, STACK - 0x30000)
    bench.run(10)
    assert bench.collector.counting.profile().count == 10
    with pytest.raises(NotFoundError):
        Bench(assembled(PLAIN), thread=4711)
    with pytest.raises(UsageError, match="--task is for kernels"):
        Bench(assembled(PLAIN), task="prog")


def test_tasks_that_take_turns_on_a_processor_are_told_apart(assembled: Assemble) -> None:
    """In a kernel a debugger's thread is a processor, and a task is known by its stack."""
    bench = Bench(assembled(PLAIN))
    machine, other = bench.machine, STACK - 0x30000
    bench.debuggee.strand = lambda thread: machine.registers["rsp"] >> 14  # type: ignore[method-assign]
    machine.target.map(STACK - 0x40000, bytes(0x10000))
    bench.call = nested = 0

    def latency(name: str) -> int:
        nonlocal nested
        if name == "h" and not nested:
            nested = 1
            own, machine.registers["rsp"] = machine.registers["rsp"], other
            machine.call("main")
            machine.registers["rsp"] = own
            nested = 0
        return 40 * MS * (name == "w" and bench.call % 5 == 0 and not nested)

    machine.latency = latency
    bench.run()
    assert bench.found == [["f", "g", "w"]]


def test_at_a_stop_for_the_user_nothing_is_there(assembled: Assemble) -> None:
    """A call that was under way is not measured."""
    bench = Bench(assembled(PLAIN), peak=None)
    bench.slow("w", 0)
    collector = bench.collector

    def stop(name: str) -> int:
        if name == "w" and bench.call == 5:
            collector.stops.pause()
            assert collector.stops.paused
            assert bench.machine.target.breaks.on_hit == {}
            bench.machine.now += 1000 * MS
            collector.stops.resume()
        return 0

    bench.machine.latency = stop
    bench.run(10)
    assert collector.counting.profile().count == 9
    assert max(collector.counting.profile().bins) < 20


def test_a_call_site_that_is_hit_too_often(assembled: Assemble) -> None:
    """Its calls from elsewhere would cost too much: it is left alone, and the report says why."""
    bench = Bench(assembled(PLAIN))
    bench.slow("w")
    bench.run(42)  # g is under analysis now
    before = bench.machine.hits
    for _ in range(FREE_HITS * 10):
        bench.machine.call("g")
    limit = 2 * (FREE_HITS + 42 * HITS_PER_CALL)
    assert bench.machine.hits - before <= limit
    reports = bench.collector.callees.told.of_used(())
    assert [(site.function, site.callee, site.state) for site in reports] == [
        ("g", "w", SiteState.NOT_POSSIBLE)
    ]
    assert "too often" in str(reports[0].why)
    bench.run()
    assert bench.found == [["f", "g"]]


def test_signals_that_come_faster_than_hits(assembled: Assemble) -> None:
    """f0 is entered, and its breakpoint hit again and again."""
    bench = Bench(assembled(PLAIN))
    entry = bench.machine.code.symbols["f"]
    bench.machine.call("main")
    bench.machine._push(0x9999)
    for _ in range(MAX_HITS + 1):
        bench.machine.arrive(entry)
    assert len(bench.gave_up) == 1
    assert bench.machine.target.breaks.on_hit == {}


def test_time_limit(assembled: Assemble) -> None:
    bench = Bench(assembled(PLAIN), start_ops=1000)
    bench.slow("w")
    bench.run(10)
    bench.late = True
    bench.run(10)
    assert bench.machine.stopped
    assert bench.machine.target.breaks.on_hit == {}
    assert any("the time is up" in note for note in bench.notes)


def test_a_search_that_time_ended_says_how_far_it_came(assembled: Assemble) -> None:
    bench = Bench(assembled(PLAIN), start_ops=100, decision_ops=1000)
    bench.slow("w")
    bench.run(200)
    bench.late = True
    bench.run(10)
    (told,) = (note for note in bench.notes if "the time is up" in note)
    found = re.search(r"; level 1 had (\d+) of 1000 calls inside the peak(?:, which come |$)", told)
    assert found, told
    assert 0 < int(found[1]) < 1000


def test_program_that_ends(assembled: Assemble) -> None:
    """What was counted outlives it."""
    bench = Bench(assembled(PLAIN))
    bench.slow("w")
    bench.run(15)
    bench.machine.target.end()
    bench.collector.gone()
    assert bench.collector.outlives
    assert bench.collector.counting.profile().count == 15
