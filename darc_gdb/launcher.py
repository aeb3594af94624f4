"""``darc-gdb``: gdb with darc loaded, every argument passed on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from darc.app.launcher import run

if TYPE_CHECKING:
    from darc.model.refusal import Refusal

LOAD = Path(__file__).resolve().with_name("load.py")
PYTHONPATH = "DARC_PYTHONPATH"
"""Environment variable with the folders of this interpreter's packages, for ``load.py``.

``load.py`` takes it out of gdb's environment and of the program's.
"""

_ASK = 'python import sys; print("darc", sys.version_info[0], sys.version_info[1])'


def why_not(gdb: str) -> str | None:
    """What is wrong with ``gdb``, in one line, or None when it can load darc."""
    from darc.app import launching
    from darc.app.loading import too_old

    try:
        told = launching.ask("darc-gdb", [gdb, "-nx", "-batch", "-ex", _ASK], {})
    except OSError as error:
        return f"{gdb} does not start: {error.strerror}"
    except launching.NoAnswerError as error:
        return str(error)
    for line in told.splitlines():
        word, *version = line.split()
        if word == "darc":
            return too_old(gdb, tuple(map(int, version)))
    return f"{gdb} has no Python; install a gdb that has (apt install gdb)"


def main() -> None:
    """Become gdb; see :func:`darc.app.launcher.run`."""
    run("darc-gdb", _find)


def loading(gdb: str) -> tuple[list[str], dict[str, str]]:
    """How to start a gdb that can load darc so that it does, and what to set in its environment."""
    from darc.app.launching import package_folders

    return [gdb, "-iex", f"source {LOAD}"], {PYTHONPATH: os.pathsep.join(package_folders())}


def _find() -> tuple[list[str], dict[str, str]] | Refusal:
    """How to start gdb, or why it cannot load darc."""
    from darc.model.refusal import Refusal

    gdb = shutil.which("gdb")
    if gdb is None:
        return Refusal("gdb is not installed: apt install gdb")
    why = why_not(gdb)
    return loading(gdb) if why is None else Refusal(why)


if __name__ == "__main__":
    main()
