"""What a signal does in this process, also by handlers that Python knows nothing of."""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path

import pytest

from darc.app.sigactions import action_of, set_action

NUMBER = signal.SIGUSR2


def test_a_handler_that_python_does_not_know_is_kept(tmp_path: Path) -> None:
    """As those of a debugger are: faulthandler has one in C."""
    assert signal.getsignal(NUMBER) == signal.SIG_DFL
    with (tmp_path / "told").open("w+") as told:
        faulthandler.register(NUMBER, file=told, all_threads=False)
        try:
            own = action_of(NUMBER)
            signal.signal(NUMBER, signal.SIG_IGN)
            os.kill(os.getpid(), NUMBER)
            assert not (tmp_path / "told").read_text()
            set_action(NUMBER, own)
            os.kill(os.getpid(), NUMBER)
            assert __name__.rpartition(".")[2] in (tmp_path / "told").read_text()
        finally:
            signal.signal(NUMBER, signal.SIG_DFL)
            faulthandler.unregister(NUMBER)
    assert signal.getsignal(NUMBER) == signal.SIG_DFL


def test_a_signal_that_there_is_not() -> None:
    with pytest.raises(OSError, match="sigaction"):
        action_of(signal.NSIG)
    with pytest.raises(OSError, match="sigaction"):
        set_action(signal.NSIG, action_of(NUMBER))
