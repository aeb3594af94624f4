"""The kernel's records that have the beginning of a thread's own stack: of who wakes threads, and
of where threads leave their processors (perf_event_open(2)).

A thread that is in the kernel has its registers as they were when it called that; so the records
tell in which functions of its program it is.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from darc.code.processor import FRAMES
from darc.debuggee import perf

_TRACEPOINT = 2
_CONTEXT_SWITCHES = 3
_RAW, _REGS_USER, _STACK_USER = 1 << 10, 1 << 12, 1 << 13

_STACKS = perf.PerfEvent(
    config=_CONTEXT_SWITCHES, sample=_REGS_USER | _STACK_USER, period=1, registers=FRAMES.SAMPLED
)
"""Each switch, with the registers that tell where its thread is."""

_SAMPLE = 9
_HEADER = struct.Struct("<8xIIQQ")
"""Of a sample: process, thread, time, processor."""
_TOLD = struct.Struct("<2xB21xi")
"""Of the tracepoint ``sched_waking``: in what context, and who is woken."""
_HARD, _SOFT = 1 << 3, 1 << 4
_REGISTERS = struct.Struct("<QQQ")
_LONG = struct.Struct("<Q")


class UserStack(NamedTuple):
    """Where a thread is in its program."""

    frame: int
    """Its frame pointer,"""
    pointer: int
    """its stack pointer"""
    pc: int
    """and its program counter, where it called the kernel; 0: it is one of the kernel's own."""
    data: bytes
    """Of its stack, from ``pointer`` on."""


@dataclass(frozen=True, kw_only=True)
class Waking:
    """A thread was woken."""

    time: int
    """In ns of CLOCK_MONOTONIC_RAW."""
    woken: int
    process: int
    """Of the waker,"""
    thread: int
    """and its own id: in an interrupt, of whoever was interrupted."""
    in_interrupt: bool
    in_soft_interrupt: bool
    stack: UserStack
    """The waker's."""


class LeftProcessors(NamedTuple):
    """When a thread left processors, by time: of each record 16 bytes, as it is a record of half a
    kilobyte."""

    times: array.array[int]
    """In ns of CLOCK_MONOTONIC_RAW."""
    places: array.array[int]
    """Where the records of that are: see :func:`stack_at`."""


def open_wakings(tracepoint: int, processor: int, stack: int) -> int:
    """A descriptor of the event that records who wakes threads on a processor, in whatever process:
    the tracepoint ``sched_waking``, which has that number here, with ``stack`` bytes of the waker's
    own stack.

    Raises:
        OSError: the kernel refuses, as it does where this process is not privileged.
    """
    return perf.open_on(_wakings(tracepoint, stack), processor)


def open_own_wakings(tracepoint: int, thread: int) -> int:
    """The same of whom one thread wakes, with nothing of its stack.

    Raises:
        OSError: as :func:`open_wakings`.
    """
    return perf.open_of(_wakings(tracepoint, 0), thread)


def _wakings(tracepoint: int, stack: int) -> perf.PerfEvent:
    event = replace(_STACKS, type=_TRACEPOINT, config=tracepoint, stack=stack)
    return replace(event, sample=event.sample | _RAW)


def open_leavings(thread: int, processor: int, stack: int) -> int:
    """A descriptor of the event that records where a thread, and all those that it will make, leave
    a processor, with ``stack`` bytes of their stacks.

    Raises:
        OSError: the kernel refuses, as it does where ``kernel.perf_event_paranoid`` is 2 or more
            and this process is not privileged.
    """
    return perf.open_inherited(replace(_STACKS, stack=stack), thread, processor)


def wakings(data: bytes) -> Iterator[Waking]:
    """Those that :meth:`~darc.debuggee.perf.Ring.take` has taken out of a ring of
    :func:`open_wakings`. What cannot be read is left out."""
    for kind, record in perf.records_of(data):
        if kind == _SAMPLE and (found := _waking(record)) is not None:
            yield found


def _waking(record: bytes) -> Waking | None:
    try:
        process, thread, time, _processor = _HEADER.unpack_from(record)
        (size,) = struct.unpack_from("<I", record, _HEADER.size)
        at = _HEADER.size + 4
        flags, woken = _TOLD.unpack_from(record, at)
        stack = _stack_at(record, at + size)
    except struct.error:
        return None
    in_interrupt, in_soft = bool(flags & _HARD), bool(flags & _SOFT)
    return Waking(
        time=time,
        woken=woken,
        process=process,
        thread=thread,
        in_interrupt=in_interrupt,
        in_soft_interrupt=in_soft,
        stack=stack,
    )


def times(data: bytes) -> list[int]:
    """When those were that were taken out of a ring of :func:`open_leavings`, in ns."""
    return [_HEADER.unpack_from(data, at)[2] for at in _samples(data)]


def leavings(data: bytes) -> Mapping[int, LeftProcessors]:
    """All of these, by thread. ``data`` is of one processor, whose records come by time."""
    found: dict[int, LeftProcessors] = {}
    for at in _samples(data):
        _process, thread, time, _processor = _HEADER.unpack_from(data, at)
        known = found.get(thread)
        if known is None:
            known = found[thread] = LeftProcessors(array.array("Q"), array.array("Q"))
        known.times.append(time)
        known.places.append(at)
    return found


def _samples(data: bytes) -> Iterator[int]:
    """Where the samples begin."""
    at = 0
    for kind, record in perf.records_of(data):
        if kind == _SAMPLE and len(record) >= _HEADER.size:
            yield at
        at += len(record)


def stack_at(data: bytes, place: int) -> UserStack | None:
    """Where a thread was in its program when it left its processor, by the record at that
    ``place``; ``None``: it cannot be read."""
    try:
        return _stack_at(data, place + _HEADER.size)
    except struct.error:
        return None


def _stack_at(record: bytes, at: int) -> UserStack:
    """Raises struct.error: the record ends before."""
    (abi,) = _LONG.unpack_from(record, at)
    registers, at = (0, 0, 0), at + _LONG.size
    if abi:
        registers, at = _REGISTERS.unpack_from(record, at), at + _REGISTERS.size
    (room,) = _LONG.unpack_from(record, at)
    used = _LONG.unpack_from(record, at + 8 + room)[0] if room else 0
    return UserStack(*registers, record[at + 8 : at + 8 + min(used, room)])
