"""Backtraces through pads, for a program that was stopped while a thread was on its way in one."""

from __future__ import annotations

from collections.abc import Callable

import gdb
import gdb.unwinder

from darc.code.frame_rule import WORD
from darc.code.processor import KEPT, PROGRAM_COUNTER, STACK_POINTER, cfa_of
from darc.model.errors import DarcError


class _FrameId:
    def __init__(self, sp: int, pc: int) -> None:
        self.sp = gdb.Value(sp)
        self.pc = gdb.Value(pc)


class PadUnwinder(gdb.unwinder.Unwinder):
    """A pad has no frame of its own: its caller is the function whose call it stands in for.

    ``caller(pc, stack)`` is :meth:`darc.pads.placing.Placing.caller`, ``hold()``
    :meth:`darc_gdb.memory.GdbMemory.hold`.
    """

    def __init__(
        self, caller: Callable[[int, int], tuple[int, int] | None], hold: Callable[[], None]
    ) -> None:
        super().__init__("darc-pads")
        self._caller = caller
        self._hold = hold

    def __call__(self, pending_frame: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        self._hold()  # no thread of Python's runs while gdb waits for what is asked here
        pc = int(pending_frame.read_register(PROGRAM_COUNTER)) & WORD
        stack = int(pending_frame.read_register(STACK_POINTER)) & WORD
        try:
            found = self._caller(pc, stack)
        except DarcError:
            return None
        if found is None:
            return None
        slot, back = found
        info = pending_frame.create_unwind_info(_FrameId(cfa_of(slot), pc))
        code = gdb.lookup_type("unsigned long")
        info.add_saved_register(PROGRAM_COUNTER, gdb.Value(back).cast(code))
        info.add_saved_register(STACK_POINTER, gdb.Value(cfa_of(slot)).cast(code))
        for name in KEPT:
            info.add_saved_register(name, pending_frame.read_register(name))
        return info
