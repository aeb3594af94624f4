"""How an analysis begins: what stands in its way, and what makes room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.rootcauses import RootCauses
from darc.app.beginning import Beginning
from darc.app.current import Current
from darc.app.finding import Request
from darc.model.errors import UnsupportedError, UsageError
from darc.model.parameters import Parameters
from darc.session.session import Session
from darc.target.target import State

REQUEST = Request("walk", "main", Parameters(), RootCauses, replaces_finished=True)


class BegunBefore:
    """A program that stands, and perhaps a session in it."""

    def __init__(self) -> None:
        self.is_elsewhere = False
        self.target = SimpleNamespace(
            stops_unseen=True,
            why_stops_are_seen="gdb is in non-stop mode",
            interrupted_by="interrupt",
            state=State.STOPPED,
            leaving_home=self._leaving_home,
        )
        self.current = Current()
        nobody: Any = None
        self.beginning = Beginning(
            cast(Any, self.target),
            nobody,
            nobody,
            current=self.current,
            waiting=nobody,
            stay=nobody,
            tell=nobody,
            emit=nobody,
        )

    @contextlib.contextmanager
    def _leaving_home(self) -> Iterator[bool]:
        yield self.is_elsewhere

    def has(self, *, finished: bool, begun_by: str = "start", next_one: str = "") -> Any:
        """A session whose probes are in the program."""

        def stop() -> None:
            made.alive = False

        made = SimpleNamespace(
            spec="handle", alive=True, analysis=SimpleNamespace(finished=finished), stop=stop
        )
        self.current.session = cast(Session, cast(Any, made))
        self.current.request = Request(
            begun_by, "handle", Parameters(), RootCauses, next_one=next_one
        )
        return made


def test_one_that_has_found_all_makes_room() -> None:
    world = BegunBefore()
    world.beginning.make_room(REQUEST)
    session = world.has(finished=True)
    world.beginning.make_room(REQUEST)
    assert not session.alive


@pytest.mark.parametrize("finished", [False, True])
def test_one_that_has_not_stands_in_the_way(finished: bool) -> None:
    """Nor does one that has, for a request that does not take its place."""
    world = BegunBefore()
    world.has(finished=finished)
    request = Request("start", "f", Parameters(), RootCauses) if finished else REQUEST
    with pytest.raises(UsageError, match=r"^handle is being analysed: 'darc stop' before 'darc "):
        world.beginning.make_room(request)
    world.is_elsewhere = True
    with pytest.raises(UsageError, match="analysed in the program that was selected before: 'darc"):
        world.beginning.make_room(request)


def test_who_types_the_same_again_hears_what_comes_next() -> None:
    world = BegunBefore()
    world.has(finished=False, begun_by="catch", next_one="the next late call")
    with pytest.raises(
        UsageError, match="analysed: 'continue' goes on to the next late call, 'dar"
    ):
        world.beginning.make_room(Request("catch", "handle", Parameters(), RootCauses))
    with pytest.raises(UsageError, match="analysed: 'darc stop' before 'darc walk'"):
        world.beginning.make_room(REQUEST)


def test_a_program_that_runs_has_no_room() -> None:
    world = BegunBefore()
    world.target.state = State.RUNNING
    with pytest.raises(UsageError, match=r"runs: interrupt it \('interrupt'\) before 'darc"):
        world.beginning.make_room(REQUEST)


def test_where_stops_are_seen_none_begins_that_is_not_to_be() -> None:
    world = BegunBefore()
    world.target.stops_unseen = False
    world.beginning.make_room(REQUEST)
    unseen = Request("why", "main", Parameters(), RootCauses, stops_unseen=True)
    with pytest.raises(UnsupportedError, match="no 'darc why': gdb is in non-stop mode"):
        world.beginning.make_room(unseen)
