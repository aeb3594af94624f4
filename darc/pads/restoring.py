"""What pads have changed is undone: return addresses on stacks, and what a killed debugger left."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence

from darc.agent.memory import AgentMemory
from darc.agent.rows import PatchedSite
from darc.agent.sites import Sites
from darc.agent.structures import RecordRow
from darc.code.landmarks import Landmark
from darc.code.processor import HOOK_LENGTH, branch_target, decode, is_hook
from darc.model.errors import TargetError
from darc.pads.returns import Own, Replaced
from darc.target.target import Target


def taken_out(count: int, where: str) -> str:
    """What the user is told of so many probes that :func:`clean_up` has taken out of the program or
    the kernel."""
    probes, were = ("1 probe", "it was") if count == 1 else (f"{count} probes", "they were")
    return f"an earlier debugger had left {probes} in the {where}: {were} taken out"


def clean_up(
    target: Target,
    tables: AgentMemory,
    is_pad: Callable[[int], bool],
    *,
    own_back: Own | None,
    retire: Callable[[], None] = lambda: None,
) -> int:
    """Takes out what a debugger that was killed left in the program: how many places.

    ``is_pad`` tells addresses in its pads, ``own_back`` is as in :func:`restore_stacks`, and
    ``retire`` lets threads that are on their way into a call come back past what was there. The
    debugger may have been killed before it wrote a place, and the file may be another one by now:
    only what leads to a pad is restored.
    """
    tables.enabled = False
    sites = tables.sites.patched()
    kinds = frozenset(tables.blob.constants.named(guard.value) for guard in Landmark)
    guards = [site for site in sites if site.kind in kinds]
    others = [site for site in sites if site.kind not in kinds]
    places = [range(site.address, site.address + len(site.original)) for site in sites]

    def restored(site: PatchedSite) -> bool:
        try:
            live = target.memory.read(site.address, len(site.original))
            found = decode(live, site.address)
            leads_to = (branch_target(found[0]) if found else None) or 0
            leads_on = is_pad(leads_to) or any(leads_to in place for place in places)
            if is_left := live != site.original and leads_on:
                target.memory.write(site.address, site.original)
            elif live != site.original and is_hooked(target, site.address):
                return False  # it may be written back still
        except TargetError:
            return False  # its file was unloaded
        tables.sites.set(site.index, patched=0)
        return is_left

    # As at an end: this debugger may be killed as well, and exceptions find what is still there.
    count = sum(restored(site) for site in others)
    restore_stacks(target, tables, own_back)
    retire()
    return count + sum(restored(site) for site in guards)


def is_hooked(target: Target, address: int) -> bool:
    """Whether what stands there, which is neither darc's nor what that replaced, is what inline
    hooks write: its file may have been unloaded, and another one be there."""
    with contextlib.suppress(TargetError):
        return is_hook(target.memory.read(address, HOOK_LENGTH))
    return False


def still_hooked(target: Target, sites: Sites) -> bool:
    """No analysis is under way: whether something stands in a patch's place that is neither darc's
    nor what was there before, as the program has written over it, or a patch itself. What was there
    before, or nothing, is the end of it."""
    for site in sites.patched():
        with contextlib.suppress(TargetError):
            if target.memory.read(site.address, len(site.original)) != site.original:
                continue
        sites.set(site.index, patched=0)
    return sites.any_patched


def restore_stacks(
    target: Target,
    tables: AgentMemory,
    own_back: Own | None,
    known: Sequence[RecordRow] | None = None,
) -> list[Replaced]:
    """Replaces every pad's return address that stands on a stack by the program's own; which.
    ``known`` are the records of calls that are open, where they are known.

    Where there are landings the word alone tells it, by ``own_back``: coroutines that share a stack
    may have put another one's frame where a record was made, also where none is open any more.
    """
    with target.companions:
        return _restored(target, tables, own_back, known)


def _restored(
    target: Target, tables: AgentMemory, own_back: Own | None, known: Sequence[RecordRow] | None
) -> list[Replaced]:
    replaced = list[Replaced]()
    if known is None:
        known = tables.records.open() if own_back is None else tables.records.used()
    for record in known:
        slot, is_open = record.slot, record.open
        try:
            word = int.from_bytes(tables.raw(slot, 8), "little")
            back = None if own_back is None else own_back(word)
            if back is None and is_open and word == record.pad_back:
                back = record.back
            if not back:
                continue  # not called yet, or left by a jump: its pad will see to it
            target.memory.write(slot, struct.pack("<Q", back))
            replaced.append(Replaced(slot, word, back))
        except TargetError:
            pass  # the stack is gone, and its thread with it
        if is_open:
            tables.records.close(record.at)
    target.memory.flush()
    target.frames.forget()  # others hear of each write, and may have looked in between
    return replaced
