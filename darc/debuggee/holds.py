"""Whether a debugger has held a program's threads, as far as the kernel tells.

Nothing tells of a debugger's stops by themselves, and darc hears of some only, and of these late.
But a thread that is held leaves its processor, and whoever lets it go on has to come to one. So
what has not been switched since, debugger or thread, has let nothing go on, or was not held.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from darc.debuggee import procfs

_HELD = ("t", "T")
_ASLEEP = ("S",)
_READY = ("R",)


@dataclass(frozen=True)
class Scheduled:
    """What the kernel tells of a thread at one moment."""

    state: str
    """A letter (``proc_pid_status(5)``)."""
    switches: int
    """How often it has left a processor so far."""
    ran_ns: int
    """For how long it has run so far, in ns; not more than that."""

    @property
    def is_held(self) -> bool:
        """Whether its debugger holds it, or a signal that has stopped it."""
        return self.state in _HELD

    @property
    def is_ready(self) -> bool:
        """Whether it runs, or would with a processor."""
        return self.state in _READY

    def was_let_run(self, before: Scheduled) -> float:
        """For how many seconds since ``before`` it was certainly not held, of the time that has
        passed: all of it, ``inf``, or as long as it ran."""
        is_same = self.switches == before.switches and not (self.is_held or before.is_held)
        return float("inf") if is_same else max(0, self.ran_ns - before.ran_ns) / 1e9


def scheduled(thread: int) -> Scheduled | None:
    """That of a thread of any process; ``None``: it is gone, or the kernel does not tell."""
    its = Path(f"/proc/{thread}")
    try:
        fields = dict(
            line.split(":\t", 1)
            for line in (its / "status").read_text(errors="replace").splitlines()
            if ":\t" in line
        )
        switches = int(fields["voluntary_ctxt_switches"])
        switches += int(fields["nonvoluntary_ctxt_switches"])
        return Scheduled(fields["State"][0], switches, (procfs.ran(thread) or (0, 0))[0])
    except (OSError, KeyError, IndexError, ValueError):
        return None


class Holds:
    """Of the process ``pid``. One thread at a time may ask."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._tracer = 0
        self._before: Scheduled | None = None
        """The debugger, where it slept and the program was not held when that was asked last."""

    def any_since(self) -> bool:
        """Whether it may have been held at any time since that was asked last."""
        if not self._tracer:
            self._tracer = procfs.tracer(self._pid)
        now = scheduled(self._tracer) if self._tracer else None
        is_quiet = now is not None and now.state in _ASLEEP and not procfs.is_held(self._pid)
        before, self._before = self._before, now if is_quiet else None
        if now is None:
            self._tracer = 0
            return bool(procfs.is_held(self._pid))
        return not is_quiet or before is None or now.switches != before.switches
