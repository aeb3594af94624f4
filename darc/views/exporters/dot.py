"""Who waited for whom, as a graph for Graphviz: DepGraph's picture (III), with shares of time.

f0 points to what its calls waited for, and that to who had it. An edge has its share of the
time of all ops that are kept of the peak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from darc.model.ops import ObjectKind
from darc.model.snapshot import Snapshot
from darc.model.waits import Holder, Role, Waits
from darc.views.exporters.exporter import Exporter
from darc.views.style import Style
from darc.views.waitsview import holder_text, kind_behind, kind_text
from darc.views.words import Shown


def _text(snapshot: Snapshot, style: Style) -> Shown:
    name = style.name
    function = name(snapshot.function)
    lines = ["digraph waits {", "  rankdir=LR;", "  node [shape=box];"]
    lines.append(f"  f0 [label={_quoted(function)}];")
    if snapshot.waits is not None and snapshot.ops is not None and snapshot.ops.sees_waits:
        lines += _edges(snapshot.waits, name)
    return Shown("\n".join([*lines, "}"]))


def _edges(waits: Waits, name: Callable[[str], str]) -> Iterator[str]:
    for number, one in enumerate(waits.objects, start=1):
        is_call = one.kind is ObjectKind.CALL
        what = "blocked" if is_call else f"{kind_text(one.kind)} {name(one.name)}".rstrip()
        where = f"\nin {' <- '.join(map(name, one.path))}" if one.path else ""
        yield f"  object{number} [shape=ellipse, label={_quoted(what)}];"
        label = _quoted(f"{_share(one.cycles, waits.cycles)}{where}")
        yield f"  f0 -> object{number} [label={label}];"
        for place, holder in enumerate(one.holders, start=1):
            if holder.role is Role.HANDED_OVER:
                continue
            who = f"holder{number}_{place}"
            yield f"  {who} [label={_quoted(holder_text(holder, one.kind, name))}];"
            share = _quoted(_share(holder.cycles, waits.cycles))
            yield f"  object{number} -> {who} [label={share}];"
            yield from _behind(who, holder, kind=one.kind, whole=waits.cycles, name=name)


def _behind(
    who: str, holder: Holder, kind: ObjectKind, *, whole: int, name: Callable[[str], str]
) -> Iterator[str]:
    kind = kind_behind(holder, kind)
    for place, one in enumerate(holder.behind, start=1):
        inner = f"{who}_{place}"
        yield f"  {inner} [label={_quoted(holder_text(one, kind, name))}];"
        yield f"  {who} -> {inner} [label={_quoted(_share(one.cycles, whole))}];"
        yield from _behind(inner, one, kind=kind, whole=whole, name=name)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


DOT = Exporter(name="dot", suffixes=(".dot", ".gv"), text=_text)
