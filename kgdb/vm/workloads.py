"""Programs for a machine, each with a known reason to be slow at times: ``fixtures/kernel/*.c``.

Their headers say what they do, as those of the fixtures do: ``f0`` the function to analyse,
``peaks`` its latencies, ``path`` what is to be found (one line for each).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kgdb.vm import cache
from kgdb.vm.errors import VmError
from kgdb.vm.guest import GuestProgram

SOURCES = Path(__file__).resolve().parents[2] / "fixtures" / "kernel"

_FLAGS = ("-O2", "-g", "-Wall", "-Wextra", "-static", "-pthread")
_FIELD = re.compile(r"^ \* (f0|peaks|path|args): +(.*)$", re.M)


@dataclass(frozen=True)
class Workload:
    """What a workload's header says."""

    name: str
    source: Path
    summary: str
    function: str
    paths: tuple[tuple[str, ...], ...]


def names() -> list[str]:
    """Every workload, by name."""
    return sorted(file.stem for file in SOURCES.glob("*.c"))


def find(name: str) -> Workload:
    """The workload of that name. Raises VmError: there is none."""
    source = SOURCES / f"{name}.c"
    if name not in names():
        known = ", ".join(names()) or "none here: they are in darc's source tree"
        raise VmError(f"no workload is called {name}; there are: {known}")
    header, _, _ = source.read_text().partition("*/")
    fields: dict[str, list[str]] = {}
    for field, value in _FIELD.findall(header):
        fields.setdefault(field, []).append(value.strip())
    paragraph = header.partition(f"/* {name}: ")[2].partition("\n *\n")[0]
    return Workload(
        name=name,
        source=source,
        summary=re.sub(r"\s*\n \*\s*", " ", paragraph),
        function=" ".join(fields.get("f0", [])),
        paths=tuple(tuple(path.split(" → ")) for path in fields.get("path", [])),
    )


def built(name: str, arguments: tuple[str, ...] = ()) -> GuestProgram:
    """The workload as a program for the guest, compiled now where the cache has none."""
    workload = find(name)
    digest = hashlib.sha256(repr(_FLAGS).encode())
    for source in (workload.source, *sorted(SOURCES.glob("*.h"))):
        digest.update(source.read_bytes())

    def make(folder: Path) -> None:
        if shutil.which("gcc") is None:
            raise VmError("gcc is needed to compile a workload: apt-get install gcc libc6-dev")
        command = ["gcc", *_FLAGS, str(workload.source), "-o", str(folder / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise VmError(f"{workload.source} does not compile: {' '.join(done.stderr.split())}")

    return GuestProgram(
        cache.once(f"workloads/{name}-{digest.hexdigest()[:12]}", make) / name, arguments
    )
