"""A session on a made-up machine: what it lets happen, tells and takes back."""

from __future__ import annotations

import math

import pytest

from darc.analyses.analysis import Analysis, FallsBack
from darc.analyses.question import About
from darc.analyses.rootcauses import RootCauses
from darc.collectors.breakpoints import BreakpointCollector
from darc.model.errors import TargetError, UnsupportedError, UsageError
from darc.model.status import EndedBy, Status
from darc.session.deadline import Deadline
from darc.session.message import Message
from darc.target.outcome import Outcome
from tests.fake_target import FakeThread
from tests.unit.assembly import Assemble
from tests.unit.bench import Bench
from tests.unit.machine import PLAIN, Pads


@pytest.fixture
def bench(assembled: Assemble) -> Bench:
    return Bench(assembled(PLAIN)).install()


def test_from_the_profile_to_the_answer(bench: Bench) -> None:
    bench.run(400)
    session = bench.session
    assert bench.machine.stopped
    assert session.take_message() is Message.RESULT
    assert session.take_message() is None
    shown = session.snapshot()
    assert [node.function.name for node in shown.paths[0].nodes] == ["f", "g", "w"]
    assert shown.notes[0] == "first of all"
    assert not session.alive
    assert bench.is_clean


def test_the_user_chooses(assembled: Assemble) -> None:
    """A peak, and then where to descend."""
    bench = Bench(assembled(PLAIN), peak=None, auto=False).install()
    session = bench.session
    bench.run(400)
    assert session.take_message() is Message.QUESTION
    analysis = session.analysis
    assert isinstance(analysis, RootCauses)
    question = analysis.question
    assert question is not None
    assert (question.about, question.is_waited_for) == (About.PROFILE, True)
    with pytest.raises(UsageError, match="there is no peak 9"):
        session.follow(lambda: analysis.choose_peak("9"))
    session.follow(lambda: analysis.choose_peak("last"))
    assert session.snapshot().status is Status.SEARCHING
    bench.run(400)
    assert session.take_message() is Message.QUESTION
    question = analysis.question
    assert question is not None
    assert (question.about, question.is_waited_for) == (About.FTREE, False)
    session.follow(lambda: analysis.descend([session.root.children[0]]))
    assert analysis.question is None
    bench.run(400)
    assert session.take_message() in (Message.QUESTION, Message.RESULT)
    session.stop()
    assert analysis.question is None


def test_what_is_asked_for_after_the_end(bench: Bench) -> None:
    bench.session.stop()
    assert bench.is_clean
    with pytest.raises(UsageError, match="the analysis is over"):
        bench.session.follow(lambda: pytest.fail("it is asked for nothing"))
    bench.session.stop()  # once more does nothing
    assert bench.session.snapshot().status is Status.STOPPED


def test_what_is_saved_is_what_the_user_has_asked_for(
    assembled: Assemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector's limits hold, and are nobody's wish."""
    monkeypatch.setattr(BreakpointCollector, "most_probes", 1)
    monkeypatch.setattr(BreakpointCollector, "auto_lookahead", 2)
    bench = Bench(assembled(PLAIN), lookahead=None, max_probes=500).install()
    assert bench.session.stored().parameters.max_probes == 500
    bench.run(60)
    stored = bench.session.stored()
    assert stored.status is Status.SEARCHING
    assert (stored.parameters.max_probes, stored.parameters.lookahead) == (500, None)
    limits = bench.session.collector.within_limits(stored.parameters)
    assert (limits.max_probes, limits.lookahead) == (1, 2)
    timed = bench.session.collector.timing.used
    assert len(timed) <= 2  # f0, and one


def test_a_session_says_which_analysis_it_is_of(assembled: Assemble) -> None:
    """Whatever the analysis itself says."""

    class Other(RootCauses):
        key = "other"

    bench = Bench(assembled(PLAIN), Other).install()
    bench.run(30)
    assert bench.session.stored().analysis == "other"
    assert Bench(assembled(PLAIN)).install().session.stored().analysis == "start"


def test_what_cannot_be_saved_says_what_keeps_it(assembled: Assemble) -> None:
    class Anew(RootCauses):
        stored = Analysis.stored

    bench = Bench(assembled(PLAIN), Anew).install()
    with pytest.raises(UsageError, match="in each run: 'darc report -o FILE' keeps what was found"):
        bench.session.stored()


def test_who_goes_on_with_other_probes_says_so() -> None:
    """No other analysis has what is asked of these alone."""
    asked = {name for name in vars(FallsBack) if not name.startswith("_")}
    assert asked == {"why_no_fall_back", "fall_back", "stay"}
    assert issubclass(RootCauses, FallsBack)
    assert all(not hasattr(Analysis, name) for name in asked)


def test_the_time_is_up(assembled: Assemble, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(assembled(PLAIN), max_time=30.0).install()
    bench.run(3)
    monkeypatch.setattr(Deadline, "has_passed", True)
    assert bench.session.decide() is Outcome.STOP
    shown = bench.session.snapshot()
    assert any("the time is up" in note for note in shown.notes)
    assert shown.ended_by is EndedBy.TIME
    assert bench.is_clean


def test_the_program_executes_another_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run(3)
    monkeypatch.setattr(type(bench.session.collector), "is_there", lambda _self: False)
    bench.session.modules_changed()
    shown = bench.session.snapshot()
    assert (shown.status, shown.ended_by) == (Status.ENDED, EndedBy.EXECUTED)
    assert EndedBy.EXECUTED.value in shown.notes


def test_what_was_looked_up_before_counts_for_the_time_limit(assembled: Assemble) -> None:
    assert (
        not Bench(assembled(PLAIN), spent=40.0, max_time=3000.0)
        .install()
        .session.deadline.has_passed
    )
    late = Bench(assembled(PLAIN), spent=40.0, max_time=30.0).install().session
    assert late.deadline.has_passed
    assert late.seconds_left is not None
    assert late.seconds_left <= 0
    assert late.snapshot().elapsed_seconds < 40, "how long it has run is told without that"


def test_a_decision_that_fails_ends_the_search(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise TargetError("the memory is gone")

    monkeypatch.setattr(bench.session.analysis, "decide", fail)
    assert bench.session.decide() is Outcome.STOP
    shown = bench.session.snapshot()
    assert shown.status is Status.INCONCLUSIVE
    assert "the search ended early: the memory is gone" in shown.notes
    assert bench.is_clean


def test_what_an_earlier_debugger_had_left_is_told_at_once(
    assembled: Assemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the program goes on, and in the report."""
    taken_out = "an earlier debugger had left 2 probes in the program: they were taken out"
    monkeypatch.setattr(Pads, "clean_up", lambda *_, **__: [taken_out])
    session = Bench(assembled(PLAIN)).install().session
    assert taken_out in session.openings
    assert taken_out in session.snapshot().notes


def test_a_collector_that_cannot_begin_leaves_nothing(
    assembled: Assemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(assembled(PLAIN))

    def install(self: BreakpointCollector, *about: object) -> None:
        self._debuggee.begin()
        raise UnsupportedError("no room")

    monkeypatch.setattr(BreakpointCollector, "install", install)
    with pytest.raises(UnsupportedError, match="no room"):
        bench.session.install()
    assert bench.is_clean
    assert not bench.session.alive


def test_a_breakpoint_of_the_users_in_a_call_on_the_path(bench: Bench) -> None:
    bench.run(400)
    assert not any("breakpoint of yours" in note for note in bench.session.snapshot().notes)
    bench.machine.target.user_breaks.places.add(bench.machine.code.symbols["h"])
    assert not any("breakpoint of yours" in note for note in bench.session.snapshot().notes)
    bench.machine.target.user_breaks.places.add(bench.machine.code.symbols["w"])
    (note,) = [n for n in bench.session.snapshot().notes if "breakpoint of yours" in n]
    assert note.startswith("a breakpoint of yours stands in w: ")


def test_who_prepares_goes_on_where_a_library_is_loaded(bench: Bench) -> None:
    """The debugger stops the program for that, and lets it go on by itself."""
    bench.session.pauses.end()
    assert bench.session.background.look_ahead() < math.inf
    bench.session.modules_changed()
    assert bench.session.background.look_ahead() < math.inf
    bench.session.pauses.breakpoints_changed()
    assert bench.session.background.look_ahead() < math.inf
    bench.session.pauses.begin()
    bench.session.modules_changed()
    assert bench.session.background.look_ahead() == math.inf


@pytest.mark.parametrize(("threads", "seen"), [(16, 100), (17, 136), (60, 480)])
def test_first_calls_of_many_threads_are_no_profile(
    assembled: Assemble, threads: int, seen: int
) -> None:
    """Those for which the time had come while the program stood still all come at once."""
    bench = Bench(assembled(PLAIN), peak=None, start_ops=None)
    more = threads - len(bench.machine.target.fake_threads)
    others = {number: FakeThread(number) for number in range(1000, 1000 + more)}
    bench.machine.target.fake_threads.update(others)
    bench.install().run(3000)
    profile = bench.session.snapshot().profile
    assert profile is not None
    assert profile.count == seen
    asked = Bench(assembled(PLAIN), peak=None, start_ops=100)
    asked.machine.target.fake_threads.update(others)
    asked.install().run(3000)
    profile = asked.session.snapshot().profile
    assert profile is not None
    assert profile.count == 100


def test_calls_of_the_level_that_goes_on_are_inside_the_peak(bench: Bench) -> None:
    """Also those of the first one, behind which nothing has been decided."""
    for _ in range(400):
        bench.run(1)
        shown = bench.session.snapshot()
        if shown.level == 1 and shown.collected:
            break
    assert shown.collected
    assert shown.program.in_peak_calls == shown.collected


def test_calls_by_generated_code_are_told_where_no_other_has_come(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BreakpointCollector, "generated", 9_999)
    assert bench.session.account.live_snapshot().generated == 0, "others may come"
    monkeypatch.setattr(BreakpointCollector, "generated", 10_000)
    shown = bench.session.account.live_snapshot()
    assert (shown.profile is not None and shown.profile.count, shown.generated) == (0, 10_000)
    bench.run(3)
    assert bench.session.account.live_snapshot().generated == 0
