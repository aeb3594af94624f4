"""The files that are mapped into a program."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from darc.code.elf import Image, read_image
from darc.model.errors import FormatError
from darc.target.target import Region


@dataclass(frozen=True, kw_only=True)
class Module:
    """A file that is mapped into the program. ``bias`` is added to the file's own addresses."""

    path: str
    name: str
    bias: int
    start: int
    end: int
    image: Image


@functools.lru_cache(maxsize=256)
def _cached_image(path: str, root: str, _stamp: tuple[int, int, int]) -> Image:
    return read_image(Path(path), Path(path).name, Path(root))


def load_image(path: Path, root: Path = Path("/")) -> Image:
    """An image, read once as long as its file does not change.

    Raises:
        FormatError: it cannot be read or is no ELF file.
        UnsupportedError: it is for another machine.
    """
    try:
        seen = path.stat()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    return _cached_image(str(path), str(root), (seen.st_ino, seen.st_size, seen.st_mtime_ns))


def loads(mappings: list[Region]) -> Iterator[list[Region]]:
    """The mappings of a file, one list for each time that it is loaded: from its first bytes up.

    A file may be loaded twice (dlmopen), and a program may map parts of itself beside (node maps
    its snapshot, others read their own file).
    """
    found: list[list[Region]] = []
    for region in mappings:
        if region.offset == 0 or not found:
            found.append([])
        found[-1].append(region)
    for parts in found:
        if any("x" in part.permissions for part in parts):
            yield parts
