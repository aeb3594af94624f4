"""The code of a running program beside that in its files, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

INT3 = 0xCC


@dataclass(frozen=True)
class Difference:
    """A byte of code that is another one than in the file; ``place`` is ``file+offset``."""

    address: int
    place: str
    live: int
    stored: int


def compare_code(pid: int) -> tuple[int, list[Difference]]:
    """How many bytes of code were compared, and those that differ."""
    compared, differences = 0, []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, permissions, offset, _, inode, *path = line.split(maxsplit=5)
            is_shared_memory = path[:1] == ["/dev/zero (deleted)"]
            if "x" not in permissions or inode == "0" or not path or is_shared_memory:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            with Path(path[0].strip()).open("rb") as file:
                file.seek(int(offset, 16))
                stored = file.read(end - start)
            memory.seek(start)
            live = memory.read(len(stored))
            compared += len(live)
            if live == stored:
                continue
            name, begin = Path(path[0]).name, int(offset, 16)
            differences += [
                Difference(start + i, f"{name}+{begin + i:#x}", byte, stored[i])
                for i, byte in enumerate(live)
                if byte != stored[i]
            ]
    return compared, differences


def altered_code(pid: int) -> tuple[int, int, list[str]]:
    """How many bytes of code were compared, how many are breakpoints now, and ``file+offset`` of
    each that is another one."""
    compared, differences = compare_code(pid)
    breakpoints = sum(one.live == INT3 for one in differences)
    return compared, breakpoints, [one.place for one in differences]
