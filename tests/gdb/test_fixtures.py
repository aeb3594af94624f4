"""Every fixture, end to end: darc finds what its header says, and the program notices nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.build import analysed, build, find
from tests import debugger, disassembly
from tests.gdb.cases import OPTIONS, Case, check_numbers

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
