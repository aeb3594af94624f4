"""How a thread that rang comes back into the program's own code.

The pad of f0 rings when f0 has returned and all that is left to do is to give the program its
registers back. Until then they are on the thread's stack (``struct darc_parked``), so that the
thread need not run to where f0 returns to: no breakpoint has to stand there, which would end a
program whose debugger is killed just then.
"""

from __future__ import annotations

import struct

from darc import agent
from darc.code.convention import SCRATCH
from darc.debuggee.detour import RESTARTED
from darc.pads.foothold import Foothold
from darc.target.target import Target


def lead_home(target: Target, foothold: Foothold, slot: int) -> bool:
    """Sets the registers of the thread that rang as f0 returned from ``slot``. ``False``: no thread
    stands where it can be led home from; nothing was changed."""
    found = _parked(target, foothold, slot)
    if found is None:
        return False
    thread, words = found
    if words["rax"] in RESTARTED:
        return False
    # The debugger may be killed between any two of these. Until the thread is at darc_home it goes
    # on by itself with what is on its stack; there only its stack pointer is still another one.
    for name in SCRATCH:
        target.threads.write_register(thread, name, words[name])
    target.memory.write(foothold.symbol("darc_home_rsp"), struct.pack("<Q", slot + 8))
    target.memory.write(foothold.symbol("darc_home_back"), struct.pack("<Q", words["back"]))
    target.threads.write_register(thread, "rip", foothold.symbol("darc_home"))
    target.threads.write_register(thread, "rsp", slot + 8)
    target.threads.write_register(thread, "rip", words["back"])
    return True


def parked_slots(target: Target, foothold: Foothold) -> dict[int, int]:
    """The threads that stand where they can be led home from, and from which slot f0 returned."""
    first, end = foothold.symbol("darc_parked"), foothold.symbol("darc_unparked")
    back = agent.load().offset("darc_parked.back")
    return {
        thread: target.threads.read_register(thread, "rsp") + back
        for thread, pc in target.threads.program_counters().items()
        if first <= pc < end
    }


def _parked(target: Target, foothold: Foothold, slot: int) -> tuple[int, dict[str, int]] | None:
    """The thread whose f0 returned from ``slot``, and what is on its stack."""
    blob = agent.load()
    for thread, found in parked_slots(target, foothold).items():
        if found == slot:
            stack = slot - blob.offset("darc_parked.back")
            raw = target.memory.read(stack, blob.sizes["darc_parked"])
            return thread, blob.unpack("darc_parked", raw)
    return None
