"""A debugger on a terminal: the live line, Ctrl-C, and a debugger that is killed."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs
from fixtures.build import build, find
from tests.code import altered_code
from tests.debugger import (
    GDB,
    IN_BOTH,
    LLDB,
    NEWEST,
    NEWEST_AT_NIGHT,
    REPORT,
    ROOT,
    Server,
    Terminal,
    current,
    debug,
    gdb_alone,
    let_go,
    mark,
    parent,
    server,
    terminal,
    tracer,
    undisturbed,
)
from tests.kills import programs as hazards
from tests.lldb import runner
from tests.waiting import guardians, wait_for_changes, wait_until, wait_until_it_runs

pytestmark = IN_BOTH

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
LIVE = r"\r\x1b\[K([^\r\n]*handle: [^\r\n]*)"
"""Of an analysis that goes on; not what is told of the work at a stop before."""
ENDLESS = "--start-ops 1000000000"
INTERRUPTED = "SIGINT|SIGSTOP"
"""What gdb and lldb call the user's Ctrl-C."""


@pytest.fixture
def mixture(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(tmp_path, str(build("mixture"))) as made:
        yield made


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("server")) as made:
        yield made


def test_a_session_as_a_person_has_it(mixture: Terminal, tmp_path: Path) -> None:
    assert "waits for handle" in mixture.command("darc start handle --start-ops 2000")
    profile = mixture.command("run 20000 > program.out")
    assert "choose a peak" in profile
    assert "peak" in mixture.command("darc peak >1ms")
    result = mixture.command("continue")
    assert re.search(r"root cause of bins .*handle → flush → write_out → usleep", result), result
    assert re.search(r"main ?\(", mixture.command("bt"))
    assert re.search("exited (normally|with status = 0)", mixture.command("continue"))
    assert mixture.quit() == 0
    assert (tmp_path / "program.out").read_bytes() == undisturbed(build("mixture"), ("20000",))[1]


def test_the_live_line_comes_and_goes(mixture: Terminal) -> None:
    mixture.command(f"darc start handle {ENDLESS}")
    mixture.enter("run 4000000000 > program.out")
    first = mixture.wait_for(LIVE)[1]
    second = mixture.wait_for(LIVE)[1]
    for line in (first, second):
        assert len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= 100
    mixture.type("\x03")
    mixture.wait_for(INTERRUPTED)
    mixture.prompt()
    after = re.split(INTERRUPTED, mixture.seen)[-1]
    assert not re.search(LIVE, after), "the line came back behind the prompt"
    assert "darc: every probe is out" in mixture.command("darc stop")


def test_lines_that_stay_where_the_program_writes_on_the_terminal(mixture: Terminal) -> None:
    """A line that changes would take away what the program has begun to write."""
    mixture.command(f"darc start handle {ENDLESS}")
    begin = len(mixture.seen)
    mixture.enter("run 4000000000")
    for _ in range(2):
        mixture.wait_for(r"darc: handle: profiling[^\r\n]*\r+\n")
    mixture.type("\x03")
    mixture.wait_for(INTERRUPTED)
    mixture.prompt()
    assert not re.search(LIVE, mixture.seen[begin:])


def screen(text: str) -> list[str]:
    """What stands on a terminal on which ``text`` was written, line by line."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            lines.append("")
        elif part == "\r":
            column = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not part.startswith("\x1b"):
            lines[-1] = lines[-1][:column].ljust(column) + part + lines[-1][column + len(part) :]
            column += len(part)
    return lines


def test_the_live_line_at_ctrl_c(mixture: Terminal) -> None:
    """Nothing of it beside or below what the debugger says of the stop, whose words and prompt
    stay; it is there again when the program goes on."""
    mixture.command(f"darc start handle {ENDLESS}")
    mixture.enter("run 4000000000 > program.out")
    for _ in range(3):
        begin = len(mixture.seen)
        mixture.wait_for(LIVE)
        mixture.type("\x03")
        mixture.wait_for(INTERRUPTED)
        mixture.prompt()
        # Twice as long as from one line to the next.
        mixture.type("shell sleep 2\n" if current() == GDB else "platform shell sleep 2\n")
        mixture.prompt()
        seen = mixture.seen[begin:]
        lives = {re.sub(r"\x1b\[[0-9;]*m", "", line)[:20] for line in re.findall(LIVE, seen)}
        assert lives
        shown = screen(seen)
        told = next(n for n, line in enumerate(shown) if re.search(INTERRUPTED, line))
        assert not [line for line in shown[told:] for live in lives if live in line], shown
        assert re.search(r"\((gdb|lldb)\)", shown[-1]), shown
        mixture.enter("continue")
    mixture.wait_for(LIVE)


@NEWEST_AT_NIGHT
def test_ctrl_c_then_on(mixture: Terminal) -> None:
    """At each Ctrl-C the program's own stack, and the analysis goes on afterwards."""
    mixture.command(f"darc start handle {ENDLESS}")
    mixture.enter("run 4000000000 > program.out")
    for _ in range(5):
        mixture.wait_for(LIVE)
        mixture.type("\x03")
        mixture.wait_for(INTERRUPTED)
        mixture.prompt()
        stack = mixture.command("bt")
        assert re.search(r"main ?\(", stack), stack
        mixture.enter("continue")
    mixture.wait_for(LIVE)
    mixture.type("\x03")
    mixture.wait_for(INTERRUPTED)
    mixture.prompt()
    mixture.command("darc stop")
    code = mixture.command(TOOLS) + mixture.command("tell-code")
    assert ", 0 altered" in code


@pytest.mark.debuggers(GDB)
@pytest.mark.parametrize(
    ("start", "then"),
    [
        (f"darc start handle {ENDLESS}", "handle: "),
        ("darc profile handle --time 1h", "handle: stopped"),
        ("darc walk --window 1h", "main: stopped"),
        ("darc why --time 1h", "why: "),
    ],
    ids=["start", "profile", "walk", "why"],
)
def test_ctrl_c_that_the_program_blocks(start: str, then: str, tmp_path: Path) -> None:
    """As database servers do, with which a debugger alone waits for ever."""
    with terminal(tmp_path, "--args", str(build("masked")), "4000000000") as gdb:
        gdb.command(start)
        gdb.enter("run 4000000000 > program.out")
        gdb.wait_for(r"profiling · [1-9]|window 1")
        children = Path(f"/proc/{gdb.pid}/task/{gdb.pid}/children").read_text().split()
        wait_until(
            lambda: any(procfs.blocks(int(one), int(one), signal.SIGINT) for one in children)
        )
        gdb.type("\x03")
        gdb.wait_for("the program blocks it, and was stopped by darc")
        gdb.prompt()
        assert then in gdb.command("darc status")
        assert re.search("main|clone", gdb.command("bt"))
        gdb.command("darc stop")
        for _ in range(2):  # the first one has not stayed in the program, where it hid all others
            gdb.command(start)
            gdb.enter("continue")
            gdb.wait_for(r"profiling · [1-9]|window 1")
            gdb.type("\x03")
            gdb.wait_for("the program blocks it, and was stopped by darc")
            gdb.prompt()
            gdb.command("darc stop")
        code = gdb.command(TOOLS) + gdb.command("tell-code")
        assert ", 0 altered" in code


@NEWEST_AT_NIGHT
def test_ctrl_c_on_a_server(running: Server, tmp_path: Path) -> None:
    with terminal(tmp_path, "-p", str(running.pid)) as gdb:
        gdb.command(f"darc start handle {ENDLESS}")
        gdb.enter("continue")
        gdb.wait_for(LIVE)
        gdb.type("\x03")
        gdb.wait_for(INTERRUPTED)
        gdb.prompt()
        assert re.search(r"main ?\(", gdb.command("bt"))
        assert "every probe is out" in gdb.command("darc stop")
        gdb.command("detach")
    assert running.finish() == 0


def kill_gdb(moment: str, running: Server, tmp_path: Path) -> None:
    options = ENDLESS if moment == "profile" else "--peak >400us --decision-ops 100000"
    with terminal(tmp_path, "-p", str(running.pid)) as gdb:
        gdb.command(f"darc start handle {options}")
        gdb.enter("continue")
        gdb.wait_for(LIVE)
        os.kill(gdb.pid, signal.SIGKILL)
        gdb.wait()
    let_go(running.pid)


@pytest.mark.parametrize("moment", ["profile", "descent"])
def test_the_server_outlives_gdb(moment: str, running: Server, tmp_path: Path) -> None:
    """gdb is killed while pads stand in the server, which goes on as if there were none."""
    kill_gdb(moment, running, tmp_path)
    assert running.finish() == 0


@NEWEST_AT_NIGHT
@pytest.mark.parametrize("moment", ["profile", "descent"])
def test_gdb_is_killed(moment: str, running: Server, tmp_path: Path) -> None:
    """Whoever attaches next finds the pads, and takes them out."""
    kill_gdb(moment, running, tmp_path)
    commands = [TOOLS, "darc start handle --peak >400us", "continue", REPORT]
    commands += [mark("code"), "tell-code", mark("end"), "detach"]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert done.paths == [("handle", "lookup", "burn")], done.gdb
    # A breakpoint that gdb itself had in the loader is not darc's to take out.
    left = re.findall(r"\S+\+0x[0-9a-f]+", done.section("code"))
    assert "bytes compared" in done.section("code")
    assert all(place.startswith("ld-linux") for place in left)
    assert len(left) <= 1
    assert running.finish() == 0


@NEWEST_AT_NIGHT
@pytest.mark.parametrize("moment", ["profile", "descent", "prompt"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_debugger_is_told_to_end(
    number: signal.Signals, moment: str, running: Server, tmp_path: Path
) -> None:
    """By a signal, as when its terminal is closed: the code is the file's own afterwards."""
    options = "--peak >400us --decision-ops 100000" if moment == "descent" else ENDLESS
    leave(number, running, tmp_path, options, at_prompt=moment == "prompt")


@pytest.mark.debuggers(LLDB, NEWEST)  # gdb leaves breakpoints: docs/safety.md
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_debugger_is_told_to_end_with_breakpoints(
    number: signal.Signals, running: Server, tmp_path: Path
) -> None:
    leave(number, running, tmp_path, f"{ENDLESS} --probes breakpoint", at_prompt=False)


def wait_until_it_hears(pid: int, number: signal.Signals) -> None:
    """Until a debugger, at its prompt, blocks the signal no more."""
    while procfs.blocks(pid, pid, number):
        time.sleep(0.01)


@NEWEST_AT_NIGHT
def test_its_terminal_is_gone(running: Server, tmp_path: Path) -> None:
    """While the program runs, as where a connection breaks: lldb hangs then, and would leave every
    patch in the program."""
    with terminal(tmp_path, "-p", str(running.pid)) as debugger:
        debugger.command(f"darc start handle {ENDLESS}")
        debugger.enter("continue")
        debugger.wait_for(LIVE)
        debugger.hang_up()
        let_go(running.pid)
        _, _, altered = altered_code(running.pid)
        assert [place for place in altered if not place.startswith("ld-")] == []
    assert running.finish() == 0


def leave(
    number: signal.Signals, running: Server, folder: Path, options: str, *, at_prompt: bool
) -> None:
    """A debugger on a terminal gets the signal in an analysis, and leaves the program as it was."""
    with terminal(folder, "-p", str(running.pid)) as gdb:
        gdb.command(f"darc start handle {options}")
        gdb.enter("continue")
        if "breakpoint" in options:  # which leave a busy machine no time for the line
            wait_for_changes(running.pid)
        else:
            gdb.wait_for(LIVE)
        if at_prompt:
            gdb.type("\x03")
            gdb.prompt()
            wait_until_it_hears(gdb.pid, number)
        os.kill(gdb.pid, number)
        gdb.wait()
        let_go(running.pid)
        _, breakpoints, altered = altered_code(running.pid)
        assert len(altered) == breakpoints == 0, altered
    assert running.finish() == 0


@pytest.mark.debuggers(GDB)  # whose own note of it is meant
@pytest.mark.parametrize("before", [0, 1], ids=["before", "behind"])
def test_the_terminal_is_closed_between_two_commands_of_a_script(
    before: int, running: Server, tmp_path: Path
) -> None:
    """gdb notes it, and heeds it as soon as the program runs: no probe is to stand in it then, nor
    memory of darc's."""
    mapped = mapped_bytes(running.pid)
    commands = [f"darc start handle {ENDLESS}", "continue"]
    commands.insert(before, "shell kill -HUP $PPID")
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    let_go(running.pid)
    _, _, altered = altered_code(running.pid)
    assert altered == [], done.gdb
    assert mapped_bytes(running.pid) - mapped <= 64 << 10, done.gdb
    assert running.finish() == 0


def mapped_bytes(pid: int) -> int:
    """How much is mapped in a process."""
    return sum(one.end - one.start for one in procfs.regions(pid))


@NEWEST_AT_NIGHT
@pytest.mark.parametrize("moment", ["goes on", "runs"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_debugger_is_told_to_end_in_batch(
    number: signal.Signals, moment: str, running: Server, tmp_path: Path
) -> None:
    """As soon as probes stand in the program, or later; the program runs on without them."""

    def tell() -> None:
        wait_for_changes(running.pid)
        if moment == "runs":
            wait_until_it_runs(running.pid)
        tracing = tracer(running.pid)
        os.kill(tracing if current() == GDB else parent(tracing), number)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    commands = [f"darc start handle {ENDLESS}", "continue"]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert "internal-error" not in done.gdb, done.gdb
    let_go(running.pid)
    _, _, altered = altered_code(running.pid)
    assert altered == [], done.gdb
    assert running.finish() == 0


@NEWEST_AT_NIGHT
@pytest.mark.parametrize("analysis", [f"darc start handle {ENDLESS}", "darc profile * --time 600s"])
def test_debugger_of_threads_is_told_to_end(analysis: str, tmp_path: Path) -> None:
    """gdb waits for each of them at a stop, and would take the signal there: the program was sent
    a SIGINT then, and gdb ended by an error of its own."""
    with hazards.running("threads", tmp_path) as several:

        def tell() -> None:
            wait_for_changes(several.pid)
            several.check()
            tracing = tracer(several.pid)
            os.kill(tracing if current() == GDB else parent(tracing), signal.SIGTERM)

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        done = debug(tmp_path, None, (), [analysis, "continue"], options=["-p", str(several.pid)])
        assert "internal-error" not in done.gdb, done.gdb
        hazards.wait_until_let_go(several.pid)
        several.check()
        assert several.altered() == [], done.gdb
        several.finish()


@pytest.mark.debuggers(GDB)
def test_a_program_that_gets_many_signals_goes_on_where_gdb_is_told_to_end(tmp_path: Path) -> None:
    """gdb stops it to let it go, and leaves a stop of its own in it."""
    with hazards.running("resting", tmp_path) as program:

        def tell() -> None:
            wait_for_changes(program.pid)
            program.check()
            tracing = tracer(program.pid)
            assert tracing, "gdb has let it go by itself"
            os.kill(tracing, signal.SIGTERM)

        threading.Thread(target=tell, daemon=True).start()
        passing = "handle SIGALRM nostop noprint pass"
        commands = [passing, f"darc start handle {ENDLESS}", "continue"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(program.pid)])
        hazards.wait_until_let_go(program.pid)
        wait_until(lambda: not guardians(program.pid))
        program.check()
        assert program.altered() == [], done.gdb
        program.finish()


@pytest.mark.debuggers(GDB)
def test_debugger_is_told_to_end_where_nothing_was_begun(running: Server, tmp_path: Path) -> None:
    """What darc has asked gdb of its program does not bring gdb down."""
    goes_on = f"while grep -q '^State:.t' /proc/{running.pid}/status; do :; done"
    tell = f"shell (debugger=$PPID; {goes_on}; kill -TERM $debugger) &"
    commands = ["darc profile no_such", tell, "continue"]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert "no function is called no_such" in done.gdb
    assert "internal-error" not in done.gdb, done.gdb
    assert running.finish() == 0


def test_nothing_is_asked_in_batch(tmp_path: Path) -> None:
    """A function that no file has is waited for: at a terminal nobody may be there."""
    start, run = "darc start handel", "run 5 > program.out"
    if current() == GDB:
        arguments = ["-batch", "-ex", start, "-ex", run, str(build("mixture"))]
    else:
        arguments = ["-b", str(build("mixture"))]
        for word in runner.translated([start, run]):
            arguments += ["-o", word]
    made = Terminal(tmp_path, arguments)
    try:
        made.wait_for("waits for a library that has it: type 'run'")
        made.wait_for("no function is called handel")
        made.wait()
    finally:
        made.end()
    assert "[n]" not in made.seen, made.seen


@gdb_alone("of gdb's own queue")
def test_it_ends_before_it_has_come_to_all(tmp_path: Path) -> None:
    """gdb by itself dies there of a segmentation fault, and what it has printed may be lost."""
    post = "python from darc_gdb import later; later.post(lambda: None)"
    done = debug(tmp_path, None, (), [post, "echo printed\\n", "quit 5"])
    assert done.gdb.endswith("printed\n")
    assert done.status == 5


def test_no_live_line_where_output_is_no_terminal(tmp_path: Path) -> None:
    """A second and more of profiling, into a file: no escape code, no carriage return."""
    commands = [f"darc start handle {ENDLESS} --max-time 3s", "run", REPORT, "kill"]
    done = debug(tmp_path, build("server"), (), commands)
    assert done.report is not None, done.gdb
    assert "\x1b" not in done.gdb
    assert "\r" not in done.gdb


@gdb_alone("lldb's own breakpoints always wait, and so does darc in it")
def test_pending_is_asked_for(mixture: Terminal) -> None:
    mixture.type("darc start handel\n")
    mixture.wait_for(r"no function is called handel \(near names: handle\).*\(y or \[n\]\) ")
    mixture.type("n\n")
    mixture.wait_for("no function is called handel")
    mixture.prompt()
    assert "nothing is being analysed" in mixture.command("darc status")


@gdb_alone("lldb lets no extension complete: docs/commands.md")
def test_completion_on_the_tab_key(mixture: Terminal) -> None:
    mixture.type("darc sta\t")
    mixture.wait_for("darc sta")
    mixture.type("rt han\t")
    mixture.wait_for("handle")
    mixture.type(" --max-d\t")
    mixture.wait_for("--max-depth")
    mixture.type(" 3\n")
    mixture.wait_for("waits for handle")
    mixture.prompt()


def test_quit_in_the_middle(mixture: Terminal, tmp_path: Path) -> None:
    mixture.command("darc start handle --start-ops 2000")
    mixture.command("run > program.out")
    mixture.command("darc peak >1ms")
    assert mixture.quit() == 0
    assert "Traceback" not in mixture.seen
    assert find("mixture").output.encode() != (tmp_path / "program.out").read_bytes()


@gdb_alone("lldb asks nothing")
def test_ctrl_c_at_a_question(mixture: Terminal) -> None:
    """It ends there at once, as at gdb's own."""
    mixture.type("darc start no_such\n")
    mixture.wait_for(r"\(y or \[n\]\) ")
    mixture.type("\x03")
    mixture.wait_for("Quit")
    mixture.prompt()
    assert "nothing is being analysed" in mixture.command("darc status")
    mixture.type("darc start no_such\n")
    mixture.wait_for(r"\(y or \[n\]\) ")
    assert "waits for a library that has it" in mixture.command("y")


@gdb_alone("gdb tells of another thread before it tells darc of a stop")
def test_the_live_line_is_gone_before_gdb_tells_of_a_stop(tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("threads"))) as made:
        made.command("set print thread-events off")
        # a time, since 2000 calls may all be of threads that meet no slow operation
        made.command("darc start handle --peak last --start-time 1s")
        told = made.command("run 400000 > program.out")
    assert "root cause of" in told, told
    _check_lines_begin_with_switches(told)


@gdb_alone("gdb tells of another thread before it tells darc of a stop")
def test_the_live_line_is_gone_at_the_users_breakpoint_in_another_thread(tmp_path: Path) -> None:
    with terminal(tmp_path, str(build("threads"))) as made:
        made.command("set print thread-events off")
        made.command("darc start handle --peak last --start-ops 100000000")
        made.command("break handle")
        made.command("ignore 1 10000")
        told = made.command("run 4000000 > program.out")
        for _ in range(3):
            made.command("ignore 1 10000")
            told += made.command("continue")
    assert "darc: handle: " in told, told  # the line was there
    assert "[Switching to" in told, told
    _check_lines_begin_with_switches(told)


QUICK = "import darc.app.progress as told; told._SILENT_SECONDS = told._BETWEEN = 0.001"
"""What is done is told at once, where it takes a second else."""


def test_the_live_line_is_gone_before_the_debugger_tells_that_it_goes_on(tmp_path: Path) -> None:
    """What darc does before the program goes on is told in it."""
    (tmp_path / "quick.py").write_text(QUICK)
    goes_on = "Continuing." if current() == GDB else r"Process \d+ resuming"
    with terminal(tmp_path, str(build("manycallees"))) as made:
        made.command(TOOLS)
        made.command("break main")
        made.command("run 100000000 > program.out")
        made.command(f"with-app {tmp_path / 'quick.py'}")
        made.command("darc walk --time 5s")
        begin = len(made.seen)
        made.enter("continue")
        found = made.wait_for(rf"[^\r\n]*{goes_on}")
        told = made.seen[begin:]
        made.wait_for(r"window 1")
        made.type("\x03")
        made.prompt()
    assert re.search(r"\x1b\[Kdarc: main: window 1", told), told  # the line was there
    assert re.fullmatch(rf"(.*\x1b\[K)?{goes_on}", found[0]), found[0]


@pytest.mark.debuggers(LLDB, NEWEST, long=(NEWEST,))
def test_no_live_line_where_the_user_types(running: Server, tmp_path: Path) -> None:
    """lldb's prompt is there while an attached program runs."""
    with terminal(tmp_path, "-p", str(running.pid)) as made:
        made.command(f"darc start handle {ENDLESS}")
        for _ in range(2):
            made.enter("continue")
            made.wait_for(LIVE)
            made.type("dar")
            made.wait_for(r"\r\x1b\[K\(lldb\) ")
            begin = len(made.seen)
            made.type("c status\n")
            made.wait_for("calls seen")
            made.type("darc status\n")
            made.wait_for("calls seen")
            made.prompt()
            assert not re.search(LIVE, made.seen[begin:]), made.seen[begin:]
            made.type("\x03")
            made.wait_for(INTERRUPTED)
            made.prompt()
        assert "every probe is out" in made.command("darc stop")
        made.command("detach")
    assert running.finish() == 0


def _check_lines_begin_with_switches(told: str) -> None:
    for line in told.replace("\r\x1b[K", "\n").splitlines():
        assert not re.search(r"\S.*\[Switching to", line), line


@pytest.mark.debuggers(GDB)
@pytest.mark.parametrize("doing", ["looks for functions in file", "looks for handle"])
def test_debugger_is_told_to_end_while_it_prepares(
    doing: str, running: Server, tmp_path: Path
) -> None:
    """It does not first do all that it was asked for, which takes long in a large program."""
    (tmp_path / "told.py").write_text(
        "import os, signal\n"
        "from darc.app import progress\n"
        "tell = progress.Progress.__call__\n"
        "def told(self, text):\n"
        f"    if text.startswith({doing!r}):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    tell(self, text)\n"
        "progress.Progress.__call__ = told\n"
    )
    command = "darc profile *" if "file" in doing else "darc start handle"
    commands = ["source told.py", command, mark("status"), "darc status", "continue"]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert done.section("status").startswith("darc: nothing is being analysed"), done.gdb
    assert "internal" not in done.gdb, done.gdb
    wait_until(lambda: not tracer(running.pid))


@pytest.mark.debuggers(LLDB, NEWEST)
def test_ctrl_c_while_probes_are_made(tmp_path: Path) -> None:
    """lldb forgets one that comes while the program stands still."""
    (tmp_path / "told.py").write_text(
        "import os, signal\n"
        "from darc.app import progress\n"
        "over = progress.Progress.over\n"
        "def pressed(self, text):\n"
        "    if text.startswith('makes the probes'):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return over(self, text)\n"
        "progress.Progress.over = pressed\n"
    )
    with terminal(tmp_path, str(build("mixture"))) as made:
        made.command("command script import told.py")
        made.command(f"darc start handle {ENDLESS}")
        told = made.command("run 4000000000 > program.out")
        if "stopped" not in told:  # lldb asks for commands already
            made.wait_for("stopped")
            made.prompt()
        assert "Ctrl-C came while darc was at work at this stop" in made.seen, made.seen
        assert "handle: profiling" in made.command("darc status")
        made.enter("continue")
        made.wait_for(LIVE)
