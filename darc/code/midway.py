"""Whether a function begins at an address that somebody has typed.

f0 is timed by its return address, which at its first instruction lies on top of the stack. Behind
that something else may lie there: a saved register, into which a thread would return.
"""

from __future__ import annotations

import functools

from darc.code.callers import CallCounts
from darc.code.demangle import base_symbol, display_name
from darc.code.elf import Image
from darc.code.processor import FRAME_AT_ENTRY, PLT_ENTRY, plt_slot
from darc.code.symscans import is_cold_name


def why_none(image: Image, address: int, bias: int = 0) -> str | None:
    """Why no function begins at an address of a file, and what to type instead; ``None``: one does,
    or nothing tells. Symbols, frame descriptions and calls in the file's own code tell. ``bias`` is
    what is added to its addresses where the user reads them."""
    found = image.symbols.names_at(address)
    if any(not is_cold_name(name) for name in found):
        around = _around_symbol(image, address)
        return None if around is None else _within(image, address, around, bias)
    start = _start(image, address)
    if start is None:
        return None
    if (part := _put_aside(image, start)) is not None:
        return f"{address + bias:#x} lies in {part}"
    if start == address or _may_be_entry(image, address):
        return None
    return _within(image, address, start, bias)


def _start(image: Image, address: int) -> int | None:
    """Where the code begins that holds ``address``, by what is known of it; ``None``: nothing."""
    symbol, extent = image.symbols.at(address), image.frames.extent(address)
    known = [] if extent is None else [extent[0]]
    if symbol is not None:  # of several functions with one description (assembly) it knows better
        known.append(symbol.address)
    return max(known, default=None)


def _put_aside(image: Image, start: int) -> str | None:
    """Of what begins at ``start`` which part of which function it is, where it is no whole one."""
    names = image.symbols.names_at(start)
    if names:
        if not all(map(is_cold_name, names)):
            return None
        whole = display_name(base_symbol(names[0]))
        return f"a part of {whole} that its compiler put aside: take {whole}"
    is_entry = image.frames.rule(start) in (None, FRAME_AT_ENTRY)
    if is_entry or image.frames.extent(start) is None or _is_plt(image, start):
        return None
    return "a part of a function that its compiler put aside: take the one that jumps there"


def _around_symbol(image: Image, address: int) -> int | None:
    """Where the function begins that has a symbol in its middle, at ``address``, by which its frame
    is made already: a label. Some functions' entries stand in others', before that."""
    if image.frames.rule(address) in (None, FRAME_AT_ENTRY):
        return None
    return max(
        (s.address for s in image.symbols if s.address < address < s.address + s.size),
        default=None,
    )


def _may_be_entry(image: Image, address: int) -> bool:
    """Whether code that nothing tells of begins at ``address`` all the same."""
    if image.frames.rule(address) not in (None, FRAME_AT_ENTRY):
        return False
    return _is_plt(image, address) or _is_called(image, address)


def _is_plt(image: Image, address: int) -> bool:
    if image.symbols.at(address) is not None:
        return False
    code = image.loaded(address, PLT_ENTRY)
    return code is not None and plt_slot(code, address) is not None


@functools.lru_cache(maxsize=16)
def _is_called(image: Image, address: int) -> bool:
    counted = CallCounts([address])
    for segment in image.segments:
        if segment.executable:
            counted.add(image.loaded(segment.address, segment.size) or b"", segment.address)
    return counted.found()[address] > 0


def _within(image: Image, address: int, start: int, bias: int) -> str:
    names = image.symbols.names_at(start)
    told = f"{address + bias:#x}"
    if not names:
        outer = f"the function at {start + bias:#x}"
    else:
        outer = display_name(names[0])
        told += f", {outer}+{address - start},"
    return f"{told} lies within {outer}: take *{start + bias:#x}, where that begins"
