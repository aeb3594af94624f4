"""The time-stamp counter: how many of its cycles make a second, and whether that can be trusted."""

from __future__ import annotations

import ctypes
import functools
import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from darc.model.errors import UnsupportedError

# rdtsc; shl rdx, 32; or rax, rdx; ret
_READ_TSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")
_MEASURED_SECONDS = 0.03


@dataclass(frozen=True)
class Use:
    """What a thread has had of processors so far: how long it was running."""

    ns: int
    """For how long it has executed, the kernel on its behalf included."""
    pauses: int
    """How often it has given its processor up of itself: to sleep, and at every stop for a
    debugger."""


@functools.cache
def _reader() -> tuple[Callable[[], int], mmap.mmap]:
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(_READ_TSC)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return ctypes.CFUNCTYPE(ctypes.c_uint64)(address), memory


def _sample(now_ns: Callable[[], int] = time.monotonic_ns) -> tuple[int, int]:
    """The counter and the clock at one moment, the closest of a few attempts."""
    read, _memory = _reader()
    best: tuple[int, int, int] | None = None
    for _ in range(20):
        before = now_ns()
        cycles = int(read())
        after = now_ns()
        if best is None or after - before < best[0]:
            best = (after - before, cycles, (before + after) // 2)
    assert best is not None
    return best[1], best[2]


def tsc_now() -> int:
    """The counter now. All processors of a machine whose counter is invariant have the same."""
    return int(_reader()[0]())


def raw_now() -> int:
    """CLOCK_MONOTONIC_RAW in ns: it runs as evenly as the counter does, as nobody corrects it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def raw_pair() -> tuple[int, int]:
    """The counter, and :func:`raw_now` at the same moment, to about 1 µs."""
    return _sample(raw_now)


@functools.cache
def tsc_hz() -> int:
    """Cycles of this machine's time-stamp counter in one second, measured against the monotonic
    clock (to about 0.01 %).

    Raises:
        UnsupportedError: this process may not run the instruction.
    """
    try:
        first_cycles, first_ns = _sample()
        time.sleep(_MEASURED_SECONDS)
        last_cycles, last_ns = _sample()
    except (OSError, ValueError) as error:
        raise UnsupportedError(f"cannot read the time-stamp counter here: {error}") from None
    return round((last_cycles - first_cycles) * 1e9 / (last_ns - first_ns))


@functools.cache
def tsc_is_invariant() -> bool:
    """Whether the counter runs at one rate in every power state and on every processor (Intel SDM
    17.17.1; the kernel's constant_tsc and nonstop_tsc)."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return "constant_tsc" in flags and "nonstop_tsc" in flags
