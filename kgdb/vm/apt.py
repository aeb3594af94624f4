"""Debian packages, downloaded and unpacked without being installed, as any user.

The system's package lists are used where they serve. Where they are absent or too old, darc-vm
fetches its own into the cache, from the system's sources: no right is needed for that either.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from kgdb.vm import cache
from kgdb.vm.errors import VmError


class AptError(VmError):
    """The lists do not know a package, or it cannot be downloaded; newer lists may help."""


class Lists:
    """Package lists that answer: the system's, or after :meth:`refresh` those of the cache."""

    def __init__(self, source: str | None = None) -> None:
        """``source`` is a line of ``sources.list``, for lists that the system does not have: they
        answer after :meth:`refresh` alone."""
        self._source = source
        self._options: list[str] = []

    def field(self, package: str, name: str) -> str | None:
        """A field of the newest version of a package, or None when the lists do not know it."""
        shown = self._run(["apt-cache", "show", "--no-all-versions", package])
        found = re.search(rf"^{re.escape(name)}: *(.*)$", shown.stdout, re.M)
        return found[1].strip() if found else None

    def refresh(self) -> None:
        """Fetches lists into the cache and uses them from now on. Raises VmError: apt cannot."""
        if self._options:
            return
        cache.say("fetching the package lists")
        folder = cache.root() / "apt"
        if self._source is not None:
            folder /= hashlib.sha256(self._source.encode()).hexdigest()[:12]
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self._options = [
            *("-o", f"Dir::State::Lists={folder}/lists"),
            *("-o", f"Dir::Cache={folder}/cache"),
            *("-o", "APT::Sandbox::User="),
        ]
        if self._source is not None:
            (folder / "sources.list").write_text(f"{self._source}\n")
            self._options += [
                *("-o", f"Dir::Etc::SourceList={folder}/sources.list"),
                *("-o", "Dir::Etc::SourceParts=/dev/null"),
            ]
        done = self._run(["apt-get", "-qq", "update"])
        if done.returncode != 0:
            self._options = []
            raise VmError(f"no package lists: {_last_error(done.stderr)}")

    def download(self, packages: Iterable[str], folder: Path) -> None:
        """Fetches ``packages`` (name or name=version) into ``folder``. Raises AptError: apt cannot,
        maybe as its lists are old."""
        command = ["apt-get", "download", "-o", "APT::Sandbox::User=", *packages]
        loud = sys.stderr.isatty()
        done = self._run(
            command if loud else [*command, "-qq"], folder, sys.stderr if loud else None
        )
        if done.returncode != 0:
            raise AptError(f"apt-get download failed: {_last_error(done.stderr)}")

    def _run(
        self, command: list[str], folder: Path | None = None, output: IO[str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        if shutil.which(program) is None:
            raise VmError(f"{program} is not installed: the kernels come from Debian's packages")
        return subprocess.run(
            [program, *self._options, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )


def with_fresh_lists(
    use: Callable[[Lists], Path], at_once: bool = False, source: str | None = None
) -> Path:
    """What ``use`` makes with the system's lists, or with new ones where these do not serve.

    The system's may be absent (in a container), or name packages that are gone; what comes from a
    ``source`` is in no list of the system's.
    """
    lists = Lists(source)
    if not at_once and source is None:
        try:
            return use(lists)
        except AptError:
            pass
    lists.refresh()
    return use(lists)


def unpack(package: Path, wanted: Callable[[str], Path | None]) -> int:
    """Takes files out of a package: ``wanted`` maps a path in it to where it is to go, or None.

    Links are not followed. Returns how many files were written. Raises VmError: the package is
    damaged.
    """
    written = 0
    process = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout, tarfile.open(fileobj=process.stdout, mode="r|") as archive:
        for member in archive:
            goal = wanted(member.name.removeprefix("./")) if member.isreg() else None
            content = archive.extractfile(member) if goal else None
            if goal is not None and content is not None:
                goal.parent.mkdir(parents=True, exist_ok=True)
                with goal.open("wb") as out:
                    shutil.copyfileobj(content, out, 1 << 20)
                written += 1
    if process.wait() != 0:
        raise VmError(f"{package.name} cannot be unpacked: delete {package.parent} and try again")
    return written


def _last_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("E:")] or text.splitlines()
    return lines[-1].removeprefix("E:").strip() if lines else "it said nothing"
