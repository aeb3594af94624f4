"""The breakpoints and the signal that darc itself stops for.

lldb lists an extension's breakpoints with the user's: those of darc bear the name ``darc``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import lldb

from darc.target.outcome import OnHit, Outcome

NAME = "darc"
_LOADED = "_dl_debug_state"
"""What every dynamic linker calls when it has loaded or unloaded a file."""


_FORKS = (lldb.eStopReasonFork, lldb.eStopReasonVFork, lldb.eStopReasonVForkDone)
"""Where lldb lets a child go, or sees that it has gone: no stop for the user."""


@dataclass(frozen=True)
class Reason:
    """Why a thread stopped, as far as it may concern darc: by a signal, at breakpoints of darc's,
    or (with neither) for the user alone."""

    thread: int
    signal: int | None = None
    breakpoints: tuple[int, ...] = ()
    users: bool = False
    """Whether the user has a reason to stop there in any case."""

    @staticmethod
    def of(thread: lldb.SBThread, own: OwnBreakpoints) -> Reason | None:
        """``None`` for a thread that merely stopped with the others, or where lldb goes on by
        itself."""
        kind = thread.GetStopReason()
        if kind in (lldb.eStopReasonNone, lldb.eStopReasonInvalid, *_FORKS):
            return None
        number = int(thread.GetThreadID())
        if kind == lldb.eStopReasonSignal:
            return Reason(number, signal=int(thread.GetStopReasonDataAtIndex(0)))
        if kind != lldb.eStopReasonBreakpoint:
            return Reason(number, users=True)
        count = thread.GetStopReasonDataCount()
        ids = {int(thread.GetStopReasonDataAtIndex(i)) for i in range(0, count, 2)}
        darcs = {one for one in ids if own.owns(one)}
        others = ids - darcs
        # One of lldb's own at the same address as one of darc's is not the user's. Of one that is
        # gone by now, as it was to stop once, nothing is told.
        users = not darcs or not all(map(_is_internal, others))
        return Reason(number, None, tuple(sorted(darcs)), users)


@dataclass(frozen=True)
class Handling:
    """What lldb does with a signal of a program."""

    stop: bool
    suppress: bool
    notify: bool

    @staticmethod
    def of(process: lldb.SBProcess, number: int) -> Handling:
        """What it does now."""
        signals = process.GetUnixSignals()
        return Handling(
            stop=bool(signals.GetShouldStop(number)),
            suppress=bool(signals.GetShouldSuppress(number)),
            notify=bool(signals.GetShouldNotify(number)),
        )

    def apply(self, process: lldb.SBProcess, number: int) -> None:
        """From now on it does this."""
        signals = process.GetUnixSignals()
        signals.SetShouldStop(number, self.stop)
        signals.SetShouldSuppress(number, self.suppress)
        signals.SetShouldNotify(number, self.notify)


KEPT = Handling(stop=True, suppress=True, notify=False)
"""A signal that stops the program for darc, and that it does not get."""

PASSED = Handling(stop=False, suppress=False, notify=False)
"""One that it gets, and that stops nothing."""


class OwnBreakpoints:
    """Breakpoints by what they are for. None is deleted but by :meth:`delete_spent`, as it is not
    always the time for that. All are in the target that they were asked for in last: each has
    numbers of its own."""

    def __init__(self) -> None:
        self._target: lldb.SBTarget | None = None
        self._start: int | None = None
        self._loads: int | None = None
        self._once: tuple[int, int] | None = None
        self.once_handler: Callable[[], Outcome] | None = None
        """What is to be called at that of :meth:`break_once`."""
        self._hits: dict[int, OnHit] = {}
        self._spent: set[int] = set()
        self._elsewhere: list[tuple[lldb.SBTarget, int]] = []
        """Those that are spent in other targets."""

    def owns(self, number: int) -> bool:
        """Whether a breakpoint is darc's."""
        return (
            self.watches_modules(number)
            or number in self._hits
            or number in self._spent
            or self.is_once(number)
        )

    def watches_modules(self, number: int) -> bool:
        """Whether it stops when files are loaded."""
        return number in (self._start, self._loads)

    def is_once(self, number: int) -> bool:
        """Whether it is that of :meth:`break_once`."""
        return self._once is not None and self._once[0] == number

    @property
    def awaits_start(self) -> bool:
        """Whether the program has not begun yet."""
        return self._start is not None

    def watch_start(self, target: lldb.SBTarget) -> None:
        """Stops once when the program begins, with all its files loaded."""
        self._settle_in(target)
        if self._start is not None and target.FindBreakpointByID(self._start).IsValid():
            return
        place = target.GetModuleAtIndex(0).GetObjectFileEntryPointAddress()
        if place.IsValid():
            made = target.BreakpointCreateBySBAddress(_after_one(target, place))
            self._start = _named(made)

    def watch_modules(self, target: lldb.SBTarget) -> None:
        """The program has begun: stops whenever it loads or unloads a file."""
        self._settle_in(target)
        if self._start is not None:
            self._spent.add(self._start)
            self._start = None
        if self._loads is not None:
            return
        for context in target.FindSymbols(_LOADED, lldb.eSymbolTypeCode):
            place = context.GetSymbol().GetStartAddress()
            self._loads = _named(target.BreakpointCreateBySBAddress(place))
            break

    def break_once(
        self, target: lldb.SBTarget, address: int, handler: Callable[[], Outcome]
    ) -> None:
        """In place of the one before, unless that stands there."""
        self._settle_in(target)
        if self._once is None or self._once[1] != address:
            self.cancel_break()
            self._once = (_named(target.BreakpointCreateByAddress(address)), address)
        self.once_handler = handler

    def cancel_break(self) -> None:
        """What :meth:`break_once` made is spent."""
        self.once_handler = None
        if self._once is not None:
            self._spent.add(self._once[0])
            self._once = None

    def set_break(self, target: lldb.SBTarget, address: int, on_hit: OnHit) -> int:
        """One that stops there each time; its number."""
        self._settle_in(target)
        number = _named(target.BreakpointCreateByAddress(address))
        self._hits[number] = on_hit
        return number

    def on_hit(self, number: int) -> OnHit | None:
        """What is to be called where :meth:`set_break` made it."""
        return self._hits.get(number)

    def take_back(self, number: int) -> None:
        """What :meth:`set_break` made is spent."""
        if self._hits.pop(number, None) is not None:
            self._spent.add(number)

    def forget_places(self) -> None:
        """The program is gone, and what was set at its addresses is spent."""
        self.cancel_break()
        self._spent.update(self._hits)
        self._hits.clear()
        if self._loads is not None:
            self._spent.add(self._loads)
            self._loads = None

    def _settle_in(self, target: lldb.SBTarget) -> None:
        """What was set in another target is spent."""
        before, self._target = self._target, target
        if before is None or before == target:
            return
        self.forget_places()
        if self._start is not None:
            self._spent.add(self._start)
            self._start = None
        self._elsewhere += [(before, number) for number in self._spent]
        self._spent.clear()

    def delete_spent(self) -> None:
        """Deletes what is not needed any more."""
        for target, number in (*self._elsewhere, *((self._target, one) for one in self._spent)):
            if target is not None and target.IsValid():
                target.BreakpointDelete(number)
        self._elsewhere.clear()
        self._spent.clear()


def _after_one(target: lldb.SBTarget, place: lldb.SBAddress) -> lldb.SBAddress:
    """The second instruction of the program: one without a dynamic linker is already at the first
    one when lldb has launched it. That of a Go program is a jump."""
    found = target.ReadInstructions(place, 1)
    if not found.GetSize():
        return place
    first = found.GetInstructionAtIndex(0)
    if not first.DoesBranch():
        place.OffsetAddress(first.GetByteSize())
        return place
    try:
        there = target.ResolveFileAddress(int(first.GetOperands(target), 16))
    except ValueError:  # by a register
        return place
    return there if there.IsValid() else place


def _is_internal(number: int) -> bool:
    """Whether a breakpoint is lldb's own: their numbers are negative."""
    return number >= 1 << 31


def _named(breakpoint_: lldb.SBBreakpoint) -> int:
    breakpoint_.AddName(NAME)
    return int(breakpoint_.GetID())
