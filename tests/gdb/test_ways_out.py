"""Every way out of a program leaves it as it was: it looks at its own code, and tells.

The program here prints a checksum of its code (and of libc's) at its end: the output is that of an
undisturbed run only if every byte was restored. Cores and forks are looked at with gdb's own
commands; tests/lldb/test_ways_out.py has what lldb can do.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.debugger import EXIT, PLAIN_GDB, Done, debug, mark, undisturbed
from tests.gdb.transcripts import same
from tests.gdb.ways import MOMENTS, compiled
from tests.pairs import by_turns


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("ways"))


SIGNAL = 'python print("signal", gdb.convenience_variable("_exitsignal"))'


@pytest.mark.parametrize(
    ("what", "moment"), by_turns(["segv", "abort", "illegal", "divide"], [*MOMENTS])
)
def test_crash(what: str, moment: str, program: Path, tmp_path: Path) -> None:
    """Signal, backtrace, core and end are the crash's own, as in gdb alone."""
    args = ("4000", what)
    core = tmp_path / "core"
    look = [mark("crash"), "bt", "info registers rip rsp", "x/3i work", "up", "info frame"]
    end = [mark("core"), f"gcore {core}", mark("end"), "continue", SIGNAL]
    texts = []
    for gdb, begin in (({}, [MOMENTS[moment]]), ({"gdb": PLAIN_GDB}, [])):
        done = debug(tmp_path, program, args, [*begin, "run", *look, *end], **gdb)
        in_core: list[str | Path] = [*PLAIN_GDB, "-nx", "-q", "-batch", program, core]
        for one in ("bt", "x/6i work", "x/6i handle"):
            in_core += ["-ex", one]
        text = subprocess.run(
            in_core, capture_output=True, text=True, timeout=90, check=True
        ).stdout
        ending = [line for line in done.section("end").splitlines() if "ignal" in line]
        texts.append((same(done.section("crash")), same(text[text.index("#0") :]), ending))
        core.unlink()
    assert texts[0] == texts[1]
    assert any("misfortune" in line for line in texts[0][0])


@pytest.mark.parametrize("what", ["segv", "abort"])
def test_crash_reporter(what: str, program: Path, tmp_path: Path) -> None:
    """A handler that looks at the code after the crash's stop finds the program's own."""
    args = ("4000", what, "handled")
    commands = [MOMENTS["profiling"], "run", "continue", "continue", SIGNAL]
    done = debug(tmp_path, program, args, commands)
    status, output = undisturbed(program, args)
    assert b"handler: code" in output
    assert done.output == output
    assert f"signal {-status}" in done.gdb


@pytest.mark.parametrize(
    ("what", "moment"),
    by_turns(["fork", "exit", "_exit", "kill", "exec", "threads", "vfork"], [*MOMENTS]),
)
def test_end_inside_a_timed_call(what: str, moment: str, program: Path, tmp_path: Path) -> None:
    """Output and status as if nobody had looked; the code is left as it was."""
    args = ("4000", what)
    start = MOMENTS[moment]
    commands = [start, "tbreak tell", "run", "darc stop", "continue", "continue", EXIT, SIGNAL]
    if what in ("fork", "vfork"):
        commands.insert(0, "tbreak waitpid")
        commands.insert(-2, "continue")
    done = debug(tmp_path, program, args, commands)
    check_end(done, program, args, of_child=what == "fork")


FOLLOW = [
    *(("fork", mode, held) for mode in ("parent", "child") for held in ("on", "off")),
    *(("vfork", mode, "on") for mode in ("parent", "child")),
]


@pytest.mark.parametrize(("what", "mode", "detach"), FOLLOW)
def test_gdb_follows_a_fork(
    what: str, mode: str, detach: str, *, program: Path, tmp_path: Path
) -> None:
    """Whichever it follows, and whether it keeps the other: both do what they would, and whoever is
    in gdb's hands has its own code."""
    args = ("4000", what)
    setting = [f"set follow-fork-mode {mode}", f"set detach-on-fork {detach}"]
    if detach == "off":  # else the parent would wait for a child that is held
        setting.append("set schedule-multiple on")
    script = tmp_path / "rest.py"
    script.write_text(REST)
    commands = [*setting, MOMENTS["profiling"], "tbreak tell", "run", f"source {script}"]
    done = debug(tmp_path, program, args, commands)
    check_end(done, program, args, of_child=mode == "parent" and detach == "on")


REST = """
import gdb
gdb.execute("delete")
gdb.execute("darc stop")
for _ in range(6):
    for inferior in list(gdb.inferiors()):
        if inferior.is_valid() and inferior.pid:
            gdb.execute(f"inferior {inferior.num}")
            gdb.execute("continue")
"""


def check_end(done: Done, program: Path, args: tuple[str, ...], *, of_child: bool) -> None:
    status, output = undisturbed(program, args)
    shown, wanted = done.output.splitlines(), output.splitlines()
    if of_child:  # its code is a copy with probes in it, which pass through
        shown = [line for line in shown if not line.startswith(b"child: code")]
        wanted = [line for line in wanted if not line.startswith(b"child: code")]
    assert shown == wanted, done.gdb
    assert "Traceback" not in done.gdb
    assert "internal error" not in done.gdb
    if status < 0:
        assert f"signal {-status}" in done.gdb
    elif "program exit" in done.gdb:
        assert done.program_status == status
