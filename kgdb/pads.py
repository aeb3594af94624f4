"""How pads live in a kernel: in memory of its own allocator's, with a watched word or a breakpoint
for the bell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.layout import Room
from darc.agent.memory import AgentMemory
from darc.code.processor import STACK_POINTER
from darc.code.program import Program
from darc.model.errors import TargetError, UnsupportedError, UsageError
from darc.model.parameters import Parameters
from darc.pads.backend import BellOutcome, PadBackend, batch_size
from darc.pads.foothold import Foothold
from darc.pads.restoring import clean_up, taken_out
from darc.target.outcome import Outcome
from kgdb import devices, tasks
from kgdb.foothold import KernelFoothold
from kgdb.kernel import STACK_SHIFT, Kernel
from kgdb.leftbehind import LeftFoothold, left_behind
from kgdb.pagetables import executable_areas
from kgdb.program import KernelProgram
from kgdb.rooms import ROOMS, rooms_down_to, rooms_for_set

NO_THREADS = "--thread is for processes: take --task here"

_NEVER_PATIENT = (1 << 63) - 1


class KernelPads(PadBackend):
    """In the ``kernel``."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._disarm: list[Callable[[], None]] = []
        self._has_limit = False
        self._found: tuple[LeftFoothold, ...] | None = None
        """What a cleaning has found, for the foothold that is asked for behind it."""

    def risk(self) -> str | None:
        return self._kernel.gdbstub.why_no_pads()

    @property
    def auto_lookahead(self) -> int | None:
        return self._kernel.gdbstub.auto_lookahead

    def clean_up(
        self, program: Program, *, unmap: bool = True, of_memory: bool = False
    ) -> list[str]:
        notes = []
        own_version = compiled.load().constants.ABI_VERSION
        self._found = self._left_behind()
        for left in self._found:
            if left.version != own_version:
                if left.tables.enabled:
                    raise UnsupportedError(
                        "another version of darc left its probes in the kernel: connect with that "
                        "one and type 'darc stop'"
                    )
                continue
            if restored := self._restore(left):
                program.forget_code()
                notes.append(taken_out(restored, "kernel"))
        return notes

    def _restore(self, left: LeftFoothold) -> int:
        """Takes out the probes of another debugger: how many."""
        kernel = self._kernel
        if not kernel.begun:
            kernel.begin()
            try:
                return self._restore(left)
            finally:
                kernel.leave()
        restored = clean_up(kernel.target, left.tables, left.is_pad, own_back=None)
        start, end = kernel.value("_stext"), kernel.value("_etext")
        if start is not None and end is not None:
            kernel.gdbstub.lock_again(start, end)
        return restored

    def _left_behind(self) -> tuple[LeftFoothold, ...]:
        return tuple(left_behind(self._kernel.target, self._module_areas()))

    def _module_areas(self) -> Iterator[int]:
        kernel = self._kernel
        pointers = kernel.value("level3_kernel_pgt")
        if pointers is None:
            return iter(())
        start, end = kernel.value("_text"), kernel.value("_end")
        return executable_areas(
            kernel.target.memory.read,
            pointers,
            kernel.gdbstub.direct_map,
            range(0) if start is None or end is None else range(start & -(1 << 21), end),
        )

    def room(self, program: Program, parameters: Parameters) -> Room:
        del program, parameters
        return ROOMS[-1]

    no_sets = "'darc profile' is not for kgdb: there 'darc start FUNCTION' times one function"

    def room_for_set(self, functions: int) -> Room | None:
        if not self._kernel.gdbstub.hears_interrupts:
            return None  # nothing would end it
        return rooms_for_set(functions)[-1]

    def new_foothold(self, program: Program, room: Room) -> Foothold:
        assert isinstance(program, KernelProgram)
        kernel = self._kernel
        sets = kernel.gdbstub.sets_stack_pointer
        rooms: tuple[Room, ...] = ROOMS
        if room.blocks:
            rooms = rooms_down_to(room)
        own_version = compiled.load().constants.ABI_VERSION
        found, self._found = self._found, None
        if found is None:
            found = self._left_behind()
        return KernelFoothold(
            kernel.target,
            program,
            identity=kernel.identity,
            call=kernel.calls.call if sets else kernel.calls.call_instead,
            enter=kernel.enter,
            undivided=kernel.remote.undivided,
            is_another=self._is_another,
            left=[one for one in found if one.version == own_version],
            rooms=rooms,
            writes_text=kernel.gdbstub.writes_text,
        )

    def _is_another(self) -> bool:
        """The tables cannot be read: whether a kernel runs that has been booted since, at other
        addresses or without what was put into the one before."""
        kernel = self._kernel
        banner = kernel.value("linux_banner")
        assert banner is not None
        try:
            return kernel.is_another() or bool(kernel.target.memory.read(banner, 1))
        except TargetError:
            return False

    def configure(self, tables: AgentMemory, parameters: Parameters, needed: int) -> None:
        if parameters.thread is not None:
            raise UsageError(NO_THREADS)
        self._has_limit = not (parameters.max_time is None and parameters.start_time is None)
        kernel = self._kernel
        layout = devices.layout(kernel.image)
        tables.set(
            bell_signal=1,
            no_calls=1,
            needed=needed,
            batch=batch_size(needed),
            only_thread=0,
            patience=_NEVER_PATIENT,
        )
        tables.set(**tasks.watched(kernel.image, kernel.bias, parameters.task))
        tables.set(**tasks.scheduler(kernel.image))
        if layout is not None:
            tables.set(**layout.for_agent(kernel.bias))

    def arm_bell(self, foothold: Foothold, handler: Callable[[], BellOutcome]) -> None:
        def on_hit(_thread: int) -> Callable[[], Outcome]:
            return lambda: self._rung(handler)

        kernel = self._kernel
        if kernel.remote.is_qemu:
            # QEMU looks at its breakpoints at every jump that leaves a page: one of them, wherever
            # it stands, made a read in the guest a quarter slower (1010 to 1240 ns).
            self._disarm.append(kernel.remote.set_watch(foothold.tables.doorbell, on_hit))
        else:
            self._disarm.append(
                kernel.target.breaks.set_break(foothold.symbol(AgentSymbol.BELL), on_hit)
            )
        of_set = foothold.tables.blob.constants.SET
        if self._has_limit or foothold.tables.mode == of_set:
            kernel.arm_limit(lambda: self._rung(handler))

    def disarm_bell(self) -> None:
        while self._disarm:
            self._disarm.pop()()
        self._kernel.disarm_limit()

    @property
    def signal(self) -> int | None:
        return None

    def look_after(self, tables: AgentMemory) -> None:
        pass

    def _rung(self, handler: Callable[[], BellOutcome]) -> Outcome:
        reply = handler()
        if reply.outcome is Outcome.CONTINUE:
            return Outcome.CONTINUE
        if not reply.back:
            return Outcome.STOP
        self._stop_in(reply.back, reply.slot)
        return Outcome.CONTINUE

    def _stop_in(self, address: int, slot: int) -> None:
        """Stops the task that rang where it is back in the kernel's own code."""

        def on_hit(thread: int) -> Callable[[], Outcome] | None:
            stack = self._kernel.target.threads.read_register(thread, STACK_POINTER)
            if stack <= slot or stack >> STACK_SHIFT != slot >> STACK_SHIFT:
                return None

            def stop() -> Outcome:
                take_back()
                return Outcome.STOP

            return stop

        take_back = self._kernel.target.breaks.set_break(address, on_hit)
