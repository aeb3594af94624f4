"""By which signal a call that a stopped thread makes for darc rings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from signal import SIGCHLD, SIGCONT, SIGURG, SIGWINCH

import pytest

from darc.debuggee.admission import bell_signal

PROGRAM = """
import signal, sys
caught, blocked = ([int(number) for number in words.split(",") if number] for words in sys.argv[1:])
for number in caught:
    signal.signal(number, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("caught", "blocked", "expected"),
    [
        ((), (), SIGURG),
        ((SIGURG,), (), SIGWINCH),
        ((SIGURG, SIGWINCH), (), SIGCHLD),
        ((SIGURG, SIGWINCH), (SIGCHLD,), SIGCONT),
        ((SIGURG, SIGWINCH, SIGCHLD), (), SIGCONT),
    ],
)
def test_one_that_the_program_does_not_hear(
    caught: Sequence[int], blocked: Sequence[int], expected: int
) -> None:
    """SIGCONT takes back the SIGSTOPs that a debugger waits for: it is the last."""
    words = [",".join(str(int(number)) for number in numbers) for numbers in (caught, blocked)]
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PROGRAM, *words]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        assert bell_signal(program.pid) == expected
        program.communicate(b"")
