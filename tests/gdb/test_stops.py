"""What the user sees at stops of their own: the program as if no pad were there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fixtures.build import build, find
from tests.debugger import EXIT, IN_BOTH, PLAIN_GDB, REPORT, debug, mark, undisturbed

START = "darc start handle --peak >1ms --start-ops 1000"

ENDINGS = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void slow(unsigned op) { if (op % 32 == 0) usleep(400); }
__attribute__((noinline)) void handle(unsigned op) { slow(op); __asm__(""); }
int main(int argc, char **argv)
{
    for (unsigned op = 0; op < 4000; op++)
        handle(op);
    switch (atoi(argv[argc - 1])) {
    case 0: return 42;
    case 1: _exit(43);
    case 2: exit(44);
    case 3: abort();
    case 4: raise(SIGSEGV);
    case 5: raise(SIGKILL);
    }
    return 0;
}
"""

AHEAD = """
static volatile unsigned long sink;
__attribute__((noinline)) void third(void) { for (int i = 0; i < 400; i++) sink += i; }
__attribute__((noinline)) void second(void) { third(); sink++; }
__attribute__((noinline)) void first(void) { second(); sink++; }
__attribute__((noinline)) void handle(unsigned op)
{
    first();
    for (int i = 0; op % 32 == 0 && i < 1000000; i++)
        sink += i;
}
int main(void)
{
    for (unsigned op = 0;; op++)
        handle(op);
}
"""


PARKED = """
import gdb
from darc_gdb import APP

gdb.Breakpoint(f"*{APP._stay.remains.symbol('darc_parked'):#x}", temporary=True)
"""


@pytest.fixture(scope="module")
def program() -> Path:
    return build("mixture")


@pytest.mark.parametrize("place", ["write_out", "usleep", "clock_nanosleep"])
def test_backtrace_inside_timed_calls(place: str, program: Path, tmp_path: Path) -> None:
    """The text is that of gdb alone, in the same operation."""
    stop = ["tbreak write_out", "continue"]
    if place != "write_out":
        stop += [f"tbreak {place}", "continue"]
    look = [mark("bt"), "bt", mark("up"), "up", "info frame", mark("done")]
    darc = ["tbreak 71", "darc start handle --start-ops 1900", "run", "continue"]
    darc += ["darc peak >1ms"]
    probed = debug(tmp_path, program, ("20000",), [*darc, *stop, *look, "darc tree"])
    assert "usleep" in probed.section("done"), "no probe stood that deep"
    op = probed.section("bt").split("op=op@entry=")[1].split(")")[0]
    plain = ["tbreak handle if op == " + op, "run"]
    undisturbed = debug(tmp_path, program, ("20000",), [*plain, *stop, *look], gdb=PLAIN_GDB)
    assert probed.section("bt") == undisturbed.section("bt")
    assert probed.section("bt").count("\n") >= 4
    assert probed.section("up") == undisturbed.section("up")


LOOKS = """
import gdb

def look(event):
    frame = gdb.newest_frame()
    while frame is not None:
        frame = frame.older()

gdb.events.memory_changed.connect(look)
"""


def test_who_looks_at_the_stack_whenever_memory_changes(program: Path, tmp_path: Path) -> None:
    """As extensions do: what they have seen while darc took its probes out is not what the user
    gets to see."""
    script = tmp_path / "looks.py"
    script.write_text(LOOKS)
    begin = ["darc start handle --start-ops 1900", "run", "darc peak >1ms", f"source {script}"]
    stops = ["tbreak write_out", "continue", mark("bt"), "bt", mark("on")]
    done = debug(tmp_path, program, ("20000",), [*begin, *stops, "darc tree"])
    text = done.section("bt")
    assert "flush" in text, done.gdb
    assert "main (" in text
    assert "??" not in text, done.gdb


def test_a_thread_that_has_just_rung(program: Path, tmp_path: Path) -> None:
    """It is on its way out of f0's pad, all of whose work is done: the user, who happens to stop it
    there, finds it where f0 has returned to."""
    script = tmp_path / "parked.py"
    script.write_text(PARKED)
    start = ["break handle", "run", "delete", "darc start handle --peak >1ms --start-ops 200"]
    look = [f"source {script}", "continue", mark("bt"), "bt", "info registers rip", mark("on")]
    done = debug(tmp_path, program, ("40000",), [*start, *look, "continue", REPORT, "kill"])
    assert "Temporary breakpoint" in done.gdb
    assert "??" not in done.section("bt"), done.gdb
    assert re.match(r"#0  .*\bmain \(", done.section("bt")), done.gdb
    assert "<main+" in done.section("bt")
    assert set(done.paths) == set(find("mixture").paths) or done.paths, done.gdb


def test_calls_that_all_end_by_an_exception(tmp_path: Path) -> None:
    """The thread that has told the debugger stands in the program's own code, at each stop, and
    goes on from there as it would."""
    program, arguments = build("throwing"), ("30000", "1", "all")
    look = [mark("bt"), "bt", mark("on")]
    choose = ["darc start handle --start-ops 1000", "run", *look, "darc peak >300us"]
    commands = [*choose, "continue", mark("found"), "bt", REPORT, mark("out"), "finish", "continue"]
    done = debug(tmp_path, program, arguments, [*commands, EXIT])
    for stop in ("bt", "found"):
        text = done.section(stop)
        assert "main" in text or "run" in text, done.gdb
        assert not re.search(r"darc_|agent|\?\?", text), done.gdb
    assert done.section("out").startswith("run ("), done.gdb
    assert ("handle", "parse", "burn") in done.paths, done.gdb
    assert (done.program_status, done.output) == undisturbed(program, arguments)


@pytest.mark.parametrize("language", ["ada", "pascal", "fortran", "rust"])
def test_in_whatever_language_the_user_thinks(language: str, program: Path, tmp_path: Path) -> None:
    """Registers are set all the same: the thread that rang stands where f0 has returned to, and
    those on displaced instructions go on with them."""
    choose = ["darc start handle --start-ops 200", f"set language {language}", "run"]
    commands = [*choose, mark("bt"), "bt 1", mark("on"), "darc peak >1ms", "continue", REPORT]
    done = debug(tmp_path, program, ("20000",), [*commands, "continue", EXIT])
    assert re.match(r"#0  .*\bmain \(", done.section("bt")), done.gdb
    assert done.report is not None
    assert (done.program_status, done.output) == undisturbed(program, ("20000",))


def test_backtraces_of_all_threads(tmp_path: Path) -> None:
    """Wherever a stop finds a thread: no frame is without a name, but a pad under the agent, and a
    new thread's end of the stack."""
    commands = ["darc start handle --start-ops 300", "run", "darc peak >700us"]
    for i in range(5):
        commands += ["tbreak store", "continue", mark(f"bt{i}"), "thread apply all bt", mark("x")]
    done = debug(tmp_path, build("threads"), ("32000",), commands)
    for i in range(5):
        text = done.section(f"bt{i}")
        assert "store" in text
        lines = text.splitlines()
        for above, line in zip(["", *lines], lines, strict=False):
            end_of_stack = line.endswith(" 0x0000000000000000 in ?? ()")
            assert "??" not in line or end_of_stack or "darc_stub_" in above, text
        assert "corrupt" not in text


def test_backtraces_from_the_agent_outlive_its_analysis(program: Path, tmp_path: Path) -> None:
    """A thread stands in it as one analysis ends, and as another begins."""
    into = ["break handle", "run", "delete", "darc profile * --time 10min"]
    into += ["tbreak darc_stub_entry"]
    commands = [*into, "continue", mark("first"), "bt", "darc stop", mark("none"), "bt"]
    commands += ["darc start handle --max-probes 8000", mark("second"), "bt", mark("end")]
    done = debug(tmp_path, program, ("20000",), commands)
    for section in ("first", "none", "second"):
        text = done.section(section)
        assert re.match(r"(.*\n)*#0 .* darc_stub_entry ", text), done.gdb
        assert re.search(r"^#\d+ .* in main \(", text, re.M), done.gdb


@pytest.mark.parametrize(
    ("place", "steps"),
    [
        pytest.param("handle if op == 2010", ["next"] * 3, id="next_from_f0"),
        pytest.param("flush", ["next"] * 3, id="next"),
        pytest.param("write_out", ["finish", "bt", "finish", "bt"], id="finish"),
        pytest.param("write_out", ["up", "finish", "bt"], id="finish_outer"),
        pytest.param("write_out", ["step", "bt"], id="step"),
        pytest.param("write_out", ["advance 44", "bt", "until 45", "bt"], id="advance"),
    ],
)
def test_stepping_at_timed_calls(
    place: str, steps: list[str], program: Path, tmp_path: Path
) -> None:
    """The same lines and stacks as with gdb alone, and the program goes on as it would."""
    look = [f"tbreak {place}", mark("steps"), "continue", *steps, mark("end"), "continue", EXIT]
    darc = ["darc start handle --start-ops 2000", "run", "darc peak >1ms"]
    probed = debug(tmp_path, program, ("20000",), [*darc, *look, "continue", EXIT])
    begin = ["tbreak handle if op == 2000", "run"]
    plain = debug(tmp_path, program, ("20000",), [*begin, *look], gdb=PLAIN_GDB)
    assert without_numbers(probed.section("steps")) == without_numbers(plain.section("steps"))
    assert probed.output == plain.output == undisturbed(program, ("20000",))[1]
    assert [path[:2] for path in re.findall(r"root cause of .*: (handle) → (flush)", probed.gdb)]


def without_numbers(text: str) -> list[str]:
    """gdb's breakpoints are numbered from another one on when darc has some of its own. In the line
    that gdb prints first at a stop, entry values are not known inside a timed call."""
    text = re.sub(r"\w+@entry=", "", text)
    return [re.sub(r"(breakpoint|at|\$)( ?)\d+", r"\1\2N", line) for line in text.splitlines()]


def test_breakpoints_at_and_in_timed_functions(program: Path, tmp_path: Path) -> None:
    """Where a probe stands, where one will stand, on f0: each is hit as often as without darc."""
    places = ["handle", "flush", "write_out", "compress_block"]
    commands = []
    for place in places:
        commands += [f"break {place}", "commands", "silent", "continue", "end"]
    script = tmp_path / "breakpoints.gdb"
    script.write_text("\n".join(commands) + "\n")
    run = ["run", *["continue"] * 3, mark("hits"), "info breakpoints", EXIT]
    probed = debug(
        tmp_path, program, ("4000",), [f"source {script}", "darc start handle --peak >1ms", *run]
    )
    plain = debug(tmp_path, program, ("4000",), [f"source {script}", *run], gdb=PLAIN_GDB)
    hits = [line for line in plain.section("hits").splitlines() if "already hit" in line]
    assert len(hits) == len(places)
    assert [line for line in probed.section("hits").splitlines() if "already hit" in line] == hits
    assert probed.output == plain.output


@pytest.mark.parametrize("how", ["jump *$pc", "signal 0"])
def test_it_is_let_go_on_in_another_way(how: str, program: Path, tmp_path: Path) -> None:
    """The search goes on as after 'continue', also where the user has deleted all breakpoints."""
    stop = ["set confirm off", START, "tbreak flush", "run", "delete"]
    done = debug(tmp_path, program, ("2000000",), [*stop, how, REPORT, "kill"])
    assert "No root cause" not in done.gdb
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found", done.gdb


@pytest.mark.parametrize("ending", range(6))
@pytest.mark.parametrize("when", ["after the result", "while it is analysed"])
def test_the_program_ends_as_it_would(ending: int, when: str, tmp_path: Path) -> None:
    program = tmp_path / "endings"
    source = tmp_path / "endings.c"
    source.write_text(ENDINGS)
    subprocess.run(["gcc", "-O2", "-g", "-o", program, source], check=True)
    ops = "" if when == "after the result" else "--start-ops 1000000"
    commands = [f"darc start handle --peak >150us {ops}", "run", REPORT, "continue", "continue"]
    commands += [
        "continue",
        'python print("signal", gdb.convenience_variable("_exitsignal"))',
        EXIT,
    ]
    done = debug(tmp_path, program, (str(ending),), commands)
    status, output = undisturbed(program, (str(ending),))
    assert done.output == output
    if status >= 0:
        assert done.program_status == status
    else:
        assert f"signal {-status}\n" in done.gdb
    if not ops:
        assert [path[:2] for path in done.paths] == [("handle", "slow")]
    assert "Traceback" not in done.gdb


@IN_BOTH
def test_a_program_that_ends_too_early_tells_what_it_did(program: Path, tmp_path: Path) -> None:
    """The calls counted up to the end are all in the profile, though fewer than asked for."""
    commands = ["darc start handle --peak >1ms --start-ops 1000000", "run", REPORT]
    done = debug(tmp_path, program, find("mixture").args, commands)
    assert done.report is not None
    assert done.report["status"] == "program ended"
    assert done.report["profile"]["count"] == 20000
    assert done.report["root_cause_paths"] == []


@IN_BOTH
def test_it_goes_on_by_itself_when_told(program: Path, tmp_path: Path) -> None:
    commands = ["darc start handle --peak >1ms --on-finish continue", "run", EXIT, REPORT]
    done = debug(tmp_path, program, ("20000",), commands)
    assert done.report is not None
    assert done.report["status"] == "root cause found"
    assert (done.program_status, done.output) == undisturbed(program, ("20000",))
    assert "root cause of" in done.gdb


DEAD_ENDS = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void inner(unsigned op) { usleep(400); __asm__(""); }
__attribute__((noinline)) void slow(unsigned op)
{
    if (op == 4000000)
        abort();
    if (op % 32 == 0)
        inner(op);
    __asm__("");
}
__attribute__((noinline)) void handle(unsigned op) { slow(op); __asm__(""); }
int main(void)
{
    for (unsigned op = 0; op < 20000; op++)
        handle(op);
}
"""


def test_a_breakpoint_in_code_that_is_read_while_the_program_runs(tmp_path: Path) -> None:
    """It stands in the memory that is read then, where a call is: that call is known all the
    same."""
    source, program = tmp_path / "ends.c", tmp_path / "ends"
    source.write_text(DEAD_ENDS)
    subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=True)
    commands = ["break ends.c:8", "darc start handle --peak last --start-ops 3000", "run", REPORT]
    done = debug(tmp_path, program, (), commands)
    assert done.root_causes[0]["functions"][:4] == ["handle", "slow", "inner", "usleep"], done.gdb
    assert done.report is not None
    (slow,) = done.report["ftree"]["children"]
    assert [child["function"] for child in slow["children"]] == ["abort", "inner"]


def test_only_the_lines_that_are_shown_are_asked_for(tmp_path: Path) -> None:
    """For one line gdb reads all that is known of a file, while the program stands still."""
    source, program = tmp_path / "ahead.c", tmp_path / "ahead"
    source.write_text(AHEAD)
    subprocess.run(["gcc", "-O1", "-g", str(source), "-o", str(program)], check=True)
    asked = "python print('asked for', len(set(asked)))"
    commands = [
        "python asked = []; ask = gdb.find_pc_line",
        "python gdb.find_pc_line = lambda pc: (asked.append(pc), ask(pc))[1]",
        "darc start handle --start-ops 1000 --peak last",
        "run",
        mark("answer"),
        asked,
        mark("tree"),
        "darc tree",
        asked,
        mark("all"),
        "set darc verbose on",
        "darc tree",
        asked,
        mark("end"),
        "kill",
    ]
    done = debug(tmp_path, program, (), commands)
    assert "darc: root cause of peak" in done.gdb
    assert "third" in done.section("all"), "nothing was timed ahead"
    counted = [int(number) for number in re.findall(r"asked for (\d+)", done.gdb)]
    assert counted[:2] == [1, 1], done.gdb  # of handle alone: who is not chosen has an offset
    assert counted[2] > 1
