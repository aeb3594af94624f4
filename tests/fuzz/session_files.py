"""Damaged session files: values exchanged, bytes changed, nested without end, of other writers."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import random
from typing import Any

from darc.model.errors import DarcError
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters, Probes
from darc.model.peaks import find_peaks
from darc.model.snapshot import Snapshot
from darc.saved import storage
from darc.saved.checked import DamagedFileError
from darc.saved.descents import from_session
from darc.saved.refit import check_overrides, new_parameters
from darc.views.exporters import EXPORTERS
from darc.views.exporters.reportfile import write_report
from darc.views.exporters.text import report
from darc.views.general.live import live
from darc.views.general.status import status
from darc.views.style import Style
from tests.fuzz import names

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 2**96, 2**200, 1e308, 1e-320, 0.5, -0.0, "",
    "0", "-1", "NaN", "1e999", "\0", "a\0b", "\ud800", "\x1b]0;x\x07", "\u202e", "auto", "none",
    "*0x0", "*", "!", "a!b", "x.c:f", ":", "..", "/", [], {}, [[]], [None] * 5, {"": 0},
)  # fmt: skip
"""Values for anything."""


@functools.cache
def _valid() -> tuple[Any, ...]:
    """Sessions as they are written: one as small as they are, one with a tree."""
    from darc.model.status import Status
    from darc.saved.storage import SearchState, Stored, to_text
    from tests.unit import samples

    root, _ = samples.tree()
    profile = samples.profile(samples.BINS)
    made = []
    for node, peak in ((root, samples.snapshot().peak), (Fnode(samples.function("f")), None)):
        stored = Stored(
            spec="handle",
            parameters=Parameters(),
            status=Status.STOPPED,
            profile=profile,
            root=node,
            modules={"m": "ab12"},
            search=SearchState(peak=peak),
        )
        made.append(json.loads(to_text(stored)))
    return tuple(made)


def _places(content: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    if isinstance(content, dict | list):
        for key in list(content) if isinstance(content, dict) else range(len(content)):
            found.append((content, key))
            found += _places(content[key])
    return found


def made(chance: random.Random) -> bytes:
    """The bytes of one file."""
    kind = chance.randrange(10)
    if kind == 0:
        deep = chance.choice((10, 900, 3000, 100_000))
        opening = chance.choice(("[", '{"a":', '{"format": "darc session", "ftree": ['))
        return (opening * deep).encode()
    if kind == 1:
        return chance.randbytes(chance.randrange(200))
    content = copy.deepcopy(chance.choice(_valid()))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        container, key = chance.choice(_places(content))
        action = chance.randrange(5)
        if action == 0 and isinstance(container, dict):
            container[names.made(chance)] = container.pop(key)
        elif action == 1:
            del container[key]
        elif action == 2:
            container[key] = names.made(chance)
        elif action == 3:
            container[key] = copy.deepcopy(chance.choice(_places(content))[0])
        else:
            container[key] = chance.choice(ODD)
        if not content:
            break
    if chance.random() < 0.05:
        content["version"] = chance.choice(
            (0, 2, 4, -1, "1", 10**400 if chance.random() < 0.5 else 6)
        )
    raw = bytearray(json.dumps(content).encode())
    if kind == 2 and raw:
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    if kind == 3:
        del raw[chance.randrange(len(raw) + 1) :]
    return bytes(raw)


def trial(chance: random.Random) -> None:
    """Reads it, and shows and writes what was read."""
    stored = storage.from_bytes(made(chance), names.made(chance))
    storage.from_bytes(storage.to_text(stored).encode(), "again")
    with contextlib.suppress(DamagedFileError):
        from_session(stored)
    try:
        check_overrides(stored, {})
        parameters = new_parameters(stored, {})
    except DarcError:
        parameters = stored.parameters
    snapshot = Snapshot(
        stored.spec,
        stored.status,
        Probes.PAD,
        profile=stored.profile,
        peaks=find_peaks(stored.profile.bins, stored.profile.resolution),
        peak=stored.search.peak,
        ftree=stored.root,
        parameters=parameters,
    )
    for view in (report, status, live):
        names.check(view(snapshot, Style(chance.choice((0, 40, 80)), chance.random() < 0.5)))
    shown: list[str] = []
    write_report(snapshot, EXPORTERS["json"], None, emit=shown.append)
    json.loads(shown[0])
