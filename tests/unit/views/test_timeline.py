"""Kept ops as the user sees them."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from darc.model.contrast import contrast
from darc.model.errors import UsageError
from darc.model.ops import KeptOps, Off, OffReason, OpClass, Span
from darc.model.snapshot import Snapshot
from darc.model.waits import Waits
from darc.views import contrast as contrast_view
from darc.views.jsonvalues import json_text, ops_to_json
from darc.views.render import paths, wait_lines
from darc.views.style import Style
from darc.views.timeline import op_list, timeline
from tests.unit import ops, samples
from tests.unit.ops import MS
from tests.unit.watchedops import NODES, sides, watched

PLAIN = Style(width=100)


def test_the_list() -> None:
    lines = op_list(ops.snapshot(), PLAIN).splitlines()
    assert lines[0].split() == ["op", "latency", "thread", "when", "peak"]
    assert lines[2].split() == ["2", "5.0ms", "4711", "+10ms", "3"]
    assert lines[11].endswith("● the slowest")
    assert lines[12].split()[-1] == "1"
    assert lines[-2:] == [
        "11 of 31 ops of peak 3 are kept; the slowest is in no average",
        "11 of 1805 ops of peak 1 are kept; the slowest is in no average",
    ]


def test_losses_are_told() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    first, *others = snapshot.ops.ops
    some = (dataclasses.replace(first, lost=7, thread=0), *others)
    kept = dataclasses.replace(snapshot.ops, ops=some, not_kept=12)
    shown = dataclasses.replace(snapshot, ops=kept)
    lines = op_list(shown, PLAIN).splitlines()
    assert lines[1].split()[2] == "?"
    assert lines[1].endswith("7 calls lost")
    assert lines[-1].startswith("12 more could not be watched")
    assert "7 calls were lost" in timeline(shown, 1, PLAIN)
    assert "thread" not in timeline(shown, 1, PLAIN).splitlines()[0]


def test_calls_stand_in_their_time() -> None:
    lines = timeline(ops.snapshot(), 2, PLAIN).splitlines()
    assert lines[0] == "darc: op 2 of handle: 5.0ms in peak 3, thread 4711, at +10ms"
    order = [line.strip().split()[0] for line in lines[2:10]]
    assert order == [
        "handle",
        "(between",
        "flush",
        "write_out",
        "usleep",
        "fill",
        "(between",
        "too",
    ]
    handle, gap, flush, write, usleep, fill, rest = lines[2:9]
    bar = handle.index("█")
    assert handle.count("█") == 100 - bar
    assert handle.split()[1:5] == ["100.0", "%", "5.0ms", "1.0ms"]
    assert flush.split()[1:5] == ["80.0", "%", "4.0ms", "0ns"]
    assert gap.index("█") == bar  # before flush, and behind it
    for before, after in ((gap, flush), (flush, rest), (write, fill)):
        assert 0 <= after.index("█") - before.rindex("█") <= 1
    assert len(flush) - len(flush.lstrip()) + 2 == len(write) - len(write.lstrip())
    assert usleep.count("█") == write.count("█")
    assert lines[9:] == [
        "too short for a line, below 385ns each:",
        "  400 calls of memcpy, 500µs in all",
        "  1 call of parse0, 270ns in all",
        "whether the thread ran or waited was not watched",
    ]


def test_a_call_between_that_was_not_timed_has_nothing_for_itself() -> None:
    """On a path that is decided its calls are timed no more: what is below them is no time of their
    caller's own."""
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    first, op, *_ = snapshot.ops.ops
    (flush,) = {span.node for span in op.spans if span.node.function.name == "flush"}
    untimed = dataclasses.replace(
        op,
        spans=tuple(span for span in op.spans if span.node is not flush),
        sums=tuple(total for total in op.sums if total.node is not flush),
    )
    kept = dataclasses.replace(snapshot.ops, ops=(first, untimed))
    lines = timeline(dataclasses.replace(snapshot, ops=kept), 2, PLAIN).splitlines()
    rows = {line.split()[0]: line.split()[1:5] for line in lines[2:]}
    assert "flush" not in rows
    assert rows["handle"] == ["100.0", "%", "5.0ms", "1.0ms"]
    assert rows["write_out"][2] == "3.0ms"


def test_why_nobody_watched_the_thread_is_told_where_it_is_known() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    kept = dataclasses.replace(snapshot.ops, why_no_waits="of such a kernel nothing tells")
    text = timeline(dataclasses.replace(snapshot, ops=kept), 1, PLAIN)
    told = "whether the thread ran or waited was not watched: of such a kernel nothing tells"
    assert text.splitlines()[-1] == told
    waits = Waits(ops=10, cycles=0, objects=())
    known = dataclasses.replace(snapshot, ops=kept, waits=waits)
    (line,) = wait_lines(known, PLAIN)
    assert line.plain == "what they waited for was not watched: of such a kernel nothing tells"


@pytest.mark.parametrize("unicode", [True, False])
def test_the_list_fits_a_narrow_terminal(unicode: bool) -> None:
    table = op_list(ops.snapshot(), Style(40, unicode=unicode)).split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 40, table
    assert "slowest" in op_list(ops.snapshot(), PLAIN)


def test_what_the_thread_did_shows_in_the_bars() -> None:
    snapshot = watched((MS, 2 * MS, OffReason.BLOCKED), (3 * MS, 4 * MS, OffReason.READY))
    text = timeline(snapshot, 1, PLAIN)
    handle = text.splitlines()[2]
    assert "█░" in handle
    assert "░█" in handle
    assert "█▒" in handle
    assert text.splitlines()[-1] == (
        "off the processor: ░ blocked 1.0ms (20.0 %), ▒ ready 1.0ms (20.0 %)"
    )
    never = watched()
    assert "on the processor all the time" in timeline(never, 1, PLAIN)
    ascii_only = timeline(snapshot, 1, dataclasses.replace(PLAIN, unicode=False))
    assert ascii_only.isascii()
    assert "#." in ascii_only


def test_the_longest_calls_are_drawn_unless_all_are_asked_for() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    assert snapshot.ftree is not None
    flush, write = snapshot.ftree.find("1.7"), snapshot.ftree.find("1.7.1")
    spans = [Span(flush, 0, 1_000_000)]
    spans += [Span(write, 1000 * n, 1000 * n + 100 + n) for n in range(150)]
    op = ops.made_op(1, OpClass.IN_PEAK, 1_000_100, spans=spans)
    shown = dataclasses.replace(snapshot, ops=KeptOps(samples.HZ, (op,)))
    text = timeline(shown, 1, PLAIN)
    assert text.count("write_out") == 39
    assert "… 111 shorter calls; 'set darc verbose on' shows them" in text
    assert timeline(shown, 1, Style(verbose=True)).count("write_out") == 150


def test_there_is_no_such_op() -> None:
    with pytest.raises(UsageError, match="no op 99: 'darc ops' lists 1 to 22"):
        timeline(ops.snapshot(), 99, PLAIN)


def test_paths_say_what_they_explain() -> None:
    lines = paths(ops.snapshot(), PLAIN).splitlines()
    assert lines[2] == "  60 % of peak 3's time, over 10 calls"
    assert lines[5] == (
        "  10 % of peak 3's time, over 10 calls; without it these would lie in bin 23 (peak 3)"
    )
    assert "time, over" not in paths(samples.snapshot(), PLAIN)


def test_the_comparison() -> None:
    made = contrast(*sides(watched((0, MS, OffReason.READY))))
    lines = contrast_view.table(made, PLAIN).splitlines()
    assert lines[0] == "darc: 5.0ms in an op of peak 3 (10 kept), 616ns in one of peak 1 (10)"
    assert lines[1].split() == ["difference", "peak", "3", "calls", "peak", "1", "calls"]
    assert lines[2].split() == ["+4.0ms", "4.0ms", "×1", "–", "1.7", "flush", "←", "handle"]
    assert any(line.split()[2:5] == ["×400", "–", "1.7.2.1"] for line in lines)
    assert lines[-2].split() == [
        "-77ns",
        "270ns",
        "×1",
        "347ns",
        "×2",
        "1.1",
        "parse0",
        "←",
        "handle",
    ]
    assert "off the processor: ready" in lines[-1]


HOSTILE = [dataclasses.replace(NODES[0].function, name=text) for text in ("a\x1b[2J", "é" * 300)]


@settings(max_examples=40)
@given(
    ops.kept_ops(NODES),
    st.integers(20, 200),
    st.booleans(),
    st.booleans(),
)
def test_any_op_can_be_drawn(kept: KeptOps, width: int, verbose: bool, unicode: bool) -> None:
    """In its width, whatever a damaged program or file has made of it."""
    snapshot: Snapshot = samples.snapshot(ops=kept)
    if not kept.ops:
        return
    style = Style(width=width, verbose=verbose, unicode=unicode)
    drawn = [timeline(snapshot, op.number, style) for op in kept.ops]
    for text in (op_list(snapshot, style), *drawn):
        assert all(line.isprintable() for line in text.split("\n"))
        assert unicode or text.isascii()
    for text in drawn:
        for line in text.splitlines()[1:]:
            if "█" in line or "▏" in line:
                assert cell_len(line) <= max(width, 60)
    json.loads(json_text(ops_to_json(kept)))


def test_hostile_names_are_fit_to_be_shown() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    for number, function in enumerate(HOSTILE):
        snapshot.ftree.find(("1.7", "1.7.1")[number]).function = function
    shown = timeline(snapshot, 1, PLAIN)
    assert "\x1b" not in shown
    assert all(cell_len(line) <= 100 for line in shown.splitlines())
    assert Off(1, 2, OffReason.READY).within(0, 9) == 1
