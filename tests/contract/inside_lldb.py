"""Imported into lldb: one check of the contract on lldb's target. The last line of the output is
``contract: kept`` when it holds."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *os.environ["CONTRACT_PACKAGES"].split(os.pathsep)]

import lldb  # noqa: E402

import darc_lldb.stophook  # noqa: E402
from darc.app.app import App  # noqa: E402
from darc_lldb.callbacks import LldbCallbacks  # noqa: E402
from darc_lldb.debuggers import DEBUGGERS, InDebugger  # noqa: E402
from darc_lldb.target import LldbTarget  # noqa: E402
from tests.contract.checks import CHECKS  # noqa: E402
from tests.contract.world import World  # noqa: E402


class LldbWorld(World):
    """The program in this lldb, with darc's stop hook."""

    target: LldbTarget

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        self._debugger = debugger
        debugger.SetAsync(False)
        self.target = LldbTarget(debugger)
        no_app = cast(App, None)  # no command is given
        DEBUGGERS[debugger.GetID()] = InDebugger(self.target, no_app)
        self.target.inferior.serve(lambda: False, LldbCallbacks(failed=self._failed))
        self.failures: list[Exception] = []
        self._execute("target stop-hook add -P darc_lldb.stophook.StopHook")
        self.target.prepare()
        self._breakpoints: dict[int, int] = {}
        target = debugger.GetSelectedTarget()
        target.BreakpointCreateBySBAddress(self._symbol("stop_here").GetStartAddress())

    def _failed(self, error: Exception) -> None:
        self.failures.append(error)
        traceback.print_exception(error)

    def _execute(self, command: str) -> None:
        result = lldb.SBCommandReturnObject()
        self._debugger.GetCommandInterpreter().HandleCommand(command, result)
        assert result.Succeeded(), (command, result.GetError())

    @property
    def _process(self) -> lldb.SBProcess:
        return self._debugger.GetSelectedTarget().GetProcess()

    def start(self) -> None:
        self._execute("process launch")
        # The program's own, which lldb stops at by default.
        self._process.GetUnixSignals().SetShouldStop(signal.SIGURG, False)

    def go(self) -> int | None:
        error = self._process.Continue()
        assert error.Success(), error
        assert not self.failures, self.failures
        self.target.catch_up()
        if self._process.GetState() != lldb.eStateStopped:
            return None
        return int(self._process.GetSelectedThread().GetFrameAtIndex(0).GetPC())

    def kill(self) -> None:
        error = self._process.Kill()
        assert error.Success(), error
        self.target.catch_up()

    def address(self, name: str) -> int:
        target = self._debugger.GetSelectedTarget()
        return int(self._symbol(name).GetStartAddress().GetLoadAddress(target))

    def _symbol(self, name: str) -> lldb.SBSymbol:
        (context,) = self._debugger.GetSelectedTarget().GetModuleAtIndex(0).FindSymbols(name)
        return context.GetSymbol()

    def set_breakpoint(self, address: int) -> None:
        made = self._debugger.GetSelectedTarget().BreakpointCreateByAddress(address)
        self._breakpoints[address] = made.GetID()
        self.target.look_at_breakpoints()

    def clear_breakpoint(self, address: int) -> None:
        number = self._breakpoints.pop(address)
        self._debugger.GetSelectedTarget().BreakpointDelete(number)
        self.target.look_at_breakpoints()

    def set_pending(self, accept: bool) -> None:
        """lldb has no such setting: its own breakpoints always wait."""

    def shown(self) -> str:
        return Path("debugger.out").read_text(errors="replace")


def __lldb_init_module(debugger: lldb.SBDebugger, namespace: dict[str, object]) -> None:
    namespace["darc_lldb"] = darc_lldb
    try:
        CHECKS[os.environ["CONTRACT_CHECK"]](LldbWorld(debugger))
    except BaseException:  # whatever it is, the test is told
        traceback.print_exc(file=sys.stdout)
        return
    print("\ncontract: kept")
