"""What darc asks of a processor's code, and the values that it speaks of.

There is x86-64 alone (:mod:`darc.code.x86_64`). What a second architecture brings, file by file, is
listed in docs/extending/architecture.md: a :class:`CodeReader` here, a
:class:`~darc.pads.architecture.PadWriter`, the agent's stubs, and what knows registers or opcodes.

Instructions are iced's (:class:`Instruction`), whose type all of these share. Beyond them the
engine reads of one where it stands (``ip``, ``next_ip``), and asks the reader for the rest.

``processor.py``, here and in ``darc/pads/``, is the one place that says which one it is.

A frame is known by the stack word that holds its return address, as x86-64's calls put it there.
Where calls use a link register it is known by the stack pointer at its entry (DWARF's canonical
frame address): a pad at a call site knows that before the call, and it is the same behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from iced_x86 import Instruction as Instruction

from darc.code.frame_rule import FrameRule
from darc.model.ftree import CallKind

MAX_FUNCTION = 1 << 20
"""Bytes; more than that is no function but a mistake in the symbols."""


class FunctionOutlines(Protocol):
    """What files tell of functions (see :class:`darc.code.outlines.Outlines`)."""

    def extent(self, address: int) -> tuple[int, int] | None: ...
    def frame_rule(self, address: int) -> FrameRule | None: ...
    def landing_pads(self, address: int) -> frozenset[int] | None: ...
    def is_function_start(self, address: int) -> bool: ...
    def is_cold_part(self, address: int) -> bool: ...


class Surroundings(Protocol):
    """What must be known of the code around a function."""

    @property
    def outlines(self) -> FunctionOutlines: ...
    def read(self, address: int, size: int) -> bytes:
        """Raises TargetError where not all of it can be read."""

    def is_code(self, address: int) -> bool: ...
    def is_jumped_into(self, start: int, end: int) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place where a function leaves for another one.

    ``patch`` and ``length`` are the bytes that a patch covers; ``back`` is the return address (for
    a tail jump the address behind it); ``target`` is set where it is fixed; ``slot`` says where
    the calling frame's return address stands, seen from ``address``. ``displaced`` are the
    instructions before a short call or jump that must move into the pad. ``problem`` says why no
    pad can stand here.
    """

    address: int
    kind: CallKind
    patch: int
    length: int
    back: int
    target: int | None
    pointer: int | None
    instruction: Instruction
    slot: FrameRule | None
    displaced: tuple[Instruction, ...] = ()
    problem: str | None = None
    is_short: bool = False
    """Whether its own bytes have room for a short jump, which is all that fits: ``problem`` says
    why nothing longer does."""
    thunk: int | None = None
    """What an indirect call or jump really goes through (see :data:`Thunks`)."""
    is_own_callee: bool = False
    """Whether what is called there is the function that it stands in, whatever it calls in turn: an
    interrupt's handler."""
    nop: int = 0
    """Bytes of a nop behind a short call, which together have room for a long jump. Threads come
    back to the nop while that stands there (see :mod:`darc.pads.waypoints`)."""

    @property
    def is_jumped_from(self) -> bool:
        """Whether a call is led to its pad by a jump: the pad, not the patch, pushes where the call
        returns to."""
        return self.is_short or self.nop > 0


Thunks = Callable[[Instruction], Instruction | None]
"""What a direct call or jump to a thunk does in the end: a kernel's compiler writes
``call thunk_rax`` for ``call *%rax``. ``None`` for all others. Address and length stay those of the
instruction."""


@dataclass
class FunctionCode:
    """One function's code: its parts, instructions, branch targets and call sites."""

    entry: int
    parts: list[tuple[int, int]]
    instructions: dict[int, Instruction]
    targets: set[int] = field(default_factory=set)
    sites: list[Site] = field(default_factory=list)
    complete: bool = True
    depths: dict[int, FrameRule] | None = None
    thunks: dict[int, int] = field(default_factory=dict)
    """Where the instructions lead that were taken for others, by their addresses."""

    def contains(self, address: int) -> bool:
        """Whether ``address`` is in one of its parts."""
        return any(start <= address < end for start, end in self.parts)


@dataclass(frozen=True)
class Prologue:
    """The instructions at a function's entry that a 5-byte jump displaces."""

    entry: int
    instructions: tuple[Instruction, ...]
    length: int
    original: bytes


class CodeReader(Protocol):
    """Reads code of one architecture."""

    PATCH_LENGTH: int
    """Bytes of a direct call or jump: what a patch needs at least."""
    SHORT_JUMP: int
    """Bytes of the shortest jump."""
    LONGEST_INSTRUCTION: int
    """Bytes."""

    PROGRAM_COUNTER: str
    STACK_POINTER: str
    FRAME_POINTER: str
    """Registers, by the names that targets know and frame rules say."""
    RESULT: str
    """The register in which a function returns a word."""
    THREAD_POINTER: str
    """The register that tells the threads of a process apart."""
    FRAME_AT_ENTRY: FrameRule
    """Where a frame's CFA is at its function's first instruction."""
    PROGRAMS: str
    """What programs of this processor are to the user."""
    MACHINE: tuple[int, int]
    """What their ELF files say of it: the class and the machine."""
    LARGEST: int
    """Bytes of a part of a file in memory, at most."""
    LIBUNWIND: str
    """The processor in the names of libunwind's functions."""

    def slot_of(self, cfa: int) -> int:
        """The address by which the frame is known whose CFA is ``cfa``: of one that is called with
        the stack pointer there, which is there again behind its return."""

    def cfa_of(self, slot: int) -> int:
        """The CFA of the frame that is known by ``slot``."""

    def slot_at_entry(self, stack: int) -> int:
        """The address by which a frame is known, where its function has the stack pointer
        ``stack`` at its first instruction, and at the one that returns."""

    def decode(self, data: bytes, address: int) -> list[Instruction]:
        """All instructions of ``data``, swept from its first byte."""

    def instructions(self, data: bytes, address: int) -> Iterator[Instruction]:
        """The same, one after the other: a megabyte of them takes fifty in memory."""

    def read_function(
        self, entry: int, around: Surroundings, thunks: Thunks | None = None
    ) -> FunctionCode:
        """Reads the function that starts at ``entry``."""

    def read_prologue(
        self, function: FunctionCode, around: Surroundings, room: int = ...
    ) -> Prologue | str:
        """What must move for a jump of ``room`` bytes at ``function.entry``; a string says why it
        cannot."""

    def branch_target(self, instruction: Instruction) -> int | None:
        """Where a call or a jump leads that says so itself; ``None`` for everything else."""

    def jump_target(self, instruction: Instruction) -> int | None:
        """The same of a jump; ``None`` for everything else, calls too."""

    BREAKPOINT: bytes
    """The instruction that debuggers write where a program is to stop, a single byte."""
    SYSTEM_CALL: bytes
    """The instruction that calls the kernel."""
    SIGNAL_RETURN: bytes
    """What a signal's handler returns to, which lets the kernel take up what that interrupted."""
    CONTEXT_RETURN: bytes
    """What a function returns to that a coroutine of the C library's begins with."""
    LONGEST_CALL: int
    """Bytes before a return address in which a call can be told."""

    def ends_in_call(self, code: bytes) -> bool:
        """Whether ``code``, :attr:`LONGEST_CALL` bytes, may end in a call."""

    def called_before(self, code: bytes, back: int) -> int | None:
        """Where a call leads that says so itself, and returns to ``back``, which ``code`` stands
        before: :attr:`PATCH_LENGTH` bytes of it; ``None``: there is none."""

    def plt_slot(self, code: bytes, address: int) -> int | None:
        """Which GOT slot a PLT entry with this ``code`` jumps through; ``None``: it is none."""

    def is_lazy_binding(self, code: bytes, address: int) -> bool:
        """Whether ``code`` is the part of a PLT entry that has its slot bound."""

    def handed_to_c(self, code: bytes, address: int) -> int | None:
        """Which ``main`` a program's first ``code`` hands to the C library; ``None``: none."""

    def is_return(self, instruction: Instruction) -> bool:
        """Whether its function ends there, and goes back to its caller."""

    def is_system_call(self, instruction: Instruction) -> bool:
        """Whether it calls the kernel."""

    def is_relative(self, instruction: Instruction) -> bool:
        """Whether its operand in memory is named by the distance from it: the file's own data."""

    def goes_on(self, instruction: Instruction) -> bool:
        """Whether the one behind it is always executed next."""

    def may_move(self, instruction: Instruction) -> bool:
        """Whether it does the same in a pad: no jump, nothing that looks at where it stands."""
