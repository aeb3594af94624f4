"""What darc asks of a processor, and the values that it speaks of.

A second architecture brings what is asked for here: a :class:`CodeReader`, a
:class:`RestartReader`, a :class:`Convention`, a :class:`DetourWriter` and :class:`FrameRegisters`;
what :mod:`darc.pads.architecture` asks for, a ``PadWriter``, a ``CellWriter`` and a
``WaypointWriter``; the numbers of system calls (``system_calls.py``); the agent's stubs; and what
knows registers or opcodes besides, which docs/extending/architecture.md lists file by file. There
is x86-64 alone: ``x86_64.py``, here and in ``darc/pads/``, and the files that begin with that name.
``processor.py`` beside it is the one place that says so, and all others ask that.

An instruction is whatever the reader's decoder makes (:class:`Instruction`). Others know where it
stands, and hand it back to the reader, which knows the rest.

A frame is known by the stack word that holds its return address, as x86-64's calls put it there.
Where calls use a link register it is known by the stack pointer at its entry (DWARF's canonical
frame address): a pad at a call site knows that before the call, and it is the same behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol

from darc.code.frame_rule import FrameRule
from darc.model.ftree import CallKind
from darc.model.refusal import Refusal

if TYPE_CHECKING:  # mypy has it, where darc runs nobody need
    from typing_extensions import TypeVar
else:
    from typing import TypeVar

MAX_FUNCTION = 1 << 20
"""Bytes; more than that is no function but a mistake in the symbols."""


class Instruction(Protocol):
    """One instruction, as its processor's decoder made it."""

    @property
    def ip(self) -> int:
        """Where it stands."""

    @property
    def next_ip(self) -> int:
        """Where the one behind it stands."""

    @property
    def len(self) -> int:
        """Bytes."""


if TYPE_CHECKING:
    Own = TypeVar("Own", bound=Instruction, default=Instruction)
    Own_co = TypeVar("Own_co", bound=Instruction, covariant=True, default=Instruction)
    Own_contra = TypeVar("Own_contra", bound=Instruction, contravariant=True, default=Instruction)
else:  # before Python 3.13 they have no defaults
    Own, Own_co, Own_contra = map(TypeVar, ("Own", "Own_co", "Own_contra"))
"""What one processor's decoder makes: the files of that name it. To others, who say nothing of it,
it is any :class:`Instruction`."""

FrameRules = Callable[[int], FrameRule | None]
"""What the frame information says of an address."""

ReadRegister = Callable[[str], int]
ReadWord = Callable[[int], int]
"""Of the thread that stands at an instruction, and of its memory."""


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
class Site(Generic[Own_co]):
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
    instruction: Own_co
    slot: FrameRule | None
    displaced: tuple[Own_co, ...] = ()
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


@dataclass(frozen=True)
class Thunk:
    """A piece of code that does one instruction's work: a kernel's compiler writes calls of it
    where it would call through a register, and jumps to another one where it would return."""

    register: str | None
    """What is called or jumped to through it; ``None``: it returns."""


Thunks = Callable[[int], Thunk | None]
"""Which one is at an address that a direct call or jump leads to; ``None``: there is none."""


@dataclass
class FunctionCode(Generic[Own_co]):
    """One function's code: its ranges, instructions, branch targets and call sites."""

    entry: int
    ranges: list[tuple[int, int]]
    instructions: dict[int, Own_co]
    targets: set[int] = field(default_factory=set)
    sites: list[Site[Own_co]] = field(default_factory=list)
    complete: bool = True
    depths: dict[int, FrameRule] | None = None
    thunks: dict[int, int] = field(default_factory=dict)
    """Where the instructions lead that were taken for others, by their addresses."""

    def contains(self, address: int) -> bool:
        """Whether ``address`` is in one of its ranges."""
        return any(start <= address < end for start, end in self.ranges)


@dataclass(frozen=True)
class Prologue(Generic[Own_co]):
    """The instructions at a function's entry that a jump displaces."""

    entry: int
    instructions: tuple[Own_co, ...]
    length: int
    original: bytes


@dataclass(frozen=True, kw_only=True)
class Relocations:
    """What the dynamic linker does with a word of a file, by the numbers that a processor has for
    the kinds of that."""

    named: frozenset[int]
    """It puts the address of a symbol there."""
    relative: int
    """It adds where the file is loaded."""
    resolved: int
    """It puts there what a resolver (IFUNC) returns, whose address the relocation has."""


class CodeReader(Protocol[Own]):
    """Reads code of one architecture. It is asked about no instructions but its own."""

    PATCH_LENGTH: int
    """Bytes of a direct call or jump: what a patch needs at least."""
    SHORT_JUMP: int
    """Bytes of the shortest jump."""
    SHORT_REACH: range
    """How far that leads, in bytes from its end."""
    HOOK_LENGTH: int
    LONGEST_JUMP: int
    """Bytes of a direct one."""
    LONGEST_INSTRUCTION: int
    """Bytes."""
    PATCH_REACH: int
    """Bytes from a function's beginning that a patch there may change."""

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
    RELOCATIONS: Relocations
    """What its files have of these."""

    def slot_of(self, cfa: int) -> int:
        """The address by which the frame is known whose CFA is ``cfa``: of one that is called with
        the stack pointer there, which is there again behind its return."""

    def cfa_of(self, slot: int) -> int:
        """The CFA of the frame that is known by ``slot``."""

    def slot_at_entry(self, stack: int) -> int:
        """The address by which a frame is known, where its function has the stack pointer
        ``stack`` at its first instruction, and at the one that returns."""

    def decode(self, data: bytes, address: int) -> list[Own]:
        """All instructions of ``data``, swept from its first byte."""

    def instructions(self, data: bytes, address: int) -> Iterator[Own]:
        """The same, one after the other: a megabyte of them takes fifty in memory."""

    def read_function(
        self, entry: int, around: Surroundings, thunks: Thunks | None = None
    ) -> FunctionCode[Own]:
        """Reads the function that starts at ``entry``."""

    def read_prologue(
        self, function: FunctionCode[Own], around: Surroundings, room: int = ...
    ) -> Prologue[Own] | Refusal:
        """What must move for a jump of ``room`` bytes at ``function.entry``, or why it cannot."""

    def branch_target(self, instruction: Own) -> int | None:
        """Where a call or a jump leads that says so itself; ``None`` for everything else."""

    def jump_target(self, instruction: Own) -> int | None:
        """The same of a jump; ``None`` for everything else, calls too."""

    BREAKPOINT: bytes
    """The instruction that debuggers write where a program is to stop, a single byte."""
    SYSTEM_CALL: bytes
    """The instruction that calls the kernel."""
    RETURN: bytes
    """The instruction that returns."""
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

    CALL_THROUGH: int
    """Bytes of a call through a word that stands near."""

    def ends_in_call_through(self, code: bytes) -> bool:
        """Whether ``code``, :attr:`CALL_THROUGH` bytes, looks as if it ends in a call through a
        register or such a word."""

    def led_to(self, code: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Where direct calls and jumps are in code that is at ``start``, and where they lead. What
        looks like one in the middle of another instruction is among them: it leads nowhere."""

    def led_through(self, code: bytes, start: int) -> Iterator[int]:
        """The words of the same file that calls go through, as those of ``-fno-plt`` do;
        likewise."""

    def pointed_to(self, code: bytes, start: int) -> Iterator[int]:
        """What the code takes the address of, as of a function that it hands on; likewise."""

    STACK_CHECK: int
    """Bytes of a function's first code in which it looks at how much of its stack is left."""

    def splits_stack(self, code: bytes) -> bool:
        """Whether ``code``, the first :attr:`STACK_CHECK` bytes of a function, looks at that, as
        its stack grows in pieces (-fsplit-stack)."""

    EXCEPTION_RETURN: re.Pattern[bytes]
    """How a function ends that lands an exception, as only gcc's ``__builtin_eh_return`` does."""
    SANDBOX_CALL: re.Pattern[bytes]
    """Code that makes the system calls ``prctl`` and ``seccomp``, or the one that its caller names,
    as libc's ``prctl`` and ``syscall`` do."""

    PLT_ENTRY: int
    """Bytes of a PLT's entry."""

    def plt_slot(self, code: bytes, address: int) -> int | None:
        """Which GOT slot a PLT entry with this ``code`` jumps through; ``None``: it is none."""

    def is_lazy_binding(self, code: bytes, address: int) -> bool:
        """Whether ``code`` is the part of a PLT entry that has its slot bound."""

    def handed_to_c(self, code: bytes, address: int) -> int | None:
        """Which ``main`` a program's first ``code`` hands to the C library; ``None``: none."""

    def is_return(self, instruction: Own) -> bool:
        """Whether its function ends there, and goes back to its caller."""

    def is_system_call(self, instruction: Own) -> bool:
        """Whether it calls the kernel."""

    def is_relative(self, instruction: Own) -> bool:
        """Whether its operand in memory is named by the distance from it: the file's own data."""

    def is_hook(self, code: bytes) -> bool:
        """Whether ``code``, of ``HOOK_LENGTH`` bytes, or less at the end of what is there, leads
        away at once, as what libraries of hooks write over functions does."""

    def falls_through(self, instruction: Own) -> bool:
        """Whether the one behind it is always executed next."""

    def is_mute(self, instruction: Own) -> bool:
        """Whether nobody can tell where it is run: it may move, and cannot well fault (a handler of
        SIGSEGV may know the places of a runtime's own faults, and may be installed later)."""

    def is_padding(self, instruction: Own) -> bool:
        """Whether it is what compilers fill gaps between functions with."""

    def is_indirect_call(self, instruction: Own) -> bool:
        """Whether it calls what a register or a word of memory says."""

    def epilogues(self, function: FunctionCode[Own]) -> list[int]:
        """Before each of the function's returns an address from which on as many bytes as a patch
        has are run to their end, with the flags dead. Empty where that is not so for one of
        them."""

    def is_looked_at(
        self,
        entry: int,
        code: Sequence[Own],
        rules: FrameRules | None,
        only_notes: Callable[[int], bool] = ...,
    ) -> bool:
        """Whether an instruction of ``code``, a function or a part of one that is entered at
        ``entry``, reads, writes or takes the place of the word that its caller's address stands in.
        ``rules`` say where that is, or the code itself; what is handed to a function that
        ``only_notes`` it does not count."""

    def may_raise(
        self, instruction: Own, signals: AbstractSet[int], *, has_frame: bool = False
    ) -> bool:
        """Whether it may raise one of ``signals`` (:data:`~darc.code.faults.FAULTS`) by what its
        operands are. Accesses to the stack do not count, nor those to a thread's own variables.
        ``has_frame`` says that the frame pointer is one there."""

    def leaves_frame(self, instruction: Own) -> bool:
        """Whether it changes neither the stack pointer nor flags, and the next one follows."""

    def may_learn_place(self, handler: FunctionCode[Own], signal: int, *, is_told: bool) -> bool:
        """Whether a handler of ``signal`` may find out where the instruction stands that raised it;
        ``is_told`` says whether it was installed as one that takes that (``SA_SIGINFO``)."""

    def frame_slot(self, rule: FrameRule, register: ReadRegister, word: ReadWord) -> int:
        """The address by which a frame is known that ``rule`` tells of."""

    def indirect_target(
        self, instruction: Own, register: ReadRegister, word: ReadWord
    ) -> int | None:
        """Where an indirect call or jump is about to lead; ``None`` where that cannot be told."""

    def is_taken(self, instruction: Own, register: ReadRegister) -> bool:
        """Whether a jump is about to be taken; an unconditional one always is."""


class RestartReader(Protocol[Own_contra]):
    """Tells which sequences of instructions a signal's handler may begin anew. It is asked about no
    instructions but its processor's."""

    def may_be_restarted(self, instruction: Own_contra, *, has_frame: bool = False) -> bool:
        """Whether a sequence that a signal's handler begins anew, where it has interrupted that,
        may have ``instruction`` in it: one that accesses other memory than the stack.
        ``has_frame`` says that the frame pointer is one there."""

    def sets_place(
        self,
        handler: FunctionCode[Own_contra],
        called: Callable[[int], FunctionCode[Own_contra] | None],
    ) -> bool:
        """Whether a signal's ``handler`` may set where the interrupted thread goes on, by itself or
        in what it hands the kernel's account to; ``called`` gives the functions that calls lead
        to."""


class HandMadeCall(Protocol):
    """A call of a function that is made by setting the registers of a stopped thread. The
    frame's return address stands in the stack word at ``slot`` by then."""

    @property
    def address(self) -> int:
        """The function's."""

    @property
    def slot(self) -> int: ...
    @property
    def back(self) -> int:
        """Where the thread comes back to."""

    def return_address(self) -> bytes:
        """What is to stand at ``slot``."""

    def registers(self) -> dict[str, int]:
        """What is to be set, in this order."""

    @property
    def stack_behind(self) -> int:
        """The stack pointer of a thread that has come back from it."""

    def has_returned(self, program_counter: int, stack_pointer: int) -> bool:
        """Whether a thread that is here has come back from it."""


@dataclass(frozen=True, kw_only=True)
class SignalFrame:
    """What the kernel puts on the stack for a signal's handler, in bytes from where it saves the
    program counter that the handler came upon."""

    back: int
    """To what the handler returns to,"""
    alternate: int
    """to the alternate stack (``stack_t``),"""
    vector_state: int
    """and to where the vector registers are: behind the frame, so in a copy it leads elsewhere."""
    registers_before: int
    """Those that it saves before the program counter, a word each."""


class Convention(Protocol):
    """How functions and the kernel are called: registers, by the names that targets know, and what
    is set for a call by hand."""

    SYSTEM_CALL_ARGUMENTS: tuple[str, ...]
    """Of a system call, the first one first. Its number stands where the result will."""
    SCRATCH: tuple[str, ...]
    """What a call may leave otherwise, as may the flags."""
    KEPT: tuple[str, ...]
    """What a function leaves as it was, unless it does not come to its end."""
    FLAGS: str
    GENERAL: tuple[str, ...]
    """All that a call by hand may change; what says where the thread goes on comes last."""

    SIGNAL_FRAME: SignalFrame
    PROGRAMS_END: int
    """Where the addresses end that a program may have, in bytes."""
    GUARD: int
    """Where a thread has what the C library hides stack pointers with, seen from what the register
    says that tells threads apart,"""
    GUARD_TURN: int
    """and by how many bits it turns them to the left then."""

    def without_traps(self, flags: int) -> int:
        """The flags of a program that steps itself, for code that is none of its: a trap while
        signals are blocked would be its end, whatever handler it has."""

    def system_call_function(self, number: int) -> bytes:
        """The code of a function that makes this system call, with its own arguments, and returns
        what the kernel does."""

    def free_slot(self, stack_pointer: int, distance: int) -> int:
        """Where a return address may stand, at least so many bytes below the stack pointer, for the
        function to find its stack aligned."""

    def call_by_hand(
        self, address: int, arguments: Sequence[int], slot: int, back: int
    ) -> HandMadeCall:
        """A call of the function at ``address`` that comes back to ``back``."""


@dataclass(frozen=True)
class Ringer:
    """How a thread rings on its way: the process and itself as the program knows them, and the
    signal."""

    process: int
    thread: int
    signal: int


@dataclass(frozen=True)
class Call:
    """A system call's number or a function's address, and the arguments. ``stack`` is the end of
    memory that a function may use as its stack; 0 for a system call."""

    address: int
    arguments: Sequence[int]
    stack: int = 0


@dataclass(frozen=True, kw_only=True)
class Detour:
    """Write ``code`` at ``place``, then set the program counter to ``entry``. The thread has rung
    when it stands at one of ``rungs``; the result is at ``result``. Then the ``registers`` are set,
    in their order. Before ``masked`` signals are delivered, and from ``leave`` on, where it gives
    the call up. ``numbers`` are those of its system calls, by where each comes back."""

    place: int
    code: bytes
    entry: int
    masked: int
    leave: int
    rungs: tuple[int, ...]
    result: int
    registers: Mapping[str, int]
    numbers: Mapping[int, int]


class DetourWriter(Protocol):
    """Writes the code of detours (:mod:`darc.debuggee.detour`), and knows how the kernel leaves the
    registers of a thread that it stops in a system call."""

    REGISTERS: tuple[str, ...]
    """What :meth:`plan` has to know of the thread."""
    LENGTH: int
    """Bytes of code that a detour needs at most."""
    STOPPED_IN: str
    """What tracers call the number of the system call that a thread was stopped in."""
    IN_NONE: int
    """What that is where it was in none."""
    CODE_SEGMENT: str
    """The register that says what kind of code a thread runs."""

    def takes_calls(self, code_segment: int) -> bool:
        """Whether a thread with this :attr:`CODE_SEGMENT` can go through a detour: one that is in
        32-bit code (as Wine has it) would take its instructions for others."""

    def plan(
        self,
        registers: Mapping[str, int],
        place: int,
        ringer: Ringer,
        call: Call,
        *,
        blocked: int,
        mask: int | None,
    ) -> Detour:
        """The way of a thread with these ``registers`` by ``place`` through a call, with the
        signals ``blocked`` kept from it. ``mask`` is what it blocks else; ``None``: what it finds
        blocked when it begins."""

    def stack_needed(self, registers: Mapping[str, int]) -> range:
        """The part of its stack that a thread uses on its way."""

    def is_restarted(self, result: int) -> bool:
        """Whether the kernel begins the system call anew that has this ``result`` where a thread
        was stopped in it."""

    def restarted(self, registers: Mapping[str, int]) -> dict[str, int]:
        """The registers with which an interrupted system call begins anew, as the kernel would set
        them if the thread did nothing else before."""

    def interrupted(self, registers: Mapping[str, int], way: Detour) -> dict[str, int]:
        """The registers with which a thread takes a signal that came on its ``way``, as if it had
        come where the thread was: a system call that only a handler ends is ended."""

    def is_refused(self, registers: Mapping[str, int], way: Detour) -> bool:
        """Whether a thread that SIGSYS comes to is refused a system call of its ``way``. Else
        somebody has sent it."""


class FrameRegisters(Protocol):
    """What frame information (DWARF's) says in numbers that are a processor's own."""

    NAMES: Mapping[int, str]
    """Of the registers that a CFA may be told from, by their numbers."""
    FRAME_POINTER: int
    RETURN_ADDRESS: int
    """The column of rows that tells whether there is a caller to return to."""
    SAMPLED: int
    """The frame pointer, the stack pointer and the program counter, as bits of what the kernel is
    asked to sample: it writes them down in this order."""
