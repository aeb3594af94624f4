"""How many calls lead to a function, by the code alone: which functions to take of too many."""

from __future__ import annotations

import bisect
import collections
import contextlib
import itertools
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from darc.code.candidates import Candidates, Picked
from darc.code.modules import Module
from darc.code.patterns import Chosen
from darc.code.processor import led_through, led_to, pointed_to
from darc.code.program import Program
from darc.code.scans import scans
from darc.model.errors import TargetError
from darc.model.ftree import Function
from darc.model.leftout import too_many
from darc.model.leftoutmany import LeftOutMany
from darc.model.libraries import is_c_library, is_loader

_RUNTIME = re.compile(r"(libm|libstdc\+\+|libgcc_s)([-.].*)?\.so|\[vdso\]")
"""What of a language's runtime is called beside the C library."""

_NEAR_PART = 0.75
"""So many of those that can be taken are near to what is under way, at most."""

_LONGEST = 1 << 18
"""Bytes of a function that are looked at."""

_FOREMOST = (1 << 64) - 1
"""More calls than lead to any function."""

_TOLD = 1000
"""Functions that are looked at between two words on how far it is."""


class CallCounts:
    """How many direct calls lead to each of ``wanted``, in code that is given bit by bit."""

    def __init__(self, wanted: Iterable[int]) -> None:
        self._take(array("Q", sorted(set(wanted))))

    @classmethod
    def of_ascending(cls, wanted: array[int]) -> CallCounts:
        """The same of addresses that ascend, each once."""
        made = cls.__new__(cls)
        made._take(wanted)
        return made

    def _take(self, wanted: array[int]) -> None:
        self._wanted = wanted
        self.calls = array("Q", bytes(8 * len(wanted)))
        """Those that lead to each, in the order of their addresses."""

    def add(self, code: bytes, address: int) -> None:
        """Counts those in the bytes of ``code``, which is at ``address``."""
        wanted, calls = (one.buffer_info()[0] for one in (self._wanted, self.calls))
        scans().callscan(code, len(code), address, wanted, len(self._wanted), calls)

    def found(self) -> dict[int, int]:
        """The calls by where they lead."""
        return dict(zip(self._wanted, self.calls, strict=True))


def most_called(
    program: Program,
    chosen: Chosen,
    most: int,
    *,
    progress: Callable[[str], None] = lambda _: None,
    active: Callable[[], Iterable[int]] = tuple,
) -> Chosen:
    """``chosen`` with the functions' names. Of more than ``most`` those with the most calls that
    lead to them, these first; the others are left out, and it is said why. Where ``active`` tells
    which functions are under way, at any address in them, these and what they call come before, in
    the files that were chosen: they are most of those that are taken. A language's runtime comes
    last, which everybody calls."""

    def named(function: Function) -> Function:
        return program.names.function_at(function.address)

    late = LeftOutMany.of((named(function), why) for function, why in chosen.left_out)
    if len(chosen.functions) <= most:
        return Chosen(tuple(map(named, chosen.functions)), late)
    functions = chosen.functions
    candidates = functions if isinstance(functions, Candidates) else Candidates.of(functions)
    calls = _calls(program, candidates, progress)
    files = {part.module for part in candidates.parts}
    runtime = {name for name in files if _is_runtime(name)}
    runtime = runtime if runtime < files else set()
    is_last = b"".join(
        (b"\1" if part.module in runtime else b"\0") * len(part.addresses)
        for part in candidates.parts
    )
    way = map(candidates.number_of, _outward(program, active(), progress, across=len(files) > 1))
    near = (number for number in way if number is not None and not is_last[number])
    for place, number in enumerate(itertools.islice(near, int(_NEAR_PART * most))):
        calls[number] = _FOREMOST - place
    order = _order(calls, is_last)
    rest = LeftOutMany((Picked(candidates, order[most:]), too_many(most)))
    return Chosen(tuple(map(named, Picked(candidates, order[:most]))), late + rest)


def _calls(program: Program, candidates: Candidates, progress: Callable[[str], None]) -> array[int]:
    """How many calls lead to each, in the code of all files that have some."""
    counted = CallCounts.of_ascending(candidates.addresses)
    modules = _modules(program, candidates.addresses)
    for number, module in enumerate(modules, 1):
        progress(f"counts the calls in file {number} of {len(modules)}")
        for segment in module.image.segments:
            if segment.executable:
                code = module.image.loaded(segment.address, segment.size) or b""
                counted.add(code, segment.address + module.bias)
    return counted.calls


def _order(calls: array[int], is_last: bytes) -> array[int]:
    """The numbers of functions, by how many calls lead to them; behind all others those that are
    last."""
    order, room = (array("I", bytes(4 * len(calls))) for _ in range(2))
    places = (one.buffer_info()[0] for one in (order, room))
    scans().rank(calls.buffer_info()[0], is_last, len(calls), *places)
    return order


def reached(program: Program, active: Iterable[int], most: int) -> list[Function]:
    """The functions that are ``active``, by an address in each, and breadth first what these call,
    in whatever files but a language's runtime: ``most`` of them."""
    found = itertools.islice(_outward(program, active, across=True), most)
    return [program.names.function_at(address) for address in found]


def _outward(
    program: Program,
    active: Iterable[int],
    progress: Callable[[str], None] = lambda _: None,
    *,
    across: bool,
) -> Iterator[int]:
    """Where functions begin: those at addresses in ``active``, then breadth first what their code
    leads to or takes the address of, in the same file, or ``across`` files."""
    codes: dict[int, _Bounds] = {}
    ready = collections.deque(active)
    seen: set[int] = set()
    while ready:
        address = ready.popleft()
        module = program.module_at(address)
        if module is None or (across and _is_runtime(module.name)):
            continue
        if module.start not in codes:
            codes[module.start] = _Bounds(module)
        bounds = codes[module.start].around(address)
        if bounds is None or bounds[0] in seen:
            continue
        start, end = bounds
        seen.add(start)
        if len(seen) % _TOLD == 0:
            progress(f"looks at what is called where the program works: {len(seen):,} functions")
        yield start
        code = module.image.loaded(start - module.bias, end - start) or b""
        starts = codes[module.start]
        ahead = [to for _, to in led_to(code, start)]
        ready += (to for to in ahead if to in starts and to not in seen)
        ready += (to for to in pointed_to(code, start) if to in starts and to not in seen)
        if across:
            ready += _elsewhere(program, module, (to for to in ahead if to not in starts))


def _is_runtime(file: str) -> bool:
    """Whether it is a language's runtime, whose functions are slow for their callers."""
    return is_c_library(file) or is_loader(file) or _RUNTIME.match(file) is not None


def _elsewhere(program: Program, module: Module, targets: Iterable[int]) -> Iterator[int]:
    """Where those of ``targets`` lead, in other files, that are PLT entries of ``module``."""
    for target in targets:
        if module.start <= target < module.end and program.linkage.jump_slot(target) is not None:
            callee = program.linkage.resolve(target)
            if callee is not None and program.is_code(callee[0]):
                yield callee[0]


class _Bounds:
    """Where the functions of a module begin and end, by its symbols and frame information."""

    def __init__(self, module: Module) -> None:
        self._bias = module.bias
        self._known = module.image.symbols.addresses, sorted(module.image.frames.starts)
        self._end = module.end - module.bias

    def __contains__(self, address: int) -> bool:
        """Whether one begins there."""
        own = address - self._bias
        return any(at and known[at - 1] == own for known, at in self._up_to(own))

    def around(self, address: int) -> tuple[int, int] | None:
        """The function there."""
        own = address - self._bias
        places = list(self._up_to(own))
        start = max((known[at - 1] for known, at in places if at), default=None)
        if start is None:
            return None
        end = min((known[at] for known, at in places if at < len(known)), default=self._end)
        return start + self._bias, min(end, start + _LONGEST) + self._bias

    def _up_to(self, own: int) -> Iterator[tuple[Sequence[int], int]]:
        """What is known, and how many begin up to there."""
        return ((known, bisect.bisect_right(known, own)) for known in self._known)


def called_by_loops(
    program: Program, active: Iterable[int], own: Module, names: Set[str]
) -> list[Function]:
    """The functions of other files with one of these ``names`` that functions of the file ``own``
    call themselves which are ``active``, by an address in each. A thread's loop never returns: what
    it calls is all that can be timed of it."""
    bounds = _Bounds(own)
    found: dict[int, Function] = {}
    seen: set[int] = set()
    for address in active:
        place = bounds.around(address) if own.start <= address < own.end else None
        if place is None or place[0] in seen:
            continue
        start, end = place
        seen.add(start)
        code = own.image.loaded(start - own.bias, end - start) or b""
        targets = (to for _, to in led_to(code, start) if own.start <= to < own.end)
        for target in (*targets, *_led_through(program, own, code, start)):
            if program.linkage.names_of(target).isdisjoint(names):
                continue
            callee = program.linkage.callee_at(target)
            if program.is_code(callee.address) and program.module_at(callee.address) is not own:
                found[callee.address] = callee
    return list(found.values())


def _led_through(program: Program, own: Module, code: bytes, start: int) -> Iterator[int]:
    """Where calls lead that go through a word of the file, as those of ``-fno-plt`` do."""
    for word in led_through(code, start):
        if own.start <= word < own.end:
            with contextlib.suppress(TargetError):
                yield int.from_bytes(program.read(word, 8), "little")


def callers_of(program: Program, function: Function) -> list[Function]:
    """The functions of the same file whose code calls that one, or jumps to it, by its address."""
    module = program.module_at(function.address)
    found: dict[int, Function] = {}
    for segment in () if module is None else module.image.segments:
        if not segment.executable:
            continue
        assert module is not None
        code = module.image.loaded(segment.address, segment.size) or b""
        start = segment.address + module.bias
        for at, target in led_to(code, start):
            if target == function.address:
                caller = program.names.function_at(at)
                found[caller.address] = caller
    found.pop(function.address, None)
    return list(found.values())


def _modules(program: Program, addresses: Sequence[int]) -> Sequence[Module]:
    """The files that these are in, which ascend."""
    found: dict[int, Module] = {}
    at = 0
    while at < len(addresses):
        module = program.module_at(addresses[at])
        at += 1
        if module is not None:
            found[module.start] = module
            at = bisect.bisect_left(addresses, module.end, at)
    return list(found.values())
