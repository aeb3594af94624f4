"""What objdump says of a program's calls: an opinion of its own, beside darc's decoder."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\t([^\t#]*)")
_LEAVES = re.compile(
    r"^(?:(?:notrack|bnd|addr32|data16|rex\.W) )*(call|jmp|j[a-z]+)\s+(\S+)(?: <([^+>]+)>)?"
)


@functools.cache
def functions(file: Path) -> dict[str, list[tuple[int, str]]]:
    """The instructions of every function, by symbol, each with its offset."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-w", str(file)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] = []
    for line in text.splitlines():
        if head := _FUNCTION.match(line):
            current = found.setdefault(head[2], [])
        elif instruction := _INSTRUCTION.match(line):
            current.append((int(instruction[1], 16), instruction[2].strip()))
    return found


def calls(file: Path, symbol: str) -> dict[int, str]:
    """Offset and text of every call, and of every jump out, of a function and its cold part."""
    everything = functions(file)
    parts = [name for name in (symbol, f"{symbol}.cold") if name in everything]
    own = {offset for name in parts for offset, _ in everything[name]}
    found = {}
    for name in parts:
        for offset, text in everything[name]:
            leaving = _LEAVES.match(text)
            if leaving is None:
                continue
            word, operand, _ = leaving.groups()
            inside = re.fullmatch("[0-9a-f]+", operand) and int(operand, 16) in own
            if word == "call" or not inside:
                found[offset] = text
    return found
