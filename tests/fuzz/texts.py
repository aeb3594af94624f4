"""Files that are looked at and compared: texts of ``perf script``, sets, ops, contexts; damaged."""

from __future__ import annotations

import copy
import functools
import json
import lzma
import random
import shlex
import tempfile
from pathlib import Path
from typing import Any

from darc.app import commands
from darc.views.words import Shown, message
from tests.fake_app import FakeApp
from tests.fuzz import names, session_files

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "plugin.txt.xz"
_FIELDS = (
    "-1",
    "0",
    "9" * 13,
    "9" * 5000,
    "0x",
    "ffffffffffffffffffff",
    "[unknown]",
    "(",
    ")",
    "\0",
)


class _App(FakeApp):
    def emit(self, text: str) -> None:
        names.check(text if isinstance(text, Shown) else message(text))


class _Shows(FakeApp):
    said = ""

    def emit(self, text: str) -> None:
        self.said = text


@functools.cache
def _events() -> tuple[str, ...]:
    """Some events of a real record, with their stacks."""
    text = lzma.decompress(RECORDED.read_bytes()).decode("utf-8", "surrogateescape")
    return tuple(text.split("\n\n")[:400])


@functools.cache
def _valid() -> tuple[Any, ...]:
    """A session with ops, contexts, and a set."""
    from darc.saved import sets, storage
    from tests.unit.sets import KNOWN
    from tests.unit.stored import sample

    whole = storage.to_text(sample())
    app = _Shows()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(whole)
        file.flush()
        commands.run(app, "contexts", f"{shlex.quote(file.name)} --format json")
    content = json.loads(whole)
    of_set = {**content, "parts": {sets.PART: sets.to_part(KNOWN)}}
    return content, of_set, json.loads(app.said)


def _text(chance: random.Random) -> bytes:
    first = chance.randrange(len(_events()))
    lines = "\n\n".join(_events()[first : first + chance.randrange(1, 12)]).split("\n")
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            del lines[at:]
        elif kind == 1:
            lines[at] = names.made(chance)
        elif kind == 2:
            lines.insert(at, chance.choice(lines))
        elif kind == 3:
            words = lines[at].split(" ")
            words[chance.randrange(len(words))] = chance.choice((*_FIELDS, names.made(chance)))
            lines[at] = " ".join(words)
        elif kind == 4:
            lines[at] = lines[at].replace(chance.choice(" :+(./"), chance.choice(_FIELDS), 1)
        else:
            lines[at] = "prog 1 [000] 7.000001: PERF_RECORD_" + chance.choice(
                ("LOST lost 5", "LOST lost " + "9" * 30, "SWITCH OUT", "LOST", "", "X y")
            )
        if not lines:
            break
    end = chance.choice(("\n\n", "\n\n", "\n", ""))
    return ("\n".join(lines) + end).encode("utf-8", chance.choice(("replace", "surrogatepass")))


def _json(chance: random.Random) -> bytes:
    content = copy.deepcopy(chance.choice(_valid()))
    for _ in range(chance.choice((0, 1, 1, 2))):
        container, key = chance.choice(session_files._places(content))
        action = chance.randrange(4)
        if action == 0:
            del container[key]
        elif action == 1:
            container[key] = names.made(chance)
        elif action == 2:
            container[key] = copy.deepcopy(chance.choice(session_files._places(content))[0])
        else:
            container[key] = chance.choice(session_files.ODD)
        if not content:
            break
    raw = json.dumps(content).encode()
    return raw[: chance.randrange(len(raw))] if chance.random() < 0.05 else raw


def trial(chance: random.Random) -> None:
    """Two files, and a command that looks at them."""
    with tempfile.TemporaryDirectory(prefix="darc-fuzz-") as folder:
        paths = []
        for number in range(2):
            path = Path(folder) / f"{number}.json"
            path.write_bytes(_text(chance) if chance.random() < 0.4 else _json(chance))
            paths.append(shlex.quote(str(path)))
        if chance.random() < 0.1:
            paths[1] = paths[0]
        a, b = paths
        name, line = chance.choice((
            ("contexts", f"--import {a}"),
            ("contexts", f"--import {a} --base {b}"),
            ("contexts", f"{a} {b} --top 3"),
            ("contexts", f"{a} --format json"),
            ("compare", f"{a} {b}"),
            ("compare", f"{a} {b} --format json"),
            ("compare", a),
        ))  # fmt: skip
        commands.run(_App(), name, line)
