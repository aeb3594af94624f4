"""Loading darc: where output has ASCII characters alone, twice, and where something is missing."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from fixtures.build import build, find
from tests.debugger import EVERYWHERE, GDB, IN_BOTH, LLDB, LOAD, ROOT, Done, current, watched
from tests.gdb.loading import plain

ASCII_ALONE: tuple[dict[str, str], ...] = (
    {"LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""},
)
START = "darc start handle --start-ops 1000 --peak last"
SEARCH = [START, "run", "darc histogram", "darc tree", "darc status", "darc report"]
LOADED = "darc status"


@IN_BOTH
@pytest.mark.parametrize("variables", ASCII_ALONE, ids=["C", "no-utf8", "unset"])
def test_an_output_of_ascii_alone(variables: dict[str, str], tmp_path: Path) -> None:
    report = "darc report -o report.txt --format text"
    done = plain(tmp_path, [*SEARCH, report, "help darc tree", "kill"], variables)
    assert "root cause of peak" in done.gdb, done.gdb
    assert "handle -> flush -> write_out -> usleep" in done.gdb
    assert "Root causes are marked with *." in done.gdb
    assert done.gdb.isascii()
    assert "Traceback" not in done.gdb
    # In a file nothing has to be missing.
    assert "handle → flush → write_out" in (tmp_path / "report.txt").read_text("utf-8")


@EVERYWHERE
def test_loading_twice(tmp_path: Path) -> None:
    again = f"source {LOAD}"
    if current() != GDB:
        from tests.lldb import runner

        again = f"command script import {runner.LOAD}"
    done = plain(tmp_path, [again, START, again, "run", again, "darc status", "kill"], {})
    assert "handle: root cause found" in done.gdb, done.gdb
    assert len(re.findall("waits for handle", done.gdb)) == 1


MISSING = """
import sys, importlib.abc
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "iced_x86": raise %s
sys.meta_path.insert(0, Missing())
"""

BROKEN = {
    "missing": MISSING % 'ModuleNotFoundError("No module named iced_x86", name=name)',
    "unreadable": MISSING % 'PermissionError(13, "Permission denied", "iced_x86/__init__.py")',
}


@IN_BOTH
@pytest.mark.parametrize("trouble", BROKEN)
def test_what_is_needed_cannot_be_had(trouble: str, tmp_path: Path) -> None:
    """One line; the program runs as if darc were not there; and when it can be had, darc loads."""
    before = f"exec({BROKEN[trouble]!r})"
    repair = ("python" if current() == GDB else "script") + " import sys; sys.meta_path.pop(0)"
    done = plain(tmp_path, ["run"], {}, before=before)
    assert len(re.findall("^darc: cannot load: .*'make setup'", done.gdb, re.M)) == 1, done.gdb
    assert not re.search("Traceback|NameError|rror in", done.gdb), done.gdb
    assert done.output == find("mixture").output.encode()
    if current() == GDB:
        done = plain(tmp_path, [repair, f"source {LOAD}", LOADED], {}, before=before)
        assert "nothing is being analysed" in done.gdb, done.gdb


INTERRUPTS = """
import sys, importlib.abc, os, signal, time
class Interrupts(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "darc.app.app":
            sys.meta_path.remove(self)
            %s
sys.meta_path.insert(0, Interrupts())
"""


def interrupts() -> str:
    """Ctrl-C in the middle, as it comes to Python: lldb raises it there, and not in batch."""
    if current() == GDB:
        return INTERRUPTS % "os.kill(os.getpid(), signal.SIGINT); time.sleep(1000)"
    return INTERRUPTS % "raise KeyboardInterrupt"


@IN_BOTH
def test_ctrl_c_while_it_loads(tmp_path: Path) -> None:
    """One line, nothing of darc is there, and it loads at the next try."""
    again = f"source {LOAD}"
    if current() != GDB:
        from tests.lldb import runner

        again = f"command script import {runner.LOAD}"
    done = plain(tmp_path, [again, LOADED], {}, before=f"exec({interrupts()!r})")
    told = re.findall("^darc: cannot load: interrupted; .*again$", done.gdb, re.M)
    assert len(told) == 1, done.gdb
    assert not re.search("Traceback|^KeyboardInterrupt", done.gdb, re.M), done.gdb
    assert "nothing is being analysed" in done.gdb


REFUSED = """
import lldb, os, signal, time
real = lldb.SBCommandInterpreter.HandleCommand
def is_refused(interpreter):
    result = lldb.SBCommandReturnObject()
    real(interpreter, "version", result)
    return not result.Succeeded()
def handle(self, command, result, *more):
    if command.startswith("command container add") and command.endswith("show"):
        lldb.SBCommandInterpreter.HandleCommand = real
        os.kill(os.getpid(), signal.SIGINT)
        while not is_refused(self):
            time.sleep(0.01)
    return real(self, command, result, *more)
lldb.SBCommandInterpreter.HandleCommand = handle
"""
"""Ctrl-C in the middle of the commands that are made: lldb refuses those behind it."""


@pytest.mark.debuggers(LLDB)
def test_ctrl_c_while_its_commands_are_made(tmp_path: Path) -> None:
    from tests.lldb import runner

    again = f"command script import {runner.LOAD}"
    done = plain(tmp_path, [again, LOADED], {}, before=f"exec({REFUSED!r})")
    told = re.findall("^darc: cannot load: .*", done.gdb, re.M)
    assert told == [
        "darc: cannot load: interrupted; 'command script import' of this file tries again"
    ]
    assert "Traceback" not in done.gdb
    assert "nothing is being analysed" in done.gdb


@IN_BOTH
def test_ctrl_c_while_it_loads_from_the_launcher(tmp_path: Path) -> None:
    """It ends as a command that Ctrl-C ends; the launcher is known by what it hands over."""
    before = f"exec({interrupts()!r})"
    done = plain(tmp_path, ["run"], {"DARC_PYTHONPATH": ""}, before=before)
    assert done.status == 130, done.gdb
    assert not re.search("Traceback|^KeyboardInterrupt|^darc:", done.gdb, re.M), done.gdb
    assert done.output == b""


def test_its_terminal_is_gone_while_it_loads(tmp_path: Path) -> None:
    """It ends there; gdb alone would first come into the middle of the attach that is next."""
    hangs_up = INTERRUPTS % "os.kill(os.getpid(), signal.SIGHUP); time.sleep(0.1)"
    done = plain(tmp_path, ["run"], {}, before=f"exec({hangs_up!r})")
    assert done.status == -signal.SIGHUP, done.gdb
    assert done.output == b""


GOES_WRONG = """
import gdb
execute = gdb.execute
def breaks(command, *args, **kwargs):
    if command.startswith("define hook-continue"):
        gdb.execute = execute
        raise gdb.error("no")
    return execute(command, *args, **kwargs)
gdb.execute = breaks
"""


def test_loading_breaks_off_in_the_middle(tmp_path: Path) -> None:
    """Nothing of darc is left: no event, no hook, no command; the user's own hooks are."""
    hook = tmp_path / "hook.gdb"
    hook.write_text("define hook-kill\necho own hook\\n\nend\n")
    shown = [f"show user hook-{name}" for name in ("kill", "detach", "continue")]
    before = f"exec({GOES_WRONG!r}); gdb.execute('source {hook}')"
    commands = ["break main", "run", *shown, LOADED, "kill", f"source {LOAD}", LOADED]
    done = plain(tmp_path, commands, {}, before=before)
    assert len(re.findall("^darc: cannot load: ", done.gdb, re.M)) == 1, done.gdb
    assert "maintenance darc" not in done.gdb
    assert 'Undefined command: "darc"' in done.gdb
    assert re.search("^own hook$", done.gdb, re.M)
    assert "nothing is being analysed" in done.gdb, "it loads afterwards"


def test_a_python_that_is_too_old(tmp_path: Path) -> None:
    before = "import sys; sys.version_info = (3, 9, 2, 'final', 0)"
    done = plain(tmp_path, ["run"], {}, before=before)
    assert "darc: this gdb has Python 3.9; darc needs 3.11 or newer\n" in done.gdb
    assert done.output == find("mixture").output.encode()


@IN_BOTH
def test_a_folder_of_its_own(tmp_path: Path) -> None:
    """Loaded from a place whose name has a blank and a letter beyond ASCII."""
    folder = tmp_path / "dé bugger"
    folder.symlink_to(ROOT)
    name = "darc_gdb" if current() == GDB else "darc_lldb"
    load = folder / name / "load.py"
    if current() != GDB:
        load = Path(f"'{load}'")
    done = plain(tmp_path, [START, "run", "darc status", "kill"], {}, load=load)
    assert "handle: root cause found" in done.gdb, done.gdb


def test_loaded_when_the_program_is_there(tmp_path: Path) -> None:
    """gdb tells of each of darc's stops then: that is said, and what ends it; the answer is whole
    all the same."""
    program = str(build("mixture"))
    words = [f"source {LOAD}", "set args 400000 > program.out", "tbreak main", "run"]
    load = words.pop(0)
    commands = [*words, load, START, "continue", "darc why", "kill", "run", "darc status"]
    command = ["gdb", "-nx", "-q", "-batch", *(p for word in commands for p in ("-ex", word))]
    done = Done(*watched(tmp_path, [*command, program]))
    assert "gdb had this program before darc was loaded" in done.gdb, done.gdb
    assert "'kill' and 'run' end that" in done.gdb
    assert "no 'darc why': gdb had this program" in done.gdb
    assert re.search(r"% of peak \d's time, over \d+ calls", done.gdb), done.gdb


def test_who_is_run_ignores_no_signals(tmp_path: Path) -> None:
    """Python ignores two; what is ignored stays so over an exec."""
    (tmp_path / "tell.sh").write_text("grep SigIgn /proc/self/status > ignored.$1\n")
    shell = ("--args", "/bin/sh", "tell.sh")
    launched = [str(ROOT / ".venv/bin/darc-gdb"), "-nx", "-q", "-batch", "-ex", "run"]
    watched(tmp_path, [*launched, *shell, "darc"])
    watched(tmp_path, ["gdb", "-nx", "-q", "-batch", "-ex", "run", *shell, "bare"])
    told = [(tmp_path / f"ignored.{which}").read_text() for which in ("darc", "bare")]
    assert told[0] == told[1]
