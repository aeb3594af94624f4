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
AT_THE_END = """
import gc
import tests.conftest
class Left:
    def __del__(self):
        print("is collected")
left = Left()
left.itself = left
del left
tests.conftest.pytest_sessionfinish()
print("is done", len(gc.get_objects()) < 100)
"""


def test_nothing_is_left_for_a_collection_behind_the_end() -> None:
    command = [sys.executable, "-c", AT_THE_END]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "is collected\nis done True\n", done.stderr


def test_what_tests_begin_hears_ctrl_c_in_a_background_job() -> None:
    command = [sys.executable, "-c", IN_A_BACKGROUND_JOB]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n", done.stderr
