"""Profiles of many functions, in a session file and in the report: the part called ``set``.

Functions are told by module, symbol and offset in the module: addresses mean nothing in another
run.
"""

from __future__ import annotations

from darc.model.errors import FormatError
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet, ranked
from darc.model.leftout import LeftOut, LeftOutFor
from darc.model.profile import OCTAVES, Profile
from darc.saved.checked import (
    DamagedFileError,
    damaged,
    read_choice,
    read_count,
    read_list,
    read_mapping,
    read_number,
    read_object,
    read_text,
    written_bins,
)
from darc.saved.sentences import left_out_for

PART = "set"
"""What the part is called."""

ANALYSIS = "profile"
"""The command that begins the analysis that it is of."""


def to_part(known: FunctionSet) -> dict[str, object]:
    """The part, as JSON values: those of the report, and of each that is left out the kind of
    reason."""
    left_out = [{**_left_out(one, why), "kind": why.kind.value} for one, why in known.left_out]
    return {**to_report(known), "left_out": left_out}


def to_report(known: FunctionSet) -> dict[str, object]:
    """What the report has, too: latencies in cycles of ``hz``, calls by bins of powers of two."""
    return {
        "seconds": known.seconds,
        "every": known.every,
        "functions": [_row(row) for row in known.rows],
        "uncalled": [function_to_json(one) for one in known.uncalled],
        "left_out": [_left_out(one, why) for one, why in known.left_out],
    }


def _left_out(one: Function, why: LeftOut) -> dict[str, object]:
    return {**function_to_json(one), "why": why.text}


def function_to_json(one: Function) -> dict[str, object]:
    """Where a function is, for another run."""
    return {
        "function": one.name,
        "symbol": one.symbol,
        "module": one.module,
        "offset": one.offset,
    }


def _row(row: FunctionProfile) -> dict[str, object]:
    profile = row.profile
    return {
        **function_to_json(row.function),
        "hz": profile.hz,
        "calls": profile.count,
        "sum": profile.total,
        "max": row.longest,
        "left": row.left,
        "dropped": row.dropped,
        "until": row.until,
        "bins": written_bins(profile.bins),
        "slices": [written_bins(one) for one in row.slices],
        "lapse": [written_bins(one) for one in row.lapse],
    }


def from_file(content: object, name: str) -> FunctionSet:
    """The set of the part of a file that messages call ``name``.

    Raises:
        FormatError: it is not as :func:`to_part` would make it.
    """
    try:
        return from_part(content)
    except DamagedFileError as error:
        raise FormatError(f"{name} {error}") from None


def from_part(content: object) -> FunctionSet:
    """The set of the part.

    Raises:
        DamagedFileError: it is not as :func:`to_part` would make it.
    """
    where = f"parts.{PART}"
    found = read_object(content, where, "seconds every functions uncalled left_out")
    rows = read_list(found["functions"], f"{where}.functions")
    uncalled = read_list(found["uncalled"], f"{where}.uncalled")
    left_out = read_list(found["left_out"], f"{where}.left_out")
    keys = "function symbol module offset"
    return FunctionSet(
        rows=ranked(_read_row(row, f"{where}.functions[{n}]") for n, row in enumerate(rows)),
        uncalled=tuple(
            _read_function(
                read_object(one, f"{where}.uncalled[{n}]", keys), f"{where}.uncalled[{n}]"
            )
            for n, one in enumerate(uncalled)
        ),
        left_out=tuple(
            _read_left_out(one, f"{where}.left_out[{n}]") for n, one in enumerate(left_out)
        ),
        seconds=read_number(found["seconds"], f"{where}.seconds"),
        every=None if found["every"] is None else read_number(found["every"], f"{where}.every"),
    )


def _read_left_out(content: object, where: str) -> tuple[Function, LeftOut]:
    tells_kind = "kind" in read_mapping(content, where)  # not those of files up to version 4
    found = read_object(content, where, "function symbol module offset why" + " kind" * tells_kind)
    why = read_text(found["why"], f"{where}.why")
    if not tells_kind:
        return _read_function(found, where), left_out_for(why)
    kind = read_choice(LeftOutFor, found["kind"], f"{where}.kind")
    return _read_function(found, where), LeftOut(why, kind)


def _read_function(found: dict[str, object], where: str) -> Function:
    offset = read_count(found["offset"], f"{where}.offset")
    return Function(
        name=read_text(found["function"], f"{where}.function"),
        symbol=read_text(found["symbol"], f"{where}.symbol"),
        module=read_text(found["module"], f"{where}.module"),
        address=offset,
        offset=offset,
    )


def _read_row(content: object, where: str) -> FunctionProfile:
    keys = "function symbol module offset hz calls sum max left dropped until bins slices lapse"
    found = read_object(content, where, keys)
    bins = _read_bins(found["bins"], f"{where}.bins")
    profile = Profile(
        resolution=1,
        hz=read_count(found["hz"], f"{where}.hz", least=1),
        bins=bins,
        count=read_count(found["calls"], f"{where}.calls"),
        total=read_count(found["sum"], f"{where}.sum"),
    )
    if sum(bins.values()) != profile.count:
        damaged(f"{where}.calls", "the sum of the bins")
    return FunctionProfile(
        function=_read_function(found, where),
        profile=profile,
        longest=read_count(found["max"], f"{where}.max"),
        left=read_count(found["left"], f"{where}.left"),
        dropped=read_count(found["dropped"], f"{where}.dropped"),
        until=None if found["until"] is None else read_number(found["until"], f"{where}.until"),
        slices=_read_all_bins(found["slices"], f"{where}.slices"),
        lapse=_read_all_bins(found["lapse"], f"{where}.lapse"),
    )


def _read_all_bins(content: object, where: str) -> tuple[dict[int, int], ...]:
    many = enumerate(read_list(content, where))
    return tuple(_read_bins(one, f"{where}[{number}]") for number, one in many)


def _read_bins(content: object, where: str) -> dict[int, int]:
    bins: dict[int, int] = {}
    for key, calls in read_mapping(content, where).items():
        if not (key.isascii() and key.isdecimal() and int(key[:4]) <= OCTAVES):
            damaged(where, "calls by bin")
        bins[int(key)] = read_count(calls, f"{where}.{key}", least=1)
    return bins
