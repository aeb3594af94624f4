"""A session as a file: what ``darc save`` writes and ``darc resume`` reads (paper section 3.4).

The file is JSON with a format name and a version. It holds no address of the program's memory:
functions and call sites are told by module, offset in the module and symbol, and modules by their
build ids, so that :mod:`darc.saved.refit` finds them again in another run or another build. The
ftree is a flat list, each node after its parent, as paths may be longer than JSON readers like to
nest.

Reading is strict: whatever is not as :func:`to_text` would write it is refused with one
:class:`~darc.model.errors.FormatError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from darc.model.domains import DOMAINS
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
from darc.model.parameters import MAX_DEPTH, Parameters
from darc.model.peaks import PeakRange
from darc.model.profile import OCTAVES, Profile
from darc.model.slices import SLICES
from darc.model.status import Status
from darc.saved.checked import (
    DamagedFileError,
    damaged,
    read_choice,
    read_count,
    read_flag,
    read_list,
    read_mapping,
    read_number,
    read_object,
    read_pair,
    read_text,
    short_key,
    written_bins,
)
from darc.saved.olderfiles import told_by
from darc.saved.sentences import cut_in, unclear_in
from darc.search.contest import Contest

FORMAT = "darc session"
"""What the file calls itself."""

VERSION = 5
"""The newest version that this release reads, and the one that it writes. Version 4 says in
sentences alone why paths end early and what nobody knows of them; version 3 does not say which
analysis it is of; version 2 has no parts; version 1 no decisions, no time slices, and latencies of
callees over other calls than those of their siblings.
"""

_NO_LONGER = "condition"
"""A parameter that files of earlier releases have, never with another value than ``none``."""

LARGEST_FILE = 64 << 20
"""Bytes; no session comes near it."""


@dataclass(frozen=True)
class SearchState:
    """What a descent had chosen and counted, beside what stands in its tree. Files have had it
    outside of :attr:`Stored.parts` since the first version, whatever analysis they are of: of
    another one it is empty."""

    in_peak_calls: int = 0
    """The calls inside the peak that were counted, over all levels."""
    contests: tuple[Contest, ...] = ()
    """Votes that did not suffice for a decision yet."""
    indirect: Mapping[Fnode, tuple[int, int]] = field(default_factory=dict)
    """For a node that an indirect call site has learned: which of its caller's indirect call sites
    that is, counted from 0 by address, and how many its caller has."""
    peak: PeakRange | None = None
    """The peak that is explained; ``None`` when none was chosen."""
    slices: tuple[Mapping[int, int], ...] = ()
    """The profile's calls by bin, in turns of about the same time; none where nobody looked."""


@dataclass(frozen=True)
class Stored:
    """A session as it is in a file.

    The addresses of functions and call sites in ``root`` and below are those that the file they
    came from had; nothing but offsets and symbols may be used of them.
    """

    spec: str
    """f0 as the user typed it."""
    parameters: Parameters
    status: Status
    profile: Profile
    """That of f0, all its calls, at the resolution of the parameters."""
    root: Fnode
    """f0, and the ftree below it where a search had begun."""
    modules: Mapping[str, str]
    """By base name, what tells the build of each file of the program that the tree names, as
    :attr:`darc.code.elf.Image.identity` has it; a file that is not there is not known."""
    search: SearchState = field(default_factory=SearchState)
    """That of a descent."""
    analysis: str = told_by()
    """Which analysis it is of, by its :attr:`~darc.analyses.analysis.Analysis.key`."""
    parts: Mapping[str, object] = field(default_factory=dict)
    """What else analyses keep, by its name, as JSON values: who has written them reads them. What
    an analysis does not know it keeps as it is."""


# ------------------------------------------------------------------------------------ writing


def to_text(stored: Stored) -> str:
    """The file's content."""
    nodes = list(stored.root.walk())
    numbers = {node: number for number, node in enumerate(nodes)}
    profile, search = stored.profile, stored.search
    peak = search.peak
    content = {
        "format": FORMAT,
        "version": VERSION,
        "analysis": stored.analysis,
        "function": stored.spec,
        "status": stored.status.value,
        "parameters": {
            domain.name: domain.whole_text(getattr(stored.parameters, domain.field))
            for domain in DOMAINS
        },
        "modules": dict(sorted(stored.modules.items())),
        "profile": {
            "hz": profile.hz,
            "resolution": profile.resolution,
            "count": profile.count,
            "sum": profile.total,
            "bins": written_bins(profile.bins),
            "slices": [written_bins(one) for one in search.slices],
        },
        "peak": None
        if peak is None
        else {"number": peak.number, "first_bin": peak.first_bin, "last_bin": peak.last_bin},
        "in_peak_calls": search.in_peak_calls,
        "ftree": [_node(node, numbers, search.indirect) for node in nodes],
        "contests": [
            {
                "node": numbers[contest.node],
                "seen": contest.seen,
                "own": contest.own,
                "totals": _totals(contest.totals),
                "callees": [
                    {
                        "node": numbers[child],
                        "votes": contest.votes.get(child, 0),
                        "totals": _totals(contest.callee_totals.get(child, Totals())),
                    }
                    for child in contest.node.children
                    if child in contest.votes
                ],
            }
            for contest in search.contests
        ],
        "parts": dict(sorted(stored.parts.items())),
    }
    # Symbols may hold anything, half a surrogate pair too: the file itself is plain ASCII.
    return json.dumps(content, indent=1, allow_nan=False)


def _node(
    node: Fnode, numbers: Mapping[Fnode, int], indirect: Mapping[Fnode, tuple[int, int]]
) -> dict[str, Any]:
    function, decision = node.function, node.decision
    return {
        "id": node.id,
        "parent": None if node.parent is None else numbers[node.parent],
        "function": {
            "name": function.name,
            "symbol": function.symbol,
            "module": function.module,
            "offset": function.offset,
        },
        "site": None if node.site is None else _site(node, node.site, indirect),
        "state": node.state.value,
        "root_cause": node.root_cause,
        "maxcount": node.maxcount,
        "self_maxcount": node.self_maxcount,
        "unknown_callees": node.has_unknown_callees,
        "totals": _totals(node.totals),
        "called": _totals(node.called),
        "decision": None
        if decision is None
        else {
            "ops": decision.ops,
            "needed": decision.needed,
            "own": decision.own,
            "conclusive": decision.is_conclusive,
        },
        "end": None if node.end is None else _ending(node.end),
    }


def _ending(end: Ending) -> dict[str, Any]:
    return {
        "cause": end.cause.value,
        "maxcount": end.maxcount,
        "loop_callee": end.loop_callee,
        "loop_calls": end.loop_calls,
        "loop_share": end.loop_share,
        "note": end.note,
        "cut": None if end.cut is None else end.cut.value,
        "unclear": sorted(one.value for one in end.unclear),
    }


def _site(node: Fnode, site: CallSite, indirect: Mapping[Fnode, tuple[int, int]]) -> dict[str, Any]:
    assert node.parent is not None
    caller = node.parent.function
    return {
        "module": site.module,
        "offset": site.offset,
        "kind": site.kind.value,
        "caller": caller.symbol,
        "offset_in_caller": site.offset - caller.offset,
        "indirect": list(indirect[node]) if node in indirect else None,
    }


def _totals(totals: Totals) -> list[int]:
    return [totals.ops, totals.calls, totals.sum, totals.max_sum]


# ------------------------------------------------------------------------------------ reading


def read_file(file: Path) -> Stored:
    """The session in ``file``.

    Raises:
        NotFoundError, UsageError: there is no such file; it is a folder or device.
        TargetError: the system refuses to read it.
        FormatError: it holds no session, a damaged one, or one of a later release.
    """
    try:
        if not file.exists():
            raise NotFoundError(f"there is no file {file}; 'darc save FILE' makes one")
        if not file.is_file():
            raise UsageError(f"{file} is not a file; name one that 'darc save' made")
        with file.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"cannot read {file}: {reason}; name another file") from error
    return from_bytes(data, str(file))


def from_bytes(data: bytes, name: str) -> Stored:
    """The session in the content of a file that messages call ``name``.

    Raises :class:`~darc.model.errors.FormatError`, with one line, for everything else.
    """
    try:
        if len(data) > LARGEST_FILE:
            raise DamagedFileError("is not a darc session: it is far too large")
        content = _parse(data)
        return _Reader(_version(content)).session(content)
    except DamagedFileError as error:
        raise FormatError(f"{name} {error}") from None


def _parse(data: bytes) -> object:
    def refuse(text: str) -> NoReturn:
        raise ValueError(f"{text} is no number")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key stands there twice")
        return found

    if not data.strip():
        raise DamagedFileError("is empty; save the session again with 'darc save'")
    try:
        return json.loads(data, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        looks_like_one = FORMAT.encode() in data[:200]
        what = "is cut off or damaged" if looks_like_one else "is not a darc session"
        place = f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        what, place = "is not a darc session", str(error).splitlines()[0]
    raise DamagedFileError(f"{what}: {place}; save the session again with 'darc save'")


def _version(content: object) -> int:
    """The file's version, of a file that is a session."""
    form = content.get("format") if isinstance(content, dict) else None
    if form != FORMAT:
        is_report = isinstance(content, dict) and {"schema", "root_cause_paths"} <= content.keys()
        what = "a report, not a session" if is_report else "not a darc session"
        raise DamagedFileError(f"is {what}: 'darc save FILE' makes one")
    version = content.get("version") if isinstance(content, dict) else None
    if type(version) is not int or version < 1:
        damaged("version", "a whole number from 1")
    if version > VERSION:
        raise DamagedFileError(
            f"is a session of version {version}, and this darc reads up to {VERSION}: "
            "take the darc that saved it, or a later one"
        )
    return version


class _Reader:
    """Turns parsed JSON into a session and tells where it is not right."""

    def __init__(self, version: int) -> None:
        self._version = version

    def session(self, content: object) -> Stored:
        keys = (
            "format version function status parameters modules profile peak in_peak_calls ftree "
            "contests"
        )
        since = " parts" * (self._version > 2) + " analysis" * (self._version > 3)
        top = read_object(content, "the file", keys + since)
        parameters = self.parameters(top["parameters"])
        profile, slices = self.profile(top["profile"])
        if profile.resolution != parameters.resolution:
            damaged("profile.resolution", "that of the parameters")
        last = OCTAVES * profile.resolution
        nodes, indirect = self.ftree(top["ftree"])
        modules = {
            key: read_text(value, f"modules.{short_key(key)}")
            for key, value in read_mapping(top["modules"], "modules").items()
        }
        parts = dict(read_mapping(top["parts"], "parts")) if self._version > 2 else {}
        analysis = read_text(top["analysis"], "analysis") if self._version > 3 else told_by(parts)
        return Stored(
            spec=read_text(top["function"], "function"),
            parameters=parameters,
            status=read_choice(Status, top["status"], "status"),
            profile=profile,
            root=nodes[0],
            modules=modules,
            search=SearchState(
                read_count(top["in_peak_calls"], "in_peak_calls"),
                self.contests(top["contests"], nodes),
                indirect,
                peak=None if top["peak"] is None else self.peak(top["peak"], last),
                slices=slices,
            ),
            analysis=analysis,
            parts=parts,
        )

    def parameters(self, content: object) -> Parameters:
        texts = {
            key: read_text(value, f"parameters.{short_key(key)}")
            for key, value in read_mapping(content, "parameters").items()
        }
        known = {domain.name: domain for domain in DOMAINS}
        values: dict[str, object] = {}
        for name, text in texts.items():
            if name == _NO_LONGER and text == "none":
                continue
            if name not in known:
                damaged(f"parameters.{short_key(name)}", "a parameter of this darc")
            try:
                values[known[name].field] = known[name].read(text)
            except (ValueError, DarcError):
                damaged(f"parameters.{name}", known[name].valid)
        try:
            return Parameters().overridden(values)
        except DarcError:
            damaged("parameters.peak", "a peak at this resolution")

    def profile(self, content: object) -> tuple[Profile, tuple[Mapping[int, int], ...]]:
        keys = "hz resolution count sum bins" + " slices" * (self._version > 1)
        found = read_object(content, "profile", keys)
        resolution = read_count(found["resolution"], "profile.resolution", least=1, most=1 << 16)
        bins = self.bins(found["bins"], "profile.bins", resolution)
        profile = Profile(
            resolution=resolution,
            hz=read_count(found["hz"], "profile.hz", least=1),
            bins=bins,
            count=read_count(found["count"], "profile.count"),
            total=read_count(found["sum"], "profile.sum"),
        )
        if sum(bins.values()) != profile.count:
            damaged("profile.count", "the sum of the bins")
        rows = read_list(found["slices"], "profile.slices") if self._version > 1 else []
        if len(rows) > SLICES:
            damaged("profile.slices", f"a list of at most {SLICES}")
        slices = [
            self.bins(row, f"profile.slices[{number}]", resolution)
            for number, row in enumerate(rows)
        ]
        return profile, tuple(slices)

    def bins(self, content: object, where: str, resolution: int) -> dict[int, int]:
        bins: dict[int, int] = {}
        for key, value in read_mapping(content, where).items():
            if not (key.isascii() and key.isdecimal() and key == str(int(key[:6]))):
                damaged(f"{where}.{short_key(key)}", "a bin")
            bins[int(key)] = read_count(value, f"{where}.{key}", least=1)
        if any(number > OCTAVES * resolution for number in bins):
            damaged(where, "of this resolution")
        return bins

    def peak(self, content: object, last: int) -> PeakRange:
        found = read_object(content, "peak", "number first_bin last_bin")
        number, last_bin = found["number"], found["last_bin"]
        first_bin = read_count(found["first_bin"], "peak.first_bin", most=last)
        return PeakRange(
            None if number is None else read_count(number, "peak.number", least=1),
            first_bin,
            None
            if last_bin is None
            else read_count(last_bin, "peak.last_bin", first_bin, last - 1),
        )

    def ftree(self, content: object) -> tuple[list[Fnode], dict[Fnode, tuple[int, int]]]:
        nodes: list[Fnode] = []
        indirect: dict[Fnode, tuple[int, int]] = {}
        for number, row in enumerate(read_list(content, "ftree")):
            where = f"ftree[{number}]"
            found = read_object(
                row, where,
                "id parent function site state root_cause maxcount self_maxcount unknown_callees "
                "totals end" + " called decision" * (self._version > 1),
            )  # fmt: skip
            function = self.function(found["function"], f"{where}.function")
            if number == 0:
                if found["parent"] is not None or found["site"] is not None:
                    damaged(where, "f0")
                node = Fnode(function)
            else:
                parent = nodes[read_count(found["parent"], f"{where}.parent", most=number - 1)]
                if parent.depth > MAX_DEPTH:
                    damaged(f"{where}.parent", f"a node at most {MAX_DEPTH} levels deep")
                node = parent.add_child(function, self.site(found["site"], f"{where}.site"))
                if found["site"]["indirect"] is not None:
                    indirect[node] = read_pair(found["site"]["indirect"], f"{where}.site.indirect")
            if found["id"] != node.id:
                damaged(f"{where}.id", node.id)
            nodes.append(node)
            self._restore(node, found, where)
        if not nodes:
            damaged("ftree", "a list that begins with f0")
        if list(nodes[0].walk()) != nodes:
            damaged("ftree", "in the order of its ids")
        return nodes, indirect

    def _restore(self, node: Fnode, found: Mapping[str, Any], where: str) -> None:
        decision, end = found.get("decision"), found["end"]  # the first version had none
        node.restore(
            state=read_choice(NodeState, found["state"], f"{where}.state"),
            root_cause=read_flag(found["root_cause"], f"{where}.root_cause"),
            votes=(
                read_count(found["maxcount"], f"{where}.maxcount"),
                read_count(found["self_maxcount"], f"{where}.self_maxcount"),
            ),
            has_unknown_callees=read_flag(found["unknown_callees"], f"{where}.unknown_callees"),
            totals=self.totals(found["totals"], f"{where}.totals"),
            called=self.totals(found.get("called", found["totals"]), f"{where}.called"),
            decision=None if decision is None else self.decision(decision, f"{where}.decision"),
            end=None if end is None else self.ending(end, f"{where}.end"),
        )

    def function(self, content: object, where: str) -> Function:
        found = read_object(content, where, "name symbol module offset")
        offset = read_count(found["offset"], f"{where}.offset")
        return Function(
            name=read_text(found["name"], f"{where}.name"),
            symbol=read_text(found["symbol"], f"{where}.symbol"),
            module=read_text(found["module"], f"{where}.module"),
            address=offset,
            offset=offset,
        )

    def site(self, content: object, where: str) -> CallSite:
        found = read_object(content, where, "module offset kind caller offset_in_caller indirect")
        read_text(found["caller"], f"{where}.caller")
        if type(found["offset_in_caller"]) is not int:
            damaged(f"{where}.offset_in_caller", "a whole number")
        offset = read_count(found["offset"], f"{where}.offset")
        kind = read_choice(CallKind, found["kind"], f"{where}.kind")
        is_indirect = kind.is_indirect or kind is CallKind.INTERRUPT
        if found["indirect"] is not None and not is_indirect:
            damaged(f"{where}.indirect", "null for a direct call")
        return CallSite(offset, kind, read_text(found["module"], f"{where}.module"), offset)

    def totals(self, content: object, where: str) -> Totals:
        numbers = read_list(content, where)
        if len(numbers) != 4:
            damaged(where, "a list of 4 numbers")
        return Totals(*(read_count(number, where) for number in numbers))

    def decision(self, content: object, where: str) -> Decision:
        found = read_object(content, where, "ops needed own conclusive")
        return Decision(
            read_count(found["ops"], f"{where}.ops"),
            read_count(found["needed"], f"{where}.needed"),
            read_count(found["own"], f"{where}.own"),
            read_flag(found["conclusive"], f"{where}.conclusive"),
        )

    def ending(self, content: object, where: str) -> Ending:
        keys = "cause maxcount loop_callee loop_calls loop_share note"
        found = read_object(content, where, keys + " cut unclear" * (self._version > 4))
        cause = read_choice(Cause, found["cause"], f"{where}.cause")
        callee, calls, share = found["loop_callee"], found["loop_calls"], found["loop_share"]
        note, cut, unclear = self.remark(found, where)
        parts = (callee, calls, share)
        if any((part is None) == (cause is Cause.LOOP) for part in parts):
            damaged(where, "an ending with a callee, calls and share for loops alone")
        return Ending(
            cause=cause,
            maxcount=read_count(found["maxcount"], f"{where}.maxcount"),
            loop_callee=None if callee is None else read_text(callee, f"{where}.loop_callee"),
            loop_calls=None if calls is None else read_number(calls, f"{where}.loop_calls"),
            loop_share=None if share is None else read_number(share, f"{where}.loop_share", 1.0),
            note=note,
            cut=cut,
            unclear=unclear,
        )

    def remark(
        self, found: Mapping[str, object], where: str
    ) -> tuple[str | None, Cut | None, frozenset[Unclear]]:
        """An ending's note, and what else a reader must know besides."""
        note = None if found["note"] is None else read_text(found["note"], f"{where}.note")
        if self._version < 5:
            told = note or ""
            cut, note = (None, note) if note is None else cut_in(note)
            return note, cut, unclear_in(told)
        rows = read_list(found["unclear"], f"{where}.unclear")
        cut = None if found["cut"] is None else read_choice(Cut, found["cut"], f"{where}.cut")
        return note, cut, frozenset(read_choice(Unclear, one, f"{where}.unclear") for one in rows)

    def contests(self, content: object, nodes: Sequence[Fnode]) -> tuple[Contest, ...]:
        contests: dict[Fnode, Contest] = {}
        for number, row in enumerate(read_list(content, "contests")):
            where = f"contests[{number}]"
            found = read_object(row, where, "node seen own totals callees")
            node = nodes[read_count(found["node"], f"{where}.node", most=len(nodes) - 1)]
            if node in contests:
                damaged(f"{where}.node", "another one than before")
            totals = self.totals(found["totals"], f"{where}.totals")
            contest = contests[node] = Contest(
                node,
                seen=read_count(found["seen"], f"{where}.seen", least=1),
                own=read_count(found["own"], f"{where}.own"),
                ops=totals.ops,
                totals=totals,
            )
            for index, callee in enumerate(read_list(found["callees"], f"{where}.callees")):
                place = f"{where}.callees[{index}]"
                vote = read_object(callee, place, "node votes totals")
                child = nodes[read_count(vote["node"], f"{place}.node", most=len(nodes) - 1)]
                if child.parent is not node or child in contest.votes:
                    damaged(f"{place}.node", "a callee that is not there yet")
                contest.votes[child] = read_count(vote["votes"], f"{place}.votes")
                contest.callee_totals[child] = self.totals(vote["totals"], f"{place}.totals")
        return tuple(contests.values())
