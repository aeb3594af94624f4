"""For how long the debugger's own threads have waited for processors, whatever it debugs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from darc.debuggee import procfs


def waited_by(threads: Iterable[int]) -> Mapping[int, int]:
    """For each of these ``threads`` of the debugger's, which is of this machine in any case: ns so
    far."""
    return {thread: procfs.waited_ns(thread) for thread in threads}
