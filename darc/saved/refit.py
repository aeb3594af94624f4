"""A stored session fitted to a program that runs now (paper section 3.4).

Another run has its code at other addresses, and the program may have been built anew. Where a
file of the program is the same build, its call sites are found by their offset in it; otherwise by
what stays when code is changed a little: the order of a function's callees. What does not fit is
told, and everything below it is dropped.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from darc.code.demangle import base_symbol
from darc.model import comparison
from darc.model.comparison import ChangeVerdict, PeakChange, Slices, emd
from darc.model.errors import UsageError
from darc.model.ftree import CallSite, Cut, Fnode, Function
from darc.model.parameters import Parameters
from darc.model.peaks import PeakRange
from darc.model.profile import Profile, same_clock
from darc.saved.storage import Stored
from darc.search.contest import Contest


class _Symbol(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> int: ...


class _Image(Protocol):
    @property
    def identity(self) -> str: ...
    @property
    def symbols(self) -> Iterable[_Symbol]: ...


class _Module(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def bias(self) -> int: ...
    @property
    def image(self) -> _Image: ...


@dataclass(frozen=True)
class Live:
    """What a refit needs of the program that runs."""

    expand: Callable[[Fnode], None]
    """Adds the callees that a node's code tells of, and brings its function up to date."""
    is_same_build: Callable[[Function, Function], bool]
    """Whether a stored function and a live one are the same place in the same build of a file."""
    indirect_sites: Callable[[Fnode], Sequence[CallSite]]
    """The indirect call sites of a node that was expanded, by address."""
    learn: Callable[[Fnode, CallSite, Function], Fnode | None]
    """Adds a node for a stored callee of an indirect call site; None where there is no such
    function now."""


@dataclass(frozen=True)
class Fitted:
    """What a refit has come to."""

    notes: tuple[str, ...]
    """What does not fit, one line for each."""
    contests: tuple[Contest, ...]
    """The stored votes, of the nodes that fit with all their callees."""
    nodes: Mapping[Fnode, Fnode]
    """The nodes that fit, as they are now."""


def check_overrides(stored: Stored, overrides: Mapping[str, object]) -> None:
    """Raises :class:`~darc.model.errors.UsageError` for options that contradict what is stored: a
    peak other than the one that the ftree explains."""
    if stored.search.peak is None:
        return
    for option in ("peak", "resolution"):
        if option in overrides and overrides[option] != getattr(stored.parameters, option):
            raise UsageError(
                f"--{option}: darc resume goes on with the peak that was saved; "
                f"type 'darc start {stored.spec} --{option} …' for another search"
            )


def new_parameters(stored: Stored, overrides: Mapping[str, object]) -> Parameters:
    """The parameters to go on with. A thread id is of one run alone: it is taken over only when
    it is given anew."""
    return replace(stored.parameters, thread=None).overridden(overrides)


def opening_notes(stored: Stored, parameters: Parameters) -> tuple[str, ...]:
    """What is to be told about a session that is resumed with ``parameters``."""
    before = stored.parameters.thread
    if before is None or parameters.thread is not None:
        return ()
    return (f"thread {before} was of another run: the calls of every thread are analysed now",)


@dataclass(frozen=True)
class Compared:
    """The profile of this run beside the stored one."""

    before: Profile
    now: Profile
    changes: Sequence[PeakChange]
    """What became of each peak of the two."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told of it. Where nothing is, nothing was seen: that the two are the same
        is not for calls to say."""
        return (*self._clock_notes(), *self._change_notes())

    def _clock_notes(self) -> Iterator[str]:
        before, now = self.before.hz, self.now.hz
        if not same_clock(before, now):
            yield (
                f"the session was saved where cycles are counted at {before / 1e6:.0f} MHz, here "
                f"it is {now / 1e6:.0f} MHz: its bins stand for other times"
            )

    def _change_notes(self) -> Iterator[str]:
        resolution = math.gcd(self.before.resolution, self.now.resolution)
        shown = functools.partial(_change_text, self.now.coarsened(resolution))
        if changed := self._of(ChangeVerdict.CHANGED):
            yield (
                f"the distribution has changed (EMD {emd(self.before, self.now):.1f} bins): "
                f"{'; '.join(map(shown, changed))}; the search goes on with the peak that was saved"
            )
        elif doubtful := self._of(ChangeVerdict.CANNOT_TELL):
            clearest = min(doubtful, key=lambda c: (c.calls_to_tell, -c.peak.first_bin))
            calls = clearest.calls_to_tell
            yield (
                f"{shown(clearest)}: cannot tell whether that has changed; it needs about {calls} "
                f"calls in each run ('--start-ops {calls}')"
            )

    def has_changed(self, peak: PeakRange) -> bool:
        """Whether calls of the ``peak`` of the stored profile came, went or moved since, beyond
        what chance explains."""
        fine = self.before.resolution
        coarse = math.gcd(fine, self.now.resolution)
        first = peak.first_bin * coarse // fine
        last = math.inf if peak.last_bin is None else peak.last_bin * coarse // fine
        return any(
            change.peak.first_bin <= last and change.peak.last_bin >= first
            for change in self._of(ChangeVerdict.CHANGED)
        )

    def _of(self, verdict: ChangeVerdict) -> list[PeakChange]:
        return [change for change in self.changes if change.verdict is verdict]


def compare(
    before: Profile, now: Profile, slices_before: Slices = (), slices_now: Slices = ()
) -> Compared:
    """How the profile of this run differs from the stored one, where both have calls."""
    if not before.bins or not now.bins:
        return Compared(before, now, ())
    changes = comparison.compare(before, now, slices_before, slices_now)
    return Compared(before, now, changes)


def _change_text(profile: Profile, change: PeakChange) -> str:
    told = change.figures(profile)
    text = f"{told.where}: {told.before} of the calls before, {told.now} now"
    return f"{text}, {told.octaves} further to the {told.side}" if change.has_moved else text


def locate(
    function: Function, modules: Iterable[_Module], identities: Mapping[str, str]
) -> int | None:
    """Where a stored function is now: by its offset in the same build of its file, else by its
    symbol in a file of the same name; None where that is not exactly one place."""
    modules = list(modules)
    identity = identities.get(function.module)
    for module in modules:
        if identity is not None and module.image.identity == identity:
            return module.bias + function.offset
    found = {
        symbol.address + module.bias
        for module in modules
        if module.name == function.module
        for symbol in module.image.symbols
        if symbol.name == function.symbol
    }
    return found.pop() if len(found) == 1 else None


def fit(stored: Stored, root: Fnode, live: Live) -> Fitted:
    """Builds the stored ftree anew below ``root``, which is f0 as it is now."""
    return _Fitting(stored, live).run(root)


class _Fitting:
    def __init__(self, stored: Stored, live: Live) -> None:
        self._stored = stored
        self._live = live
        self._new: dict[Fnode, Fnode] = {}
        self._whole: set[Fnode] = set()
        self._notes: list[str] = []
        self._gone = 0

    def run(self, root: Fnode) -> Fitted:
        self._new[self._stored.root] = root
        for old in self._stored.root.walk():
            new = self._new.get(old)
            if new is None:
                continue  # below one that does not fit
            new.take_over(old)
            if old.children:
                self._descend(old, new)
        if self._gone:
            callees = "callee that was" if self._gone == 1 else "callees that were"
            self._notes.append(f"{self._gone} {callees} no root cause before are not called now")
        contests = [
            self._contest(contest)
            for contest in self._stored.search.contests
            if contest.node in self._whole
        ]
        return Fitted(tuple(self._notes), tuple(contests), self._new)

    def _descend(self, old: Fnode, new: Fnode) -> None:
        live = self._live
        live.expand(new)
        exact = live.is_same_build(old.function, new.function)
        callees = list(new.children)
        direct = [child for child in old.children if child not in self._stored.search.indirect]
        pairs = _same_sites(direct, callees) if exact else _same_callees(direct, callees)
        missing: list[Fnode] = []
        for child in old.children:
            found = pairs.get(child)
            if child in self._stored.search.indirect:
                found = self._learned(child, old, new, exact)
            if found is None:
                missing.append(child)
            else:
                self._new[child] = found
        fresh = len(callees) - len(pairs)
        if not missing and not fresh:
            self._whole.add(old)
        self._tell_missing(old, missing)
        if fresh and _is_decided(old):
            calls = "a call that was" if fresh == 1 else f"{fresh} calls that were"
            self._notes.append(
                f"{old.id} {old.function.name} has {calls} not there before and not compared"
            )

    def _learned(self, child: Fnode, old: Fnode, new: Fnode, exact: bool) -> Fnode | None:
        sites = self._live.indirect_sites(new)
        number, count = self._stored.search.indirect[child]
        assert child.site is not None
        site: CallSite | None = None
        if exact:
            site = next((s for s in sites if s.offset == child.site.offset), None)
        elif len(sites) == count:
            site = sites[number]
        return None if site is None else self._live.learn(new, site, child.function)

    def _tell_missing(self, old: Fnode, missing: Sequence[Fnode]) -> None:
        for child in missing:
            if not child.root_cause:
                self._gone += 1
                continue
            assert child.site is not None
            below = sum(1 for _ in child.walk()) - 1
            dropped = f", dropped with {below} nodes below it" if below else ", dropped"
            place = f"{child.site.module}+{child.site.offset:#x}"
            self._notes.append(
                f"{child.id} {old.function.name} → {child.function.name}, called at {place} "
                f"before, does not fit the program now{dropped}"
            )

    def _contest(self, old: Contest) -> Contest:
        new = self._new
        return Contest(
            new[old.node],
            seen=old.seen,
            own=old.own,
            ops=old.ops,
            totals=old.totals,
            votes={new[child]: votes for child, votes in old.votes.items()},
            callee_totals={new[child]: totals for child, totals in old.callee_totals.items()},
        )


def _is_decided(node: Fnode) -> bool:
    """Whether a search does not compare the callees of ``node`` again."""
    if not node.root_cause:
        return False
    ended = node.end is not None and node.end.cut not in (Cut.DEPTH, Cut.EARLY)
    return ended or any(child.root_cause for child in node.children)


def _same_sites(old: Sequence[Fnode], new: Sequence[Fnode]) -> dict[Fnode, Fnode]:
    """In one build: the same instruction is the same call."""
    by_offset = {child.site.offset: child for child in new if child.site is not None}
    return {
        child: by_offset[child.site.offset]
        for child in old
        if child.site is not None and child.site.offset in by_offset
    }


def _same_callees(old: Sequence[Fnode], new: Sequence[Fnode]) -> dict[Fnode, Fnode]:
    """In another build: calls of the same callees in the same order, and besides these the calls
    of a callee that both call once."""
    old_names, new_names = [_name(node) for node in old], [_name(node) for node in new]
    matcher = difflib.SequenceMatcher(None, old_names, new_names, autojunk=False)
    pairs = {
        old[block.a + i]: new[block.b + i]
        for block in matcher.get_matching_blocks()
        for i in range(block.size)
    }
    taken = set(pairs.values())
    left: dict[str, list[Fnode]] = {}
    for node in new:
        if node not in taken:
            left.setdefault(_name(node), []).append(node)
    rest: dict[str, list[Fnode]] = {}
    for node in old:
        if node not in pairs:
            rest.setdefault(_name(node), []).append(node)
    for name, nodes in rest.items():
        if len(nodes) == len(left.get(name, ())) == 1:
            pairs[nodes[0]] = left[name][0]
    # Where there is no symbol, the name is an offset, which says nothing about another build.
    return {a: b for a, b in pairs.items() if not _is_nameless(a.function)}


def _name(node: Fnode) -> str:
    return base_symbol(node.function.symbol)


def _is_nameless(function: Function) -> bool:
    return function.symbol in (f"{function.module}+{function.offset:#x}", f"{function.offset:#x}")
