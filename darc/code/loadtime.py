"""The files that the dynamic linker loads with a program, found before that runs.

It is a guess, by ld.so(8): the program may be run with another environment, and say more as it
loads. What is not found is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from darc.code.elf import Image
from darc.code.modules import load_image
from darc.model.errors import DarcError

_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_CONFIGURED = "/etc/ld.so.conf.d"


def loaded_with(
    program: Path, environment: Mapping[str, str] = os.environ
) -> Iterator[tuple[Path, Image]]:
    """The libraries of ``program``, as far as they can be found and read, those that it names
    itself first."""
    seen: set[str] = set()
    ready: list[tuple[Path, tuple[str, ...]]] = [(program, ())]
    fixed = _split(environment.get("LD_LIBRARY_PATH", ""))
    for path, inherited in ready:
        with contextlib.suppress(DarcError):
            image = load_image(path)
            if path is not program:
                yield path, image
            dynamic, here = image.dynamic, str(path.resolve().parent)
            own = tuple(
                folder.replace("${ORIGIN}", here).replace("$ORIGIN", here)
                for text in dynamic.search_paths
                for folder in _split(text)
            )
            folders = (*own, *inherited, *fixed, *_system_folders())
            for name in sorted(dynamic.libraries - seen):
                seen.add(name)
                found = _first(name, folders)
                if found is not None:
                    ready.append((found, (*own, *inherited)))


def _system_folders() -> tuple[str, ...]:
    found: list[str] = []
    with contextlib.suppress(OSError):
        for file in sorted(Path(_CONFIGURED).glob("*.conf")):
            lines = file.read_text("utf-8", "replace").splitlines()
            found += (line.strip() for line in lines if line.strip().startswith("/"))
    return (*found, *_FOLDERS)


def _split(text: str) -> list[str]:
    return [folder for folder in text.split(":") if folder]


def _first(name: str, folders: tuple[str, ...]) -> Path | None:
    places = [Path(name)] if "/" in name else [Path(folder) / name for folder in folders]
    return next((place for place in places if place.is_file()), None)
