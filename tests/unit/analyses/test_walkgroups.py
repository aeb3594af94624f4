"""What of a group's time is a wait for work, where C++'s library stands between loop and wait."""

from __future__ import annotations

import pytest

from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.model.ftree import Function

THREADS = frozenset({1, 2, 3})


def function(address: int, name: str) -> Function:
    return Function(name=name, symbol=name, module="program", address=address, offset=address)


def group(
    waited: dict[str, float], share: dict[int, float], below: dict[int, float]
) -> ThreadGroup:
    """Threads whose loop calls the library's wait, which was seen to wait so long."""
    root = WalkNode(function(0x1000, "loop"), None, dict.fromkeys(THREADS, 1.0), base=THREADS)
    wait = WalkNode(function(0x2000, "wait"), root, share, lends=root.lends_on, waited=waited)
    root.below, wait.whole = [wait], root.share
    wait.below = [WalkNode(function(0x3000, "lock"), wait, below)] if below else []
    wait.tell_idling()
    return ThreadGroup("loop", set(THREADS), root)


def test_what_is_lent_to_a_loop_is_its_idle_time() -> None:
    found = group({"cond": 2.4}, {1: 0.8, 2: 0.8, 3: 0.8}, {})
    assert found.busy(found.root.share) == pytest.approx(0.6)
    (wait,) = found.root.below
    assert found.share(wait) == pytest.approx(0)


def test_also_of_a_thread_that_another_window_saw_there() -> None:
    """Not in the one that found the wait: it worked for all of it."""
    found = group({"cond": 2.4}, {1: 0.8, 2: 0.8}, {})
    (wait,) = found.root.below
    assert wait.is_lent(3)
    assert found.busy(found.root.share) == pytest.approx(1.4)
    assert found.share(wait) == pytest.approx(0)


def test_threads_that_it_is_not_lent_to_do_not_count() -> None:
    """Another's hour in a lock of the library does not make this one's wait shorter."""
    found = group({"cond": 1.6}, {1: 0.8, 2: 0.8, 4: 0.9}, {4: 0.9})
    assert found.idle_of(1) == pytest.approx(0.8)
