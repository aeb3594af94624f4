import dataclasses
import itertools
import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from darc.model.bare import Bare
from darc.model.catching import Catching
from darc.model.ftree import (
    CallKind,
    CallSite,
    Cause,
    Cut,
    Decision,
    Ending,
    Fnode,
    Function,
    NodeState,
    RootCausePath,
)
from darc.model.ops import ObjectKind, OpClass
from darc.model.parameters import MOST_CALLS, Parameters
from darc.model.part import parts_of
from darc.model.peaks import Peak, PeakRange, find_peaks
from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy, Status
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.views import render
from darc.views.exporters.json import to_json
from darc.views.exporters.text import report
from darc.views.general.histogram import histogram
from darc.views.general.live import live
from darc.views.general.status import early_end, status
from darc.views.style import Style
from darc.views.treeview import ending_text, place
from darc.views.words import cost_text
from tests.unit import ops, samples, sets

PLAIN = Style()


BEHIND = 'waited for the lock st.m, 75 %, 67 % of that held by thread 7 "janitor" in sweep: 5 calls'


def bar_heights(drawing: str) -> dict[int, int]:
    """Rows that each bin's bar reaches, read from the drawing by its bin labels."""
    lines = drawing.splitlines()
    floor = next(i for i, line in enumerate(lines) if "└" in line)
    rows = [line for line in lines[:floor] if "┤" in line or "│" in line]
    labels = lines[floor + 1]
    return {
        int(match[0]): sum(len(row) > match.start() and row[match.start()] != " " for row in rows)
        for match in re.finditer(r"\d+", labels)
    }


def test_the_profile_is_drawn_as_the_papers_draw_it() -> None:
    drawing = histogram(samples.snapshot(), PLAIN)
    lines = drawing.splitlines()
    assert lines[0].startswith(" calls")
    assert lines[0].endswith("handle: 2000 calls")
    assert "1.2µs" in lines[1]
    assert "4.8ms" in lines[1]
    ticks = [match[1] for line in lines if (match := re.match(r" *(\d+)┤", line))]
    assert ticks == ["1000", "100", "10", "1"]
    heights = bar_heights(drawing)
    assert list(heights) == list(range(11, 25))
    assert heights[11] > heights[19] >= heights[12] > heights[23] > heights[24] == 1
    assert heights[15] == 0


def test_equal_ratios_are_equal_heights() -> None:
    bins = {10: 1, 12: 10, 14: 100, 16: 1000}
    snapshot = samples.snapshot(profile=samples.profile(bins), peaks=find_peaks(bins), peak=None)
    heights = bar_heights(histogram(snapshot, PLAIN))
    assert heights[12] - heights[10] == heights[14] - heights[12] == heights[16] - heights[14] > 0


def test_the_chosen_peak_stands_out_without_colour() -> None:
    drawing = histogram(samples.snapshot(), PLAIN)
    assert re.search(r"─1─.*─2─.*═3═", drawing)
    assert "▲▲▲" in drawing
    rows = [line.split() for line in drawing.splitlines() if line.rstrip().endswith("%")]
    assert [row[0] for row in rows] == ["1", "2", "●"]
    assert rows[0][-3:] == ["1875", "93.8", "%"]
    assert rows[2][1:3] == ["3", "23–"]
    assert "and more" in drawing


def test_a_peak_given_by_hand_has_a_row_of_its_own() -> None:
    snapshot = samples.snapshot(peak=PeakRange(None, 17, 19))
    row = next(line for line in histogram(snapshot, PLAIN).splitlines() if "chosen" in line)
    assert row.split()[:3] == ["●", "chosen", "17–19"]
    assert " 94 " in row
    assert "root cause of bins 17–19: handle" in render.paths(snapshot, PLAIN)


@pytest.mark.parametrize(
    ("since", "first", "told"),
    [
        ({15: 1300, 12: 400}, 300, "65 % of the calls lie in no peak"),
        ({15: 90, 12: 1610}, 300, None),  # a few
        ({22: 1700}, 300, None),  # in the peak, which has no end
        ({15: 1300, 12: 400}, 2000, None),  # none came behind the choice
        ({15: 1300, 12: 400}, 0, None),  # nobody knows which
    ],
)
def test_many_calls_in_no_peak_are_told(
    since: dict[int, int], first: int, told: str | None
) -> None:
    """Those that came behind the choice, between the peaks of the first calls."""
    before = {12: 200, 13: 90, 20: 10}
    bins = {b: before.get(b, 0) + since.get(b, 0) for b in before.keys() | since.keys()}
    peaks = (Peak(1, 12, 13, 290), Peak(2, 20, 20, 10))
    for chosen in (PeakRange(2, 20, None), PeakRange(None, 20, None)):
        snapshot = samples.snapshot(
            profile=samples.profile(bins), peaks=peaks, peak=chosen, profile_calls=first
        )
        drawing = histogram(snapshot, PLAIN)
        if told is None:
            assert "in no peak" not in drawing
        else:
            assert f"{told}: the peaks are those of the first {first}" in drawing
            assert "--start-ops 2400'" in drawing


def test_forty_bins_are_readable_at_80_columns() -> None:
    bins = {number: 10 * (50 - number) for number in range(5, 45)}
    snapshot = samples.snapshot(profile=samples.profile(bins), peaks=find_peaks(bins), peak=None)
    drawing = histogram(snapshot, PLAIN)
    assert max(map(len, drawing.splitlines())) <= 80
    heights = bar_heights(drawing)
    assert len(heights) >= 10
    assert all(heights.values())
    assert "to a column" not in drawing


@given(
    st.dictionaries(st.integers(0, 63), st.integers(1, 10**9), min_size=1),
    st.integers(40, 160),
)
def test_every_profile_fits_the_width(bins: dict[int, int], width: int) -> None:
    snapshot = samples.snapshot(
        profile=samples.profile(bins),
        peaks=find_peaks(bins),
        peak=PeakRange(None, min(bins), None),
    )
    drawing = histogram(snapshot, Style(width))
    chart = drawing.split("\n\n")[0]
    assert max(map(len, chart.splitlines())) <= width


def test_more_bins_than_columns_are_put_together() -> None:
    bins = dict.fromkeys(range(40, 330), 5)
    snapshot = samples.snapshot(
        profile=samples.profile(bins, 8), peaks=find_peaks(bins, 8), peak=None
    )
    drawing = histogram(snapshot, PLAIN)
    assert "bin = 8 × log2(cycles), 4 bins to a column" in drawing
    assert max(map(len, drawing.split("\n\n")[0].splitlines())) <= 80


def test_calls_far_to_the_right_are_told_with_what_would_show_a_peak() -> None:
    bins = {11: 5000, 23: 2}
    changes = {"profile": samples.profile(bins), "peaks": find_peaks(bins), "peak": None}
    few = samples.snapshot(**changes, profile_seconds=0.5)
    words = "2 calls lie far to the right: too few for a peak: '--start-time"
    assert f"{words} 10s' would see more" in histogram(few, PLAIN)
    longer = samples.snapshot(**changes, profile_seconds=20.0)
    assert f"{words} 5min' would see more" in histogram(longer, PLAIN)
    chosen = samples.snapshot(**changes | {"peak": PeakRange(1, 11, None)})
    assert "far to the right" not in histogram(chosen, PLAIN)


def test_a_tail_is_told_with_the_peak_that_takes_it() -> None:
    bins = {18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9}
    changes = {"profile": samples.profile(bins), "peaks": find_peaks(bins), "peak": None}
    text = histogram(samples.snapshot(**changes), PLAIN)
    assert "one peak with a tail up to 13ms: 'darc peak >4ms' takes that" in text
    known = sets.of(sets.row("handle", bins))
    text = histogram(samples.snapshot(**changes, parts=parts_of(known)), PLAIN)
    assert "one peak with a tail up to 13ms: 'darc start handle --peak >4ms' takes that" in text
    hill = {18: 900, 19: 400, 20: 200}
    changes = {"profile": samples.profile(hill), "peaks": find_peaks(hill), "peak": None}
    assert "tail" not in histogram(samples.snapshot(**changes), PLAIN)


@pytest.mark.parametrize("view", [histogram, render.tree, status, render.paths, report])
def test_escape_codes_only_with_colour_and_ascii_on_demand(
    view: Callable[[Snapshot, Style], str],
) -> None:
    snapshot = samples.snapshot()
    plain = view(snapshot, PLAIN)
    coloured = view(snapshot, Style(colour=True))
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    ascii_text = view(snapshot, Style(unicode=False))
    assert ascii_text.isascii()
    assert "?" not in ascii_text


def test_the_tree_marks_root_causes_and_hides_most_rejected_callees() -> None:
    text = render.tree(samples.snapshot(), Style(width=100))
    assert text.splitlines()[0].startswith("● 1 handle")
    flush = next(line for line in text.splitlines() if "1.7 flush" in line)
    assert "├─● 1.7 flush  20 of 20  4.2ms  mixture.c:25  (inlined flush_one)" in flush
    assert "● 1.7.1.1 usleep  20 of 20  4.0ms  mixture+0x1300" in text
    assert "loop: calls memcpy 400 times, 93 % of its time" in text
    assert "cause: usleep itself" in text
    assert "× 1.6 parse5" in text
    assert "itself 0 of 20" in flush


def test_a_path_that_ends_on_too_few_votes_says_so() -> None:
    root, _ = samples.tree()
    flush = root.find("1.7")
    flush.decision = Decision(7, 20, 1, is_conclusive=False)
    text = report(samples.snapshot(ftree=root, paths=()), PLAIN)
    assert "1  handle: flush 20, itself 0 of 20" in text
    assert "1.7  flush: not conclusive, 7 of 20" in text
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines) if "├─● 1.7 flush" in line)
    assert lines[number + 1].strip(" │") == "not conclusive, 7 of 20"
    assert "parse0" not in text
    assert "… 3 more callees rejected" in text


def test_a_verbose_tree_hides_nothing() -> None:
    text = render.tree(samples.snapshot(), Style(verbose=True))
    assert all(f"parse{number}" in text for number in range(6))
    assert "more callees" not in text


def test_callees_in_analysis_are_marked() -> None:
    root = Fnode(samples.function("handle"))
    root.state = NodeState.ANALYSIS
    for number in range(39):
        root.add_child(samples.function(f"callee{number}"), samples.site(number + 1))
    text = render.tree(samples.snapshot(ftree=root, paths=()), PLAIN)
    assert text.splitlines()[0] == "○ 1 handle  in analysis"
    assert text.splitlines()[-1] == "└─… 36 more callees"


def test_long_names_are_cut_to_the_width() -> None:
    root = Fnode(samples.function("std::map<" + "int, " * 100 + ">::find"))
    root.add_child(samples.function("a" * 300), samples.site(3))
    snapshot = samples.snapshot(ftree=root, paths=())
    assert max(map(len, render.tree(snapshot, PLAIN).splitlines())) <= 80
    assert "a" * 300 in render.tree(snapshot, Style(verbose=True))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_lines_of_a_tree_fit_the_width(width: int) -> None:
    """With what matters: the name, the votes and the latency of each fnode."""
    root, paths = samples.tree()
    node = paths[0].nodes[-1]
    node.end = None
    for number in range(20):
        name = f"basic_string_view_append_{number}"
        node = node.add_child(samples.function(name), samples.site(20 + number, "inlined_one"))
        samples.decide(node, 20, 900_000)
    node.end = Ending(Cause.FUNCTION, 20, note="1 of its calls could not be timed, maybe theirs")
    lines = render.tree(samples.snapshot(ftree=root), Style(width=width)).splitlines()
    assert max(map(cell_len, lines)) <= width
    below = [line for line in lines if "● 1 handle" not in line and "●" in line]
    assert len(below) == 24
    for line in below:
        assert re.search(r"● \S+ \S{4,}  \d+ of 20  [\d.]+[µm]s", line), line
    assert next(line for line in lines if "1.7 flush" in line)
    assert any("mixture.c:25" in line for line in lines) == (width > 40), "where there is room"
    whole = render.tree(samples.snapshot(ftree=root), Style(0))
    assert "1.7.1.1" + 20 * ".1" + " basic_string_view_append_19" in whole
    assert "maybe theirs" in whole


@pytest.mark.parametrize("unicode", [True, False])
def test_numbers_that_are_shortened_have_whole_places(unicode: bool) -> None:
    root = node = Fnode(samples.function("f"))
    for _ in range(4):
        for _ in range(12):
            below = node.add_child(samples.function("f"), samples.site(3))
        node = below
        node.state = NodeState.ANALYSIS
    text = render.tree(samples.snapshot(ftree=root), Style(40, unicode=unicode))
    assert max(map(cell_len, text.splitlines())) <= 40
    mark = "…" if unicode else "..."
    assert "1.12.1 " in text
    assert f" {mark}12.12 " in text
    assert f"{mark}." not in text


def test_a_deep_tree_is_drawn() -> None:
    root = node = Fnode(samples.function("f"))
    deep = 2 * sys.getrecursionlimit()
    for _ in range(deep):
        node = node.add_child(samples.function("f"), samples.site(3))
    assert len(render.tree(samples.snapshot(ftree=root), PLAIN).splitlines()) == deep + 1


def test_functions_that_call_each_other_are_a_line_of_the_tree() -> None:
    """Each of them stands there once, then how many more there are, and where that leads."""
    root = node = Fnode(samples.function("f"))
    for number in range(40):
        name = "walk" if number % 2 else "visit"
        node = node.add_child(samples.function(name), samples.site(3))
        node.root_cause = True
        node.add_child(samples.function("other"), samples.site(4)).state = NodeState.REJECTED
    end = node.add_child(samples.function("usleep"), samples.site(5))
    end.root_cause = True
    snapshot = samples.snapshot(ftree=root)
    lines = render.tree(snapshot, PLAIN).splitlines()
    assert len(lines) < 12, lines
    assert sum("… ×37: visit, walk, one in another" in line for line in lines) == 1, lines
    assert "usleep" in lines[-1], lines
    assert len(render.tree(snapshot, Style(verbose=True)).splitlines()) == 82


@pytest.mark.parametrize(("known", "is_told"), [(300, True), (580, False), (0, False)])
def test_what_is_not_known_of_who_had_the_processor_is_told(known: int, *, is_told: bool) -> None:
    """Nobody is known where that could not be asked for: which is told once for all."""
    ran = (
        (
            Holder(
                role=Role.RAN,
                thread="hog",
                path=(),
                cycles=known,
                ops=1,
                threads=(7,),
                is_outside=True,
            ),
        )
        if known
        else ()
    )
    ready = Holder(role=Role.HANDED_OVER, thread="", path=(), cycles=600, ops=1, behind=ran)
    waited = WaitedFor(
        kind=ObjectKind.WAKE_UP,
        name="",
        path=("fdatasync",),
        cycles=900,
        ops=1,
        waits=1,
        holders=(ready,),
    )
    snapshot = samples.snapshot()
    assert snapshot.ftree is not None
    kept = dataclasses.replace(ops.of_samples(snapshot.ftree), sees_waits=True)
    snapshot = dataclasses.replace(snapshot, ops=kept, waits=Waits(1, 1000, (waited,)))
    lines = render.waits(snapshot, Style(0)).splitlines()
    assert any("30 %  who ran meanwhile was not seen" in line for line in lines) == is_told, lines


@pytest.mark.parametrize(
    ("path", "why", "is_told"),
    [((), "it is short", True), (("poll",), "it is short", False), ((), None, False)],
)
def test_why_it_is_not_told_where_others_slept(
    path: tuple[str, ...], why: str | None, *, is_told: bool
) -> None:
    """Once, where somebody slept nobody knows where."""
    slept = Holder(role=Role.SLEPT, thread="", path=path, cycles=800, ops=1)
    holder = Holder(role=Role.HELD, thread="keeper", path=(), cycles=850, ops=1, behind=(slept,))
    waited = WaitedFor(
        kind=ObjectKind.LOCK,
        name="store",
        path=("handle",),
        cycles=900,
        ops=1,
        waits=1,
        holders=(holder,),
    )
    snapshot = samples.snapshot()
    assert snapshot.ftree is not None
    kept = dataclasses.replace(ops.of_samples(snapshot.ftree), sees_waits=True, why_no_places=why)
    snapshot = dataclasses.replace(snapshot, ops=kept, waits=Waits(1, 1000, (waited,)))
    lines = render.waits(snapshot, Style(0)).splitlines()
    line = "in which calls they slept is not told: it is short"
    assert lines.count(line) == is_told, lines


def test_lines_of_waits_fit_the_width() -> None:
    waited = WaitedFor(
        kind=ObjectKind.LOCK,
        name="log_lock",
        path=tuple(f"function_{n}" for n in range(20)),
        cycles=9,
        ops=1,
        waits=1,
        holders=(),
    )
    snapshot = samples.snapshot()
    assert snapshot.ftree is not None
    kept = dataclasses.replace(ops.of_samples(snapshot.ftree), sees_waits=True)
    snapshot = dataclasses.replace(snapshot, ops=kept, waits=Waits(1, 10, (waited,)))
    lines = render.waits(snapshot, Style(100)).splitlines()
    assert all(cell_len(line) <= 100 for line in lines), lines
    assert any(line.endswith("…") for line in lines), lines
    whole = render.waits(snapshot, Style(100, verbose=True))
    assert "function_19" in whole
    assert "function_19" in render.waits(snapshot, Style(0))


def test_a_width_without_limit_is_80_columns() -> None:
    """But for the tree, which is as wide as its names."""
    snapshot = samples.snapshot(ftree=None)
    assert report(snapshot, Style(0)) == report(snapshot, PLAIN)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (None, "loop: calls wait, 99 % of its time"),
        (1.0, "cause: its one call of wait, 99 % of its time"),
        (1.3, "loop: calls wait 1.3 times on average, 99 % of its time"),
        (2.0, "loop: calls wait 2 times, 99 % of its time"),
        (122.4, "loop: calls wait 122 times, 99 % of its time"),
    ],
)
def test_how_often_a_loop_calls(calls: float | None, told: str) -> None:
    assert (
        ending_text(
            "f",
            Ending(
                cause=Cause.LOOP, maxcount=20, loop_callee="wait", loop_calls=calls, loop_share=0.99
            ),
        )
        == told
    )


def test_path_lines() -> None:
    assert render.paths(samples.snapshot(), PLAIN).splitlines() == [
        "darc: root cause of peak 3: handle → (inlined flush_one) → flush → write_out → usleep",
        "  cause: usleep itself",
        "darc: root cause of peak 3: handle → (inlined flush_one) → flush → fill",
        "  loop: calls memcpy 400 times, 93 % of its time",
    ]
    root = Fnode(samples.function("handle"))
    path = RootCausePath((root,), Ending(Cause.FUNCTION, 20))
    line = render.paths(samples.snapshot(paths=(path,)), PLAIN).splitlines()[0]
    assert line == "darc: root cause of peak 3: handle"
    searching = samples.snapshot(status=Status.SEARCHING, paths=(path,))
    assert render.paths(searching, PLAIN).startswith("darc: root cause of peak 3, so far: handle")


def test_paths_of_the_same_functions_are_told_apart() -> None:
    root = Fnode(samples.function("handle"))
    nodes = [root.add_child(samples.function("flush"), samples.site(line)) for line in (25, 31)]
    ending = Ending(Cause.FUNCTION, 20)
    paths = tuple(RootCausePath((root, node), ending) for node in nodes)
    lines = render.paths(samples.snapshot(paths=paths), PLAIN).splitlines()
    assert lines[0] == lines[3] == "darc: root cause of peak 3: handle → flush"
    assert lines[1] == "  by the call at mixture.c:25"
    assert lines[4] == "  by the call at mixture.c:31"


def test_no_more_paths_are_told_than_can_be_read() -> None:
    root, ending = Fnode(samples.function("sort")), Ending(Cause.FUNCTION, 20)
    nodes = [root.add_child(samples.function("merge"), samples.site(line)) for line in range(30)]
    paths = tuple(RootCausePath((root, node), ending) for node in nodes)
    snapshot = samples.snapshot(paths=paths)
    told = render.paths(snapshot, PLAIN)
    assert told.count("root cause of") == render.SHOWN_PATHS
    assert "22 more paths: 'darc report' shows all" in told
    assert report(snapshot, PLAIN).count("root cause of") == 30


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.UNTOLD])
def test_every_cause_has_a_text(cause: Cause) -> None:
    text = ending_text("write_out", Ending(cause, 3, note="short run"))
    assert "write_out" in text
    assert text.endswith("(short run)")


def test_targets_that_could_not_be_told_apart_are_told_once() -> None:
    ending = Ending(Cause.UNTOLD, 3, note="in one of more targets of the call at f+0x2")
    text = ending_text("other targets of f+0x2", ending)
    assert text == "cause: in one of more targets of the call at f+0x2"


def test_where_targets_are_not_told_apart_it_is_told_what_tells_them_apart() -> None:
    """As of virtual calls, many of which have dozens of targets each."""
    root = Fnode(samples.function("visit"))
    others = root.add_child(samples.function("other targets of visit+0x2"), samples.site(3))
    ending = Ending(Cause.UNTOLD, 3, note="in one of more targets of the call at visit+0x2")
    path = RootCausePath((root, others), ending)
    last = render.paths(samples.snapshot(paths=(path, path)), PLAIN).splitlines()[-1]
    assert last.startswith("  'darc profile PATTERN', of what these targets are called, times each")
    assert "darc profile" not in render.paths(samples.snapshot(), PLAIN)
    handlers = dataclasses.replace(samples.site(3), kind=CallKind.INTERRUPT)
    interrupt = root.add_child(samples.function("other interrupts"), handlers)
    ending = Ending(Cause.UNTOLD, 3, note="in one of more targets of the call, an interrupt's")
    path = RootCausePath((root, interrupt), ending)
    assert "darc profile" not in render.paths(samples.snapshot(paths=(path,)), PLAIN)


def test_a_path_that_was_cut_off_does_not_blame_its_last_function() -> None:
    text = ending_text("write_out", Ending(Cause.FUNCTION, 3, cut=Cut.DEPTH))
    assert text == "maximum depth reached at write_out: a larger --max-depth goes on from there"


def test_status_says_what_is_missing() -> None:
    searching = status(
        samples.snapshot(status=Status.SEARCHING, paths=(), collected=7, level=2), PLAIN
    )
    assert "handle: in progress" in searching
    assert "2000 calls seen, 31 in peak 3" in searching
    assert "level 2: 7 of 20 calls inside the peak" in searching
    rare, last = (Parameters(peak=peak, start_ops=500) for peak in (">4ms", "last"))
    waits = samples.snapshot(
        status=Status.PROFILING,
        profile=samples.profile({10: 2000}),
        peak=None,
        paths=(),
        parameters=rare,
    )
    assert "2000 calls seen, none of them in the peak '>4ms'" in status(waits, PLAIN)
    ended = samples.snapshot(status=Status.ENDED, peak=None, paths=(), parameters=last)
    late = status(ended, PLAIN)
    assert "2000 calls seen, 31 of them in the peak 'last', which was not there yet when" in late
    assert "looked for: '--start-ops 1000', or a longer run" in late
    choose = status(samples.snapshot(status=Status.NO_PEAK, peak=None, paths=()), PLAIN)
    assert "type 'darc peak N' (1 to 3) or 'darc peak last'" in choose
    assert "12 call sites timed; 60 calls inside the peak; 4 stops, 41ms stopped" in choose
    pending = status(
        samples.snapshot(status=Status.PENDING, profile=None, peaks=(), peak=None, paths=()),
        PLAIN,
    )
    assert "0 calls seen of 100" in pending


def test_a_program_that_ends_without_a_call_says_what_is_known_of_that() -> None:
    notes = ("7 calls were not timed: they came from code that was generated",)
    seen = samples.snapshot(status=Status.ENDED, peak=None, paths=(), notes=notes)
    none = dataclasses.replace(seen, profile=samples.profile({}))
    executed = dataclasses.replace(
        none, notes=(*notes, EndedBy.EXECUTED.value), ended_by=EndedBy.EXECUTED
    )
    assert str(early_end(executed, PLAIN)).splitlines() == [
        "darc: handle: the program executed another file: 0 calls seen of 100",
        f"  {notes[0]}",
    ]
    assert str(early_end(seen, PLAIN)).count("\n") == 0
    assert str(early_end(none, PLAIN)).splitlines() == [
        "darc: handle: program ended: 0 calls seen of 100",
        f"  {notes[0]}",
    ]


def test_a_program_that_ends_early_says_what_makes_that_doubtful() -> None:
    notes = ("7 calls were not timed: they came from code that was generated", "jumps were gone")
    ended = samples.snapshot(
        status=Status.ENDED, peak=None, paths=(), notes=notes, warnings=notes[1:]
    )
    assert str(early_end(ended, PLAIN)).splitlines()[1:] == [f"  {notes[1]}"]


def test_a_program_that_ends_within_the_search_says_what_is_known_by_then() -> None:
    root, _ = samples.tree()
    ended = samples.snapshot(status=Status.ENDED, paths=(), ftree=root)
    assert str(early_end(ended, PLAIN)).splitlines()[:2] == [
        "darc: handle: program ended: 2000 calls seen, 31 in peak 3",
        "  so far it is in handle → flush → write_out → usleep: 'darc tree' shows the votes",
    ]
    none = dataclasses.replace(ended, ftree=Fnode(samples.function("handle")))
    assert "before the first decision: 'darc histogram'" in early_end(none, PLAIN)
    assert "no call was kept whole by its end: program ended" in render.waits(ended, PLAIN)


def test_status_says_what_was_not_seen() -> None:
    never = samples.snapshot(status=Status.INCONCLUSIVE, profile=None, peak=None, paths=())
    assert "no call of handle was seen to its end" in status(never, PLAIN)
    more = samples.snapshot(
        status=Status.NO_PEAK, peak=None, paths=(), parameters=Parameters(start_ops=200)
    )
    assert "2000 calls seen\n" in status(more, PLAIN)


def test_what_it_took_to_make_the_probes_is_told() -> None:
    """In which the program stands still as well, in a kernel for most of the time that it does."""
    program = dataclasses.replace(samples.snapshot().program, setup_seconds=2.1)
    told = "4 stops, 41ms stopped; before, 2.1s for its probes\n"
    assert told in status(samples.snapshot(program=program), PLAIN)
    assert told in report(samples.snapshot(program=program), PLAIN)


@pytest.mark.parametrize(
    ("longest", "told"), [(3.7, ", the longest 3.7s"), (2.2, ", the longest 2.2s"), (2.0, "")]
)
def test_a_stop_that_is_far_longer_than_the_mean_is_told(longest: float, told: str) -> None:
    known = samples.snapshot().program
    program = dataclasses.replace(
        known, stops=24, stopped_seconds=17.0, setup_seconds=2.1, longest_stop=longest
    )
    assert cost_text(program) == (
        f"the program stood still for 17s in 24 stops{told}; before, for 2.1s, for its probes"
    )
    shown = samples.snapshot(program=program)
    assert f"24 stops, 17s stopped{told}; before, 2.1s for its probes\n" in status(shown, PLAIN)
    assert to_json(shown)["program"]["longest_stop"] == longest
    once = dataclasses.replace(program, stops=1)
    assert "longest" not in cost_text(once)


def test_no_time_is_told_where_nothing_stood_still() -> None:
    known = samples.snapshot().program
    program = dataclasses.replace(known, stops=0, stopped_seconds=0.0, setup_seconds=0.0)
    text = status(samples.snapshot(program=program), PLAIN)
    assert "60 calls inside the peak; 0 stops\n" in text


def test_every_view_works_before_anything_is_known() -> None:
    snapshot = samples.snapshot(
        status=Status.PENDING, profile=None, peaks=(), peak=None, ftree=None, paths=()
    )
    assert histogram(snapshot, PLAIN) == "no call of handle was seen yet"
    assert render.tree(snapshot, PLAIN) == "no function tree yet: pending"
    assert render.paths(snapshot, PLAIN) == ""
    assert "No root cause: pending." in report(snapshot, PLAIN)


def test_the_live_line() -> None:
    snapshot = samples.snapshot(status=Status.SEARCHING, collected=7, level=2)
    assert live(snapshot, Style(200)) == (
        "darc: handle: in progress · 2000 calls · peak 3 7/20 · level 2 · 12 probes · 1min15s"
    )


def test_the_live_line_of_what_is_resumed() -> None:
    """Its peak is known before its profile: no call is searched yet."""
    shown = samples.snapshot(status=Status.PROFILING, collected=7, needed=MOST_CALLS)
    told = "darc: handle: profiling · 2000 calls · 12 probes · 1min15s"
    assert live(shown, Style(200)) == told


def test_the_live_line_says_that_it_waits_for_a_peak() -> None:
    """Which may never come: a hundred calls would be enough."""
    wanted = Parameters(peak=">2s")
    waits = samples.snapshot(status=Status.PROFILING, peak=None, collected=100, parameters=wanted)
    assert "2000 calls · none in peak >2s yet · " in live(waits, Style(200))
    asked = dataclasses.replace(waits, parameters=Parameters(peak=">2s", start_ops=10_000))
    assert "yet" not in live(asked, Style(200))


def test_the_live_line_says_that_calls_come_from_generated_code() -> None:
    none = samples.snapshot(
        status=Status.PROFILING, profile=samples.profile({}), peak=None, generated=20_000
    )
    told = " · 0 calls · 20000 by generated code, which are not timed · "
    assert told in live(none, Style(200))


def test_what_catches_calls_says_so_and_not_that_it_searches() -> None:
    parts = parts_of(Catching(seconds=0.004, caught=2, missed=0))
    late = samples.snapshot(status=Status.SEARCHING, profile=None, peak=None, paths=(), parts=parts)
    told = "darc: handle: catches calls above 4.0ms"
    assert live(late, Style(200)) == f"{told} · 2 caught · 12 probes · 1min15s"
    text = status(late, PLAIN)
    assert text.startswith(f"{told}\n  2 caught\n")
    assert "calls seen" not in text
    pending = status(dataclasses.replace(late, status=Status.PENDING), PLAIN)
    assert pending.startswith("darc: handle: pending: catches calls above 4.0ms\n")
    missed = dataclasses.replace(late, status=Status.STOPPED, parts=parts_of(Catching(0.004, 0, 3)))
    text = status(missed, PLAIN)
    assert f"{Status.STOPPED.value}\n  0 caught, 3 missed, ended before the stop\n" in text
    many = dataclasses.replace(missed, parts=parts_of(Catching(0.004, 0, 12)))
    assert "12 missed, ended before the stop: '--above' a shorter time" in status(many, PLAIN)
    assert to_json(missed)["catch"] == {"above": 0.004, "caught": 0, "missed": 3}


def test_the_live_line_where_memory_cannot_be_read() -> None:
    searching = samples.snapshot(status=Status.SEARCHING, collected=None, level=2)
    assert live(searching, Style(200)) == (
        "darc: handle: in progress · waits for 20 calls in peak 3 · level 2 · 12 probes · 1min15s"
    )
    profiling = samples.snapshot(
        status=Status.PENDING, profile=None, peak=None, collected=None, needed=100
    )
    assert "waits for 100 calls" in live(profiling, Style(200))
    stepped = live(searching, Style(200), bare=Bare.STEPS)
    assert "in progress, without probes while you step · " in stepped
    assert "probes · " not in stepped


@given(st.text(max_size=200), st.integers(1, 200), st.booleans())
def test_the_live_line_is_one_line_that_fits(name: str, width: int, unicode: bool) -> None:
    snapshot = samples.snapshot(function=" ".join(name.split()))
    line = live(snapshot, Style(width, unicode=unicode))
    assert cell_len(line) <= width
    assert "\n" not in line


def test_the_report_has_everything() -> None:
    text = report(samples.snapshot(), PLAIN)
    for part in (
        "darc report: handle: root cause found",
        "log2(cycles)",
        "Root cause paths",
        "1.7  handle calls flush at mixture.c:25 (inlined flush_one), maxcount 20 of 20",
        "1.7.1.1  write_out calls usleep at mixture+0x1300, maxcount 20 of 20",
        "Function tree",
        "call sites: 1 timed, 1 fell back, 1 not possible",
        "flush → an indirect call at 0x131f: fell back: short indirect call",
        "flush → setjmp at 0x1321: not possible: returns twice",
        "note: the TSC is not invariant here",
    ):
        assert part in text


def test_places_in_a_kernel_are_as_the_kernel_writes_them() -> None:
    caller = Function(
        name="msleep",
        symbol="msleep",
        module="vmlinux",
        address=0xFFFFFFFFA5145430,
        offset=0xFFFFFFFF81145430,
    )
    for inside, shown in ((0x16, "msleep+0x16"), (-0x40, "0xffffffffa51453f0")):
        at = caller.address + inside
        site = CallSite(at, CallKind.DIRECT, "vmlinux", at - (0x24 << 24))
        assert place(site, caller) == shown


def test_causes_of_the_smaller_part_do_not_read_as_if_the_cause_were_found() -> None:
    """Short calls outvote the few long ones, which have most of the time."""
    whole = ops.snapshot()
    assert render.paths(whole, PLAIN).count("darc: root cause of peak 3") == 2
    little = dataclasses.replace(whole, paths=(ops.path_of(whole, "fill"),))
    lines = render.paths(little, PLAIN).splitlines()
    assert lines[0] == ("darc: most of peak 3's time has another cause: 10 % has those below")
    assert lines[1] == "  most time: 60 % in handle → flush → write_out → usleep"
    assert lines[2] == "darc: smaller cause of peak 3: handle → (inlined flush_one) → flush → fill"
    assert "root cause found" not in status(little, PLAIN)
    assert status(little, PLAIN).startswith("darc: handle: only a smaller cause found\n")


@pytest.mark.parametrize(("times", "is_together"), [(1, False), (2, True)])
def test_causes_that_explain_little_each_are_told_in_one_line(
    times: int, *, is_together: bool
) -> None:
    """Each by its ends, below the headline; what explains more has its lines."""
    whole = ops.snapshot()
    assert whole.ops is not None
    longer = tuple(
        dataclasses.replace(op, latency=op.latency * times, end=op.start + op.latency * times)
        for op in whole.ops.ops
    )
    fill = ops.path_of(whole, "fill")
    flush = RootCausePath(fill.nodes[:2], Ending(Cause.FUNCTION, 20))
    paths = (fill, flush)
    kept = dataclasses.replace(whole.ops, ops=longer)
    lines = render.paths(dataclasses.replace(whole, ops=kept, paths=paths), PLAIN).splitlines()
    assert lines[0].startswith("darc: most of peak 3's time has another cause")
    together = "darc: smaller causes of peak 3, less than 10 % each: flush → fill 5 %, flush 0 %"
    assert (together in lines) == is_together
    assert sum("smaller cause of peak 3: " in line for line in lines) == (0 if is_together else 2)


def test_what_a_function_takes_with_all_that_held_it_up_is_told_from_its_own_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else one path would stand there with two numbers, and nothing to tell why."""
    whole = ops.snapshot()
    path = ops.path_of(whole, "fill")
    path = dataclasses.replace(path, ending=dataclasses.replace(path.ending, cause=Cause.FUNCTION))
    monkeypatch.setattr(render, "most_time", lambda _snapshot: (tuple(path.nodes), 0.74))
    lines = render.paths(dataclasses.replace(whole, paths=(path,)), PLAIN).splitlines()
    assert lines[1] == (
        "  most time: 74 % in handle → flush → fill, by all calls of it and with what held these "
        "up: below is what its own code took"
    )
    assert lines[2] == "darc: smaller cause of peak 3: handle → (inlined flush_one) → flush → fill"


def test_who_held_what_most_of_the_time_was_waited_for_is_told_first() -> None:
    whole = ops.snapshot()
    assert whole.ops is not None
    sample = whole.ops.sample(OpClass.IN_PEAK)
    cycles = sum(op.latency for op in sample)
    holder = Holder(
        role=Role.HELD, thread="janitor", path=("sweep",), cycles=cycles // 2, ops=5, threads=(7,)
    )
    lock = WaitedFor(
        kind=ObjectKind.LOCK,
        name="st.m",
        path=("get",),
        cycles=cycles * 3 // 4,
        ops=5,
        waits=5,
        holders=(holder,),
    )
    some = [
        dataclasses.replace(op, latency=op.latency * 9, end=op.start + op.latency * 9)
        if op.number < 3
        else op
        for op in whole.ops.ops
    ]
    kept = dataclasses.replace(whole.ops, ops=tuple(some), sees_waits=True)
    little = dataclasses.replace(
        whole,
        paths=(ops.path_of(whole, "fill"),),
        ops=kept,
        peak=PeakRange(3, 20, None),
        waits=Waits(10, cycles, (lock,)),
    )
    lines = render.paths(little, PLAIN).splitlines()
    assert lines[1:4] == [
        f"  most time: {BEHIND}",
        "  'darc start handle --peak >40ms' looks into the longest calls alone",
        "  'darc waits' shows who kept them waiting",
    ]


@pytest.mark.parametrize(("has_paths", "share"), [(True, 75), (False, 75), (True, 20), (False, 20)])
def test_who_was_behind_is_told_with_the_paths(*, has_paths: bool, share: int) -> None:
    """Also where votes were too few for one: what is known of somebody is not kept back."""
    whole = ops.snapshot()
    assert whole.ops is not None
    cycles = 1000
    holder = Holder(
        role=Role.HELD, thread="janitor", path=("sweep",), cycles=cycles // 2, ops=5, threads=(7,)
    )
    lock = WaitedFor(
        kind=ObjectKind.LOCK,
        name="st.m",
        path=("usleep", "write_out", "flush", "handle"),
        cycles=cycles * share // 100,
        ops=5,
        waits=5,
        holders=(holder,),
    )
    shown = dataclasses.replace(
        whole,
        status=Status.FOUND if has_paths else Status.INCONCLUSIVE,
        paths=whole.paths if has_paths else (),
        ops=dataclasses.replace(whole.ops, sees_waits=True),
        waits=Waits(10, cycles, (lock,)),
    )
    lines = render.paths(shown, PLAIN).splitlines()
    said = (
        'waited for the lock st.m, 75 %, 67 % of that held by thread 7 "janitor" in sweep: 5 calls'
    )
    told = [line for line in lines if "janitor" in line]
    if share < 25:
        assert told == []
    elif has_paths:
        assert told == [f"  {said} ('darc waits')"]
    else:
        (line,) = told
        assert line.startswith("darc: no path of ")
        assert line.endswith(f"is sure, but its calls {said} ('darc waits')")


@pytest.mark.parametrize("share", [80, 20])
def test_that_woken_threads_had_no_processor_is_told_with_the_paths(share: int) -> None:
    """A call seems to be blocked for longer by it."""
    whole = ops.snapshot()
    assert whole.ops is not None
    late = Holder(role=Role.HANDED_OVER, thread="", path=(), cycles=10 * share, ops=5, threads=())
    sleep = WaitedFor(
        kind=ObjectKind.WAKE_UP,
        name="",
        path=("read",),
        cycles=10 * share,
        ops=5,
        waits=5,
        holders=(late,),
    )
    kept = dataclasses.replace(whole.ops, sees_waits=True)
    shown = dataclasses.replace(whole, ops=kept, waits=Waits(10, 1000, (sleep,)))
    told = (
        "  others had the processor when these calls' threads were woken, which waited for 80 % of "
        "the time"
    )
    assert (told in render.paths(shown, PLAIN).splitlines()) == (share == 80)


def test_a_path_that_few_votes_led_to_is_a_possible_cause() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    path = ops.path_of(snapshot, "usleep")
    for above, node in itertools.pairwise(path.nodes):
        above.decision, node.maxcount = Decision(20, 20, 0), 6
    kept = dataclasses.replace(snapshot.ops, ops=())
    little = dataclasses.replace(snapshot, paths=(path,), ops=kept)
    lines = render.paths(little, PLAIN).splitlines()
    led = f"{100 * 0.3 ** (len(path.nodes) - 1):.0f} %"
    assert lines[0] == (
        f"darc: most of peak 3's time may have other causes: {led} of its calls led to those below"
    )
    assert lines[2].startswith("darc: possible cause of peak 3: handle → ")
    assert "only a possible cause found" in status(little, PLAIN)
