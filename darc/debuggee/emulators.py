"""What runs a program whose own code no processor executes: it makes other code of that, and gives
the program registers and signals of its own. The debugger traces the emulator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from darc.debuggee import procfs
from darc.model.errors import UnsupportedError

_FILES = (
    (re.compile(r"vgpreload_.*|\w+-\w+-linux"), re.compile(r"/valgrind/"), "Valgrind"),
    (re.compile(r"libdynamorio\.so.*"), re.compile(""), "DynamoRIO"),
    (re.compile(r"pinbin|libpin3dwarf\.so|libpindwarf\.so"), re.compile(""), "Intel's Pin"),
    (re.compile(r"rosetta"), re.compile("rosetta|oah", re.I), "Rosetta"),
)
"""Who maps files of such a name, in such a folder. QEMU's user mode is not among them: darc times
its own functions."""


def emulator(files: Iterable[str]) -> str | None:
    """Of a process that has these files mapped; ``None``: none is known."""
    for file in files:
        path = PurePosixPath(file)
        for name, folder, what in _FILES:
            if name.fullmatch(path.name) and folder.search(f"{path.parent}/"):
                return what
    return None


def check(pid: int) -> None:
    """
    Raises:
        UnsupportedError: the process runs in an emulator.
        TargetError: it is gone.
    """
    found = emulator(region.path for region in procfs.regions(pid) if region.path)
    if found is not None:
        raise UnsupportedError(
            f"the program runs in {found}, which makes other code of it: what could be timed is "
            "not what the processor executes; run the program by itself"
        )
