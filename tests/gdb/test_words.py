"""Commands, parameters, help, completion and refusals, as a debugger shows them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from darc import __version__
from darc.app.commands import COMMANDS
from darc.app.parameters import PARAMETERS
from fixtures.build import build
from tests.debugger import (
    EVERYWHERE,
    GDB,
    IN_LLDB_AT_NIGHT,
    LLDB,
    NEWEST,
    REPORT,
    ROOT,
    Done,
    attempt,
    current,
    debug,
    gdb_alone,
    mark,
)

pytestmark = IN_LLDB_AT_NIGHT

WAITS = "lldb's own breakpoints always wait for libraries, and so does darc in it"

WRONG = {
    "no_function": ("darc start", "needs a function"),
    "two_functions": ("darc start handle flush", "takes one function"),
    "no_value": ("darc start handle --peak", "--peak needs a value"),
    "unknown_option": ("darc start handle --start-op 5", "did you mean --start-ops"),
    "zero_ops": ("darc start handle --start-ops 0", "from 1 to"),
    "negative_ops": ("darc start handle --start-ops=-3", "from 1 to"),
    "words_for_ops": ("darc start handle --decision-ops many", "from 1 to"),
    "share": ("darc start handle --maxcount-percentage 1.5", "above 0 and at most 1"),
    "depth": ("darc start handle --max-depth 0", "from 1 to"),
    "time": ("darc start handle --max-time soon", "30s"),
    "peak": ("darc start handle --peak slow", "last"),
    "resolution": ("darc start handle --resolution 9", "from 1 to 8"),
    "thread": ("darc start handle --thread main", "all"),
    "probes": ("darc start handle --probes magic", "auto"),
    "finish": ("darc start handle --on-finish jump", "stop, continue"),
    "quotes": ("darc start 'handle", "'handle"),
    "peak_before": ("darc peak 3", "darc start"),
    "peak_of_what": ("darc peak", "needs a peak"),
    "stop_before": ("darc stop", "darc start"),
    "report_before": ("darc report", "darc start"),
    "report_format": ("darc report --format xml", "json"),
    "report_file": ("darc report out.json", "-o out.json"),
    "descend": ("darc descend first", "not an fnode"),
    "status_argument": ("darc status now", "takes no argument"),
    "command": ("darc strat handle", "did you mean start"),
    "parameter": ("set darc start-ops often", "from 1 to"),
    "show": ("show darc nonsense", "no parameter"),
    "misspelt": ("darc start handel", "near names: handle"),
    "misspelt_module": ("darc start nonsense!handle", "nonsense"),
}


NOT_IN_LLDB = {
    "command": "lldb says so itself: a folder of commands is no command",
    "misspelt": WAITS,
    "misspelt_module": WAITS,
}


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


@pytest.fixture(scope="module")
def refusals(driven_by: str, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Done:
    commands = ["set breakpoint pending off"]
    for name, (command, _) in WRONG.items():
        commands += [mark(name), attempt(command)]
    return debug(tmp_path_factory.mktemp("words"), program, (), commands)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_one_line(name: str, refusals: Done) -> None:
    if current() != GDB and name in NOT_IN_LLDB:
        pytest.skip(NOT_IN_LLDB[name])
    lines = refusals.section(name).splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("darc: ")
    assert WRONG[name][1] in lines[0]
    assert "internal error" not in lines[0]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("darc start handle", 0),
        pytest.param("darc start handel", 1, marks=gdb_alone(WAITS)),
        ("darc peak", 1),
    ],
)
def test_exit_status_is_that_of_the_last_command(
    command: str, status: int, program: Path, tmp_path: Path
) -> None:
    done = debug(tmp_path, program, (), ["set breakpoint pending off", command])
    assert done.status == status


def test_a_function_that_never_comes_is_told_at_the_end(program: Path, tmp_path: Path) -> None:
    commands = ["darc start handel", mark("run"), "run", mark("report"), REPORT]
    done = debug(tmp_path, program, ("2000",), commands)
    assert "no function is called handel (near names: handle)" in done.section("run")
    assert done.section("report").startswith("darc: no function is called handel")
    assert done.status == 1
    assert done.report is None


def test_a_function_that_is_never_called_is_told_at_the_end(program: Path, tmp_path: Path) -> None:
    done = debug(tmp_path, program, ("0",), ["darc start handle", "run", REPORT])
    assert "ended before handle was called" in done.gdb
    assert done.status == 1


def test_a_program_that_ends_too_early_is_told_at_its_end(program: Path, tmp_path: Path) -> None:
    main = ["break main", "run"] if current() is GDB else ["breakpoint set -n main", "run"]
    commands = [*main, "darc start flush", "continue", mark("later"), "darc status"]
    done = debug(tmp_path, program, ("2",), commands)
    assert "darc: analyses flush: 'continue'" in done.gdb
    # lldb may hear of the end a moment later.
    assert "flush: program ended: 0 calls seen of 100" in done.gdb


def test_a_program_that_ends_in_a_search_is_told_at_its_end(program: Path, tmp_path: Path) -> None:
    start = "darc start handle --peak >1ms --decision-ops 10000000"
    done = debug(tmp_path, program, ("4000",), [start, "run", mark("status"), "darc status"])
    assert re.search(r"darc: handle: program ended: \d{3,} calls seen, \d+ in bins", done.gdb)
    assert "internal error" not in done.gdb


def test_a_peak_before_the_first_call(program: Path, tmp_path: Path) -> None:
    done = debug(tmp_path, program, (), ["darc start handle", "darc peak 1"])
    assert "darc: waits for handle, of which no call was seen yet" in done.gdb


@pytest.mark.parametrize("stopped", [False, True], ids=["run", "darc-stop"])
def test_run_of_a_program_that_stands_still_analyses_the_new_one(
    stopped: bool, program: Path, tmp_path: Path
) -> None:
    if current() is GDB:
        commands = ["set confirm off", "break main", "run"]
    else:
        commands = ["settings set auto-confirm true", "breakpoint set -n main", "run"]
    commands += ["darc start handle --peak >1ms", *["darc stop"] * stopped]
    done = debug(tmp_path, program, ("20000",), [*commands, "run", "continue", REPORT])
    assert done.gdb.count("analyses handle again") == (not stopped)
    assert done.report is not None
    assert bool(done.report["root_cause_paths"]) is not stopped, done.gdb


@pytest.mark.parametrize("command", ["kill", "darc stop"])
def test_a_program_that_is_killed_is_analysed_in_the_next_run(
    command: str, program: Path, tmp_path: Path
) -> None:
    """As where 'run' has ended it; 'darc stop' gives that up."""
    commands = [] if current() is GDB else ["settings set auto-confirm true"]
    commands += ["darc start handle", "run", mark("killed"), "kill", mark("again")]
    commands += ["darc stop"] * (command == "darc stop")
    done = debug(tmp_path, program, ("4000",), [*commands, "run", "darc status"])
    told = "darc: the analysis of handle begins anew with the next 'run'"
    # lldb tells of the end by a thread of its own, perhaps while the next command is carried out.
    assert told in (done.section("killed") if current() is GDB else done.gdb)
    assert done.section("again").count("choose a peak") == (command == "kill"), done.gdb


CRASHES = """
#include <signal.h>
__attribute__((noinline)) static void handle(unsigned op)
{
    for (volatile unsigned n = 0; n < (op % 10 ? 2000 : 20000); n++)
        ;
}
int main(void)
{
    for (unsigned op = 0; op < 900; op++)
        handle(op);
    raise(SIGSEGV);
    return 0;
}
"""


@gdb_alone("lldb's batch ends where a program crashes")
def test_a_program_that_ends_by_a_signal_says_how_far_it_came(tmp_path: Path) -> None:
    """It stands there first, without probes; nobody has killed it."""
    crashes, source = tmp_path / "crashes", tmp_path / "crashes.c"
    source.write_text(CRASHES)
    subprocess.run(["gcc", "-O1", "-g", "-o", crashes, source], check=True)
    done = debug(tmp_path, crashes, (), ["darc start handle --start-ops 5000", "run", "continue"])
    assert re.search(r"darc: handle: program ended: \d+ calls seen", done.gdb), done.gdb
    assert "begins anew" not in done.gdb


def test_nothing_is_searched_for_where_no_peak_is_chosen(program: Path, tmp_path: Path) -> None:
    commands = ["darc start handle", "run", mark("on"), "continue"]
    done = debug(tmp_path, program, ("4000",), commands)
    assert done.section("on").count("no peak of handle is chosen: the program goes on") == 1


@gdb_alone("lldb records nothing")
def test_recording_that_begins_behind_the_start(program: Path, tmp_path: Path) -> None:
    commands = ["break main", "run", "delete", "darc start handle", "record", mark("refused")]
    commands += ["continue", "record stop", mark("goes"), "continue"]
    done = debug(tmp_path, program, ("4000",), commands)
    assert "darc does not work while gdb records" in done.section("refused")
    assert "choose a peak" in done.section("goes")


@gdb_alone("lldb says so itself")
def test_a_core_file_is_no_program_that_runs(program: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    debug(tmp_path, program, ("4000",), ["break handle", "run", f"gcore {core}", "kill"])
    done = debug(tmp_path, program, (), [f"core-file {core}", "darc start handle"])
    assert "darc: gdb has a core file: darc needs a program that runs" in done.gdb


@pytest.mark.parametrize(("peak", "status"), [(">1ms", 0), pytest.param(">100s", 1, id="never")])
def test_required_root_cause_decides_the_exit_status(
    peak: str, status: int, program: Path, tmp_path: Path
) -> None:
    commands = [
        f"darc start handle --peak '{peak}'",
        "run",
        "darc report --format json -o report.json --require root-cause",
    ]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.status == status
    assert done.report is not None, "the report is written all the same"
    assert bool(done.report["root_cause_paths"]) == (status == 0)


SAME = """
static __attribute__((noinline)) int helper(int x) { return x * %(factor)d + 1; }
int %(name)s(int x) { return helper(x) - 1; }
"""


@pytest.mark.parametrize("line", ["-g", "-g0"])
def test_a_name_that_nothing_tells_from_others(line: str, tmp_path: Path) -> None:
    """Of static functions in files of one name the place is told as well."""
    sources = []
    for factor, name in enumerate(("first", "second"), 3):
        source = tmp_path / name / "same.c"
        source.parent.mkdir()
        source.write_text(SAME % {"factor": factor, "name": name})
        sources.append(source)
    main = tmp_path / "main.c"
    main.write_text(
        "int first(int), second(int);"
        "int main(void) { int x = 0; for (int i = 0; i < 500; i++) x += first(i) - second(x);"
        " return x == 1; }"
    )
    program = tmp_path / "same"
    command: list[str | Path] = ["gcc", "-O1", line, "-o", program, main, *sources]
    subprocess.run(command, check=True)
    done = debug(tmp_path, program, (), ["break main", "run", attempt("darc start helper")])
    place = r"same\.c:2" if line == "-g" else r"same\+0x[0-9a-f]+"
    found = re.search(rf"take one of (\*0x\w+) \({place}\), (\*0x\w+) \({place}\)", done.gdb)
    assert found is not None, done.gdb
    for address in found.groups():
        commands = ["break main", "run", f"darc start {address} --start-ops 10 --peak last"]
        assert "analyses *0x" in debug(tmp_path, program, (), commands).gdb


def test_a_name_that_several_functions_have(tmp_path: Path) -> None:
    """Each spelling that the error lists names one function: it can be started."""
    program = build("cppclass", opt="-O0")
    done = debug(tmp_path, program, ("4000",), ["darc start ns::Server::handle"])
    assert done.status == 1
    listed = re.search(r"darc: ns::Server::handle names 2 functions: take one of (.*)", done.gdb)
    assert listed is not None, done.gdb
    spellings = re.findall(r"ns::Server::handle\([^)]*\)", listed[1])
    assert len(set(spellings)) == 2
    commands = [f"darc start '{spelling}' --start-ops 10" for spelling in spellings]
    for command in commands:
        again = debug(tmp_path, program, ("20000",), [command, "run", REPORT])
        assert again.report is not None
        assert again.report["profile"]["count"] >= 10, again.gdb


@pytest.mark.parametrize(
    "spelling", ["mixture!handle", "mixture.c:handle", "fixtures/mixture.c:handle"]
)
def test_other_spellings_of_a_function(spelling: str, program: Path, tmp_path: Path) -> None:
    done = debug(
        tmp_path, program, ("20000",), [f"darc start {spelling} --peak '>1ms'", "run", REPORT]
    )
    assert [path[:2] for path in done.paths] == [("handle", "flush")], done.gdb


@pytest.mark.parametrize("pie", [False, True])
def test_an_address_is_a_function(pie: bool, tmp_path: Path) -> None:
    """Before the program runs it is that of the file, as for the debugger's own breakpoints."""
    image = build("mixture", pie=pie)
    names = subprocess.run(["nm", image], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^(\w+) T handle$", names, re.M)
    assert found is not None
    commands = [f"darc start *0x{found[1]} --peak '>1ms'", "run", REPORT]
    done = debug(tmp_path, image, ("20000",), commands)
    assert [path[:2] for path in done.paths] == [("handle", "flush")], done.gdb


@pytest.mark.parametrize("line", ["darc start {}", "darc catch {} --above 50ms", "darc walk {}"])
@pytest.mark.parametrize("before", [(), ("break main", "run")], ids=["file", "process"])
def test_an_address_in_a_function_is_refused(
    before: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    """What lies on top of the stack there is no return address."""
    program = build("mixture", pie=False)
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^(\w+) T handle$", names, re.M)
    assert found is not None
    entry = int(found[1], 16)
    done = debug(tmp_path, program, ("20000",), [*before, line.format(f"*{entry + 9:#x}")])
    told = f"{entry + 9:#x}, handle+9, lies within handle: take *{entry:#x}, where that begins"
    assert f"darc: {told}\n" in done.gdb


def test_parameters_are_kept_and_shown(program: Path, tmp_path: Path) -> None:
    commands = [mark("before"), "show darc"]
    commands += [f"set darc {p.name} {p.example}" for p in PARAMETERS]
    commands += [mark("after"), "show darc", mark("one"), "show darc max-depth"]
    commands += ["set darc max-depth 7", mark("set"), "show darc max-depth"]
    commands += [attempt("set darc max-depth seven"), mark("refused"), "show darc max-depth"]
    commands += [attempt("set darc max-depth"), mark("empty"), "show darc max-depth"]
    done = debug(tmp_path, program, (), commands)
    names = [line.split(":")[0] for line in done.section("before").splitlines()]
    for parameter in PARAMETERS:
        assert f"darc {parameter.name}" in names
    assert "darc peak: last" in done.section("after")
    assert done.section("one") == "darc max-depth: 32\n"
    assert done.section("set").startswith("darc max-depth: 7\n")
    assert done.section("refused").startswith("darc max-depth: 7\n")
    assert "darc max-depth: 7\n" in done.section("empty")


def test_a_kept_parameter_serves_the_next_start(program: Path, tmp_path: Path) -> None:
    commands = ["set darc peak >1ms", "set darc max-depth 2", "darc start handle", "run", REPORT]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.report is not None
    assert done.report["status"] == "maximum depth reached"
    assert [path[:2] for path in done.paths] == [("handle", "flush")]


def test_the_version(tmp_path: Path) -> None:
    done = debug(tmp_path, None, (), [mark("version"), "darc version"])
    assert done.section("version").startswith(f"darc {__version__}, Python 3.")
    assert str(ROOT / "darc") in done.section("version")


def test_every_command_and_parameter_has_help(tmp_path: Path) -> None:
    commands = [mark("darc"), "help darc"]
    for name in COMMANDS:
        commands += [mark(name), f"help darc {name}"]
    for parameter in PARAMETERS:
        name = parameter.name.replace("-", "_")
        commands += [mark(f"set_{name}"), f"help set darc {parameter.name}"]
        if current() == GDB:  # in lldb that is one command, which takes the name
            commands += [mark(f"show_{name}"), f"help show darc {parameter.name}"]
    done = debug(tmp_path, None, (), commands)
    for name, command in COMMANDS.items():
        text = done.section(name)
        assert command.summary in text
        assert f"Usage: {command.usage}" in text
        assert "Examples:" in text
        assert f"darc {name}" in done.section("darc")
        for option in command.options:
            assert option.name in text
        if name == "start":
            assert "Default: auto." in text
    for parameter in PARAMETERS:
        for kind in ("set", "show") if current() == GDB else ("set",):
            text = done.section(f"{kind}_{parameter.name.replace('-', '_')}")
            assert "Valid:" in text
            assert "Example:" in text
    if current() == GDB:
        assert max(map(len, done.gdb.splitlines())) <= 81


COMPLETED = {
    GDB: {
        *("functions", "commands", "options", "values", "parameters", "nothing"),
        *("of_a_file", "of_a_library", "files", "folders", "file_of_resume"),
    },
    LLDB: {"commands", "parameters", "nothing"},
    NEWEST: {"functions", "commands", "parameters", "nothing"},
}
"""What a debugger lets an extension complete."""


@EVERYWHERE
def test_completion(program: Path, tmp_path: Path) -> None:
    lines = {
        "functions": ("darc start ha", ["darc start handle"]),
        "commands": ("darc st", ["darc start", "darc status", "darc stop"]),
        "options": ("darc start handle --start-o", ["darc start handle --start-ops"]),
        "values": ("darc report --format js", ["darc report --format json"]),
        "parameters": ("set darc max-p", ["set darc max-probes"]),
        "nothing": ("darc start no_such_", []),
        "of_a_file": ("darc start mixture.c:ha", ["darc start mixture.c:handle"]),
        "of_a_library": ("darc start mixture!ha", ["darc start mixture!handle"]),
        "files": ("darc report -o mix", ["darc report -o mix.json"]),
        "folders": ("darc report --output=fol", ["darc report --output=folder/in-it.json"]),
        "file_of_resume": ("darc resume --max-depth 3 mi", ["darc resume --max-depth 3 mix.json"]),
    }
    (tmp_path / "mix.json").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "in-it.json").touch()
    lines = {name: line for name, line in lines.items() if name in COMPLETED[current()]}
    commands = []
    for name, (line, _) in lines.items():
        commands += [mark(name), f"complete {line}"]
    done = debug(tmp_path, program, (), commands)
    for name, (_, expected) in lines.items():
        assert done.section(name).splitlines() == expected
