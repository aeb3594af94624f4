"""Stops of the user's that gdb goes on from by itself: hit counts, conditions, commands."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from fixtures.build import build
from tests import ticking
from tests.code import altered_code
from tests.debugger import (
    DARC_GDB,
    EXIT,
    GDB,
    IN_BOTH,
    PLAIN_GDB,
    REPORT,
    ROOT,
    current,
    debug,
    let_go,
    mark,
    server,
    terminal,
    undisturbed,
    watched,
)

COUNTED = """
python
from darc.pads.installer import PadInstaller
make_way, made = PadInstaller.make_way, []
def counted(self):
    made.append(1)
    return make_way(self)
PadInstaller.make_way = counted
end
"""

NEVER_STOPS = """
python
class Never(gdb.Breakpoint):
    def stop(self):
        return False
Never("tick")
end
"""

SHOWN = re.compile(r"#[1-9]|   0x")
"""Lines of backtraces and of code; those of the stop itself are above."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ticking.build(tmp_path_factory.mktemp("ticking"))


def test_hits_that_gdb_counts_are_no_news(program: Path, tmp_path: Path) -> None:
    """gdb tells of a breakpoint's change at each hit. No probe has to make way for that: looking
    for those that must takes many times as long as the hit."""
    (tmp_path / "counted.gdb").write_text(COUNTED)
    commands = [f"source {tmp_path / 'counted.gdb'}", "break tick", "ignore 1 1000000"]
    commands += [ticking.START, "run", "python print('made way', len(made))", "info breakpoints"]
    done = debug(tmp_path, program, (ticking.OPERATIONS,), [*commands, REPORT, "continue", EXIT])
    assert ticking.PATH in done.paths
    assert "breakpoint already hit" in done.gdb
    assert "made way 0\n" in done.gdb
    assert done.output == undisturbed(program, (ticking.OPERATIONS,))[1]


def commands_at(place: str, *commands: str) -> str:
    """A breakpoint whose commands let the program go on."""
    return "\n".join([f"break {place}", "commands", *commands, "continue", "end"]) + "\n"


COMMANDS = {
    "silent": ["silent"],
    "prints": ["silent", 'printf "op %d\\n", op', "p ticks"],
    "looks": ["bt", "x/12i piece", "x/12i fetch", "p $pc"],
}
"""What is done at a stop; the last of them sees code and stacks."""


@pytest.mark.parametrize("kind", [*COMMANDS, "condition", "python"])
def test_operations_that_stops_come_in_are_measured(
    kind: str, program: Path, tmp_path: Path
) -> None:
    """Every long operation is stopped in, five times: the search has its votes all the same, and
    what is shown is the program's own."""
    script = tmp_path / "stops.gdb"
    if kind == "condition":
        script.write_text("break tick if op == 1000000\n")
    elif kind == "python":
        script.write_text(NEVER_STOPS)
    else:
        script.write_text(commands_at("tick", *COMMANDS[kind]))
    begin = [f"source {script}", mark("shown"), ticking.START, "run", mark("end")]
    end = [REPORT, "delete", "continue", EXIT]
    done = debug(tmp_path, program, (ticking.OPERATIONS,), [*begin, *end])
    assert ticking.PATH in done.paths, done.gdb  # beside tick, whose hits take their time
    assert (done.program_status, done.output) == undisturbed(program, (ticking.OPERATIONS,))
    if kind == "looks":
        run = [f"source {script}", mark("shown"), "run", mark("end")]
        plain = debug(tmp_path, program, (ticking.OPERATIONS,), run, gdb=PLAIN_GDB)
        own = set(plain.section("shown").splitlines())
        shown = [one for one in done.section("shown").splitlines() if SHOWN.match(one)]
        assert len(shown) > 100
        assert [one for one in shown if one not in own] == []


def test_a_stop_that_stays_after_all(program: Path, tmp_path: Path) -> None:
    """Probes were left in as gdb was to go on from the stop by itself, and it has not."""
    with terminal(tmp_path, "--args", str(program), ticking.OPERATIONS) as gdb:
        gdb.command(f"source {ROOT / 'tests' / 'inside_gdb.py'}")
        gdb.command("python from darc_gdb.hits import Hits")
        gdb.command("python Hits.will_go_on = lambda hits, event: True")
        gdb.command("break tick if op > 12")
        gdb.command(ticking.START)
        assert "Breakpoint 1, tick" in gdb.command("run")
        assert " 0 altered" in gdb.command("tell-code")
        assert re.search(r"tick.*piece.*fetch.*serve.*main", gdb.command("bt"), re.S)
        gdb.command("delete 1")
        assert "root cause" in gdb.command("continue")
        assert gdb.quit() == 0


KILLED = """
python
import os
def kill(event):
    if gdb.breakpoints()[0].hit_count == 30:
        os.kill(os.getpid(), 9)
gdb.events.stop.connect(kill)
end
"""


def test_gdb_is_killed_at_such_a_stop(tmp_path: Path) -> None:
    """The probes are in the program: it goes on with them, and the next gdb takes them out."""
    (tmp_path / "stops.gdb").write_text(commands_at("burn", "silent") + KILLED)
    with server(build("server")) as running:
        attached = ["-p", str(running.pid), "-ex", f"source {tmp_path / 'stops.gdb'}"]
        attached += ["-ex", "darc start handle --start-ops 1000000", "-ex", "continue"]
        status, *_ = watched(tmp_path, [*DARC_GDB, "-nx", "-q", "-batch", *attached])
        assert status == -signal.SIGKILL
        let_go(running.pid)
        running.operations()
        out = ["-p", str(running.pid), "-ex", "darc stop", "-ex", "detach"]
        _, told, *_ = watched(tmp_path, [*DARC_GDB, "-nx", "-q", "-batch", *out])
        assert "taken out" in told
        assert altered_code(running.pid)[2] == []
        running.operations()
        assert running.finish() == 0


STRUCK = """
break tick
commands
silent
set $x = 1
continue
end
python
import os, signal
from darc.app.observer import Observer
on_stop, struck = Observer.on_stop, []
def on_stop_struck(self, **about):
    if not struck:
        struck.append(1)
        os.kill(os.getpid(), signal.SIGINT)
    on_stop(self, **about)
Observer.on_stop = on_stop_struck
end
"""


def test_ctrl_c_is_not_lost_in_a_handler(program: Path, tmp_path: Path) -> None:
    """One that comes while gdb has called darc, which gdb then goes on from by itself."""
    (tmp_path / "struck.gdb").write_text(STRUCK)
    script = [f"source {tmp_path / 'struck.gdb'}", "darc start serve --start-ops 1000000000"]
    done = debug(tmp_path, program, ("64",), [*script, "run", mark("stop"), "info threads", "kill"])
    assert "KeyboardInterrupt" not in done.gdb
    assert "SIGINT" in done.gdb, done.gdb
    assert "exited normally" not in done.gdb
    assert '"ticking" ' in done.section("stop")


STRUCK_AS_IT_GOES_ON = """
python
import os, signal
from darc.pads.installer import PadInstaller
resume, struck = PadInstaller.resume, []
def struck_in_the_middle(installer):
    if not struck:
        struck.append(1)
        installer.patcher._paused = False
        os.kill(os.getpid(), signal.SIGINT)
    return resume(installer)
PadInstaller.resume = struck_in_the_middle
end
"""


def test_ctrl_c_as_it_goes_on(tmp_path: Path) -> None:
    """One that comes while the probes are put back, which takes a while on a busy machine: all of
    them are, and the program stops then."""
    (tmp_path / "struck.gdb").write_text(STRUCK_AS_IT_GOES_ON)
    commands = [
        "break main",
        "run",
        f"source {tmp_path / 'struck.gdb'}",
        "darc start handle --peak last --start-ops 2000 --decision-ops 5",
        "continue",
        mark("stop"),
        "continue",
        REPORT,
        "kill",
    ]
    done = debug(tmp_path, build("mixture"), ("4000000",), commands)
    assert "SIGINT" in done.gdb, done.gdb
    assert done.paths, done.gdb


@IN_BOTH
def test_a_breakpoint_that_takes_time_is_told(tmp_path: Path) -> None:
    """A condition that never holds: nobody is told of its hits, and they take longer than what
    they stand in."""
    never = "breakpoint set -n lookup -c '1 == 0'" if current() != GDB else "break lookup if 1 == 0"
    start = "darc start handle --peak 1 --start-ops 300 --decision-ops 10"
    done = debug(tmp_path, build("mixture"), ("2000",), [never, start, "run", REPORT])
    assert "a breakpoint of yours stands in lookup: " in done.gdb, done.gdb
