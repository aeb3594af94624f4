"""How views write: columns, colours, names as long as they may be; and lines of text made so."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from darc.views.words import (
    LOG_NAME_WIDTH,
    MOST_ON_WAY,
    NAME_WIDTH,
    Shown,
    columns,
    message,
    name,
    printable,
    shorten,
    to_ascii,
    wrapped,
)

DEFAULT_WIDTH = 80
LOG_WIDTH = 4096

SHORT_NAME_WIDTH = 32
"""Columns of a name among many in a sentence, at a terminal."""


@dataclass(frozen=True)
class Style:
    """How to write a view: columns, escape codes, everything or the essential, beyond ASCII.

    A ``width`` that is not positive is output without limits, a log: drawings take 80 columns, and
    the tree is as wide as its names. ``whole_names`` is for files: no name is shortened. ``wraps``:
    sentences are wrapped at the width, at a terminal, which would do so within words.
    """

    width: int = DEFAULT_WIDTH
    colour: bool = False
    verbose: bool = False
    unicode: bool = True
    whole_names: bool = False
    is_log: bool = False
    wraps: bool = False

    def __post_init__(self) -> None:
        if self.width <= 0:
            object.__setattr__(self, "is_log", True)
            object.__setattr__(self, "width", DEFAULT_WIDTH)
        if self.is_log or self.whole_names:
            object.__setattr__(self, "wraps", False)

    def name(self, text: str) -> str:
        """A foreign name, fit to be shown."""
        if self.whole_names:
            return printable(text)
        width = LOG_NAME_WIDTH if self.is_log or self.verbose else NAME_WIDTH
        return name(text, width, is_whole=self.verbose)

    def short_name(self, text: str) -> str:
        """One of many names in a sentence: cut at a terminal, as a tree cuts those that have too
        little room."""
        told = self.name(text)
        return shorten(told, SHORT_NAME_WIDTH) if self.wraps and not self.verbose else told

    @property
    def most_on_way(self) -> int | None:
        """How many functions of a path are shown; ``None``: all."""
        return None if self.whole_names or self.verbose else MOST_ON_WAY

    def note(self, text: str) -> str:
        """A line of text that holds such names."""
        return printable(text) if self.whole_names else message(text)

    @property
    def tree_width(self) -> int:
        """Columns of the tree."""
        if self.whole_names:
            return sys.maxsize
        return LOG_WIDTH if self.is_log else self.width


def _clean(line: Text) -> Text:
    """The line again, should anything have come as far as this that is not printable."""
    plain = line.plain
    if printable(plain) == plain:
        return line
    made = Text(style=line.style)
    for piece in line.divide(range(1, len(plain))):  # each character with its styles
        made.append_text(Text(printable(piece.plain), piece.spans[0].style if piece.spans else ""))
    return made


def write_sentences(lines: Iterable[Text], style: Style) -> Shown:
    """As :func:`write`, of lines that are sentences: these are wrapped where the style wraps."""
    if not style.wraps:
        return write(lines, style)
    return write((piece for line in lines for piece in _wrapped(_clean(line), style)), style)


def _wrapped(line: Text, style: Style) -> list[Text]:
    plain = line.plain if style.unicode else to_ascii(line.plain)
    if columns(plain) <= style.width:
        return [line]
    return [Text(piece, line.style) for piece in wrapped(plain, style.width)]


def write(lines: Iterable[Text], style: Style) -> Shown:
    """The lines as text, in this style."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=style.width,
        force_terminal=style.colour,
        color_system="standard" if style.colour else None,
        no_color=not style.colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for line in lines:
        line = _clean(line)
        line.rstrip()
        if style.colour:
            console.print(line, soft_wrap=True)
        else:
            buffer.write(f"{line.plain if style.unicode else _in_ascii(line.plain, style.width)}\n")
    text = buffer.getvalue().rstrip("\n")
    return Shown(text if style.unicode else to_ascii(text))


def _in_ascii(text: str, width: int) -> str:
    """A line in ASCII, which takes more columns for some characters: it is no wider than the
    terminal for that."""
    made = to_ascii(text)
    return f"{made[: width - 3]}..." if columns(text) <= width < len(made) else made
