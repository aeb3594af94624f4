"""Return landings: where every call that a pad makes in a process comes back to.

A return address that darc has put on a stack may be copied out (by greenlet, libco and others
whose coroutines share a stack) and come back at any time: over another frame, after the analysis,
after the debugger's end. So each leads to a *landing* of its own, a cell of code and a word with
the program's own return address, which never changes: whoever has the one finds the other by
arithmetic, and the cell alone takes the way back. A site's cell makes the call, pushes the word and
jumps to the site's pad; one of f0's calls the function's body, pushes the word and jumps to what is
common to all of them.

The same call site gets the same cell again, and so do f0 and the address that it returns to, in
later analyses too. A cell contains the call, so that the processor's prediction of returns is
right. At the end of an analysis, the last jump becomes a ``ret`` (:meth:`ReturnLandings.retire`):
the agent, its tables and the pads are not needed any more, and where no thread stands in them
they may be unmapped. The landings stay for the process's life. A thread that stands in the agent or
a pad then is yet to make its call, when no unwinder knows of landings any more: what is called is
put behind the ``ret``, and the call leads to code that puts the program's own return address in the
place of the cell's. What cells are made of is the processor's: :data:`~darc.pads.processor.CELLS`.

They are at the front of an area, in three parts, each on pages of its own: cells, words, and
what f0's cells call. The cells of f0's callers are claimed by the agent (``claim_landing``
in tables.c), those of sites by the debugger.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from darc.agent import compiled
from darc.agent.layout import words
from darc.pads import processor as pads
from darc.pads.processor import CELLS
from darc.target.memory import PAGE
from darc.target.target import Target

_LIMITS = compiled.load().constants
_COUNT = _LIMITS.LANDINGS
_CELL = _LIMITS.LANDING_SIZE
_ENTER = _LIMITS.LANDING_ENTER
_BACK = _LIMITS.LANDING_BACK
_WORDS = _LIMITS.LANDING_WORDS
_BODIES = _LIMITS.LANDING_BODIES
_SITES = _LIMITS.LANDING_SITES
_CALLERS = _LIMITS.LANDING_CALLERS

_COMMON = 64
"""Where the code is that f0's cells lead to."""

_RETIRED = 320
"""Where the code is that retired cells call."""

WRITABLE = range(_WORDS, _BODIES + 8 * (_COUNT - _CALLERS))
"""Which part of :data:`SIZE` the program must be able to write, in whole pages."""

SIZE = WRITABLE.stop
"""Bytes at the front of an area."""

_TAKEN = 1
"""In place of zero, so that nobody gets a cell any more who was about to claim one as the analysis
ended."""

KIND = b"landing2"
"""Says in an area's header that it has landings, and how they are laid out."""


class NoLandingError(pads.OutOfReachError):
    """As many call sites have a landing as there is room for."""


@dataclass(frozen=True)
class Replaced:
    """A word of the program's memory that led to a landing, and leads to its ``own`` code now."""

    address: int
    landing: int
    own: int


def own_back(landings: Iterable[ReturnLandings], word: int) -> int | None:
    """The program's own return address where ``word`` is one that leads to any of them."""
    for one in landings:
        if (own := one.own(word)) is not None:
            return own
    return None


class ReturnLandings:
    """Those of one area. Whatever is written here, all threads stand still."""

    def __init__(self, target: Target, base: int) -> None:
        """The area begins at ``base``, and has ``extent`` bytes of landings, new or used before."""
        self.base = base
        self.extent = SIZE
        self._target = target
        self._known: dict[int, int] | None = None
        self._f0s: dict[int, int] = {}
        self._fresh: set[int] = set()
        """Cells of sites that no call was ever made from: their sites' patches are to come."""

    # ------------------------------------------------------------------ an analysis

    def begin(self, control: int, stub: int) -> None:
        """An analysis begins whose agent has its control structure at ``control``; f0's cells lead
        to ``stub`` (``darc_stub_landed``)."""
        self._target.memory.write(
            self.base + _COMMON, pads.landed(control, stub, self.base + _COMMON)
        )
        if (bodies := self._bodies()) != self._raw_bodies():
            self._write_bodies(bodies)
        if _TAKEN in (callers := self._callers()):  # of what was kept, whose bodies may be new
            self._write_callers([0 if back == _TAKEN else back for back in callers])
        self._target.memory.flush()
        self._target.memory.write(self._cell(_CALLERS), _of_callers())

    def claim(self, back: int) -> int:
        """The cell of the call site with this return address; used by no other site, ever.

        Raises:
            NoLandingError: there is no more room.
        """
        known = self._sites()
        if back not in known:
            number = _SITES + len(known)
            if number >= _CALLERS:
                raise NoLandingError(
                    "as many calls were timed in this process as darc has landings for "
                    "(docs/pad.md): a new process has them all again"
                )
            known[back] = number
            self._fresh.add(self._cell(number))
            self._target.memory.write(self._word(number), struct.pack("<Q", back))
            self._target.memory.write(self._cell(number), CELLS.UNUSED)
        return self._cell(known[back])

    def returns_to(self, cell: int) -> int:
        """What the call in a cell puts on the stack."""
        return cell + _BACK

    def lead(self, cell: int, call: bytes, pad: int) -> None:
        """A site's cell begins with ``call``, which ends where is returned to, and leads on to
        ``pad``, which is written already."""
        number = (cell - self.base) // _CELL
        code = CELLS.of_site(call, cell, self._word(number), pad)
        if cell in self._fresh:  # no call comes back to it before its site's patch, written last
            self._fresh.remove(cell)
            self._target.memory.write(cell, code)
            return
        self._target.memory.flush()  # calls may come back to it at once
        self._target.memory.write(cell, code)
        self._target.memory.flush()

    @property
    def callers(self) -> int:
        """The return address of the first cell for f0's callers: others are in the same sector."""
        return self._cell(_CALLERS) + _BACK

    def bind(self, f0: int, body: int) -> None:
        """Calls of the function at ``f0`` go on at ``body``; the cells that it has stay its own."""
        first = self.base + _BODIES
        for index, known in enumerate(self._raw_bodies()):
            if known and self._f0s.get(known) == f0:
                self._target.memory.write(first + 8 * index, struct.pack("<Q", body))
        self._f0s[body] = f0

    @contextlib.contextmanager
    def lend(self, f0: int, back: int, body: int) -> Iterator[None]:
        """A cell for calls of the site whose function is at ``f0``, which come back to ``back`` in
        darc's own code: nobody else gets one for that. Where none is free, these calls are not
        timed. It is free again when they have come back; the program stands still before and after
        that."""
        for number in self._first_cells(f0, back):
            if not self._back(number):
                break
        else:
            yield
            return
        word, called = self._word(number), self.base + _BODIES + 8 * (number - _CALLERS)
        self._target.memory.write(called, struct.pack("<Q", body))
        self._target.memory.write(word, struct.pack("<Q", back))
        self._target.memory.flush()
        try:
            yield
        finally:
            self._target.memory.write(word, bytes(8))
            self._target.memory.write(called, bytes(8))

    # ------------------------------------------------------------------ whoever looks

    def own(self, word: int) -> int | None:
        """The program's own return address where ``word`` is a return address that leads here."""
        if not self.base <= word < self.base + SIZE:  # as most words of many pools
            return None
        number, part = divmod(word - self.base, _CELL)
        if part != _BACK or not _SITES <= number < _COUNT:
            return None
        return self._back(number) or None

    def gone_on_to(self, word: int) -> int | None:
        """As :meth:`own`, for unwinders: also where ``word`` leads to a cell by its front, by which
        the pad of f0 goes on. It is in f0's slot then, and will be the return address."""
        number, part = divmod(word - self.base, _CELL)
        if part == _ENTER and _CALLERS <= number < _COUNT:
            return self._back(number) or None
        return self.own(word)

    def caller(self, pc: int, stack: int) -> tuple[int, int] | None:
        """As :meth:`darc.pads.placing.Placing.caller`, for a thread or frame here."""
        if not self.base <= pc < self.base + _WORDS:
            return None
        number, part = divmod(pc - self.base, _CELL)
        if number >= _SITES:
            slot = CELLS.slot_in_cell(part, stack, is_callers=number >= _CALLERS)
            back = self._back(number)
            return (slot, back) if back else None
        if pc - self.base in range(_RETIRED, _RETIRED + len(CELLS.RETIRED)):
            slot = CELLS.slot_in_retired(pc - self.base - _RETIRED, stack)
            word = self._read(slot)
            return slot, self.own(word) or word
        slot = CELLS.slot_in_common(pc - self.base - _COMMON, stack)
        return slot, self._read(slot)

    # ------------------------------------------------------------------ the end

    def retire(self) -> None:
        """The analysis is over: whatever comes back here just returns, and needs neither the agent
        nor tables nor pads. A thread that is about to make a call from here, perhaps behind the
        handler of a signal, still finds what it calls (:meth:`forget`), and comes back past here
        where that is known: f0's, and direct calls."""
        low, stub, bodies = self.base, self.base + _RETIRED, self._raw_bodies()
        before = self._target.memory.read(low, _WORDS)
        code = bytearray(before)
        code[_RETIRED : _RETIRED + len(CELLS.RETIRED)] = CELLS.RETIRED
        for number in self._used():
            at = number * _CELL
            own, cell = before[at : at + _CELL], None
            called = self._called(own, bodies, number)
            if called is not None and called != stub:
                cell = CELLS.returning_with(own, low + at, called)
            if cell is None:
                cell = CELLS.returning(own)
            elif number < _CALLERS:
                cell = CELLS.calling(cell, low + at, stub)
            else:
                bodies[number - _CALLERS] = stub
            code[at : at + _CELL] = cell
        callers = [back or _TAKEN for back in self._callers()]
        for page in sorted({0, *self._pages_of_cells()}):
            self._target.memory.write(low + page, bytes(code[page : page + PAGE]))
        self._target.memory.flush()  # what they call is known before they are led there
        self._write_callers(callers)
        self._write_bodies([body or _TAKEN for body in bodies])

    def _called(self, code: bytes, bodies: Sequence[int], number: int) -> int | None:
        """What a cell calls, where that is known from its code."""
        if number >= _CALLERS:
            body = bodies[number - _CALLERS]
            return body if body > _TAKEN else None
        return CELLS.called(code, self._cell(number))

    def forget(self, is_gone: Callable[[int], bool]) -> None:
        """F0's cells that would call a place of which ``is_gone`` says so call nothing: others may
        have them. Nothing leads to them, nor to a pad that goes on in one."""
        raw, bodies = self._raw_bodies(), self._bodies()
        kept = [0 if body and is_gone(body) else now for body, now in zip(bodies, raw, strict=True)]
        if kept != raw:
            self._write_bodies(kept)
        self._f0s = {body: f0 for body, f0 in self._f0s.items() if not is_gone(body)}

    def calls(self, pc: int) -> int | None:
        """What a thread at ``pc`` is about to call of f0's, where that is in a cell of its."""
        number = (pc - self.base) // _CELL
        if not self.is_calling(pc) or not _CALLERS <= number < _COUNT:
            return None
        return self._bodies()[number - _CALLERS] or None

    def all_own(self) -> dict[int, int]:
        """The program's own return address by each that leads to a landing."""
        raw = words(self._target.memory.read(self._word(0), 8 * _COUNT))
        return {self._cell(n) + _BACK: raw[n] for n in range(_SITES, _COUNT) if raw[n] > _TAKEN}

    def is_calling(self, pc: int) -> bool:
        """Whether a thread at ``pc`` is about to call something from here, or to go on in the
        agent."""
        if not self.base <= pc < self.base + _WORDS:
            return False
        number, part = divmod(pc - self.base, _CELL)
        return part < _BACK or number < _SITES

    def kept(self) -> list[range]:
        """The pages that stay for the process's life once the landings are retired and no thread
        stands in the agent or a pad: at most 64 KiB."""
        used = {self.base, *(self.base + page for page in self._pages_of_cells())}
        used |= {self._word(number) // PAGE * PAGE for number in self._used()}
        return [range(page, page + PAGE) for page in sorted(used)]

    def knows(self, back: int) -> bool:
        """Whether the call site with this return address has a cell here."""
        return back in self._sites()

    @property
    def free_sites(self) -> int:
        """How many call sites can still get a cell."""
        return _CALLERS - _SITES - len(self._sites())

    @property
    def free(self) -> int:
        """How many call sites and callers of f0 can still get a cell, whatever is less."""
        used = self._used()
        sites = sum(number < _CALLERS for number in used)
        return min(_CALLERS - _SITES - sites, _COUNT - _CALLERS - (len(used) - sites))

    @property
    def has_room(self) -> bool:
        """Whether half of the cells are free: enough for an analysis, as a rule."""
        return 2 * self.free >= _CALLERS - _SITES

    @property
    def used(self) -> int:
        """How many landings were ever used: their addresses may stand on a stack, or in a copy."""
        return len(self._used())

    # ------------------------------------------------------------------ workings

    def _first_cells(self, f0: int, back: int) -> list[int]:
        """Where the agent looks first (``claim_landing``)."""
        product = (back * _LIMITS.HASH + f0) * _LIMITS.THREAD_HASH
        first, few = (
            product % (1 << 64) >> _LIMITS.THREAD_SHIFT,
            _LIMITS.LANDING_FEW,
        )
        return [_CALLERS + (first + n) % few for n in range(_LIMITS.PROBE_LIMIT)]

    def _raw_bodies(self) -> list[int]:
        """What f0's cells lead to."""
        return list(words(self._target.memory.read(self.base + _BODIES, 8 * (_COUNT - _CALLERS))))

    def _bodies(self) -> list[int]:
        """What they call in the end, those that are retired, too."""
        bodies, stub = self._raw_bodies(), self.base + _RETIRED
        first, cells = self._cell(_CALLERS), b""
        if stub in bodies:  # there may be a thousand
            cells = self._target.memory.read(first, _CELL * len(bodies))
        for index, body in enumerate(bodies):
            if body == _TAKEN:
                bodies[index] = 0
            elif body == stub:
                at = _CELL * index
                bodies[index] = CELLS.called_behind(cells[at : at + _CELL], first + at)
        return bodies

    def _callers(self) -> list[int]:
        """Where f0's cells return to."""
        return list(words(self._target.memory.read(self._word(_CALLERS), 8 * (_COUNT - _CALLERS))))

    def _write_callers(self, backs: Sequence[int]) -> None:
        self._target.memory.write(self._word(_CALLERS), struct.pack(f"<{len(backs)}Q", *backs))

    def _write_bodies(self, bodies: Sequence[int]) -> None:
        self._target.memory.write(self.base + _BODIES, struct.pack(f"<{len(bodies)}Q", *bodies))

    def _used(self) -> list[int]:
        raw = self._target.memory.read(self._word(0), 8 * _COUNT)
        return [n for n, back in enumerate(words(raw)) if back > _TAKEN and n >= _SITES]

    def _pages_of_cells(self) -> set[int]:
        found = set()
        for number in self._used():
            at = number * _CELL
            found |= {at // PAGE * PAGE, (at + _CELL - 1) // PAGE * PAGE}
        return found

    def _sites(self) -> dict[int, int]:
        if self._known is None:
            raw = self._target.memory.read(self._word(_SITES), 8 * (_CALLERS - _SITES))
            self._known = {back: _SITES + n for n, back in enumerate(words(raw)) if back}
        return self._known

    def _cell(self, number: int) -> int:
        return self.base + number * _CELL

    def _word(self, number: int) -> int:
        return self.base + _WORDS + 8 * number

    def _back(self, number: int) -> int:
        found = self._read(self._word(number))
        return 0 if found == _TAKEN else found

    def _read(self, address: int) -> int:
        return int.from_bytes(self._target.memory.read(address, 8), "little")


@functools.cache
def _of_callers() -> bytes:
    """The cells of f0's callers, which lead nowhere but to what is beside them: the same wherever
    landings are."""
    return b"".join(map(_of_caller, range(_CALLERS, _COUNT)))


def _of_caller(number: int) -> bytes:
    word, body = _WORDS + 8 * number, _BODIES + 8 * (number - _CALLERS)
    return CELLS.of_caller(_CELL * number, word, body, _COMMON)


Own = Callable[[int], int | None]
"""See :meth:`ReturnLandings.own`."""
