"""Writes docs/modules.md from what each module says of itself.

``python tools/modules_page.py`` replaces the page; a test compares the two.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from darc import FLOORS  # noqa: E402

PAGE = ROOT / "docs" / "modules.md"
PACKAGES = ("darc_gdb", "darc_lldb", "kgdb")

INTRODUCTION = """\
# Modules

What each file says of itself, in its first line; `python tools/modules_page.py` writes this page.
What a folder is for, and may do, is in [the architecture](architecture.md), and [the
glossary](glossary.md) has the words. Names that are alike:

- `switches.py` watches when threads leave their processors, `switchwatch.py` has that begin and
  end with a search, and `switch_history.py` makes times of what was seen.
- `app/waiting.py` is a request that waits for its function; every `waits.py` is about threads
  that wait for locks and the like: `model/` has the values, `analyses/` the shares of time,
  `saved/` their place in files.
- `pads/foothold.py` is the memory that darc has in a program, `collectors/footing.py` which of
  them an analysis stands on, and `debuggee/process_foothold.py` and `kgdb/foothold.py` get it
  from a process and from a kernel.
- `analyses/catching.py` stops the program in a call that is *late*, as it takes too long already;
  `model/catching.py` has what is known of it, `debuggee/standing.py` tells where a thread stands
  and who has what it waits for, and `views/parts/catching.py` tells it.
- `analyses/profilephase.py`, `searchphase.py` and `closingphase.py` are phases of the analysis of
  `rootcauses.py`; `pathsearch.py` is the search of the second, and `closinground.py` the round of
  the third.
- `darc_gdb/stopping.py` and `darc_lldb/stopping.py` hear of stops; `collectors/padstops.py` and
  `standstill.py` say what becomes of probes and calls there.
- A part of a target has the name of what `target/` asks of it (`breaks.py`, `memory.py`), and
  what both debuggers have beside these has one name (`calls.py`, `callbacks.py`).
- `darc profile` times many functions: a *set* (`model/functionset.py`, `analyses/functionset.py`,
  `collectors/set_collector.py`, `views/setview.py`); `model/profile.py` is the histogram of one.
- `code/damaged.py` is about files that cannot be read, `agent/damage.py` about tables that
  cannot be believed.
- *callers* are who calls a function (`code/callers.py`, `agent/callers.c`); `debuggee/callmaker.py`
  makes calls for darc.
- *contexts* are those of `darc contexts`, but in `agent/contexts.py`: there they are threads'.
- In `views/`, a file of `parts/` has what one analysis knows; what it takes more than a few lines
  to draw stands beside it in a file that is called after it (`walkview.py`).
"""


def page() -> str:
    """The whole page."""
    folders = [*(ROOT / "darc" / name for name in reversed(FLOORS)), *map(ROOT.joinpath, PACKAGES)]
    return "\n".join([INTRODUCTION, *(line for folder in folders for line in _folder(folder))])


def _folder(folder: Path) -> Iterator[str]:
    yield f"## {folder.relative_to(ROOT).as_posix()}/\n"
    yield "| file | |\n| --- | --- |"
    for file in sorted(folder.rglob("*.py")):
        if file.name != "__init__.py" or file.parent != folder:
            text = ast.get_docstring(ast.parse(file.read_text())) or ""
            yield f"| `{file.relative_to(folder).as_posix()}` | {_summary(text)} |"
    yield ""


def _summary(text: str) -> str:
    """Its first sentence, or what stands before a list, as Markdown."""
    first = text.partition("\n\n")[0].replace("\n", " ")
    first = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", first).replace("``", "`")
    first = re.split(r"(?<=[^.][.:]) (?=[A-Z])", first)[0].rstrip(".:")
    return first.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
