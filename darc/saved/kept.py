"""Kept ops in a session file: the part called ``ops``.

The calls are listed once, with the functions that they are of, and ops name them by their place in
that list. Where they are those of the file's ftree, as they mostly are, they become its fnodes
again; ops of an earlier run, whose program was another build, keep a small tree of their own. Times
within an op are cycles from its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from darc.model.ftree import CallKind, CallSite, Fnode, Function
from darc.model.ops import KeptOps, Off, OffReason, Op, OpClass, Span, Sum
from darc.model.parameters import MAX_DEPTH
from darc.saved.checked import (
    damaged,
    read_choice,
    read_count,
    read_flag,
    read_list,
    read_object,
    read_text,
)

PART = "ops"
"""What the part is called."""


def to_part(kept: KeptOps) -> dict[str, object]:
    """The part, as JSON values."""
    spanned = {span.node for op in kept.ops for span in op.spans}
    used = spanned | {total.node for op in kept.ops for total in op.sums} | kept.compared
    nodes = sorted({above for node in used for above in node.route()}, key=lambda node: node.path)
    numbers = {node: number for number, node in enumerate(nodes)}
    return {
        "hz": kept.hz,
        "in_peak_seen": kept.in_peak_seen,
        "fastest_seen": kept.fastest_seen,
        "not_kept": kept.not_kept,
        "by_quota": kept.by_quota,
        "calls": [
            {
                "id": node.id,
                "name": node.function.name,
                "symbol": node.function.symbol,
                "module": node.function.module,
                "offset": node.function.offset,
                "site": None if node.site is None else _site(node.site),
                "compared": node in kept.compared,
            }
            for node in nodes
        ],
        "ops": [_op(op, numbers) for op in kept.ops],
    }


def _site(site: CallSite) -> list[object]:
    return [site.module, site.offset, site.kind.value]


def _op(op: Op, numbers: Mapping[Fnode, int]) -> dict[str, object]:
    off = None
    if op.off is not None:
        off = [[one.start - op.start, one.end - op.start, one.reason.value] for one in op.off]
    return {
        "class": op.kept_as.value,
        "slowest": op.is_slowest,
        "thread": op.thread,
        "start": op.start,
        "cycles": op.end - op.start,
        "cost": op.cost,
        "latency": op.latency,
        "least": op.least,
        "lost": op.lost,
        "spans": [
            [numbers[span.node], span.start - op.start, span.end - op.start, span.cost]
            for span in op.spans
        ],
        "sums": [[numbers[one.node], one.calls, one.sum, one.max] for one in op.sums],
        "off": off,
    }


def from_part(content: object, ftree: Sequence[Fnode], *, sees_waits: bool = False) -> KeptOps:
    """The ops of the part in a file that has this ftree, and has what they waited for or not.

    Raises:
        DamagedFileError: it is not as :func:`to_part` would make it.
    """
    where = f"parts.{PART}"
    if isinstance(content, dict):
        content = {"by_quota": 0, **content}  # which files had not at first
    keys = "hz in_peak_seen fastest_seen not_kept by_quota calls ops"
    found = read_object(content, where, keys)
    calls, compared = _calls(found["calls"], f"{where}.calls", ftree)
    return KeptOps(
        hz=read_count(found["hz"], f"{where}.hz", least=1),
        ops=tuple(
            _read_op(row, f"{where}.ops[{number}]", number + 1, calls)
            for number, row in enumerate(read_list(found["ops"], f"{where}.ops"))
        ),
        in_peak_seen=read_count(found["in_peak_seen"], f"{where}.in_peak_seen"),
        fastest_seen=read_count(found["fastest_seen"], f"{where}.fastest_seen"),
        not_kept=read_count(found["not_kept"], f"{where}.not_kept"),
        by_quota=read_count(found["by_quota"], f"{where}.by_quota"),
        compared=compared,
        sees_waits=sees_waits,
    )


def _calls(
    content: object, where: str, ftree: Sequence[Fnode]
) -> tuple[list[Fnode], frozenset[Fnode]]:
    rows: dict[str, Fnode] = {}
    compared: set[str] = set()
    for number, row in enumerate(read_list(content, where)):
        place = f"{where}[{number}]"
        found = read_object(row, place, "id name symbol module offset site compared")
        name = read_text(found["id"], f"{place}.id")
        parent = rows.get(name.rpartition(".")[0])
        last = name.rpartition(".")[2]
        if name in rows or (parent is None) == (number > 0) or not _is_number(last):
            damaged(f"{place}.id", "that of a call behind its caller's")
        if (parent is None) != (found["site"] is None) or (parent is None and name != "1"):
            damaged(f"{place}.site", "that of a call, or null for f0")
        if parent is not None and parent.depth > MAX_DEPTH:
            damaged(f"{place}.id", f"a call at most {MAX_DEPTH} levels deep")
        offset = read_count(found["offset"], f"{place}.offset")
        site = None if parent is None else _read_site(found["site"], f"{place}.site")
        function = Function(
            name=read_text(found["name"], f"{place}.name"),
            symbol=read_text(found["symbol"], f"{place}.symbol"),
            module=read_text(found["module"], f"{place}.module"),
            address=offset,
            offset=offset,
        )
        if parent is None:
            node = Fnode(function, site)
        else:
            node = parent.add_child(function, site, int(last))
        rows[name] = node
        if read_flag(found["compared"], f"{place}.compared"):
            compared.add(name)
    known = {node.id: node for node in ftree}
    if all(name in known and _is_same(node, known[name]) for name, node in rows.items()):
        rows = {name: known[name] for name in rows}
    return list(rows.values()), frozenset(rows[name] for name in compared)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10 and text == str(int(text)) != "0"


def _is_same(one: Fnode, other: Fnode) -> bool:
    a, b = one.function, other.function
    return (a.symbol, a.module, a.offset, _place(one)) == (
        *(b.symbol, b.module, b.offset),
        _place(other),
    )


def _place(node: Fnode) -> object:
    return None if node.site is None else _site(node.site)


def _read_site(content: object, where: str) -> CallSite:
    row = _row(content, where, 3)
    offset = read_count(row[1], where)
    return CallSite(offset, read_choice(CallKind, row[2], where), read_text(row[0], where), offset)


class _OpCalls:
    """What an op at ``where`` in a file has of its ``calls``, by their numbers; it took so many
    ``cycles`` from its ``start`` on."""

    def __init__(self, where: str, start: int, cycles: int, calls: Sequence[Fnode]) -> None:
        self._where = where
        self._start = start
        self._cycles = cycles
        self._calls = calls

    def spans(self, content: object) -> Iterator[Span]:
        for row, place in self._rows(content, "spans", 4):
            times = self._times(row[1:], place)
            yield Span(self._call(row[0], place), *times, read_count(row[3], place))

    def sums(self, content: object) -> tuple[Sum, ...]:
        sums: dict[Fnode, Sum] = {}
        for row, place in self._rows(content, "sums", 4):
            node = self._call(row[0], place)
            if node in sums:
                damaged(place, "of another call than before")
            many, whole = read_count(row[1], place, least=1), read_count(row[2], place)
            sums[node] = Sum(node, many, whole, read_count(row[3], place, most=whole))
        return tuple(sums.values())

    def off(self, content: object) -> Iterator[Off]:
        for row, place in self._rows(content, "off", 3):
            yield Off(*self._times(row, place), read_choice(OffReason, row[2], place))

    def _rows(
        self, content: object, name: str, length: int
    ) -> Iterator[tuple[Sequence[object], str]]:
        """So many values each, with where they stand."""
        for index, value in enumerate(read_list(content, f"{self._where}.{name}")):
            place = f"{self._where}.{name}[{index}]"
            yield _row(value, place, length), place

    def _call(self, value: object, place: str) -> Fnode:
        return self._calls[read_count(value, place, least=1, most=len(self._calls) - 1)]

    def _times(self, row: Sequence[object], place: str) -> tuple[int, int]:
        first = read_count(row[0], place, most=self._cycles)
        return self._start + first, self._start + read_count(row[1], place, first, self._cycles)


def _read_op(content: object, where: str, number: int, calls: Sequence[Fnode]) -> Op:
    found = read_object(
        content,
        where,
        "class slowest thread start cycles cost latency least lost spans sums off",
    )
    start = read_count(found["start"], f"{where}.start")
    cycles = read_count(found["cycles"], f"{where}.cycles", least=1)
    own = _OpCalls(where, start, cycles, calls)
    spans = sorted(
        own.spans(found["spans"]), key=lambda span: (span.start, span.node.depth, -span.end)
    )
    sums = own.sums(found["sums"])
    off = None if found["off"] is None else tuple(own.off(found["off"]))
    return Op(
        number=number,
        kept_as=read_choice(OpClass, found["class"], f"{where}.class"),
        thread=read_count(found["thread"], f"{where}.thread"),
        start=start,
        end=start + cycles,
        cost=read_count(found["cost"], f"{where}.cost"),
        latency=read_count(found["latency"], f"{where}.latency", least=1),
        is_slowest=read_flag(found["slowest"], f"{where}.slowest"),
        spans=tuple(spans),
        sums=sums,
        least=read_count(found["least"], f"{where}.least"),
        lost=read_count(found["lost"], f"{where}.lost"),
        off=off,
    )


def _row(content: object, where: str, length: int) -> list[Any]:
    row = read_list(content, where)
    if len(row) != length:
        damaged(where, f"a list of {length}")
    return row
