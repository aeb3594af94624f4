"""Sessions as files: what is written is read, and nothing else is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darc.model.errors import DarcError, FormatError, NotFoundError, TargetError, UsageError
from darc.model.ftree import (
    CallKind,
    CallSite,
    Cause,
    Cut,
    Decision,
    Ending,
    Fnode,
    Function,
    NodeState,
    Totals,
    Unclear,
)
from darc.model.leftout import LeftOutFor
from darc.model.ops import KeptOps, ObjectKind, OpClass, Span, Sum
from darc.model.parameters import MAX_DEPTH, OnFinish, Parameters, Probes
from darc.model.peaks import PeakRange
from darc.model.profile import Profile
from darc.model.status import Status
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.saved import sets, storage
from darc.saved.checked import DamagedFileError
from darc.saved.descents import SavedDescent, from_session, to_parts
from darc.saved.storage import SearchState, Stored
from darc.search.contest import Contest
from tests.unit import ops, samples
from tests.unit.stored import sample

COUNTS = st.integers(0, 2**64)
TEXTS = st.text(st.characters(exclude_characters="\0"), max_size=8)
PARAMETERS = st.builds(
    Parameters,
    peak=st.sampled_from([None, "3", "last", "2-3", ">4ms", "p99.5"]),
    start_ops=st.none() | st.integers(1, 10**9),
    start_time=st.none() | st.floats(1e-9, 1e9),
    decision_ops=st.none() | st.integers(1, 10**9),
    maxcount_percentage=st.floats(0, 1, exclude_min=True),
    max_depth=st.integers(1, MAX_DEPTH),
    lookahead=st.none() | st.integers(1, 1000),
    max_time=st.none() | st.floats(1e-9, 1e9),
    thread=st.none() | st.integers(1, 1 << 22),
    probes=st.sampled_from([Probes.AUTO, Probes.PAD]),
    on_finish=st.sampled_from(OnFinish),
    auto=st.booleans(),
)
TOTALS = st.builds(Totals, COUNTS, COUNTS, COUNTS, COUNTS)
FUNCTIONS = st.builds(Function, TEXTS, TEXTS, TEXTS, COUNTS, COUNTS)
BINS = st.dictionaries(st.integers(0, 64), st.integers(1, 10**9), max_size=9)
NOTES = st.none() | TEXTS
PLAIN = st.sampled_from([cause for cause in Cause if cause is not Cause.LOOP])
LOOPS = st.builds(
    Ending, st.just(Cause.LOOP), COUNTS, TEXTS, st.floats(0, 1e9), st.floats(0, 1), NOTES
)
DECISIONS = st.builds(Decision, COUNTS, COUNTS, COUNTS, st.booleans())
CUTS = st.none() | st.sampled_from(Cut)
ENDINGS = st.builds(Ending, PLAIN, COUNTS, note=NOTES, cut=CUTS) | LOOPS


def unclear(ending: Ending, what: set[Unclear]) -> Ending:
    """The same, of which something is not known."""
    for one in what:
        ending = ending.noting(f"it is {one.text}: …", one)
    return ending


UNCLEAR = st.builds(unclear, ENDINGS, st.sets(st.sampled_from(Unclear)))

PATHS = st.lists(TEXTS, max_size=3).map(tuple)
HOLDERS = st.builds(
    Holder, st.sampled_from(Role), TEXTS, PATHS, COUNTS, COUNTS, st.lists(COUNTS).map(tuple)
)
OBJECTS = st.builds(
    WaitedFor,
    kind=st.sampled_from(ObjectKind),
    name=TEXTS,
    path=PATHS,
    cycles=COUNTS,
    ops=COUNTS,
    waits=COUNTS,
    holders=st.lists(HOLDERS, max_size=3).map(tuple),
)
WAITS = st.builds(Waits, COUNTS, COUNTS, st.lists(OBJECTS, max_size=3).map(tuple), COUNTS)


@st.composite
def sessions(draw: st.DrawFn) -> Stored:
    root = Fnode(draw(FUNCTIONS))
    nodes, indirect = [root], {}
    for _ in range(draw(st.integers(0, 8))):
        site = draw(st.builds(CallSite, COUNTS, st.sampled_from(CallKind), TEXTS, COUNTS))
        node = draw(st.sampled_from(nodes)).add_child(draw(FUNCTIONS), site)
        if site.kind.is_indirect:
            many = draw(st.integers(1, 9))
            indirect[node] = (draw(st.integers(0, many - 1)), many)
        nodes.append(node)
    contests = []
    for node in nodes:
        node.state = draw(st.sampled_from(NodeState))
        node.root_cause = draw(st.booleans())
        node.has_unknown_callees = draw(st.booleans())
        node.maxcount, node.self_maxcount = draw(COUNTS), draw(COUNTS)
        node.totals, node.called = draw(TOTALS), draw(TOTALS)
        node.decision = draw(st.none() | DECISIONS)
        node.end = draw(st.none() | UNCLEAR)
        if draw(st.booleans()):
            totals = draw(TOTALS)
            contests.append(
                Contest(
                    node=node,
                    seen=draw(st.integers(1, 99)),
                    own=draw(COUNTS),
                    ops=totals.ops,
                    totals=totals,
                    votes={child: draw(COUNTS) for child in node.children},
                    callee_totals={child: draw(TOTALS) for child in node.children},
                )
            )
    parameters = draw(PARAMETERS)
    bins = draw(BINS)
    first = draw(st.integers(0, 63))
    waits = draw(st.dictionaries(st.sampled_from(OpClass), WAITS))
    kept = draw(st.none() | ops.kept_ops(nodes))
    if kept is not None:
        kept = dataclasses.replace(kept, sees_waits=bool(waits))
    return Stored(
        spec=draw(TEXTS),
        parameters=parameters,
        status=draw(st.sampled_from(Status)),
        profile=Profile(
            resolution=1,
            hz=draw(st.integers(1, 10**10)),
            bins=bins,
            count=sum(bins.values()),
            total=draw(COUNTS),
        ),
        root=root,
        modules=draw(st.dictionaries(TEXTS, TEXTS, max_size=3)),
        search=SearchState(
            draw(COUNTS),
            tuple(contests),
            indirect,
            peak=draw(
                st.none()
                | st.builds(
                    PeakRange,
                    st.none() | st.integers(1, 9),
                    st.just(first),
                    st.none() | st.integers(first, 63),
                )
            ),
            slices=tuple(draw(st.lists(BINS, max_size=20))),
        ),
        analysis=draw(TEXTS),
        parts=to_parts(kept, waits),
    )


def read(text: str) -> Stored:
    return storage.from_bytes(text.encode(), "s.json")


def read_whole(data: bytes) -> SavedDescent:
    """The session, with the parts that the descent reads."""
    stored = storage.from_bytes(data, "s.json")
    try:
        return from_session(stored)
    except DamagedFileError as error:
        raise FormatError(f"s.json {error}") from None


def refusal(data: bytes) -> str:
    """The message for a file that is not right: one line that begins with the file's name."""
    with pytest.raises(FormatError) as error:
        read_whole(data)
    message = str(error.value)
    assert message.startswith("s.json ")
    assert len(message.splitlines()) == 1
    assert message.isprintable()
    assert len(message) < 400
    return message


def is_same(left: object, right: object) -> bool:
    """As pytest draws no difference of what is true or not: that of two whole sessions takes
    minutes, for each example anew."""
    return left == right


@given(sessions())
def test_round_trip(stored: Stored) -> None:
    text = storage.to_text(stored)
    again = read(text)
    assert is_same(storage.to_text(again), text)
    assert again.parameters == stored.parameters
    assert again.profile == stored.profile
    assert again.search.peak == stored.search.peak
    assert again.analysis == stored.analysis
    assert is_same(again.search.slices, stored.search.slices)
    before, now = from_session(stored), from_session(again)
    assert is_same(now.waits, before.waits)
    nodes = list(zip(stored.root.walk(), again.root.walk(), strict=True))
    for old, new in nodes:
        assert (new.id, new.state, new.totals, new.end) == (old.id, old.state, old.totals, old.end)
        assert (new.called, new.decision) == (old.called, old.decision)
        assert new.function.address == new.function.offset == old.function.offset
    assert [c.node.id for c in again.search.contests] == [c.node.id for c in stored.search.contests]
    assert [c.ballot({}) for c in again.search.contests] == [
        c.ballot({}) for c in stored.search.contests
    ]
    assert {n.id: p for n, p in again.search.indirect.items()} == {
        n.id: p for n, p in stored.search.indirect.items()
    }
    assert is_same(shown(now.ops), shown(before.ops))
    if now.ops is not None:
        theirs = set(again.root.walk())
        assert all(total.node in theirs for op in now.ops.ops for total in op.sums)


def shown(kept: KeptOps | None) -> object:
    """The ops by values, with the ids of their fnodes."""
    if kept is None:
        return None

    def plain(one: Span | Sum) -> object:
        return dataclasses.replace(one, node=one.node.id)  # type: ignore[arg-type]

    rows = [
        dataclasses.replace(op, spans=tuple(map(plain, op.spans)), sums=tuple(map(plain, op.sums)))  # type: ignore[arg-type]
        for op in kept.ops
    ]
    compared = frozenset(node.id for node in kept.compared)
    return dataclasses.replace(kept, ops=tuple(rows), compared=compared)  # type: ignore[arg-type]


def handlers(module: str) -> Stored:
    """A contest in which an interrupt has come that is handled at an offset in one module, and a
    handler at the same offset of ``module`` was timed as well."""
    root = Fnode(samples.function("handle"))
    votes = {}
    for index, name in enumerate(("vmlinux", module)):
        address = 0x400000 if name == "vmlinux" else 0x800000
        function = Function(
            name=f"f{index}", symbol=f"f{index}", module=name, address=address, offset=0x900
        )
        votes[root.add_child(function, ops.indirect_site())] = index
    contest = Contest(node=root, seen=5, own=4, ops=5, totals=Totals(5, 5, 50, 50), votes=votes)
    return dataclasses.replace(
        sample(), root=root, search=SearchState(60, (contest,)), modules={}, parts={}
    )


def test_handlers_of_two_modules_at_one_offset_stay_two() -> None:
    for stored in (handlers("nvme"), read(storage.to_text(handlers("nvme")))):
        assert stored.search.contests[0].ballot({}) == [4, 0, 1]


def test_ops_of_another_build_keep_their_calls() -> None:
    stored = sample()
    ops_before = from_session(stored).ops
    assert ops_before is not None
    moved = Fnode(samples.function("handle", offset=0x2100))
    again = read(storage.to_text(dataclasses.replace(
        stored, root=moved, search=SearchState(60)
    )))  # fmt: skip
    assert shown(from_session(again).ops) == shown(ops_before)
    assert not list(moved.children)
    assert read_whole(storage.to_text(again).encode()).ops is not None
    assert storage.to_text(read(storage.to_text(again))) == storage.to_text(again)


RECORDED = Path(__file__).parents[2] / "recorded/session-4.json"
"""As the last darc wrote it that had sentences alone."""


def test_a_recorded_session_means_what_it_meant() -> None:
    """Whatever users are told today: what it says in the words of its time are values."""
    stored = storage.read_file(RECORDED)
    ends = [node.end for node in stored.root.walk() if node.end is not None]
    asked, missed = "of a signal: nobody asked", "it is {}: callees are not timed"
    spent, whose = "whether it ran or waited is not known", "the time may be theirs"
    assert [(end.cut, end.note, set(end.unclear)) for end in ends] == [
        (Cut.DEPTH, None, set()),
        (Cut.DEPTH, asked, set()),
        (Cut.EARLY, None, set()),
        (Cut.EARLY, asked, set()),
        (Cut.DIVIDES, None, set()),
        (Cut.DIVIDES, asked, set()),
        (None, missed.format(spent), {Unclear.HOW_SPENT}),
        (None, missed.format(whose), {Unclear.WHOSE}),
        (None, "a plain note", set()),
        (
            Cut.DEPTH,
            f"nobody saw {spent}; calls: {whose}",
            {Unclear.HOW_SPENT, Unclear.WHOSE},
        ),
    ]
    known = sets.from_part(stored.parts[sets.PART])
    assert [why.kind for _, why in known.left_out] == [
        LeftOutFor.TIME, LeftOutFor.USER, LeftOutFor.NUMBER, LeftOutFor.ITSELF
    ]  # fmt: skip
    again = read(storage.to_text(stored))
    assert [node.end for node in again.root.walk() if node.end is not None] == ends


@pytest.mark.parametrize(("kind", "values"), [
    (Cut, "depth early divides"),
    (Unclear, "how_spent whose who_held whose_doing"),
    (LeftOutFor, "itself number time user"),
])  # fmt: skip
def test_what_files_have_is_never_called_otherwise(kind: type[Enum], values: str) -> None:
    assert [one.value for one in kind] == values.split()


def test_what_a_file_says_does_not_depend_on_what_users_are_told() -> None:
    root = Fnode(samples.function("handle"))
    root.end = Ending(Cause.FUNCTION, 3, note="of other words", cut=Cut.EARLY)
    root.end = root.end.noting(None, *Unclear)
    stored = dataclasses.replace(sample(), root=root, search=SearchState(60), parts={})
    text = storage.to_text(stored)
    assert Cut.EARLY.text not in text
    assert read(text).root.end == root.end


def test_a_session_of_an_earlier_release_can_be_read() -> None:
    content = json.loads(storage.to_text(sample()))
    for node in content["ftree"]:
        if node["end"] is not None:
            del node["end"]["cut"], node["end"]["unclear"]
    content["version"] = 4
    assert read(json.dumps(content)).analysis == "start"
    del content["analysis"]
    content["version"] = 3
    assert read(json.dumps({**content})).analysis == "start"
    of_set = {**content, "parts": {"set": {}}}
    assert read(json.dumps(of_set)).analysis == "profile"
    del content["parts"]
    content["version"] = 2
    assert read(json.dumps(content)).parts == {}
    content["version"] = 1
    for node in content["ftree"]:
        del node["called"], node["decision"]
    del content["profile"]["slices"]
    root = read(json.dumps(content)).root
    assert root.decision is None
    assert root.find("1.7").called == root.find("1.7").totals


def test_parts_that_nobody_knows_are_kept() -> None:
    parts = {"sets": {"objects": [1, None, "log_lock"]}, "later": []}
    again = read(storage.to_text(dataclasses.replace(sample(), parts=parts)))
    assert again.parts == parts
    assert read(storage.to_text(again)).parts == parts


def test_what_users_were_told_beside_the_paths_is_kept() -> None:
    doubts = ("flush explains 25 % of the peak's time: most of it has other causes",)
    again = read(storage.to_text(dataclasses.replace(sample(), parts=to_parts(doubts=doubts))))
    assert from_session(again).doubts == doubts
    content = json.loads(storage.to_text(again))
    content["parts"]["doubts"] = [1]
    with pytest.raises(FormatError, match=r"parts.doubts\[0\]"):
        read_whole(json.dumps(content).encode())


def test_no_address_of_the_run_is_written() -> None:
    assert "4194304" not in storage.to_text(sample())  # 0x400000
    content = json.loads(storage.to_text(sample()))
    assert content["format"] == "darc session"
    assert content["version"] == 5
    assert content["analysis"] == "start"
    flush = next(n for n in content["ftree"] if n["id"] == "1.7")
    assert flush["function"]["symbol"] == "flush"
    assert flush["site"] == {
        "module": "/opt/app/mixture",
        "offset": 0x1319,
        "kind": "direct",
        "caller": "handle",
        "offset_in_caller": 0x219,
        "indirect": None,
    }


def test_paths_longer_than_python_likes_to_nest() -> None:
    stored = sample()
    node = stored.root
    for _ in range(MAX_DEPTH):
        node = node.add_child(samples.function("f"), samples.site(1))
    assert len(list(read(storage.to_text(stored)).root.walk())) == len(list(stored.root.walk()))


# -- files that are not right -----------------------------------------------------------------


def test_every_cut_is_told() -> None:
    data = storage.to_text(sample()).encode()
    for end in range(0, len(data), 37):
        refusal(data[:end])
    assert "is empty" in refusal(b" \n")
    assert "is cut off or damaged: line" in refusal(data[: len(data) // 2])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    refusal(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_any_json_is_refused(content: Any) -> None:
    refusal(json.dumps(content).encode())


def places(content: Any) -> list[tuple[Any, Any]]:
    """Every container in parsed JSON with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(content, dict | list):
        keys = list(content) if isinstance(content, dict) else range(len(content))
        for key in keys:
            found.append((content, key))
            found += places(content[key])
    return found


@settings(max_examples=400)
@given(st.data())
def test_a_session_with_anything_exchanged_is_read_or_refused(data: st.DataObject) -> None:
    content = json.loads(storage.to_text(sample()))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(content)))
        if isinstance(container, dict) and data.draw(st.booleans()):
            del container[key]
        else:
            container[key] = data.draw(JSON | st.sampled_from([-1, 2**200, 1e999, "NaN"]))
    raw = json.dumps(content).encode()
    try:
        stored = read_whole(raw).session
    except DarcError:
        refusal(raw)
    else:
        assert read(storage.to_text(stored)).root.id == "1"


@settings(max_examples=300)
@given(st.data())
def test_a_session_with_flipped_bytes_is_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(storage.to_text(sample()).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_whole(bytes(raw))
    except DarcError:
        refusal(bytes(raw))


def change(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(values)


def change_in(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(content: Any) -> None:
        *outer, last = path.split(".")
        for key in outer:
            content = content[int(key) if isinstance(content, list) else key]
        content[int(last) if isinstance(content, list) else last] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(version=6), "is a session of version 6, and this darc reads up to 5"),
        (change(analysis=7), "analysis is not a text"),
        (change(version=True), "version is not a whole number"),
        (change(version=0), "version is not a whole number"),
        (change(format="other"), "is not a darc session: 'darc save FILE' makes one"),
        (lambda c: c.pop("peak"), "the file is not complete, it has no 'peak'"),
        (change(extra=1), "'extra' does not belong there"),
        (change(**{"a\nb\x1b" + 99 * "c": 1}), "does not belong there"),
        (change(status="lost"), "status is not one of pending, profiling"),
        (change(ftree=[]), "ftree is not a list that begins with f0"),
        (change_in("parameters.max-depth", "0"), "parameters.max-depth is not a whole number"),
        (change_in("parameters.speed", "9"), "parameters.speed is not a parameter of this darc"),
        (change_in("parameters.peak", "70-80"), "parameters.peak is not a peak at this resolution"),
        (change_in("parameters.resolution", "2"), "profile.resolution is not that of"),
        (change_in("profile.bins", {"011": 1}), "profile.bins.011 is not a bin"),
        (change_in("profile.bins", {"65": 2000}), "profile.bins is not of this resolution"),
        (change_in("profile.slices", [{}] * 21), "profile.slices is not a list of at most 20"),
        (change_in("profile.slices.1", {"65": 1}), "slices[1] is not of this resolution"),
        (change_in("profile.count", 7), "profile.count is not the sum of the bins"),
        (change_in("peak.first_bin", 65), "peak.first_bin is not a whole number from 0 to 64"),
        (change_in("peak.last_bin", 3), "peak.last_bin is not a whole number from 23 to 63"),
        (change_in("ftree.0.parent", 0), "ftree[0] is not f0"),
        (change_in("ftree.3.parent", 3), "ftree[3].parent is not a whole number from 0 to 2"),
        (change_in("ftree.3.id", "1.1"), "ftree[3].id is not 1.3"),
        (change_in("ftree.3.site", None), "ftree[3].site is not an object"),
        (change_in("ftree.3.maxcount", -1), "ftree[3].maxcount is not a whole number"),
        (change_in("ftree.3.maxcount", 1.0), "ftree[3].maxcount is not a whole number"),
        (change_in("ftree.3.maxcount", 2**100), "ftree[3].maxcount is not a whole number"),
        (change_in("ftree.3.totals", [1, 2, 3]), "ftree[3].totals is not a list of 4"),
        (change_in("ftree.3.site.kind", "far"), "ftree[3].site.kind is not one of direct"),
        (change_in("ftree.3.site.indirect", [0, 1]), "is not null for a direct call"),
        (change_in("ftree.11.site.indirect", [3, 3]), "indirect is not a whole number from 0 to 2"),
        (change_in("ftree.10.end.loop_callee", None), "ftree[10].end is not an ending"),
        (change_in("ftree.10.end.loop_share", 1.5), "loop_share is not a number that can be"),
        (change_in("ftree.10.end.cut", "sentence"), "end.cut is not one of depth, early, divides"),
        (change_in("ftree.10.end.unclear", ["x"]), "end.unclear is not one of how_spent, whose"),
        (change_in("contests.0.seen", 0), "contests[0].seen is not a whole number from 1"),
        (change_in("contests.0.callees.0.node", 1), "node is not a callee that is not there yet"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(edit: Callable[[dict[str, Any]], None], message: str) -> None:
    content = json.loads(storage.to_text(sample()))
    edit(content)
    assert message in refusal(json.dumps(content).encode())


def test_a_parameter_that_is_no_longer_is_read_as_it_was_written() -> None:
    content = json.loads(storage.to_text(sample()))
    content["parameters"]["condition"] = "none"
    assert read(json.dumps(content)).parameters == sample().parameters
    content["parameters"]["condition"] = "x > 1"
    assert "parameters.condition is not a parameter" in refusal(json.dumps(content).encode())


def test_a_report_is_told_from_a_session() -> None:
    from darc.views.exporters.json import to_json

    raw = json.dumps(to_json(samples.snapshot())).encode()
    assert "is a report, not a session" in refusal(raw)


@pytest.mark.parametrize(
    "raw", [b'{"format": NaN}', b'{"a": 1, "a": 2}', b"[" * 10**5, b"9" * 5000, b"\xff\xfe{}"]
)
def test_json_that_no_writer_makes(raw: bytes) -> None:
    refusal(raw)


def test_a_key_that_stands_there_twice_is_refused() -> None:
    text = storage.to_text(sample())
    assert "twice" in refusal(text.replace('"version"', '"format": "x", "version"').encode())


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(storage.to_text(sample()))
    assert storage.read_file(file).spec == "handle"
    with pytest.raises(NotFoundError, match="there is no file"):
        storage.read_file(tmp_path / "t.json")
    with pytest.raises(UsageError, match="is not a file"):
        storage.read_file(tmp_path)
    with pytest.raises(UsageError, match="is not a file"):
        storage.read_file(Path("/dev/null"))
    with pytest.raises(TargetError, match="cannot read"):
        storage.read_file(tmp_path / ("x" * 300))
