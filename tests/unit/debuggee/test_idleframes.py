"""Signals' frames that nothing comes back to, and those that something may: memory of this process
stands for stacks, and for what else a program has."""

from __future__ import annotations

import ctypes
import os
import struct

import pytest

from darc.code.processor import GENERAL, SIGNAL_RETURN, STACK_POINTER, THREAD_POINTER
from darc.debuggee.idleframes import forget_idle
from darc.debuggee.procfs import MemoryFile
from darc.target.target import Region
from tests.fake_target import FakeTarget

SIZE = 1 << 16
FRAME = 0x8000
"""Where on the stack a frame begins, with what its handler returns to;"""
COUNTER = FRAME + 176
"""and where in it the program counter is (``struct rt_sigframe`` of the kernel)."""
PAD = 0x5555_4000_1240
GUARD = 0xB1F7_3C55_D00D_1E5B


class SignalledThread:
    """A stack with a signal's frame, other memory, and a thread, whose stack is elsewhere."""

    def __init__(self) -> None:
        self._room = ctypes.create_string_buffer(2 * SIZE + 16)
        self.stack = -(-ctypes.addressof(self._room) // 16) * 16
        self.heap = self.stack + SIZE
        self._code = ctypes.create_string_buffer(SIGNAL_RETURN + bytes(8))
        self._own = ctypes.create_string_buffer(bytes(0x30) + struct.pack("<Q", GUARD))
        self.target = FakeTarget()
        self.thread = self.target.add_thread(1, **dict.fromkeys(GENERAL, 0))
        self.thread.registers[THREAD_POINTER] = ctypes.addressof(self._own)
        self.thread.registers[STACK_POINTER] = self.stack + COUNTER + 4096
        self.leading: dict[int, int] = {}

    def write(self, place: int, *words: int) -> None:
        """At an address."""
        ctypes.memmove(place, struct.pack(f"<{len(words)}Q", *words), 8 * len(words))

    def interrupt(self, alternate: tuple[int, int, int] = (0, 2, 0), at: int = FRAME) -> int:
        """A handler has come upon a pad; where the program counter is. ``alternate`` is the stack
        for such handlers: where it begins, its flags, its size."""
        frame, counter = self.stack + at, self.stack + at + 176
        self.write(frame, ctypes.addressof(self._code), 7, 0, *alternate)
        self.write(counter - 8, self.stack + SIZE - 64, PAD, 0x246, 0x2B_0000_0000_0033)
        self.write(counter + 56, self.stack + at + 448)
        self.leading[counter] = PAD
        return counter

    def left(self) -> set[int]:
        """Which of the places lead somewhere."""
        parts = [range(self.stack, self.heap), range(self.heap, self.heap + SIZE)]
        mapped = [
            Region(start=one.start, end=one.stop, permissions="rw-p", offset=0, path="")
            for one in parts
        ]
        with MemoryFile(os.getpid()) as memory:
            forget_idle(
                self.target,
                memory,
                mapped=mapped,
                parts=parts,
                leading=self.leading,
            )
        return set(self.leading)


@pytest.fixture
def world() -> SignalledThread:
    return SignalledThread()


def hidden(word: int) -> int:
    """As glibc's ``setjmp`` saves a stack pointer (``PTR_MANGLE``)."""
    mixed = word ^ GUARD
    return (mixed << 17 | mixed >> 47) & (1 << 64) - 1


def test_the_handler_has_come_back(world: SignalledThread) -> None:
    """What has left it stands on its stack, and what the program knows of that is where it
    begins, and what lies above."""
    counter = world.interrupt()
    world.leading[counter - 64] = PAD  # a register that was saved
    world.write(world.stack + FRAME - 128, world.stack + FRAME - 64)  # one of the handler's own
    world.write(world.heap + 64, world.stack, world.stack + COUNTER + 8, world.stack + SIZE)
    assert world.left() == set()


@pytest.mark.parametrize("name", [STACK_POINTER, "rbx"])
def test_a_thread_is_in_the_handler_or_knows_of_it(world: SignalledThread, name: str) -> None:
    counter = world.interrupt()
    world.thread.registers[name] = world.stack + FRAME - 256
    assert world.left() == {counter}


@pytest.mark.parametrize("is_hidden", [False, True], ids=["plain", "setjmp"])
@pytest.mark.parametrize("place", [SIZE + 4096, COUNTER + 64, SIZE - 8], ids=hex)
@pytest.mark.parametrize("below", [8, FRAME - 8, FRAME], ids=hex)
def test_the_handler_has_changed_to_another_fiber(
    world: SignalledThread, below: int, place: int, is_hidden: bool
) -> None:
    """Whose stack pointer is kept for it somewhere: in other memory, or further up."""
    counter, pointer = world.interrupt(), world.stack + below
    world.write(world.stack + place, hidden(pointer) if is_hidden else pointer)
    assert world.left() == {counter}


def test_it_is_kept_on_that_stack_and_something_leads_there(world: SignalledThread) -> None:
    counter = world.interrupt()
    world.write(world.stack + FRAME - 512, world.stack + FRAME - 600)
    world.write(world.heap + 8, world.stack + FRAME - 512)
    assert world.left() == {counter}


def test_an_alternate_stack_ends_where_it_is_told_to(world: SignalledThread) -> None:
    """Other stacks in the same mapping are in use, and words of theirs lead to each other."""
    world.interrupt((world.stack + 0x4000, 0, 0x8000))
    world.write(world.heap, world.stack + 0x2000)
    world.thread.registers[STACK_POINTER] = world.stack + 0x3000
    assert world.left() == set()


def test_an_alternate_stack_that_the_frame_is_not_on(world: SignalledThread) -> None:
    counter = world.interrupt((world.heap, 0, SIZE))
    world.thread.registers[STACK_POINTER] = world.stack + 0x3000
    assert world.left() == {counter}


def test_of_two_frames_the_lower_one_is_over(world: SignalledThread) -> None:
    upper, lower = world.interrupt(), world.interrupt(at=0x4000)
    world.thread.registers[STACK_POINTER] = world.stack + 0x6000
    assert world.left() == {upper}
    assert upper > lower


@pytest.mark.parametrize("what", ["return", "vectors", "segment"])
def test_words_that_no_kernel_has_saved(world: SignalledThread, what: str) -> None:
    """A copy of such a frame, say: it is found by other words than a stack pointer."""
    counter = world.interrupt()
    place = {"return": world.stack + FRAME, "vectors": counter + 56, "segment": counter + 16}[what]
    world.write(place, world.heap)
    assert world.left() == {counter}


def test_threads_whose_registers_are_too_many_to_be_read(world: SignalledThread) -> None:
    counter = world.interrupt()
    for thread in range(2, 400):
        world.target.add_thread(thread)
    assert world.left() == {counter}
