"""What an option means: a parameter's value for one command, or the command's own; and that
``docs/commands.md`` has the options and parameters that there are, and no others."""

from __future__ import annotations

import re
import shlex

import pytest

from darc.app.commands import COMMANDS, Command
from darc.app.options import START_OPTIONS
from darc.app.parameters import PARAMETERS
from tests.contract.tree import ROOT

SECTIONS: dict[str, str] = {}
for _part in (ROOT / "docs" / "commands.md").read_text().split("\n## ")[1:]:
    _title, _, _text = _part.partition("\n")
    SECTIONS[_title] = _text


def rows(section: str, head: str) -> list[list[str]]:
    """Those of the table of this ``head``, as words without their quotes."""
    _, _, table = section.partition(f"| {head} |")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    cells = (re.split(r"(?<!\\)\|", line)[1:-1] for line in lines)
    return [[cell.strip().strip("`") for cell in row] for row in cells]


def least(command: Command) -> str:
    """The arguments of its first example."""
    _darc, _name, *words = shlex.split(command.examples[0][0])
    return shlex.join(command.split(words).words)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda one: one.name)
def test_an_option_is_a_parameters_or_the_commands_own(command: Command) -> None:
    for option in command.options:
        parsed = command.read(f"{least(command)} {option.name} '{option.kind.example}'")
        is_own = START_OPTIONS.get(option.name) is None or option.unlike is not None
        assert list(parsed.overrides) == ([] if is_own else [START_OPTIONS[option.name]])


def test_an_option_that_is_unlike_a_parameter_is_told_otherwise() -> None:
    alike = [
        f"darc {command.name} {option.name}"
        for command in COMMANDS.values()
        for option in command.options
        if option.unlike is not None and option.doc == option.unlike.doc
    ]
    assert not alike


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda one: one.name)
def test_the_page_has_the_options_that_there_are(command: Command) -> None:
    told = [row[0].split()[0] for row in rows(SECTIONS[f"darc {command.name}"], "option")]
    assert told == [option.name for option in command.options]


def test_the_page_has_the_commands_and_parameters_that_there_are() -> None:
    told = [title.removeprefix("darc ") for title in SECTIONS if title.startswith("darc ")]
    assert told == list(COMMANDS)
    head = "parameter | option of `darc start` | default"
    parameters = [row[:3] for row in rows(SECTIONS["set darc, show darc"], head)]
    assert parameters == [[one.name, one.option or "–", one.default_text] for one in PARAMETERS]
