"""The target interface on the GDB Python API.

gdb commands whose output has to be read are used in this file alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import gdb
import gdb.unwinder

from darc import admission, procfs
from darc.batch import Batch
from darc.errors import DarcError, TargetError, UnsupportedError
from darc.target import OnHit, State, Target, Verdict
from darc_gdb import detours
from darc_gdb.unwinder import PadUnwinder

_F = TypeVar("_F", bound=Callable[..., Any])
_WORD = (1 << 64) - 1
_DEADLY = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGQUIT", "SIGSEGV", "SIGSYS", "SIGTRAP"}
"""What a program does not ask for. It ends in a core file, or in a handler that makes a report."""


def _translated(function: _F) -> _F:
    """gdb's exceptions become darc's."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (gdb.error, gdb.MemoryError, ValueError, OverflowError, RuntimeError) as error:
            raise TargetError(f"gdb: {str(error).splitlines()[0].rstrip('.')}") from None

    return wrapper  # type: ignore[return-value]


class _Once(gdb.Breakpoint):  # type: ignore[misc]
    """Stops at f0's first instruction, lets darc begin, and goes on. Commands, not ``stop``,
    as functions may be called only in a program that has really stopped."""

    def __init__(self, address: int, handler: Callable[[], None]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.handler = handler
        self.address = address
        self.commands = "silent\npython darc_gdb.target.TARGET.arrived()\ncontinue"


class _Break(gdb.Breakpoint):  # type: ignore[misc]
    """One of :meth:`GdbTarget.set_break` or :meth:`GdbTarget.set_watch`."""

    def __init__(self, target: GdbTarget, on_hit: OnHit, spec: str, kind: int) -> None:
        super().__init__(spec, kind, gdb.WP_WRITE, internal=True)
        self._target = target
        self.on_hit = on_hit
        self.silent = True
        self.commands = "silent\npython darc_gdb.target.TARGET.after_hit()"

    def stop(self) -> bool:
        return self._target.hit(self)


class _BellCondition(gdb.Function):  # type: ignore[misc]
    """The condition of the catchpoint for the bell's signal: with all threads stopped it lets darc
    decide, and in most cases the program goes on without the user's command noticing."""

    def __init__(self, target: GdbTarget) -> None:
        super().__init__("_darc_bell")
        self._target = target

    def invoke(self) -> int:
        return int(self._target.rang())


class Hidden(Protocol):
    """Memory that gdb cannot reach by its addresses."""

    def read(self, address: int, size: int) -> bytes | None:
        """``None``: nothing is there."""

    def write(self, address: int, data: bytes) -> bool:
        """Whether anything is there."""


class GdbTarget(Target):
    """gdb's selected inferior; while it is analysed, that one (see :meth:`at_home`)."""

    def __init__(self) -> None:
        self._modules_handler: Callable[[], None] | None = None
        self._once: _Once | None = None
        self._bell: gdb.Breakpoint | None = None
        self._bell_handler: Callable[[], Verdict] | None = None
        self._bell_signal = 0
        self._bell_caught = 0
        self._asked = False
        """Whether darc itself is about to stop the program."""
        self._doomed: list[gdb.Breakpoint] = []
        self._counters: dict[int, int] | None = None
        self._deciding = False
        self._breaks: set[_Break] = set()
        self._batch: Batch | None = None
        self._deferred: Callable[[], Verdict] | None = None
        self._on_detour = False
        self.errand = False
        """Whether the program runs for darc's sake alone."""
        self._breakpoints_handler: Callable[[], None] | None = None
        self._home: gdb.Inferior | None = None
        self._runs = False
        self.dies = False
        """Whether it has stopped for a signal that will probably be its end."""
        self._children: set[int] = set()
        self._agent: tuple[int | None, int] | None = None
        self._shown_live = False
        self._lock = threading.Lock()
        self.unlock: Callable[[int, int], bool] | None = None
        """Makes the bytes at an address writable that were refused; whether it could."""
        self.hidden: Hidden | None = None
        """Memory that is there but not mapped now."""
        self.failed: Callable[[Exception], None] = lambda error: None
        self.on_user_stop: Callable[[], None] = lambda: None
        _BellCondition(self)
        gdb.events.new_objfile.connect(self._on_new_objfile)
        if hasattr(gdb.events, "free_objfile"):
            gdb.events.free_objfile.connect(self._on_new_objfile)
        gdb.events.breakpoint_created.connect(self._on_breakpoint)
        gdb.events.breakpoint_deleted.connect(self._on_deleted)
        gdb.events.breakpoint_modified.connect(self._on_breakpoint)
        gdb.events.memory_changed.connect(lambda _event: self._moved())
        gdb.events.cont.connect(lambda _event: self._moved(runs=True))
        self._all_stop = self._ask_all_stop()

    @staticmethod
    def _ask_all_stop() -> bool:
        """All threads are to stand still whenever one reports an event. Only settable before there
        is a program; without it darc decides at real stops."""
        with contextlib.suppress(gdb.error):
            gdb.execute("maint set target-non-stop off", to_string=True)
        text = gdb.execute("maint show target-non-stop", to_string=True)
        return " off" in text.splitlines()[0]

    def _moved(self, *, runs: bool = False) -> None:
        self._counters = None
        self._runs = runs or self._runs

    # ---------------------------------------------------------------- inferiors

    def is_home(self, inferior: gdb.Inferior) -> bool:
        """Whether this is the inferior that is analysed, or none is."""
        home = self._home
        if home is None or not home.is_valid() or not home.pid:
            return True
        return bool(inferior.num == home.num)

    @contextlib.contextmanager
    def at_home(self) -> Iterator[None]:
        """Selects the inferior that is analysed, where gdb looks at another one meanwhile: after a
        fork it may have both."""
        now = gdb.selected_inferior()
        if self._home is None or self.is_home(now):
            yield
            return
        before = gdb.selected_thread()
        self._home.threads()[0].switch()
        try:
            yield
        finally:
            if before is not None and before.is_valid():
                before.switch()
            else:
                gdb.execute(f"inferior {now.num}", to_string=True)

    def has_forked(self, child: gdb.Inferior) -> bool:
        """Whether ``child``, which gdb has just added, is one of the program's, with copies of its
        patches."""
        if not self._runs or not self.is_home(gdb.selected_inferior()):
            return False
        self._children.add(int(child.num))
        return True

    @contextlib.contextmanager
    def at_children(self) -> Iterator[Iterator[None]]:
        """Selects one child of :meth:`has_forked` after the other, before they first go on."""
        before = gdb.selected_thread()
        children = [i for i in gdb.inferiors() if i.num in self._children and i.threads()]
        self._children.clear()
        try:
            yield (child.threads()[0].switch() for child in children)
        finally:
            if children and before is not None and before.is_valid():
                before.switch()

    # -------------------------------------------------------------------- state

    @property
    def pid(self) -> int | None:
        pid = int(gdb.selected_inferior().pid)
        return pid or None

    @property
    def state(self) -> State:
        if self.pid is None:
            return State.NONE
        thread = gdb.selected_thread()
        if thread is None or not thread.is_valid() or thread.is_running():
            return State.RUNNING
        return State.STOPPED

    @property
    def attached(self) -> bool:
        return bool(gdb.selected_inferior().was_attached)

    @property
    def executable(self) -> str | None:
        name = gdb.current_progspace().filename
        return str(name) if name else None

    @_translated
    def check_supported(self) -> None:
        self._home = gdb.selected_inferior()
        if gdb.parameter("non-stop"):
            raise UnsupportedError("darc does not work in gdb's non-stop mode: 'set non-stop off'")
        # Not Inferior.connection: gdb 13 asserts at its exit once that object was made.
        stack = gdb.execute("maint print target-stack", to_string=True)
        if "record" in stack:
            raise UnsupportedError("darc does not work while gdb records: type 'record stop'")
        if self.pid is not None and " - native " not in stack:
            raise UnsupportedError("darc needs a running program on this machine, not a remote one")
        if self.pid is None:
            raise UnsupportedError("there is no program: 'run' or 'attach' it first")
        architecture = gdb.selected_frame().architecture().name()
        if architecture != "i386:x86-64":
            raise UnsupportedError(f"darc needs a 64-bit x86 program, this one is {architecture}")

    # ------------------------------------------------------------------- memory

    def read(self, address: int, size: int) -> bytes:
        return (self._read if self._batch is None else self._batch.read)(address, size)

    def write(self, address: int, data: bytes) -> None:
        (self._write if self._batch is None else self._batch.write)(address, data)

    def write_code(self, address: int, data: bytes) -> None:
        (self._write if self._batch is None else self._batch.write_code)(address, data)

    @_translated
    def _read(self, address: int, size: int) -> bytes:
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.MemoryError:
            found = None if self.hidden is None else self.hidden.read(address, size)
            if found is None:
                raise
            return found

    @_translated
    def _write(self, address: int, data: bytes) -> None:
        memory = gdb.selected_inferior()
        try:
            memory.write_memory(address, data)
        except gdb.MemoryError:
            if self.hidden is not None and self.hidden.write(address, data):
                return
            if not self._unlocked(address, len(data)):
                raise
            memory.write_memory(address, data)

    def _unlocked(self, address: int, size: int) -> bool:
        """Whether memory that could not be written can be now."""
        if self.unlock is None:
            return False
        batch, self._batch = self._batch, None
        try:
            return self.unlock(address, size)
        finally:
            self._batch = batch

    @contextlib.contextmanager
    def batched(self, fill: range) -> Iterator[None]:
        if self._batch is not None:
            yield
            return
        self._batch = Batch(self._read, self._write, fill)
        try:
            yield
        finally:
            try:
                self.flush()
            finally:
                self._batch = None

    def flush(self) -> None:
        if self._batch is not None:
            self._batch.flush()

    @_translated
    def forget_frames(self) -> None:
        gdb.invalidate_cached_frames()

    # ------------------------------------------------------------------ threads

    @staticmethod
    def _tid(thread: gdb.InferiorThread) -> int:
        pid, lwp, tid = thread.ptid
        return int(lwp or tid or pid)

    def threads(self) -> Sequence[int]:
        return [self._tid(t) for t in gdb.selected_inferior().threads()]

    @contextlib.contextmanager
    def _selected(self, thread: int) -> Iterator[gdb.Frame]:
        before = gdb.selected_thread()
        if before is not None and before.is_valid() and self._tid(before) == thread:
            yield gdb.newest_frame()
            return
        for candidate in gdb.selected_inferior().threads():
            if self._tid(candidate) == thread:
                break
        else:
            raise TargetError(f"thread {thread} is gone")
        try:
            candidate.switch()
            yield gdb.newest_frame()
        finally:
            if before is not None and before.is_valid():
                before.switch()

    @_translated
    def program_counters(self) -> Mapping[int, int]:
        if self._counters is None:
            self._counters = {t: self.read_register(t, "rip") for t in self.threads()}
        return self._counters

    @_translated
    def read_register(self, thread: int, name: str) -> int:
        with self._selected(thread) as frame:
            return int(frame.read_register(name)) & _WORD

    @_translated
    def write_register(self, thread: int, name: str, value: int) -> None:
        with self._selected(thread):
            gdb.execute(f"set ${name} = {value:#x}", to_string=True)
        self._moved()

    @_translated
    def call(self, address: int, arguments: Sequence[int]) -> int:
        place = self._detour()
        if place is not None:
            number = admission.bell_signal(self.pid or 0)
            self._catch(number)
            self._on_detour = True
            try:
                return detours.call(self, place, number, address, arguments)
            finally:
                self._on_detour = False
        listed = ", ".join(f"{argument & _WORD:#x}UL" for argument in arguments)
        types = ", ".join(["unsigned long"] * len(arguments)) or "void"
        with (
            gdb.with_parameter("language", "c"),
            gdb.with_parameter("scheduler-locking", "on"),
            gdb.with_parameter("unwindonsignal", True),
        ):
            value = gdb.parse_and_eval(f"((unsigned long (*)({types})){address:#x})({listed})")
        return int(value) & _WORD

    def _detour(self) -> int | None:
        """Where a call may stand that comes back by itself; ``None`` for a program that ends with
        gdb in any case, or might be killed for ringing."""
        pid = self.pid
        if pid is None or not self.attached or procfs.in_sandbox(pid) or self._once is not None:
            return None
        return detours.find_place(pid)

    # ----------------------------------------------------------- stops and bells

    def when_modules_change(self, handler: Callable[[], None] | None) -> None:
        self._modules_handler = handler

    @_translated
    def breakpoints(self) -> Sequence[int]:
        found: set[int] = set()
        for breakpoint_ in gdb.breakpoints():
            if breakpoint_.number <= 0 or not breakpoint_.is_valid() or not breakpoint_.enabled:
                continue
            for location in getattr(breakpoint_, "locations", ()):
                if location.address:  # a catchpoint has none
                    found.add(int(location.address))
        return sorted(found)

    def when_breakpoints_change(self, handler: Callable[[], None] | None) -> None:
        self._breakpoints_handler = handler

    def _on_deleted(self, breakpoint_: gdb.Breakpoint) -> None:
        """'delete' takes darc's catchpoint with it: it is made anew before the program goes on."""
        if breakpoint_ is self._bell:
            self._bell = None

    def before_continue(self) -> None:
        """The catchpoint that listens to the bell is there."""
        if self._bell_handler is not None and self._bell is None:
            self.arm_bell(self._bell_signal, self._bell_handler)

    def _on_breakpoint(self, breakpoint_: gdb.Breakpoint) -> None:
        if self._breakpoints_handler is not None and breakpoint_.number > 0:
            self._guarded(self._breakpoints_handler)

    @_translated
    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        gdb.unwinder.register_unwinder(None, PadUnwinder(caller), replace=True)
        if self._agent != (self.pid, base):
            self.hide_pads()
            with gdb.with_parameter("confirm", False):
                gdb.execute(f"add-symbol-file {_quoted(agent)} -o {base:#x}", to_string=True)
            self._agent = (self.pid, base)

    @_translated
    def hide_pads(self) -> None:
        if self._agent is not None:
            with contextlib.suppress(gdb.error), gdb.with_parameter("confirm", False):
                gdb.execute(f"remove-symbol-file -a {self._agent[1]:#x}", to_string=True)
            self._agent = None

    def _on_new_objfile(self, _event: object) -> None:
        mine = self.is_home(gdb.selected_inferior())
        if mine and self._modules_handler is not None and self.pid is not None:
            self._guarded(self._modules_handler)

    def _guarded(self, function: Callable[[], None]) -> None:
        """Runs something on behalf of an event, where nobody would see its exception."""
        try:
            function()
        except Exception as error:  # told to the user, in one place
            self.failed(error)

    @_translated
    def break_once(self, address: int, handler: Callable[[], None]) -> None:
        if self._once is not None and self._once.is_valid() and self._once.address == address:
            self._once.handler = handler
            return
        self.cancel_break()
        self._once = _Once(address, handler)

    @_translated
    def cancel_break(self) -> None:
        if self._once is not None and self._once.is_valid():
            self._once.delete()
        self._once = None

    def arrived(self) -> None:
        """The commands of :class:`_Once`."""
        once = self._once
        if once is None:
            return
        self.cancel_break()
        self._guarded(once.handler)

    @_translated
    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        self.read(address, 1)  # gdb would tell only when the program is to go on
        return self._added(_Break(self, on_hit, f"*{address:#x}", gdb.BP_BREAKPOINT))

    @_translated
    def set_watch(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        """As :meth:`set_break`, whenever the eight bytes at ``address`` change. Raises TargetError
        where gdb would have to look after every instruction."""
        with gdb.with_parameter("language", "c"), gdb.with_parameter("can-use-hw-watchpoints", 1):
            made = _Break(self, on_hit, f"*(unsigned long *) {address:#x}", gdb.BP_WATCHPOINT)
        if made.type != gdb.BP_HARDWARE_WATCHPOINT:
            made.delete()
            raise TargetError("gdb cannot watch memory here")
        return self._added(made)

    def _added(self, made: _Break) -> Callable[[], None]:
        self._breaks.add(made)
        return lambda: self._take_back(made)

    def _take_back(self, made: _Break) -> None:
        if made not in self._breaks:
            return
        self._breaks.discard(made)
        with contextlib.suppress(gdb.error, RuntimeError):  # gdb may have done so by itself
            made.enabled = False
        self._doomed.append(made)
        if not self._deciding:
            self._bury()

    def own_threads(self) -> Sequence[int]:
        return [os.getpid()]  # Python runs on gdb's main thread

    @property
    def hits_stop_all(self) -> bool:
        return self._all_stop

    def hit(self, made: _Break) -> bool:
        """What a break decides: whether gdb is to stop for real."""
        if made not in self._breaks:
            return False
        self._moved()
        thread = self._tid(gdb.selected_thread())
        try:
            with self._undisturbed():
                deferred = made.on_hit(thread)
                if deferred is None:
                    return False
                if self._all_stop:
                    return deferred() is Verdict.STOP
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return True
        self._deferred = deferred
        return True

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Nothing is deleted meanwhile, as gdb is looking at it, and Ctrl-C in the middle of a
        patch has to wait until the patch is whole."""
        self._deciding = True
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            self._deciding = False
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def after_hit(self) -> None:
        """The commands of a break, at a real stop: for the user, or for what has to wait until all
        threads stand still."""
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            verdict = Verdict.STOP
            try:
                verdict = deferred()
            except Exception as error:  # told to the user, in one place
                self.failed(error)
            if verdict is Verdict.CONTINUE:
                gdb.execute("continue")
                return
            self.on_user_stop()
        gdb.execute("frame")

    @_translated
    def arm_bell(self, number: int, handler: Callable[[], Verdict]) -> None:
        self._bell_handler = handler
        self._bell_signal = number
        if not self._deciding:
            self._bury()
        self._catch(number)

    def _catch(self, number: int) -> None:
        """gdb stops at the signal, which a thread sends itself, if :meth:`rang` says so."""
        if self._bell is not None and self._bell.is_valid():
            if self._bell_caught == number:
                return
            self._bell.delete()
        self._bell_caught = number
        name = signal.Signals(number).name
        gdb.execute(f"catch signal {name}", to_string=True)
        made = int(gdb.parse_and_eval("$bpnum"))
        self._bell = next(b for b in gdb.breakpoints() if b.number == made)
        self._bell.condition = "$_darc_bell()"
        self._bell.commands = "silent\npython darc_gdb.target.TARGET.after_bell()"

    def arm_interrupt(self, handler: Callable[[], Verdict]) -> None:
        """``handler`` decides, with all threads stopped, after :meth:`interrupt`. The user's own
        Ctrl-C stops as always. Taken back by :meth:`disarm_bell`."""

        def decide() -> Verdict:
            asked, self._asked = self._asked, False
            if asked:
                return handler()
            return self._interrupted()

        self._asked = False
        self.arm_bell(signal.SIGINT, decide)

    @staticmethod
    def _interrupted() -> Verdict:
        gdb.write("\nProgram received signal SIGINT, Interrupt.\n")
        return Verdict.STOP

    def interrupt(self) -> None:
        """Stops the program for the handler of :meth:`arm_interrupt`, if it runs. Any thread."""
        gdb.post_event(self._interrupt)

    def _interrupt(self) -> None:
        if self._bell_handler is not None and self.state is State.RUNNING:
            self._asked = True
            gdb.execute("interrupt", to_string=True)

    @_translated
    def disarm_bell(self) -> None:
        self._bell_handler = None
        if self._bell is not None:
            self._doomed.append(self._bell)
            self._bell = None
        if not self._deciding:
            self._bury()

    def _bury(self) -> None:
        """Deletes what could not be deleted while gdb was looking at it."""
        for breakpoint_ in self._doomed:
            if breakpoint_.is_valid():
                breakpoint_.delete()
        self._doomed.clear()

    def rang(self) -> bool:
        """The catchpoint's condition: whether gdb is to stop for real."""
        if self.errand:
            return True
        if self._bell_handler is None and self._bell_signal == signal.SIGINT:
            return self._interrupted() is Verdict.STOP  # the catchpoint is not buried yet
        if self._bell_handler is None or not self.is_home(gdb.selected_inferior()):
            return False
        if not self._all_stop:
            return True
        return self._answer()

    def _answer(self) -> bool:
        handler = self._bell_handler
        if handler is None:
            return False
        self._moved()
        try:
            with self._undisturbed():
                return handler() is Verdict.STOP
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return True

    def after_bell(self) -> None:
        """The catchpoint's commands, at a real stop."""
        if self._on_detour:
            return
        if not self._all_stop and not self._answer():
            gdb.execute("continue")
            return
        gdb.execute("frame")

    def is_own_stop(self, event: gdb.StopEvent) -> bool:
        """Whether a stop is darc's alone, and the program goes on by itself."""
        if self.errand:
            return True
        if not isinstance(event, gdb.BreakpointEvent):
            return False
        if self._deferred is not None:
            return all(isinstance(b, _Break) for b in event.breakpoints)
        own = [self._once] if self._all_stop else [self._once, self._bell]
        return all(any(b is o for o in own) for b in event.breakpoints)

    @contextlib.contextmanager
    def on_errand(self) -> Iterator[None]:
        """The program runs for darc's sake alone: to a place, or through a function."""
        self.errand = True
        try:
            yield
        finally:
            self.errand = False

    def stopped(self, event: gdb.StopEvent) -> None:
        """Every stop of the program."""
        self.dies = isinstance(event, gdb.SignalEvent) and event.stop_signal in _DEADLY

    def at_prompt(self) -> None:
        """Before every prompt and at every stop for the user."""
        self._runs = False
        self._moved()
        self._bury()

    def on_exit(self) -> None:
        """The program is gone, and what was set at its addresses."""
        self._moved()
        self._deferred = None
        for made in list(self._breaks):
            self._take_back(made)

    # ------------------------------------------------------------------ symbols

    @_translated
    def line_at(self, address: int) -> tuple[str, int] | None:
        found = gdb.find_pc_line(address)
        if found.symtab is None or not found.line:
            return None
        return str(found.symtab.filename), int(found.line)

    @_translated
    def inlined_at(self, address: int) -> tuple[str, ...]:
        names: list[str] = []
        block = gdb.block_for_pc(address)
        while block is not None and not block.is_global and not block.is_static:
            if block.function is not None:
                names.append(str(block.function.print_name))
            block = block.superblock
        return tuple(reversed(names[:-1]))

    @_translated
    def functions_in(self, file: str, function: str) -> Sequence[int]:
        try:
            _, places = gdb.decode_line(f"{file}:{function}")
        except gdb.error as error:
            if "not defined" in str(error) or "No source file" in str(error):
                return []
            raise
        found = set()
        for place in places or ():
            block = gdb.block_for_pc(place.pc)
            while block is not None and block.function is None:
                block = block.superblock
            if block is not None:
                found.add(int(block.start))
        return sorted(found)

    # ------------------------------------------------------------------- output

    def accepts_pending(self, question: str) -> bool:
        setting = gdb.parameter("breakpoint pending")
        if setting is not None:
            return bool(setting)
        if not gdb.parameter("confirm") or not sys.stdin.isatty():
            return True
        print(f"darc: {question} (y or [n]) ", end="", flush=True)
        return sys.stdin.readline().strip().lower().startswith("y")

    @property
    def colour(self) -> bool:
        return bool(gdb.parameter("style enabled")) and _is_terminal()

    @property
    def width(self) -> int:
        return int(gdb.parameter("width") or 0)

    def live(self, text: str | None) -> None:
        if not _is_terminal():
            return
        with self._lock:
            if text is None and not self._shown_live:
                return
            self._shown_live = text is not None
            os.write(2, b"\r\x1b[K" + (text or "").encode("utf-8", "replace"))

    def emit(self, text: str) -> None:
        self.live(None)
        try:
            gdb.write(text + "\n")
        except UnicodeEncodeError:
            gdb.write(text.encode("ascii", "replace").decode() + "\n")
        gdb.flush()


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_terminal() -> bool:
    return os.isatty(1) and os.isatty(2)


TARGET: GdbTarget
"""The one target, for the commands of breakpoints; set by :mod:`darc_gdb.load`."""

__all__ = ["DarcError", "GdbTarget"]
