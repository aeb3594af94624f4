"""Every fixture, end to end: darc finds what its header says, and the program notices nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from darc.model.profile import Profile
from fixtures.build import Fixture, analysed, build, find
from tests import debugger, disassembly

PEAKS = {
    "cramped": ">8ms",
    "indirect": ">500us",
    "ipara": ">400us",
    "loop": "14-20",
    "mixture": ">1ms",
    "plugin": ">300us",
    "threads": ">700us",
}
"""Peaks are given by latency, well between the modes: what noise adds to the profile does not
change which calls are meant."""

OTHER_PEAK = ">150us"
OPTIONS = {
    "cramped": "--start-ops 60 --decision-ops 6",
    "loop": "--maxcount-percentage 0.9 --decision-ops 40",
}
"""Operations of ``cramped`` take milliseconds. Timing the 20000 calls of ``loop`` does so, too, and
other programs get their turn meanwhile: those operations are left out, and where the rest of it
falls is decided by more of them."""

OPERATIONS = {"threads": "32000", "loop": "64000"}
"""Of eight threads only two meet slow operations, when the others may have come to their end."""

FUNCTIONS = {"cppclass": "ns::Server::handle(unsigned int)"}


@dataclass(frozen=True)
class Case:
    """A fixture in one of the ways to use it."""

    name: str
    opt: str = "-O2"
    function: str | None = None
    paths: tuple[str, ...] = ()
    peak: str | None = None
    mode: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join(filter(None, (self.name, self.opt[1:], self.function, *self.mode)))

    @property
    def fixture(self) -> Fixture:
        return find(self.name)

    @property
    def args(self) -> tuple[str, ...]:
        first, *rest = self.fixture.args
        return (OPERATIONS.get(self.name, first), *rest, *self.mode)

    @property
    def f0(self) -> str:
        return self.function or FUNCTIONS.get(self.name, self.fixture.function)

    @property
    def expected(self) -> set[tuple[str, ...]]:
        if self.paths:
            return {tuple(path.split(" → ")) for path in self.paths}
        return set(self.fixture.paths)

    @property
    def chosen_peak(self) -> str:
        return self.peak or PEAKS.get(self.name, OTHER_PEAK)


CASES = [
    *(Case(name) for name in analysed()),
    *(
        Case(name, "-O0")
        for name in ("cold", "cppclass", "exceptions", "indirect", "mixture", "redzone")
    ),
    Case("recursion", function="f_x", paths=("f_x → f_y → f_x → burn",)),
    Case("firstcall", function="serve", paths=("serve → burn",)),
    Case("ipara", function="asm_caller", paths=("asm_caller → asm_callee",), peak=">40us"),
    Case("redzone", function="finish", paths=("finish → burn",)),
    *(Case("exceptions", mode=(mode,)) for mode in ("self", "above", "inside")),
    Case("signals", mode=("alt",)),
    Case("farlib", mode=("reload",)),
    Case("forker", mode=("vfork",), paths=("handle → delegate",), peak=">10us"),
]


def analyse(case: Case, folder: Path) -> debugger.Done:
    program = build(case.name, opt=case.opt)
    return debugger.debug(
        folder,
        program,
        case.args,
        [
            f"darc start '{case.f0}' --peak '{case.chosen_peak}' {OPTIONS.get(case.name, '')}",
            "run",
            debugger.REPORT,
            "continue",
            debugger.EXIT,
        ],
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fixture(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


IN_LLDB = {
    *("alarms", "cancel", "masked", "sandbox", "signals", "urgent"),
    *("forker", "launcher", "lodgers", "threads"),
    *("farlib", "plugin", "twosides"),
    *("boxed", "coroutine", "exceptions", "longjmp", "sharedstack"),
    *("cppclass", "generated", "indirect", "inline", "mixture", "recursion"),
    *("cramped", "nomap", "limited"),
}
"""Fixtures whose answer takes something that each debugger does in a way of its own: signals,
threads and processes, libraries that come and go, frames that are left, names and lines, and
breakpoints. What is found in the others is darc's own work on what lies in memory, the same in
every debugger: ``make test-long`` has lldb look at them, too."""


@pytest.mark.debuggers(debugger.LLDB)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, marks=[] if case.name in IN_LLDB and case.opt == "-O2" else pytest.mark.long
        )
        for case in CASES
    ],
    ids=str,
)
def test_fixture_in_lldb(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


SAMPLE = ("coroutine", "exceptions", "farlib", "forker", "indirect", "mixture", "threads")


@pytest.mark.debuggers(debugger.NEWEST)
@pytest.mark.parametrize("name", SAMPLE)
def test_fixture_in_the_newest_lldb(name: str, tmp_path: Path) -> None:
    check(Case(name), tmp_path)


WAY_OUT = (
    "where this cannot be found in every debugger and way to build, the header of fixtures/{name} "
    "says so by a line ' * elsewhere: WHY (TEST)', and TEST looks (docs/extending/hazard.md)"
)


def check(case: Case, tmp_path: Path) -> None:
    done = analyse(case, tmp_path)
    assert done.report is not None, done.gdb
    check_program(case, done)
    check_paths(case, done)
    check_numbers(done.report)
    check_sites(case, done.report)


def check_program(case: Case, done: debugger.Done) -> None:
    """It prints and ends as if nobody had looked."""
    status, output = debugger.undisturbed(build(case.name, opt=case.opt), case.args)
    assert done.output == output
    assert done.errors == b""
    assert done.program_status == status
    assert "Traceback" not in done.gdb
    assert "internal error" not in done.gdb


def check_paths(case: Case, done: debugger.Done) -> None:
    report = done.report
    assert report is not None
    way_out = WAY_OUT.format(name=case.fixture.source.name)
    assert report["status"] == "root cause found", f"{done.gdb}\n{way_out}"
    assert set(done.paths) == case.expected, way_out
    assert len(done.paths) == len(case.expected)
    for path in done.root_causes:
        # A path's end is told to have waited where the kernel may be asked, and enough calls came.
        waited = case.fixture.cause == "blocked"
        assert path["cause"] in ({"blocked", "function"} if waited else {case.fixture.cause})
        assert path["maxcount"] > 0
        assert [path["functions"][0], *(c["function"] for c in path["calls"])] == path["functions"]


def check_numbers(report: dict[str, Any]) -> None:
    """What is counted in several ways agrees."""
    profile = report["profile"]
    bins = {int(number): count for number, count in profile["bins"].items()}
    assert profile["count"] == sum(bins.values())
    Profile(profile["resolution"], profile["hz"], bins, profile["count"], profile["sum"]).check()
    assert [p["number"] for p in report["peaks"]] == list(range(1, len(report["peaks"]) + 1))
    for peak in report["peaks"]:
        inside = (n for b, n in bins.items() if peak["first_bin"] <= b <= peak["last_bin"])
        assert sum(inside) == peak["count"]
    assert sum(peak["count"] for peak in report["peaks"]) <= profile["count"]
    largest = max(path["maxcount"] for path in report["root_cause_paths"])
    assert largest <= report["program"]["in_peak_calls"]
    assert report["program"]["stops"] > 0
    assert report["program"]["stopped_seconds"] > 0
    nodes = list(walk(report["ftree"]))
    by_id = {node["id"]: node for node in nodes}
    assert len(by_id) == len(nodes)
    for node in nodes:
        assert [c["id"] for c in node["children"]] == [
            f"{node['id']}.{i}" for i in range(1, len(node["children"]) + 1)
        ]
    marked = {node["id"] for node in nodes if node["root_cause"]}
    for path in report["root_cause_paths"]:
        node = report["ftree"]
        assert node["function"] == path["functions"][0]
        assert node["id"] in marked
        for name in path["functions"][1:]:
            node = next(c for c in node["children"] if c["function"] == name and c["root_cause"])


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from walk(child)


def check_sites(case: Case, report: dict[str, Any]) -> None:
    """Every call of every function on a path is accounted for, by objdump's count."""
    program = build(case.name, opt=case.opt)
    told: dict[str, set[int]] = {}
    for site in report["program"]["sites"]:
        told.setdefault(site["function"], set()).add(site["offset"])
        assert site["state"] in ("instrumented", "fell back", "not possible")
        assert (site["why"] is None) == (site["state"] == "instrumented")
    timed = [s for s in report["program"]["sites"] if s["state"] != "not possible"]
    assert report["program"]["probes"] <= len(timed)
    files = [program, *program.parent.glob("lib*.so")]
    for path in report["root_cause_paths"]:
        symbols = [case.f0, *(call["symbol"] for call in path["calls"])]
        for name, symbol in zip(path["functions"], symbols, strict=True):
            for file in files:
                wanted = disassembly.calls(file, symbol)
                missing = {hex(at): wanted[at] for at in wanted.keys() - told.get(name, set())}
                assert not missing, (name, file.name)


LEVEL_BY_LEVEL = {"mixture": 3}
"""How often the operations of a short run are needed, where that is not eight times: of the 930
slow ones that ``mixture`` has then it takes some 120."""


@debugger.IN_BOTH
@pytest.mark.parametrize("name", ["deep", "mixture", "recursion", "twopaths"])
def test_level_by_level(name: str, tmp_path: Path) -> None:
    """The paper's way gives the same answer as looking ahead, with a decision a level."""
    case = Case(name)
    more = str(LEVEL_BY_LEVEL.get(name, 8) * int(case.fixture.args[0]))
    program = build(name)
    commands = [
        f"darc start {case.f0} --peak '{case.chosen_peak}' --lookahead 1",
        "run",
        debugger.REPORT,
        "continue",
        debugger.EXIT,
    ]
    done = debugger.debug(tmp_path, program, (more,), commands)
    assert set(done.paths) == case.expected
    assert done.output == debugger.undisturbed(program, (more,))[1]
    assert done.report is not None
    assert done.report["program"]["stops"] >= max(map(len, case.expected))
    check_numbers(done.report)


@debugger.IN_BOTH
def test_calls_have_their_lines(tmp_path: Path) -> None:
    done = analyse(Case("mixture"), tmp_path)
    assert done.report is not None
    source = find("mixture").source
    lines = source.read_text().splitlines()
    own = [call for call in done.root_causes[0]["calls"] if call["module"] == "mixture"]
    assert [call["function"] for call in own] == ["flush", "write_out", "usleep"]
    for call in own:
        assert call["file"] == source.name
        assert f"{call['function']}(" in lines[call["line"] - 1]


@debugger.IN_BOTH
def test_inlined_functions_are_named(tmp_path: Path) -> None:
    done = analyse(Case("inline"), tmp_path)
    assert done.report is not None
    (call,) = done.root_causes[0]["calls"]
    assert call["inlined"] == ["commit", "store"]
    assert "burn(" in find("inline").source.read_text().splitlines()[call["line"] - 1]
