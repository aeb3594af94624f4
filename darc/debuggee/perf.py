"""The kernel's records of when threads leave their processors, of who gets these, and of who wakes
threads (perf_event_open(2)).

A *dummy* event counts nothing; with ``context_switch`` the kernel writes a record of each switch of
its thread into a ring of memory that is shared with this process. It needs no privilege where
``kernel.perf_event_paranoid`` is 2 or less. Nothing of it is in the program: events and rings are
this process's, and are gone with it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from darc.code.system_calls import SystemCall
from darc.debuggee.eventends import end
from darc.target.memory import PAGE

_FD_CLOEXEC = 8
_SET_OUTPUT = 0x2405

_SOFTWARE, _DUMMY = 1, 9
_TID, _TIME, _CPU = 1 << 1, 1 << 2, 1 << 7
_INHERIT, _EXCLUDE_KERNEL, _COMM, _TASK = 1 << 1, 1 << 5, 1 << 9, 1 << 13
_SAMPLE_ID_ALL, _USE_CLOCKID, _CONTEXT_SWITCH = 1 << 18, 1 << 25, 1 << 26
_INHERIT_THREAD = 1 << 35
_CLOCK_MONOTONIC_RAW = 4

_ATTR = struct.Struct("<IIQQQQQ32xQIi32x")
"""perf_event_attr up to ``clockid``; all that is not named is 0."""

_SET_FILTER = 0x40082406

_HEAD, _POINTERS = 1024, 16
"""Where ``data_head`` and ``data_tail`` are in the first page of a ring's memory."""

_HIGH = 1024
"""Descriptors lie above: a debugger that waits by select(2) can take none that is higher."""

_LARGEST_RECORD = 64
"""Bytes. With less room than that in a ring, a record may have been lost that nothing tells of
yet."""

_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class PerfEvent:
    """What the kernel is asked for."""

    type: int = _SOFTWARE
    config: int = _DUMMY
    flags: int = 0
    sample: int = 0
    """What a record has, beside who it is of, when it was and on which processor."""
    period: int = 0
    registers: int = 0
    """Which of the program's a record has, by bits,"""
    stack: int = 0
    """and how many bytes of its stack."""

    def attributes(self, inherited: int = 0) -> bytes:
        """The ``perf_event_attr``, with more flags that say by whom it is ``inherited``."""
        # With the processor a record of a switch has 32 bytes, and none lies across the end of a
        # page.
        kind = _TID | _TIME | _CPU | self.sample
        flags = _SAMPLE_ID_ALL | _USE_CLOCKID | self.flags | inherited
        return _ATTR.pack(
            *(self.type, _ATTR.size, self.config, self.period, kind, 0, flags),
            *(self.registers, self.stack, _CLOCK_MONOTONIC_RAW),
        )


_SWITCHES = PerfEvent(flags=_EXCLUDE_KERNEL | _CONTEXT_SWITCH)
_SWITCHES_AND_BIRTHS = PerfEvent(flags=_EXCLUDE_KERNEL | _CONTEXT_SWITCH | _TASK)
_NAMES_AND_BIRTHS = PerfEvent(flags=_TASK | _COMM)


def open_event(thread: int, processor: int = -1, *, inherit: bool = False) -> int:
    """A descriptor of the event that records the switches of a thread: wherever it runs, or on one
    processor alone. ``inherit``: also those of all threads that it will make, and they theirs;
    which takes an event for each processor.

    Raises:
        OSError: the kernel refuses.
    """
    if inherit:
        return open_inherited(_SWITCHES, thread, processor)
    return _opened(_SWITCHES_AND_BIRTHS.attributes(), thread, processor)


def open_takeovers(processor: int) -> int:
    """A descriptor of the event that records who gets a processor, in whatever process.

    Raises:
        OSError: the kernel refuses, as it does where this process is not privileged.
    """
    return open_on(_SWITCHES, processor)


def open_namings(processor: int) -> int:
    """The same for who is made there, and what it is called. Raises: as that."""
    return open_on(_NAMES_AND_BIRTHS, processor)


def open_on(event: PerfEvent, processor: int) -> int:
    """A descriptor of that event of whatever runs on a processor.

    Raises:
        OSError: the kernel refuses.
    """
    return _opened(event.attributes(), -1, processor)


def open_of(event: PerfEvent, thread: int) -> int:
    """A descriptor of that event of a thread, wherever it runs.

    Raises:
        OSError: the kernel refuses.
    """
    return _opened(event.attributes(), thread, -1)


def open_inherited(event: PerfEvent, thread: int, processor: int) -> int:
    """A descriptor of that event on a processor, of a thread and of all that it will make, and they
    theirs.

    Raises:
        OSError: the kernel refuses.
    """
    try:
        return _opened(event.attributes(_INHERIT | _INHERIT_THREAD), thread, processor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    # Linux before 5.13 has children of forks inherit it, too.
    return _opened(event.attributes(_INHERIT), thread, processor)


def _opened(attributes: bytes, thread: int, processor: int) -> int:
    fd = _libc.syscall(
        *(SystemCall.PERF_EVENT_OPEN, attributes, thread, processor, -1, _FD_CLOEXEC)
    )
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return _raised(fd)


def set_filter(fd: int, wanted: str) -> None:
    """Only records of a tracepoint's event for which that holds are written.

    Raises:
        OSError: the kernel refuses.
    """
    if _libc.ioctl(fd, ctypes.c_ulong(_SET_FILTER), ctypes.c_char_p(wanted.encode())):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _raised(fd: int) -> int:
    """The same descriptor, above those that others in this process may need."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:  # the limit is not higher
        return fd
    os.close(fd)
    return high


def why_refused(number: int) -> str:
    """What an error of :func:`open_event` means, and what to do about it: one line."""
    if number in (errno.EACCES, errno.EPERM):
        try:
            paranoid = int(_PARANOID.read_text())
        except (OSError, ValueError):
            paranoid = 0
        if paranoid > 2:
            why = f"kernel.perf_event_paranoid is {paranoid}"
            how = "'sysctl kernel.perf_event_paranoid=2', or CAP_PERFMON for the debugger, allows"
            return f"{why}: {how} it"
        return (
            "perf_event_open is forbidden here: a container must allow the call (its seccomp "
            "profile), and the program must be one that this user may debug"
        )
    if number == errno.ENOSYS:
        return "this kernel, or a container's seccomp profile, has no perf_event_open"
    if number in (errno.EMFILE, errno.ENFILE):
        return "the debugger has too many open files: raise 'ulimit -n'"
    if number == errno.ENOMEM:
        return "no memory may be locked for it: raise 'ulimit -l', or kernel.perf_event_mlock_kb"
    if number == errno.ESRCH:
        return "its threads have ended"
    return f"perf_event_open failed: {os.strerror(number)}"


@dataclass(frozen=True)
class Drained:
    """What was in a ring: whole records, one after the other."""

    data: bytes
    was_full: bool
    """Whether there may have been no room for more, which no record tells of yet."""


class Ring:
    """The memory that the records of one event, and of those led to it, come to. Its owner closes
    it."""

    def __init__(self, fd: int, pages: int) -> None:
        """``pages``: of data, a power of two. Takes over the descriptor.

        Raises:
            OSError: there may not be so much of it.
        """
        self.fd = fd
        self.size = pages * PAGE
        """Bytes for records."""
        # Python's mmap would keep a second descriptor.
        access = mmap.PROT_READ | mmap.PROT_WRITE
        address = _libc.mmap(None, PAGE + self.size, access, mmap.MAP_SHARED, fd, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._address = address
        memory = (ctypes.c_char * (PAGE + self.size)).from_address(address)
        self._view = memoryview(memory).cast("B")
        self._pointers = self._view[_HEAD : _HEAD + _POINTERS].cast("Q")

    def take(self) -> Drained:
        """Takes out all records that are there.

        The kernel writes a record before it moves the head behind it; x86 keeps the order of two
        reads, and that of a read and a later write, so that no fence is needed on this side
        (perf_event.h, ``data_head``).
        """
        head, tail = self._pointers[0], self._pointers[1]
        begin, count = tail % self.size, head - tail
        first = min(count, self.size - begin)
        start = PAGE + begin
        taken = bytes(self._view[start : start + first])
        taken += bytes(self._view[PAGE : PAGE + count - first])
        self._pointers[1] = head
        return Drained(taken, count > self.size - _LARGEST_RECORD)

    def lead_here(self, fd: int) -> None:
        """The records of another event on the same processor come to this ring as well."""
        fcntl.ioctl(fd, _SET_OUTPUT, self.fd)

    def close(self) -> None:
        """Also the event ends, soon (:mod:`darc.debuggee.eventends`). Nothing may be taken any
        more."""
        self._pointers.release()
        self._view.release()
        _libc.munmap(self._address, PAGE + self.size)
        end(self.fd)


def map_ring(fd: int, most: int) -> Ring:
    """A ring of ``most`` pages of data, or of as many as this user may lock in memory. Takes over
    the descriptor, also where it raises.

    Raises:
        OSError: not even one.
    """
    pages = 1 << max(0, most.bit_length() - 1)
    while True:
        try:
            return Ring(fd, pages)
        except OSError as error:
            if pages == 1:
                os.close(fd)
                raise OSError(errno.ENOMEM, str(error)) from None
            pages //= 2


def processors() -> list[int]:
    """The numbers of those that are in use."""
    text = Path("/sys/devices/system/cpu/online").read_text().strip()
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


# ------------------------------------------------------------------------ records

_LOST, _NAMED, _BORN, _SWITCH = 2, 3, 7, 14
_MISC_OUT, _MISC_PREEMPTED = 1 << 13, 1 << 14

_HEADER = struct.Struct("<IHH")
_RECORD = struct.Struct("<IHHIIQQ")
"""A switch: header, process, thread, time, processor."""
_TRAILER = struct.Struct("<IIQQ")
"""The end of every record: process, thread, time, processor."""
_NEW_THREAD = struct.Struct("<IIII")
"""Of a fork: process, its parent, thread, its parent."""


class Switch(NamedTuple):
    """A thread left its processor, or came back to one."""

    time: int
    """In ns of CLOCK_MONOTONIC_RAW."""
    thread: int
    is_out: bool
    was_preempted: bool = False
    """Going out, it could have run on."""


@dataclass(frozen=True)
class Born:
    """A task was made: a thread of any process."""

    time: int
    process: int
    thread: int


@dataclass(frozen=True)
class Loss:
    """There was no room for records, for some time up to this one."""

    time: int


def time_of_first(data: bytes) -> int | None:
    """That of the first record, in ns; ``None``: there is none."""
    if len(data) < _RECORD.size:
        return None
    _kind, _misc, size = _HEADER.unpack_from(data)
    if not _TRAILER.size <= size <= len(data):
        return None
    return int(_TRAILER.unpack_from(data, size - _TRAILER.size)[2])


def switches_between(data: bytes, begin: int, end: int) -> list[Switch] | None:
    """The switches of these times, where ``data`` holds nothing but switches, which come by time;
    ``None``: it holds others as well. Reads few of many."""
    if not _are_all(data, _SWITCH, _RECORD.size):
        return None
    times = memoryview(data).cast("Q")[2:][:: _RECORD.size // 8]
    part = data[bisect_left(times, begin) * _RECORD.size : bisect_right(times, end) * _RECORD.size]
    return [
        Switch(time, thread, bool(misc & _MISC_OUT), bool(misc & _MISC_PREEMPTED))
        for _, misc, _, _, thread, time, _ in _RECORD.iter_unpack(part)
    ]


def _are_all(data: bytes, kind: int, size: int) -> bool:
    """Whether it holds nothing but records of this kind and size."""
    count, rest = divmod(len(data), size)
    return (
        not rest
        and data[::size] == bytes([kind]) * count
        and data[6::size] == bytes([size]) * count
    )


def records(data: bytes) -> Iterator[Switch | Born | Loss]:
    """All that :meth:`Ring.take` has taken out, in its order. What cannot be read is a loss."""
    at, end = 0, len(data)
    unpack, last = _RECORD.unpack_from, 0
    while end - at >= _RECORD.size:
        kind, misc, size, _process, thread, time, _processor = unpack(data, at)
        if size < _RECORD.size or size > end - at:
            break
        if kind == _SWITCH:
            last = time
            yield Switch(time, thread, bool(misc & _MISC_OUT), bool(misc & _MISC_PREEMPTED))
        else:
            last = _TRAILER.unpack_from(data, at + size - _TRAILER.size)[2]
            if kind == _LOST:
                yield Loss(last)
            elif kind == _BORN:
                process, _parent, born, _maker = _NEW_THREAD.unpack_from(data, at + _HEADER.size)
                yield Born(last, process, born)
        at += size
    if at != end:
        yield Loss(last or sys.maxsize)


_TAKEOVER = 15
_TAKEN_OVER = struct.Struct("<IHHIIIIQQ")
"""Header, process and thread before or after, process, thread, time, processor."""


class Takeover(NamedTuple):
    """A thread got a processor that another one had."""

    time: int
    """In ns of CLOCK_MONOTONIC_RAW."""
    process: int
    """Of the thread; 0: nothing is to be done."""
    thread: int
    process_before: int
    thread_before: int


def are_takeovers(data: bytes) -> bool:
    """Whether it holds nothing but records of a ring of :func:`open_takeovers`, for all of which
    there was room."""
    return _are_all(data, _TAKEOVER, _TAKEN_OVER.size)


def takeovers_between(data: bytes, begin: int, end: int) -> Iterator[Takeover]:
    """Those behind ``begin``, up to ``end``, of what :func:`are_takeovers`, by time. Reads few of
    many."""
    times = memoryview(data).cast("Q")[3:][:: _TAKEN_OVER.size // 8]
    first, last = bisect_right(times, begin), bisect_right(times, end)
    part = data[first * _TAKEN_OVER.size : last * _TAKEN_OVER.size]
    for record in _TAKEN_OVER.iter_unpack(part):
        _, misc, _, before, thread_before, process, thread, time, _ = record
        if not misc & _MISC_OUT:
            yield Takeover(
                time=time,
                process=process,
                thread=thread,
                process_before=before,
                thread_before=thread_before,
            )


def some_of(data: bytes, most: int) -> set[tuple[int, int]]:
    """Processes and threads of ``most`` records of such a ring, from all over it."""
    count = len(data) // _TAKEN_OVER.size
    found = set()
    for number in range(0, count, max(1, count // most)):
        _, _, _, _, _, process, thread, _, _ = _TAKEN_OVER.unpack_from(
            data, number * _TAKEN_OVER.size
        )
        found.add((process, thread))
    return found


@dataclass(frozen=True)
class Naming:
    """A thread got a name, or was made by another one and has that one's."""

    process: int
    thread: int
    name: str = ""
    made_by: tuple[int, int] | None = None
    """Process and thread."""


def namings(data: bytes) -> Iterator[Naming]:
    """Those of a ring of :func:`open_namings`. What cannot be read is left out."""
    for kind, record in records_of(data):
        if kind == _NAMED:
            process, thread = struct.unpack_from("<II", record, _HEADER.size)
            name = record[_HEADER.size + 8 : len(record) - _TRAILER.size].partition(b"\0")[0]
            yield Naming(process, thread, name.decode("utf-8", "replace"))
        elif kind == _BORN:
            process, before, thread, thread_before = _NEW_THREAD.unpack_from(record, _HEADER.size)
            yield Naming(process, thread, made_by=(before, thread_before))


def records_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The kinds of records that have an end as that of a switch, and each as a whole. What cannot
    be read, and all behind it, is left out."""
    at = 0
    while len(data) - at >= _HEADER.size:
        kind, _misc, size = _HEADER.unpack_from(data, at)
        if not _HEADER.size + _TRAILER.size <= size <= len(data) - at:
            return
        yield kind, data[at : at + size]
        at += size
