"""Probes that others have in a kernel: kprobes, ftrace, a debugger from outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from darc.code.architecture import FunctionCode
from darc.code.names import Names
from darc.code.overlay import Overlay
from darc.code.processor import BREAKPOINT, decode
from kgdb.image import KernelModule

_CALL, _JUMP, _BREAKPOINT = 0xE8, 0xE9, BREAKPOINT[0]
_JUMP_SIZE = 5
FTRACE_NOP = bytes.fromhex("0f1f440000")
"""Where ftrace has a place, and nobody is there."""

TRACED = "a tracer of the kernel's own (ftrace) is active on it"
PROBED = "a kprobe or another debugger is active on it"


class Probed(Protocol):
    """The kernel that they are in."""

    @property
    def names(self) -> Names: ...
    def read(self, address: int, size: int) -> bytes: ...
    def is_code(self, address: int) -> bool: ...


class ForeignProbes:
    """Where others have probes, as far as functions were read, and what stood there before."""

    def __init__(self, program: Probed, kernel: KernelModule) -> None:
        self._program = program
        self._kernel = kernel
        self._hidden = Overlay()

    def forget(self) -> None:
        """The kernel's bytes have changed."""
        self._hidden.clear()

    def over(self, address: int, live: bytes) -> bytes:
        """What is read at ``address``, without the probes that are known."""
        return self._hidden.over(address, live)

    def see_through(self, way_in: int, found: FunctionCode) -> bool:
        """Whether there are new ones in a function, whose first instruction is at ``way_in``.
        Decoded with them, the bytes behind would be taken for other instructions."""
        before = len(self._hidden)
        live = self._program.read(way_in, _JUMP_SIZE)
        if live[0] == _CALL and self.is_for_tracers(way_in):
            self._hidden[way_in] = FTRACE_NOP
        for start, end in found.ranges:
            for at, own in self._others(start, end):
                self._hidden[at] = own
        return len(self._hidden) > before

    def is_for_tracers(self, address: int) -> bool:
        """Whether the kernel was built with a place for ftrace there."""
        own = self._own(address, _JUMP_SIZE)
        if not own:  # a tracer's trampoline is no code that anybody knows
            return not self._leads_into_code(address, self._program.read(address, _JUMP_SIZE))
        if own[0] != _CALL:
            return own == FTRACE_NOP
        return "__fentry__" in self._program.names.at(target_of(address, own))

    def _others(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Where instructions of the kernel's file are a trap now, or jump out of all code, and the
        instructions that they stand for. (Other changes are the kernel's own: alternatives,
        static calls and branches, thunks.)"""
        own, live = self._own(start, end - start), self._program.read(start, end - start)
        strange = {
            at
            for at, byte in enumerate(live)
            if byte in (_BREAKPOINT, _JUMP) and own[at : at + 1] != live[at : at + 1]
        }
        if not strange or len(own) < len(live):
            return
        for instruction in decode(own, start):
            at = int(instruction.ip) - start
            if at not in strange:
                continue
            if live[at] == _BREAKPOINT:
                yield start + at, own[at : at + 1] + live[at + 1 : at + instruction.len]
            elif not self._leads_into_code(start + at, live[at : at + _JUMP_SIZE]):
                yield start + at, own[at : self._whole(own, at)]

    def _own(self, address: int, size: int) -> bytes:
        """What the kernel's file has; of modules there is no file."""
        start, end = self._kernel.start, self._kernel.end
        if not start <= address < end:
            return b""
        return self._kernel.image.content(address - self._kernel.bias, size)

    def _leads_into_code(self, address: int, code: bytes) -> bool:
        """Whether a call or jump does; bytes that are too few for one are none."""
        return len(code) < _JUMP_SIZE or self._program.is_code(target_of(address, code))

    @staticmethod
    def _whole(own: bytes, at: int) -> int:
        """Where the instructions end that a jump at ``at`` stands over."""
        end = at
        while end < at + _JUMP_SIZE:
            end += decode(own[end : end + 16], end)[0].len
        return end

    def leave_alone(self, found: FunctionCode) -> None:
        """A call site that somebody else's probe stands in is left alone."""
        inside = [
            (at, at + len(own))
            for at, own in self._hidden.items()
            if any(start <= at < end for start, end in found.ranges)
        ]
        for index, site in enumerate(found.sites):
            last = max(site.back, site.patch + site.length)
            if any(at < last and site.patch < end for at, end in inside):
                found.sites[index] = replace(site, problem=PROBED, is_short=False)


def occupied_by(code: bytes) -> str | None:
    """Who is active on a function that tracers may enter, whose entry has this ``code`` now;
    ``None``: nobody."""
    if code[0] == _CALL:
        return TRACED
    return PROBED if code[0] in (_JUMP, _BREAKPOINT) else None


def target_of(address: int, code: bytes) -> int:
    """Where a call or jump of five bytes leads."""
    return address + _JUMP_SIZE + int.from_bytes(code[1:_JUMP_SIZE], "little", signed=True)
