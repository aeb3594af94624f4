"""What /proc tells, asked by whoever may have nothing of darc's own packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from darc.debuggee import procfs
from darc.model.errors import TargetError


def test_who_asks_for_processes_needs_no_package() -> None:
    """The python of another user, who looks at a process of theirs, has none."""
    none = "import sys; sys.modules |= dict.fromkeys(('iced_x86', 'elftools', 'rich', 'pyderust'))"
    command = [sys.executable, "-c", f"{none}; from darc.debuggee import procfs"]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_process_that_nobody_debugs_expects_no_breakpoint() -> None:
    assert not procfs.runs_without(os.getpid(), 0, b"\xcc")


def test_memory_that_is_closed_is_no_other_file(tmp_path: Path) -> None:
    """Whose descriptor has the same number soon."""
    memory = procfs.MemoryFile(os.getpid())
    memory.close()
    file = tmp_path / "users"
    file.write_bytes(b"untouched")
    taken = [os.open(file, os.O_RDWR) for _ in range(3)]
    try:
        with pytest.raises(TargetError):
            memory.read(0, 4)
        with pytest.raises(TargetError):
            memory.write(0, b"darc")
        memory.close()
        assert file.read_bytes() == b"untouched"
    finally:
        for fd in taken:
            os.close(fd)
