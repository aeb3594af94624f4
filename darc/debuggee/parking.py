"""How a thread that rang comes back into the program's own code.

The pad of f0 rings when f0 has returned and all that is left to do is to give the program its
registers back; that of a guard, behind whose exceptions calls are counted, when all that is left is
to go through what it guards. Until then they are on the thread's stack (``struct darc_parked``), so
that the thread need not run to where it goes on: no breakpoint has to stand there, which would end
a program whose debugger is killed just then.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.fieldnames import ParkedField, Structure
from darc.code.processor import (
    DETOURS,
    PROGRAM_COUNTER,
    RESULT,
    SCRATCH,
    STACK_POINTER,
    cfa_of,
    slot_of,
)
from darc.pads.foothold import Foothold
from darc.target.target import Target


def lead_home(target: Target, foothold: Foothold, slot: int) -> bool:
    """Sets the registers of the thread that rang and goes on with its stack pointer right above
    ``slot``, as where f0 returned from there. ``False``: no thread stands where it can be led home
    from; nothing was changed."""
    stack = cfa_of(slot)
    found = [one for one in _parked(target, foothold).items() if one[1].stack == stack]
    if not found:
        return False
    ((thread, row),) = found
    if DETOURS.is_restarted(row.registers[RESULT]):
        return False
    # The debugger may be killed between any two of these. Until the thread is at darc_home it goes
    # on by itself with what is on its stack; there only its stack pointer is still another one.
    for name in SCRATCH:
        target.threads.write_register(thread, name, row.registers[name])
    target.memory.write(foothold.symbol(AgentSymbol.HOME_STACK), struct.pack("<Q", stack))
    target.memory.write(foothold.symbol(AgentSymbol.HOME_BACK), struct.pack("<Q", row.back))
    target.threads.write_register(thread, PROGRAM_COUNTER, foothold.symbol(AgentSymbol.HOME))
    target.threads.write_register(thread, STACK_POINTER, stack)
    target.threads.write_register(thread, PROGRAM_COUNTER, row.back)
    return True


def parked_slots(target: Target, foothold: Foothold) -> dict[int, int]:
    """The threads that stand where they can be led home from, and :func:`lead_home`'s slots."""
    return {thread: slot_of(row.stack) for thread, row in _parked(target, foothold).items()}


class _Parked(NamedTuple):
    """What is on the stack of such a thread."""

    stack: int
    back: int
    registers: dict[str, int]
    """By their names; others are there as well."""


def _number(raw: bytes, place: tuple[int, int]) -> int:
    at, size = place
    return int.from_bytes(raw[at : at + size], "little")


def _parked(target: Target, foothold: Foothold) -> dict[int, _Parked]:
    """The threads that stand where they can be led home from, and what is on their stacks."""
    blob = compiled.load()
    first, end = foothold.symbol(AgentSymbol.PARKED), foothold.symbol(AgentSymbol.UNPARKED)
    found = {}
    for thread, pc in target.threads.program_counters().items():
        if first <= pc < end:
            stack = target.threads.read_register(thread, STACK_POINTER)
            raw = target.memory.read(stack, blob.sizes[Structure.PARKED])
            found[thread] = _Parked(
                stack=_number(raw, blob.fields[ParkedField.STACK]),
                back=_number(raw, blob.fields[ParkedField.BACK]),
                registers=blob.by_name(Structure.PARKED, raw),
            )
    return found
