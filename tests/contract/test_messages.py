"""What messages tell the user to type can be typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.app.commands import COMMANDS
from darc.app.options import START_OPTIONS
from darc.app.parameters import PARAMETERS
from darc.model.errors import UsageError
from tests.contract.tree import parsed

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    file
    for package in ("darc", "darc_gdb", "darc_lldb", "kgdb")
    for file in sorted((ROOT / package).rglob("*.py"))
]
SETTINGS = {parameter.name: parameter for parameter in PARAMETERS}
OPTIONS = {option.name for command in COMMANDS.values() for option in command.options}

UNKNOWN = "X"
"""What a text has in the place of what is put into it while the program runs. In what may be typed
capitals stand for the user's own words."""

FOREIGN = {"--call-graph": "perf's", "--seed": "the fuzzers'"}
"""Options of other programs."""


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings of a file that are no docstrings, each whole."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    pieces = {
        id(piece)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for piece in node.values
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in told | pieces:
                yield node.lineno, text
            case ast.JoinedStr(values=parts) if id(node) not in told:
                words = (str(p.value) if isinstance(p, ast.Constant) else UNKNOWN for p in parts)
                yield node.lineno, "".join(words)


def typed_in(text: str) -> list[str]:
    """What a text quotes of darc's: commands, and options alone."""
    return re.findall(r"'((?:(?:set|show|help) )?darc(?: [^'\n]*)?|--[a-z][^'\n]*)'", text)


def is_open(word: str) -> bool:
    """Whether it stands for others."""
    return re.search("[A-Z…%]", word) is not None


def problem(typed: str) -> str | None:
    """Why that cannot be typed as it stands; ``None``: it can."""
    head, *words = typed.split()
    try:
        if head.startswith("--"):
            return _problem_of_option(head, words)
        if head in ("set", "show", "help"):
            return _problem_of_shared(head, words[1:])
        return _problem_of_command(words)
    except UsageError as error:
        return str(error)


def _problem_of_option(option: str, values: list[str]) -> str | None:
    if option not in OPTIONS | FOREIGN.keys():
        return f"no command has {option}"
    if option in START_OPTIONS and values and not is_open(values[0]):
        START_OPTIONS[option].read(values[0])
    return None


def _problem_of_shared(head: str, words: list[str]) -> str | None:
    known = COMMANDS.keys() if head == "help" else SETTINGS.keys()
    if not words or is_open(words[0]):
        return None
    if words[0] not in known:
        return f"there is no {words[0]}"
    if words[1:] and not is_open(words[1]):
        SETTINGS[words[0]].read(words[1])
    return None


def _problem_of_command(words: list[str]) -> str | None:
    if not words or is_open(words[0]):
        return None
    name, *rest = words
    if name not in COMMANDS:
        return f"there is no command {name}"
    options = {option.name for option in COMMANDS[name].options}
    for word in rest:
        if re.match("--?[a-z]", word) and word.partition("=")[0] not in options:
            return f"{name} has no {word}"
    is_whole = rest and not any(map(is_open, rest)) and rest[-1] not in options
    if is_whole:
        COMMANDS[name].read(" ".join(rest))
    return None


def test_what_messages_name_can_be_typed() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line} '{typed}': {why}"
        for file in FILES
        for line, text in texts(parsed(file))
        for typed in typed_in(text)
        if (why := problem(typed)) is not None
    ]
    assert not wrong, "\n".join(wrong)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_pages_quote_can_be_typed(page: Path) -> None:
    quoted = typed_in(page.read_text())
    wrong = [f"'{one}': {why}" for one in quoted if (why := problem(one)) is not None]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "set a lower 'darc max-probes'",
        "f\"type 'darc begin {function}'\"",
        "'darc start FUNCTION --foo'",
        "'darc walk --window never'",
        "'set darc max-probe 3'",
        "'set darc max-probes few'",
        "'show darc probe'",
        "'help darc begin'",
        "take '--probe pad'",
        "take '--probes pads'",
    ],
)
def test_what_cannot_be_typed_is_noticed(text: str) -> None:
    source = text if text.startswith("f") else repr(text)
    ((_, told),) = texts(ast.parse(f"x = {source}"))
    (typed,) = typed_in(told)
    assert problem(typed) is not None
