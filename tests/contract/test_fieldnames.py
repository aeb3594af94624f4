"""What the agent has is asked for by members of enums, or by attributes: of a string that is
spelled otherwise than in the header mypy saw nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.agent.fieldnames import Structure
from tests.contract.compared import has_word
from tests.contract.names import walk
from tests.contract.tree import INSTALLED, trees

MAY = {
    "darc/agent/compiled.py": "the names of what was compiled",
    "darc/agent/fieldnames.py": "the enums",
}
"""Files that have such strings, and for what."""

ASKING = {"field", "get", "offset", "symbol", "take"}
"""Methods that are given one of these."""

AGENTS = re.compile(r"(^|[._])(blob|control|foothold|memory|tables)$|^self$|load\(\)$")
"""What they are asked of."""


def asked_by_words(file: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file names what the agent has by a string."""
    structures = "|".join(name.removeprefix("darc_") for name in Structure)
    for node in walk(tree):
        match node:
            case ast.Constant(value=str(text)) if re.match(rf"darc_({structures})\.\w*$", text):
                yield f"{file}:{node.lineno} has {text!r}"
            case (
                ast.Call(func=ast.Attribute(value=of, attr=asks), args=[word])
                | ast.Subscript(value=ast.Attribute(value=of, attr=asks), slice=word)
            ) if asks in ASKING | {"fields", "sizes", "symbols"}:
                is_member = isinstance(word, ast.Subscript)  # of an enum, by its name
                if AGENTS.search(ast.unparse(of)) and has_word(word) and not is_member:
                    yield f"{file}:{node.lineno} asks for {ast.unparse(word)}"


def test_what_the_agent_has_is_asked_for_by_no_string() -> None:
    found = {
        str(file): lines
        for file, tree in trees(INSTALLED | {"benchmarks"}).items()
        if (lines := list(asked_by_words(file, tree)))
    }
    wrong = [line for file, lines in found.items() if file not in MAY for line in lines]
    assert not wrong, "\n".join(wrong)
    assert found.keys() == MAY.keys(), "no longer needed"


@pytest.mark.parametrize(
    "text",
    [
        "self.get('thread_key')",
        "self.get('thread_kex')",
        "self._control.get('mode')",
        "tables.take('lost_ops')",
        "control.field('older')",
        "self._tables.field('waiting')[0]",
        "blob.offset('darc_record.slot')",
        "self._blob.fields[f'darc_control.{name}']",
        "blob.fields['darc_block.' + name]",
        "self._blob.sizes['darc_record']",
        "self._foothold.symbol('darc_nothing')",
        "self.symbol(f'darc_stub_{name}')",
        "places = [blob.fields[one] for one in ('darc_context.op', 'darc_context.idle')]",
    ],
)
def test_a_string_is_noticed(text: str) -> None:
    (line,) = list(asked_by_words(Path("darc/pads/foothold.py"), ast.parse(text)))[:1]
    assert line.startswith("darc/pads/foothold.py:1 ")


@pytest.mark.parametrize(
    "text",
    [
        "self.get(field)",
        "procfs.status(pid).get('Name', '')",
        "types.offset('irq_desc', 'action')",
        "blob.offset(RecordField.SLOT)",
        "tables.take(loss.value)",
        "self.symbol(AgentSymbol[f'STUB_{name.upper()}'])",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not list(asked_by_words(Path("darc/pads/foothold.py"), ast.parse(text)))
