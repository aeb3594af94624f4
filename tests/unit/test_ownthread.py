"""Threads of darc's in a debugger."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path

from darc.target.ownthread import begin_thread

ROOT = Path(__file__).resolve().parents[2]


def test_no_signal_comes_to_a_thread_of_darcs() -> None:
    """gdb blocks SIGCHLD until it waits for one: if another thread takes it, gdb waits for ever."""
    found: list[set[signal.Signals | int]] = []
    its = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    thread = begin_thread(lambda: found.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())), "t")
    thread.join()
    assert its <= found[0]
    assert thread.daemon
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert thread is not threading.main_thread()


def test_all_threads_are_made_in_one_place() -> None:
    packages = ("darc", "darc_gdb", "darc_lldb", "kgdb")
    made = [
        str(file.relative_to(ROOT))
        for package in packages
        for file in sorted((ROOT / package).rglob("*.py"))
        if re.search(r"threading\.(Thread|Timer)\(|start_new_thread", file.read_text())
    ]
    assert made == ["darc/target/ownthread.py"]
