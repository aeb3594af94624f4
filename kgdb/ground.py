"""A kernel behind a debugger's remote connection (QEMU's gdbstub, kgdb)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

from iced_x86 import FlowControl

from darc import agent
from darc.agent.memory import AgentMemory, Room
from darc.code.denial import denied
from darc.code.modules import Module
from darc.code.program import Program
from darc.code.x86_64 import decode
from darc.debuggee.admission import batch_size
from darc.debuggee.ground import Bell, Ground
from darc.model.errors import FormatError, TargetError, UnsupportedError, UsageError
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.pads.foothold import Foothold
from darc.pads.guards import Guard
from darc.pads.implant import clean_up
from darc.target.target import Outcome
from kgdb import devices, tasks
from kgdb.calls import KernelCalls
from kgdb.devices import Devices
from kgdb.foothold import ROOMS, KernelFoothold, Left, left_behind
from kgdb.image import KernelImage
from kgdb.isolation import KernelMemory
from kgdb.modules import Loaded, ModuleImage, loaded
from kgdb.pagetables import executable_areas
from kgdb.program import PROBED, TRACED, KernelProgram
from kgdb.remote import Remote
from kgdb.stub import Stub, stub

_IDT = 0xFFFF_FE00_0000_0000
"""Where x86-64 kernels map their interrupt descriptors, whatever their own address."""

_FIRST_HANDLERS = ("asm_exc_divide_error", "divide_error")
_NOP = bytes.fromhex("0f1f440000")
_CALL, _JUMP, _INT3 = 0xE8, 0xE9, 0xCC
_NEVER_PATIENT = (1 << 63) - 1
_STACK_SHIFT = 14


@functools.lru_cache(maxsize=4)
def _image(path: str, _stamp: tuple[int, int]) -> KernelImage:
    return KernelImage(Path(path))


class KernelGround(Ground):
    """The kernel that the debugger is connected to."""

    calibration_steps = 2
    tells_of_files = False

    def __init__(self, remote: Remote) -> None:
        """Raises FormatError: the debugger's file is no kernel."""
        self._target = target = remote.target
        self._remote = remote
        self._calls = KernelCalls(remote)
        remote.be_patient()
        remote.be_virtual()
        remote.reach_through(KernelMemory(remote) if remote.is_qemu else None)
        path = target.executable
        if path is None:
            raise FormatError("gdb has no symbols: 'file vmlinux' with that of the running kernel")
        seen = Path(path).stat()
        self._image = _image(path, (seen.st_size, seen.st_mtime_ns))
        self._path = path
        self._disarm: list[Callable[[], None]] = []
        self._left: Left | None = None
        self._has_limit = False
        self._begun = False

    @functools.cached_property
    def bias(self) -> int:
        """What address space layout randomisation has added to the kernel's addresses."""
        return self._live_bias()

    def _live_bias(self) -> int:
        entry = self._target.read(_IDT, 16)
        live = int.from_bytes(entry[0:2] + entry[6:12], "little")
        for name in _FIRST_HANDLERS:
            if name in self._image.values:
                return live - self._image.values[name]
        raise UnsupportedError(f"{self._image.name} names no handler of exceptions")

    @functools.cached_property
    def _stub(self) -> Stub:
        return stub(self._target, self._value, self._remote.register)

    def _value(self, name: str) -> int | None:
        found = self._image.values.get(name)
        return None if found is None else found + self.bias

    # ---------------------------------------------------------------- what it is

    @property
    def identity(self) -> int:
        return self.bias + 1

    @functools.cached_property
    def hz(self) -> int:
        for name in ("tsc_khz", "cpu_khz"):
            place = self._value(name)
            if place is not None:
                khz = int.from_bytes(self._target.read(place, 4), "little")
                if khz:
                    return khz * 1000
        raise UnsupportedError("the kernel does not know the rate of its time-stamp counter")

    @property
    def signal(self) -> int | None:
        return None

    @property
    def is_readable_while_it_runs(self) -> bool:
        return False

    def check_supported(self) -> None:
        place = self._value("linux_banner")
        assert place is not None
        own = self._image.content(self._image.values["linux_banner"], 256).split(b"\0")[0]
        try:
            live = self._target.read(place, len(own))
        except TargetError:
            self._enter()  # it stands in user mode, where the kernel is not mapped
            live = self._target.read(place, len(own))
        if live != own:
            shown = live.split(b"\0")[0].decode("ascii", "replace").split(" (")[0]
            raise UnsupportedError(
                f"{self._path} is not the running kernel's ('{shown or 'unreadable'}'): "
                "load the vmlinux that it was built with"
            )
        if self.bias:
            self._remote.move_symbols(self._path, self._image.values["linux_banner"], self.bias)

    def is_at_start(self) -> bool:
        return False

    # ----------------------------------------------------------------------- code

    def program(self) -> Program:
        return KernelProgram(self._target, self._kernel(), self._modules, self._known_devices())

    def _known_devices(self) -> Devices | None:
        layout = devices.layout(self._image)
        if layout is None:
            return None
        return Devices(self._target.read, self._value, layout, self.bias)

    def _kernel(self) -> Module:
        start, end = self._value("_stext"), self._value("_etext")
        assert start is not None
        assert end is not None
        return Module(self._path, "vmlinux", self.bias, start, end, self._image)

    def _modules(self) -> list[Module]:
        head = self._value("modules")
        if head is None:
            return []
        read = self._target.read
        return [
            _module(found, ModuleImage(read, found))
            for found in loaded(read, tasks.types(self._image), head)
        ]

    def refresh(self, program: Program) -> None:
        assert isinstance(program, KernelProgram)
        program.look_again()

    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        assert isinstance(program, KernelProgram)
        reason = denied(program, function) or program.untouchable(function.address)
        if reason is None:
            way_in = program.way_in(function.address)
            # Not as the program reads it, which sees the nop through a probe of somebody else's.
            live = self._target.read(way_in, len(_NOP))
            reason = _entry_problem(live, program.is_for_tracers(way_in))
        if reason is not None:
            raise UnsupportedError(f"cannot time {spec}: {reason}")
        return []

    def guard_places(self, program: Program) -> Iterator[tuple[Guard, int, str]]:
        return iter(())  # nothing unwinds a kernel's stack but for a look

    # --------------------------------------------------------------------- memory

    def begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        self._remote.set(self._stub.settings)
        self.auto_lookahead = self._stub.auto_lookahead
        self._remote.unlock_by(self._stub.unlock)

    def leave(self, is_there: bool = True) -> None:
        if not self._begun:
            return
        self._begun = False
        try:
            if is_there:
                self._stub.lock()
        finally:
            self._remote.unlock_by(None)
            self._remote.unset()

    def clean_up(self, program: Program, *, unmap: bool = True) -> list[str]:
        notes = []
        own_version = agent.load().constants["DARC_ABI_VERSION"]
        for left in left_behind(self._target, self._module_areas()):
            if left.version != own_version:
                if left.tables.enabled:
                    raise UnsupportedError(
                        "another version of darc left its probes in the kernel: connect with that "
                        "one and type 'darc stop'"
                    )
                continue
            self._left = left
            if restored := self._restore(left):
                program.forget_code()
                notes.append(
                    f"an earlier debugger had left {restored} probes in the kernel: "
                    "they were taken out"
                )
        return notes

    def _restore(self, left: Left) -> int:
        """Takes out the probes of another debugger: how many."""
        if not self._begun:
            self.begin()
            try:
                return self._restore(left)
            finally:
                self.leave()
        restored = clean_up(self._target, left.tables, left.is_pad, None)
        start, end = self._value("_stext"), self._value("_etext")
        if start is not None and end is not None:
            self._stub.lock_again(start, end)
        return restored

    def _module_areas(self) -> Iterator[int]:
        pointers = self._value("level3_kernel_pgt")
        if pointers is None:
            return iter(())
        return executable_areas(self._target.read, pointers, self._stub.direct_map)

    def room(self, parameters: Parameters) -> Room:
        del parameters
        return ROOMS[-1]

    def new_foothold(self, program: Program, room: Room) -> Foothold:
        assert isinstance(program, KernelProgram)
        sets = self._stub.sets_stack_pointer
        return KernelFoothold(
            self._target,
            program,
            self.identity,
            self._calls.call if sets else self._calls.call_instead,
            self._enter,
            self._is_another,
            self._left,
            self._stub.writes_text,
        )

    def _is_another(self) -> bool:
        """Whether a kernel runs that has been booted since, at other addresses or without what was
        put into the one before. In user mode, with page-table isolation, none is mapped."""
        banner = self._value("linux_banner")
        assert banner is not None
        try:
            return self._live_bias() != self.bias or bool(self._target.read(banner, 1))
        except TargetError:
            return False

    def _enter(self) -> None:
        self._calls.go_to_system_call(self._system_calls(), self._is_quiet)

    def _system_calls(self) -> int:
        """Where each task comes by that makes a system call."""
        entry = self._value("x64_sys_call")
        if entry is not None:
            return entry
        start = self._image.values.get("do_syscall_64")
        symbol = self._image.symbol_at(start) if start is not None else None
        if start is None or symbol is None:
            raise UnsupportedError("the kernel has no do_syscall_64")
        code = self._image.content(start, symbol.size)
        for instruction in decode(code, start):
            if instruction.flow_control == FlowControl.INDIRECT_CALL:
                return int(instruction.ip) + self.bias
            if instruction.flow_control == FlowControl.CALL:
                names = self._image.names_at(int(instruction.near_branch_target))
                if any(name.startswith("__x86_indirect_thunk") for name in names):
                    return int(instruction.ip) + self.bias
        raise UnsupportedError("the kernel's handler of system calls is not understood")

    def _is_quiet(self) -> bool:
        """Whether the task that runs may allocate and sleep."""
        gs_base = self._stub.gs_base()
        count = tasks.preempt_count(self._target, self._image, self.bias, gs_base)
        return self._stub.is_quiet(count)

    # ------------------------------------------------------------------- breakpoints

    def strand(self, thread: int) -> int:
        """A task's kernel stack, also when it goes on on another processor."""
        return self._target.read_register(thread, "rsp") >> _STACK_SHIFT

    def risk_of_pads(self) -> str | None:
        return self._stub.why_no_pads()

    @property
    def breakpoints_blur(self) -> str:
        return self._stub.blur

    @property
    def opening(self) -> str | None:
        if self._stub.hears_interrupts:
            return None
        deaf_to = "neither Ctrl-C nor --max-time" if self._has_limit else "no Ctrl-C"
        return f"a kernel in kgdb hears {deaf_to}: 'darc-vm break', or its magic key (g), stops it"

    def own_clock(self) -> Callable[[], int] | None:
        return self._stub.clock()

    def watch(self, parameters: Parameters) -> Callable[[int], bool]:
        if parameters.thread != "all":
            raise UsageError("--thread is for processes: take --task here")
        if parameters.task == "all":
            return lambda _: True
        is_watched = tasks.filter_of(self._target, self._image, self.bias, parameters.task)
        return lambda _: is_watched(self._stub.gs_base())

    # ---------------------------------------------------------------------- agent

    def configure(self, tables: AgentMemory, parameters: Parameters, needed: int) -> None:
        self._has_limit = not (parameters.max_time is None and parameters.start_time is None)
        layout = devices.layout(self._image)
        tables.set(
            bell_signal=1,
            no_calls=1,
            needed=needed,
            batch=batch_size(needed),
            only_thread=0,
            patience=_NEVER_PATIENT,
            **tasks.watched(self._image, self.bias, parameters.task),
            **(layout.for_agent(self.bias) if layout is not None else {}),
        )

    def arm_bell(self, foothold: Foothold, handler: Callable[[], Bell]) -> None:
        def on_hit(_thread: int) -> Callable[[], Outcome]:
            return lambda: self._rung(handler)

        if self._remote.is_qemu:
            # QEMU looks at its breakpoints at every jump that leaves a page: one of them, wherever
            # it stands, made a read in the guest a quarter slower (1010 to 1240 ns).
            self._disarm.append(self._remote.set_watch(foothold.tables.doorbell, on_hit))
        else:
            self._disarm.append(self._target.set_break(foothold.symbol("darc_bell"), on_hit))
        if self._has_limit:
            self.arm_limit(lambda: self._rung(handler))

    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        self._has_limit = True
        if self._stub.hears_interrupts:
            self._remote.arm_interrupt(handler)
            self._disarm.append(self._target.disarm_bell)
        return None

    def knock(self) -> None:
        if self._stub.hears_interrupts:
            self._remote.interrupt()

    def _rung(self, handler: Callable[[], Bell]) -> Outcome:
        answer = handler()
        if answer.outcome is Outcome.CONTINUE:
            return Outcome.CONTINUE
        if not answer.back:
            return Outcome.STOP
        self._stop_in(answer.back, answer.slot)
        return Outcome.CONTINUE

    def _stop_in(self, address: int, slot: int) -> None:
        """Stops the task that rang where it is back in the kernel's own code."""

        def on_hit(thread: int) -> Callable[[], Outcome] | None:
            rsp = self._target.read_register(thread, "rsp")
            if rsp <= slot or rsp >> _STACK_SHIFT != slot >> _STACK_SHIFT:
                return None

            def stop() -> Outcome:
                take_back()
                return Outcome.STOP

            return stop

        take_back = self._target.set_break(address, on_hit)

    def disarm_bell(self) -> None:
        while self._disarm:
            self._disarm.pop()()

    def beat(self, tables: AgentMemory) -> None:
        pass


def _module(found: Loaded, image: ModuleImage) -> Module:
    return Module(found.name, found.name, found.start, found.start, found.end, image)


def _entry_problem(code: bytes, is_for_tracers: bool) -> str | None:
    """Why a function cannot be entered by way of its ftrace nop, where ``code`` is now."""
    if code == _NOP:
        return None
    if code[0] in (_CALL, _JUMP, _INT3) and is_for_tracers:
        return TRACED if code[0] == _CALL else PROBED
    return "it has no room for a probe at its entry (notrace): time its callers or its callees"
