"""Before darc enters a process: what must hold, what is cleaned up, how the agent is set."""

from __future__ import annotations

from darc import clock, procfs
from darc.agent.memory import AgentMemory
from darc.code.program import Program
from darc.denial import denied, entered_otherwise
from darc.errors import NotFoundError, UnsupportedError
from darc.ftree import Function
from darc.implant import clean_up
from darc.process_foothold import left_behind
from darc.target import Target

_BELL_SIGNALS = (23, 28, 18)  # SIGURG, SIGWINCH, SIGCONT: ignored by default
_GO_SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid")
"""What tells a Go program, in every version and build mode of Go, also when it is stripped."""

_PATIENCE_SECONDS = 10.0
"""How long the pads go on without a sign of life from the debugger."""


def check(target: Target, program: Program, function: Function, spec: str) -> list[str]:
    """What is to be told of this machine and program before ``function`` is timed, which the user
    knows as ``spec``.

    Raises:
        UnsupportedError: it cannot be timed.
    """
    notes = []
    clock.tsc_hz()  # an error where it cannot be read
    target.check_supported()
    if not clock.tsc_is_invariant():
        notes.append("this machine's time-stamp counter is not invariant: latencies may be off")
    for module in program.modules:
        if any(map(module.image.has_section, _GO_SECTIONS)):
            raise UnsupportedError(
                f"{module.name} is a Go program, whose runtime moves stacks: "
                "darc cannot time it yet"
            )
    reason = denied(program, function) or entered_otherwise(program, function)
    if reason is not None:
        raise UnsupportedError(f"cannot time {spec}: {reason}")
    return notes


def clean_up_after_another(target: Target, program: Program, pid: int) -> list[str]:
    """Takes out what a debugger that was killed left in this process; tells of it.

    Raises:
        UnsupportedError: it was one of another version.
    """
    notes = []
    with procfs.Memory(pid) as memory:
        for left in left_behind(target, memory, procfs.regions(pid)):
            if restored := clean_up(target, left.tables, left.is_pad):
                program.forget_code()
                notes.append(
                    f"an earlier debugger had left {restored} probes in the program: "
                    "they were taken out"
                )
    return notes


def configure(target: Target, tables: AgentMemory, pid: int, thread: int | str, needed: int) -> int:
    """Sets the agent up to ring after ``needed`` calls of f0, by ``thread`` or by "all".

    Returns the number of the signal that it rings with.

    Raises:
        NotFoundError: there is no such thread.
    """
    signal = bell_signal(pid)
    may_ring = not procfs.in_sandbox(pid)
    only = 0
    if isinstance(thread, int):
        if thread not in target.threads():
            raise NotFoundError(f"the program has no thread {thread}: 'info threads' lists them")
        only = target.read_register(thread, "fs_base")
    tables.set(
        bell_signal=signal if may_ring else 0,
        no_calls=int(not may_ring),
        process=_own_pid(pid),
        needed=needed,
        batch=batch_size(needed),
        only_thread=only,
        patience=int(_PATIENCE_SECONDS * clock.tsc_hz()),
    )
    return signal


def bell_signal(pid: int) -> int:
    """A signal that is ignored by default and that the process has no handler for."""
    return next((s for s in _BELL_SIGNALS if not procfs.catches(pid, s)), _BELL_SIGNALS[-1])


def batch_size(ops: int) -> int:
    """How many calls a thread keeps to itself before it adds them to the common count: the
    largest divisor of ``ops`` that keeps the count fine enough."""
    return next(b for b in range(max(1, min(64, ops // 64)), 0, -1) if ops % b == 0)


def _own_pid(pid: int) -> int:
    """The process id as the program itself sees it (a container has its own)."""
    numbers = procfs.status(pid).get("NSpid", str(pid)).split()
    return int(numbers[-1])
