"""What /proc tells, asked by whoever may have nothing of darc's own packages."""

from __future__ import annotations

import os
import subprocess
import sys

from darc.debuggee import procfs


def test_who_asks_for_processes_needs_no_package() -> None:
    """The python of another user, who looks at a process of theirs, has none."""
    none = "import sys; sys.modules |= dict.fromkeys(('iced_x86', 'elftools', 'rich', 'pyderust'))"
    command = [sys.executable, "-c", f"{none}; from darc.debuggee import procfs"]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_process_that_nobody_debugs_expects_no_breakpoint() -> None:
    assert not procfs.runs_without(os.getpid(), 0, b"\xcc")
