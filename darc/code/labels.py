"""Labels: symbols in code that look like functions', and are not.

What is written by hand may have no types (``.type NAME, @function``): then a loop's beginning, an
interpreter's handler of an instruction, to which it jumps, and a table that stands among code have
symbols as functions have. A patch in a table changes data, and what lies on top of the stack at a
handler is anything. A function is what frame information begins at, or what a call leads to.
"""

from __future__ import annotations

import functools

from darc.code.callers import CallCounts
from darc.code.elf import Image
from darc.code.program import Program

LABEL = "it is a label: it has no type (.type, @function), and no call in the code leads to it"
"""Why nothing is timed there."""


def is_inside_another(program: Program, address: int) -> bool:
    """Whether a label at ``address`` is in the middle of a function, by what the file tells."""
    module = program.module_at(address)
    if module is None or not is_label(program, address):
        return False
    image, own = module.image, address - module.bias
    if image.frames.extent(own) is not None:
        return True
    typed = (symbol for symbol in image.symbols if symbol.has_type)
    return any(symbol.address < own < symbol.address + symbol.size for symbol in typed)


def is_label(program: Program, address: int) -> bool:
    """Whether nothing tells that what has symbols at ``address`` is a function. One that is called
    through a pointer alone is taken for a label, too."""
    module = program.module_at(address)
    if module is None:
        return False
    own = address - module.bias
    if any(symbol.has_type for symbol in module.image.symbols.all_at(own)):
        return False  # most are told so, without a look at the others
    if own not in _doubtful(module.image):
        return False
    if own in _called(module.image):
        return False
    names = [symbol.name for symbol in module.image.symbols.all_at(own) if symbol.exported]
    others = (other for other in program.modules if other is not module)
    return not names or not any(other.image.dynamic.imports_any(names) for other in others)


@functools.lru_cache(maxsize=64)
def _doubtful(image: Image) -> frozenset[int]:
    """Where no symbol has a type, and no frame information begins, as the file has it."""
    untyped = {symbol.address for symbol in image.symbols.untyped}
    if not untyped:
        return frozenset()
    typed = {
        address
        for address in untyped
        if any(symbol.has_type for symbol in image.symbols.all_at(address))
    }
    return frozenset(untyped - typed).difference(image.frames.starts)


@functools.lru_cache(maxsize=64)
def _called(image: Image) -> frozenset[int]:
    """Those of them that a call in the file's own code leads to."""
    counted = CallCounts(_doubtful(image))
    for segment in image.segments:
        if segment.executable:
            counted.add(image.loaded(segment.address, segment.size) or b"", segment.address)
    return frozenset(address for address, calls in counted.found().items() if calls)
