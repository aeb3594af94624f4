"""Who asks what kind of thing is debugged: few, by name, each for one thing.

All others ask for what they need of it (``darc/debuggee/duties.py``), so that a third kind of
debuggee is none of the two that there are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.names import walk
from tests.contract.tree import ENGINE, parsed

SEAM = {"darc/debuggee/duties.py", "darc/debuggee/debuggee.py", "darc/debuggee/process.py"}

NATURE = {
    "noun": {
        "darc/app/lettinggo.py": "what runs, or was let go of",
        "darc/collectors/set_collector.py": "what stands still at the end of each interval",
    },
    "begins_anew": {"darc/app/app.py": "whether an analysis goes on with the next 'run'"},
    "left_in": {"darc/app/lettinggo.py": "what becomes of probes that stay"},
    "why_unread": {
        "darc/app/finding.py": "of a command that reads it while it runs",
        "darc/collectors/walk_collector.py": "the same",
    },
    "puts_back": {"darc/collectors/pad_collector.py": "what has taken probes out"},
}
"""Who asks the kind of a debuggee for what."""

READ_WHILE_IT_RUNS = {
    "darc/app/finding.py": "commands that do",
    "darc/app/monitor.py": "signs of life, and looks at what is counted; else it is knocked at",
    "darc/app/waiting.py": "a look at a breakpoint",
    "darc/collectors/pad_collector.py": "whether tables were written over; all is to sleep",
    "darc/collectors/set_collector.py": "what was counted at the end of an interval",
    "darc/collectors/walk_collector.py": "the windows of a walk",
    "darc/collectors/wholeops.py": "calls that are under way",
    "darc/session/account.py": "calls of generated code",
    "darc/session/background.py": "whether there is work for a helper",
}
"""Who asks whether its memory can be read while it runs, and for what."""

KINDS = re.compile(r"is_(a_)?(kernel|process|remote|machine)")


def asked(file: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    """What a file asks a debuggee that is the same for all of its kind, or for this alone."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="nature"), attr=what):
                yield what, node.lineno
            case ast.Attribute(value=ast.Name(id="nature"), attr=what):
                yield what, node.lineno
            case ast.Attribute(attr="is_readable_while_it_runs" as what):
                yield what, node.lineno
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) if (
                KINDS.fullmatch(name)
            ):
                yield name, node.lineno


def test_few_ask_which_kind_it_is_and_each_for_one_thing() -> None:
    found: dict[str, set[str]] = {}
    for file in ENGINE:
        if str(file) not in SEAM:
            for what, _ in asked(file, parsed(file)):
                found.setdefault(what, set()).add(str(file))
    may = {what: set(files) for what, files in NATURE.items()}
    assert found == may | {"is_readable_while_it_runs": set(READ_WHILE_IT_RUNS)}


@pytest.mark.parametrize(
    "text",
    [
        "session.debuggee.nature.noun",
        "nature = debuggee.nature\nnature.left_in",
        "if self._debuggee.is_readable_while_it_runs: pass",
        "is_kernel = not readable",
        "def told(*, is_process: bool) -> None: ...",
        "debuggee.is_a_process",
    ],
)
def test_a_question_for_the_kind_is_noticed(text: str) -> None:
    assert list(asked(Path("darc/app/app.py"), ast.parse(text)))
