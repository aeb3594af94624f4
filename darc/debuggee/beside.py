"""Gives a program its code back beside a debugger that cannot let it go.

That is for lldb 14 and a program whose first thread has ended: its server waits for that thread at
every stop, for ever, and no debugger can attach to the process again. And for an lldb that is about
to end and hangs, as where its terminal was closed. All threads stand still, so what is noted in the
journal can be written back by ``/proc``, as the next debugger would do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence

from darc.code.processor import BREAKPOINT, branch_target, instructions
from darc.debuggee import journal, procfs
from darc.debuggee.companions import StillCompanions
from darc.model.errors import TargetError
from darc.target import living
from darc.target.target import Place, Region

_BREAKPOINT = BREAKPOINT[0]
_STOPPED = ("t", "T", *living.ENDED)
_CHANGE_SECONDS = 2.0
"""How long a process may take to stand still, or to be nobody's, once it was told to."""
_LOOK_SECONDS = 0.01


def is_noted(pid: int) -> bool:
    """Whether code of the process is noted as changed."""
    noted = journal.left(pid)
    return noted is not None and bool(noted.places)


def put_back(pid: int) -> bool:
    """Restores all code that is noted as changed, and under the breakpoints of the debugger, which
    is about to be gone. False: nothing is noted, or a thread is in what was changed."""
    noted = journal.left(pid)
    if noted is None or not noted.places or noted.passages:
        return False
    with StillCompanions(pid) as companions:
        own = [pc for pc in map(procfs.program_counter, procfs.threads(pid)) if pc is not None]
        counters = [*companions.program_counters().values(), *own]
        return _is_put_back(pid, list(noted.places), counters)


def _is_put_back(pid: int, places: Sequence[Place], counters: Sequence[int]) -> bool:
    with procfs.MemoryFile(pid) as memory:
        changed = [place for place in reversed(places) if _is_changed(place, memory)]
        relays = set(map(_leads_to, changed))  # what stands there is darc's alone
        for pc in counters:
            inside = any(p.address < pc < p.address + len(p.written) for p in changed)
            if inside or pc in relays:
                return False
        for place in changed:
            memory.write(place.address, place.original)
        if not procfs.catches(pid, signal.SIGTRAP):
            for region in procfs.regions(pid):
                _clear(pid, region, memory)
    return True


def let_go(pid: int, *, stands: bool = False) -> bool:
    """Of a process that a debugger's server traces, and lets run: stops it, gives it its code back
    as :func:`put_back` does, ends the server, and lets it go on. One that ``stands`` has only the
    server to wait for. ``False``: the code stays as it is. Where nothing is noted there is nothing
    to do."""
    server = procfs.tracer(pid)
    if not is_noted(pid):
        return True
    if not server:
        return False
    if not stands:
        os.kill(pid, signal.SIGSTOP)
    is_clean = (stands or _becomes(lambda: _stands(pid))) and put_back(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(server, signal.SIGKILL)
    if not stands:
        _becomes(lambda: not procfs.tracer(pid))
        os.kill(pid, signal.SIGCONT)
    return is_clean


def _stands(pid: int) -> bool:
    return all(living.state(pid, thread) in _STOPPED for thread in living.threads(pid))


def _becomes(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + _CHANGE_SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _is_changed(place: Place, memory: procfs.MemoryFile) -> bool:
    try:
        return journal.is_darcs(place, memory.read(place.address, len(place.original)))
    except TargetError:
        return False  # its file was unloaded


def _leads_to(place: Place) -> int | None:
    """Where the jump or call leads that was written there."""
    first = next(instructions(place.written, place.address), None)
    return None if first is None else branch_target(first)


def _clear(pid: int, region: Region, memory: procfs.MemoryFile) -> None:
    """Takes breakpoints out of the code of a file."""
    if "x" not in region.permissions or not region.inode or not region.path.startswith("/"):
        return
    try:
        with (procfs.root(pid) / region.path.lstrip("/")).open("rb") as file:
            seen = os.fstat(file.fileno())
            file.seek(region.offset)
            stored = file.read(region.end - region.start)
        live = memory.read(region.start, len(stored))
    except (OSError, TargetError):
        return
    is_it = (seen.st_dev, seen.st_ino) == (region.device, region.inode)
    if not is_it and any(
        one not in (other, _BREAKPOINT) for one, other in zip(live, stored, strict=False)
    ):
        return  # another file may stand there than the one that is mapped
    at = live.find(_BREAKPOINT) if live != stored else -1
    while at >= 0:
        if stored[at] != _BREAKPOINT:
            memory.write(region.start + at, stored[at : at + 1])
        at = live.find(_BREAKPOINT, at + 1)
