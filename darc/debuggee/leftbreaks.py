"""Breakpoints that a killed debugger has left in a program's code.

The program ends by SIGTRAP where it comes to one. gdb and lldb have one of their own in the dynamic
linker while a program runs, beside those of the user, and the kernel leaves them all where a
debugger is killed. What the debugger shows of memory is without its own breakpoints, also where it
keeps them in a program that stands still: what it still shows is nobody's that lives, or a probe of
the kernel's (uprobes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from signal import SIGTRAP

from darc.code.modules import Module
from darc.code.processor import BREAKPOINT, decode
from darc.code.program import Program
from darc.debuggee import procfs
from darc.debuggee.wordscan import own_pages
from darc.model.enumerated import first_few
from darc.model.errors import TargetError
from darc.target.target import Target

_BREAKPOINT = BREAKPOINT[0]

_TOLD = 4
"""How many places a line names."""

_DEBUGGERS = frozenset(
    {
        *("_dl_debug_state", "r_debug_state", "_r_debug_state", "_rtld_debug_state"),
        *("rtld_db_dlactivity", "__dl_rtld_db_dlactivity", "__jit_debug_register_code"),
    }
)
"""Functions that do nothing, and are called for debuggers to stop there: as files are loaded (gdb's
``solib-svr4.c``, lldb's ``DynamicLoaderPOSIXDYLD``), and as code is made."""

_PROBES = frozenset({"init_complete", "reloc_complete", "unmap_complete"})
_MORE_PROBES = frozenset({"init_start", "map_start", "map_failed", "unmap_start"})
"""Where the dynamic linker has probes, gdb is at all of the first ones instead, and at the others
for ``stop-on-solib-events`` (``probe_info`` of ``solib-svr4.c``)."""

_KERNELS = "[uprobes]"
"""What the kernel maps where it executes what stands under its own probes."""


@dataclass(frozen=True)
class _Stray:
    """A breakpoint that this debugger does not know."""

    address: int
    stored: int
    """The byte that the file has there."""
    module: Module


def _strays(target: Target, program: Program, pid: int) -> Iterator[_Stray]:
    """Single bytes in the code of files, between bytes that are as the file has them. Code that the
    program may write to is its own affair. Only pages that are not the file's any more are read.

    Raises:
        TargetError: they cannot be told, or not be read.
    """
    for region in procfs.regions(pid):
        module = program.module_at(region.start)
        if module is None or module.is_vdso or region.permissions != "r-xp":
            continue
        for part in own_pages(pid, [range(region.start, region.end)]):
            stored = module.image.loaded(part.start - module.bias, len(part)) or b""
            live = target.memory.read(part.start, len(stored))
            if live == stored:
                continue
            at = live.find(_BREAKPOINT)
            while at >= 0:
                beside = slice(max(at - 1, 0), at), slice(at + 1, at + 2)
                if stored[at] != _BREAKPOINT and all(live[p] == stored[p] for p in beside):
                    yield _Stray(part.start + at, stored[at], module)
                at = live.find(_BREAKPOINT, at + 1)


def take_out_breakpoints(
    target: Target, program: Program, pid: int, *, is_known: bool
) -> list[str]:
    """Puts the file's own byte back where a killed debugger has left a breakpoint; what the user is
    told of that, and of what may be one and stays. It is one where debuggers have theirs; and
    elsewhere, where it ``is_known`` that a debugger was killed that had probes in the program, and
    the program does not hear of breakpoints itself. Where the kernel has executed probes of its own
    in this process, all stay.

    Raises:
        TargetError: a byte could not be put back.
    """
    try:
        found = list(_strays(target, program, pid))
    except TargetError:
        return []  # of a process that may not be read, nothing is known of its breakpoints
    if not found:
        return []
    out = list[_Stray]()
    if not any(region.path == _KERNELS for region in procfs.regions(pid)):
        may_be_users = is_known and not procfs.catches(pid, SIGTRAP)
        out = [
            one
            for one in found
            if _is_debuggers(one, found) or (may_be_users and _is_instruction(program, one))
        ]
    for one in out:
        target.memory.write(one.address, bytes([one.stored]))
    if out:
        target.memory.flush()
        program.forget_code()
    return [
        *_told(program, out),
        *_told_of_others(program, [one for one in found if one not in out]),
    ]


def _is_debuggers(one: _Stray, found: Sequence[_Stray]) -> bool:
    """Whether it is where debuggers have their own, and nobody else has any."""
    image, own = one.module.image, one.address - one.module.bias
    if not _DEBUGGERS.isdisjoint(image.symbols.names_at(own)):
        return True
    strays = {other.address - other.module.bias for other in found if other.module is one.module}
    taken = {probe.name for probe in image.stap_probes if probe.address in strays}
    is_gdbs = _PROBES <= taken <= _PROBES | _MORE_PROBES  # a tracer may be at some of them, or all
    return is_gdbs and any(p.address == own and p.provider == "rtld" for p in image.stap_probes)


def _is_instruction(program: Program, one: _Stray) -> bool:
    """Whether an instruction of the file begins there: breakpoints stand nowhere else."""
    extent = program.outlines.extent(one.address)
    start = one.address if extent is None else extent[0]
    code = program.live.in_file(start, one.address + 1 - start) or b""
    return any(instruction.ip == one.address for instruction in decode(code + bytes(16), start))


def _told(program: Program, out: Sequence[_Stray]) -> Iterator[str]:
    if out:
        breakpoints, were = ("a breakpoint", "was") if len(out) == 1 else ("breakpoints", "were")
        listed = first_few([_called(program, one) for one in out], _TOLD)
        yield (
            f"{breakpoints} that a killed debugger had left in {listed} {were} taken out: the "
            "program would have ended there"
        )


def _told_of_others(program: Program, stay: Sequence[_Stray]) -> Iterator[str]:
    if stay:
        places = [
            f"{_called(program, one)} at {one.address:#x}, where the file has {one.stored:#x}"
            for one in stay
        ]
        listed = first_few(places, _TOLD)
        yield (
            f"a breakpoint of somebody else's stays in {listed}: probes of the kernel's (uprobes) "
            "mean it; where a killed debugger has left it, the program ends there, unless the "
            "file's byte is written back"
        )


def _called(program: Program, one: _Stray) -> str:
    function = program.names.function_at(one.address)
    offset = one.address - function.address
    return f"{function.name}{f'+{offset:#x}' if offset else ''} of {one.module.name}"
