"""The files that are mapped into a program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from darc.code.elf import Image, read_image
from darc.model.errors import DarcError, FormatError, TargetError
from darc.target.memory import PAGE
from darc.target.target import Region, Target

_VDSO = "[vdso]"
"""What that is called among a program's mappings."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """A file that is mapped into the program. ``bias`` is added to the file's own addresses."""

    path: str
    name: str
    bias: int
    start: int
    end: int
    image: Image
    file: tuple[int | None, int] = (None, 0)
    """The device and the inode of what is mapped."""

    @property
    def is_vdso(self) -> bool:
        """Whether it is of no file: what the kernel maps into each program."""
        return self.path == _VDSO


@functools.lru_cache(maxsize=256)
def _cached_image(path: str, root: str, _stamp: tuple[int, ...]) -> Image:
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
    stamp = seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns
    return _cached_image(str(path), str(root), stamp)


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


class Loaded(Protocol):
    """What tells which modules are loaded where."""

    @property
    def modules(self) -> Sequence[Module]: ...
    def module_at(self, address: int) -> Module | None: ...


FilesBeside = Callable[[Sequence[Region]], Iterable[Path]]
"""Where the file of these mappings may be read, whatever stands at its path by now."""


def nowhere(_mappings: Sequence[Region]) -> Iterable[Path]:
    """Of what is debugged nothing but the paths tells where files are."""
    return ()


class ModuleFinder:
    """Finds the files that are mapped into a program, whose root folder is ``root``. Of one that
    cannot be read ``note`` is told why.

    At a path another file may stand than the one that is mapped: in a container, or where it was
    replaced since. What is read is the mapped one; where it cannot be had, nothing is, and
    :attr:`missed` says what to do."""

    def __init__(
        self,
        target: Target,
        root: Path,
        note: Callable[[str], None],
        *,
        called: Mapping[str, str],
        beside: FilesBeside,
    ) -> None:
        """``called`` has names of files that are not those of what is mapped, by its paths."""
        self._target = target
        self._called = called
        self._root = root
        self._note = note
        self._beside = beside
        self.missed: list[str] = []
        """A line for each file of code that cannot be had: what it holds nobody can tell."""

    def find(
        self, regions: Iterable[Region], known: Mapping[tuple[str, int], Module]
    ) -> Iterator[Module]:
        """Those that ``regions`` are of, one for each time that a file is loaded; ``known`` ones,
        by path and start, are not read again."""
        self.missed.clear()
        groups: dict[str, list[Region]] = {}
        moved = []
        for region in regions:
            if not region.path and "x" in region.permissions:
                moved.append(region)
            if region.path.startswith("/") or region.path == _VDSO:
                groups.setdefault(region.path, []).append(region)
        for path, mappings in groups.items():
            for parts in loads(mappings, moved):
                first = parts[0]
                module = known.get((path, first.start))
                if module is None or module.file != (first.device, first.inode):
                    module = self._module(path, parts)
                if module is not None:
                    yield module

    def _module(self, path: str, parts: list[Region]) -> Module | None:
        low = parts[0]
        try:
            if path == _VDSO:
                image = Image(self._target.memory.read(low.start, low.end - low.start), _VDSO)
                bias = _bias(image, low)
            else:
                image, bias = self._mapped(path, parts)
        except _MissedError as error:
            self.missed.append(str(error))
            self._note(str(error))
            return None
        except (DarcError, OSError) as error:
            self._note(f"{path}: {error}")
            return None
        return Module(
            path=path,
            name=self._called.get(path, Path(path).name),
            bias=bias,
            start=low.start,
            end=max(bias + s.address + s.size for s in image.segments),
            image=image,
            file=(low.device, low.inode),
        )

    def _mapped(self, path: str, parts: list[Region]) -> tuple[Image, int]:
        """The file that is mapped, and its bias.

        Raises:
            _MissedError: it cannot be had.
            FormatError: it is no ELF file.
            UnsupportedError: it is for another machine.
        """
        refused: DarcError | None = None
        is_there = False
        for file in self._places(path, parts):
            try:
                found = file.stat()
                is_there = True
                is_it = found.st_ino == parts[0].inode
                image = load_image(file, self._root)
            except OSError:
                continue
            except DarcError as error:
                if is_it and parts[0].device in (None, found.st_dev):
                    raise
                refused = refused or error
                continue
            bias = _bias(image, parts[0])
            if is_it and parts[0].device in (None, found.st_dev):
                return image, bias
            if self._is_in_memory(image, bias):
                return image, bias
        if not any("x" in part.permissions for part in parts):
            raise refused or FormatError("it is not there")
        name = path.removesuffix(" (deleted)")
        why = "another file stands there than is mapped" if is_there else "it cannot be read"
        if path != name:
            why = "it was replaced, or removed, while the program runs"
        raise _MissedError(
            f"{name}: {why}: root may read what is mapped, else the program has to begin anew"
        )

    def _is_in_memory(self, image: Image, bias: int) -> bool:
        try:
            return image.is_in(lambda at, size: self._target.memory.read(bias + at, size))
        except TargetError:
            return False

    def _places(self, path: str, parts: list[Region]) -> Iterator[Path]:
        """Where a mapped file may be read: as the program sees it, or as this process does, or by
        its mapping, which is the file itself. Of a program in another root folder of the same
        file system (chroot) the kernel tells paths as this process sees them, in containers as the
        program does."""
        for name in dict.fromkeys((path, path.removesuffix(" (deleted)"))):
            yield self._root / name.lstrip("/")
            if self._root != Path("/"):
                yield Path(name)
        yield from self._beside(parts)


class _MissedError(DarcError):
    """The file of a mapping cannot be had."""


def _bias(image: Image, low: Region) -> int:
    for segment in image.segments:
        if segment.offset <= low.offset < segment.offset + max(segment.size, 1):
            return (low.start - (segment.address + low.offset - segment.offset)) // PAGE * PAGE
    return (low.start - low.offset) // PAGE * PAGE
