"""Contests with targets of an indirect call that could not be told apart."""

from __future__ import annotations

import pytest

from darc.model.ftree import Cause, Fnode, Function, Meaning, Totals
from darc.search.contest import Contest, Vote

OPS = 100


def function(name: str, at: int) -> Function:
    return Function(name=name, symbol=name, module="program", address=at, offset=at)


def contest(named: tuple[int, int], untold: tuple[int, int, int]) -> Contest:
    """Between a callee with its votes and its time in an op, and 50 others together: their votes,
    their time, and how long their longest call takes."""
    root = Fnode(function("f0", 0), None)
    one = root.add_child(function("one", 16), None)
    rest = root.add_child(function("<other targets>", 0), None)
    rest.meaning = Meaning(Cause.UNTOLD)
    votes, time = named
    count, together, longest = untold
    found = Contest(root)
    found.add(
        {
            root: Vote(ops=OPS, totals=Totals(OPS, OPS, 1000 * OPS, 1000 * OPS)),
            one: Vote(ops=OPS, votes=votes, totals=Totals(OPS, OPS, time * OPS, time * OPS)),
            rest: Vote(
                ops=OPS, votes=count, totals=Totals(OPS, 50 * OPS, together * OPS, longest * OPS)
            ),
        },
        OPS,
    )
    return found


def test_many_callees_together_do_not_win_against_the_longest_one() -> None:
    found = contest((32, 320), (68, 600, 100))
    assert found.ballot({}) == [0, 32, 0]
    found.show({})
    assert [child.maxcount for child in found.node.children] == [32, 68]


@pytest.mark.parametrize(
    ("named", "untold"),
    [
        ((32, 320), (68, 600, 400)),  # one of them may take longer
        ((32, 100), (68, 600, 50)),  # what was told apart is slight
        ((5, 320), (68, 600, 100)),  # and hardly ever the longest
    ],
)
def test_they_win_where_one_of_them_may_be_longer(
    named: tuple[int, int], untold: tuple[int, int, int]
) -> None:
    assert contest(named, untold).ballot({}) == [0, named[0], untold[0]]
