"""Build ids, and the separate debug file of a program or a library: welcome, never needed."""

from __future__ import annotations

import functools
import lzma
import os
from pathlib import Path

from darc.code.damaged import where_damaged
from darc.code.headers import FileContent, Headers, HeldContent, Section

LARGEST_UNPACKED = 512 << 20
"""Bytes that a compressed table may have."""


class DebugFile:
    """Where one file's separate debug file is looked for: by its build id, its debug link, or
    within itself (MiniDebugInfo)."""

    def __init__(self, headers: Headers, root: Path) -> None:
        """``headers`` are the file's own; ``root`` is where the system's debug files are."""
        self._own = headers
        self._root = root

    @functools.cached_property
    @where_damaged(None)
    def headers(self) -> Headers | None:
        """Its headers; ``None`` where there is none."""
        content = self._own.content
        path = content.path if isinstance(content, FileContent) else None
        return None if path is None else _debug_file(self._own, path, self._root)


@where_damaged(None)
def build_id_of(headers: Headers) -> str | None:
    """The linker's name for a build, where it left one that can be read."""
    return headers.build_id()


@where_damaged(None)
def _headers_in(file: Path) -> Headers | None:
    """Those of a debug file; where it is damaged, another one may not be."""
    return Headers(FileContent(file)) if file.is_file() else None


@where_damaged("")
def _name_in(headers: Headers, link: Section) -> str:
    return os.fsdecode(headers.data(link).split(b"\0", 1)[0])


def _debug_file(headers: Headers, path: Path, root: Path) -> Headers | None:
    candidates: list[Path] = []
    build_id = build_id_of(headers)
    if build_id is not None:
        tail = f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        candidates += [root / tail, Path("/") / tail]
    link = headers.section(".gnu_debuglink")
    name = "" if link is None else _name_in(headers, link)
    if name and "/" not in name:
        candidates += [path.parent / name, path.parent / ".debug" / name]
    for candidate in candidates:
        found = None if candidate == path else _headers_in(candidate)
        if found is not None and (build_id is None or build_id_of(found) in (None, build_id)):
            return found  # of another build its names would be wrong ones
    mini = headers.section(".gnu_debugdata")
    if mini is not None:
        unpacked = lzma.LZMADecompressor().decompress(headers.data(mini), LARGEST_UNPACKED)
        return Headers(HeldContent(unpacked))
    return None
