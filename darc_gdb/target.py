"""The target interface on the GDB Python API.

gdb commands whose output has to be read are used in this file alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import gdb
import gdb.unwinder

from darc.code.demangle import without_arguments
from darc.debuggee import bell, procfs
from darc.model.errors import DarcError, PadsImpossibleError, TargetError, UnsupportedError
from darc.target.batch import Batch
from darc.target.ownthread import any_thread, own_thread
from darc.target.target import Hidden, OnHit, Outcome, Passage, State, Target
from darc.views import glyphs
from darc.views.words import message
from darc_gdb import ctrlc, detours
from darc_gdb.hits import Hits
from darc_gdb.tracee import Tracee
from darc_gdb.unwinder import PadUnwinder

_P = ParamSpec("_P")
_R = TypeVar("_R")
_WORD = (1 << 64) - 1
_PLAIN_FILE = re.compile(r"[\w./+~@][\w./+~@ #%=-]*")
_PLAIN_FUNCTION = re.compile(r"[A-Za-z_~][\w.:~<>()\[\]&*, +/=!|^%-]*")
"""What is no expression in gdb's places; a name from a saved session may be anything."""

_DEBUGGERS_NAME = re.compile(r"[A-Za-z_~][\w:~<>()\[\]{}#&*, +-]*")
"""The same, with what gdb calls implementations in Rust (``{impl#1}``)."""

_DEADLY = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGQUIT", "SIGSEGV", "SIGSYS", "SIGTRAP"}
"""What a program does not ask for. It ends in a core file, or in a handler that makes a report."""
_AT_STOP = "python __import__('darc_gdb.target').target.TARGET.after_stop()"
"""Commands of a breakpoint are code of the user's main module."""


def _translated(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """gdb's exceptions become darc's."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (gdb.error, gdb.MemoryError, ValueError, OverflowError, RuntimeError) as error:
            raise TargetError(f"gdb: {_first_line(error)}") from None
        except SystemError:  # gdb has failed without a word, as when the program is gone
            raise TargetError("gdb: it cannot say why; is the program gone?") from None

    return wrapper


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


class _Once(gdb.Breakpoint):
    """At f0's first instruction lets darc begin, and the program goes on. Nobody else hears of it
    where darc can do so while gdb asks whether to stop; else it is a stop, with commands."""

    def __init__(self, target: GdbTarget, address: int, handler: Callable[[], None]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.silent = True
        self.handler = handler
        self.address = address
        self.commands = _at_stop()
        self._target = target

    def stop(self) -> bool:
        return self._target.came(self)


class _Break(gdb.Breakpoint):
    """One of :meth:`GdbTarget.set_break` or :meth:`GdbTarget.set_watch`."""

    def __init__(self, target: GdbTarget, on_hit: OnHit, spec: str, kind: int) -> None:
        super().__init__(spec, kind, gdb.WP_WRITE, internal=True)
        self._target = target
        self.on_hit = on_hit
        self.silent = True
        self.commands = _at_stop()

    def stop(self) -> bool:
        return self._target.hit(self)


class _BellCondition(gdb.Function):
    """The condition of the catchpoint for the bell's signal: with all threads stopped it lets darc
    decide, and in most cases the program goes on without the user's command noticing."""

    def __init__(self, target: GdbTarget) -> None:
        super().__init__("_darc_bell")
        self._target = target

    def invoke(self, *_arguments: gdb.Value) -> int:
        return int(self._target.rang())


@own_thread
class GdbTarget(Target):
    """gdb's selected inferior; while it is analysed, that one (see :meth:`at_home`)."""

    def __init__(self) -> None:
        self._own_thread = threading.get_ident()
        self._modules_handler: Callable[[], None] | None = None
        self._once: _Once | None = None
        self._bell: gdb.Breakpoint | None = None
        self._bell_handler: Callable[[], Outcome] | None = None
        self._bell_signal = 0
        self._bell_caught = 0
        self._withheld: str | None = None
        """The signal that gdb is told not to pass on, as the one that it has now is darc's."""
        self._asked = False
        """Whether darc itself is about to stop the program."""
        self._doomed: list[gdb.Breakpoint] = []
        self._own_stops = 0
        self._counters: dict[int, int] | None = None
        self._deciding = False
        self._breaks: set[_Break] = set()
        self._batch: Batch | None = None
        self._owed: Callable[[], Outcome] | None = None
        """What is to be done as soon as all threads stand still."""
        self._too_early = False
        """Whether a breakpoint's commands were carried out before that was done."""
        self._goes = False
        """Whether the program is to go on when its stop has been told to everybody."""
        self.errand = False
        """Whether the program runs for darc's sake alone."""
        self._breakpoints_handler: Callable[[], None] | None = None
        self._hits = Hits()
        self._places: dict[int, frozenset[int]] = {}
        """Where the user's breakpoints stood when they were last heard of, by their numbers."""
        self._home: gdb.Inferior | None = None
        self._runs = False
        self._runs_so_far = 0
        self._calls = 0
        self.dies = False
        """Whether it has stopped for a signal that will probably be its end."""
        self._children: set[int] = set()
        self._agent: tuple[int | None, int] | None = None
        self._shown_live = False
        self._encoding = str(gdb.host_charset())
        self._lock = threading.Lock()
        self.unlock: Callable[[int, int], bool] | None = None
        """Makes the bytes at an address writable that were refused; whether it could."""
        self.hidden: Hidden | None = None
        """Memory that is there but not mapped now."""
        self.is_local = True
        """Whether the program may be a process of this machine."""
        self.failed: Callable[[Exception], None] = lambda error: None
        self.on_user_stop: Callable[[], None] = lambda: None
        self._settles = False
        """Whether :meth:`settle` does what was owed."""
        self._is_told = False
        """Whether all handlers have heard of a stop that is darc's own."""
        self.goes_on: Callable[[], None] = lambda: None
        self.went_on: Callable[[], None] = lambda: None
        """Before the program goes on, and not step by step."""
        self.leaving: Callable[[], None] | None = None
        """What the bell is to do now, as gdb is about to leave."""
        self.hears_stops_last: Callable[[], None] = lambda: None
        """darc is to hear of the next stop behind all others, and :meth:`settle` is called then."""
        self.undisturbed: Callable[[], contextlib.AbstractContextManager[None]]
        self.undisturbed = contextlib.nullcontext
        """gdb is not to leave while a command of darc's is at work."""
        self._is_driven = _has_front_end()
        self._has_line = True
        """Whether the line below gdb's output is darc's to write on while the program runs."""
        self._all_stop = False
        self._quiet = False
        """Whether darc writes beside gdb."""
        self._stale = False
        """Whether it has, since :meth:`unnoticed`."""
        self.before_stop: Callable[[], None] = lambda: None
        """When a stop of darc's is to be one for the user, before anybody hears of it."""

    def listeners(self) -> Sequence[tuple[Any, Callable[[Any], None]]]:
        """What to connect with which of gdb's events."""
        events = gdb.events
        found = [
            (events.new_objfile, self._on_new_objfile),
            (events.breakpoint_created, self._on_breakpoint),
            (events.breakpoint_deleted, self._on_deleted),
            (events.breakpoint_modified, self._on_breakpoint),
            (events.memory_changed, lambda _event: self._moved()),
            (events.cont, lambda _event: self._went_on()),
        ]
        if hasattr(events, "inferior_call"):
            found.append((events.inferior_call, self._on_call))
        if hasattr(events, "free_objfile"):
            found.append((events.free_objfile, self._on_new_objfile))
        return found

    def announce(self) -> None:
        """Tells gdb of it."""
        _BellCondition(self)
        self._all_stop = self._ask_all_stop()

    @staticmethod
    def _ask_all_stop() -> bool:
        """All threads are to stand still whenever one reports an event. Only settable before there
        is a program; without it darc decides at real stops."""
        with contextlib.suppress(gdb.error):
            gdb.execute("maint set target-non-stop off", to_string=True)
        text = gdb.execute("maint show target-non-stop", to_string=True)
        return " off" in text.splitlines()[0]

    def is_own_thread(self) -> bool:
        """Whether this is the thread that gdb runs on, and loaded darc on."""
        return threading.get_ident() == self._own_thread

    def _moved(self, *, runs: bool = False) -> None:
        if runs:
            self._pass_again()
        self._counters = None
        self._runs = runs or self._runs

    def _went_on(self) -> None:
        self._moved(runs=True)
        self._runs_so_far += 1
        self._hits.forget()
        self._has_line = not _has_front_end() and not _has_windows()

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
            yield _one_by_one(children)
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
        try:
            space = gdb.current_progspace()
            name = space.filename if space is not None else None
        except UnicodeError:  # gdb tells it only in the locale's characters
            if self.pid is None:
                raise TargetError(
                    "gdb cannot tell the name of the program's file in this locale: 'run' first"
                ) from None
            return procfs.file(self.pid) or None
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
        if self._quiet and self._written_unnoticed(address, data):
            return
        memory = gdb.selected_inferior()
        try:
            memory.write_memory(address, data)
        except gdb.MemoryError:
            if self.hidden is not None and self.hidden.write(address, data):
                return
            if not self._unlocked(address, len(data)):
                raise
            memory.write_memory(address, data)

    def _written_unnoticed(self, address: int, data: bytes) -> bool:
        """Whether it could be written beside gdb, which tells everybody of each write that it
        makes. Where a breakpoint of any kind stands in these bytes they are gdb's to write, and all
        memory of a program that is not a process of gdb's on this machine."""
        pid = self.pid
        if pid is None or not self.is_local:
            return False
        if procfs.status(pid).get("TracerPid", "").strip() != str(os.getpid()):
            return False
        try:
            with procfs.Memory(pid) as memory:
                seen = bytes(gdb.selected_inferior().read_memory(address, len(data)))
                if memory.read(address, len(data)) != seen:
                    return False
                self._stale = True
                memory.write(address, data)
        except (TargetError, gdb.MemoryError):
            return False
        return True

    @contextlib.contextmanager
    def unnoticed(self) -> Iterator[None]:
        """What darc writes meanwhile is no event for other extensions and front ends: there are
        hundreds of writes at a stop, and each of them may read everything anew, with the program
        standing still. Not within a stop's handlers, as it ends with a command of gdb's."""
        if self._quiet or self._settles:
            yield
            return
        self._quiet, self._stale = True, False
        try:
            yield
        finally:
            self._quiet = False
            if self._stale:  # gdb keeps code and stacks that it has read since the program stopped
                with contextlib.suppress(gdb.error):
                    gdb.execute("maint flush dcache", to_string=True)

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

    @property
    def stop_number(self) -> int | None:
        return self._runs_so_far  # gdb tells of each time that it lets a thread go on

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
        if (found := self._ask_kernel(thread, name)) is not None:
            return found
        with self._selected(thread) as frame:
            return int(frame.read_register(name)) & _WORD

    def _ask_kernel(self, thread: int, name: str) -> int | None:
        """A general register of a process of this machine: gdb takes as long for one thread as the
        kernel for a hundred, and longer the more there are. ``None``: gdb is to be asked."""
        inferior = gdb.selected_inferior()
        connection = getattr(inferior, "connection", None)
        if connection is None or connection.type != "native" or not inferior.pid:
            return None
        try:
            return Tracee(int(inferior.pid), thread).registers().get(name)
        except TargetError:
            return None

    @_translated
    def write_register(self, thread: int, name: str, value: int) -> None:
        with self._selected(thread):
            # Not by a command: behind each of those gdb carries out what breakpoints have to do,
            # also in the middle of a stop.
            gdb.parse_and_eval(f"${name} {_assignment()} {value:#x}")
        self._moved()

    @_translated
    def call(self, address: int, arguments: Sequence[int]) -> int:
        place = self._detour()
        if place is not None:
            return detours.call(self, place, address, arguments)
        listed = ", ".join(f"{argument & _WORD:#x}UL" for argument in arguments)
        types = ", ".join(["unsigned long"] * len(arguments)) or "void"
        with (
            gdb.with_parameter("language", "c"),
            gdb.with_parameter("scheduler-locking", "on"),
            gdb.with_parameter("unwindonsignal", True),
        ):
            value = gdb.parse_and_eval(f"((unsigned long (*)({types})){address:#x})({listed})")
        return int(value) & _WORD

    @_translated
    def system_call(self, number: int, arguments: Sequence[int]) -> int | None:
        place = self._detour()
        return None if place is None else detours.system_call(self, place, number, arguments)

    def lead_out(self, thread: int, passage: Passage) -> bool:
        if self.pid is None or passage.mask is None:
            return super().lead_out(thread, passage)
        detours.lead_out(self, self.pid, thread, passage)
        return True

    def wake(self) -> None:
        place = self._detour()
        if place is None or self.pid is None:
            super().wake()
        else:
            detours.wake(self, place, self.pid)

    def _detour(self) -> int | None:
        """Where a call may stand that comes back by itself; ``None``: gdb is to make it, as the
        program might be killed for what a detour asks of the kernel, or would end with gdb anyway
        and has no room.

        Raises:
            PadsImpossibleError: it would not end with gdb, and has no room.
        """
        pid = self.pid
        if pid is None or procfs.in_sandbox_of_its_own(pid):
            return None
        place = detours.find_place(pid)
        if place is None and self.attached:
            raise PadsImpossibleError("the program's files have no room for darc's calls")
        return place

    def _calls_unnoticed(self) -> bool:
        """Whether gdb has no part in calls."""
        try:
            return self._detour() is not None
        except DarcError:
            return True  # they are all refused

    def threads_from_selected(self) -> Sequence[int]:
        """All threads, the selected one first."""
        thread, found = gdb.selected_thread(), self.threads()
        first = [] if thread is None else [self._tid(thread)]
        return first + [other for other in found if other not in first]

    # ----------------------------------------------------------- stops and bells

    def when_modules_change(self, handler: Callable[[], None] | None) -> None:
        self._modules_handler = handler

    @_translated
    def breakpoints(self) -> Sequence[int]:
        return sorted(frozenset().union(*map(_places_of, gdb.breakpoints())))

    def when_breakpoints_change(self, handler: Callable[[], None] | None) -> None:
        self._breakpoints_handler = handler

    def _on_deleted(self, breakpoint_: gdb.Breakpoint) -> None:
        """'delete' takes darc's catchpoint with it: it is made anew before the program goes on."""
        if breakpoint_ is self._bell:
            self._bell = None

    @property
    @any_thread
    def goes_on_unseen(self) -> bool:
        return self._is_driven

    def is_between_steps(self) -> bool:
        shown = gdb.execute("maint info breakpoints", to_string=True)
        return not re.search(r"^0 ", shown, re.M)

    def before_continue(self) -> None:
        """The catchpoint that listens to the bell is there."""
        if self._bell_handler is not None and self._bell is None:
            self.arm_bell(self._bell_signal, self._bell_handler)

    def _on_breakpoint(self, breakpoint_: gdb.Breakpoint) -> None:
        """gdb also tells of each hit, as it counts them: that changes nothing."""
        if breakpoint_.number <= 0:
            return
        self._hits.heard_of(breakpoint_)
        places = _places_of(breakpoint_)
        if self._places.get(breakpoint_.number) == places:
            return
        self._places[breakpoint_.number] = places
        if self._breakpoints_handler is not None:
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
        self._once = _Once(self, address, handler)

    @_translated
    def cancel_break(self) -> None:
        once, self._once = self._once, None
        if once is None or not once.is_valid():
            return
        once.enabled = False
        self._doomed.append(once)
        if not self._deciding:
            self._bury()

    def came(self, once: _Once) -> bool:
        """Whether gdb has to stop for :meth:`arrived`."""
        if once is not self._once:
            return False
        if not self._all_stop or not self._calls_unnoticed():
            return self._owe(self._arrive)
        self._moved()
        with self._undisturbed():
            self._arrive()
            self._guarded(self.goes_on)
            self._guarded(self.went_on)  # gdb tells of users' commands alone
        return False

    def _arrive(self) -> Outcome:
        once = self._once
        if once is not None:
            self._own_stops += 1
            self.cancel_break()
            self._guarded(once.handler)
        return Outcome.CONTINUE

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

    @any_thread
    def own_threads(self) -> Sequence[int]:
        return [os.getpid()]  # Python runs on gdb's main thread

    @property
    @any_thread
    def own_stops(self) -> int:
        return self._own_stops

    @property
    def hits_stop_all(self) -> bool:
        return self._all_stop

    def hit(self, made: _Break) -> bool:
        """What a break decides: whether gdb is to stop for real."""
        if made not in self._breaks:
            return False
        self._moved()
        self._own_stops += 1
        thread = self._tid(gdb.selected_thread())
        try:
            with self._undisturbed():
                deferred = made.on_hit(thread)
                if deferred is None:
                    return False
                if self._all_stop:
                    return self._stays(deferred())
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return True
        return self._owe(deferred)

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Nothing is deleted meanwhile, as gdb is looking at it, and Ctrl-C in the middle of a
        patch has to wait until the patch is whole."""
        was, self._deciding = self._deciding, True
        try:
            with (
                ctrlc.waits(),
                self.unnoticed() if self._all_stop else contextlib.nullcontext(),
            ):
                yield
        finally:
            self._deciding = was

    def _owe(self, work: Callable[[], Outcome]) -> bool:
        """gdb is to stop: ``work`` waits until all threads stand still."""
        self._owed, self._too_early, self._goes, self._is_told = work, False, False, False
        self.hears_stops_last()
        return True

    def will_go_on(self, event: gdb.StopEvent) -> bool:
        """Whether gdb lets the program go on from a stop of the user's by itself, for sure, and
        nobody sees code or stacks before."""
        return not self._calls and self._hits.will_go_on(event)

    def may_go_on(self, event: gdb.StopEvent) -> bool:
        """Whether it probably does, whoever sees something before."""
        return not self._calls and self._hits.may_go_on(event)

    @property
    def stopped_since(self) -> int | None:
        return self._hits.since

    def _on_call(self, event: gdb.InferiorCallPreEvent | gdb.InferiorCallPostEvent) -> None:
        """gdb calls a function in the program, or has. Where it stops in that it carries out no
        commands."""
        self._calls += 1 if isinstance(event, gdb.InferiorCallPreEvent) else -1

    def settle(self, event: gdb.StopEvent) -> bool:
        """At a stop, after all other handlers: whether it is darc's alone, and the program goes on
        by itself. Other handlers may do what they like, but not let it go on."""
        if self.errand:
            return True
        is_own = self._is_own(event)
        if is_own and self._owed is not None and not self._too_early:
            self._is_told = True  # so the commands may do it
            return True
        owed, self._owed = self._owed, None
        if owed is None:
            return False
        self._settles = True
        try:
            stays = self._stays_after(owed)
        finally:
            self._settles = False
        if stays or not is_own:
            return False
        self._goes = True
        if self._too_early:
            gdb.post_event(self._go_on)
        return True

    def _is_own(self, event: gdb.StopEvent) -> bool:
        """Whether nothing but breakpoints of darc's has stopped the program."""
        if isinstance(event, gdb.SignalEvent):  # some gdb tell of a catchpoint so
            return self._owed == self._answer and event.stop_signal == self._bell_name
        if not isinstance(event, gdb.BreakpointEvent):
            return False
        return all(isinstance(b, (_Once, _Break)) or b is self._bell for b in event.breakpoints)

    @property
    def _bell_name(self) -> str:
        return signal.Signals(self._bell_signal).name if self._bell_signal else ""

    def after_stop(self) -> None:
        """The commands of darc's breakpoints. gdb carries them out when everybody was told of the
        stop, or in the middle of that, behind any command that one of those has executed."""
        if self._owed is not None and self._is_told:
            self._do_what_is_owed()
        elif self._owed is not None or self._settles:
            self._too_early = True
        elif self._goes:
            self._go_on()
        elif not _has_front_end():
            gdb.execute("frame")

    def _do_what_is_owed(self) -> None:
        owed, self._owed = self._owed, None
        assert owed is not None
        if not self._stays_after(owed):
            gdb.execute("continue")
            return
        self.on_user_stop()
        if not _has_front_end():
            gdb.execute("frame")

    def _stays_after(self, owed: Callable[[], Outcome]) -> bool:
        """Does what is owed; whether the program stays for the user then."""
        self._moved()
        try:
            return owed() is Outcome.STOP
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return True

    def _go_on(self) -> None:
        goes, self._goes = self._goes, False
        if goes and self.state is State.STOPPED:
            gdb.execute("continue")

    @_translated
    def arm_bell(self, number: int, handler: Callable[[], Outcome]) -> None:
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
        self._bell.commands = _at_stop()

    @_translated
    def change_bell(self, number: int) -> None:
        before, self._bell = self._bell, None
        if before is not None and before.is_valid():
            before.enabled = False
            self._doomed.append(before)
        self._bell_signal = number
        self._catch(number)

    def _pass_again(self) -> None:
        """What :meth:`_is_programs` withheld is over."""
        withheld, self._withheld = self._withheld, None
        if withheld is not None:
            gdb.execute(f"handle {withheld} pass", to_string=True)

    def _is_programs(self) -> bool:
        """Whether the signal that gdb has now is one of the program's own, which it hears. One of
        darc's that it would hear is not passed on."""
        self._pass_again()
        number = self._bell_caught
        pid = self.pid
        if pid is None or number == signal.SIGINT or not procfs.catches(pid, number):
            return False
        if not self._is_marked():
            return True
        name = signal.Signals(number).name
        listed = gdb.execute(f"info signals {name}", to_string=True).splitlines()[-1].split()
        if listed[3] == "Yes":  # stop, print, pass
            gdb.execute(f"handle {name} nopass", to_string=True)
            self._withheld = name
        return False

    def is_stopped_for_all(self) -> bool:
        # The kernel has no siginfo of such a stop alone: PTRACE_GETSIGINFO, EINVAL.
        try:
            int(gdb.parse_and_eval("$_siginfo.si_signo"))
        except gdb.error as error:
            return "Unable to read siginfo" in str(error)
        return False

    @staticmethod
    def _is_marked() -> bool:
        try:
            info = gdb.convenience_variable("_siginfo")
            if info is None:
                return False
            value = info["_sifields"]["_rt"]["si_sigval"]["sival_ptr"]
            return bell.is_marked(int(info["si_code"]), int(value))
        except gdb.error:
            return False

    def arm_interrupt(self, handler: Callable[[], Outcome]) -> None:
        """``handler`` decides, with all threads stopped, after :meth:`interrupt`. The user's own
        Ctrl-C stops as always. Taken back by :meth:`disarm_bell`."""

        def decide() -> Outcome:
            asked, self._asked = self._asked, False
            if asked:
                return handler()
            return self._interrupted()

        self._asked = False
        self.arm_bell(signal.SIGINT, decide)

    @staticmethod
    def _interrupted() -> Outcome:
        gdb.write("\nProgram received signal SIGINT, Interrupt.\n")
        return Outcome.STOP

    @any_thread
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
            return self._interrupted() is Outcome.STOP  # the catchpoint is not buried yet
        if self._bell_handler is None or not self.is_home(gdb.selected_inferior()):
            return False
        if self._is_programs():
            return False
        self._own_stops += 1
        if not self._all_stop:
            return self._owe(self._answer)
        self._moved()
        with self._undisturbed():
            return self._stays(self._answer())

    def _stays(self, verdict: Outcome) -> bool:
        """Whether the program stops for the user. Then other handlers are to find the program's own
        code and stacks, and what darc has to say comes behind all that they show: one that clears
        the screen would take it away."""
        if verdict is not Outcome.STOP:
            return False
        self._guarded(self.before_stop)
        self.hears_stops_last()
        return True

    def _answer(self) -> Outcome:
        handler = self._bell_handler
        if handler is None:
            return Outcome.CONTINUE
        if self.leaving is not None:
            leave, self.leaving = self.leaving, None
            with self._undisturbed():
                leave()
            return Outcome.CONTINUE
        try:
            with self._undisturbed():
                return handler()
        except Exception as error:  # told to the user, in one place
            self.failed(error)
            return Outcome.STOP

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
        self._has_line = False
        self.dies = isinstance(event, gdb.SignalEvent) and event.stop_signal in _DEADLY

    def at_prompt(self) -> None:
        """Before every prompt and at every stop for the user."""
        self._runs = False
        self._moved()
        self._bury()

    def on_exit(self) -> None:
        """The program is gone, and what was set at its addresses."""
        self._moved()
        self._owed, self._goes = None, False
        for made in list(self._breaks):
            self._take_back(made)

    # ------------------------------------------------------------------ symbols

    @_translated
    def line_at(self, address: int) -> tuple[str, int] | None:
        found = gdb.find_pc_line(address)
        if found.symtab is None or not found.line:
            return None
        try:
            return str(found.symtab.filename), int(found.line)
        except UnicodeError:
            return None

    @_translated
    def inlined_at(self, address: int) -> tuple[str, ...]:
        names: list[str] = []
        block = gdb.block_for_pc(address)
        while block is not None and not block.is_global and not block.is_static:
            if block.function is not None:
                names.append(_name_of(block.function))
            block = block.superblock
        return tuple(reversed(names[:-1]))

    @_translated
    def functions_in(self, file: str, function: str) -> Sequence[int]:
        if not (_PLAIN_FILE.fullmatch(file) and _PLAIN_FUNCTION.fullmatch(function)):
            return []  # gdb would evaluate it, which may call functions, or run programs
        return _entries(f"{file}:{function}", function)

    @_translated
    def functions_called(self, function: str) -> Sequence[int]:
        if not _DEBUGGERS_NAME.fullmatch(function):
            return []
        return _entries(function, function)

    @_translated
    def inlined_into(self, function: str) -> Sequence[str]:
        if not _PLAIN_FUNCTION.fullmatch(function):
            return []
        hosts = [host for place in _places(function) if (host := _host(place)) is not None]
        others = [_name_of(host.function) for host in hosts if not _is_meant(host, function)]
        return list(dict.fromkeys(others))

    @_translated
    def functions_of(self, file: str, prefix: str) -> Sequence[str]:
        if not (_PLAIN_FILE.fullmatch(file) and _PLAIN_FUNCTION.fullmatch(prefix or "f")):
            return []
        before = f"break {file}:"
        lines = gdb.execute(f"complete {before}{prefix}", to_string=True).splitlines()
        return [line.removeprefix(before) for line in lines if line.startswith(before)]

    # ------------------------------------------------------------------- output

    def accepts_pending(self, question: str) -> bool:
        setting = gdb.parameter("breakpoint pending")
        if setting is not None:
            return bool(setting)
        if not gdb.parameter("confirm") or not sys.stdin.isatty():
            return True
        print(f"{message(f'darc: {question}')} (y or [n]) ", end="", flush=True)
        return sys.stdin.readline().strip().lower().startswith("y")

    @property
    def colour(self) -> bool:
        wanted = bool(gdb.parameter("style enabled")) and glyphs.takes_colour(os.environ)
        return wanted and _is_terminal() and not self._is_driven

    @property
    def width(self) -> int:
        return int(gdb.parameter("width") or 0)

    @any_thread
    def live(self, text: str | None) -> None:
        if not _is_terminal():
            return
        with self._lock:
            if not self._shown_live and (text is None or not self._has_line):
                return
            self._shown_live = text is not None
            line = glyphs.fitting(text or "", self._encoding)[: len(text or "")]
            os.write(2, b"\r\x1b[K" + glyphs.encoded(line, self._encoding))

    def emit(self, text: str) -> None:
        self.live(None)
        gdb.write(self.fitting(text) + "\n")
        gdb.flush()

    def fitting(self, text: str) -> str:
        """``text`` as gdb can show it, which has a setting for that."""
        self._encoding = str(gdb.host_charset())
        return glyphs.fitting(text, self._encoding)


def _one_by_one(children: Sequence[gdb.Inferior]) -> Iterator[None]:
    for child in children:
        child.threads()[0].switch()
        yield


def _places_of(breakpoint_: gdb.Breakpoint) -> frozenset[int]:
    """Where one of the user's breakpoints stands now."""
    if breakpoint_.number <= 0 or not breakpoint_.is_valid() or not breakpoint_.enabled:
        return frozenset()
    locations = getattr(breakpoint_, "locations", ())
    return frozenset(int(one.address) for one in locations if one.address)  # a catchpoint has none


def _places(spec: str) -> Iterator[int]:
    """Where a breakpoint on ``spec`` would stand."""
    try:
        _, places = gdb.decode_line(spec)
    except gdb.error as error:
        if re.search("not defined|No source file|No symbol table", str(error)):
            return
        raise
    for place in places or ():
        yield int(place.pc)


class _Host(NamedTuple):
    """A function with code of its own."""

    function: gdb.Symbol
    start: int


def _entries(spec: str, function: str) -> list[int]:
    """Where the functions begin that ``spec`` means to gdb, called ``function``."""
    hosts = [host for place in _places(spec) if (host := _host(place)) is not None]
    return sorted({_entry_of(host) for host in hosts if _is_meant(host, function)})


def _entry_of(host: _Host) -> int:
    # A function may have a part that stands below its entry.
    address = host.function.value().address
    return host.start if address is None else int(address)


def _host(address: int) -> _Host | None:
    """The function that an address lies in, not of one that was inlined into it."""
    found = None
    block = gdb.block_for_pc(address)
    while block is not None and not block.is_global and not block.is_static:
        if block.function is not None and block.start <= address < block.end:
            found = _Host(block.function, int(block.start))
        block = block.superblock
    return found


def _is_meant(host: _Host, function: str) -> bool:
    """Whether a function is the one that gdb has found by the name ``function``, and none that this
    was inlined into."""
    words = [without_arguments(n.split("(")[0]) for n in (_name_of(host.function), function)]
    return f"::{words[0]}".endswith(f"::{words[1]}")


def _name_of(function: gdb.Symbol) -> str:
    try:
        return str(function.print_name)
    except UnicodeError:
        return "?"  # gdb has no way to tell a name that is no UTF-8


def _at_stop() -> str:
    """The commands of darc's breakpoints. To a front end gdb tells where a silent stop is not."""
    return _AT_STOP if _has_front_end() else f"silent\n{_AT_STOP}"


@functools.cache
def _has_front_end() -> bool:
    """Whether gdb was started for a program that speaks with it (-i=mi, --interpreter mi2, …)."""
    words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    ends = [words.index(word) for word in ("-args", "--args") if word in words]
    words = words[: min(ends, default=len(words))]  # what is behind is the program's
    pairs = zip(words, [*words[1:], ""], strict=True)
    names = [
        b if a.lstrip("-") in ("i", "interpreter") else a.partition("=")[2]
        for a, b in pairs
        if re.match("--?i(nterpreter)?(=|$)", a)
    ]
    return any(not name.startswith(("console", "tui")) for name in names)


def _has_windows() -> bool:
    """Whether gdb draws windows (TUI): it would not know where the cursor is any more."""
    with contextlib.suppress(gdb.error):
        return "not active" not in gdb.execute("info win", to_string=True)
    return False


def _assignment() -> str:
    """How the frame's language writes it."""
    frame = gdb.selected_frame()
    tell: Callable[[], object] = getattr(frame, "language", lambda: "c")  # not in gdb 12
    language = str(tell())
    return ":=" if language in ("pascal", "ada", "modula-2") else "="


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_terminal() -> bool:
    return os.isatty(1) and os.isatty(2) and glyphs.takes_escapes(os.environ)


TARGET: GdbTarget
"""The one target, for the commands of breakpoints; set by :mod:`darc_gdb.load`."""

__all__ = ["DarcError", "GdbTarget"]
