"""Before darc enters a process: what must hold, and what is cleaned up."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from signal import SIGCHLD, SIGCONT

from darc.code import runtimes
from darc.code.live import REWRITTEN
from darc.code.notrace import NEVER_BACK, entered_otherwise, why_notrace
from darc.code.patchable import SHARED
from darc.code.processor import PATCH_REACH, PROGRAM_COUNTER
from darc.code.program import Program
from darc.debuggee import clock, journal, procfs
from darc.debuggee.bell import SIGNALS
from darc.debuggee.leftbehind import (
    LeftBehind,
    give_back,
    give_back_noted,
    left_behind,
    references_of,
)
from darc.debuggee.leftbreaks import take_out_breakpoints
from darc.debuggee.references import interrupted
from darc.model.errors import TargetError, UnsupportedError
from darc.model.ftree import Function
from darc.pads.restoring import clean_up, taken_out
from darc.target.target import Passage, Target

_MUCH = 4 << 20
"""Bytes that are told in MiB."""


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
    check_runtimes(program)
    if not program.knows(function.address):
        notes.append(
            f"the debugger itself has read another file for {function.module} than the program has "
            "mapped: what it shows of that is wrong"
        )
    reason = why_notrace(program, function) or entered_otherwise(program, function)
    if reason is not None and program.live.is_rewritten(function.address, PATCH_REACH):
        reason = REWRITTEN  # what is no code any more tells nothing
    if program.mapped.is_shared(function.address):
        reason = SHARED
    if any(name in NEVER_BACK for name in program.names.at(function.address)):
        reason = "it never returns"
    if reason is not None:
        raise UnsupportedError(f"cannot time {spec}: {reason}")
    return notes


def check_runtimes(program: Program) -> None:
    """
    Raises:
        UnsupportedError: a file of ``program`` has code whose runtime looks for return addresses,
            or cannot be had: what is in it nobody can tell, an unwinder, say.
    """
    for line in program.missed:
        raise UnsupportedError(line)
    for module in program.modules:
        runtimes.check(module.image, module.name)


def clean_up_after_another(
    target: Target,
    program: Program,
    pid: int,
    *,
    own: journal.ProcessJournal,
    unmap: bool = True,
    of_memory: bool = False,
) -> list[str]:
    """Takes out what a debugger that was killed left in this process, by what is noted in it and
    outside of it, and gives its memory back; tells of it, and ``of_memory`` where that is wanted.

    Raises:
        UnsupportedError: it was one of another version, and nothing is noted outside.
    """
    noted = journal.left(pid)
    stopped = target.is_stopped_for_all()  # before anything runs for darc
    with procfs.MemoryFile(pid) as memory:
        left = _take_out(target, memory, pid, noted)
        if left.restored:
            program.forget_code()
        notes = [*_told_of(left)]
        if unmap:  # else its parent's debugger lives, and so may have breakpoints of its own in it
            notes += take_out_breakpoints(target, program, pid, is_known=noted is not None)
        notes += _let_go_on(target, pid, noted, own=own, rang=left.rang, stopped=stopped)
        # Tables alone tell of none that was killed: a clean end leaves them, too.
        is_known = noted is not None and not noted.went_on
        notes += _let_children_go(pid, is_known=is_known)
        if left.waiting or left.comes_back:
            return notes
        if noted is not None:  # before what is noted as mapped is not any more
            noted.remove()
            own.begin_anew()
        if unmap:
            told = _give_back(target, memory, program, pid, agents=left.agents, noted=noted)
            notes += told if of_memory else ()
    return notes


def _give_back(
    target: Target,
    memory: procfs.MemoryFile,
    program: Program,
    pid: int,
    *,
    agents: Sequence[LeftBehind],
    noted: journal.Left | None,
) -> list[str]:
    """Unmaps what an earlier debugger had mapped and nothing needs; what the user may know of that,
    and of what stays."""
    used = references_of(agents, target, memory=memory, program=program, pid=pid)
    sizes = {one.tables.control: one.size for one in agents}
    kept = give_back(agents, used, target, pid)
    unmapped = sum(size for control, size in sizes.items() if control not in kept)
    if noted is not None:
        unmapped += give_back_noted(
            target, memory, program=program, pid=pid, noted=noted.mapped, leaving=noted.leaving
        )
    told = [
        f"{_size(sizes[control])} of an earlier debugger's memory stay in the program: "
        f"{_why(found)}"
        for control, found in kept.items()
    ]
    if unmapped:
        told.insert(
            0,
            f"an earlier debugger had left {_size(unmapped)} of its memory in the program, which "
            "is given back",
        )
    return told


def _why(found: frozenset[int] | None) -> str:
    """Why memory stays to which that leads."""
    if found is None:
        return "what may lead to it is in more memory than is looked through"
    if found:
        return (
            "something may lead to it still: let the program go on for a moment, then type "
            "'darc stop'"
        )
    return "the program may be killed for giving it back"


def _size(size: int) -> str:
    return f"{size >> 10} KiB" if size < _MUCH else f"{size >> 20} MiB"


@dataclass
class _TakenOut:
    """What an earlier debugger had left, as far as it is out."""

    restored: int = 0
    """Places in the program's code."""
    rang: bool = False
    """Whether an agent had asked for a stop."""
    agents: list[LeftBehind] = field(default_factory=list)
    waiting: Sequence[int] = ()
    """Threads that have to leave borrowed code by themselves."""
    comes_back: bool = False
    """Whether a signal's handler comes back there."""


def _take_out(
    target: Target, memory: procfs.MemoryFile, pid: int, noted: journal.Left | None
) -> _TakenOut:
    """By the tables in the program, and by what was noted outside of it."""
    found = _TakenOut()
    try:
        for left in left_behind(target, memory, procfs.regions(pid)):
            found.rang = found.rang or bool(left.tables.bell)
            retire = partial(left.retire, target, memory, pid)
            found.restored += clean_up(
                target, left.tables, is_pad=left.is_pad, own_back=left.own_back, retire=retire
            )
            found.agents.append(left)
    except (TargetError, UnsupportedError):
        if noted is None:
            raise
    if noted is not None:
        found.comes_back = _handlers_in(target, memory, pid, noted)
        found.waiting = _let_out(target, noted)
        found.restored += _put_back(target, noted)
    return found


def _told_of(found: _TakenOut) -> Iterator[str]:
    """What the user should know of what was taken out, and of what could not be."""
    if found.restored:
        yield taken_out(found.restored, "program")
    if found.waiting:
        listed = ", ".join(map(str, found.waiting))
        yield (
            f"thread {listed} is on its way through code of an earlier debugger's: let the "
            "program go on for a moment, then type 'darc stop'"
        )
    if found.comes_back:
        yield (
            "a signal's handler comes back to code of an earlier debugger's: let the program "
            "go on for a moment, then type 'darc stop'"
        )


def _let_go_on(
    target: Target,
    pid: int,
    noted: journal.Left | None,
    *,
    own: journal.ProcessJournal,
    rang: bool,
    stopped: bool,
) -> Iterator[str]:
    """Lets a program go on that a debugger was killed in while it had stopped it, where an agent
    had rung or that is noted; tells of it, if it was ``stopped`` still, and of one that somebody
    else may have stopped."""
    if noted is not None and (noted.stood or rang) and not noted.went_on:
        own.open()  # until it goes on, the next debugger is to know
        target.wake()
        if stopped:  # else it has gone on long since
            yield "an earlier debugger ended while it had stopped the program: it goes on now"
    elif stopped:
        yield (
            "the program was stopped already, which may be meant: when the debugger has let it "
            f"go, 'kill -CONT {pid}' lets it go on"
        )


def _let_children_go(pid: int, *, is_known: bool) -> list[str]:
    """Lets children go on that a killed debugger has left as they were made; tells of it. Where it
    is not known that there was one, the program may have stopped them itself."""
    notes = []
    for child in filter(procfs.is_stopped_at_birth, procfs.children(pid)):
        if not is_known:
            notes.append(
                f"the program's child {child} is stopped, which may be meant: 'kill -CONT {child}' "
                "lets it go on"
            )
            continue
        found = f"an earlier debugger ended as the program made its child {child}"
        try:
            os.kill(child, SIGCONT)
        except OSError:
            notes.append(f"{found}, which is stopped: 'kill -CONT {child}' lets it go on")
        else:
            notes.append(f"{found}: that goes on now")
    return notes


def _handlers_in(target: Target, memory: procfs.MemoryFile, pid: int, noted: journal.Left) -> bool:
    """Whether handlers of signals have interrupted borrowed code, and come back to it: that stays
    then."""
    code = [range(at, at + len(one.place.written)) for at, one in noted.passages.items()]
    saved = interrupted(target, memory, pid).values() if code else ()
    awaited = [
        at
        for at, place in zip(noted.passages, code, strict=True)
        if any(pc in place for pc in saved)
    ]
    for address in awaited:
        del noted.passages[address]
    return bool(awaited)


def _let_out(target: Target, noted: journal.Left) -> list[int]:
    """Leads threads out of borrowed code and gives that back; those that have to go by
    themselves."""
    waiting = []
    counters = target.threads.program_counters()
    for address, passage in list(noted.passages.items()):
        end = address + len(passage.place.written)
        inside = [thread for thread, pc in counters.items() if address <= pc < end]
        stay = [thread for thread in inside if not _is_home(target, thread, passage)]
        if stay:
            waiting += stay
            del noted.passages[address]
    return waiting


def _is_home(target: Target, thread: int, passage: Passage) -> bool:
    """Leads a thread out of a passage. ``False``: it has to go on for a moment, on its way back,
    and comes home by itself."""
    if target.lead_out(thread, passage):
        return True
    if passage.mask is not None:
        threads = target.threads
        if threads.read_register(thread, PROGRAM_COUNTER) < passage.leave:
            threads.write_register(thread, PROGRAM_COUNTER, passage.leave)
    return False


def _put_back(target: Target, noted: journal.Left) -> int:
    """Restores every place that is not as it was; how many."""
    restored = set()
    borrowed = [passage.place for passage in noted.passages.values()]
    for place in (*reversed(noted.places), *borrowed):
        try:
            if journal.is_darcs(place, target.memory.read(place.address, len(place.original))):
                target.memory.write(place.address, place.original)
                restored.add(place.address)
        except TargetError:
            continue  # its file was unloaded
    return len(restored)


def bell_signal(pid: int) -> int:
    """A signal that is ignored by default and that the process has no handler for. SIGCHLD only
    where no thread blocks it: one that does may hear of its children by it. SIGCONT is the last, as
    it takes back every SIGSTOP that a debugger has sent and still waits for."""
    free = [number for number in SIGNALS if not procfs.catches(pid, number)]
    if not (free or procfs.catches(pid, SIGCHLD) or procfs.deaf(pid, [SIGCHLD])[SIGCHLD]):
        free.append(SIGCHLD)
    return free[0] if free else SIGCONT
