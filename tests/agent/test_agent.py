"""The agent by itself: its machine code, its pads and landings, in a process of the tests' own.

hypothesis makes programs of calls, returns, tail calls, jumps out of frames, exceptions, threads,
interruptions between any two instructions of darc's, and a debugger that does what it does at its
stops. Each program checks that every call comes back to its own caller with the registers, the
stack, vectors and control words that it had; what was counted is compared with
:mod:`tests.agent.model`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from iced_x86 import Instruction, InstructionInfoFactory, OpAccess, Register

from darc.code.x86_64 import decode
from darc.pads.returns import WRITABLE
from tests.agent import model
from tests.agent.trees import (
    _MORE,
    ARM,
    ARMS,
    CALL,
    DEBUGGER,
    END,
    EXAMPLES,
    EXCEPTIONS,
    FUNCTION,
    HIDE,
    INDIRECT,
    JUMP,
    JUMPS,
    RESUME,
    RETURN,
    SWITCHES,
    TAIL,
    TRACE,
    WORK,
    YIELD,
    Op,
    look,
    settings_of,
)
from tests.agent.world import (
    AREA,
    LEAVE,
    TABLES,
    TABLES_SIZE,
    Setting,
    Step,
    Timed,
    World,
    tree_of,
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One process for all."""
    made = World()
    yield made
    made.close()


# ------------------------------------------------------------------------ what hypothesis makes


WORKS = st.one_of(
    st.integers(1, 40), st.integers(1, 40), st.sampled_from((100, 1000, 100_000, -3, -50, 0))
)


def operations(*more: st.SearchStrategy[Op]) -> st.SearchStrategy[list[Op]]:
    """A script."""
    common: tuple[st.SearchStrategy[Op], ...] = (
        st.tuples(st.just(WORK), WORKS),
        st.tuples(st.just(CALL), FUNCTION),
        st.tuples(st.just(CALL), FUNCTION),
        st.tuples(st.just(CALL), st.just(0)),
        st.just((RETURN,)),
        st.just((RETURN,)),
        st.tuples(st.just(TAIL), FUNCTION),
        st.tuples(st.just(INDIRECT), FUNCTION),
    )
    return st.lists(st.one_of(*common, *more), max_size=50)


DEBUGGERS = st.tuples(st.just(DEBUGGER), st.sampled_from((0, 0, 1, 1, 2, 3, 4, 5, 6)))
QUIET = st.tuples(st.just(DEBUGGER), st.sampled_from((0, 1, 2, 5)))


def scripts(*more: st.SearchStrategy[Op]) -> st.SearchStrategy[list[list[Op]]]:
    """Those of three threads and three handlers."""
    one = operations(*more)
    return st.lists(one, min_size=1, max_size=6)


# ------------------------------------------------------------------------ the tests


@EXAMPLES
@example(
    Setting((tree_of([]),)), [[(CALL, 0), (DEBUGGER, 6)], [(DEBUGGER, 2), (CALL, 0)]]
)  # watched no more, and that is what it is told
@given(settings_of(), scripts(JUMPS, DEBUGGERS))
def test_calls_and_jumps(world: World, setting: Setting, program: list[list[Op]]) -> None:
    """Whatever is called, and left by jumps: all votes are those of the rules."""
    done = world.run(setting, program)
    look(done)
    model.check(setting, done)


_NESTED = tree_of(
    [
        Timed(0, ("call", 0, 1)),
        Timed(0, ("call", 0, 2)),
        Timed(1, ("call", 1, 2)),
        Timed(1, ("call", 1, 3)),
        Timed(3, ("call", 2, 3)),
    ],
    [0, 1, 3],
)
LONG = st.one_of(st.integers(1, 60), st.sampled_from((3, 3, 400, 400, 2_000_000_000)))
"""Latencies whose products do not fit in one word are among them."""


@st.composite
def loops(draw: st.DrawFn, function: int = 0) -> list[Op]:
    """Calls of callees, some of them again and again, one of which may be longer than the rest."""
    body: list[Op] = [(WORK, draw(LONG))]
    for callee in {0: (1, 2), 1: (2, 3), 2: (3,), 3: ()}[function]:
        most = {0: 12, 1: 3, 2: 1}[function]
        times = draw(st.sampled_from((0, 1, 1, 2, most, most)))
        if times:
            call = [(CALL, callee), *draw(loops(callee)), (RETURN,)]
            other = [(CALL, callee), *draw(loops(callee)), (RETURN,)]
            body += [*call * (times - 1), *(other if draw(st.booleans()) else call)]
    return body


@EXAMPLES
@given(st.data(), st.sampled_from((1, 2, 5)), st.booleans())
def test_loops(world: World, data: st.DataObject, resolution: int, by_longest: bool) -> None:
    """Calls that are made again and again, also by what is called so, by either rule."""
    setting = Setting(
        (_NESTED,), resolution=resolution, analyse=True, by_longest=by_longest, full_cost=1
    )
    done = world.run(setting, [[(CALL, 0), *data.draw(loops()), (RETURN,)]])
    look(done)
    model.check(setting, done)


@EXAMPLES
@given(st.integers(800, 1300), st.integers(0, 20))
def test_an_op_at_the_edge_of_its_peak(world: World, work: int, calls: int) -> None:
    """What its probes cost is known to an eighth."""
    setting = Setting((_NESTED,), analyse=True, peak=(1000, 1200), full_cost=40)
    short: list[Op] = [(CALL, 1), (RETURN,)]
    done = world.run(setting, [[(CALL, 0), (WORK, work), *short * calls, (RETURN,)]])
    look(done)
    model.check(setting, done)


@pytest.mark.parametrize(
    ("work", "calls", "least_op", "latency"),
    [
        (900, 20, 0, 100),  # 900 - 20 * 40: as was measured
        (900, 20, 150, 100),
        (900, 20, 500, 500),  # less than half of what the fastest took before
        (700, 20, 500, 500),  # less than nothing
        (700, 20, 1000, 700),  # all of it was less than that
        (30, 0, 500, 30),  # nothing was taken out
    ],
)
def test_no_more_is_taken_out_for_probes_than_leaves_the_fastest_call(
    world: World, work: int, calls: int, *, least_op: int, latency: int
) -> None:
    """What pads cost was measured at another time, and they may cost less now."""
    setting = Setting((_NESTED,), analyse=True, full_cost=40, least_op=least_op)
    short: list[Op] = [(CALL, 1), (RETURN,)]
    done = world.run(setting, [[(CALL, 0), (WORK, work), *short * calls, (RETURN,)]])
    look(done)
    model.check(setting, done)
    (counted,) = (row for row in done.counted[max(done.counted)] if row.in_peak)
    assert counted.totals[0][4] == latency


def test_what_a_tail_call_costs_is_nobodys_time(world: World) -> None:
    """Nor the caller's nor that of the function jumped to, which both have their own alone."""
    tree = tree_of([Timed(0, ("call", 0, 1)), Timed(1, ("tail", 1, 2))], [0, 1])
    setting = Setting((tree,), analyse=True, tail_cost=70, tail_inner=30)
    before: list[Op] = [(WORK, 50), (WORK, 40), (TAIL, 2)]  # 40 are its pad's, before it reads
    target: list[Op] = [(WORK, 30), (WORK, 25), (RETURN,)]  # and 30 behind that
    done = world.run(setting, [[(CALL, 0), (WORK, 5), (CALL, 1), *before, *target, (RETURN,)]])
    look(done)
    (counted,) = (row for row in done.counted[max(done.counted)] if row.in_peak)
    assert [total[4] for total in counted.totals[:3]] == [5 + 50 + 25, 50 + 25, 25]


@EXAMPLES
@given(settings_of(), scripts(JUMPS, EXCEPTIONS, SWITCHES, DEBUGGERS, st.just((END,))))
def test_exceptions_and_threads(world: World, setting: Setting, program: list[list[Op]]) -> None:
    """Unwinders find the program's own addresses; threads have operations of their own."""
    done = world.run(setting, program)
    look(done)
    model.check(setting, done)


@EXAMPLES
@given(settings_of(small=True), scripts(JUMPS, SWITCHES, DEBUGGERS))
def test_full_tables(world: World, setting: Setting, program: list[list[Op]]) -> None:
    """What finds no room is not measured, and all else is."""
    done = world.run(setting, program)
    look(done)
    model.check(setting, done)


@EXAMPLES
@example(  # watched no more, and another tree, behind the look whether it is watched
    Setting((tree_of([]), tree_of([]))),
    [[(CALL, 0), (WORK, 5), (CALL, 0), (JUMP, 4, 0), (ARM, 49, 3), *[(CALL, 0)] * 9], [], [],
     [(CALL, 2), *[(CALL, 0)] * 4, (DEBUGGER, 2), (CALL, 3), (DEBUGGER, 5)]],
)  # fmt: skip
@given(settings_of(steady=False), scripts(ARMS, ARMS, JUMPS, QUIET))
def test_interruptions(world: World, setting: Setting, program: list[list[Op]]) -> None:
    """Signals between any two instructions, whose handlers call f0, and jump out."""
    done = world.run(setting, program)
    look(done)
    model.check(setting, done)


@EXAMPLES
@given(settings_of(small=True), scripts(ARMS, ARMS, JUMPS, EXCEPTIONS, SWITCHES, DEBUGGERS))
def test_everything_at_once(world: World, setting: Setting, program: list[list[Op]]) -> None:
    """Every call comes back, whatever can be measured."""
    look(world.run(setting, program))


# ------------------------------------------------------------------------ every instruction

_TREE = tree_of(
    [
        Timed(0, ("call", 0, 1)),
        Timed(1, ("call", 1, 2)),
        Timed(1, ("call", 1, 3), timed=False),
        Timed(0, ("indirect", 0, 0)),
        Timed(0, ("tail", 0, 3)),
    ],
    [0, 1],
)
_LAST: list[Op] = [
    (CALL, 0), (WORK, 3), (CALL, 1), (WORK, 4), (CALL, 2), (WORK, 5), (RETURN,), (CALL, 3),
    (WORK, 1), (RETURN,), (RETURN,), (INDIRECT, 2), (WORK, 20), (RETURN,), (TAIL, 3), (WORK, 9),
    (RETURN,),
]  # fmt: skip
"""An operation with all that there is in it."""

_HANDLERS: dict[str, list[Op]] = {
    "an operation": [(WORK, 100), *_LAST, (WORK, 30)],
    "another thread": [(RESUME, 1)],
    "a stop": [(DEBUGGER, 0)],
    "a decision": [(WORK, 50), (DEBUGGER, 1)],
    "an unwinder": [(HIDE,), (WORK, 2)],
    "a jump": [(WORK, 7), (JUMP, 1, 0)],
    "a far jump": [(JUMP, 30, 0)],
}


_BATCH = 40


_PLACES = [n for n, op in enumerate(_LAST) if op[0] != WORK]


def _interrupted() -> Iterator[object]:
    """Every handler at every place. Of these ``make test`` has each handler at an indirect call, at
    a tail call, and at a third of the calls and returns, others for the next one; those that are
    left are for ``make test-long``."""
    for row, handler in enumerate(_HANDLERS):
        for column, place in enumerate(_PLACES):
            chosen = _LAST[place][0] in (INDIRECT, TAIL) or (row + column) % 3 == 0
            yield pytest.param(handler, place, marks=[] if chosen else pytest.mark.long)


@pytest.mark.parametrize(("handler", "place"), _interrupted())
def test_every_instruction(world: World, handler: str, place: int) -> None:
    """A call, jump or return within an operation is interrupted behind each of darc's instructions
    in turn; the next operation is measured again."""
    for analyse, other_stack in ((True, False), (False, True)):
        setting = Setting(
            (_TREE,), analyse=analyse, other_stack=other_stack, full_cost=1, signal=23, needed=4
        )
        for first in range(0, 100 * _BATCH, _BATCH):
            script = [*_LAST, *_LAST]
            for instruction in range(first, first + _BATCH):
                # What is left of the operation is left by a jump, where the handler has jumped.
                script += [*_LAST[:place], (ARM, instruction, 3), *_LAST[place:], (JUMP, 30, 0)]
                script += [(DEBUGGER, 3), *_LAST, (DEBUGGER, 1)]
            others = [*_LAST, (YIELD,), *_LAST] * _BATCH
            done = world.run(setting, [script, others, [], _HANDLERS[handler]])
            look(done)
            model.check(setting, done)
            if any(event.what == "MISSED" for event in done.events):
                break
        else:
            raise AssertionError("there is no end of it")


_CALLS = [n for n, op in enumerate(_LAST) if op[0] in (CALL, TAIL)]


@pytest.mark.parametrize("place", _CALLS)
@pytest.mark.parametrize("analyse", [True, False], ids=["search", "profile"])
def test_darc_leaves_at_every_instruction(world: World, place: int, *, analyse: bool) -> None:
    """Whoever is on the way into a call then comes back past the landings: no unwinder knows of
    them any more."""
    setting = Setting((_TREE,), analyse=analyse, other_stack=True, full_cost=1, needed=4)
    for instruction in range(400):
        script = [*_LAST, *_LAST[:place], (ARM, instruction, 3), *_LAST[place:], *_LAST]
        done = world.run(setting, [script, [], [], [(DEBUGGER, LEAVE)]])
        look(done)
        if any(event.what == "MISSED" for event in done.events):
            break
    else:
        raise AssertionError("there is no end of it")


# ------------------------------------------------------------------------ what is written

_REGISTERS = dict(
    zip(
        (Register.R8, Register.R9, Register.R10, Register.R11, Register.R12, Register.R13,
         Register.R14, Register.R15, Register.RDI, Register.RSI, Register.RBP, Register.RBX,
         Register.RDX, Register.RAX, Register.RCX, Register.RSP),
        range(16),
        strict=True,
    )
)  # fmt: skip
_WRITES = (OpAccess.WRITE, OpAccess.READ_WRITE, OpAccess.COND_WRITE, OpAccess.READ_COND_WRITE)


def written(world: World, step: Step) -> list[int]:
    """Where an instruction writes to."""
    instruction: Instruction = decode(world.code_at(step.rip, 16), step.rip)[0]

    found: list[int] = []
    for memory in InstructionInfoFactory().info(instruction).used_memory():
        if memory.access not in _WRITES:
            continue
        assert memory.segment != Register.FS, "the thread's own storage is written to"
        if memory.base == Register.RSP and memory.displacement >= 1 << 63:  # push, call
            found.append(step.registers[_REGISTERS[Register.RSP]] - 8)
            continue
        base = _REGISTERS.get(memory.base)
        place = memory.displacement if base is None else memory.displacement + step.registers[base]
        if memory.index != Register.NONE:
            place += step.registers[_REGISTERS[memory.index]] * memory.scale
        found.append(place & (1 << 64) - 1)
    return found


@settings(max_examples=25, derandomize=not _MORE, suppress_health_check=list(HealthCheck))
@given(settings_of(small=True), operations(JUMPS, EXCEPTIONS, QUIET))
def test_writes(world: World, setting: Setting, script: list[Op]) -> None:
    """The agent, pads and landings write to its tables, to the words of landings, to the slots of
    frames that live, and to the stack below the one that was called or returned to; never below
    the stack pointer."""
    traced: list[Op] = [part for op in [*_LAST, *script] for part in ((TRACE,), op)]
    done = world.run(setting, [traced])
    look(done)
    assert done.steps
    slots = {event.b for event in done.events if event.what == "ARRIVE"}
    first: dict[int, int] = {}
    for step in done.steps:
        rsp = step.registers[_REGISTERS[Register.RSP]]
        highest = first.setdefault(step.events, rsp)
        for place in written(world, step):
            in_tables = TABLES <= place < TABLES + TABLES_SIZE
            in_words = WRITABLE.start <= place - AREA < WRITABLE.stop
            on_stack = rsp - 8 <= place <= highest
            assert in_tables or in_words or on_stack or place in slots, (
                f"{step.rip - AREA:#x} writes to {place:#x}, rsp {rsp:#x}, {highest - place}"
            )
