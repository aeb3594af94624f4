"""What holds for every test: what tests begin is as it is in a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IN_A_BACKGROUND_JOB = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
import tests.conftest
hears = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
subprocess.run([sys.executable, "-c", hears], check=True)
"""


def test_what_tests_begin_hears_ctrl_c_in_a_background_job() -> None:
    command = [sys.executable, "-c", IN_A_BACKGROUND_JOB]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n", done.stderr
