"""A kernel's ELF file, in the folder of its kernel: with debugging information and without."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kgdb.vm.errors import VmError


def strip(folder: Path) -> None:
    """Makes ``vmlinux`` of ``vmlinux.debug``: the same without debugging information.

    Raises :class:`VmError`, with the last word of ``objcopy``.
    """
    command: list[str | Path] = [
        "objcopy",
        "--strip-debug",
        folder / "vmlinux.debug",
        folder / "vmlinux",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise VmError(f"objcopy failed: {done.stderr.strip().splitlines()[-1]}")
