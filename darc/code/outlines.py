"""Where functions and parts of them begin and end, and the frames that they have."""

from __future__ import annotations

from typing import Protocol

from darc.code.frame_rule import FrameRule
from darc.code.linkage import Linkage
from darc.code.modules import Loaded
from darc.code.processor import FRAME_AT_ENTRY
from darc.code.symscans import is_cold_name


class Described(Loaded, Protocol):
    """The program whose files have them."""

    @property
    def linkage(self) -> Linkage: ...


class Outlines:
    """The functions of a program, as symbols and frame descriptions of its files tell."""

    def __init__(self, program: Described) -> None:
        self._program = program

    def extent(self, address: int) -> tuple[int, int] | None:
        """The bytes of the function part around ``address``."""
        module = self._program.module_at(address)
        if module is None:
            return None
        own = address - module.bias
        extent = module.image.frames.extent(own)
        symbol = module.image.symbols.at(own)
        if extent is None and symbol is not None and symbol.size:
            extent = symbol.address, symbol.address + symbol.size
        if extent is None:
            segment = module.image.segment_of(own)
            if segment is None:
                return None
            end = module.image.symbols.next_above(own) or segment.address + segment.size
            extent = own, min(end, segment.address + segment.size)
        elif symbol is not None and symbol.size and extent[0] < symbol.address < extent[1]:
            # One description over several functions (assembly): the symbols know better.
            extent = symbol.address, min(extent[1], symbol.address + symbol.size)
        return extent[0] + module.bias, extent[1] + module.bias

    def frame_rule(self, address: int) -> FrameRule | None:
        """Where the frame that executes ``address`` has its CFA."""
        module = self._program.module_at(address)
        return module.image.frames.rule(address - module.bias) if module is not None else None

    def kept_frame_pointer(self, address: int) -> int | None:
        """See :meth:`darc.code.frames.FrameDescriptions.kept_frame_pointer`."""
        module = self._program.module_at(address)
        if module is None:
            return None
        return module.image.frames.kept_frame_pointer(address - module.bias)

    def landing_pads(self, address: int) -> frozenset[int] | None:
        """Where exceptions come back to in the function part around ``address``; ``None`` when
        that is not known."""
        module = self._program.module_at(address)
        if module is None:
            return frozenset()
        found = module.image.frames.landing_pads(address - module.bias)
        return None if found is None else frozenset(pad + module.bias for pad in found)

    def is_function_start(self, address: int) -> bool:
        """Whether a function, not a part of one, begins at ``address``."""
        module = self._program.module_at(address)
        if module is None:
            return False
        own = address - module.bias
        if any(not is_cold_name(name) for name in module.image.symbols.names_at(own)):
            return True
        extent = module.image.frames.extent(own)
        return extent is not None and extent[0] == own and not self.is_cold_part(address)

    def may_be_function(self, address: int) -> bool:
        """Whether what begins at ``address`` has a symbol, or is a function by all that the file
        tells, not a part of one, what leads to another file, or a thread's first code."""
        module = self._program.module_at(address)
        if module is None or module.image.symbols.names_at(address - module.bias):
            return module is not None
        if not module.image.frames.may_be_called(address - module.bias):
            return False
        return not self._program.linkage.jump_slot(address) and not self.is_cold_part(address)

    def is_cold_part(self, address: int) -> bool:
        """Whether ``address`` begins a part that the compiler split off a function."""
        module = self._program.module_at(address)
        if module is None:
            return False
        names = module.image.symbols.names_at(address - module.bias)
        if names:
            return all(is_cold_name(name) for name in names)
        if self._program.linkage.jump_slot(address) is not None:
            return False
        rule = module.image.frames.rule(address - module.bias)
        return rule is not None and rule != FRAME_AT_ENTRY
