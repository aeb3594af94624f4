"""The files that are mapped into a program."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from darc.code.elf import Image, read_image
from darc.model.errors import DarcError, FormatError
from darc.target import living
from darc.target.target import Region, Target


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


def loads(mappings: list[Region], moved: Sequence[Region] = ()) -> Iterator[list[Region]]:
    """The mappings of a file, one list for each time that it is loaded: from its first bytes up.

    A file may be loaded twice (dlmopen), and a program may map parts of itself beside (node maps
    its snapshot, others read their own file). It may also have moved its code to large pages, so
    that the file's own mappings have none: ``moved`` are those with code that are of no file.
    """
    found: list[list[Region]] = []
    for region in mappings:
        if region.offset == 0 or not found:
            found.append([])
        found[-1].append(region)
    for parts in found:
        first, last = parts[0].start, parts[-1].end
        inside = any(first < region.start < region.end <= last for region in moved)
        if inside or any("x" in part.permissions for part in parts):
            yield parts


class ModuleFinder:
    """Finds the files that are mapped into a program, whose root folder is ``root``. Of one that
    cannot be read ``note`` is told why."""

    def __init__(self, target: Target, root: Path, note: Callable[[str], None]) -> None:
        self._target = target
        self._root = root
        self._note = note

    def find(
        self, regions: Iterable[Region], known: Mapping[tuple[str, int], Module]
    ) -> Iterator[Module]:
        """Those that ``regions`` are of, one for each time that a file is loaded; ``known`` ones,
        by path and start, are not read again."""
        groups: dict[str, list[Region]] = {}
        moved = []
        for region in regions:
            if not region.path and "x" in region.permissions:
                moved.append(region)
            if region.path.startswith("/") or region.path == "[vdso]":
                groups.setdefault(region.path, []).append(region)
        for path, mappings in groups.items():
            for parts in loads(mappings, moved):
                first = parts[0]
                module = known.get((path, first.start)) or self._module(path, parts)
                if module is not None:
                    yield module

    def _module(self, path: str, parts: list[Region]) -> Module | None:
        try:
            if path == "[vdso]":
                data = self._target.memory.read(parts[0].start, parts[0].end - parts[0].start)
                image = Image(data, "[vdso]")
            else:
                image = load_image(self._file_of(path, parts[0]), self._root)
        except (DarcError, OSError) as error:
            self._note(f"{path}: {error}")
            return None
        low = parts[0]
        for segment in image.segments:
            if segment.offset <= low.offset < segment.offset + max(segment.size, 1):
                bias = low.start - (segment.address + low.offset - segment.offset)
                break
        else:
            bias = low.start - low.offset
        bias &= ~0xFFF
        end = max(bias + s.address + s.size for s in image.segments)
        return Module(
            path=path, name=Path(path).name, bias=bias, start=low.start, end=end, image=image
        )

    def _file_of(self, path: str, part: Region) -> Path:
        """Where to read a mapped file: one that was replaced since, through the mapping itself."""
        pid = self._target.pid
        if not path.endswith(" (deleted)") or pid is None:
            inside, outside = self._root / path.lstrip("/"), Path(path)
            # Of a program in another root folder of the same file system (chroot) the kernel
            # tells paths as this process sees them, in containers as the program does.
            if not inside.exists() and outside.exists() and outside.stat().st_ino == part.inode:
                return outside
            return inside
        mapped = living.folder(pid) / f"map_files/{part.start:x}-{part.end:x}"
        if not os.access(mapped, os.R_OK):
            raise FormatError("the file was replaced while the program runs, and root may read it")
        return mapped
