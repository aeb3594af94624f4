"""SQLite's own benchmark, ``speedtest1``, with all of SQLite in one program.

The amalgamation is what ``fixtures/sqlite`` has; the benchmark comes from Debian's source package,
pinned by its hash, and stays in ``build/benchmarks``. ``DARC_SPEEDTEST_SOURCE`` may name a
``speedtest1.c`` where there is no network.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from benchmarks import measure
from benchmarks.measure import BUILT, MeasurementError
from fixtures.sqlite.build import SourceUnavailableError, source

ADDRESS = "http://deb.debian.org/debian/pool/main/s/sqlite3/sqlite3_3.40.1.orig.tar.xz"
SHA256 = "aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655"
SOURCE = "DARC_SPEEDTEST_SOURCE"
"""Environment variable with a ``speedtest1.c``."""

_NAME = "speedtest1.c"
_UNIT = f"""\
#include "sqlite3.c"
#define randomFunc speedtest1_randomFunc
#include "{_NAME}"
"""
_OPTIONS = ("-O2", "-g", "-w")
_FOR_UFTRACE = ("-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie")


def build(*, for_uftrace: bool = False) -> Path:
    """The program; ``for_uftrace``: whose functions uftrace can patch.

    Raises:
        MeasurementError: a source cannot be had, or does not compile.
    """
    program = BUILT / ("speedtest1-uftrace" if for_uftrace else "speedtest1")
    if program.exists():
        return program
    benchmark = _benchmark()
    try:
        amalgamation = source()
    except SourceUnavailableError as error:
        raise MeasurementError(str(error)) from None
    with tempfile.TemporaryDirectory(dir=BUILT) as folder:
        work = Path(folder)
        (work / "sqlite3.h").write_text("")  # it is in the amalgamation
        (work / "unit.c").write_text(_UNIT)
        options = (*_OPTIONS, *(_FOR_UFTRACE if for_uftrace else ()))
        where = (f"-I{amalgamation}", f"-I{work}", f"-I{benchmark.parent}")
        measure.run("gcc", *options, *where, work / "unit.c", "-o", work / "made", "-lm")
        (work / "made").rename(program)
    return program


def functions(program: Path) -> list[str]:
    """The names of SQLite's functions in it, sorted: not those of the benchmark."""
    names = {
        words[2]
        for line in measure.run("nm", program).splitlines()
        if len(words := line.split()) == 3 and words[1] in "tT"
    }
    return sorted(n for n in names if not re.search(r"^_|speedtest|testset|\.|^main$", n))


def seconds(told: str) -> float:
    """What it says that it took.

    Raises:
        MeasurementError: it does not.
    """
    found = re.search(r"TOTAL\.* +([0-9.]+)s", told)
    if found is None:
        raise MeasurementError(f"the benchmark has not ended:\n{told[-1000:]}")
    return float(found[1])


def _benchmark() -> Path:
    if given := os.environ.get(SOURCE):
        return Path(given).resolve()
    BUILT.mkdir(parents=True, exist_ok=True)
    made = BUILT / _NAME
    if made.exists():
        return made
    with tempfile.TemporaryDirectory(dir=BUILT) as folder:
        archive = Path(folder) / "archive"
        try:
            with urllib.request.urlopen(ADDRESS, timeout=60) as found:
                archive.write_bytes(found.read())
        except OSError as error:
            raise MeasurementError(f"{ADDRESS} cannot be fetched: {error}; set {SOURCE}") from None
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise MeasurementError(f"{ADDRESS} is not what it was: set {SOURCE}")
        with tarfile.open(archive) as packed:
            (name,) = (n for n in packed.getnames() if n.endswith(f"/test/{_NAME}"))
            member = packed.extractfile(name)
            assert member is not None
            (Path(folder) / _NAME).write_bytes(member.read())
        (Path(folder) / _NAME).rename(made)
    return made
