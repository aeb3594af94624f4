"""Threads of darc's in a debugger."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path

from darc.target.ownthread import begin_thread
from tests.fake_target import FakeTarget

ROOT = Path(__file__).resolve().parents[3]


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


class Aside:
    """What a helper asks in place of the debugger."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def read(self, address: int, size: int) -> bytes:
        self.asked.append("read")
        return b"beside"

    def write(self, address: int, data: bytes) -> None:
        self.asked.append("write")

    def flush(self) -> None:
        self.asked.append("flush")

    def addresses(self) -> list[int]:
        return [0x42]


def test_a_helper_never_asks_the_debugger_and_steps_back_when_that_wants_its_turn() -> None:
    target, aside = FakeTarget(), Aside()
    target.process = 1
    target.map(0x1000, b"memory")
    helps, order = threading.Event(), list[str]()

    def help_on() -> None:
        with target.turn.taken(aside):
            order.append(target.memory.read(0x1000, 6).decode())
            target.memory.write(0x1000, b"helper")
            assert target.user_breaks.addresses() == [0x42]
            helps.set()
            while not target.turn.is_wanted:
                pass
            order.append("steps back")

    helper = begin_thread(help_on, "helper")
    helps.wait()
    order.append(target.memory.read(0x1000, 6).decode())
    helper.join()
    assert order == ["beside", "steps back", "memory"]
    assert aside.asked == ["read", "write"]
    assert not target.turn.is_wanted


def test_what_a_helper_has_nobody_for_is_refused() -> None:
    target, met = FakeTarget(), list[str]()

    def help_on() -> None:
        with target.turn.taken(Aside()):
            try:
                target.threads.ids()
            except AttributeError as error:
                met.append(str(error))

    begin_thread(help_on, "helper").join()
    assert met
    assert "ids" in met[0]
