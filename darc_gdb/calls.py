"""Calls in the program: beside gdb where that can be, else by gdb itself."""

from __future__ import annotations

from collections.abc import Sequence
from signal import SIGSYS

import gdb

from darc.code.frame_rule import WORD
from darc.debuggee import detour
from darc.debuggee.seccomp import may_forbid
from darc.model.errors import DarcError, PadsImpossibleError
from darc.target.target import Passage, Target
from darc_gdb.detours import Detours
from darc_gdb.threads import GdbThreads
from darc_gdb.translated import translated


class Calls:
    """Those in ``target``'s program."""

    def __init__(self, target: Target, threads: GdbThreads) -> None:
        self._target = target
        self._detours = Detours(target, threads)

    @translated
    def call(self, address: int, arguments: Sequence[int]) -> int:
        """See :meth:`darc.target.target.Target.call`."""
        place = self._detour()
        if place is not None:
            return self._detours.call(place, address, arguments)
        listed = ", ".join(f"{argument & WORD:#x}UL" for argument in arguments)
        types = ", ".join(["unsigned long"] * len(arguments)) or "void"
        with (
            gdb.with_parameter("language", "c"),
            gdb.with_parameter("scheduler-locking", "on"),
            gdb.with_parameter("unwindonsignal", True),
        ):
            value = gdb.parse_and_eval(f"((unsigned long (*)({types})){address:#x})({listed})")
        return int(value) & WORD

    @translated
    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        """See :meth:`darc.target.target.Target.system_call`."""
        place = self._detour()
        return None if place is None else self._detours.system_call(place, number, arguments)

    def wake(self) -> bool:
        """See :meth:`darc.target.target.Target.wake`. Whether it could be done in this way."""
        if self.dispatches:
            return False
        place = self._detour()
        if place is None or self._target.pid is None:
            return False
        self._detours.wake(place, self._target.pid)
        return True

    def lead_out(self, thread: int, passage: Passage) -> bool:
        """See :meth:`darc.target.target.Target.lead_out`. Whether it could be done in this way."""
        if self._target.pid is None or passage.mask is None:
            return False
        self._detours.lead_out(self._target.pid, thread, passage)
        return True

    @property
    def dispatches(self) -> bool | None:
        """See :meth:`darc.target.target.Target.dispatches`."""
        pid = self._target.pid
        return None if pid is None else self._detours.dispatches(pid)

    def admits(self) -> bool:
        """See :meth:`darc.target.target.Target.admits_calls`."""
        pid = self._target.pid
        return pid is not None and self._detours.admits(pid)

    def _detour(self) -> int | None:
        """Where a call may stand that comes back by itself; ``None``: gdb is to make it, as the
        program might be killed for what a detour asks of the kernel, or would end with gdb anyway
        and has no room.

        Raises:
            PadsImpossibleError: it would not end with gdb, and has no room.
            DispatchedError: a call might come to the program itself.
        """
        if self.dispatches:
            raise detour.failed(SIGSYS)
        pid = self._target.pid
        if pid is None or may_forbid(self._target, pid):
            return None
        place = self._detours.place(pid)
        if place is None and self._target.attached:
            raise PadsImpossibleError("the program's files have no room for darc's calls")
        return place

    def are_unnoticed(self) -> bool:
        """Whether gdb has no part in calls."""
        try:
            return self._detour() is not None
        except DarcError:
            return True  # they are all refused
