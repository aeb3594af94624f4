"""Kept ops as an agent would have kept them, and as hypothesis likes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from darc.model.ftree import CallKind, CallSite, Fnode, RootCausePath
from darc.model.ops import KeptOps, Off, OffReason, Op, OpClass, Span, Sum
from darc.model.snapshot import Snapshot
from tests.unit import samples

MS = samples.HZ // 1000


def call(op_start: int, node: Fnode, start: int, cycles: int) -> Span:
    return Span(node, op_start + start, op_start + start + cycles)


def made_op(
    number: int,
    kept_as: OpClass,
    latency: int,
    *,
    spans: Sequence[Span] = (),
    short: Sequence[Sum] = (),
    start: int = 0,
    **changes: Any,
) -> Op:
    """An op whose sums are those of its spans and of ``short`` calls."""
    sums = {total.node: total for total in short}
    for span in spans:
        before = sums.get(span.node, Sum(span.node, 0, 0, 0))
        latency_of = span.latency
        sums[span.node] = Sum(
            span.node, before.calls + 1, before.sum + latency_of, max(before.max, latency_of)
        )
    made = Op(
        number=number, kept_as=kept_as, thread=4711, start=start, end=start + latency, cost=0,
        latency=latency, spans=tuple(spans), sums=tuple(sums.values()), least=1000,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def of_samples(root: Fnode, count: int = 10, **changes: Any) -> KeptOps:
    """``count`` ops of the sample's third peak, and as many of its first one, a slowest one each.

    In a slow one ``flush`` takes 4 ms of 5, ``write_out`` 3 of these and ``fill`` the rest, in two
    long calls and 400 short ones of ``memcpy``.
    """
    flush, write, fill = (root.find(i) for i in ("1.7", "1.7.1", "1.7.2"))
    usleep, parse = root.find("1.7.1.1"), root.find("1.1")
    names = [child.function.name for child in fill.children]
    if "memcpy" not in names:
        fill.add_child(samples.function("memcpy"), samples.site(40))
    memcpy = fill.children[names.index("memcpy") if "memcpy" in names else -1]
    ops = []
    for index in range(count + 1):
        at = 10 * MS * index
        spans = [
            call(at, flush, MS // 2, 4 * MS), call(at, write, MS // 2, 3 * MS),
            call(at, usleep, MS // 2, 3 * MS - 100), call(at, fill, 7 * MS // 2, MS),
        ]  # fmt: skip
        sums = [Sum(memcpy, 400, MS // 2, MS // 400), Sum(parse, 1, 700, 700)]
        slow = {"is_slowest": index == count, "start": at, **changes}
        ops.append(
            made_op(index + 1, OpClass.IN_PEAK, latency=5 * MS, spans=spans, short=sums, **slow)
        )
    for index in range(count + 1):
        at = 10 * MS * index + 7 * MS
        sums = [Sum(parse, 2, 900, 500)]
        fast = {"is_slowest": index == count, "start": at, **changes}
        ops.append(
            made_op(count + 2 + index, OpClass.FASTEST, latency=1600, spans=[], short=sums, **fast)
        )
    return KeptOps(samples.HZ, tuple(ops), 31, 1805, compared=frozenset({root, flush, write, fill}))


def snapshot(**changes: Any) -> Snapshot:
    """The sample, with ops."""
    made = samples.snapshot()
    assert made.ftree is not None
    return dataclasses.replace(made, **({"ops": of_samples(made.ftree)} | changes))


def path_of(snapshot: Snapshot, last: str) -> RootCausePath:
    return next(path for path in snapshot.paths if path.nodes[-1].function.name == last)


@st.composite
def kept_ops(draw: st.DrawFn, nodes: Sequence[Fnode]) -> KeptOps:
    """Ops of a tree whose first node is f0. Any numbers, also such as no agent would write."""
    ops = []
    for number in range(draw(st.sampled_from((0, 1, 2, 9)))):
        start, cycles = draw(st.integers(0, 1 << 62)), draw(st.integers(1, 1 << 40))
        times = st.tuples(st.integers(0, cycles), st.integers(0, cycles)).map(sorted)
        below, most = (st.sampled_from(nodes[1:]), 4) if nodes[1:] else (st.nothing(), 0)
        spans = []
        for node, (first, last) in draw(st.lists(st.tuples(below, times), max_size=most)):
            cost = draw(st.integers(0, 1 << 30))
            spans.append(Span(node, start + first, start + last, cost))
        sums = [
            Sum(node, draw(st.integers(1, 1 << 30)), whole, draw(st.integers(0, whole)))
            for node, whole in draw(
                st.lists(
                    st.tuples(below, st.integers(0, 1 << 50)),
                    max_size=most,
                    unique_by=lambda s: s[0],
                )
            )
        ]
        off = [
            Off(start + first, start + last, reason)
            for (first, last), reason in draw(
                st.lists(st.tuples(times, st.sampled_from(OffReason)), max_size=3)
            )
        ]
        ops.append(
            Op(
                number=number + 1,
                kept_as=draw(st.sampled_from(OpClass)),
                thread=draw(st.integers(0, 1 << 22)),
                start=start,
                end=start + cycles,
                cost=draw(st.integers(0, 1 << 40)),
                latency=draw(st.integers(1, 1 << 40)),
                is_slowest=draw(st.booleans()),
                spans=tuple(sorted(spans, key=lambda s: (s.start, s.node.depth, -s.end))),
                sums=tuple(sums),
                least=draw(st.integers(0, 1 << 30)),
                lost=draw(st.integers(0, 99)),
                off=draw(st.none() | st.just(tuple(off))),
            )
        )
    compared = draw(st.frozensets(st.sampled_from(nodes)))
    return KeptOps(
        draw(st.integers(1, 1 << 33)),
        tuple(ops),
        in_peak_seen=draw(st.integers(0, 1 << 40)),
        fastest_seen=draw(st.integers(0, 1 << 40)),
        not_kept=draw(st.integers(0, 1 << 40)),
        compared=compared,
    )


def indirect_site() -> CallSite:
    return CallSite(0x401400, CallKind.INTERRUPT, "vmlinux", 0x1400)
