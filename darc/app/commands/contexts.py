"""``darc contexts``: what each function took where it was called, and what has changed."""

from __future__ import annotations

from pathlib import Path

from darc.app.commands.command import FILE, Actions, Command, Option, Parsed, Value, path_of
from darc.app.commands.written import VIEW_OPTIONS, view_options_in, write
from darc.app.options import Typed
from darc.model.contexts import merged, rank
from darc.model.errors import UsageError
from darc.model.values import count
from darc.saved import contexts, perfscript
from darc.views import contextview

_BASE = Option(
    "--base",
    "FILE",
    "Rank what takes longer than in FILE: of 'darc save', of 'darc contexts' or of perf.",
    FILE,
)
_IMPORT = Option(
    "--import", "FILE", "Infer contexts from the stacks in FILE, a text of 'perf script'.", FILE
)
_TOP = Option("--top", "N", "So many paths.", count(), default="10")
_AGAINST: Value[Path | None] = Value("base")
_IMPORTED: Value[Path | None] = Value("import")
_PATHS: Value[int] = Value("top")


def _parse(typed: Typed) -> Parsed:
    files = typed.words
    if "" in files:
        raise UsageError("darc contexts takes files of 'darc save', by their names")
    own = {
        **_AGAINST.put(_BASE.typed_in(typed)),
        **_IMPORTED.put(_IMPORT.typed_in(typed)),
        **_PATHS.put(_TOP.value_in(typed)),
    }
    return Parsed(files, {**own, **view_options_in(typed)})


def _contexts(app: Actions, parsed: Parsed) -> None:
    imported, against, top = _IMPORTED.of(parsed), _AGAINST.of(parsed), _PATHS.of(parsed)
    trees = [*app.measured(), *(contexts.read_any(path_of(name)) for name in parsed.arguments)]
    trace = None if imported is None else perfscript.read_file(imported)
    tree = merged(trees, None if trace is None else trace.tree)
    if not tree.children:
        raise UsageError(
            "nothing was measured yet: 'darc start FUNCTION' and let it search, or name files of "
            "'darc save', or '--import FILE' of perf script"
        )
    base = None if against is None else contexts.read_any(against)
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
    options=(_BASE, _IMPORT, _TOP, *VIEW_OPTIONS),
    takes_file=True,
    only_looks=True,
)
