"""Small pieces of text that several views share."""

from __future__ import annotations

_ASCII = str.maketrans(
    {
        **{"→": "->", "●": "*", "○": "o", "·": ".", "×": "x", "…": "...", "▲": "^", "–": "-"},
        **{"µ": "u", "┤": "+", "│": "|", "└": "`", "├": "|", "─": "-", "═": "="},
        **{"▁": ".", "▂": ".", "▃": "_", "▄": "_", "▅": "#", "▆": "#", "▇": "#", "█": "#"},
    }
)


def to_ascii(text: str) -> str:
    """``text`` for terminals that have ASCII characters only."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def shorten(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width`` characters."""
    if len(text) <= width:
        return text
    keep = max(width - 1, 0)
    return f"{text[: keep - keep // 2]}…{text[len(text) - keep // 2 :]}"


def calls_text(count: int) -> str:
    """``1 call``, ``2000 calls``."""
    return "1 call" if count == 1 else f"{count} calls"


def elapsed_text(seconds: float) -> str:
    """``7s``, ``2min05s``, ``1h00min``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}min"
    return f"{minutes}min{rest:02}s" if minutes else f"{rest}s"
