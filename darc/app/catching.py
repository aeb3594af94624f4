"""What the user is told of a call that was caught, and from when on a call is late."""

from __future__ import annotations

import struct

from darc.analyses.late import LEAST_SECONDS, LateCalls
from darc.code.processor import FRAME_POINTER, PROGRAM_COUNTER, STACK_POINTER
from darc.code.unwind import path
from darc.model.errors import DarcError, UsageError
from darc.model.ops import Event, ObjectKind
from darc.model.peaks import choose_peak
from darc.model.snapshot import Snapshot
from darc.session.session import Session
from darc.target.target import Target
from darc.views import render
from darc.views.style import Style
from darc.views.waitsview import kind_text

_OWNER = {ObjectKind.LOCK: 8, ObjectKind.RWLOCK: 24}
"""Where glibc's pthread_mutex_t has the id of the thread that holds it, and pthread_rwlock_t of the
one that may write: part of its ABI."""

_REGISTERS = PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER
_WORDS = 512
"""Of a stack that are looked at."""


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
    """One line on the call that the program stands in: for how long, in which functions, and who
    has what it waits for."""
    analysis = session.analysis
    if not isinstance(analysis, LateCalls) or analysis.caught is None:
        return f"darc: {style.name(session.spec)} is over"
    call, event = analysis.caught.call, analysis.caught.waits_for
    name = session.root.function.name
    where = _path(target, session, call.thread, name)
    text = f"darc: {style.name(name)} under way for {render.duration(call.seconds)}"
    if where:
        text += f", in {' ← '.join(map(style.name, where))}"
    if event is not None:
        named = analysis.names().object(event.kind, event.object)
        text += f"; waits for {kind_text(event.kind)} {style.name(named)}"
        if event.kind in _OWNER:
            text += f", {_holder(target, session, event, style)}"
    how = _show(target, session, call.thread)
    if how is not None:
        text += f"; in another thread: '{how}'"
    if analysis.missed:
        text += f" ({analysis.missed} late calls before had ended by the time of the stop)"
    return text


def _show(target: Target, session: Session, own: int) -> str | None:
    """What to type to see a thread that the debugger does not show by itself. Where it blocks the
    signal, another one was stopped by that."""
    thread = session.debuggee.thread_called(own)
    return None if thread is None else target.threads.show(thread)


def _holder(target: Target, session: Session, event: Event, style: Style) -> str:
    """Who has a lock now, by its own words."""
    try:
        raw = target.memory.read(event.object + _OWNER[event.kind], 4)
    except DarcError:
        raw = bytes(4)
    owner = int.from_bytes(raw, "little")
    if owner and session.debuggee.thread_called(owner) is not None:
        return f"held by {_thread(target, session, owner, style)}"
    then = "" if owner else " when the wait began"
    owner = owner or event.thread
    if owner and session.debuggee.thread_called(owner) is None:  # in memory that processes share
        return f"held{then} by {owner}, which is no thread of this program"
    if owner:
        return f"held by thread {owner}{then}"
    return "held by nobody that it tells of"


def _thread(target: Target, session: Session, own: int, style: Style) -> str:
    where = _path(target, session, own, None)
    text = f"thread {own}"
    return f"{text}, in {' ← '.join(map(style.name, where))}" if where else text


def _path(target: Target, session: Session, own: int, last: str | None) -> list[str]:
    """The functions that a thread stands in, innermost first, up to the one called ``last``."""
    thread = session.debuggee.thread_called(own)
    if thread is None:
        return []
    program = session.program
    try:
        pc, stack, frame = (target.threads.read_register(thread, name) for name in _REGISTERS)
        addresses = path(program, pc, stack, frame, _words(target, stack))
    except DarcError:
        return []
    names: list[str] = []
    for number, address in enumerate(addresses):
        names.append(program.function_at(address - bool(number)).name)
        if names[-1] == last:
            break
    return names[:8]


def _words(target: Target, stack: int) -> tuple[int, ...]:
    """As much of a stack as is there."""
    size = 8 * _WORDS
    while size >= 8:
        try:
            raw = target.memory.read(stack, size)
        except DarcError:
            size //= 2
            continue
        return struct.unpack(f"<{size // 8}Q", raw)
    return ()
