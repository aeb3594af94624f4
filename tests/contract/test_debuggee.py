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

from darc import FLOORS
from tests.contract.names import walk
from tests.contract.tree import ENGINE, floor, module_name, parsed

SEAM = {"darc/debuggee/duties.py", "darc/debuggee/debuggee.py", "darc/debuggee/process.py"}

NATURE = {
    "noun": {
        "darc/app/lettinggo.py": "what runs, or was let go of",
        "darc/collectors/pad_collector.py": "what has written over its jumps",
        "darc/collectors/set_collector.py": "what stands still at the end of each interval",
    },
    "begins_anew": {"darc/app/observer.py": "whether an analysis goes on with the next 'run'"},
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

MAPPED = re.compile(r"\W*(stack|vdso|vsyscall|heap)\b")
"""What a process's kernel calls mappings that are of no file, between brackets."""

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


def mapped(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a file knows what mappings are called."""
    for node in walk(tree):
        match node:
            case ast.Constant(value=str(text)) if "[" in text[:2] and MAPPED.match(text):
                yield node.lineno, text


def test_what_mappings_of_a_process_are_called_is_known_below_the_seam_alone() -> None:
    seam = FLOORS.index("debuggee")
    wrong = [
        f"{file}:{line}: {text!r}: ask Region.is_stack, Module.is_vdso"
        for file in ENGINE
        if (floor(module_name(file)) or 0) > seam
        for line, text in mapped(parsed(file))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "is_seen"),
    [
        ("path == '[vdso]'", True),
        ("path.startswith('[stack')", True),
        (r"re.compile(r'\[heap\]')", True),
        ("name == 'stack'", False),
        ("usage = '[FUNCTION]'", False),
    ],
)
def test_the_name_of_a_mapping_is_noticed(text: str, is_seen: bool) -> None:
    assert bool(list(mapped(ast.parse(text)))) is is_seen, text


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
