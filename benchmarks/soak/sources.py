"""Sources and programs from Debian, unpacked and built in a cache outside the repository.

apt fetches them with lists and settings of its own, so the system's are not touched and nothing is
installed. What it fetches is checked against Debian's signed lists. A package is kept by its
version, under ``$XDG_CACHE_HOME/darc/soak``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SUITES = (
    ("http://deb.debian.org/debian", "bookworm"),
    ("http://deb.debian.org/debian-security", "bookworm-security"),
)


class SourceError(Exception):
    """Something cannot be fetched or built here; the message says why."""


class Sources:
    """The cache. Every method fetches or builds what is not there yet."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        folder.mkdir(parents=True, exist_ok=True)
        # One run at a time uses the cache; released at the end of this process.
        self._lock = (folder / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def source(self, package: str, build: Sequence[Sequence[str]] = ()) -> Path:
        """The source tree of a Debian package, upstream's as released, after ``build`` in it."""
        archives = self._uris("source", package)
        main = next((n for n in archives if ".orig.tar." in n and not n.endswith(".asc")), None)
        if main is None:
            raise SourceError(f"Debian's {package} has no upstream archive")
        tree = self._folder / main.split(".orig.tar.")[0]

        def make(folder: Path) -> None:
            self._say(f"  fetching the source of {package}")
            fetched = folder / "archives"
            fetched.mkdir()
            self._apt("source", "--download-only", package, cwd=fetched)
            _call(["tar", "-x", "--strip-components=1", "-f", str(fetched / main)], folder)
            shutil.rmtree(fetched)

        self._once(tree, make)
        # What is built may hold its own path, so it is built where it stays.
        built = tree / f".built-{_digest(build)}"
        if not built.exists():
            for command in build:
                self._say(f"  building {package}: {' '.join(command)}")
                _call(command, tree)
            built.touch()
        return tree

    def programs(self, *packages: str) -> Path:
        """A root folder with the files of some binary packages of Debian."""
        names = [name for package in packages for name in self._uris("download", package)]
        root = self._folder / f"{names[0].removesuffix('.deb')}-{_digest(names)}"

        def make(folder: Path) -> None:
            self._say(f"  fetching {' '.join(packages)}")
            fetched = folder / "archives"
            fetched.mkdir()
            self._apt("download", *packages, cwd=fetched)
            for archive in fetched.iterdir():
                _call(["dpkg-deb", "-x", str(archive), str(folder)], folder)
            shutil.rmtree(fetched)

        return self._once(root, make)

    def _uris(self, *command: str) -> list[str]:
        """The names of the files that an apt command would fetch."""
        lines = self._apt(*command, "--print-uris").splitlines()
        return [line.split()[1] for line in lines if line.startswith("'")]

    def _apt(self, *command: str, cwd: Path | None = None) -> str:
        if shutil.which("apt-get") is None:
            raise SourceError("there is no apt-get: the programs come from Debian's archive")
        state = self._folder / "apt"
        options = {
            "Dir::Etc::SourceList": state / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": state / "lists",
            "Dir::Cache": state / "cache",
            "APT::Sandbox::User": "",
        }
        arguments = ["apt-get", "-q"]
        for option, value in options.items():
            arguments += ["-o", f"{option}={value}"]
        if not (state / "ready").exists():
            (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
            (state / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
            (state / "sources.list").write_text(
                "".join(
                    f"{kind} [signed-by={_KEYRING}] {address} {suite} main\n"
                    for kind in ("deb", "deb-src")
                    for address, suite in _SUITES
                )
            )
            self._say("  fetching Debian's lists of packages")
            _call([*arguments, "update"], state)
            (state / "ready").touch()
        return _call([*arguments, *command], cwd or state)

    def _once(self, folder: Path, make: Callable[[Path], None]) -> Path:
        """``folder``, which appears only when ``make`` has filled it."""
        if not folder.exists():
            half = folder.with_name(folder.name[:100] + ".half")
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            make(half)
            half.rename(folder)
        return folder


def cache() -> Path:
    """Where everything is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "darc" / "soak"


def _digest(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:12]


def _call(command: Sequence[str], folder: Path) -> str:
    """Runs a command and returns what it prints.

    Raises:
        SourceError: it fails; with its last words.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise SourceError(f"{' '.join(command)}: status {done.returncode}\n{words}")
    return done.stdout
