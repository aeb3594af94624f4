"""Commands for tests, to be imported into lldb: those of :mod:`tests.inside_gdb`.

tell-code           compares the code of every mapped file with the file, byte for byte
watch-code PLACE    does so when the program is at PLACE, until some differ, without a user's stop
tell-watched        tells how many bytes were other ones there, but for breakpoints
start-at OFFSET …   'darc start' on the function there in the program's file, with these options
tell-exit           tells what the program has ended with
with-app FILE       runs Python with 'app' (darc's), 'execute' (commands) and 'tid' (the thread's)
interrupt-at N      stops the program once darc has seen N calls, while it runs
attempt COMMAND     shows the error of a command, at which lldb would end in batch
complete LINE       shows what the last word of a command line can become, a whole line for each
slow-decisions      lets each stop last for a second longer
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import lldb

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))
from tests.code import compare_code  # noqa: E402


def altered_code(process: lldb.SBProcess) -> tuple[int, list[str]]:
    """How many bytes of code were compared, and ``file+offset`` of each that is another one and
    not a breakpoint of lldb's."""
    compared, differences = compare_code(process.GetProcessID())
    altered = [
        one.place
        for one in differences
        if process.ReadMemory(one.address, 1, lldb.SBError()) != bytes([one.stored])
    ]
    return compared, altered


def tell_code(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    compared, altered = altered_code(debugger.GetSelectedTarget().GetProcess())
    print(f"code: {compared} bytes compared, {len(altered)} altered: {' '.join(altered[:20])}")


class Watch:
    most = 0


def watch_code(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    Watch.most = 0
    made = debugger.GetSelectedTarget().BreakpointCreateByName(argument)
    made.SetScriptCallbackFunction(f"{__name__}.look_at_code")


def look_at_code(
    frame: lldb.SBFrame,
    location: lldb.SBBreakpointLocation,
    extra: lldb.SBStructuredData,
    namespace: dict[str, object],
) -> bool:
    """Looks at the code while the program is under way: lldb's own breakpoints stand in it then."""
    process = frame.GetThread().GetProcess()
    Watch.most = Watch.most or len(altered_code(process)[1])
    # Once is enough. But lldb stops if several threads are at one that the first of them disables.
    here = sum(thread.GetStopReason() == lldb.eStopReasonBreakpoint for thread in process)
    if Watch.most and here == 1:
        location.GetBreakpoint().SetEnabled(False)
    return False


def tell_watched(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    print(f"watched: {Watch.most} altered")


def attempt(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    own = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(argument, own)
    sys.stdout.write((own.GetOutput() or "") + (own.GetError() or "").removeprefix("error: "))


def complete(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    found = lldb.SBStringList()
    interpreter = debugger.GetCommandInterpreter()
    interpreter.HandleCompletion(argument, len(argument), 0, -1, found)
    before = argument[: argument.rfind(" ") + 1]
    for number in range(1, found.GetSize()):  # the first is what they have in common
        print(before + found.GetStringAtIndex(number).strip())


def start_at(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    offset, _, options = argument.partition(" ")
    target = debugger.GetSelectedTarget()
    header = target.GetModuleAtIndex(0).GetObjectFileHeaderAddress()
    address = header.GetLoadAddress(target) - header.GetFileAddress() + int(offset, 16)
    attempt(
        debugger,
        f"darc start *{address:#x} {options}",
        result=result,
        namespace=namespace,
    )


def tell_exit(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    process = debugger.GetSelectedTarget().GetProcess()
    ended = process.GetState() == lldb.eStateExited
    print("program exit:", process.GetExitStatus() if ended else None)


def with_app(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    from darc_lldb.debuggers import DEBUGGERS

    def execute(command: str) -> None:
        own = lldb.SBCommandReturnObject()
        debugger.GetCommandInterpreter().HandleCommand(command, own)
        sys.stdout.write((own.GetOutput() or "") + (own.GetError() or ""))

    script = compile(Path(argument).read_text(), argument, "exec")
    thread = debugger.GetSelectedTarget().GetProcess().GetSelectedThread()
    exec(
        script,
        {"app": DEBUGGERS[debugger.GetID()].app, "execute": execute, "tid": thread.GetThreadID()},
    )


def slow_decisions(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    from darc.session.session import Session
    from darc.target.outcome import Outcome

    decide = Session._decide
    moment = threading.Event()

    def decide_slowly(session: Session) -> Outcome:
        moment.wait(1)
        return decide(session)

    Session._decide = decide_slowly  # type: ignore[method-assign, assignment]


def interrupt_at(
    debugger: lldb.SBDebugger,
    argument: str,
    result: lldb.SBCommandReturnObject,
    namespace: dict[str, object],
) -> None:
    from darc_lldb.debuggers import DEBUGGERS

    app = DEBUGGERS[debugger.GetID()].app
    wanted = int(argument)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            session = app.session
            if session is not None and session.alive and session.collector.counting.seen >= wanted:
                assert session.remains is not None
                os.kill(session.remains.identity, signal.SIGSTOP)
                return

    threading.Thread(target=watch, daemon=True).start()


COMMANDS = (
    tell_code,
    watch_code,
    tell_watched,
    interrupt_at,
    attempt,
    complete,
    slow_decisions,
    with_app,
    start_at,
    tell_exit,
)


def __lldb_init_module(debugger: lldb.SBDebugger, namespace: dict[str, object]) -> None:
    for command in COMMANDS:
        name = command.__name__
        debugger.HandleCommand(
            f"command script add -o -f {__name__}.{name} {name.replace('_', '-')}"
        )
