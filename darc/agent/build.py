"""Compiles the agent: one freestanding blob and the layout of what it shares with the debugger.

Runs when the package is built, never at run time. ``python3 darc/agent/build.py [OUTDIR]`` writes
``agent.bin`` (position independent, no relocations), ``agent.elf`` (the same with symbols and
frame information, for debuggers) and ``layout.json`` (every offset and constant of ``abi.h``).
Needs gcc and binutils; uses the standard library alone, as it runs before anything is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

CFLAGS = (
    "-std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -mgeneral-regs-only "
    "-ffreestanding -fno-stack-protector -mno-red-zone -fno-jump-tables "
    "-fno-tree-loop-distribute-patterns -fcf-protection=none -fasynchronous-unwind-tables "
    "-fomit-frame-pointer -Wstack-usage=256 "
    # The stubs rely on it.
    "-fcall-saved-r8 -fcall-saved-r9 -fcall-saved-r10 -fcall-saved-r11"
).split()

LINKER_SCRIPT = """
SECTIONS {
    . = 0;
    .text : { *(.text .text.*) *(.rodata .rodata.*) }
    .eh_frame : { KEEP(*(.eh_frame)) }
    /DISCARD/ : { *(.comment) *(.note.*) }
    .data : { *(.data .data.*) *(.bss .bss.*) *(.got .got.*) *(COMMON) }
    ASSERT(SIZEOF(.data) == 0, "the agent must have no data of its own")
}
"""


def run(*command: str | Path, what: str = "the agent") -> str:
    """What a tool prints that compiles ``what``; exits with one line where it is missing, or
    fails."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    except FileNotFoundError as error:
        sys.exit(f"darc: {error.filename} is needed to compile {what}: install gcc and binutils")
    if done.returncode:
        sys.exit(f"darc: {what} does not compile:\n{done.stderr}")
    return done.stdout


def _structures(header: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, body in re.findall(r"struct (darc_\w+) \{(.*?)\n\};", header, re.S):
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        found[name] = re.findall(r"(\w+)(?:\[\w+\])?;", body)
    return found


def constants_in(header: str) -> list[str]:
    """Their names."""
    return re.findall(r"#define (DARC_\w+) \S", header) + re.findall(
        r"^    (DARC_\w+) = \d", header, re.M
    )


def _layout(header: str, work: Path) -> dict[str, object]:
    """Offsets as the compiler sees them, printed by a program made from the header."""
    lines = ['#include <stdio.h>\n#include <stddef.h>\n#include "abi.h"\nint main(void) {']
    for constant in constants_in(header):
        lines.append(f'printf("constant {constant} %lu\\n", (unsigned long)({constant}));')
    for name, fields in _structures(header).items():
        lines.append(f'printf("size {name} %zu\\n", sizeof(struct {name}));')
        for field in fields:
            member = f"((struct {name} *)0)->{field}"
            lines.append(
                f'printf("field {name}.{field} %zu %zu\\n", '
                f"offsetof(struct {name}, {field}), sizeof({member}));"
            )
    source, program = work / "layout.c", work / "layout"
    source.write_text("\n".join(lines) + "\nreturn 0; }\n")
    run("gcc", "-I", HERE, source, "-o", program)
    layout: dict[str, dict[str, object]] = {"constants": {}, "sizes": {}, "fields": {}}
    for line in run(program).splitlines():
        kind, name, *values = line.split()
        numbers = list(map(int, values))
        layout[f"{kind}s"][name] = numbers if kind == "field" else numbers[0]
    return dict(layout)


def assembler_defines(layout: dict[str, object]) -> list[str]:
    """What stubs.S knows of ``abi.h``: ``RECORD_SLOT`` for ``darc_record.slot``, and so on."""
    fields, constants = layout["fields"], layout["constants"]
    assert isinstance(fields, dict)
    assert isinstance(constants, dict)
    values = {name.removeprefix("darc_").upper(): place[0] for name, place in fields.items()}
    values |= {name.removeprefix("DARC_"): value for name, value in constants.items()}
    return [f"-D{name.replace('.', '_')}={value}" for name, value in values.items()]


def build_agent(outdir: Path = HERE) -> None:
    """Compile the agent into ``outdir``; exits with one line where a tool is missing."""
    header = (HERE / "abi.h").read_text()
    outdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        layout = _layout(header, work)
        defines = assembler_defines(layout)
        run("gcc", *CFLAGS, "-c", HERE / "agent.c", "-o", work / "agent.o")
        run("gcc", *defines, "-c", HERE / "stubs.S", "-o", work / "stubs.o")
        (work / "agent.ld").write_text(LINKER_SCRIPT)
        elf = work / "agent.elf"
        objects = (work / "agent.o", work / "stubs.o")
        run("ld", "-T", work / "agent.ld", "-e", "0", "-o", elf, *objects)
        if "R_X86_64" in run("readelf", "-r", elf):
            sys.exit("darc: the agent must not need relocations")
        run("objcopy", "-O", "binary", "-j", ".text", elf, outdir / "agent.bin")
        layout["symbols"] = {
            name: int(address, 16)
            for address, _, name in (line.split() for line in run("nm", elf).splitlines())
            if name.startswith("darc_")
        }
        (outdir / "agent.elf").write_bytes(elf.read_bytes())
        (outdir / "layout.json").write_text(json.dumps(layout, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    build_agent(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
