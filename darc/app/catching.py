"""What the user is told of a call that was caught, and from when on a call is late."""

from __future__ import annotations

from collections.abc import Mapping

from darc.analyses.catching import LEAST_SECONDS, Catcher
from darc.app.standing import Standing, current_wait, standing
from darc.model.errors import UsageError
from darc.model.ops import Event, ObjectKind, OffReason
from darc.model.peaks import choose_peak
from darc.model.snapshot import Snapshot
from darc.session.session import Session
from darc.target.memory import word_at
from darc.target.target import Target
from darc.views import render
from darc.views.style import Style
from darc.views.waitsview import kind_text
from darc.views.words import Shown, cost_text, counted, way

_OWNER = {ObjectKind.LOCK: 8, ObjectKind.RWLOCK: 24}
"""Where glibc's pthread_mutex_t has the id of the thread that holds it, and pthread_rwlock_t of the
one that may write: part of its ABI."""

_SHOWN = 12
"""Functions of a thread that are told, at most."""


def seconds_of(known: Snapshot | None, peak: str | None) -> float:
    """From when on a call is of the ``peak``, or of the one that was chosen in the analysis
    ``known``, in seconds.

    Raises:
        UsageError: nothing was chosen, or it is not there.
    """
    profile = None if known is None else known.profile
    if known is None or profile is None or not profile.bins:
        raise UsageError(
            "say how long is late: '--above TIME' (without it, the peak of an analysis of this "
            "function is taken)"
        )
    chosen = known.peak if peak is None else choose_peak(peak, profile)
    if chosen is None:
        raise UsageError("no peak was chosen: '--peak P', or '--above TIME'")
    low, last = profile.low(chosen.first_bin) / profile.hz, chosen.last_bin
    if last is not None and profile.low(last + 1) / profile.hz <= LEAST_SECONDS:
        return low
    return max(low, LEAST_SECONDS)


def describe(target: Target, session: Session, style: Style) -> str:
    """The call that the program stands in: for how long, in which functions, and who has what it
    waits for; and what the analysis has cost the program so far. Before it, a line on each that
    could not be stopped since the last time."""
    analysis = session.analysis
    if not isinstance(analysis, Catcher) or analysis.caught is None:
        return f"darc: {style.name(session.spec)} is over"
    call = analysis.caught.call
    name = session.root.function.name
    where = standing(target, session, call.thread, name)
    text = f"darc: {style.name(name)} under way for {render.duration(call.seconds)}"
    text += f" in {_called(session, call.thread, style)}"
    text += _time(analysis.caught.off, analysis.caught.by_quota)
    if where.names:
        text += f", in {_functions(where, style)}"
    event = current_wait(target, session, analysis.caught.waits_for, where)
    owner = 0 if event is None else _owner(target, event)
    if event is not None and (where.futex or owner != call.thread):
        named = analysis.names().object(event.kind, event.object)
        text += f"; waits for {kind_text(event.kind)} {style.name(named)}"
        if event.kind in _OWNER:
            text += f", {_holder(target, session, event=event, owner=owner, style=style)}"
    how = _show(target, session, call.thread)
    if how is not None:
        text += f"; in another thread: '{how}'"
    if analysis.missed:
        before = counted(analysis.missed, "late call")
        text += f" ({before} before had ended by the time of the stop)"
    told = cost_text(session.account.cost)
    deep, analysis.described = analysis.described, []
    lines = [*(f"note: {one}" for one in deep), text, f"  {told}"]
    return Shown("\n".join(map(style.note, lines)))


_OFF = {
    OffReason.BLOCKED: "blocked",
    OffReason.READY: "ready, without a processor",
    OffReason.STOPPED: "stopped by the debugger",
    OffReason.UNKNOWN: "not known",
}
_LEAST_SHARE = 0.05
"""Of its time that a call spent in one way: what is less is not told."""


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


def _show(target: Target, session: Session, own: int) -> str | None:
    """What to type to see a thread that the debugger does not show by itself. Where it blocks the
    signal, another one was stopped by that."""
    thread = session.debuggee.thread_called(own)
    return None if thread is None else target.threads.show(thread)


def _owner(target: Target, event: Event) -> int:
    """The id of the thread that has a lock now, by the lock's own words; 0: it names none."""
    at = _OWNER.get(event.kind)
    return 0 if at is None else word_at(target.memory, event.object + at, 4) or 0


def _holder(target: Target, session: Session, event: Event, owner: int, style: Style) -> str:
    """Who has a lock now."""
    if owner and session.debuggee.thread_called(owner) is not None:
        return f"held by {_thread(target, session, owner, style)}"
    is_free = event.kind is ObjectKind.LOCK and not word_at(target.memory, event.object, 4)
    then = "" if owner else " when the wait began"
    now = ", and free at this moment" if is_free else ""
    owner = owner or event.thread
    if owner and session.debuggee.thread_called(owner) is None:  # in memory that processes share
        return f"held{then} by {owner}, which is no thread of this program{now}"
    if owner:
        return f"held by thread {owner}{then}{now}"
    return "free at this moment" if is_free else "held by nobody that it tells of"


def _thread(target: Target, session: Session, own: int, style: Style) -> str:
    where = standing(target, session, own, None)
    text = _called(session, own, style)
    return f"{text}, in {_functions(where, style)}" if where.names else text


def _called(session: Session, own: int, style: Style) -> str:
    """The thread with the id ``own``, with its name where it has one."""
    name = session.debuggee.thread_name(own)
    return f'thread {own} "{style.name(name)}"' if name else f"thread {own}"


def _functions(where: Standing, style: Style) -> str:
    """Where that is, with a mark where the stack goes on and does not tell to what."""
    told = way(list(map(style.name, where.names)), " ← ", _SHOWN)
    return told if where.is_whole else f"{told} ← …"
