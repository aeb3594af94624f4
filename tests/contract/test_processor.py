"""Who knows x86-64: by its decoder, the names of its registers, its code and its calls.

All that does is named on the page of a second processor, and all others ask ``processor.py``.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc import FLOORS
from darc.code.architecture import CodeReader, Convention, FrameRegisters
from darc.code.system_calls import SystemCall
from tests.contract.names import imported, walk
from tests.contract.tree import (
    ABOVE,
    ENGINE,
    ROOT,
    floor,
    imports,
    module_name,
    parsed,
    python_files,
)

FILES = [*ENGINE, *(file for package in sorted(ABOVE) for file in python_files(package))]
SOURCES = sorted(
    file.relative_to(ROOT)
    for folder in ("darc", *sorted(ABOVE), "tests")
    for file in (ROOT / folder).rglob("*.[chS]")
)
"""What is in C and assembler, but for programs that are looked into."""

DECODER = "iced_x86"
WHICH = {
    *(Path("darc/code/processor.py"), Path("darc/code/system_calls.py")),
    Path("darc/pads/processor.py"),
}
"""They say which processor it is."""
NUMBERS = Path("darc/code/x86_64_system_calls.py")
"""The numbers of system calls."""
OPERANDS = {Path("kgdb/calls.py"), Path("kgdb/tasks.py")}
"""They read what instructions of a kernel name, which is built for one processor."""

OF_X86 = re.compile(
    r"(?<![a-z])(x86(_64)?|amd64|i386|aarch64|arm64|riscv\d*|ppc64(le)?|s390x?"
    r"|[re]?flags|[re]([abcd]x|[sd]i|[sb]p|ip)|r(8|9|1[0-5])[dwb]?"
    r"|[xyz]mm\d+|[fg]s_base|mxcsr|bp(?!_(hardware_)?(break|watch)point)"
    r"|rt_sigframe|ptr_mangle|pt_regs|vector_irq)(?![a-z0-9])",
    re.I,
)
"""Its names and registers, and what lies in memory as it has registers; what gdb's constants for
breakpoints begin with is no register."""
STACKS = re.compile(r"slot|stack|cfa|(?<![a-z])sp(?![a-z])", re.I)
OTHERS = re.compile(
    r"(?<![a-z])(aarch64|arm64|armv\d\w*|riscv\d*|ppc64(le)?|s390x|loongarch\d*"
    r"|[xw]([12]?\d|30))(?![a-z0-9])",
    re.I,
)
"""Other processors, and one's registers: who is told by name is no longer asked."""
NEUTRAL = {"flags"}
"""Words for other things, too."""
NAMES = re.compile(r"x86(_64)?|amd64|arm64", re.I)
"""What a file that says where something comes from may name."""

BOUND = 1 << 40
BOUNDS = range(47, 58)
"""Numbers that are bounds of addresses: those that are written out from here on, and so many bits
of which a processor uses one number or another; of 56 bits other things are, too."""

EVERYDAY = {"LARGEST"}
READ = {
    name
    for asked in (CodeReader, Convention, FrameRegisters)
    for name, kind in asked.__annotations__.items()
    if kind == "int"
} - EVERYDAY
"""What a processor is asked for that is a number, but for a name of other things, too."""
KINDS = re.compile(r"R_[A-Z][A-Z0-9_]*|(?:\w+_)?PLT(?:_\w+)?")
"""How constants are called that are kinds of relocations, and sizes of a PLT."""
LOOKS = {
    f"darc.code.processor.{name}"
    for name, one in vars(CodeReader).items()
    if "bytes" in getattr(one, "__annotations__", {}).values()
}
"""What looks at bytes of code."""
_WORD = 8
"""Bytes of what is read as a number, at most."""

OPCODES = re.compile(rb"0x(e8|e9|eb|c3|cc)\b", re.I)
"""Call, jumps, return, breakpoint: as numbers."""
CODE = re.compile(rb"[\xe8\xe9\xeb\xc3\xcc]|\xff[\x15\x25\xd0]|(?s:.*)\x0f\x05")
"""How bytes begin that are instructions; a system call may be among others."""
PATTERN = re.compile(rb"(?s:.*)\\x(e8|e9|ff\\x15|ff\\x25|0f\\x05)")
"""The same in regular expressions."""


OF_C = re.compile(
    r"\b(__asm__|__asm|asm)\b|_mm\d*_|__builtin_ia32_|[xei]mmintrin|x86(_64)?intrin|cpuid|rdtsc"
    r"|\b(?:SYS|__NR)_\w+\s+\d|0x(e8|e9|eb|c3|cc)\b|\bREG_\w+|\b(rep|lock|mov|lea|nop)\b",
    re.I,
)
"""Code in assembler, what a compiler has for x86 alone, numbers of system calls, and opcodes."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^#include[^\n]*", re.S | re.M)

NUMBERED = re.compile(r"_?(?:SYS_|NR_)?(\w+?)")
"""How a constant is called that is the number of a system call."""


def told() -> set[str]:
    """The files of the table of what another processor must bring."""
    page = (ROOT / "docs/extending/architecture.md").read_text()
    found = set[str]()
    for row in re.findall(r"^\| (`.*?) \| ", page, re.M):
        folder = ""
        for name in re.findall(r"`([\w/]+\.(?:py|c|h|S))`", row):
            folder = name.rpartition("/")[0] or folder
            found.add(f"{folder}/{name.rpartition('/')[2]}")
    return found


def is_own(file: Path) -> bool:
    """Whether a file is x86-64's, by its name."""
    return file.parts[0] == "darc" and file.stem.startswith("x86_64")


def said(tree: ast.AST) -> set[int]:
    """Texts by which a file says what it is and has."""
    return {id(one.value) for one in walk(tree) if isinstance(one, ast.Expr)}


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What a file calls what it makes, uses and imports, and its texts but for what it says of
    itself."""
    of_itself = said(tree)
    for node in walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.lineno, name
            case ast.Import(names=names):
                yield from ((node.lineno, one.name) for one in names)
            case ast.ImportFrom(module=str(module)):
                yield node.lineno, module
            case ast.Constant(value=str(name)) if id(node) not in of_itself:
                yield node.lineno, name


def told_of_itself(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What of the processor a file names where it says what it is and has."""
    for node in walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text), lineno=line)):
                for one in OF_X86.finditer(text):
                    if one[0].lower() not in NEUTRAL and not NAMES.fullmatch(one[0]):
                        yield line + text.count("\n", 0, one.start()), one[0]


def bounds(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where it has a bound of addresses as a number."""
    for node in walk(tree):
        match node:
            case ast.Constant(value=int(number)) if BOUND <= number < 1 << 63:
                yield node.lineno, f"{number:#x}"
            case ast.BinOp(ast.Constant(value=1), ast.LShift(), ast.Constant(value=int(bits))):
                if bits in BOUNDS and bits != 56:
                    yield node.lineno, ast.unparse(node)


def found_in(word: str) -> Iterator[str]:
    """The words of x86-64 in a name or a text."""
    for one in OF_X86.finditer(word):
        if one[0].lower() not in NEUTRAL:
            yield one[0]


def others(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts that are the name of another processor, or of a register of one."""
    of_itself = said(tree)
    for node in walk(tree):
        match node:
            case ast.Constant(value=str(word)) if OTHERS.fullmatch(word):
                if id(node) not in of_itself:
                    yield node.lineno, word


def sums(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a stack's address is moved by the size of a return address."""
    for node in walk(tree):
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub(), ast.Constant(value=8)):
                if STACKS.search(ast.unparse(left)):
                    yield node.lineno, ast.unparse(node)


def code(tree: ast.AST, lines: list[bytes]) -> Iterator[tuple[int, str]]:
    """Where instructions are written as bytes, and opcodes as numbers."""
    for node in walk(tree):
        match node:
            case ast.Constant(value=bytes(value)) if CODE.match(value) or PATTERN.match(value):
                yield node.lineno, "instructions"
            case ast.Constant(value=int(), lineno=line, col_offset=at):
                if OPCODES.match(lines[line - 1], at):
                    yield line, "an opcode"


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The names that get something, each with what it gets."""
    match target, value:
        case ast.Name(), _:
            yield target, value
        case ast.Tuple(elts=names), ast.Tuple(elts=values):
            for name, one in zip(names, values, strict=False):
                yield from pairs(name, one)


def is_number(node: ast.AST, least: int = 0) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= least


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a system call has a number."""
    for node in walk(tree):
        match node:
            case ast.Assign(targets=[target], value=value):
                for name, one in pairs(target, value):
                    called = NUMBERED.fullmatch(name.id)
                    is_one = called is not None and called[1] in SystemCall.__members__
                    if (is_one or "SYS_" in name.id) and is_number(one):
                        yield node.lineno, f"the number of {name.id}"
            case ast.Call(func=ast.Attribute(attr="syscall"), args=[first, *_]):
                if is_number(first):
                    yield node.lineno, "the number of a system call"


def numbers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where what a code reader is asked for is a number, or several."""
    for node in walk(tree):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                for name, one in pairs(target, value):
                    is_asked = name.id.lstrip("_") in READ or KINDS.fullmatch(name.id.lstrip("_"))
                    if is_asked and any(map(is_number, walk(one))):
                        yield node.lineno, f"{name.id} is a number"


def sizes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Of a file that has a code reader look at bytes: where it reads a number of those that is no
    word's. A file's own first bytes are no code."""
    if LOOKS.isdisjoint(name for _, name in imported(tree)):
        return
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="read"), args=[where, size]):
                if not is_number(where) and any(is_number(one, _WORD + 1) for one in walk(size)):
                    yield node.lineno, f"reads {ast.unparse(size)} bytes"


def known(text: str, tree: ast.Module | None = None) -> list[tuple[int, str]]:
    """What a file knows of x86-64; ``tree`` is that of its text."""
    tree = tree or ast.parse(text)
    named = ((line, one) for line, word in words(tree) for one in found_in(word))
    more = (told_of_itself(tree), others(tree), sums(tree), bounds(tree))
    return [*named, *itertools.chain(*more), *code(tree, text.encode().splitlines())]


def known_in_c(text: str) -> list[tuple[int, str]]:
    """The same of what is in C, but for what its comments say."""
    bare = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        (number, one)
        for number, line in enumerate(bare.splitlines(), 1)
        for one in (*found_in(line), *(found[0] for found in OF_C.finditer(line)))
    ]


def test_who_knows_x86_64_is_told() -> None:
    """Whatever does is named where a second processor is thought of."""
    may = told() | {str(file) for file in WHICH}
    wrong = [
        f"{file}:{line}: {what}"
        for file in FILES
        if str(file) not in may
        for line, what in known((ROOT / file).read_text(), parsed(file))
    ]
    assert not wrong, "docs/extending/architecture.md does not name:\n" + "\n".join(wrong)


def test_what_a_code_reader_is_asked_for_is_no_number_elsewhere() -> None:
    """A second processor has others: kinds of relocations, the bytes of a PLT's entry."""
    assert {"PLT_ENTRY", "PATCH_LENGTH"} < READ
    assert "darc.code.processor.plt_slot" in LOOKS
    wrong = [
        f"{file}:{line}: {what}: darc/code/processor.py is asked"
        for file in FILES
        if not is_own(file)
        for line, what in numbers(parsed(file))
    ]
    may = told()
    wrong += [
        f"{file}:{line}: {what}: how many is asked of darc/code/processor.py"
        for file in FILES
        if str(file) not in may
        for line, what in sizes(parsed(file))
    ]
    assert not wrong, "\n".join(wrong)


def test_each_file_of_its_own_is_told() -> None:
    missing = [str(file) for file in FILES if is_own(file) and str(file) not in told()]
    assert not missing, f"docs/extending/architecture.md does not name {missing}"


def test_system_calls_have_their_numbers_in_one_file() -> None:
    """So is each of them the same wherever it is made, and another processor brings one file."""
    wrong = [
        f"{file}:{line}: {what}"
        for file in FILES
        if file != NUMBERS
        for line, what in calls(parsed(file))
    ]
    assert not wrong, "\n".join(wrong)
    assert list(calls(parsed(NUMBERS)))


def test_what_of_c_and_assembler_knows_x86_64_is_told() -> None:
    assert len(SOURCES) > 20
    may = told()
    wrong = [
        f"{file}:{line}: {what}"
        for file in SOURCES
        if str(file) not in may
        for line, what in known_in_c((ROOT / file).read_text())
    ]
    assert not wrong, "docs/extending/architecture.md does not name:\n" + "\n".join(wrong)


def test_all_that_is_told_is_there_and_none_above_what_is_debugged() -> None:
    named = told()
    assert len(named) > 40
    missing = [name for name in sorted(named) if not (ROOT / name).exists()]
    assert not missing, f"docs/extending/architecture.md names what there is not: {missing}"
    seam = FLOORS.index("debuggee")
    above = [name for name in named if (floor(module_name(Path(name))) or 0) > seam]
    assert not above, f"they ask the processor: {above}"


def test_what_reads_code_and_makes_pads_asks_as_well() -> None:
    """There what one processor answers has files of its own, named so, but for a scan in C."""
    floors = ("darc/code/", "darc/pads/")
    strange = {name for name in told() if name.startswith(floors) and not is_own(Path(name))}
    assert strange == {"darc/code/callscan.c"}


def interfaces(tree: ast.AST) -> Iterator[str]:
    """What a ``processor.py`` says who answers."""
    for node in walk(tree):
        match node:
            case ast.AnnAssign(annotation=annotation):
                yield ast.unparse(annotation).partition("[")[0]


def test_each_interface_is_told() -> None:
    """On the page, with how many they are and who answers it, and where they are asked for."""
    asked = [one for file in sorted(WHICH) for one in interfaces(parsed(file))]
    assert len(asked) > 5
    page = (ROOT / "docs/extending/architecture.md").read_text()
    head, table = page.split("\n| today |")
    of_code = ast.get_docstring(parsed(Path("darc/code/architecture.py"))) or ""
    for one in asked:
        assert f"`{one}`" in head, f"the page does not name {one}"
        assert f"(`{one}`)" in table, f"the table does not say who answers {one}"
        assert f"`{one}`" in of_code, f"darc/code/architecture.py does not name {one}"
    numbers = ("five", "six", "seven", "eight", "nine", "ten")
    assert f" {numbers[len(asked) - 5]} interfaces," in head


def test_only_its_own_files_know_its_decoder() -> None:
    """Others hand instructions on, and ask for what is in them."""
    knowing = {
        file: one for file in FILES for one in imports(file) if one.name.split(".")[0] == DECODER
    }
    wrong = [str(one) for file, one in knowing.items() if not is_own(file) and file not in OPERANDS]
    assert not wrong, "\n".join(wrong)
    assert knowing.keys() >= OPERANDS, "no longer needed"


def test_one_place_of_a_floor_says_which_processor_it_is() -> None:
    """And what reads operands takes the decoder's instructions, as its own files do."""
    wrong = [
        str(one)
        for file in FILES
        for one in imports(file)
        if is_own(Path(one.name.replace(".", "/")))
        and not is_own(file)
        and file not in WHICH | OPERANDS
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "rsp = read(STACK_POINTER)",
        "slot = stack - 8",
        "def caught(self, rsp, end): pass",
        "find(rsp=0)",
        "call.slot + 8",
        "name = 'qemu-system-x86_64'",
        "kept = state.rbp",
        "from_r12 = 0",
        "read('orig_rax')",
        "read('fs_base')",
        "half = 'r8d'",
        "from iced_x86 import Decoder",
        "import iced_x86",
        "from darc.code.x86_64 import decode",
        r"code = b'\xe9'",
        r"code = rb'.\xe8'",
        r"code = b'\x48\x0f\x05'",
        "byte == 0xCC",
        "platform.machine() == 'aarch64'",
        "read('x0')",
        "_BP_SP_IP = 1 << 6 | 1 << 7 | 1 << 8",
        "class A:\n    frame: int\n    '''Its rbp.'''",
        "_RETURN = -176\n'''(``struct rt_sigframe``)'''",
        "_WHERE = 48\n'''What glibc hides them with (``PTR_MANGLE``).'''",
        "table = image.values.get('vector_irq')",
        "_HIGHEST = 0x7FFF_FFFF_0000",
        "end = 1 << 47",
    ],
)
def test_what_is_seen(line: str) -> None:
    assert known(line), line


@pytest.mark.parametrize(
    "line",
    [
        "_R_RELATIVE = 8",
        "_R_COPY_LIKE = {6: 'GLOB_DAT'}",
        "_PLT_ENTRY: int = 16",
        "PLT = 16",
        "_WORDS, _PATCH_LENGTH = 3, 5",
        "SHORT_JUMP = 2",
        "_GUARD = 0x30",
        "_PROGRAMS_END = LIMIT - 4096",
    ],
)
def test_what_is_seen_of_numbers(line: str) -> None:
    assert list(numbers(ast.parse(line))), line


@pytest.mark.parametrize("line", ["_RELATIVE = 8", "R = 4", "_PLT_ENTRY = PLT_ENTRY", "split = 1"])
def test_what_is_none_of_a_code_readers_numbers(line: str) -> None:
    assert not list(numbers(ast.parse(line))), line


@pytest.mark.parametrize(
    ("line", "is_seen"),
    [
        ("plt_slot(read(at, 16), at)", False),
        ("code = program.read(at, 16)", True),
        ("code = program.read(at, end - at + 16)", True),
        ("word = program.read(at, 8)", False),
        ("code = program.read(at, PLT_ENTRY)", False),
        ("header = content.read(0, 20)", False),
    ],
)
def test_what_is_seen_of_sizes(line: str, is_seen: bool) -> None:
    found = sizes(ast.parse(f"from darc.code.processor import plt_slot\n{line}"))
    assert bool(list(found)) is is_seen, line
    assert not list(sizes(ast.parse(line))), "it looks at no code"


@pytest.mark.parametrize(
    "line",
    ["_MUNMAP = 11", "_SYS_MMAP, _RED = 9, 1", "SYS_STATX = 332", "libc.syscall(234, pid)"],
)
def test_what_is_seen_of_system_calls(line: str) -> None:
    assert list(calls(ast.parse(line))), line


@pytest.mark.parametrize(
    "line", ["_ROOM = 11", "_MMAP = (0, 4096)", "libc.syscall(SystemCall.MUNMAP, base)"]
)
def test_what_is_none_of_system_calls(line: str) -> None:
    assert not list(calls(ast.parse(line))), line


@pytest.mark.parametrize(
    "line",
    [
        '__asm__ volatile("" ::: "memory");',
        'asm("isb");',
        "u64 rbp;",
        "state->r12 = 0;",
        "now = __rdtsc();",
        "now = __builtin_ia32_rdtsc();",
        "sum = _mm_add_epi32(a, b);",
        "    rdfsbase rdx",
        "#define SYS_FUTEX 202",
        "if (code[0] == 0xe8)",
        "pc = registers[REG_RIP];",
        "#ifdef __x86_64__",
    ],
)
def test_what_is_seen_in_c(line: str) -> None:
    assert known_in_c(line), line


@pytest.mark.parametrize(
    "line", ["/* in rbp */", "u64 trip; // as rip", "system_call(SYS_FUTEX, 0);", "movable = 1;"]
)
def test_what_is_nothing_of_x86_64_in_c(line: str) -> None:
    assert not known_in_c(line), line


@pytest.mark.parametrize(
    "line",
    [
        *("flags = 0", "trip = 8", "ways + 8", "corsp = 1", "'r1'", "204", "b'ab'"),
        *("gdb.BP_BREAKPOINT", "1 << 56", "1 << 63", "'''of x86-64 alone'''"),
    ],
)
def test_what_is_nothing_of_x86_64(line: str) -> None:
    assert not known(line), line
