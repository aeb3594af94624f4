"""An analysis that is begun before the program is."""

from __future__ import annotations

from pathlib import Path

from fixtures.build import build, find
from tests.debugger import EXIT, NEWEST_AT_NIGHT, REPORT, debug, undisturbed
from tests.gdb.programs import compiled


def test_program_at_its_first_instruction(tmp_path: Path) -> None:
    """Nothing tells its threads apart yet: darc waits for f0."""
    program, args = build("threads"), ("32000",)
    start = "darc start handle --peak >700us"
    done = debug(tmp_path, program, args, ["starti", start, "continue", REPORT, "continue", EXIT])
    assert "has not begun yet: waits for handle" in done.gdb
    assert set(done.paths) == set(find("threads").paths), done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args)


@NEWEST_AT_NIGHT
def test_a_process_that_shares_the_memory_is_made_before_f0_is_called(tmp_path: Path) -> None:
    """The debugger takes its breakpoints out of the child, and so out of the program: f0 would be
    waited for until the end. One that was written anew would be the end of the child, which says
    so."""
    program, args = build("untraced"), ("80000",)
    start = "darc start handle --peak >150us --start-ops 200"
    done = debug(tmp_path, program, args, [start, "run", REPORT, "continue", EXIT])
    assert "another process shares the program's memory" in done.gdb
    assert set(done.paths) == set(find("untraced").paths), done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args)


CRASHES = """
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
NOINLINE void rest(unsigned op) { if (op % 20 == 0) usleep(2000); sum++; }
NOINLINE void handle(unsigned op) { rest(op); sum++; }
int main(void)
{
    for (unsigned op = 0; op < 3000; op++)
        handle(op);
    abort();
}
"""


def test_a_run_behind_one_that_a_signal_has_ended(tmp_path: Path) -> None:
    """lldb reads no further command of a script then."""
    search = "darc start handle --peak last --start-ops 400 --decision-ops 5"
    commands = ["run", "kill", search, "run", REPORT, "kill"]
    done = debug(tmp_path, compiled(tmp_path, CRASHES), (), commands)
    assert "SIGABRT" in done.gdb, done.gdb
    assert done.paths[0][:2] == ("handle", "rest"), done.gdb
