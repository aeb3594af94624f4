"""One fixture in one cell: gdb finds its root cause, and the program notices nothing."""

from __future__ import annotations

import enum
import functools
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darc.code.demangle import display_name
from tests import debugger
from tests.debugger import EXIT, REPORT, ROOT, Done, debug, mark
from tests.gdb.cases import OPTIONS, OTHER_PEAK, Case
from tests.matrix.cells import Cell

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
PASSED = "handle SIG32 nostop noprint pass"
"""The signal that pthread_cancel sends: gdb knows it only where it finds libc's symbols."""

NOT_MEASURED = re.compile(r"note: .*calls? (?:was|were) not measured.*")
REFUSED = re.compile(r"^darc: (?!root cause|waits|report|loaded).*", re.M)


ANY_COMPILERS_PEAK = ">25us"
"""In place of :data:`OTHER_PEAK`: clang at -O3 does in 50 µs what others need 0.5 ms for."""

OTHER_PEAKS = {"loop": "15-20", "yielding": ">100us"}
"""What lies between is other work there: a throw takes up to 50 µs in a static program."""


class Result(enum.Enum):
    """How a trial ended."""

    RIGHT = "right"
    """The path is the fixture's."""

    TOLD = "told"
    """The path ends early, at a function of which the report says what was not timed, and why; or
    there is none, and the report says which operations could not be measured."""

    REFUSED = "refused"
    """darc said in one line why it does not analyse this program."""

    WRONG = "wrong"
    """Another path, without a word."""

    HARMED = "HARMED"
    """The program did not do what it does alone, or was not left as it was."""


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial. ``words`` say why, unless the path is right."""

    result: Result
    words: str = ""

    @property
    def is_fine(self) -> bool:
        return self.result in (Result.RIGHT, Result.TOLD, Result.REFUSED)


def attempt(name: str, cell: Cell, folder: Path) -> TrialOutcome:
    """Tries the fixture in the cell once."""
    case = Case(name, cell.opt)
    try:
        done = _analyse(case, cell, folder)
    except debugger.HangError as error:
        return TrialOutcome(Result.HARMED, f"hangs\n{error}")
    harm = _harm(case, cell, done)
    if harm:
        return TrialOutcome(Result.HARMED, f"{harm}\n{done.gdb}\n{done.errors.decode()[-500:]}")
    return _judge(case, cell, done)


def _analyse(case: Case, cell: Cell, folder: Path) -> Done:
    usual = ANY_COMPILERS_PEAK if case.chosen_peak == OTHER_PEAK else case.chosen_peak
    peak = OTHER_PEAKS.get(case.name, usual)
    options = f"--peak '{peak}' {OPTIONS.get(case.name, '')}"
    symbol = case.f0
    begin = [f"darc start '{symbol}' {options}", "run"]
    offset = _address(cell.twin(case.name), symbol)
    if cell.symbols == "stripped" and offset is not None:
        begin = ["starti", f"start-at {offset:#x} {options}", "continue"]
    look = [REPORT, mark("code"), "tell-code", mark("report"), "darc report", mark("end")]
    return debug(
        folder,
        cell.program(case.name),
        case.args,
        [TOOLS, PASSED, *begin, *look, "continue", EXIT],
    )


def _harm(case: Case, cell: Cell, done: Done) -> str | None:
    """What is not as it is when nobody looks."""
    if "Traceback" in done.gdb or "internal error" in done.gdb or "internal-error" in done.gdb:
        return "an internal error"
    if "program exit" not in done.gdb or "program exit: None" in done.gdb:
        return "the program did not end by itself"
    status, output = debugger.undisturbed(cell.program(case.name), case.args)
    if done.output != output:
        return "another output"
    if done.errors:
        return "errors are printed"
    if done.program_status != status:
        return "another exit status"
    code = re.search(r"^code: \d+ bytes compared, (\d+) altered", done.gdb, re.M)
    if code is not None and code[1] != "0":
        return "code was left behind"
    return None


def _judge(case: Case, cell: Cell, done: Done) -> TrialOutcome:
    said = "; ".join(REFUSED.findall(done.gdb))
    missing = NOT_MEASURED.search(done.gdb)
    if done.report is None or not done.report["root_cause_paths"]:
        cannot = re.search(r"darc: .*(cannot|exceptions|not possible|is not timed).*", done.gdb)
        if cannot:
            return TrialOutcome(Result.REFUSED, cannot[0])
        if missing:
            return TrialOutcome(Result.TOLD, missing[0])
        status = done.report["status"] if done.report else "no report"
        return TrialOutcome(Result.WRONG, f"{status}: {said}\n{done.gdb[-2000:]}")
    names = Names(cell, case.name)
    wanted = list(case.expected)
    found = [_whole([names.of(name) for name in path]) for path in done.paths]
    if len(found) == len(wanted) and all(any(_same(f, w) for f in found) for w in wanted):
        return TrialOutcome(Result.RIGHT)
    shown = " and ".join(" → ".join("/".join(sorted(n)) for n in path) for path in found)
    why = _why_early(done.report, done.paths, found, wanted)
    if why:
        return TrialOutcome(Result.TOLD, f"{shown}: {why}")
    return TrialOutcome(Result.WRONG, f"{shown} ({_peaks(done.report)}) {said}")


def _whole(path: list[frozenset[str]]) -> list[frozenset[str]]:
    """A function's cold part has no name without symbols, and may stand behind it like a callee."""
    pairs = zip([frozenset[str](), *path], path, strict=False)
    return [names for before, names in pairs if not before & names]


def _same(found: Sequence[frozenset[str]], wanted: Sequence[str]) -> bool:
    return len(found) == len(wanted) and _begins(found, wanted)


def _begins(found: Sequence[frozenset[str]], wanted: Sequence[str]) -> bool:
    return all(name in names for names, name in zip(found, wanted, strict=False))


def _why_early(
    report: dict[str, Any],
    paths: list[tuple[str, ...]],
    found: Sequence[Sequence[frozenset[str]]],
    wanted: Sequence[Sequence[str]],
) -> str | None:
    """What the report says of calls of the functions that the paths end in."""
    for path in found:
        if not any(len(path) < len(w) and _begins(path, w) for w in wanted):
            return None
    ends = {path[-1] for path in paths}
    whys = [
        f"{site['function']}+{site['offset']:#x}: {site['why']}"
        for site in report["program"]["sites"]
        if site["state"] != "instrumented" and site["function"] in ends
    ]
    return "; ".join(whys) or None


def _peaks(report: dict[str, Any]) -> str:
    return " ".join(f"{p['first_bin']}-{p['last_bin']}:{p['count']}" for p in report["peaks"])


class Names:
    """What functions are called in a program that has no symbols, or several for one place."""

    def __init__(self, cell: Cell, name: str) -> None:
        twin = cell.twin(name)
        self._modules = {file.name: _symbols(file) for file in (twin, *twin.parent.glob("*.so"))}

    def of(self, shown: str) -> frozenset[str]:
        """Every name of the function that the report calls ``shown``."""
        module, _, offset = shown.rpartition("+")
        if module in self._modules:
            return frozenset({shown} | self._modules[module].get(int(offset, 16), set()))
        same = (names for m in self._modules.values() for names in m.values() if shown in names)
        return frozenset({shown}).union(*same)


@functools.cache
def _symbols(program: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for at, name in _listed(program):
        found.setdefault(at, set()).add(display_name(name))
    return found


@functools.cache
def _address(program: Path, function: str) -> int | None:
    """Where the function is in the program, if it is not in a library."""
    own = re.compile(re.escape(function) + r"(\([^()]*\))?")  # C++ names have their parameters
    found = {at for at, name in _listed(program, "-C") if own.fullmatch(name)}
    assert len(found) < 2, f"{function} is not one function"
    return min(found, default=None)


def _listed(program: Path, *options: str) -> list[tuple[int, str]]:
    """Address and name of every function."""
    command = ["nm", *options, str(program)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [(int(at, 16), name) for at, name in re.findall(r"^(\w+) [tTwWiuV] (.+)$", text, re.M)]
