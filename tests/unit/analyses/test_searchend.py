"""However a search ends."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from darc.analyses.pathsearch import PathSearch
from darc.analyses.roundops import ENDED
from darc.analyses.searchend import SearchEnd, stands_as_saved
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.ftree import Cause, Ending
from darc.model.status import Status
from darc.saved.descents import SavedDescent
from tests.unit import ops, samples, stored
from tests.unit.cases import Made
from tests.unit.keptcalls import blocked
from tests.unit.machine import MadeUpWatching


def search_of(made: Made) -> PathSearch:
    """With its first orders."""
    return made.searching()._search


def found(made: Made) -> PathSearch:
    """One path, to what f0 calls."""
    search = search_of(made)
    flush = made.root.children[0]
    flush.root_cause, flush.end = True, Ending(Cause.FUNCTION, 4)
    return search


def end(made: Made, search: PathSearch, *, is_gone: bool = False) -> SearchEnd:
    return SearchEnd(made.case, made.brief.collector, search, is_gone=is_gone)


def test_it_is_what_its_paths_say() -> None:
    made = Made()
    assert end(made, found(made)).conclude() is Status.FOUND
    made = Made()
    assert end(made, search_of(made)).conclude() is Status.INCONCLUSIVE


def test_why_nothing_more_was_found_is_told_where_it_was_not_cut_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made()
    search = search_of(made)
    monkeypatch.setattr(search.descent, "explain", lambda: "too few calls agree")
    end(made, search).cut_short()
    assert made.notes == []
    end(made, search).conclude()
    assert made.notes == ["too few calls agree"]


def test_what_has_become_of_the_peak_is_told_beside_the_paths() -> None:
    made = Made()
    search = search_of(made)
    grown = {**samples.BINS, 11: samples.BINS[11] + 10_000}
    made.case.profile.take(samples.profile(grown), 9.0, is_searching=True)
    end(made, search).cut_short()
    (doubt,) = made.case.doubts
    assert "none of its 10000 calls since the search began came into the peak" in doubt


def watched(made: Made) -> Made:
    """When threads leave their processors is seen."""
    switches = SwitchWatch(MadeUpWatching(lambda: blocked(0.9)))
    switches.begin()
    brief = dataclasses.replace(made.brief, switches=switches)
    made.case = dataclasses.replace(made.case, brief=brief)
    return made


@pytest.mark.parametrize(
    ("is_gone", "why"),
    [
        (False, "too few calls were kept whole by then"),
        (True, "the program ended before enough calls were kept whole: a longer run tells"),
    ],
)
def test_what_ops_would_have_told(is_gone: bool, why: str) -> None:
    made = watched(Made())
    search = found(made)
    made.keeps()
    end(made, search, is_gone=is_gone).cut_short()
    (path,) = search.paths
    assert path.ending.note is not None
    assert path.ending.note.endswith(why)


def test_nobody_can_be_asked_any_more() -> None:
    made = Made()
    search = found(made)
    made.keeps()
    made.case.take_ops(made.brief.collector)
    end(made, search, is_gone=True).cut_short()
    assert made.case.ops.kept is not None
    assert made.case.ops.kept.why_no_waits == ENDED


def test_calls_that_are_as_short_as_what_probes_do_to_them() -> None:
    made = Made()
    search = found(made)
    made.collector.sure_from = 1.0
    end(made, search).conclude()
    (path,) = search.paths
    assert not path.is_sure


def resumed(**changes: Any) -> tuple[Made, PathSearch]:
    """A session whose paths and ops were saved, and whose calls have changed as said."""
    session = stored.sample()
    kept = ops.of_samples(session.root)
    made = Made(SavedDescent(session, ops=kept))
    search = search_of(made)
    for node in session.root.children:
        made.root.children.append(node)
    for name, value in changes.items():
        setattr(made.case.resumption if name == "has_changed" else search, name, value)
    return made, search


def test_a_saved_session_stands_as_long_as_nothing_new_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, search = resumed()
    shown = samples.snapshot()
    monkeypatch.setattr(type(search), "paths", property(lambda _self: shown.paths))
    monkeypatch.setattr(made.case.ops, "_kept", ops.of_samples(shown.paths[0].nodes[0]))
    assert stands_as_saved(made.case, search)
    search.has_decided = True
    assert not stands_as_saved(made.case, search)
    search.has_decided = False
    made.case.resumption.has_changed = True
    assert not stands_as_saved(made.case, search)
    made.case.resumption.has_changed = False
    made.keeps()
    made.case.take_ops(made.brief.collector)
    assert not stands_as_saved(made.case, search), "there are ops of this run"


def test_what_was_never_saved_does_not_stand() -> None:
    made = Made()
    assert not stands_as_saved(made.case, found(made))
