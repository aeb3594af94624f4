"""What is waited for by ``darc catch``, and the call that the program stands in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from darc.model.catching import Catching, CaughtCall
from darc.model.ops import OffReason
from darc.model.snapshot import Snapshot
from darc.model.standing import HolderTold, LockHolder, OpenWait, ThreadStanding
from darc.model.status import Status
from darc.views.parts.part import Doing, PartView
from darc.views.render import duration, probes_text
from darc.views.style import Style, write_sentences
from darc.views.waitsview import kind_text
from darc.views.words import Shown, cost_text, counted, way

_MANY_MISSED = 10
"""Late calls, with none caught: then it is told what to do."""

_SHOWN = 12
"""Functions of a thread that are told, at most."""

_OFF = {
    OffReason.BLOCKED: "blocked",
    OffReason.READY: "ready, without a processor",
    OffReason.STOPPED: "stopped by the debugger",
    OffReason.UNKNOWN: "not known",
}
_LEAST_SHARE = 0.05
"""Of its time that a call spent in one way: what is less is not told."""


def _text(known: Catching) -> tuple[str, ...]:
    """What ``darc catch`` does, and what has come of it."""
    found = [f"catches calls above {duration(known.seconds)}", f"{known.caught} caught"]
    if known.missed:
        told = f"{known.missed} missed, ended before the stop"
        if known.missed >= _MANY_MISSED and not known.caught:
            told += ": '--above' a shorter time leaves more of it to stop in"
        found.append(told)
    return tuple(found)


def _lines(snapshot: Snapshot, known: Catching, style: Style) -> list[Text]:
    doing, *counts = _text(known)
    what = snapshot.status.value
    if not snapshot.status.is_final:
        what = doing if snapshot.status is Status.SEARCHING else f"{what}: {doing}"
    return [
        Text(f"darc: {style.name(snapshot.function)}: {what}", "bold"),
        Text(f"  {', '.join(counts)}"),
        Text(f"  {probes_text(snapshot)}"),
    ]


def _to_json(known: Catching) -> dict[str, Any]:
    """The time from which on a call is late is in seconds, as is that of the ``call`` in which the
    program stands, if it does in one: names are whole there."""
    made = {"above": known.seconds, "caught": known.caught, "missed": known.missed}
    return made if known.place is None else {**made, "call": _call_to_json(known.place)}


def _call_to_json(call: CaughtCall) -> dict[str, Any]:
    shares = None
    if call.off is not None:
        shares = {reason.value: round(share, 4) for reason, share in call.off.items()}
    return {
        "seconds": round(call.seconds, 9),
        "off": shares,
        "by_quota": round(call.by_quota, 4),
        **_standing_to_json(call.where),
        "waits_for": None if call.wait is None else _wait_to_json(call.wait),
    }


def _standing_to_json(where: ThreadStanding) -> dict[str, Any]:
    return {
        "thread": where.thread,
        "thread_name": where.name,
        "functions": list(where.functions),
        "whole": where.is_whole,
    }


def _wait_to_json(wait: OpenWait) -> dict[str, Any]:
    holder = wait.holder
    told = None
    if holder is not None:
        told = {
            "thread": holder.thread,
            "told": holder.told.value,
            "outside": holder.is_outside,
            "free": holder.is_free,
            "where": None if holder.where is None else _standing_to_json(holder.where),
        }
    return {"kind": wait.kind.value, "name": wait.name, "address": wait.address, "holder": told}


def _doing(known: Catching) -> Doing:
    doing, *counts = _text(known)
    return Doing(doing, tuple(counts))


def _place(snapshot: Snapshot, known: Catching, style: Style) -> Shown | None:
    """The call that the program stands in: for how long, in which functions, and who has what it
    waits for; and what the analysis has cost the program so far. Before it, a line on each that
    could not be stopped since the last time."""
    place = known.place
    if place is None:
        return None
    name, where = style.short_name(snapshot.function), place.where
    text = f"darc: {name} under way for {duration(place.seconds)} in {_called(where, style)}"
    text += _time(place.off, place.by_quota)
    if where.functions:
        text += f", in {_functions(where, style)}"
    text += _waits(place.wait, style)
    if place.show is not None:
        text += f"; in another thread: '{place.show}'"
    if known.missed:
        before = counted(known.missed, "late call")
        text += f" ({before} before had ended by the time of the stop)"
    deep = (f"note: {one}" for one in place.described)
    lines = [*deep, text, f"  {cost_text(snapshot.program)}"]
    return write_sentences([Text(style.note(line)) for line in lines], style)


def _time(off: Mapping[OffReason, float] | None, by_quota: float) -> str:
    """What the call has spent its time on, where that is known; ``by_quota``: that part of it, at
    most, its CPU quota was used up."""
    if off is None:
        return ""
    parts = [(share, _OFF[reason]) for reason, share in off.items()]
    parts.append((1 - sum(off.values()), "running"))
    parts.sort(key=lambda part: -part[0])
    told = [f"{100 * share:.0f} % {what}" for share, what in parts if share >= _LEAST_SHARE]
    if by_quota >= _LEAST_SHARE:
        told.append(f"its CPU quota took up to {100 * by_quota:.0f} %")
    return f" ({', '.join(told)})"


def _waits(wait: OpenWait | None, style: Style) -> str:
    """What the call waits for, and who has that."""
    if wait is None:
        return ""
    text = f"; waits for {kind_text(wait.kind)} {style.name(wait.name)}"
    return text if wait.holder is None else f"{text}, {_holder(wait.holder, style)}"


def _holder(holder: LockHolder, style: Style) -> str:
    """Who has a lock now."""
    if holder.where is not None:
        return f"held by {_thread(holder.where, style)}"
    then = "" if holder.told is HolderTold.NOW else f" {holder.told.value}"
    now = ", and free at this moment" if holder.is_free else ""
    if holder.is_outside:
        return f"held{then} by {holder.thread}, which is no thread of this program{now}"
    if holder.thread:
        return f"held by thread {holder.thread}{then}{now}"
    return "free at this moment" if holder.is_free else "held by nobody that it tells of"


def _thread(where: ThreadStanding, style: Style) -> str:
    text = _called(where, style)
    return f"{text}, in {_functions(where, style)}" if where.functions else text


def _called(where: ThreadStanding, style: Style) -> str:
    """The thread, with its name where it has one."""
    named = f' "{style.name(where.name)}"' if where.name else ""
    return f"thread {where.thread}{named}"


def _functions(where: ThreadStanding, style: Style) -> str:
    """Where that is, with a mark where the stack goes on and does not tell to what."""
    told = way(list(map(style.short_name, where.functions)), " ← ", _SHOWN)
    return told if where.is_whole else f"{told} ← …"


CATCH = PartView(Catching, _lines, _to_json, doing=_doing, place=_place)
