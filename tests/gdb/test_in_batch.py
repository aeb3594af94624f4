"""Analyses in a script, where nobody is there to type: what is known at any end is told, and
signals that the program handles are no end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import debugger
from tests.gdb.programs import compiled

SOURCE = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum, heard;
static void hear(int number) { heard += number; }
NOINLINE void wait_here(void) { usleep(4000); sum++; }
NOINLINE void handle(unsigned op)
{
    if (op % 5 == 0)
        wait_here();
    for (unsigned i = 0; i < 20000; i++)
        sum++;
}
static int tracer(void)
{
    char line[200];
    int pid = 0;
    FILE *status = fopen("/proc/self/status", "r");

    while (fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %d", &pid);
    fclose(status);
    return pid;
}
int main(int argc, char **argv)
{
    unsigned ops = argc > 1 ? atoi(argv[1]) : 1000000000;
    const char *does = argc > 1 ? argv[2] : "signals";

    signal(SIGUSR1, hear);
    signal(SIGHUP, hear);
    for (unsigned op = 0; op < ops; op++) {
        handle(op);
        if (!strcmp(does, "signals") && op % 100 == 50)
            raise(op % 200 < 100 ? SIGUSR1 : SIGHUP);
    }
    if (!strcmp(does, "killed"))
        raise(SIGKILL);
    while (!strcmp(does, "told")) {
        kill(tracer(), SIGTERM);
        for (unsigned op = 0; op < 1000; op++)
            handle(op);
    }
    printf("%lu heard\\n", heard);
}
"""

ANALYSES = {
    "walk": "darc walk --window 100ms",
    "profile": "darc profile handle wait_here --time 10min",
    "why": "darc why --time 20min",
}

COMMANDS = {**ANALYSES, "start": "darc start handle --start-ops 1000000"}

SHOWN = {
    "walk": r"^  1  main 100\.0% → handle",
    "profile": r"^1 .* handle$",
    "why": r"^(1 )?handle: \d+ of \d+ calls take about ",
    "start": r"^ +peak +bins +latency +calls +share$",
}


def _check(analysis: str, done: debugger.Done) -> None:
    """Whether ``handle``'s calls are known, as far as they were when the program ended."""
    assert done.report is not None, done.gdb
    if analysis == "walk":
        chains = [chain for group in done.report["walk"]["groups"] for chain in group["chains"]]
        assert chains[0]["functions"][:2] == ["main", "handle"], done.gdb
    elif analysis == "profile":
        rows = done.report["set"]["functions"]
        calls = {one["function"]: sum(one["bins"].values()) for one in rows}
        assert calls["handle"] > 4 * calls["wait_here"] > 0, done.gdb
    else:
        found = done.report["why"]
        told = [one["function"] for one in (*found["answers"], *found["open"])]
        assert "handle" in told, done.gdb
        assert found["calls"] > 0


@debugger.IN_BOTH
@pytest.mark.parametrize("analysis", ANALYSES)
def test_what_is_known_of_a_program_that_is_killed(analysis: str, tmp_path: Path) -> None:
    """Nothing can be read any more then: what the latest looks have shown stays."""
    program = compiled(tmp_path, SOURCE)
    commands = [ANALYSES[analysis], "run", debugger.REPORT]
    done = debugger.debug(tmp_path, program, ("3000", "killed"), commands)
    _check(analysis, done)


@debugger.IN_BOTH
def test_calls_of_a_program_that_is_killed_are_not_none(tmp_path: Path) -> None:
    program = compiled(tmp_path, SOURCE)
    commands = [COMMANDS["start"], "run", "darc status", debugger.REPORT]
    done = debugger.debug(tmp_path, program, ("3000", "killed"), commands)
    assert re.search(r"^  \d+ calls seen, and no later one could be read: ", done.gdb, re.M), (
        done.gdb
    )
    assert done.report is not None
    assert sum(done.report["profile"]["bins"].values()) > 0, done.gdb
    done = debugger.debug(tmp_path, program, ("5", "killed"), commands)
    told = (
        r"^  (its calls could not|[1-5] calls? seen, and no later one could) be read: the program"
    )
    assert re.search(told, done.gdb, re.M), done.gdb
    assert "0 calls seen" not in done.gdb


@debugger.IN_BOTH
@pytest.mark.parametrize("analysis", ANALYSES)
def test_a_limit_for_all_of_it(analysis: str, tmp_path: Path) -> None:
    """``--time`` of a walk, and ``max-time`` for each."""
    program = compiled(tmp_path, SOURCE)
    commands = ["set darc max-time 5s", ANALYSES[analysis], "run", debugger.REPORT, "kill"]
    if analysis == "walk":
        commands[:2] = [f"{ANALYSES[analysis]} --time 3s"]
    done = debugger.debug(tmp_path, program, ("1000000000", "runs"), commands)
    _check(analysis, done)


@pytest.mark.parametrize("analysis", SHOWN)
def test_what_is_known_as_gdb_is_told_to_end(analysis: str, tmp_path: Path) -> None:
    """As by ``timeout``: it is shown before gdb goes. The program tells gdb so by itself."""
    program = compiled(tmp_path, SOURCE)
    done = debugger.debug(tmp_path, program, ("3000", "told"), [COMMANDS[analysis], "run"])
    assert re.search(SHOWN[analysis], done.gdb, re.M), done.gdb


@pytest.mark.parametrize("analysis", SHOWN)
def test_what_is_known_as_the_script_ends(analysis: str, tmp_path: Path) -> None:
    """A breakpoint of the user's ends the wait, and no command comes behind it."""
    program = compiled(tmp_path, SOURCE)
    commands = ["break tracer", COMMANDS[analysis], "run"]
    done = debugger.debug(tmp_path, program, ("3000", "told"), commands)
    assert re.search(SHOWN[analysis], done.gdb, re.M), done.gdb


@debugger.IN_BOTH
def test_a_signal_that_the_program_handles_ends_nothing(tmp_path: Path) -> None:
    """Nobody is there to go on at a stop for it, and it comes to the program as ever."""
    program, args = compiled(tmp_path, SOURCE), ("3000", "signals")
    commands = ["darc start handle --peak last --start-ops 400", "run", debugger.REPORT]
    done = debugger.debug(tmp_path, program, args, [*commands, "delete", "continue", debugger.EXIT])
    assert [path[:2] for path in done.paths] == [("handle", "wait_here")], done.gdb
    told = re.findall(r"darc: (SIG\w+) is passed on to the program, which has a handler", done.gdb)
    assert sorted(told) == ["SIGHUP", "SIGUSR1"], done.gdb


@debugger.EVERYWHERE
def test_at_a_terminal_such_a_stop_is_the_users(tmp_path: Path) -> None:
    """Who is there hears once that the analysis is not over, and what to type."""
    program = compiled(tmp_path, SOURCE)
    with debugger.terminal(tmp_path, str(program)) as shown:
        shown.command("darc start handle --peak last --start-ops 4000")
        first = shown.command("run")
        again = shown.command("continue")
        shown.quit()
    told = "darc: the analysis of handle is not done: SIGUSR1, which the program has a handler for"
    words = " ".join(first.split())
    assert told in words, first
    assert re.search(r"with '[^']+SIGUSR1[^']*' it does not stop for that", words), first
    assert told not in " ".join(again.split()), again


def test_every_report_of_a_killed_program_is_whole(tmp_path: Path) -> None:
    """Its JSON is that of any other end."""
    program = compiled(tmp_path, SOURCE)
    commands = [ANALYSES["profile"], "run", "darc report --format json -o out.json"]
    debugger.debug(tmp_path, program, ("1500", "killed"), commands)
    known = json.loads((tmp_path / "out.json").read_text())
    assert known["status"] == "program ended"
    assert known["set"]["seconds"] > 0
