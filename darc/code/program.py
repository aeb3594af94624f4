"""The running program as code: its modules and functions, and who tells more of them."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from darc.code.architecture import FunctionCode, Site, Thunks
from darc.code.backlooks import BackLooks
from darc.code.jumps import Jumps
from darc.code.linkage import Linkage
from darc.code.live import LiveBytes
from darc.code.modules import FilesBeside, Module, ModuleFinder, nowhere
from darc.code.names import Names
from darc.code.outlines import Outlines
from darc.code.patchable import Patchable
from darc.code.processor import read_function
from darc.code.regions import CodeRegions
from darc.code.sequences import Sequences
from darc.model.ftree import Fnode, Meaning
from darc.target.shapes import Shape
from darc.target.target import Region, Target


class Program:
    """A stopped program: its modules, the code of its functions, and who tells more of them.

    ``live`` are its untouched bytes. ``names`` tell what is called how, ``linkage`` where calls
    lead from file to file, ``jumps`` where jumps lead, ``looks`` who looks at its return address,
    ``outlines`` where functions begin and end, ``sequences`` what code the kernel knows by its
    address, ``mapped`` where code is, and ``patchable`` what of it may be changed.
    """

    _linkage_type: type[Linkage] = Linkage
    """What is made for :attr:`linkage`."""

    def __init__(
        self,
        target: Target,
        root: Path,
        regions: Iterable[Region],
        *,
        called: Mapping[str, str] | None = None,
        beside: FilesBeside = nowhere,
    ) -> None:
        """``root`` is its root folder; ``called`` has names of files that are not those of what is
        mapped, by the paths of that; ``beside`` tells where else these may be read."""
        self._target = target
        self.live = LiveBytes(self, target)
        self.modules: list[Module] = []
        self.problems: list[str] = []
        self._finder = ModuleFinder(
            target=target, root=root, note=self.problems.append, called=called or {}, beside=beside
        )
        self._functions: dict[int, FunctionCode] = {}
        self.names = Names(self)
        self.linkage = self._linkage_type(self)
        self.outlines = Outlines(self)
        self.jumps = Jumps(self)
        self.back_looks = BackLooks(self, self.linkage)
        self.patchable = Patchable(self)
        self.update(regions)

    # ------------------------------------------------------------------ modules

    @property
    def missed(self) -> list[str]:
        """A line for each mapped file of code that cannot be had, where another one stands at its
        path, say."""
        return self._finder.missed

    def update(self, regions: Iterable[Region]) -> None:
        """Looks at the mappings again, after something was loaded or unloaded."""
        self.regions = tuple(regions)
        self.mapped = CodeRegions(self.regions)
        known = {(m.path, m.start): m for m in self.modules}
        self.modules = sorted(self._find_modules(known), key=lambda m: m.start)
        self._starts = [m.start for m in self.modules]
        self.forget_code()
        self.names.forget()
        self.linkage.forget_exports()
        self.sequences = Sequences(self._target, self.modules)

    def _find_modules(self, known: Mapping[tuple[str, int], Module]) -> Iterator[Module]:
        return self._finder.find(self.regions, known)

    def module_at(self, address: int) -> Module | None:
        """The module whose mappings hold ``address``."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self.modules[index].end:
            return self.modules[index]
        return None

    def modules_near(self, address: int) -> Iterator[Module]:
        """All modules: the one at ``address`` first, then those that it needs, then what these
        need. The others come last, which it may call indirectly."""
        first, others = self.module_at(address), list(self.modules)
        named = {name: m for m in self.modules for name in (m.name, m.image.dynamic.soname) if name}
        ready = [] if first is None else [first]
        for module in ready:
            yield module
            loaded = (
                named[name] for name in sorted(module.image.dynamic.libraries) if name in named
            )
            ready += [other for other in dict.fromkeys(loaded) if other not in ready]
        yield from (other for other in others if other not in ready)

    def knows(self, address: int) -> bool:
        """Whether what the debugger itself tells of ``address`` may be believed: it has read the
        file that is mapped there, as far as build ids tell."""
        module, build = self.module_at(address), self._target.symbols.build_at(address)
        return module is None or build is None or module.image.build_id in (None, build)

    @property
    def asks_debugger(self) -> bool:
        """Whether this thread may ask the debugger for what it knows from debug information."""
        return self._target.turn.is_own_thread()

    def shape_of(self, variable: str, address: int) -> Shape | None:
        """The type of the program's ``variable`` that is at ``address``, where the debugger knows
        it, and may be asked. Raises TargetError: it cannot say."""
        knows = self.asks_debugger and self.knows(address)
        return self._target.symbols.shape_of(variable, address) if knows else None

    def inlined_at(self, address: int) -> tuple[str, ...]:
        """The functions that ``address`` was inlined from, outermost first, where the debugger
        knows them, and may be asked. Raises TargetError: it cannot say."""
        knows = self.asks_debugger and self.knows(address)
        return self._target.symbols.inlined_at(address) if knows else ()

    # --------------------------------------------------------------------- code

    def way_in(self, entry: int) -> int:
        """Where the first instruction of a function is that may be led to a pad."""
        return entry

    def read(self, address: int, size: int) -> bytes:
        """Memory as it was before darc touched it."""
        return self.live.read(address, size)

    def forget_code(self) -> None:
        """The program's bytes have changed: read functions anew."""
        self._functions.clear()
        self.linkage.forget_code()
        self.jumps.forget_code()
        self.back_looks.forget_code()
        self.patchable.forget_code()

    def function(self, entry: int) -> FunctionCode:
        """The code of the function at ``entry``, read once."""
        found = self._functions.get(entry)
        if found is None:
            found = self._functions[entry] = read_function(entry, self, self.thunks)
        return found

    def is_thunk(self, address: int) -> bool:
        """Whether this is no function of its own, but leads where a register says."""
        del address
        return False

    thunks: Thunks | None = None
    """How calls through thunks are told, where there are any."""

    interrupts: Sequence[Site] = ()
    """Handlers that may interrupt any function, each as if it was called there."""

    def meaning(self, node: Fnode) -> Meaning | None:
        """Of a function that paths end at, whatever it calls."""
        return None

    def is_code(self, address: int) -> bool:
        """Whether ``address`` lies in an executable mapping."""
        return self.mapped.has(address)

    def code_among(self, addresses: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Which of ``addresses``, that ascend, are code: from which number up to which."""
        return self.mapped.among(addresses)

    def is_jumped_into(self, start: int, end: int) -> bool:
        """Whether some function nearby jumps between ``start`` and ``end``, both excluded, or a
        symbol or a pointer in the file's data leads there, or the kernel may lead a thread."""
        module = self.module_at(start)
        if module is None:
            return False
        if self.sequences.lie_between(start, end):
            return True
        low, high = start - module.bias, end - module.bias
        above = module.image.symbols.next_above(low)
        if (above is not None and above < high) or module.image.pointers.lie_between(low, high):
            return True
        return self.jumps.lead_between(start, end, module)

    @property
    def first_file(self) -> Module | None:
        """The file that patterns mean first, where that is not the one that was executed."""
        return None

    @property
    def has_more(self) -> bool:
        """Whether there are modules that are looked for only when they are needed."""
        return False

    def look_further(self) -> None:
        """Looks for those."""
