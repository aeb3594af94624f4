"""The code of a running program beside that in its files, byte for byte."""

from __future__ import annotations

from pathlib import Path

INT3 = 0xCC


def altered_code(pid: int) -> tuple[int, int, list[str]]:
    """How many bytes of code were compared, how many are breakpoints now, and ``file+offset`` of
    each that is another one."""
    compared, breakpoints, altered = 0, 0, []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, permissions, offset, _, inode, *path = line.split(maxsplit=5)
            if "x" not in permissions or inode == "0" or not path:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            with Path(path[0].strip()).open("rb") as file:
                file.seek(int(offset, 16))
                stored = file.read(end - start)
            memory.seek(start)
            live = memory.read(len(stored))
            compared += len(live)
            name = Path(path[0]).name
            begin = int(offset, 16)
            if live != stored:
                differ = [i for i, byte in enumerate(live) if byte != stored[i]]
                altered += [f"{name}+{begin + i:#x}" for i in differ]
                breakpoints += sum(live[i] == INT3 for i in differ)
    return compared, breakpoints, altered
