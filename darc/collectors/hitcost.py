"""Where the cost of a hit is measured: at two instructions that follow each other."""

from __future__ import annotations

from darc.code.processor import LONGEST_INSTRUCTION, decode, falls_through
from darc.collectors.hitclock import HitClock
from darc.debuggee.duties import TakesBreakpoints
from darc.target.target import Target


class HitCost:
    """The two of one analysis; both have a breakpoint until the ``clock`` knows the cost."""

    def __init__(self, target: Target, debuggee: TakesBreakpoints, clock: HitClock) -> None:
        self._target = target
        self._debuggee = debuggee
        self._clock = clock
        self._first: int | None = None
        self._second: int | None = None

    @property
    def second(self) -> int | None:
        """The later one; ``None``: none was found yet."""
        return self._second

    def begin_at(self, address: int) -> None:
        """It is to be measured between the instruction there, which has a breakpoint, and one soon
        after it; not if it leads elsewhere."""
        at = address
        for _ in range(self._debuggee.calibration_steps):
            instruction = decode(self._target.memory.read(at, LONGEST_INSTRUCTION), at)[0]
            if not falls_through(instruction):
                return
            at = int(instruction.next_ip)
        self._first, self._second = address, at

    def is_measured_at(self, address: int) -> bool:
        """Whether it is still to be measured there."""
        return address == self._second and not self._clock.is_calibrated

    def hit(self, thread: int, address: int) -> None:
        """Every hit is told, within that of the clock."""
        if not self._clock.is_calibrated:
            follows = self._first if address == self._second else None
            self._clock.calibrate(thread, address, follows)
