"""A kernel behind a debugger's remote connection (QEMU's gdbstub, kgdb)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

from darc.code.architecture import FunctionCode
from darc.code.landmarks import Landmark
from darc.code.modules import Module
from darc.code.notrace import why_notrace
from darc.code.processor import STACK_POINTER, decode
from darc.code.program import Program
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.duties import milliseconds
from darc.debuggee.nature import Nature
from darc.model.errors import FormatError, TargetError, UnsupportedError, UsageError
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.model.refusal import Refusal
from darc.pads.backend import PadBackend
from darc.target.outcome import Outcome
from kgdb import devices, ftrace, tasks
from kgdb.devices import Devices
from kgdb.foreign_probes import FTRACE_NOP, occupied_by
from kgdb.image import KernelModule
from kgdb.kernel import BOOTED_ANEW, DEAD, PANICKED, STACK_SHIFT, Kernel
from kgdb.modules import LoadedModule, ModuleImage, loaded
from kgdb.pads import NO_THREADS, KernelPads
from kgdb.program import KernelProgram
from kgdb.remote import Remote

_WATCHED = {
    Landmark.WAKE: "try_to_wake_up",
    Landmark.WORK: "process_one_work",
    Landmark.DISK: "submit_bio",
    Landmark.DISK_END: "bio_endio",
}
"""Where a kernel tells who waits for whom, besides its scheduler."""
_KASLR_STEP = 0x20_0000
"""Of what a kernel has moved itself by (``MIN_KERNEL_ALIGN``)."""
_UNKNOWN_COUNTS = (
    "the kernel does not tell how it counts interrupts: in what interrupts a task, that may be "
    "taken to run"
)
_BANNER = b"Linux version "


KERNEL = Nature(
    noun="kernel",
    begins_anew=False,
    left_in="the probes stay in it; connect again and type 'darc stop' to take them out",
    why_unread=(
        "is for processes: in a kernel 'darc profile' shows where the time goes, such as "
        "'darc profile vfs_* --time 5s'"
    ),
    puts_back="the module was loaded anew, or the kernel has put its own bytes back",
)


class KernelDebuggee(Debuggee):
    """The kernel that the debugger is connected to."""

    calibration_steps = 2
    tells_of_files = False
    tells_interrupts = True
    unseen_waits = "the search ended before its last round, in which that is done"

    def __init__(self, remote: Remote) -> None:
        """Raises FormatError: the debugger's file is no kernel; UsageError: it has none."""
        self._kernel = Kernel(remote)
        self._pads = KernelPads(self._kernel)

    # ---------------------------------------------------------------- what it is

    @property
    def pads(self) -> PadBackend:
        return self._pads

    @property
    def identity(self) -> int:
        return self._kernel.identity

    @functools.cached_property
    def hz(self) -> int:
        for name in ("tsc_khz", "cpu_khz"):
            place = self._kernel.value(name)
            if place is not None:
                khz = int.from_bytes(self._kernel.target.memory.read(place, 4), "little")
                if khz:
                    return khz * 1000
        raise UnsupportedError("the kernel does not know the rate of its time-stamp counter")

    @functools.cached_property
    def tick(self) -> float | None:
        place = self._kernel.value("tick_nsec")
        if place is None:
            return None
        return int.from_bytes(self._kernel.target.memory.read(place, 8), "little") / 1e9 or None

    @property
    def nature(self) -> Nature:
        return KERNEL

    @property
    def is_readable_while_it_runs(self) -> bool:
        return False

    def check_supported(self) -> None:
        kernel = self._kernel
        if kernel.bias % _KASLR_STEP:
            raise _another_kernels(kernel.path)
        place = kernel.value("linux_banner")
        assert place is not None
        own = kernel.image.content(kernel.image.values["linux_banner"], 256).split(b"\0")[0]
        try:
            live = kernel.target.memory.read(place, len(own))
        except TargetError:
            kernel.enter()  # it stands in user mode, where the kernel is not mapped
            live = kernel.target.memory.read(place, len(own))
        if live != own:
            raise _another_kernels(kernel.path, live)
        kernel.note_boot()
        if kernel.has_panicked():
            raise UnsupportedError(DEAD)
        if kernel.bias:
            kernel.remote.move_symbols(
                kernel.path, kernel.image.values["linux_banner"], kernel.bias
            )

    def is_at_start(self) -> bool:
        return False

    # ----------------------------------------------------------------------- code

    def program(self) -> Program:
        return KernelProgram(
            self._kernel.target, self._main_module(), self._modules, self._known_devices()
        )

    def _known_devices(self) -> Devices | None:
        kernel = self._kernel
        layout = devices.layout(kernel.image)
        if layout is None:
            return None
        return Devices(kernel.target.memory.read, kernel.value, layout, kernel.bias)

    def _main_module(self) -> KernelModule:
        kernel = self._kernel
        start, end = kernel.value("_stext"), kernel.value("_etext")
        assert start is not None
        assert end is not None
        return KernelModule(
            path=kernel.path,
            name="vmlinux",
            bias=kernel.bias,
            start=start,
            end=end,
            image=kernel.image,
        )

    def _modules(self) -> list[Module]:
        kernel = self._kernel
        head = kernel.value("modules")
        if head is None:
            return []
        read = kernel.target.memory.read
        return [
            _module(found, ModuleImage(read, found))
            for found in loaded(read, tasks.types(kernel.image), head)
        ]

    def refresh(self, program: Program) -> None:
        assert isinstance(program, KernelProgram)
        program.look_again()

    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        assert isinstance(program, KernelProgram)
        reason = why_notrace(program, function) or program.patchable.untouchable(function.address)
        if reason is None:
            way_in = program.way_in(function.address)
            # Not as the program reads it, which sees the nop through a probe of somebody else's.
            live = self._kernel.target.memory.read(way_in, len(FTRACE_NOP))
            reason = _entry_problem(
                live, is_for_tracers=program.foreign_probes.is_for_tracers(way_in)
            )
        if reason is not None:
            raise UnsupportedError(f"cannot time {spec}: {reason}")
        if tasks.interrupt_offset(self._kernel.image) is None:
            return [_UNKNOWN_COUNTS]
        return []

    def entry_code(self, program: Program, function: Function) -> FunctionCode | Refusal:
        """Of its nop alone: only that is displaced. The kernel's own tracer of return addresses
        (function_graph) takes them from whatever ftrace has a place at, so a pad may."""
        assert isinstance(program, KernelProgram)
        at = function.address
        reason = why_notrace(program, function) or program.patchable.untouchable(at)
        if reason is not None:
            return Refusal(reason)
        way_in = program.way_in(at)
        live = self._kernel.target.memory.read(way_in, len(FTRACE_NOP))
        reason = _entry_problem(live, is_for_tracers=program.foreign_probes.is_for_tracers(way_in))
        if reason is None and way_in not in self._traceable:
            reason = "ftrace has no place at its entry (notrace)"
        if reason is None and at - self._kernel.bias in self._without_kprobes:
            reason = "the kernel lets no kprobe stand there (NOKPROBE_SYMBOL)"
        if reason is not None:
            return Refusal(reason)
        (nop,) = decode(live, way_in)
        return FunctionCode(at, [(at, way_in + len(live))], {way_in: nop})

    @functools.cached_property
    def _traceable(self) -> frozenset[int]:
        """Where ftrace has a place. Raises UnsupportedError: the kernel does not tell."""
        kernel = self._kernel
        first = kernel.value("ftrace_pages_start")
        try:
            if first is None:
                raise FormatError("its symbols have no ftrace_pages_start")
            return ftrace.places(kernel.target.memory.read, tasks.types(kernel.image), first)
        except (FormatError, TargetError) as error:
            raise UnsupportedError(
                f"the kernel does not tell which functions may be timed: {error}"
            ) from None

    @functools.cached_property
    def _without_kprobes(self) -> frozenset[int]:
        return ftrace.without_kprobes(self._kernel.image)

    def landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        return iter(())  # nothing unwinds a kernel's stack but for a look

    def why_no_waits(self, program: Program) -> str | None:
        assert isinstance(program, KernelProgram)
        kernel, switch = self._kernel, program.switch_place
        if not kernel.remote.is_qemu:
            return "that is not told through kgdb"
        if (unknown := tasks.why_no_switches(kernel.image)) is not None:
            return unknown
        if switch is None:
            return "darc does not know where this kernel's scheduler changes tasks"
        if not self._is_free(program, switch):
            return "a tracer of the kernel's own stands at finish_task_switch"
        return None

    def wait_landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        assert isinstance(program, KernelProgram)
        kernel, switch = self._kernel, program.switch_place
        if switch is None or self.why_no_waits(program) is not None:
            return  # then wake-ups have no sleep that they belong to
        yield Landmark.SWITCH, switch, "finish_task_switch"
        for kind, name in _WATCHED.items():
            place = kernel.value(name)
            if place is not None and self._is_free(program, place):
                yield kind, place, name

    def _is_free(self, program: KernelProgram, place: int) -> bool:
        """Whether the nop at a function's entry is nobody's: the program is read as if a probe of
        somebody else's was not there."""
        at = program.way_in(place)
        live = self._kernel.target.memory.read(at, len(FTRACE_NOP))
        return (
            program.patchable.untouchable(at) is None
            and _entry_problem(live, is_for_tracers=True) is None
        )

    # --------------------------------------------------------------------- memory

    def begin(self) -> None:
        self._kernel.begin()

    def leave(self, is_there: bool = True) -> None:
        self._kernel.leave(is_there)

    # ------------------------------------------------------------------- breakpoints

    def strand(self, thread: int) -> int:
        """A task's kernel stack, also when it goes on on another processor."""
        return self._kernel.target.threads.read_register(thread, STACK_POINTER) >> STACK_SHIFT

    def risk_of_breakpoints(self) -> str | None:
        return "a breakpoint there stops the whole machine"

    @property
    def breakpoints_blur(self) -> float:
        return self._kernel.gdbstub.blur

    @property
    def breakpoints_doubt(self) -> str:
        return (
            "in a kernel, hits slow down what comes behind them: functions on the way to a sleep "
            "may be named as causes beside it; trust what takes far more than "
            f"{milliseconds(self.breakpoints_blur)}"
        )

    @property
    def opening(self) -> str | None:
        if self._kernel.gdbstub.hears_interrupts:
            return None
        deaf_to = "neither Ctrl-C nor --max-time" if self._kernel.has_limit else "no Ctrl-C"
        return f"a kernel in kgdb hears {deaf_to}: 'darc-vm break', or its magic key (g), stops it"

    def died(self) -> str | None:
        return PANICKED if self._kernel.has_panicked() else None

    def lost(self) -> str | None:
        return BOOTED_ANEW if self._kernel.is_another() else None

    def unloaded(self, program: Program) -> list[Module]:
        places = [program.module_at(address) for address in list(program.live.patches)]
        patched = {one.start: one for one in places if one is not None and one.name != "vmlinux"}
        if not patched:
            return []
        try:
            there = {(one.name, one.start, one.end) for one in self._modules()}
        except (FormatError, TargetError):
            return []  # nobody knows
        return [one for one in patched.values() if (one.name, one.start, one.end) not in there]

    def absent(self, parameters: Parameters) -> str | None:
        kernel, task = self._kernel, parameters.task
        if task is None:
            return None
        with contextlib.suppress(FormatError, TargetError):  # then nobody knows
            if not tasks.is_there(kernel.target, kernel.image, kernel.bias, task):
                what = f"no process {task} is" if isinstance(task, int) else f"no task {task} is"
                return f"{what} there now: its calls are timed once it is"
        return None

    def own_clock(self) -> Callable[[], int] | None:
        return self._kernel.gdbstub.clock()

    def counts_in(self, parameters: Parameters) -> Callable[[int], bool]:
        kernel = self._kernel
        if parameters.thread is not None:
            raise UsageError(NO_THREADS)
        if parameters.task is None:
            return lambda _: True
        counts = tasks.filter_of(kernel.target, kernel.image, kernel.bias, parameters.task)
        return lambda _: counts(kernel.gdbstub.per_cpu_base())

    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        self._kernel.arm_limit(handler)
        return None

    def knock(self) -> None:
        if self._kernel.gdbstub.hears_interrupts:
            self._kernel.remote.interrupt()

    def disarm_limit(self) -> None:
        self._kernel.disarm_limit()


def _another_kernels(path: str, banner: bytes = b"") -> UnsupportedError:
    """``banner`` is what the running kernel has where that file's own one has its banner."""
    shown = ""
    if banner.startswith(_BANNER):
        shown = f" ({banner.split(bytes(1))[0].decode('ascii', 'replace').split(' (')[0]})"
    return UnsupportedError(
        f"{path} is not the running kernel's{shown}: load the vmlinux of the kernel that "
        "'uname -r' names in the machine"
    )


def _module(found: LoadedModule, image: ModuleImage) -> Module:
    return Module(
        path=found.name,
        name=found.name,
        bias=found.start,
        start=found.start,
        end=found.end,
        image=image,
    )


def _entry_problem(code: bytes, *, is_for_tracers: bool) -> str | None:
    """Why a function cannot be entered by way of its ftrace nop, where ``code`` is now."""
    if code == FTRACE_NOP:
        return None
    occupied = occupied_by(code) if is_for_tracers else None
    if occupied is not None:
        return occupied
    return "it has no room for a probe at its entry (notrace): time its callers or its callees"
