"""``darc contexts``: what each function took where it was called, and what has changed."""

from __future__ import annotations

from pathlib import Path

from darc.app.commands.command import Actions, Command, Option, Parsed, path_of
from darc.app.commands.written import FILE_OPTION, options_of, write
from darc.app.options import Typed, number_in
from darc.model.contexts import merged, rank
from darc.model.errors import UsageError
from darc.saved import contexts, perfscript
from darc.views import contextview, output

_TOP = 10

_OPTIONS = (
    Option(
        "--base",
        "FILE",
        "Rank what takes longer than in FILE: of 'darc save', of 'darc contexts' or of perf.",
        is_file=True,
    ),
    Option(
        "--import",
        "FILE",
        "Infer contexts from the stacks in FILE, a text of 'perf script'.",
        is_file=True,
    ),
    Option("--top", "N", f"So many paths. Default: {_TOP}."),
    Option(
        "--format",
        "FORMAT",
        "text or json; the default is what the file of -o ends in, else text.",
        output.FORMATS,
    ),
    FILE_OPTION,
)


def _parse(typed: Typed) -> Parsed:
    files, texts = typed.words, typed.texts
    paths: dict[str, object] = {}
    for option in ("--base", "--import"):
        if texts.get(option) == "":
            raise UsageError(f"{option} needs the name of a file: {option} FILE")
        paths[option] = path_of(texts[option]) if option in texts else None
    if "" in files:
        raise UsageError("darc contexts takes files of 'darc save', by their names")
    top = texts.get("--top", str(_TOP))
    if not (paths_shown := number_in(top)):
        raise UsageError(f"--top: '{top}' is not a number of paths from 1")
    return Parsed(files, {**paths, "--top": paths_shown, **options_of(texts)})


def _contexts(app: Actions, parsed: Parsed) -> None:
    options = parsed.options
    imported, against, top = (options[k] for k in ("--import", "--base", "--top"))
    assert isinstance(top, int)
    trees = [*app.measured(), *(contexts.read_any(path_of(name)) for name in parsed.arguments)]
    trace = perfscript.read_file(imported) if isinstance(imported, Path) else None
    tree = merged(trees, None if trace is None else trace.tree)
    if not tree.children:
        raise UsageError(
            "nothing was measured yet: 'darc start FUNCTION' and let it search, or name files of "
            "'darc save', or '--import FILE' of perf script"
        )
    base = contexts.read_any(against) if isinstance(against, Path) else None
    known = contextview.RankedContexts(
        tree=tree,
        paths=tuple(rank(tree, base)),
        top=top,
        base=None if base is None else str(against),
        trace=trace,
        sources=parsed.arguments,
    )
    write(
        app,
        parsed,
        lambda style: contextview.table(known, style),
        lambda: contextview.to_json(known),
    )


CONTEXTS = Command(
    name="contexts",
    summary="Rank calling contexts by what they take, or take more now.",
    usage="darc contexts [FILE…] [--base FILE] [--import FILE] [--top N]",
    details=(
        "Merges every tree that was measured, of any function, since the debugger began and in "
        "FILEs of 'darc save', by the functions on the way down. --import adds what the stacks of "
        "perf's events tell of contexts that have no probes, marked as inferred. The paths are "
        "ranked by the time that their functions took themselves, or with --base by how much more "
        "that was than there, and drawn as a heat map of paths by functions."
    ),
    examples=(
        ("darc contexts", "What was measured in this debugger's session."),
        ("darc contexts a.json b.json", "And in two saved ones."),
        ("darc contexts -o before.json", "Keep it, as a base."),
        ("darc contexts --base before.json", "What takes longer than then."),
        ("darc contexts --import now.txt --base then.txt", "Of two records of perf."),
    ),
    parse=_parse,
    action=_contexts,
    options=_OPTIONS,
    takes_file=True,
    only_looks=True,
)
