"""Ops that the agent keeps whole, and calls of f0 that are under way."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

from darc.agent.memory import AgentMemory
from darc.agent.rows import RunningOp
from darc.code.landmarks import Landmark
from darc.code.processor import PROGRAM_COUNTER
from darc.code.program import Program
from darc.collectors.duties import KeepsOps, Running, SeesOpenCalls, StandingCall
from darc.collectors.keptreader import KeptReader
from darc.debuggee import clock
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.holds import Scheduled
from darc.debuggee.standing import Stands
from darc.model.errors import TargetError
from darc.model.ops import Event, KeptOps
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.target.target import Target

_NO_GLIBC = "they wait by a C library other than glibc"
"""Why it is not seen what calls wait for."""


class PadOps(KeepsOps, SeesOpenCalls):
    """Those of one analysis; ``note`` takes what the user should know."""

    def __init__(
        self,
        target: Target,
        debuggee: Debuggee,
        program: Program,
        *,
        installer: PadInstaller,
        reader: KeptReader,
        note: Callable[[str], None],
        foothold: Foothold,
        f0: str,
    ) -> None:
        """``foothold`` is what the pads stand on; ``f0`` is what that is called."""
        self._target = target
        self._debuggee = debuggee
        self._program = program
        self._installer = installer
        self._reader = reader
        self._note = note
        self._foothold = foothold
        self._f0 = f0
        self._stands = Stands(target, debuggee, program)
        self._sees_waits = False
        self._may_have_stood = debuggee.watch_holds()

    @property
    def _tables(self) -> AgentMemory:
        return self._installer.tables

    def keep_ops(self, least: int, fast: tuple[int, int]) -> None:
        self._tables.kept.keep(least, fast)

    def watch_waits(self) -> None:
        guards = self._installer.guards
        self._sees_waits = guards.has_waits
        problems = guards.put_waits()
        if problems:
            self._note(f"who waits for whom is not seen everywhere: {problems[0]}")

    def kept_ops(self) -> KeptOps:
        guards = self._installer.guards
        sees_switches = guards.has(Landmark.SWITCH)
        kept = self._reader.ops(self._debuggee.hz, sees_switches)
        threads = {op.thread for op in kept.ops}
        threads |= {event.thread for op in kept.ops for event in op.events}
        names = {number: self._debuggee.thread_name(number) for number in threads if number}
        known = {number: name for number, name in names.items() if name is not None}
        others = {number: self._debuggee.outsider_name(number) for number in names.keys() - known}
        return dataclasses.replace(
            kept,
            threads=known,
            outsiders={number: name for number, name in others.items() if name is not None},
            sees_waits=self._sees_waits,
            why_no_waits=self._why_no_waits(),
            sees_wake_ups=guards.has(Landmark.WAKE),
        )

    def own_back(self, word: int) -> int | None:
        with contextlib.suppress(TargetError):  # the program is gone
            return self._foothold.own_back(word)
        return None

    def _why_no_waits(self) -> str | None:
        why, guards = self._debuggee.why_no_waits(self._program), self._installer.guards
        if why is not None or self._sees_waits:
            return why
        is_elsewhere = guards.knows_waits and not guards.has_waits
        return _NO_GLIBC if is_elsewhere else self._debuggee.unseen_waits

    def running(self) -> Sequence[Running] | None:
        if not (self._debuggee.is_readable_while_it_runs and self._debuggee.shares_clock):
            return None
        now, hz = clock.tsc_now(), self._debuggee.hz
        return [
            Running(op, op.life, (now - op.start) / hz, op.start)
            for op in self._tables.ops.running()
        ]

    def deep_wait(self, call: Running) -> Sequence[str] | None:
        return self._debuggee.deep_wait(call.thread)

    def may_have_stood(self) -> bool:
        return self._may_have_stood()

    def scheduled(self, call: Running) -> Scheduled | None:
        return self._debuggee.scheduled(call.thread)

    def is_in_probe(self, call: Running) -> bool:
        thread = self._debuggee.thread_called(call.thread)
        if thread is None:
            return False
        return self._foothold.holds(self._target.threads.read_register(thread, PROGRAM_COUNTER))

    def waits_for(self, call: Running) -> Event | None:
        assert isinstance(call.key, RunningOp)
        event = self._tables.ops.wait_of(call.key)
        return None if event is None else self._reader.event(event)

    def standing(self, call: Running, event: Event | None) -> StandingCall:
        stands, own = self._stands, call.thread
        at = stands.standing(own, self._f0)
        where, wait = stands.whereabouts(own, at), stands.wait(own, event, at)
        return StandingCall(where, wait, stands.show(own))
