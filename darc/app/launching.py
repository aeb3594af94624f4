"""What ``darc-gdb`` and ``darc-lldb`` share: asking a debugger something, and ending at Ctrl-C."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from darc.model.errors import DarcError
from darc.model.refusal import Refusal
from darc.views.words import message

INTERRUPTED = 130
"""The exit status that shells give to what Ctrl-C has ended."""

SILENT_SECONDS = 1.0
LIMIT_SECONDS = 60.0
"""Far longer than a debugger takes to begin on a busy machine."""


def package_folders() -> list[str]:
    """The folders of this interpreter's ``sys.path`` that hold installed packages."""
    return [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]


class NoAnswerError(DarcError):
    """A debugger says nothing; tells in one line what it was asked, and what to do."""


def ask(launcher: str, command: Sequence[str], changed: Mapping[str, str]) -> str:
    """What a debugger writes that is started to tell its version of Python, with ``changed`` in
    its environment. Whatever it has started is gone with it when it does not answer.

    Raises:
        OSError: it does not start.
        NoAnswerError: it does not end, or a signal has ended it.
    """
    with subprocess.Popen(
        command,
        env={**os.environ, **changed},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            told = _wait(process, launcher, command)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode < 0:
        ended = f"{command[0]} was ended by {signal.Signals(-process.returncode).name}"
        raise NoAnswerError(
            f"{ended} as it was asked for its version of Python; "
            f"see what it says: {shlex.join(command)}"
        )
    return told


def _wait(process: subprocess.Popen[str], launcher: str, command: Sequence[str]) -> str:
    try:
        return process.communicate(timeout=SILENT_SECONDS)[0]
    except subprocess.TimeoutExpired:
        words = f"waits for {command[0]} to tell its version of Python (Ctrl-C ends this)"
        print(message(f"{launcher}: {words}"), file=sys.stderr, flush=True)
    try:
        return process.communicate(timeout=LIMIT_SECONDS)[0]
    except subprocess.TimeoutExpired:
        asked = f"{command[0]} was asked for its version of Python and says nothing"
        raise NoAnswerError(f"{asked}; see what it waits for: {shlex.join(command)}") from None


_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""As it begins (``PyOS_InitializeSignals``). What is ignored stays so over an exec: in the
debugger, in the programs that it runs and in all that these begin, whose pipelines would not end.
"""


def launch(
    name: str, find: Callable[[], tuple[Sequence[str], Mapping[str, str]] | Refusal]
) -> None:
    """This process, which was called as ``name``, is from now on the debugger that ``find`` tells
    of: how to start it so that it loads darc, and what to set in its environment; or why there is
    none, which ends this with status 1 and one line. Ctrl-C ends it without a word."""
    try:
        found = find()
        if isinstance(found, Refusal):
            sys.exit(message(f"{name}: {found.why}"))
        _become(*found)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _become(command: Sequence[str], changed: Mapping[str, str]) -> None:
    """With the arguments that this process has, and ``changed`` in its environment."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    os.execve(command[0], [*command, *sys.argv[1:]], {**os.environ, **changed})
