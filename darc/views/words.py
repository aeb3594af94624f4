"""Small pieces of text that several views share, and what makes foreign text fit to be shown.

Names come from files and programs that nobody has vouched for: symbols, sections, paths, threads,
saved sessions, and messages of the debugger that quote them. A terminal would take some of their
characters for orders, or show a line in another order than it is written. So whatever goes to the
user passes :func:`name` where a view lays it out, or :func:`message` where it is told, and at the
one door, :meth:`darc.app.app.App.emit`, only what is :class:`Shown` is taken for clean.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Protocol

from rich.cells import cell_len

from darc.model.part import Offer
from darc.model.profile import format_cycles

NAME_WIDTH = 200
"""Columns that a name takes in a view at most."""

LOG_NAME_WIDTH = 1000
"""The same where output has no limit in width, or is verbose."""

_LONG_NAME = 64
"""Columns from which on what stands in the brackets of a name is shortened, the innermost first:
instances of C++'s and Rust's templates have names of thousands."""

_SHORT_ARGUMENT = 8
"""So much in brackets stays."""

_KEPT_IN_BRACKETS = re.compile(r"anonymous namespace|lambda\(.{,20}\)#\d+|lambda.{,8}#\d+")
"""What names a function as well as its own name does."""

_OPERATOR = re.compile(r"operator\s*(?:<=>|<<=?|>>=?|->\*?|[<>]=?|\(\)|\[\])|->")
"""Brackets that are none."""

_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}

_MOST_PERIOD = 6
"""Functions that call each other in a circle, as far as it is folded,"""

_LEAST_ROUNDS = 3
"""where they go round so often;"""

_LEAST_KNOWN = 4
"""and how many that are on the path already are told by their number."""

MOST_ON_WAY = 24
"""Functions of a path that are shown; the first and the last ones of a longer one."""

_WORD_WIDTH = 400
"""Columns of a word in a message: names may be files to be typed again, so longer ones stay."""

_LINE_WIDTH = 4096
"""Columns of a message."""

_MOST_MARKS = 2
"""Combining characters on one letter: no language takes more, and a hundred paint over lines."""

_ODD = re.compile(r"[^ -~]+")
"""What needs a closer look: names are ASCII for the most part, and a report has thousands."""

_BLANK = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that look like nothing."""

ASCII = str.maketrans(
    {
        **{
            "→": "->",
            "←": "<-",
            "●": "*",
            "○": "o",
            "·": ".",
            "×": "x",
            "…": "...",
            "▲": "^",
            "–": "-",
        },
        **{"µ": "u", "μ": "u", "┤": "+", "│": "|", "└": "`", "├": "|", "─": "-", "═": "="},
        **{"▁": ".", "▂": ".", "▃": "_", "▄": "_", "▅": "#", "▆": "#", "▇": "#", "█": "#"},
        **{"▏": "|", "░": ".", "▒": "=", "▓": "%"},
    }
)
"""What darc draws with, and what stands for it in ASCII."""


def to_ascii(text: str) -> str:
    """``text`` for terminals that have ASCII characters only."""
    return text.translate(ASCII).encode("ascii", "replace").decode("ascii")


class Shown(str):
    """Text whose every character may go to a terminal: printable ones, newlines, and the escape
    codes of darc's own styles."""

    __slots__ = ()


def printable(text: str) -> str:
    """``text`` in one line, with every character that a terminal might not show as itself written
    out: ``\\x1b``, ``\\u202e``, ``\\xe9`` for a byte that is no UTF-8.

    These are controls, format characters (of direction, too), separators but the space, half
    surrogate pairs, what is private or not assigned, what looks like nothing, and combining
    characters that stand alone or are too many.
    """
    if text.isascii() and text.isprintable():
        return text

    def shown(found: re.Match[str]) -> str:
        before = text[max(found.start() - 1, 0) : found.start()]
        return _shown(found[0], before not in ("", " "))

    return _ODD.sub(shown, text)


def _shown(text: str, has_letter: bool) -> str:
    """The same of a part; ``has_letter``: there is something before it that marks can stand on."""
    pieces = []
    marks = 0 if has_letter else _MOST_MARKS
    for character in text:
        if unicodedata.category(character)[0] == "M":
            marks += 1
            fit = marks <= _MOST_MARKS
        else:
            fit = character.isprintable()
            marks = 0 if fit and character != " " else _MOST_MARKS
        pieces.append(character if fit and character not in _BLANK else _written_out(character))
    return "".join(pieces)


def _written_out(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte, as "surrogateescape" has it
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def whole(text: str) -> str:
    """``text`` as Unicode that every reader of files takes: bytes that are no UTF-8 and half
    surrogate pairs are written out, nothing else is."""
    if text.isascii():
        return text
    raw = text.encode("utf-8", "surrogateescape") if _is_bytes(text) else None
    if raw is not None:
        return raw.decode("utf-8", "backslashreplace")
    return "".join(_written_out(c) if "\ud800" <= c <= "\udfff" else c for c in text)


def _is_bytes(text: str) -> bool:
    """Whether its half surrogate pairs all stand for bytes."""
    return not any("\ud800" <= c < "\udc80" or "\udcff" < c <= "\udfff" for c in text)


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    return len(text) if text.isascii() else cell_len(text)


def shorten(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width`` columns."""
    if columns(text) <= width:
        return text
    keep = max(width - 1, 0)
    return f"{_head(text, keep - keep // 2)}…{_head(text[::-1], keep // 2)[::-1]}"


def _head(text: str, width: int) -> str:
    """What fits into ``width`` columns, from the beginning."""
    if text[:width].isascii():
        return text[:width]
    taken = 0
    for index, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:index]
    return text


def name(text: str, width: int = NAME_WIDTH, *, is_whole: bool = False) -> str:
    """A foreign name as a view shows it: printable, with its arguments shortened where it is long,
    unless it is to be ``is_whole``, and cut in the middle to ``width`` columns."""
    if not is_whole and len(text) <= _LINE_WIDTH:
        text = without_arguments(text)
    if len(text) > 4 * width:  # a long one is not looked at whole; every character is 4 at most
        half = 2 * width
        text = f"{text[:half]}…{text[len(text) - half :]}"
    return shorten(printable(text), width)


def without_arguments(text: str, width: int = _LONG_NAME) -> str:
    """A function's name in ``width`` columns, if that can be, by leaving out what stands in its
    brackets: the innermost first, and no more than it takes. What is no name of such a kind, as its
    brackets do not match, stays."""
    if len(text) <= width:
        return text
    hidden = _OPERATOR.sub(lambda found: "\0" * len(found[0]), text)
    least = int(text.startswith("<"))  # of a trait, in Rust: for what type, and which
    made = text
    for depth in range(_depth(hidden) - 1, least - 1, -1):
        made = _cut_below(text, hidden, depth)
        if len(made) <= width:
            break
    return made


def _depth(text: str) -> int:
    """How deep its brackets go; 0 also where they do not match."""
    stack: list[str] = []
    deepest = 0
    for character in text:
        if character in _CLOSING:
            stack.append(_CLOSING[character])
            deepest = max(deepest, len(stack))
        elif character in ">)]}" and (not stack or stack.pop() != character):
            return 0
    return 0 if stack else deepest


def _cut_below(text: str, hidden: str, depth: int) -> str:
    """``text`` with the brackets that stand in ``depth`` others emptied. In ``hidden`` what looks
    like a bracket is one."""
    pieces: list[str] = []
    level = begin = 0
    for index, character in enumerate(hidden):
        if character in _CLOSING:
            level += 1
            if level == depth + 1:
                pieces.append(text[begin : index + 1])
                begin = index + 1
        elif character in ">)]}":
            if level == depth + 1:
                inside = text[begin:index]
                stays = len(inside) <= _SHORT_ARGUMENT or _KEPT_IN_BRACKETS.fullmatch(inside)
                pieces.append(inside if stays else "…")
                begin = index
            level -= 1
    return "".join([*pieces, text[begin:]])


def way(names: Sequence[str], arrow: str = " → ", most: int | None = MOST_ON_WAY) -> str:
    """Functions that call one the other, each shown by its name: where some go round again and
    again they are told once, with how often, ``(a → b) ×12``. Unless all are to be shown (``most``
    is ``None``) those that stand there already are left out, and all but the first and last of
    more than ``most``."""
    words = _folded(names, arrow)
    words = words if most is None else _without_known(words)
    if most is not None and len(words) > most:
        gone = len(words) - most
        half = most // 2
        words = [*words[:half], f"… {gone} more …", *words[half + gone :]]
    return arrow.join(words)


def _without_known(words: Sequence[str]) -> list[str]:
    """Those that stand there already, several one behind the other, are told by their number, but
    for the last one of all."""
    found: list[str] = []
    known: list[str] = []
    for number, word in enumerate(words):
        is_known = word in words[:number] and number < len(words) - 1
        if is_known:
            known.append(word)
            continue
        found += [f"… {len(known)} more of these …"] if len(known) >= _LEAST_KNOWN else known
        known.clear()
        found.append(word)
    return found


def _folded(names: Sequence[str], arrow: str) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(names):
        period, rounds = 1, 1
        for length in range(1, _MOST_PERIOD + 1):
            circle, many = names[at : at + length], 1
            while names[at + many * length : at + (many + 1) * length] == circle:
                many += 1
            if len(circle) == length and many >= _LEAST_ROUNDS and many * length > rounds * period:
                period, rounds = length, many
        circle = names[at : at + period]
        if rounds == 1:
            found += circle
        elif period == 1:
            found.append(f"{circle[0]} ×{rounds}")
        else:
            found.append(f"({arrow.join(circle)}) ×{rounds}")
        at += period * rounds
    return found


def typed(spelling: str) -> str:
    """What is to be typed for a function, as one word of a command line: whole, with quotes where
    it would be several without them."""
    text = printable(spelling)
    outside = re.sub(r"[<(\[{][^<(\[{]*[)>\]}]", "", text)
    return f'"{text}"' if any(map(str.isspace, outside)) else text


def start_text(offer: Offer) -> str:
    """The command that begins that search, in quotes, as it is to be typed."""
    return f"'darc start {typed(offer.function)} --peak {offer.peak}'"


def message(text: str) -> Shown:
    """What is told to the user in one line, with foreign names in it."""
    if len(text) > 16 * _LINE_WIDTH:
        half = 8 * _LINE_WIDTH
        text = f"{text[:half]}…{text[len(text) - half :]}"
    words = printable(text).split(" ")
    return Shown(shorten(" ".join(shorten(word, _WORD_WIDTH) for word in words), _LINE_WIDTH))


def lines(text: str) -> Shown:
    """The same for text of several lines, whose line ends are darc's."""
    return Shown("\n".join(message(line) for line in text.split("\n")))


_WORD = re.compile(r"\(?'[^']*'[^\s']*|\S+")
"""What stays in one line: a command in quotes, which is to be typed as it stands, or a word."""

_HANGING = 4
"""By how many columns the lines that go on are indented."""


def wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of ``width`` columns, those that go on indented; what stays in one line may
    be longer. One that fits stays as it is."""
    if columns(text) <= width:
        return [text]
    start = len(text) - len(text.lstrip(" "))
    indent = " " * (start + _HANGING)
    found: list[str] = []
    line = text[:start]
    for word in _WORD.findall(text):
        is_begun = line.strip() != ""
        if is_begun and columns(line) + 1 + columns(word) > width:
            found.append(line)
            line, is_begun = indent, False
        line += f" {word}" if is_begun else word
    return [*found, line]


_HISSES = ("s", "x", "z", "ch", "sh")


def plural(what: str) -> str:
    """``probes``, ``futexes``, ``processes``."""
    return f"{what}es" if what.endswith(_HISSES) else f"{what}s"


def counted(count: int, what: str) -> str:
    """``1 probe``, ``12 probes``."""
    return f"{count} {what if count == 1 else plural(what)}"


def counted_were(count: int, what: str) -> str:
    """``1 wait was``, ``3 waits were``."""
    return f"{counted(count, what)} {'was' if count == 1 else 'were'}"


def calls_text(count: int) -> str:
    """``1 call``, ``2000 calls``."""
    return counted(count, "call")


def functions_text(count: int) -> str:
    """``1 function``, ``64 functions``."""
    return counted(count, "function")


def threads_text(count: int) -> str:
    """``1 thread``, ``64 threads``."""
    return counted(count, "thread")


def elapsed_text(seconds: float) -> str:
    """``7s``, ``2min05s``, ``1h00min``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}min"
    return f"{minutes}min{rest:02}s" if minutes else f"{rest}s"


_FAR_LONGER = 3
"""Times the mean: a stop that takes so long is told beside the sum."""


def longest_stop_text(stops: int, seconds: float, longest: float) -> str:
    """``, the longest 3.7s``, where one of the ``stops``, which took ``seconds`` together, was far
    longer than most; else nothing."""
    if stops < 2 or longest * stops < _FAR_LONGER * seconds or not longest:
        return ""
    return f", the longest {format_cycles(round(longest * 1e9), 10**9)}"


class Spent(Protocol):
    """What an analysis has cost the program, as a snapshot's figures and others' answers have it;
    times are in seconds."""

    @property
    def stops(self) -> int: ...
    @property
    def stopped_seconds(self) -> float: ...
    @property
    def longest_stop(self) -> float: ...
    @property
    def setup_seconds(self) -> float: ...


def cost_text(cost: Spent) -> str:
    """:func:`stood_still` of that."""
    seconds, before = cost.stopped_seconds, cost.setup_seconds
    return stood_still(cost.stops, seconds, cost.longest_stop, before)


def stood_still(stops: int, seconds: float, longest: float, before: float) -> str:
    """What an analysis has cost the program: ``seconds`` in ``stops``, of which one took
    ``longest``, and what it took ``before`` these to make its probes."""
    stood, made = (format_cycles(round(one * 1e9), 10**9) for one in (seconds, before))
    count = counted(stops, "stop") + longest_stop_text(stops, seconds, longest)
    return f"the program stood still for {stood} in {count}; before, for {made}, for its probes"
