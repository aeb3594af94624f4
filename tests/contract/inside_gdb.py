"""Sourced into gdb: one check of the contract on gdb's target. The last line of the output is
``contract: kept`` when it holds."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *os.environ["CONTRACT_PACKAGES"].split(os.pathsep)]

import gdb  # noqa: E402

import darc_gdb.target  # noqa: E402
from darc.target.outcome import Outcome  # noqa: E402
from darc_gdb.callbacks import GdbCallbacks  # noqa: E402
from darc_gdb.target import GdbTarget  # noqa: E402
from tests.contract.checks import CHECKS  # noqa: E402
from tests.contract.world import World  # noqa: E402


class GdbWorld(World):
    """The program in this gdb. Events go to the target as darc's commands for gdb send them."""

    def __init__(self) -> None:
        self._shown = Path("shown.txt")
        target = self.target = darc_gdb.target.TARGET = GdbTarget()
        target.inferiors.serve(GdbCallbacks(failed=self._failed))
        self.failures: list[Exception] = []
        target.announce()
        for registry, handler in target.handlers.all():
            registry.connect(handler)

        def on_stop(event: gdb.StopEvent) -> None:
            if target.handlers.take_stop(event) is Outcome.STOP:
                target.handlers.at_prompt()

        gdb.events.stop.connect(on_stop)
        gdb.events.exited.connect(lambda _event: target.handlers.ended())
        self._breakpoints: dict[int, gdb.Breakpoint] = {}
        self._stop_here = gdb.Breakpoint("*stop_here")

    def _failed(self, error: Exception) -> None:
        self.failures.append(error)
        traceback.print_exception(error)

    def start(self) -> None:
        gdb.execute("run")

    def go(self) -> int | None:
        gdb.execute("continue")
        assert not self.failures, self.failures
        thread = gdb.selected_thread()
        return None if thread is None else int(gdb.newest_frame().pc())

    def kill(self) -> None:
        gdb.execute("kill")

    def address(self, name: str) -> int:
        return int(gdb.parse_and_eval(f"(long)&{name}"))

    def set_breakpoint(self, address: int) -> None:
        self._breakpoints[address] = gdb.Breakpoint(f"*{address:#x}")

    def clear_breakpoint(self, address: int) -> None:
        self._breakpoints.pop(address).delete()

    def set_pending(self, accept: bool) -> None:
        gdb.execute(f"set breakpoint pending {'on' if accept else 'off'}")

    def shown(self) -> str:
        gdb.flush()
        return Path("debugger.out").read_text(errors="replace")


def keep() -> None:
    try:
        CHECKS[os.environ["CONTRACT_CHECK"]](GdbWorld())
    except BaseException:  # whatever it is, the test is told
        traceback.print_exc(file=sys.stdout)
        return
    print("\ncontract: kept")


# The commands of breakpoints are run as code of the main module.
gdb.execute("python import darc_gdb.target")
keep()
