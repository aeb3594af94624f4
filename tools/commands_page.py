"""Writes docs/commands.md from the one registry of commands and parameters.

``python tools/commands_page.py`` replaces the page; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from darc.app.commands import COMMANDS, Command  # noqa: E402
from darc.app.parameters import PARAMETERS  # noqa: E402

PAGE = ROOT / "docs" / "commands.md"

INTRODUCTION = """\
# Commands and parameters

This page is made from the text that gdb itself shows (`help darc`, `help darc start`,
`help set darc start-ops`); `python tools/commands_page.py` writes it.

Options may be written `--option value` or `--option=value`. In gdb every command completes with
Tab: its options, their values, files, names of functions (also behind `file.c:` and `lib.so!`),
peaks and fnodes that there are. lldb completes the names of commands and parameters, and from
lldb 16 on functions and files.
"""

ENDING = """\
## Names of functions

| FUNCTION | means |
| --- | --- |
| `f` | the function `f`, wherever it is |
| `file.c:f` | the one that is defined in this source file (needs debug information) |
| `lib.so!f` | the one in this library or program |
| `Class::f` | a C++ function, with or without its namespaces; `'Cache<int>::find'` in quotes |
| `Type<u64>::f<u32>` | an instance of a template, or of a generic function of Rust |
| `*ADDRESS` | the function that begins there |

Before `run` an address is one of the program's file, as `nm` shows it. One in the middle of a
function is refused, and darc says where that begins; where nothing has a symbol, frame descriptions
and calls tell. Arguments of templates may
be left out where one function has the name, and Rust's names be written as darc or gdb write
them.

A name of the C library is that of the program's own one, not the dynamic linker's copy, and of
several versions the one that programs are linked with today. Where the program chooses between
several functions (IFUNC: `memcpy`, `strlen`), it is the one that it has chosen; before that darc
waits for the choice, at the first call of what chooses.

A function that compilers have put where it is called, everywhere, has no code that could be
timed: with debug information darc names the functions that it is in, and does not wait for it.

When a function was not called, and compilers have made its callers call a copy of it (`f.part.0`),
darc says at the end what to type for that.

When several functions have the name, darc lists the exact spellings, eight at most, and does
nothing; where that turns out as a library comes, a program that was launched stops there. When none
has it yet, darc waits for a library that has, as gdb's `set breakpoint pending` says for
breakpoints; in lldb always, as its own breakpoints do. Where nobody can be asked (`-batch`, input
from no terminal, a front end) it waits. Before `run` it tells at once what neither the program's
file has nor the libraries that seem to be loaded with it, with near names. What no library has when
the program begins, and what cannot be analysed, is told then.

## Peaks

| P | means |
| --- | --- |
| `3` | the third peak from the left; the last one is open to the right |
| `last` | the slowest peak, open to the right; where there is one only, its tail |
| `17-19` | these bins, inclusive |
| `last of 17-64` | the last peak, if it begins in these bins, else these bins |
| `>4ms` | from the bin that holds this latency on; quote it, as `'>4ms'` |
| `p99` | from the bin of the call that 99 % of the calls do not exceed |

A single peak has a tail where it goes on three octaves or more beyond its summit, with as many
calls as make a peak and a hundredth of all calls' time: `last` takes those from an octave below its
end on. Without one it takes all calls. A line beside the answer says which; `1` takes all.

With `--peak`, a peak that is not there after `--start-ops` calls is looked for again at each
doubling of the calls, or of the time.

## In scripts

In batch mode gdb's exit status is that of its last command; lldb ends at the first error, with
status 1. `darc report --require root-cause` as the last command makes it 1 when no root cause was
found. `darc report -o out.json` writes JSON, schema 1: latencies are cycles of the time-stamp
counter, with `hz`. In `ftree`, `mean_cycles` is of the longest call of a node in each call of the
function; `calls` counts all of them, and `repeated` says that they counted together.
`notes` are those of `darc status`.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, *map(_command, COMMANDS.values()), _parameters(), ENDING]
    return "\n".join(part for part in parts if part)


def _command(command: Command) -> str:
    lines = [f"## darc {command.name}", "", command.summary, ""]
    lines += ["```", command.usage, "```", "", _text(command.details), ""]
    if command.options:
        rows = [(f"`{o.name} {o.metavar}`", _text(o.help)) for o in command.options]
        lines += [*_table(("option", ""), rows), ""]
    examples = [(f"`{example}`", _text(doc)) for example, doc in command.examples]
    return "\n".join([*lines, *_table(("example", ""), examples), ""])


def _parameters() -> str:
    rows = []
    for parameter in PARAMETERS:
        option = f"`{parameter.option}`" if parameter.option else "–"
        valid = f"{parameter.doc} Valid: {parameter.domain.valid}."
        default = f"`{parameter.default_text}`"
        rows.append((f"`{parameter.name}`", option, default, _text(valid)))
    head = ("parameter", "option of `darc start`", "default", "")
    return "\n".join(
        [
            "## set darc, show darc",
            "",
            "`set darc PARAMETER VALUE` keeps a value for every `darc start` to come; an option",
            "of `darc start` overrides it once. `show darc` shows all, `show darc PARAMETER` one.",
            "",
            *_table(head, rows),
            "",
        ]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]


def _text(text: str) -> str:
    """Words that Markdown would take for HTML are quoted."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
