"""However a search ends: what is corrected in the paths that are known by then, and what is told of
them."""

from __future__ import annotations

from darc.analyses.case import Case
from darc.analyses.corrections import (
    Corrections,
    tell_held,
    tell_others,
    tell_own_doing,
    tell_unheard,
)
from darc.analyses.pathsearch import PathSearch
from darc.collectors.collector import Collector
from darc.model.shares import share_of
from darc.model.status import Status
from darc.search.descent import outcome

_TOO_FEW = "too few calls were kept whole by then"
_TOO_FEW_AT_THE_END = "the program ended before enough calls were kept whole: a longer run tells"


def early_status(status: Status, has_paths: bool) -> Status:
    """What a search ends as that is ended from outside: the paths that have ended by then are
    root causes, whatever else was still being compared."""
    if not has_paths:
        return Status.INCONCLUSIVE
    return Status.FOUND if status is Status.SEARCHING else status


def stands_as_saved(case: Case, search: PathSearch) -> bool:
    """Whether there is nothing to find out in this run: what an earlier session has found
    stands, its ops told what that explains, and the peak's calls are what they were."""
    if (
        case.resumption.has_changed
        or search.has_decided
        or not case.brief.root.children
        or case.ops.of_this_run is not None
    ):
        return False
    return any(share_of(path, case.ops.kept) is not None for path in search.paths)


class SearchEnd:
    """Of a ``search`` by what ``collector`` has counted; ``is_gone``: the program is, or is about
    to be."""

    def __init__(
        self, case: Case, collector: Collector, search: PathSearch, *, is_gone: bool
    ) -> None:
        self._case = case
        self._collector = collector
        self._search = search
        self._is_gone = is_gone

    def conclude(self) -> Status:
        """By itself, or behind the closing round: what it is then. Changes the ftree."""
        self._search.explain()
        self._close_up(is_cut_short=False)
        return outcome(self._search.paths)

    def cut_short(self) -> None:
        """From outside. Changes the ftree."""
        self._close_up(is_cut_short=True)

    def _close_up(self, *, is_cut_short: bool) -> None:
        """Corrects the paths, and says what is to be known of them."""
        case, profile, spec = self._case, self._case.profile, self._case.brief.spec
        case.close_ops(is_gone=self._is_gone)
        told = (profile.told_of_search(spec), profile.told_of_fast(spec, self._collector.overdrawn))
        case.of_paths.extend(one for one in told if one is not None)
        case.ops.forget(self._search.close(is_cut_short=is_cut_short))
        self._tell_unheard()
        self._correct()
        self._search.tell_untimed()
        tell_others(self._search.paths)

    def _tell_unheard(self) -> None:
        """What votes alone do not tell, where ops were to tell it."""
        case, switches = self._case, self._case.brief.switches
        keeps = switches.is_watching and self._collector.ops is not None
        if keeps and not stands_as_saved(case, self._search):
            why = _TOO_FEW_AT_THE_END if self._is_gone else _TOO_FEW
            tell_unheard(self._search.paths, case.ops.of_this_run, why)

    def _correct(self) -> None:
        """By what the ops of this run say of the paths."""
        case, brief, search = self._case, self._case.brief, self._search
        kept, profile = case.ops.of_this_run, case.profile
        found = Corrections(search.paths, brief.root, profile, brief.parameters)
        if kept is None:
            found.without_ops()
        else:
            are_all = not search.descent.under_way
            found.by_ops(kept, were_watched=brief.switches.is_watching, are_all=are_all)
            if case.ops.may_be_held:
                tell_held(search.paths)
        if self._collector.sure_from * profile.at_choice.hz > profile.limits()[0]:
            tell_own_doing(search.paths)
        case.tell(found.notes)
        case.of_paths.extend(found.doubts)
