"""The oracle: a plugin of QEMU's that times a function of the guest beside darc's pads.

What it counts and how is written in ``fixtures/kernel/oracle/oracle.c``.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from darc.model.profile import Profile
from kgdb.vm import cache
from kgdb.vm.kernels import CachedKernel

SOURCE = Path(__file__).resolve().parents[2] / "fixtures" / "kernel" / "oracle" / "oracle.c"

_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden")
_MAGIC = 0x656C6361726F6364
_BINS = 64
_HEADER = struct.Struct("<QQQ")
_STACK = struct.Struct(f"<QQQ{_BINS}QQQ")


@dataclass(frozen=True)
class Oracle:
    """An oracle for one function; its counts are in a file while a machine runs."""

    plugin: str
    file: Path

    def profiles(self) -> dict[int, Profile]:
        """What was measured until now: a profile for each stack, by the stack's address."""
        return read(self.file)

    def busiest(self, before: dict[int, Profile] | None = None) -> Profile:
        """What the task with the most calls did since ``before``, which :meth:`profiles` gave."""
        return busiest(self.profiles(), before or {})


def read(file: Path) -> dict[int, Profile]:
    """:meth:`Oracle.profiles` from a copy of its file."""
    data = file.read_bytes()
    magic, stacks, lost = _HEADER.unpack_from(data)
    assert magic == _MAGIC
    assert lost == 0, f"{lost} calls on more stacks than the oracle has room for"
    found = {}
    for number in range(stacks):
        fields = _STACK.unpack_from(data, _HEADER.size + number * _STACK.size)
        stack, count, total, bins = fields[0], fields[1], fields[2], fields[3 : 3 + _BINS]
        found[stack << 14] = Profile(
            resolution=1, hz=1, bins=dict(enumerate(bins)), count=count, total=total
        )
    return found


def busiest(after: dict[int, Profile], before: dict[int, Profile]) -> Profile:
    """What the task with the most calls did between two moments."""
    since = [minus(now, before.get(at)) for at, now in after.items()]
    return max(since, key=lambda profile: profile.count, default=Profile.empty(1, 1))


def make(kernel: CachedKernel, function: str, folder: Path, behind: int = 0) -> Oracle:
    """An oracle for a function of a kernel that stands where its file says (``nokaslr``).

    It times from ``behind`` bytes after the function's first, which must be an instruction's.
    """
    file = folder / f"oracle-{function}"
    address = address_of(kernel, function) + behind
    return Oracle(f"{_built()},start={address:#x},out={file}", file)


def address_of(kernel: CachedKernel, function: str) -> int:
    """Where a function stands, by the kernel's symbols."""
    with kernel.symbols.open("rb") as opened:
        table = ELFFile(opened).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        found = {int(s["st_value"]) for s in table.get_symbol_by_name(function) or ()}
    assert len(found) == 1, f"{function}: {len(found)} of that name"
    return found.pop()


def minus(now: Profile, before: Profile | None) -> Profile:
    """The calls that came since ``before``."""
    if before is None:
        return now
    bins = {b: n - before.bins.get(b, 0) for b, n in now.bins.items()}
    return Profile(
        resolution=1,
        hz=1,
        bins=bins,
        count=now.count - before.count,
        total=now.total - before.total,
    )


def _built() -> Path:
    def compile_it(folder: Path) -> None:
        command = ["gcc", *_FLAGS, str(SOURCE), "-o", str(folder / "oracle.so")]
        subprocess.run(command, check=True)

    digest = hashlib.sha256(SOURCE.read_bytes() + repr(_FLAGS).encode()).hexdigest()[:12]
    return cache.once(f"oracle/{digest}", compile_it) / "oracle.so"
