"""What the collector with pads answers when the bell rings, on the agent's tables alone."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

import darc.pads.foothold
from darc.agent import compiled
from darc.agent.contexts import ThreadContexts
from darc.agent.layout import plan, room_for
from darc.agent.memory import AgentMemory
from darc.collectors.callees import SiteRules
from darc.collectors.collector import CollectorBrief
from darc.collectors.losses import WRITTEN_OVER, loss_text, vanished_pads
from darc.collectors.pad_collector import PadCollector
from darc.collectors.set_collector import SetCollector
from darc.debuggee.process import PROCESS
from darc.model.ftree import Fnode, Function
from darc.model.parameters import Parameters
from darc.pads.backend import BellOutcome
from darc.target.outcome import Outcome
from kgdb.debuggee import KERNEL
from tests.fake_target import FakeTarget

BACK, SLOT = 0x40_1234, 0x7FFF_0008


class Backend:
    """A process of two threads."""

    def living(self) -> frozenset[int]:
        return frozenset({1, 2})

    def thread_count(self) -> int:
        return 2

    def change_bell(self, tables: AgentMemory) -> None:
        pass

    def beat(self, tables: AgentMemory, seconds_left: float | None) -> None:
        pass

    def lead_home(self, foothold: object) -> None:
        pass


class Debuggee:
    is_readable_while_it_runs = shares_clock = sees_all_threads = True
    nature = PROCESS

    def __init__(self) -> None:
        self.pads = Backend()

    def watch_holds(self) -> Callable[[], bool]:
        return lambda: False


@darc.pads.foothold.Foothold.register
class Foothold:
    """Where the tables are, and whether they still are."""

    def __init__(self) -> None:
        self.gone: str | None = None
        self.damaged = False
        self.refuses: str | None = None
        self.grown: list[str] = []

    def lost(self) -> str | None:
        return self.gone

    def is_damaged(self) -> bool:
        return self.damaged

    def holds(self, address: int) -> bool:
        return False

    def add_contexts(self, threads: int) -> str | None:
        self.grown.append(f"contexts for {threads}")
        return self.refuses

    def add_records(self, threads: int) -> str | None:
        self.grown.append(f"records for {threads}")
        return self.refuses


class Installer(SiteRules):
    """What is patched; ``tables`` belong to it."""

    def __init__(self, tables: AgentMemory) -> None:
        self.tables = tables
        self.patcher = self
        self.paused = False

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        yield

    def show_own_stack(self) -> None:
        pass


class CollectorAtWork:
    """A collector at work, and whom it asks."""

    def __init__(self) -> None:
        blob = compiled.load()
        layout = plan(blob, room_for(4, 2))
        self.memory = memory = bytearray(layout.size)

        def write(address: int, data: bytes) -> None:
            memory[address : address + len(data)] = data

        self.tables = AgentMemory(
            blob=blob,
            base=0,
            layout=layout,
            read=lambda at, size: bytes(memory[at : at + size]),
            write=write,
        )
        self.tables.write_control(2, blob.constants.BY_STORAGE, 0)
        self.target = FakeTarget()
        self.notes: list[str] = []
        self.heard: list[str] = []
        self.due = False
        self.outcome = Outcome.STOP
        self.collector = PadCollector(
            CollectorBrief(
                target=self.target,
                program=cast(Any, None),
                debuggee=cast(Any, Debuggee()),
                root=Fnode(Function(name="f", symbol="f", module="prog", address=0x1000, offset=0)),
                spec="f",
                parameters=Parameters(),
                listener=self,
                note=self.notes.append,
                remains=cast(Any, Foothold()),
            )
        )
        self.foothold = cast(Foothold, self.collector.foothold)
        self.installer = Installer(self.tables)
        self.collector._take(cast(Any, self.foothold), cast(Any, self.installer))
        self.collector._is_set_up = True

    def rings(self) -> None:
        """The agent has, in a thread that comes back there."""
        constants = self.tables.blob.constants
        self.tables.set(bell=constants.RINGING, bell_return=BACK, bell_slot=SLOT)

    # What the collector's listener is.

    def is_due(self) -> bool:
        return self.due

    @property
    def seconds_left(self) -> float | None:
        return None

    def decide(self) -> Outcome:
        self.heard.append("decide")
        return self.outcome

    def give_up(self, why: str) -> Outcome:
        self.heard.append(f"give up: {why}")
        return Outcome.STOP

    def damaged(self, why: str) -> Outcome:
        self.heard.append("damaged")
        return Outcome.STOP

    def vanished(self, why: str) -> Outcome:
        self.heard.append(f"vanished: {why}")
        return Outcome.STOP

    def before_resume(self) -> None:
        self.heard.append("before resume")

    def exits(self) -> None:
        self.heard.append("exits")


@pytest.fixture
def world() -> CollectorAtWork:
    return CollectorAtWork()


def test_the_programs_own_signal_is_none_of_darcs(world: CollectorAtWork) -> None:
    epoch = world.tables.epoch
    assert world.collector.on_bell() == BellOutcome()
    assert world.heard == []
    assert world.tables.epoch == epoch, "calls that are under way are measured on"


def test_a_stop_is_where_the_thread_that_rang_is_back(world: CollectorAtWork) -> None:
    world.rings()
    epoch = world.tables.epoch
    assert world.collector.on_bell() == BellOutcome(Outcome.STOP, BACK, SLOT)
    assert world.heard == ["decide"]
    assert world.tables.epoch == epoch + 1
    assert world.tables.bell == 0, "it may ring again"


def test_the_search_goes_on_without_a_stop(world: CollectorAtWork) -> None:
    world.outcome = Outcome.CONTINUE
    world.rings()
    assert world.collector.on_bell() == BellOutcome(Outcome.CONTINUE)
    assert world.tables.bell == 0


def test_time_is_up_though_nobody_rang(world: CollectorAtWork) -> None:
    """No thread is known that would come back anywhere: the stop is here."""
    world.due = True
    assert world.collector.on_bell() == BellOutcome(Outcome.STOP)
    assert world.heard == ["decide"]


def test_time_is_up_as_a_thread_asks_for_room(
    world: CollectorAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in the agent, where nobody is to see the program stop: not then, but at the next
    knock, whatever that meets."""
    monkeypatch.setattr(ThreadContexts, "held", lambda self: self.room)
    short = world.tables.blob.constants.SHORT_OF_CONTEXTS
    world.due = True
    world.tables.set(short_of=short)
    assert world.collector.on_bell() == BellOutcome()
    assert world.heard == []
    world.tables.set(short_of=short)
    assert world.collector.on_bell() == BellOutcome(Outcome.STOP)


def test_the_last_moment_of_the_program(world: CollectorAtWork) -> None:
    world.rings()
    world.tables.set(exiting=1)
    assert world.collector.on_bell() == BellOutcome()
    assert world.heard == ["exits"]


@pytest.mark.parametrize("between", [False, True])
def test_probes_come_back_between_steps_alone(
    between: bool, world: CollectorAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTarget, "is_between_steps", lambda self: between)
    world.installer.paused = True
    assert world.collector.on_bell() == BellOutcome()
    assert world.heard == ["before resume"] * between


def test_nothing_is_asked_of_what_is_not_there(world: CollectorAtWork) -> None:
    world.foothold.gone = "it was unmapped"
    world.rings()
    assert world.collector.on_bell() == BellOutcome(Outcome.STOP)
    assert world.heard == ["vanished: it was unmapped"]


def test_tables_that_were_written_over_decide_nothing(world: CollectorAtWork) -> None:
    world.foothold.damaged = True
    world.rings()
    assert world.collector.on_bell() == BellOutcome(Outcome.STOP)
    assert world.heard == ["damaged"]


def test_calls_by_generated_code_are_known_while_it_runs(world: CollectorAtWork) -> None:
    world.tables.set(lost_foreign=3)
    assert world.collector.generated == 3
    world.collector._losses.count(world.tables)
    world.tables.set(lost_foreign=2)
    assert world.collector.generated == 5


def test_pads_that_are_gone_are_told_by_what_can_have_taken_them() -> None:
    (told,) = vanished_pads(["handle"], PROCESS.puts_back)
    assert "(MADV_DONTNEED) or put its own bytes back, or the debugger has shown a copy" in told
    (told,) = vanished_pads(["sd_serve", "sd_read"], KERNEL.puts_back)
    assert "in the code of sd_serve and 1 other function were gone" in told
    assert told.endswith("the module was loaded anew, or the kernel has put its own bytes back")
    (told,) = vanished_pads(["sd_serve"], WRITTEN_OVER.format(KERNEL.noun))
    assert "the kernel has written over them" in told


def test_a_bell_after_the_end_is_nobodys(world: CollectorAtWork) -> None:
    world.collector._alive = False
    world.rings()
    assert world.collector.on_bell() == BellOutcome()
    assert world.heard == []


def removed(
    world: CollectorAtWork, installer: object, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Who is told, in order, as it is taken out with what ``installer`` has put in."""
    told: list[str] = []
    debuggee, backend = world.collector._debuggee, world.collector._backend
    monkeypatch.setattr(type(debuggee), "leave", lambda self: told.append("leave"), raising=False)
    monkeypatch.setattr(
        type(backend), "disarm_bell", lambda self: told.append("disarm"), raising=False
    )
    monkeypatch.setattr(
        type(world.target.memory), "flush", lambda self: told.append("flush"), raising=False
    )
    monkeypatch.setattr(Installer, "remove", lambda self: told.append("patches"), raising=False)
    if installer is not None:
        world.collector._take(cast(Any, world.foothold), cast(Any, installer))
    world.collector.remove()
    return told


def test_what_is_in_is_taken_out_before_the_debuggee_is_left(
    world: CollectorAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = removed(world, world.installer, monkeypatch)
    assert told == ["disarm", "patches", "flush", "leave"]


def test_what_never_came_in_is_left_without_patches(
    world: CollectorAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.collector._parts = None
    world.collector._is_set_up = False
    assert removed(world, None, monkeypatch) == ["disarm", "flush", "leave"]


def test_an_installer_that_cannot_be_asked_is_a_mistake(
    world: CollectorAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that nothing was put in."""
    nothing = SimpleNamespace(tables=world.tables, patcher=world.installer)
    with pytest.raises(AttributeError):
        removed(world, nothing, monkeypatch)


def test_what_could_not_be_measured_is_counted_once(world: CollectorAtWork) -> None:
    for number in (2, 3):
        world.tables.set(lost_callers=number)
        world.rings()
        world.collector.on_bell()
        assert world.tables.lost_callers == 0
    assert [line for line in world.collector.losses() if line.startswith("5 calls")]


@pytest.mark.parametrize("text", SetCollector._loss_texts.values())
def test_one_call_is_told_as_one(text: str) -> None:
    assert loss_text(2, text).startswith("2 ")
    one = loss_text(1, text)
    assert re.match(r"1 (tail )?call (inside the peak )?was ", one)
    assert not re.search(r"\b(they|their)\b|calls were", one)


def test_more_threads_than_there_is_room_for(
    world: CollectorAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = world.tables.blob.constants
    monkeypatch.setattr(ThreadContexts, "held", lambda self: self.room)
    world.tables.set(short_of=limits.SHORT_OF_CONTEXTS)
    world.collector.on_bell()
    assert world.foothold.grown == ["contexts for 2"]
    assert world.tables.short_of == 0
    assert world.notes == []


def test_a_program_that_gives_no_more_room(world: CollectorAtWork) -> None:
    limits = world.tables.blob.constants
    world.foothold.refuses = "its limit of memory is reached"
    world.collector._its.growth._compacted = float("inf")
    world.tables.set(short_of=limits.SHORT_OF_RECORDS, may_grow=1)
    world.collector.on_bell()
    assert world.foothold.grown == ["records for 2"]
    assert world.tables.may_grow == world.tables.short_of == 0
    assert world.notes == [
        "no room for more threads or calls, which pass untimed from now on: "
        "its limit of memory is reached"
    ]


@pytest.mark.parametrize("f0", [0, 3, -1])
def test_where_code_is_in_more_pieces_than_there_is_room_for_f0s_own_is_among_those_kept(
    f0: int,
) -> None:
    world, limits = CollectorAtWork(), compiled.load().constants
    pieces = [range(n << 12, (n << 12) + 256) for n in range(1, limits.MAX_CODE + 51)]
    assert world.tables.set_code(pieces, pieces[f0].start + 7) == 50
    at = world.tables.layout.code
    raw = world.memory[at : at + 16 * world.tables.code_count]
    kept = [range(*pair) for pair in struct.iter_unpack("<QQ", raw)]
    assert pieces[f0] in kept
    assert kept == sorted(set(kept) & set(pieces), key=lambda one: one.start)
    assert world.tables.set_code(pieces[:300]) == 0


def test_calls_from_code_that_there_is_no_room_for_are_out_of_reach() -> None:
    """Who reads it is told elsewhere what else could time them."""
    world, limits = CollectorAtWork(), compiled.load().constants
    pieces = [range(n << 12, (n << 12) + 256) for n in range(1, limits.MAX_CODE + 51)]
    patchable = SimpleNamespace(ordinary_code=lambda: pieces)
    program, f0 = cast(Any, SimpleNamespace(patchable=patchable)), world.collector._root.function
    world.collector._losses.see_code(world.tables, program, f0)
    assert world.collector.out_of_reach == (
        f"pads cannot time calls from 50 of {len(pieces)} stretches of code, those far from f"
    )
    del pieces[300:]
    world.collector._losses.see_code(world.tables, program, f0)
    assert world.collector.out_of_reach is None
