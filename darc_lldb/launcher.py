"""``darc-lldb``: lldb with darc loaded, every argument passed on."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from darc.app.launcher import run

if TYPE_CHECKING:
    from darc.model.refusal import Refusal

LOAD = Path(__file__).resolve().with_name("load.py")
LLDB = "DARC_LLDB"
"""Environment variable that names the lldb to start, where it is not to be found."""

PYTHONPATH = "DARC_PYTHONPATH"
"""Environment variable with the folders of this interpreter's packages, for ``load.py``."""

RESTORE = "DARC_ENVIRONMENT"
"""Environment variable with the values that ``load.py`` gives back to those that lldb's Python is
started with, so that the program sees none of it."""

_ASK = (
    "script import ctypes, json, sys, lldb; lldb.SBDebugger; print('darc', *sys.version_info[:2])"
)


def find_lldbs() -> list[str]:
    """The lldb that is asked for alone; else the one called ``lldb``, and every ``lldb-N``, newest
    first."""
    wanted = os.environ.get(LLDB)
    if wanted:
        return [found for found in [shutil.which(wanted)] if found]
    numbered = {
        int(found[1])
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        for file in _files(folder or os.curdir)
        if (found := re.fullmatch(r"lldb-(\d+)", file))
    }
    names = ["lldb", *(f"lldb-{number}" for number in sorted(numbered, reverse=True))]
    return [path for name in names if (path := shutil.which(name))]


def _files(folder: str) -> list[str]:
    """What is in a folder; nothing, where it cannot be looked into."""
    try:
        return [file.name for file in Path(folder).iterdir()]
    except OSError:
        return []


def environments(lldb: str) -> Iterator[dict[str, str]]:
    """What to set for lldb's Python, the least first: nothing; the folder of lldb's own module,
    where ``lldb -P`` names one that does not exist; and the system's Python, where another one
    comes first in PATH."""
    yield {}
    home = Path(lldb).resolve().parent.parent
    modules = sorted(home.glob("lib/python3*/*-packages/lldb/__init__.py"))
    folders = [str(module.parent.parent) for module in modules]
    own = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([*folders, *([own] if own else [])])
    if folders:
        yield {"PYTHONPATH": path}
    yield {"PYTHONHOME": "/usr", **({"PYTHONPATH": path} if path else {})}


def ask(lldb: str, environment: Mapping[str, str]) -> tuple[int, int] | Refusal:
    """The version of lldb's Python in this environment, or why there is none.

    Raises:
        NoAnswerError: it says nothing.
    """
    from darc.app import launching
    from darc.model.refusal import Refusal

    try:
        told = launching.ask("darc-lldb", [lldb, "-x", "-b", "-o", _ASK], environment)
    except OSError as error:
        return Refusal(f"{lldb} does not start: {error.strerror}")
    found = re.search(r"^darc (\d+) (\d+)$", told, re.M)
    if found is None:
        return Refusal(f"{lldb} has no Python; install one that has (apt install lldb)")
    return int(found[1]), int(found[2])


def choose(lldb: str) -> dict[str, str] | Refusal:
    """What to set so that lldb's Python works, or why it cannot load darc."""
    from darc.app.loading import too_old
    from darc.model.refusal import Refusal

    trouble: list[Refusal] = []
    for environment in environments(lldb):
        version = ask(lldb, environment)
        if not isinstance(version, Refusal):
            why = too_old(lldb, version)
            return environment if why is None else Refusal(why)
        trouble.append(version)
    return trouble[0]


def find_usable() -> tuple[str, dict[str, str]] | Refusal:
    """The first lldb that can load darc, and what to set for it; or why there is none."""
    from darc.app.launching import NoAnswerError
    from darc.model.refusal import Refusal

    found = find_lldbs()
    trouble: list[Refusal] = []
    for lldb in found:
        try:
            chosen = choose(lldb)
        except NoAnswerError as error:
            chosen = Refusal(str(error))
        if not isinstance(chosen, Refusal):
            return lldb, chosen
        trouble.append(chosen)
    name = os.environ.get(LLDB)
    if name and not found:
        return Refusal(f"there is no {name} (from {LLDB})")
    return trouble[0] if trouble else Refusal("lldb is not installed: apt install lldb")


def main() -> None:
    """Become lldb; see :func:`darc.app.launcher.run`."""
    run("darc-lldb", _find)


def loading(lldb: str, chosen: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """How to start an lldb whose Python works with what was ``chosen`` so that it loads darc, and
    what to set in its environment."""
    from darc.app.launching import package_folders

    before = {name: os.environ.get(name) for name in chosen}
    changed = {
        **chosen,
        PYTHONPATH: os.pathsep.join(package_folders()),
        RESTORE: json.dumps(before),
    }
    quoted = str(LOAD).replace("\\", "\\\\").replace('"', '\\"')
    return [lldb, "-O", f'command script import "{quoted}"'], changed


def _find() -> tuple[list[str], dict[str, str]] | Refusal:
    """How to start an lldb, or why none can load darc."""
    from darc.model.refusal import Refusal

    usable = find_usable()
    return usable if isinstance(usable, Refusal) else loading(*usable)


if __name__ == "__main__":
    main()
