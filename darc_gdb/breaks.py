"""Breakpoints of darc's own, which the user never sees."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import gdb

from darc.model.errors import TargetError
from darc.target.breaks import Breaks
from darc.target.outcome import OnHit, Outcome, carry_out
from darc.target.ownthread import Turn, own_thread
from darc_gdb.calls import Calls
from darc_gdb.deciding import Deciding, commands
from darc_gdb.inferiors import Inferiors
from darc_gdb.memory import GdbMemory
from darc_gdb.threads import GdbThreads, tid
from darc_gdb.translated import translated


class _Once(gdb.Breakpoint):
    """At f0's first instruction lets darc begin, and the program goes on, as a rule. Nobody else
    hears of it where darc can do so while gdb asks whether to stop; else it is a stop, with
    commands."""

    def __init__(self, owner: GdbBreaks, address: int, handler: Callable[[], Outcome]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.handler = handler
        self.address = address
        self.commands = commands()
        self._owner = owner

    def stop(self) -> bool:
        return self._owner.decided(lambda: self._owner.came(self))


class _Break(gdb.Breakpoint):
    """One of :meth:`GdbBreaks.set_break` or :meth:`GdbBreaks.set_watch`."""

    def __init__(self, owner: GdbBreaks, on_hit: OnHit, spec: str, kind: int) -> None:
        super().__init__(spec, kind, gdb.WP_WRITE, internal=True)
        self._owner = owner
        self.on_hit = on_hit
        self.silent = True
        self.commands = commands()

    def stop(self) -> bool:
        return self._owner.decided(lambda: self._owner.hit(self))


@own_thread
class GdbBreaks(Breaks):
    """All of them but the one for the bell."""

    def __init__(
        self,
        turn: Turn,
        inferiors: Inferiors,
        deciding: Deciding,
        *,
        memory: GdbMemory,
        threads: GdbThreads,
        calls: Calls,
    ) -> None:
        self.turn = turn
        self._inferiors = inferiors
        self._deciding = deciding
        self._memory = memory
        self._threads = threads
        self._calls = calls
        self._once: _Once | None = None
        self._breaks: set[_Break] = set()

    @property
    def hits_stop_all(self) -> bool:
        return self._deciding.all_stop

    def owns(self, breakpoint_: gdb.Breakpoint) -> bool:
        """Whether it is one of these."""
        return isinstance(breakpoint_, (_Once, _Break))

    @translated
    def break_once(self, address: int, handler: Callable[[], Outcome]) -> None:
        if self._once is not None and self._once.is_valid() and self._once.address == address:
            self._once.handler = handler
            return
        self.cancel_break()
        self._once = _Once(self, address, handler)

    @translated
    def cancel_break(self) -> None:
        once, self._once = self._once, None
        if once is None or not once.is_valid():
            return
        once.enabled = False
        self._deciding.doom(once)
        self._deciding.bury()

    def decided(self, decide: Callable[[], bool]) -> bool:
        """Whether gdb is to stop. Where it is not, nobody hears that the program goes on."""
        try:
            stops = decide()
        except KeyboardInterrupt:  # Ctrl-C waits until it is decided: gdb is told to end, and does
            return True
        if not stops:
            self._deciding.goes_on_unseen()
        return stops

    def came(self, once: _Once) -> bool:
        """Whether gdb has to stop for what is to be done there."""
        if once is not self._once:
            return False
        if not self._deciding.all_stop or not self._calls.are_unnoticed():
            return self._deciding.owe(self._arrive)
        self._threads.moved()
        with self._deciding.undisturbed():
            if self._arrive() is Outcome.STOP:
                return self._deciding.stays(Outcome.STOP)
            callbacks = self._inferiors.callbacks
            callbacks.guarded(callbacks.goes_on)
            callbacks.guarded(callbacks.went_on)  # gdb tells of users' commands alone
        return False

    def _arrive(self) -> Outcome:
        once = self._once
        if once is None:
            return Outcome.CONTINUE
        self._deciding.stopped_for_darc()
        self.cancel_break()
        return carry_out(
            once.handler, failed=self._inferiors.callbacks.failed, instead=Outcome.CONTINUE
        )

    @translated
    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        self._memory.read(address, 1)  # gdb would tell only when the program is to go on
        return self._added(_Break(self, on_hit, f"*{address:#x}", gdb.BP_BREAKPOINT))

    @translated
    def set_watch(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        """As :meth:`set_break`, whenever the eight bytes at ``address`` change. Raises TargetError
        where gdb would have to look after every instruction."""
        with gdb.with_parameter("language", "c"), gdb.with_parameter("can-use-hw-watchpoints", 1):
            made = _Break(self, on_hit, f"*(unsigned long *) {address:#x}", gdb.BP_WATCHPOINT)
        if made.type != gdb.BP_HARDWARE_WATCHPOINT:
            made.delete()
            raise TargetError("gdb cannot watch memory here")
        return self._added(made)

    def _added(self, made: _Break) -> Callable[[], None]:
        self._breaks.add(made)
        return lambda: self._take_back(made)

    def _take_back(self, made: _Break) -> None:
        if made not in self._breaks:
            return
        self._breaks.discard(made)
        with contextlib.suppress(gdb.error, RuntimeError):  # gdb may have done so by itself
            made.enabled = False
        self._deciding.doom(made)
        self._deciding.bury()

    def hit(self, made: _Break) -> bool:
        """What a break decides: whether gdb is to stop for real."""
        if made not in self._breaks:
            return False
        self._threads.moved()
        self._deciding.stopped_for_darc()
        thread = tid(gdb.selected_thread())
        try:
            with self._deciding.undisturbed():
                deferred = made.on_hit(thread)
                if deferred is None:
                    return False
                if self._deciding.all_stop:
                    return self._deciding.stays(deferred())
        except Exception as error:  # told to the user, in one place
            self._inferiors.callbacks.failed(error)
            return True
        return self._deciding.owe(deferred)

    def forget(self) -> None:
        """The program is gone, and what was set at its addresses."""
        for made in list(self._breaks):
            self._take_back(made)
