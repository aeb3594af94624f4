"""What darc has put into the program, and how every bit of it is taken out again.

The implant owns each patched place with the bytes that stood there. :meth:`Implant.remove` restores
the code byte for byte and puts the program's own return addresses back on its stacks; the pads
stay in their :class:`~darc.foothold.Foothold`, as a thread may still be on its way through one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from iced_x86 import Instruction

from darc import agent
from darc.code.program import Program
from darc.code.x86_64 import PATCH_LENGTH, Prologue, Site, read_prologue
from darc.code.x86_64 import Function as Code
from darc.errors import TargetError
from darc.foothold import Area, Foothold
from darc.ftree import CallKind
from darc.pads import x86_64 as pads
from darc.target import Target

HIDE_AT = (
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",
    "_Unwind_Resume",
    "_Unwind_Backtrace",
)
"""Unwinders: before they look, every return address on the stack is the program's own again."""

EXIT_AT = ("_exit",)
"""Where a program ends: the last moment to read what the agent knows."""

JUMP_AT = ("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "__libc_siglongjmp")
"""Where frames are about to be abandoned: their calls end here."""

SHOW_AT = ("__cxa_begin_catch",)
"""Where a handler begins: the frames above it are taken up again, those below are closed."""


@dataclass
class Patched:
    """A place in the program's code that leads to a pad."""

    site: Site | None
    index: int
    address: int
    original: bytes
    pad: int
    pad_back: int
    area: Area
    blocks: tuple[int, ...] = ()
    active: bool = False
    bytes: bytes = b""
    cells: dict[str, int] = field(default_factory=dict)
    through: Patched | None = None
    """The padding that a short jump goes through."""
    displaced: tuple[Instruction, ...] = ()
    """Of a function's entry: the instructions that moved into the pad."""


class Implant:
    """The patches of one analysis in one program."""

    def __init__(self, target: Target, program: Program, foothold: Foothold) -> None:
        self._target = target
        self._program = program
        self._foothold = foothold
        self._blob = agent.load()
        self._sites: dict[int, Patched] = {}
        self._guards: list[Patched] = []
        self._f0: Patched | None = None
        self._cell_values: dict[int, bytes] = {}
        self.tables = foothold.tables

    @property
    def f0_back(self) -> int:
        """Where f0 returns to when its pad called it."""
        assert self._f0 is not None
        return self._f0.pad_back

    @property
    def max_targets(self) -> int:
        """How many targets an indirect site can learn."""
        return self._blob.constants["DARC_MAX_TARGETS"]

    @property
    def max_nodes(self) -> int:
        """How many fnodes the agent can hold at one time."""
        return self._blob.constants["DARC_MAX_NODES"]

    # --------------------------------------------------------------------- f0

    def prepare_f0(self, code: Code) -> str | None:
        """Makes f0's entry pad; a string says why none can stand there."""
        made = self._entry(code, self._blob.constants["DARC_F0"], 1)
        if isinstance(made, str):
            return made
        self._f0 = made
        return None

    def _entry(self, code: Code, kind: int, timed: int) -> Patched | str:
        cave: int | None = None
        prologue = self._prologue(code, PATCH_LENGTH)
        if isinstance(prologue, str):
            # A short jump to padding nearby, where a long one fits.
            why = prologue
            found = self._program.cave(code.entry)
            prologue = self._prologue(code, pads.SHORT_JUMP)
            if found is None or isinstance(prologue, str):
                return why
            cave = found[0]
        low, high = prologue.entry, prologue.entry + prologue.length
        area = self._foothold.area_for(low, high)
        if area is None:
            return "no room for a pad within 2 GiB of it"
        index = self._foothold.new_index()
        address = self.tables.site(index)
        try:
            origin, pad = self._foothold.place(
                area, 0, lambda at: pads.entry_pad(prologue, address, self._foothold.stubs, at)
            )
        except pads.OutOfReachError as error:
            return str(error)
        assert pad.back is not None
        through = None
        if cave is None:
            patch = pads.patch_bytes(None, prologue.entry, PATCH_LENGTH, origin)
        else:
            patch = pads.patch_short(prologue.entry, cave)
            through = Patched(
                None, self._foothold.new_index(), cave, self._program.read(cave, PATCH_LENGTH),
                origin, 0, area, (), False, pads.patch_bytes(None, cave, PATCH_LENGTH, origin),
            )  # fmt: skip
            self._write_site(through, kind, 0)
        made = Patched(
            None, index, prologue.entry, prologue.original[: len(patch)], origin,
            origin + pad.back, area, (), False, patch,
            {name: origin + place for name, place in pad.cells.items()}, through,
            prologue.instructions,
        )  # fmt: skip
        self._write_site(made, kind, timed)
        return made

    def _prologue(self, code: Code, room: int) -> Prologue | str:
        prologue = read_prologue(code, self._program, room)
        if isinstance(prologue, str):
            return prologue
        if self._user_stands_in(prologue.entry, prologue.entry + prologue.length):
            return "a breakpoint stands in its first bytes"
        return prologue

    def _user_stands_in(self, start: int, end: int) -> bool:
        """Whether a breakpoint of the user's would be overwritten or never be reached."""
        return any(start < address < end for address in self._target.breakpoints())

    def _write_site(self, made: Patched, kind: int, timed: int) -> None:
        self.tables.write_site(
            made.index,
            pad_back=made.pad_back,
            kind=kind,
            timed=timed,
            address=made.address,
            original=made.original,
            length=len(made.original),
        )

    def enable(self) -> None:
        """Starts to watch f0."""
        assert self._f0 is not None
        self._apply(self._f0)
        self.tables.enabled = True

    def guard(self) -> list[str]:
        """Puts a pad at the entry of every unwinder that is loaded and not guarded yet, and of
        ``_exit``; tells which ones could not be guarded."""
        guarded = {g.address for g in self._guards}
        problems = []
        limits = self._blob.constants
        for names, kind in (
            (HIDE_AT, limits["DARC_HIDE"]),
            (SHOW_AT, limits["DARC_SHOW"]),
            (EXIT_AT, limits["DARC_EXIT"]),
            (JUMP_AT, limits["DARC_JUMP"]),
        ):
            for module, symbol in self._program.all_symbols():
                address = symbol.address + module.bias
                if symbol.name not in names or address in guarded:
                    continue
                guarded.add(address)
                made = self._entry(self._program.function(address), kind, 0)
                if isinstance(made, str):
                    problems.append(f"{module.name}!{symbol.name}: {made}")
                    continue
                try:
                    self._apply(made)
                except TargetError as error:
                    problems.append(f"{module.name}!{symbol.name}: {error}")
                    continue
                self._guards.append(made)
        return problems

    @property
    def guards(self) -> int:
        """How many unwinder entries are guarded."""
        return len(self._guards)

    # --------------------------------------------------------------- call sites

    def problem(self, site: Site) -> str | None:
        """Why ``site`` cannot be given a pad, as far as its code tells."""
        if self._user_stands_in(site.patch, site.back):
            return "a breakpoint stands in its bytes"
        if not self._overlaps_f0(site):
            return site.problem
        return None if site.address in self._f0_cells() else "it stands in f0's first bytes"

    def prepare_site(self, site: Site, parents: Iterable[int]) -> Patched | str:
        """A pad for ``site``, whose callers' frames were entered through the pads that return to
        ``parents``. Returns a reason when there can be none."""
        problem = self.problem(site)
        if problem is not None:
            return problem
        in_f0 = self._overlaps_f0(site)
        if in_f0:
            site = replace(site, patch=site.address, displaced=(), problem=None)
        blocks = tuple(sorted({p // pads.BLOCK * pads.BLOCK for p in parents}))
        known = self._sites.get(site.address)
        if known is not None and set(blocks) <= set(known.blocks):
            return known
        area = self._foothold.area_for(site.patch, site.back)
        if area is None:
            return "no room for a pad within 2 GiB of it"
        index = known.index if known is not None else self._foothold.new_index()
        tail = site.kind in (CallKind.TAIL, CallKind.TAIL_INDIRECT)
        make = pads.tail_pad if tail else pads.call_pad
        data = self.tables.site(index)
        try:
            origin, pad = self._foothold.place(
                area,
                None if tail else site.back,
                lambda at: make(site, data, blocks, self._foothold.stubs, at),
            )
            patch = b""
            if not in_f0 and tail:
                patch = pads.patch_tail(site, origin)
            elif not in_f0:
                patch = pads.patch_bytes(site.kind, site.patch, site.length, origin)
        except pads.OutOfReachError as error:
            return str(error)
        original = self._program.read(site.patch, site.length)
        back = origin + pad.back if pad.back is not None else 0
        if known is None:
            self.tables.write_site(
                index,
                back=site.back,
                pad_back=back,
                kind=self._blob.constants["DARC_TAIL" if tail else "DARC_CALL"],
                timed=1,
                indirect=0 if site.target is not None else self.max_targets,
                address=site.patch,
                original=original[:16],
                length=len(original),
            )
        else:  # what it has learned stays
            self.tables.set_site(index, pad_back=back)
        made = Patched(
            site, index, site.patch, original, origin, back, area, blocks,
            known.active if known else False, patch,
        )  # fmt: skip
        self._sites[site.address] = made
        if made.active:
            self._write_patch(made, made.bytes)
        return made

    def _f0_cells(self) -> dict[int, str]:
        """Calls and jumps among f0's displaced instructions, by address: their cell's name."""
        assert self._f0 is not None
        found = {int(i.ip): f"leave {n}" for n, i in enumerate(self._f0.displaced)}
        return {at: name for at, name in found.items() if name in self._f0.cells}

    def _overlaps_f0(self, site: Site) -> bool:
        if self._f0 is None or not self._f0.displaced:
            return False
        end = int(self._f0.displaced[-1].next_ip)
        return (site.address < end and site.back > self._f0.address) or (
            self._f0.address <= site.patch < self._f0.address + len(self._f0.original)
        )

    def activate(self, patched: Patched) -> None:
        """Lets the site lead to its pad.

        Raises:
            TargetError: a thread stands between the bytes; try again at the next stop.
        """
        if not patched.active:
            self._apply(patched)

    def deactivate(self, patched: Patched) -> None:
        """Restores the site's own bytes."""
        if patched.active:
            patched.active = False
            if not self._cell(patched):
                self._program.patches.pop(patched.address, None)
            self._write_patch(patched, patched.original)
            if patched.through is not None:
                self.deactivate(patched.through)

    def _apply(self, patched: Patched) -> None:
        if patched.through is not None and not patched.through.active:
            self._apply(patched.through)
        self._check_threads(patched)
        live = self._target.read(patched.address, len(patched.original))
        if live != patched.original and not self._cell(patched):
            raise TargetError(f"the code at {patched.address:#x} has changed since it was read")
        if not self._cell(patched):
            self._program.patches[patched.address] = patched.original
        patched.active = True
        self._write_patch(patched, patched.bytes)

    def _cell(self, patched: Patched) -> str | None:
        if patched.site is None or not self._overlaps_f0(patched.site):
            return None
        return self._f0_cells().get(patched.site.address)

    def _write_patch(self, patched: Patched, data: bytes) -> None:
        cell = self._cell(patched)
        if cell is not None:
            assert self._f0 is not None
            place = self._f0.cells[cell]
            if patched.active:
                self._cell_values.setdefault(place, self._target.read(place, 8))
                self._target.write(place, struct.pack("<Q", patched.pad))
            elif place in self._cell_values:
                self._target.write(place, self._cell_values[place])
            return
        self._target.write(patched.address, data)
        self.tables.set_site(patched.index, patched=int(patched.active))

    def _check_threads(self, patched: Patched) -> None:
        """No thread may stand behind the first of the bytes that are about to change."""
        end = patched.address + len(patched.bytes)
        for thread, pc in self._target.program_counters().items():
            if patched.address < pc < end:
                raise TargetError(
                    f"thread {thread} stands in the bytes to patch at {patched.address:#x}: "
                    "let it go on a little, then try again"
                )

    def make_way(self) -> str | None:
        """Takes back patches in whose bytes the user has set a breakpoint; a string says why f0
        cannot be timed any more."""
        for patched in (*self._sites.values(), *self._guards):
            end = patched.site.back if patched.site is not None else patched.address + PATCH_LENGTH
            if patched.active and self._user_stands_in(patched.address, end):
                self.deactivate(patched)
        f0 = self._f0
        if f0 is None or not f0.active or not f0.displaced:
            return None
        if not self._user_stands_in(f0.address, int(f0.displaced[-1].next_ip)):
            return None
        for patched in self._sites.values():
            if self._cell(patched):
                self.deactivate(patched)
        self.deactivate(f0)
        why = self.prepare_f0(self._program.function(f0.address))
        if why is None:
            assert self._f0 is not None
            self._apply(self._f0)
        return why

    # ------------------------------------------------------------------ removal

    def show_own_stack(self) -> None:
        """Puts the program's return addresses back on its stacks: whoever looks sees no pad. The
        calls that were open are measured no more."""
        for record in self.tables.open_records():
            slot, pad_back, back = record["slot"], record["pad_back"], record["back"]
            try:
                if int.from_bytes(self._foothold.memory.read(slot, 8), "little") != pad_back:
                    continue  # not called yet, or left by a jump: its pad will see to it
                self._target.write(slot, struct.pack("<Q", back))
            except TargetError:
                pass  # the stack is gone, and its thread with it
            self.tables.close_record(record["address"])
        self._target.forget_frames()

    def remove(self) -> None:
        """Takes everything back: f0 first, then the call sites, the unwinders, the stacks."""
        self.tables.enabled = False
        if self._f0 is not None:
            for patched in self._sites.values():
                if self._cell(patched):
                    self.deactivate(patched)
            self.deactivate(self._f0)
        for patched in (*self._sites.values(), *self._guards):
            self.deactivate(patched)
        self.show_own_stack()

    def patched_bytes(self) -> dict[int, bytes]:
        """The places that are patched now and what stood there."""
        return dict(self._program.patches)
