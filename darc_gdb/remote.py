"""gdb's connection to a machine: QEMU's gdbstub or kgdb (see :mod:`kgdb.remote`)."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import gdb

from darc.code.frame_rule import WORD
from darc.model.errors import TargetError
from darc.target.memory import Hidden
from darc.target.outcome import OnHit, Outcome
from darc.target.ownthread import any_thread, begin_thread, own_thread
from darc_gdb import ctrlc
from darc_gdb.line import Line, line
from darc_gdb.target import GdbTarget
from darc_gdb.threads import assign, forget_registers
from kgdb.remote import Remote

_PHYSICAL = "Qqemu.PhyMemMode:"

_STAY_IN = "breakpoint always-inserted"
_PACKET_SIZES = ("remote memory-read-packet-size", "remote memory-write-packet-size")

_PLACES = {
    name: (8 * number, 8)
    for number, name in enumerate(
        ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)))
    )
} | {"rip": (128, 8), "eflags": (136, 4)}
"""Where registers lie in the packets ``g`` and ``G``, and their sizes in bytes (gdb's
``features/i386/64bit-core.xml``)."""

_ANSWER_SECONDS = 60
"""For how long gdb waits for an answer, before it asks again."""
_SOON = 1.0
"""Seconds to wait before the user is told what for."""
_LOOK = 0.1
"""Seconds between two looks whether that is to end."""
_WENT_ON = (
    "darc: somebody else let the machine go on, as QEMU's monitor or a snapshot does behind a "
    "pause: it stands now, and 'continue' lets it go on"
)
_INSISTS = 2
"""How often Ctrl-C breaks off what else would come to its end by itself, in milliseconds."""


class _Gate(gdb.Breakpoint):
    def __init__(
        self, address: int, accepts: Callable[[], bool], is_broken_off: Callable[[], bool]
    ) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.accepts = accepts
        self.is_broken_off = is_broken_off
        self.arrived = False
        self.failed: Exception | None = None

    def stop(self) -> bool:
        try:
            with ctrlc.waits():
                self.arrived = self.arrived or self.accepts()
        except Exception as error:  # gdb would say it aside, and stop as if it had been reached
            self.failed = error
        return self.is_over or self.is_broken_off()

    @property
    def is_over(self) -> bool:
        """Whether that is to end which lets the machine run to it."""
        return self.arrived or self.failed is not None


@own_thread
class GdbRemote(Remote):
    """The kernel behind gdb's remote connection."""

    def __init__(self, target: GdbTarget) -> None:
        self._target = target
        self.turn = target.turn
        self._set: list[tuple[str, str]] = []
        self._line: Line | None = None

    @property
    def target(self) -> GdbTarget:
        return self._target

    @functools.cached_property
    def is_qemu(self) -> bool:
        return "ENABLE=" in self._answer("qqemu.sstepbits")

    def be_patient(self) -> None:
        self._line = line()
        self._hold()
        # By itself gdb asks again after two seconds, is answered twice, and from then on takes
        # each answer for that to another question.
        if int(gdb.parameter("remotetimeout") or 0) < _ANSWER_SECONDS:
            gdb.execute(f"set remotetimeout {_ANSWER_SECONDS}", to_string=True)
        if self._line is not None and self.is_qemu:
            self._target.memory.hold_by(self._line.hold)
            self._target.inferiors.stand_by_itself(self._tell_if_it_ran)
            self._line.watch()
        else:
            self._line = None

    def _hold(self) -> None:
        if self._line is not None:
            self._line.hold()

    def _tell_if_it_ran(self) -> None:
        if self._line is not None and self._line.has_gone_on():
            forget_registers()
            self._target.screen.emit(_WENT_ON)

    def move_symbols(self, path: str, value: int, bias: int) -> None:
        with contextlib.suppress(gdb.error):
            known = int(gdb.parse_and_eval("(unsigned long) &linux_banner")) & WORD
            if known != (value + bias) & WORD:
                with gdb.with_parameter("confirm", False):
                    quoted = "'" + path.replace("'", "'\\''") + "'"
                    gdb.execute(f"symbol-file {quoted} -o {bias:#x}", to_string=True)

    def spare_line(self, longest: int) -> None:
        # Else gdb takes every breakpoint out and puts it back at each stop, in two packets.
        self._change(_STAY_IN, "on", ("off", "on")[bool(gdb.parameter(_STAY_IN))])
        for name in _PACKET_SIZES:  # else of 400 bytes
            self._change(name, str(longest), "0")
            self._change(name, "fixed", "limit")

    def _change(self, name: str, value: str, after: str) -> None:
        """Of a setting, until :meth:`spare_line_no_more`: it has the value ``after`` then."""
        self._set.insert(0, (name, after))
        self._setting(name, value)

    def spare_line_no_more(self) -> None:
        while self._set:
            self._setting(*self._set.pop(0))

    @staticmethod
    def _setting(name: str, value: str) -> None:
        with gdb.with_parameter("confirm", False):
            gdb.execute(f"set {name} {value}", to_string=True)

    def run_to(
        self, address: int, accepts: Callable[[], bool], waiting: str, late: str | None = None
    ) -> None:
        with ctrlc.noted() as ctrl_c:
            enough = ctrl_c.times + (1 if late is not None else _INSISTS)

            def is_broken_off() -> bool:
                return ctrl_c.times >= enough

            gate = _Gate(address, accepts, is_broken_off)
            limit = _Limit(
                self._target.inferiors.callbacks.is_to_leave,
                self._target.patience,
                is_broken_off,
                late,
            )
            try:
                with (
                    self._target.deciding.on_errand(),
                    self._without_users_breakpoints(),
                    _told(waiting, limit),
                ):
                    while not (gate.is_over or limit.has_stopped or is_broken_off()):
                        before = ctrl_c.times
                        with ctrl_c.let_through():
                            gdb.execute("continue", to_string=True)
                        if ctrl_c.times == before and not gate.is_over:
                            ctrl_c.came()  # gdb has heard of it
            except gdb.error as error:
                raise TargetError(f"gdb: {str(error).splitlines()[0].rstrip('.')}") from None
            finally:
                gate.delete()
        if gate.failed is not None:
            raise gate.failed
        if gate.arrived and not is_broken_off():
            return
        if limit.is_over:
            assert late is not None
            raise TargetError(f"--max-time is over, and {late}")
        raise TargetError(f"interrupted: darc {waiting}")

    @contextlib.contextmanager
    def undivided(self) -> Iterator[None]:
        with ctrlc.noted() as ctrl_c:
            before = ctrl_c.times
            yield
            ctrl_c.look()
            if ctrl_c.times > before:
                raise TargetError("interrupted: nothing is timed")

    @contextlib.contextmanager
    def _without_users_breakpoints(self) -> Iterator[None]:
        """They are the user's to be stopped by, not darc's."""
        disabled = [b for b in gdb.breakpoints() if b.number > 0 and b.enabled]
        for own in disabled:
            own.enabled = False
        try:
            yield
        finally:
            for own in disabled:
                if own.is_valid():
                    own.enabled = True

    def register(self, name: str) -> int:
        self._hold()
        try:
            return int(gdb.newest_frame().read_register(name)) & WORD
        except gdb.error as error:
            raise TargetError(f"gdb: {error}") from None

    def set_registers(self, values: Mapping[str, int]) -> None:
        changed = {name: value for name, value in values.items() if self.register(name) != value}
        if changed and not self._set_at_once(changed):
            for name, value in changed.items():
                assign(name, value)

    def _set_at_once(self, values: Mapping[str, int]) -> bool:
        """By gdb's own packets of all registers, which it sends where a gdbstub knows none of one.
        Whether they could be: what is read there is what gdb has."""
        forget_registers()
        known = {name: self.register(name) for name in _PLACES}  # of gdb's thread, from now on
        found = re.search(r'received: "((?:[0-9a-f]{2})+)"', self._answer("g"))
        if found is None or not values.keys() <= _PLACES.keys():
            return False
        raw = bytearray.fromhex(found[1])
        for name, (at, size) in _PLACES.items():
            if int.from_bytes(raw[at : at + size], "little") != known[name]:
                return False
        for name, value in values.items():
            at, size = _PLACES[name]
            raw[at : at + size] = value.to_bytes(size, "little")
        try:
            return self._ask(f"G{raw.hex()}")
        finally:
            forget_registers()

    @contextlib.contextmanager
    def physical(self) -> Iterator[bool]:
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield self._ask(f"{_PHYSICAL}1")
        finally:
            try:
                self._ask(f"{_PHYSICAL}0")
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    def be_virtual(self) -> None:
        if self.is_qemu:
            self._ask(f"{_PHYSICAL}0")

    def _ask(self, packet: str) -> bool:
        return '"OK"' in self._answer(packet)

    def _answer(self, packet: str) -> str:
        self._hold()
        return gdb.execute(f"maint packet {packet}", to_string=True)

    def read_raw(self, address: int, size: int) -> bytes:
        self._hold()
        return bytes(gdb.selected_inferior().read_memory(address, size))

    def write_raw(self, address: int, data: bytes) -> None:
        self._hold()
        gdb.selected_inferior().write_memory(address, data)

    def reach_through(self, hidden: Hidden | None) -> None:
        self._target.memory.reach_through(hidden)

    def unlock_by(self, unlock: Callable[[int, int], bool] | None) -> None:
        self._target.memory.unlock_by(unlock)

    def set_watch(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        return self._target.breaks.set_watch(address, on_hit)

    def arm_interrupt(self, handler: Callable[[], Outcome]) -> None:
        self._target.bell.arm_interrupt(handler)

    @any_thread
    def interrupt(self) -> None:
        self._target.bell.interrupt()


class _Limit:
    """When the machine has run long enough for darc's sake: as that ``is_broken_off``, and, where
    it may be ``late``, after ``patience``, in seconds, if that is not ``None``, or as gdb
    ``is_to_leave``. It is stopped then, once."""

    def __init__(
        self,
        is_to_leave: Callable[[], bool],
        patience: float | None,
        is_broken_off: Callable[[], bool],
        late: str | None,
    ) -> None:
        self._may_be_late = late is not None
        self._is_to_leave = is_to_leave
        self._is_broken_off = is_broken_off
        is_endless = patience is None or late is None
        self._end = math.inf if is_endless else time.monotonic() + (patience or 0)
        self.has_stopped = False
        self.is_over = False
        """Whether it was stopped as that time was over."""

    def look(self) -> None:
        """On a thread beside gdb's."""
        if self.has_stopped:
            return
        self.is_over = time.monotonic() >= self._end
        leaves = self._may_be_late and self._is_to_leave()
        if self.is_over or leaves or self._is_broken_off():
            self.has_stopped = True
            # As Ctrl-C does: what is posted gdb comes to when its command is over.
            os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def _told(waiting: str, limit: _Limit) -> Iterator[None]:
    """Tells the user what darc waits for, when that takes long, and keeps to its ``limit``."""
    over = threading.Event()

    def watch() -> None:
        told = time.monotonic() + _SOON
        while not over.wait(_LOOK):
            if time.monotonic() >= told:
                # Not by gdb, which keeps to itself whatever is written while the command runs.
                os.write(2, f"darc: {waiting}\n".encode())
                told = math.inf
            limit.look()

    gdb.flush()
    thread = begin_thread(watch, "darc-remote")
    try:
        yield
    finally:
        over.set()
        thread.join()
