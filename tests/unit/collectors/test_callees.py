"""What an fnode calls, as its live code and the calls that were seen tell."""

from __future__ import annotations

import dataclasses

import pytest

from darc.collectors.sitereports import may_fall_back
from darc.model.ftree import CallKind, CallSite, Cause, NodeState
from darc.model.snapshot import SiteState
from tests.unit.callees import Make, Rules


def test_every_call_is_a_callee_of_its_own(make: Make) -> None:
    world = make()
    world.callees.expand(world.root)
    assert world.names(world.root) == ["g", "vfork", "h", "h"]
    first, second = world.root.children[2:]
    assert world.callees.site(first).address < world.callees.site(second).address
    assert world.root.has_unknown_callees  # what is behind rax is to be seen
    assert [s.address for s in world.callees.indirect(world.root)] == [world.indirect.address]


def test_what_cannot_be_timed_is_told_and_why(make: Make) -> None:
    world = make(Rules(hopeless="vfork"))
    world.callees = world.new(Rules(hopeless="vfork", no_room_at=world.sites[0].address))
    world.callees.expand(world.root)
    assert world.names(world.root) == ["h", "h"]
    told = {r.callee: r.why for r in world.callees.told.of_used(()) if r.why is not None}
    assert told == {"g": "it has no room", "vfork": "it returns twice"}
    # vfork has not returned in the program's own memory: nothing would be learned of it.
    assert [r.callee for r in world.callees.told.missed(world.root.function)] == ["g", "vfork"]


def test_only_so_many_tail_calls_in_one_frame(make: Make) -> None:
    world = make()
    world.callees.expand(world.root)
    g = world.root.children[0]
    world.callees.expand(g)
    assert world.names(g) == ["h", "t"]
    t = g.children[1]
    world.callees.expand(t)
    assert world.names(t) == []
    (missed,) = world.callees.told.missed(t.function)
    assert missed.why == "more than 1 tail calls lead on in one frame"


def test_a_batch_is_timed_with_all_that_is_not_known_yet(make: Make) -> None:
    world = make()
    world.callees.expand(world.root)
    g, vfork, *_ = world.root.children
    wanted = world.callees.wanted(world.root, [g])
    assert [children for _, children in wanted] == [[g], []]
    assert wanted[1][0].address == world.indirect.address
    exactly = world.callees.wanted(world.root, [g], is_exact=True)
    assert [children for _, children in exactly] == [[g]]
    vfork.state = NodeState.REJECTED
    every = [child for _, children in world.callees.wanted(world.root, None) for child in children]
    assert vfork not in every
    assert len(every) == 3


def test_targets_of_an_indirect_call_are_fnodes_once_they_were_called(make: Make) -> None:
    world = make()
    callees, site = world.callees, world.indirect
    callees.expand(world.root)
    assert callees.targets.learned(world.root, site, 0) is None
    g = callees.targets.learn(world.root, site, 0, world.at("g"))
    h = callees.targets.learn(world.root, site, 1, world.at("h"))
    assert (
        callees.targets.learned(world.root, site, 0),
        callees.targets.learned(world.root, site, 1),
    ) == (g, h)
    assert callees.called(world.root, site, world.at("h")) is h
    assert callees.positions() == {g: (0, 1), h: (0, 1)}


def test_lanes_are_freed_of_targets_that_do_not_win(make: Make) -> None:
    world = make()
    callees, site = world.callees, world.indirect
    callees.expand(world.root)
    targets = [world.at("g"), world.at("h")]
    h = [callees.targets.learn(world.root, site, lane, at) for lane, at in enumerate(targets)][1]
    assert callees.targets.keep(site, targets, lambda node: node is h, late=2) == [world.at("h")]
    assert callees.targets.learned(world.root, site, 0) is h
    assert callees.targets.learned(world.root, site, 1) is None


def test_targets_that_came_late_keep_their_lanes_and_those_that_come_again_their_fnodes(
    make: Make,
) -> None:
    world = make()
    callees, site = world.callees, world.indirect
    callees.expand(world.root)
    targets = [world.at("g"), world.at("h")]
    g, h = (callees.targets.learn(world.root, site, lane, at) for lane, at in enumerate(targets))
    assert callees.targets.keep(site, targets, lambda node: False, late=1) == [world.at("h")]
    assert callees.targets.learned(world.root, site, 0) is h
    assert callees.targets.learn(world.root, site, 1, world.at("g")) is g


def test_a_lane_that_another_target_takes_over_is_no_callers_old_one(make: Make) -> None:
    """One function on two paths calls at the same site, but not the same functions."""
    world = make()
    callees, site = world.callees, world.indirect
    callees.expand(world.root)
    again = world.root.add_child(world.root.function, world.root.children[0].site)
    targets = [world.at("g"), world.at("h")]
    h = [callees.targets.learn(world.root, site, lane, at) for lane, at in enumerate(targets)][1]
    callees.targets.learn(again, site, 0, world.at("g"))
    assert callees.targets.keep(site, targets, lambda node: node is h, late=2) == [world.at("h")]
    assert callees.targets.learned(world.root, site, 0) is h
    assert callees.targets.learned(again, site, 0) is None


def test_all_other_targets_are_one_fnode_that_says_so(make: Make) -> None:
    world = make()
    callees, site = world.callees, world.indirect
    callees.expand(world.root)
    assert callees.targets.learned(world.root, site, 2) is None
    others = callees.targets.others(world.root, site)
    assert (
        callees.targets.others(world.root, site)
        is callees.targets.learned(world.root, site, 2)
        is others
    )
    callees.expand(others)
    assert others.children == []
    assert others.site is not None
    offset = others.site.offset - world.root.function.offset
    assert others.function.name == f"other targets of f+{offset:#x}"
    why = f"in one of more targets of the call at f+{offset:#x} than could be told apart"
    assert others.meaning == (Cause.UNTOLD, why)
    assert callees.targets.keep(site, [], lambda node: False, late=1) == []
    assert callees.targets.learned(world.root, site, 2) is others


def test_other_interrupts_are_told_by_no_place_in_the_code_that_they_came_to(make: Make) -> None:
    world = make()
    site = dataclasses.replace(world.indirect, kind=CallKind.INTERRUPT)
    others = world.callees.targets.others(world.root, site)
    assert others.function.name == "other interrupts"
    assert others.meaning == (Cause.UNTOLD, "in one of more interrupts than could be told apart")


def test_breakpoints_look_only_at_what_pads_have_missed(make: Make) -> None:
    world = make()
    pads = world.new(Rules(no_room_at=world.sites[0].address))
    pads.expand(world.root)
    h = world.root.children[-1]
    breakpoints = world.new(Rules())
    breakpoints.take_over(pads, world.root)
    assert breakpoints.site(h) is pads.site(h)
    (g,) = breakpoints.fall_back(world.root)
    assert g.function.name == "g"
    (report,) = [r for r in breakpoints.told.of_used(()) if r.callee == "g"]
    assert report.state is SiteState.FELL_BACK
    assert not breakpoints.fall_back(world.root)  # each once
    breakpoints.told.fail(world.root, world.sites[0], "it is called too often")
    (report,) = [r for r in breakpoints.told.of_used(()) if r.callee == "g"]
    assert (report.state, report.why) == (
        SiteState.NOT_POSSIBLE,
        "it has no room; it is called too often",
    )


def test_a_child_of_vfork_is_left_alone_by_breakpoints_too(make: Make) -> None:
    world = make(Rules(hopeless="vfork"))
    world.callees.expand(world.root)
    (report,) = [r for r in world.callees.told.of_used(()) if r.callee == "vfork"]
    assert not may_fall_back(report)
    assert not world.new(Rules()).fall_back(world.root)


def test_only_what_was_timed_is_reported(make: Make) -> None:
    world = make()
    world.callees.expand(world.root)
    used = [world.sites[0].address]
    assert [r.callee for r in world.callees.told.of_used(used)] == ["g"]


def test_a_function_whose_code_cannot_be_read_is_told(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make()
    empty = world.program.function(world.at("f"))
    empty.ranges.clear()
    monkeypatch.setattr(world.program, "function", lambda entry: empty)
    world.callees.expand(world.root)
    assert world.notes == ["the code of f cannot be read"]
    assert not world.root.children


def test_what_a_session_has_learned_is_told_once_for_each_site(make: Make) -> None:
    world = make()
    world.callees.expand(world.root)
    place = CallSite(world.indirect.address, world.indirect.kind, "", world.indirect.address)
    assert world.callees.call_sites(world.root) == [place]
    found = world.callees.relearn({}, world.root, place, world.function("g"))
    assert found is None  # no module has it: the build is another one
    assert world.callees.targets.take_relearned(world.indirect) in ((), [])


def test_what_was_read_ahead_is_not_read_again(make: Make) -> None:
    """And is what would have been read: until something has changed."""
    world, plain = make(), make()
    plain.callees.expand(plain.root)
    function = world.root.function
    assert not world.callees.code.is_known(function)
    steps = list(world.callees.code.look_ahead(function))
    assert len(steps) == len(world.sites)
    assert world.callees.code.is_known(function)
    assert not list(world.callees.code.look_ahead(function))
    world.program.function = None  # type: ignore[assignment]
    world.callees.expand(world.root)
    assert world.names(world.root) == plain.names(plain.root)
    assert world.root.has_unknown_callees == plain.root.has_unknown_callees
    assert world.callees.told.of_used(()) == plain.callees.told.of_used(())
    world.callees.code.forget_ahead()
    assert not world.callees.code.is_known(function)
