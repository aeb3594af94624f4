"""Names that a terminal takes for orders, that are long, or that are no text: in every view."""

from __future__ import annotations

import json
import random
import re
from typing import cast

from darc.app import commands
from darc.code.demangle import display_name
from darc.model.ftree import CallSite, Cause, Ending, Function
from darc.model.snapshot import SiteReport, SiteState
from darc.views import render
from darc.views.exporters.json import JSON
from darc.views.exporters.reportfile import write_report
from darc.views.exporters.text import report
from darc.views.general.histogram import histogram
from darc.views.general.live import live
from darc.views.general.status import status
from darc.views.style import Style
from darc.views.words import columns, message, name, printable, shorten, whole

_SGR = re.compile(r"\x1b\[[0-9;]*m")

PIECES = (
    "f", "handle", "ns::Class<int>::operator()", "_ZN2ns1fIiEEvT_", "_ZTh0_", "_RNvCs_1f", " ",
    "\x1b[2J", "\x1b]52;c;ZXZpbA==\x07", "\x1bP", "\x9b31m", "\x85", "\x00", "\n", "\r", "\t",
    "\x7f", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u0301", "\u0301" * 40, "\udce9",
    "\udc1b", "\ud800", "\ud83d\ude00", "\U000e0041", "\ue000", "\u3164", "\u2800", "漢", "é", "🙂",
    ".isra.0", ".cold", "@@V_1", "@plt", "(", ")", "<", ">", "{", "\\", "'", '"', "%s", "{0}",
    "\x1b]8;;http://e\x1b\\", "darc: root cause: x",
)  # fmt: skip


def made(chance: random.Random) -> str:
    """One name."""
    kind = chance.randrange(8)
    if kind == 0:
        return chr(chance.choice((chance.randrange(0x110000), chance.randrange(0x3000))))
    if kind == 1:
        raw = chance.randbytes(chance.randrange(40))
        return raw.decode("utf-8", "surrogateescape")
    if kind == 2 and chance.random() < 0.1:
        return chance.choice(PIECES) * chance.choice((100, 1000, 20_000))
    return "".join(chance.choices(PIECES, k=chance.randrange(1, 6)))


def check(text: str) -> None:
    """Nothing is in ``text`` but what may be shown, newlines and styles."""
    for line in _SGR.sub("", text).split("\n"):
        assert printable(line) == line, f"{line!r} is not to be shown"
        assert line.isprintable()


def trial(chance: random.Random) -> None:
    """Some hostile names, through everything that names go through."""
    from tests.unit import samples

    text = made(chance)
    width = chance.choice((1, 8, 20, 80, 200))
    assert columns(name(text, width)) <= max(width, 1)
    assert columns(shorten(printable(text), width)) <= max(width, 1)
    check(name(text))
    check(message(text))
    assert len(message(text)) <= 4200
    assert "\n" not in message(text)
    assert whole(text).encode().decode() == whole(text)
    if text.isprintable() and len(text) < 20 and "\u0301" not in text:
        assert whole(text) == text
    display_name(text)

    def hostile() -> str:
        return made(chance)

    snapshot = samples.snapshot()
    assert snapshot.ftree is not None
    for node in snapshot.ftree.walk():
        shown = hostile()
        node.function = Function(
            name=shown,
            symbol=hostile(),
            module=hostile(),
            address=1,
            offset=1,
            file=hostile(),
            line=1,
        )
        if node.site is not None:
            inlined = (hostile(), shown) if chance.random() < 0.5 else ()
            file = hostile() if chance.random() < 0.5 else None
            node.site = CallSite(
                address=1,
                kind=node.site.kind,
                module=hostile(),
                offset=1,
                file=file,
                line=3,
                inlined=inlined,
            )
        if node.end is not None:
            node.end = Ending(
                cause=Cause.LOOP,
                maxcount=1,
                loop_callee=hostile(),
                loop_calls=2.0,
                loop_share=0.5,
                note=hostile(),
            )
    import dataclasses

    sites = (
        SiteReport(
            function=hostile(),
            offset=1,
            callee=hostile(),
            state=SiteState.NOT_POSSIBLE,
            why=hostile(),
        ),
    )
    snapshot = dataclasses.replace(
        snapshot,
        function=text,
        notes=(hostile(), hostile()),
        program=dataclasses.replace(snapshot.program, sites=sites),
    )
    width = chance.choice((0, 20, 60, 80, 200))
    style = chance.choice((
        Style(width, colour=chance.random() < 0.3, verbose=chance.random() < 0.3),
        Style(whole_names=True),
        Style(unicode=False),
    ))  # fmt: skip
    for view in chance.sample((report, status, render.tree, histogram), 2):
        check(view(snapshot, style))
    line = live(snapshot, Style(max(width, 20)))
    assert "\n" not in line
    assert columns(line) <= max(width, 20)
    out: list[str] = []
    write_report(snapshot, JSON, None, emit=out.append)
    check(out[0])
    assert json.loads(out[0])["function"] == whole(text)
    # Completion of 'start' asks for nothing else.
    commands.complete(cast(commands.Actions, _Completing(text)), "start", "", "")


class _Completing:
    """As much of an application as completion asks for."""

    def __init__(self, text: str) -> None:
        self._text = text

    def complete_function(self, prefix: str) -> list[str]:
        """The one function that there is."""
        return [self._text] if self._text.startswith(prefix) else []
