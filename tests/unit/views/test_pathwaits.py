"""Under which root cause path it is told what calls waited for."""

from __future__ import annotations

import dataclasses

import pytest

from darc.model.ftree import Cause, Ending, Fnode, Function, RootCausePath
from darc.model.ops import KeptOps, ObjectKind
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.views import render
from darc.views.pathwaits import path_of_wait
from darc.views.style import Style
from tests.unit import ops

HELD = Holder(role=Role.HELD, thread="janitor", path=("sweep",), cycles=500, ops=5, threads=(7,))


def function(name: str, module: str = "server") -> Function:
    return Function(name=name, symbol=name, module=module, address=0, offset=0)


def made(root: Fnode, *names: str) -> RootCausePath:
    """A path below f0 whose last function, of the C library, is blocked."""
    node = root
    for name in names:
        found = next((one for one in node.children if one.function.name == name), None)
        node = found or node.add_child(function(name), None)
    node = node.add_child(function("pthread_mutex_lock", "libc.so.6"), None)
    return RootCausePath(tuple(node.route()), Ending(Cause.BLOCKED, 20))


def waited(*where: str, kind: ObjectKind = ObjectKind.LOCK) -> WaitedFor:
    return WaitedFor(
        kind=kind, name="table_lock", path=where, cycles=500, ops=5, waits=5, holders=(HELD,)
    )


ROOT = Fnode(function("serve"))
LOOKUP, ACCOUNT = made(ROOT, "lookup"), made(ROOT, "account")
ITSELF = RootCausePath((ROOT,), Ending(Cause.BLOCKED, 20))
BOTH = (LOOKUP, ACCOUNT)


@pytest.mark.parametrize(
    ("where", "paths", "expected"),
    [
        (("lookup", "serve"), BOTH, LOOKUP),
        (("account", "serve"), BOTH, ACCOUNT),
        (("find_inlined", "lookup", "serve"), BOTH, LOOKUP),
        (("lookup",), BOTH, LOOKUP),  # f0 has handed its frame on
        (("log", "serve"), BOTH, None),
        (("log", "serve"), (LOOKUP,), None),
        (("serve",), BOTH, None),
        ((), BOTH, None),  # in several functions
        (("lookup", "serve"), (ITSELF,), None),
        (("serve",), (ITSELF,), ITSELF),
        (("wait_inlined", "serve"), (ITSELF,), ITSELF),
        (("usleep", "account", "serve"), (), None),
    ],
)
def test_a_wait_is_of_the_path_in_whose_last_function_it_was(
    where: tuple[str, ...], paths: tuple[RootCausePath, ...], expected: RootCausePath | None
) -> None:
    assert path_of_wait(waited(*where), paths) is expected


def test_a_wait_in_what_a_loop_calls_is_the_loops() -> None:
    loop = RootCausePath((ROOT,), Ending(Cause.LOOP, 20, loop_callee="account"))
    assert path_of_wait(waited("account", "serve"), (loop,)) is loop
    assert path_of_wait(waited("lookup", "serve"), (loop,)) is None


def test_a_wait_for_a_processor_is_of_the_path_that_was_preempted() -> None:
    preempted = RootCausePath((ROOT,), Ending(Cause.PREEMPTION, 20))
    processor = waited(kind=ObjectKind.PROCESSOR)
    assert path_of_wait(processor, (LOOKUP, preempted)) is preempted
    assert path_of_wait(processor, BOTH) is None


def shown(one: WaitedFor, *paths: RootCausePath) -> list[str]:
    """What is told of paths whose calls waited for that."""
    found = Snapshot(
        "serve",
        Status.FOUND,
        ops.snapshot().probes,
        paths=paths,
        ops=KeptOps(1_000_000_000, sees_waits=True),
        waits=Waits(10, 1000, (one,)),
    )
    return render.paths(found, Style()).splitlines()


TOLD = 'waited for the lock table_lock{}, 50 %, held by thread 7 "janitor" in sweep: 5 calls'


@pytest.mark.parametrize(("where", "number"), [("lookup", 0), ("account", 1)])
def test_the_line_stands_below_its_path(where: str, number: int) -> None:
    lines = shown(waited(where, "serve"), *BOTH)
    heads = [at for at, line in enumerate(lines) if line.startswith("darc: root cause")]
    (at,) = [at for at, line in enumerate(lines) if "waited for" in line]
    assert lines[at] == f"  {TOLD.format('')} ('darc waits')"
    assert at == heads[number] + 2, lines


@pytest.mark.parametrize("paths", [BOTH, (LOOKUP,)])
def test_the_line_of_another_function_says_whose_it_is(paths: tuple[RootCausePath, ...]) -> None:
    told = f"  elsewhere: {TOLD.format(' in log ← serve')} ('darc waits')"
    assert shown(waited("log", "serve"), *paths)[-1] == told


def test_a_wait_of_all_paths_is_told_as_that() -> None:
    assert shown(waited(), *BOTH)[-1].startswith("  in several functions: waited for the lock")
    ran = dataclasses.replace(HELD, role=Role.RAN)
    processor = dataclasses.replace(waited(kind=ObjectKind.PROCESSOR), name="", holders=(ran,))
    assert shown(processor, *BOTH)[-1].startswith("  these calls waited for a processor, 50 %")
    assert shown(processor, LOOKUP)[-1].startswith("  waited for a processor, 50 %")


@pytest.mark.parametrize(
    ("slept", "ready", "told"),
    [
        (0, 485, ", which could have run for 97 % of that, without a processor"),
        (400, 50, ", which was blocked in usleep for 80 % of that"),
        (200, 250, ", which was blocked in usleep for 40 % of that and could have run for 50 %, "
         "without a processor"),
        (50, 50, ""),
    ],
)  # fmt: skip
def test_that_a_holder_had_no_processor_is_told_as_that_it_slept(
    slept: int, ready: int, told: str
) -> None:
    behind = [
        Holder(role=Role.SLEPT, thread="", path=("usleep",), cycles=slept, ops=5),
        Holder(role=Role.READY, thread="", path=(), cycles=ready, ops=5),
    ]
    holder = dataclasses.replace(HELD, behind=tuple(one for one in behind if one.cycles))
    one = dataclasses.replace(waited("lookup", "serve"), holders=(holder,))
    (line,) = [line for line in shown(one, LOOKUP) if "waited for" in line]
    assert line == f"  {TOLD.format('')}{told} ('darc waits')"
