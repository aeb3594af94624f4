"""A stored session in another run or another build of its program, on made-up programs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.errors import UsageError
from darc.model.ftree import (
    CallKind,
    CallSite,
    Cause,
    Cut,
    Ending,
    Fnode,
    Function,
    NodeState,
    Totals,
)
from darc.model.parameters import Parameters
from darc.model.peaks import PeakRange
from darc.model.profile import Profile
from darc.model.status import Status
from darc.saved import refit, storage
from darc.saved.storage import SearchState, Stored
from darc.search.contest import Contest

HZ = 2_600_000_000
EMPTY = Profile.empty(1, HZ)


@dataclass(frozen=True)
class Symbol:
    name: str
    address: int


@dataclass(frozen=True)
class Image:
    identity: str
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class Module:
    name: str
    bias: int
    image: Image


class RebuiltProgram:
    """Functions one behind the other; a call of ``*f`` is indirect and learned."""

    def __init__(
        self, functions: dict[str, list[str]], *, bias: int, build: str, at: int = 0x1000
    ) -> None:
        self.functions = functions
        self.bias = bias
        self.build = build
        self.offsets = {name: at + 0x100 * i for i, name in enumerate(functions)}
        image = Image(build, tuple(Symbol(n, o) for n, o in self.offsets.items()))
        self.modules = [Module("libc.so.6", 1, Image("77", ())), Module("prog", bias, image)]
        self.root = Fnode(self.function("f0"))
        self.learned: list[str] = []
        self.stored: Stored | None = None

    def function(self, name: str) -> Function:
        offset = self.offsets[name]
        return Function(
            name=name, symbol=name, module="prog", address=self.bias + offset, offset=offset
        )

    def site(self, caller: str, number: int) -> CallSite:
        offset = self.offsets[caller] + 8 * number
        called = self.functions[caller][number]
        kind = CallKind.INDIRECT if called.startswith("*") else CallKind.DIRECT
        return CallSite(self.bias + offset, kind, "prog", offset)

    def expand(self, node: Fnode) -> None:
        caller = node.function.symbol
        for number, callee in enumerate(self.functions[caller]):
            if not callee.startswith("*"):
                node.add_child(self.function(callee), self.site(caller, number))

    def indirect_sites(self, node: Fnode) -> list[CallSite]:
        caller = node.function.symbol
        calls = enumerate(self.functions[caller])
        return [self.site(caller, number) for number, name in calls if name.startswith("*")]

    def learn(self, node: Fnode, place: CallSite, callee: Function) -> Fnode | None:
        assert self.stored is not None
        address = refit.locate(callee, self.modules, self.stored.modules)
        if address is None:
            return None
        name = next(n for n, o in self.offsets.items() if o + self.bias == address)
        self.learned.append(name)
        return node.add_child(self.function(name), place)

    def is_same_build(self, old: Function, new: Function) -> bool:
        assert self.stored is not None
        return self.stored.modules[old.module] == self.build and old.offset == new.offset

    def searched(self, *path: str) -> Stored:
        """A session whose root causes are these, one level after the other."""
        node = self.root
        node.root_cause = True
        indirect = {}
        for name in path:
            self.expand(node)
            sites = self.indirect_sites(node)
            caller = node.function.symbol
            for place, site in enumerate(sites):
                number = self.functions[caller].index(f"*{name}") if place == 0 else -1
                if number >= 0 and site == self.site(caller, number):
                    indirect[node.add_child(self.function(name), site)] = (place, len(sites))
            for child in node.children:
                child.state = NodeState.REJECTED
            node.state = NodeState.ROOT_CAUSE
            node = next(c for c in node.children if c.function.symbol == name)
            node.root_cause, node.maxcount, node.totals = True, 20, Totals(20, 20, 900, 900)
        node.end = Ending(Cause.FUNCTION, 20)
        node.state = NodeState.ROOT_CAUSE
        stored = Stored(
            spec="f0",
            parameters=Parameters(),
            status=Status.FOUND,
            profile=EMPTY,
            root=self.root,
            modules={"prog": self.build},
            search=SearchState(20, (), indirect, peak=PeakRange(2, 20, None)),
        )
        # Through a file: what holds of it must not hang on addresses of the run.
        return storage.from_bytes(storage.to_text(stored).encode(), "s.json")

    def fit(self, stored: Stored) -> refit.Fitted:
        self.stored = stored
        live = refit.Live(self.expand, self.is_same_build, self.indirect_sites, self.learn)
        return refit.fit(stored, self.root, live)

    def causes(self) -> list[str]:
        return [node.function.name for node in self.root.walk() if node.root_cause]


FUNCTIONS = {
    "f0": ["log", "work", "log"],
    "work": ["lock", "*flush", "*pick", "lock"],
    "flush": ["log", "write", "log", "write"],
    "pick": [],
    "lock": [],
    "log": [],
    "write": [],
}


def changed(**functions: list[str]) -> dict[str, list[str]]:
    """The program with an extra function in front, so that every offset moves."""
    return {"extra": [], **FUNCTIONS, **functions}


def rebuilt(**functions: list[str]) -> RebuiltProgram:
    return RebuiltProgram(changed(**functions), bias=0x7F0000, build="b2")


@pytest.fixture
def stored() -> Stored:
    return RebuiltProgram(FUNCTIONS, bias=0x400000, build="b1").searched("work", "flush", "write")


def test_another_run_of_the_same_build(stored: Stored) -> None:
    program = RebuiltProgram(FUNCTIONS, bias=0x550000, build="b1")
    fitted = program.fit(stored)
    assert fitted.notes == ()
    assert program.causes() == ["f0", "work", "flush", "write"]
    assert program.learned == ["flush"]
    old = {node.id: node for node in stored.root.walk()}
    for node in program.root.walk():
        before = old[node.id]
        assert node.function.symbol == before.function.symbol
        assert node.function.address == 0x550000 + before.function.offset
        assert (node.state, node.maxcount, node.totals, node.end) == (
            before.state, before.maxcount, before.totals, before.end
        )  # fmt: skip


def test_another_build_with_all_the_same_calls(stored: Stored) -> None:
    program = rebuilt()
    assert program.fit(stored).notes == ()
    assert program.causes() == ["f0", "work", "flush", "write"]
    assert program.learned == ["flush"]


def test_the_same_build_goes_by_offset_not_by_name(stored: Stored) -> None:
    """Which of two calls of one function it was is not guessed."""
    write = next(n for n in stored.root.walk() if n.function.symbol == "write" and n.root_cause)
    assert write.parent is not None
    second = next(
        n for n in write.parent.children if n.function.symbol == "write" and n is not write
    )
    write.root_cause, second.root_cause = False, True
    program = RebuiltProgram(FUNCTIONS, bias=0, build="b1")
    program.fit(stored)
    assert [n.id for n in program.root.walk() if n.root_cause][-1] == second.id


@pytest.mark.parametrize(
    ("calls", "notes"),
    [
        (["log", "audit", "write", "log", "write"], ("1.2.3 flush has a call that was not there",)),
        (["audit", "audit", "log", "write", "log", "write"], ("1.2.3 flush has 2 calls that",)),
        (["write", "log", "write"], ("1 callee that was no root cause before",)),
        (["log", "write"], ("2 callees that were no root cause before",)),
    ],
)
def test_calls_that_came_and_went(stored: Stored, calls: list[str], notes: tuple[str, ...]) -> None:
    program = rebuilt(flush=calls, audit=[])
    seen = program.fit(stored).notes
    assert len(seen) == len(notes)
    assert all(note in line for note, line in zip(notes, seen, strict=True))
    assert program.causes() == ["f0", "work", "flush", "write"]


def test_calls_in_another_order(stored: Stored) -> None:
    program = rebuilt(f0=["work", "log", "log"])
    assert program.fit(stored).notes == ()
    assert program.causes() == ["f0", "work", "flush", "write"]


def test_what_does_not_fit_is_told_and_dropped(stored: Stored) -> None:
    program = rebuilt(f0=["log", "log"])
    fitted = program.fit(stored)
    assert program.causes() == ["f0"]
    assert fitted.notes == (
        "1.2 f0 → work, called at prog+0x1008 before, does not fit the program now, "
        "dropped with 7 nodes below it",
    )


def test_a_learned_callee_that_is_gone(stored: Stored) -> None:
    functions = changed(work=["lock", "*pick", "*pick", "lock"])
    del functions["flush"]
    program = RebuiltProgram(functions, bias=0, build="b2")
    (note,) = program.fit(stored).notes
    assert note.startswith("1.2.3 work → flush, called at")
    assert program.causes() == ["f0", "work"]


def test_indirect_calls_that_cannot_be_told_apart_are_dropped(stored: Stored) -> None:
    program = rebuilt(work=["lock", "*pick", "*flush", "*pick", "lock"])
    (note,) = program.fit(stored).notes
    assert note.startswith("1.2.3 work → flush")
    assert program.learned == []


def test_new_calls_below_nodes_that_are_compared_again_need_no_telling(stored: Stored) -> None:
    write = next(n for n in stored.root.walk() if n.end)
    assert write.parent is not None
    write.root_cause, write.end = False, None
    assert rebuilt(flush=["log", "write", "log", "write", "log"]).fit(stored).notes == ()
    write.parent.end = Ending(Cause.FUNCTION, 20, cut=Cut.DEPTH)
    assert rebuilt(flush=["log", "write", "log", "write", "log"]).fit(stored).notes == ()
    write.parent.end = Ending(Cause.FUNCTION, 20)
    assert len(rebuilt(flush=["log", "write", "log", "write", "log"]).fit(stored).notes) == 1


def test_offsets_as_names_say_nothing_about_another_build() -> None:
    before = RebuiltProgram({"f0": ["prog+0x1100"], "prog+0x1100": []}, bias=0, build="b1")
    stored = before.searched("prog+0x1100")
    same = RebuiltProgram(before.functions, bias=0x1000, build="b1")
    assert same.fit(stored).notes == ()
    other = RebuiltProgram(before.functions, bias=0x1000, build="b2")
    assert "does not fit" in other.fit(stored).notes[0]


def contest(node: Fnode) -> Contest:
    return Contest(
        node, seen=9, own=1, ops=8, totals=Totals(8, 8, 80, 80),
        votes=dict.fromkeys(node.children, 3),
        callee_totals=dict.fromkeys(node.children, Totals(8, 8, 70, 70)),
    )  # fmt: skip


def test_votes_are_kept_where_all_callees_fit(stored: Stored) -> None:
    flush = next(n for n in stored.root.walk() if n.function.symbol == "flush")
    stored = replace(
        stored,
        search=replace(stored.search, contests=(contest(flush), contest(stored.root))),
    )
    program = rebuilt()
    votes = program.fit(stored).contests
    assert [c.node.function.name for c in votes] == ["flush", "f0"]
    for found in votes:
        assert found.node in set(program.root.walk())
        assert list(found.votes) == list(found.callee_totals) == found.node.children
        assert found.ballot({}) == [1, *[3] * len(found.node.children)]
    other = rebuilt(flush=["log", "write", "log", "write", "log"])
    assert [c.node.function.name for c in other.fit(stored).contests] == ["f0"]


@given(st.lists(st.sampled_from("abcd"), max_size=9), st.lists(st.sampled_from("abcd"), max_size=9))
def test_callees_are_paired_one_to_one_and_by_name(old: list[str], new: list[str]) -> None:
    leaves: dict[str, list[str]] = {name: [] for name in "abcd"}
    before = RebuiltProgram({"f0": [*old, "end"], "end": [], **leaves}, bias=0, build="b1")
    stored = before.searched("end")
    program = RebuiltProgram({"f0": [*new, "end"], "end": [], **leaves}, bias=0, build="b2")
    program.fit(stored)
    assert program.causes() == ["f0", "end"]
    taken = [c for c in program.root.children if c.state is NodeState.REJECTED]
    assert len(taken) <= min(len(old), len(new))
    assert len(taken) >= (len(old) if old == new else 0)


# -- f0, parameters, profiles -----------------------------------------------------------------


def test_functions_are_found_by_build_and_offset_or_by_symbol() -> None:
    wanted = Function(name="f0", symbol="f0", module="prog", address=0x1000, offset=0x1000)
    builds = {"prog": "b1"}
    moved = RebuiltProgram(FUNCTIONS, bias=0x5000, build="b1").modules
    assert refit.locate(wanted, moved, builds) == 0x6000
    assert refit.locate(wanted, rebuilt().modules, builds) == 0x7F0000 + 0x1100
    assert refit.locate(wanted, rebuilt().modules, {}) == 0x7F0000 + 0x1100
    renamed = [replace(module, name="other") for module in moved]
    assert refit.locate(wanted, renamed, builds) == 0x6000
    assert refit.locate(wanted, renamed, {"prog": "b3"}) is None
    assert refit.locate(replace(wanted, symbol="f9"), rebuilt().modules, builds) is None
    twice = Image("b2", (Symbol("f0", 1), Symbol("f0", 2)))
    assert refit.locate(wanted, [Module("prog", 0, twice)], builds) is None


def test_parameters_are_those_that_were_saved_unless_given() -> None:
    stored = RebuiltProgram(FUNCTIONS, bias=0, build="b1").searched()
    stored = replace(stored, parameters=Parameters(thread=71, max_depth=3, start_ops=7))
    found = refit.new_parameters(stored, {"max_depth": 9})
    assert found == Parameters(max_depth=9, start_ops=7)
    assert refit.opening_notes(stored, found) == (
        "thread 71 was of another run: the calls of every thread are analysed now",
    )
    found = refit.new_parameters(stored, {"thread": 72})
    assert found.thread == 72
    assert refit.opening_notes(stored, found) == ()


def test_another_peak_is_another_search() -> None:
    stored = RebuiltProgram(FUNCTIONS, bias=0, build="b1").searched()
    stored = replace(stored, parameters=Parameters(peak="2"))
    refit.check_overrides(stored, {"peak": "2", "max_depth": 9, "resolution": 1})
    with pytest.raises(UsageError, match="--peak: darc resume goes on with the peak"):
        refit.check_overrides(stored, {"peak": "3"})
    with pytest.raises(UsageError, match="'darc start f0 --resolution …'"):
        refit.check_overrides(stored, {"resolution": 2})
    refit.check_overrides(replace(stored, search=SearchState()), {"peak": "3", "resolution": 2})


def profile(bins: dict[int, int], hz: int = HZ) -> Profile:
    return Profile(1, hz, bins, sum(bins.values()))


def test_a_changed_distribution_is_told() -> None:
    before = profile({11: 950, 23: 50})
    assert refit.compare(before, profile({11: 950, 23: 50}, HZ + HZ // 1000)).notes == ()
    assert refit.compare(before, profile({})).notes == ()
    (note,) = refit.compare(before, profile({13: 950, 26: 50})).notes
    assert note.startswith("the distribution has changed (EMD 2.0 bins): ")
    (note,) = refit.compare(before, profile({11: 850, 23: 150})).notes
    assert ": 5 % of the calls before, 15.0 % now" in note


def test_a_peak_has_changed_where_its_own_calls_have() -> None:
    before, slow = profile({11: 950, 23: 50}), PeakRange(2, 20, None)
    assert not refit.compare(before, before).has_changed(slow)
    assert not refit.compare(before, profile({13: 950, 23: 50})).has_changed(slow)
    assert refit.compare(before, profile({11: 850, 23: 150})).has_changed(slow)
    assert refit.compare(before, profile({11: 950, 26: 50})).has_changed(slow)
    assert refit.compare(before, profile({11: 1000})).has_changed(slow)
    finer = Profile(2, HZ, {22: 950, 46: 50}, 1000)
    assert refit.compare(finer, profile({11: 850, 23: 150})).has_changed(PeakRange(2, 44, 48))
    assert not refit.compare(finer, profile({11: 960, 25: 40})).has_changed(PeakRange(1, 22, 23))


def test_what_too_few_calls_cannot_tell_is_told() -> None:
    (note,) = refit.compare(profile({11: 95, 23: 5}), profile({11: 94, 23: 6})).notes
    assert ": 5 % of the calls before, 6 % now: cannot tell whether" in note
    assert re.search(r"it needs about \d+ calls in each run \('--start-ops \d+'\)", note)


def test_another_clock_is_told() -> None:
    before = profile({11: 950, 23: 50})
    (note,) = refit.compare(before, profile({11: 950, 23: 50}, HZ // 2)).notes
    assert "2600 MHz, here it is 1300 MHz" in note
