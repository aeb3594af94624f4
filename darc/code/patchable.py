"""What of a program's code may be patched, and which calls may be led through pads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from darc.code.architecture import Instruction, Site
from darc.code.backlooks import LOOKS_BACK, BackLooks
from darc.code.faults import FAULTS
from darc.code.linkage import Linkage
from darc.code.modules import Loaded
from darc.code.outlines import Outlines
from darc.code.processor import FRAME_POINTER, may_be_restarted, may_raise
from darc.code.regions import CodeRegions
from darc.code.sequences import Sequences
from darc.model.ftree import Function

SHARED = "its code is in memory that is shared with other processes"
"""Why nothing is written there: a child that the program forks has none of what a pad needs."""


class Patched(Loaded, Protocol):
    """The program that is to be patched."""

    @property
    def outlines(self) -> Outlines: ...
    @property
    def mapped(self) -> CodeRegions: ...
    @property
    def sequences(self) -> Sequences: ...
    @property
    def linkage(self) -> Linkage: ...
    @property
    def back_looks(self) -> BackLooks: ...


class Patchable:
    """Tells what may be changed in a program's code, and else why not."""

    may_displace = True
    """Whether relays may be made of its code: for instructions that are run elsewhere every thread
    has to be known that may stand among them, for padding that it is nothing else."""

    handled: frozenset[int] = frozenset()
    """Signals for which the program has handlers that may know an instruction by its address: what
    may raise one is executed in its place, and where others than faults are among them, what a
    sequence that such a handler begins anew may have in it (see :mod:`darc.code.faults`)."""

    sees_callers = True
    """Whether functions here that look at their own return address are to find the program's."""

    def __init__(self, program: Patched) -> None:
        self._program = program
        self.notrace: dict[tuple[int, str], str | None] = {}
        """What :func:`darc.code.notrace.why_notrace` has said, by address and symbol."""

    def forget_code(self) -> None:
        """The program's bytes have changed."""
        self.notrace.clear()

    def why_notrace(self, function: Function) -> str | None:
        """Why no call of ``function`` may go through a pad here; see also
        :mod:`darc.code.notrace`."""
        bodies = self._program.linkage.bodies
        if self.sees_callers and any(map(self._program.back_looks.at_caller, bodies(function))):
            return LOOKS_BACK
        return None

    def site_problem(self, site: Site) -> str | None:
        """Why a call site may not be patched here, whatever its code."""
        end = max(site.back, site.patch + site.length)
        if self._program.sequences.lie_between(site.patch, end):
            return "a restartable sequence (rseq) stands in its bytes"
        if self._program.mapped.is_shared(site.address):
            return SHARED
        if self._is_generated(site.address):
            return "its code is generated: the runtime may look for its return addresses"
        return None

    def _is_generated(self, address: int) -> bool:
        module = self._program.module_at(address)
        if module is None:
            return True
        own = address - module.bias
        return any(low <= own < high for low, high in module.image.frames.unframed)

    def ordinary_code(self) -> list[range]:
        """Code that compilers have made, by address: not what a runtime makes, which it may know by
        return addresses on stacks. The program can read it."""
        found: list[range] = []
        for module in self._program.modules:
            bias, unframed = module.bias, module.image.frames.unframed
            for segment in module.image.segments:
                at, last = segment.address, segment.address + segment.size
                if not segment.executable or not self._program.mapped.may_be_read(bias + at):
                    continue
                for low, high in (*unframed, (last, last)):
                    if at <= low <= last:
                        found.append(range(bias + at, bias + low))
                        at = high
        return sorted((one for one in found if one), key=lambda one: one.start)

    def leave_in_place(self, signals: Iterable[int]) -> None:
        """The program handles these from now on (see :attr:`handled`)."""
        self.handled = frozenset(signals)

    @property
    def restarts(self) -> bool:
        """Whether a handler may set a thread back that it has interrupted."""
        return not self.handled.issubset(FAULTS)

    def may_fault(self, instruction: Instruction) -> bool:
        """Whether it is to be executed in its place, as the program may know that place when the
        instruction faults (see :attr:`handled`)."""
        faults = self.handled.intersection(FAULTS)
        return bool(faults) and may_raise(
            instruction, faults, has_frame=self._has_frame(instruction)
        )

    def may_be_restarted(self, instruction: Instruction) -> bool:
        """The same, as a handler may find a thread there and set it back."""
        return self.restarts and may_be_restarted(
            instruction, has_frame=self._has_frame(instruction)
        )

    def _has_frame(self, instruction: Instruction) -> bool:
        rule = self._program.outlines.frame_rule(int(instruction.ip))
        return rule is not None and rule.register == FRAME_POINTER
