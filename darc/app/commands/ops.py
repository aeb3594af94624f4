"""``darc ops`` and ``darc compare``: single ops, and what slow ones do that fast ones do not."""

from __future__ import annotations

from collections.abc import Sequence

from darc.app.commands.command import Actions, Command, Option, Parsed, Value, path_of
from darc.app.commands.filenames import files
from darc.app.commands.peak import peaks
from darc.app.commands.written import VIEW_OPTIONS, view_options_in, write
from darc.app.options import Typed, number_in
from darc.model.contrast import Side, contrast
from darc.model.errors import DarcError, UsageError
from darc.model.functionset import FunctionSet
from darc.model.ops import OpClass
from darc.model.peaks import LAST_PEAK
from darc.model.setdiff import Method, difference
from darc.model.snapshot import Snapshot
from darc.model.values import one_of_enum
from darc.saved import descents, sets, storage
from darc.views import contrast as contrast_view
from darc.views import jsonvalues, timeline
from darc.views import setdiff as setdiff_view

_BY = Option(
    "--by",
    "METHOD",
    "What ranks the functions of two sets.",
    one_of_enum(Method),
    default=Method.EMD.value,
)
_METHOD: Value[Method | None] = Value("by")


def _parse_ops(typed: Typed) -> Parsed:
    numbers = typed.words
    if len(numbers) > 1:
        raise UsageError(f"darc ops takes one op, not {' and '.join(numbers)}")
    for number in numbers:
        if number_in(number) is None:
            raise UsageError(f"'{number}' is not an op; type its number as 'darc ops' lists it")
    return Parsed(numbers, view_options_in(typed))


def _ops(app: Actions, parsed: Parsed) -> None:
    snapshot = app.snapshot()
    kept = timeline.need_ops(snapshot)
    if parsed.arguments:
        number = int(parsed.arguments[0])
        op = timeline.find_op(kept, number)
        write(
            app,
            parsed,
            lambda style: timeline.timeline(snapshot, number, style),
            lambda: {"hz": kept.hz, **jsonvalues.op_to_json(op)},
        )
    else:
        write(
            app,
            parsed,
            lambda style: timeline.op_list(snapshot, style),
            lambda: jsonvalues.ops_to_json(kept),
        )


def _numbers(app: Actions, _prefix: str) -> list[str]:
    kept = app.snapshot().ops
    return [str(op.number) for op in kept.ops] if kept is not None else []


# ------------------------------------------------------------------------------ compare


def _parse_compare(typed: Typed) -> Parsed:
    arguments, by = typed.words, _BY.typed_in(typed)
    if len(arguments) > 2:
        raise UsageError(
            f"darc compare takes two peaks or files, not {len(arguments)}; put quotes around a "
            "name that holds spaces"
        )
    if "" in arguments:
        raise UsageError("darc compare takes peaks, as numbers, or files: darc compare 3 1")
    return Parsed(arguments, {**view_options_in(typed), **_METHOD.put(by)})


def _compare(app: Actions, parsed: Parsed) -> None:
    by = _METHOD.of(parsed)
    pair = _sets(app, parsed.arguments)
    if pair is not None:
        names, before, now = pair
        found = difference(before, now, by or Method.EMD)
        write(
            app,
            parsed,
            lambda style: setdiff_view.table(found, names, style),
            lambda: jsonvalues.difference_to_json(found, names),
        )
        return
    if by is not None:
        raise UsageError("--by is for sets, which 'darc profile' makes: name a saved one")
    made = contrast(*_both(app, parsed.arguments))
    write(
        app,
        parsed,
        lambda style: contrast_view.table(made, style),
        lambda: jsonvalues.contrast_to_json(made),
    )


def _sets(
    app: Actions, arguments: Sequence[str]
) -> tuple[tuple[str, str], FunctionSet, FunctionSet] | None:
    """The two sets that are compared, the earlier one first, and what they are called; ``None``
    where ops are."""
    files = [name for name in arguments if not _is_peak(name)]
    known = {name: _set_of(name) for name in files}
    live = None if len(files) == 2 else _live_set(app)
    if live is None and not any(known.values()):
        return None
    for name in files:
        if known[name] is None:
            raise UsageError(f"{name} has no profiles of many functions, as the other one has")
    if not files or len(files) < len(arguments):
        raise UsageError("sets are compared with saved ones: darc compare FILE [FILE]")
    sides = [one for one in (*(known[name] for name in arguments), live) if one is not None]
    if len(sides) < 2:
        raise UsageError(
            f"{files[0]} has profiles of many functions: 'darc profile' first, or name another file"
        )
    return (files[0], files[1] if len(files) == 2 else "now"), sides[0], sides[1]


def _set_of(name: str) -> FunctionSet | None:
    part = storage.read_file(path_of(name)).parts.get(sets.PART)
    return None if part is None else sets.from_file(part, name)


def _live_set(app: Actions) -> FunctionSet | None:
    try:
        return app.snapshot().part(FunctionSet)
    except DarcError:
        return None


def _both(app: Actions, arguments: Sequence[str]) -> tuple[Side, Side]:
    """What is compared: by default the chosen peak with the fastest, or with a file's."""
    if len(arguments) == 2 and not any(map(_is_peak, arguments)):
        first, second = (_of_file(name) for name in arguments)
    else:
        snapshot = app.snapshot()
        sides = [_side(snapshot, argument) for argument in arguments]
        if len(sides) < 2:
            is_alone = bool(sides) and _is_peak(arguments[0])
            sides = [*sides, _of_peak(snapshot, OpClass.FASTEST)] if is_alone else [
                _of_peak(snapshot, OpClass.IN_PEAK),
                *(sides or [_of_peak(snapshot, OpClass.FASTEST)]),
            ]  # fmt: skip
        first, second = sides
    if first.kept is second.kept and first.name == second.name:
        raise UsageError(
            f"{first.name} is compared with itself; name another peak or a saved session"
        )
    if first.kept.of_saved_run and first.kept.is_copy_of(second.kept):
        raise UsageError(
            f"{second.name} is what was resumed, and no other calls were kept since: 'darc start' "
            "keeps some of this run"
        )
    f0 = [_f0(side) for side in (first, second)]
    if None not in f0 and f0[0] != f0[1]:
        raise UsageError(f"{first.name} is of {f0[0]}, and {second.name} of {f0[1]}")
    return first, second


def _f0(side: Side) -> str | None:
    nodes = (total.node for op in side.ops for total in op.sums)
    node = next(nodes, None)
    return None if node is None else node.route()[0].function.name


def _is_peak(argument: str) -> bool:
    return argument == LAST_PEAK or (argument.isascii() and argument.isdecimal())


def _side(snapshot: Snapshot, argument: str) -> Side:
    if not _is_peak(argument):
        return _of_file(argument)
    kept = timeline.need_ops(snapshot)
    last = str(snapshot.peaks[-1].number) if snapshot.peaks else argument
    number = int(last if argument == LAST_PEAK else argument[:9])
    chosen, fastest = snapshot.peak, timeline.fastest_peak(snapshot)
    if chosen is not None and chosen.number == number:
        return _of_peak(snapshot, OpClass.IN_PEAK)
    if fastest is not None and fastest.number == number:
        return _of_peak(snapshot, OpClass.FASTEST)
    there = " and ".join(
        timeline.class_name(snapshot, kept_as) for kept_as in OpClass if kept.of(kept_as)
    )
    raise UsageError(
        f"no op of peak {number} is kept, but of {there}: 'darc start' with '--peak {number}' "
        "keeps some"
    )


def _of_peak(snapshot: Snapshot, kept_as: OpClass) -> Side:
    kept = timeline.need_ops(snapshot)
    return Side.of(timeline.class_name(snapshot, kept_as), kept, kept_as)


def _of_file(name: str) -> Side:
    kept = descents.read_file(path_of(name)).ops
    if kept is None:
        raise UsageError(f"{name} holds no ops: save the session again behind a search")
    return Side.of(name, kept, OpClass.IN_PEAK)


def _sides(app: Actions, prefix: str) -> list[str]:
    """Peaks and files."""
    return [*_peaks_of(app), *files(prefix)]


def _peaks_of(app: Actions) -> list[str]:
    try:
        snapshot = app.snapshot()
    except DarcError:
        return []
    known = {peak for peak in (snapshot.peak, timeline.fastest_peak(snapshot)) if peak is not None}
    numbers = {str(peak.number) for peak in known if peak.number is not None}
    return [name for name in peaks(app) if name in numbers]


OPS = Command(
    name="ops",
    summary="List the ops that were kept whole, or draw one.",
    usage="darc ops [N] [--format FORMAT] [-o FILE]",
    details=(
        "An op is one call of the function. During a search up to 32 ops of the chosen peak "
        "and 32 of the fastest one are kept whole, and the slowest of each. With N: that op's "
        "calls in their time, with the share of the op that each took, and what it took itself, "
        "without its own calls. '(between calls)' is a time in which its caller was in no call "
        "that has a line: it computed, or made short calls."
    ),
    examples=(
        ("darc ops", "List them."),
        ("darc ops 3", "Draw the third one."),
        ("darc ops --format json -o ops.json", "All of them, for a script."),
    ),
    parse=_parse_ops,
    action=_ops,
    options=VIEW_OPTIONS,
    complete_argument=_numbers,
    only_looks=True,
)

COMPARE = Command(
    name="compare",
    summary="Show what slow ops do that fast ones do not, or how sets differ.",
    usage="darc compare [A] [B] [--by METHOD] [--format FORMAT] [-o FILE]",
    details=(
        "A and B are peaks, or files of 'darc save', whose chosen peaks are taken. By default "
        "the chosen peak is held against the fastest. For each call on the tree: its mean time "
        "in an op of A and in one of B, how often it is called, and the difference, the largest "
        "first. The slowest op of each, which is kept on purpose, does not count. Where A and B "
        "are files of 'darc profile', or A is and a set was profiled, the functions of both are "
        "compared: which peaks came, went, moved, grew or shrank since A. What chance does not "
        "explain is marked '!' and comes first; --by ranks."
    ),
    examples=(
        ("darc compare", "The chosen peak against the fastest one."),
        ("darc compare 3 1", "The same, by their numbers."),
        ("darc compare monday.json", "This session against a saved one."),
        ("darc compare new.json old.json", "Two saved sessions."),
        ("darc compare monday.json tuesday.json --by latency", "Two saved sets."),
    ),
    parse=_parse_compare,
    action=_compare,
    options=(_BY, *VIEW_OPTIONS),
    complete_argument=_sides,
    only_looks=True,
)
