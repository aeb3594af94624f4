"""Text for outputs that cannot show every character."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import darc
from darc.views.glyphs import encoded, fitting, locale_encoding, takes_colour, takes_escapes
from darc.views.words import ASCII

ENCODINGS = ("ascii", "ANSI_X3.4-1968", "latin-1", "utf-8", "koi8-r", "no-such-encoding")


@given(st.text(), st.sampled_from(ENCODINGS))
def test_whatever_it_is_fits(text: str, encoding: str) -> None:
    shown = fitting(text, encoding)
    assert encoded(text, encoding).decode(encoding if "no-" not in encoding else "ascii") == shown


@given(st.text())
def test_what_fits_stays(text: str) -> None:
    assert (
        fitting(text.encode(errors="replace").decode(), "utf-8")
        == text.encode(errors="replace").decode()
    )


def test_drawings_are_of_one_kind() -> None:
    """Where a part of what darc draws with is not there, nothing of it is used."""
    assert fitting("100 µs ─→ naïve", "latin-1") == "100 us --> naïve"
    assert fitting("100 µs ─→ naïve ж", "latin-1") == "100 us --> naïve ?"
    assert fitting("● a\udcff", "utf-8") == "● a?"


def test_whatever_darc_writes_has_a_form_in_ascii() -> None:
    """Every character beyond ASCII that a string of darc's has is in the one table."""
    folder = Path(darc.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            strings = "".join(re.findall(r'"[^"\n]*"', line)) if '"""' not in line else ""
            strange = {c for c in strings if not c.isascii()} - set(map(chr, ASCII))
            assert not strange, f"{file}:{number}: {strange}"


@pytest.mark.parametrize(
    ("variables", "encoding"),
    [
        ({}, "ascii"),
        ({"LANG": "C"}, "ascii"),
        ({"LANG": "de_DE.UTF-8"}, "UTF-8"),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, "ascii"),
        ({"LC_ALL": "C.UTF-8"}, "UTF-8"),
        ({"LC_CTYPE": "de_DE.ISO-8859-15@euro"}, "ISO-8859-15"),
        ({"LANG": "en_GB"}, "utf-8"),
    ],
)
def test_encodings_of_environments(variables: dict[str, str], encoding: str) -> None:
    assert locale_encoding(variables) == encoding


def test_terminals_that_take_no_escape_codes() -> None:
    assert takes_colour({"TERM": "xterm"})
    assert not takes_colour({"TERM": "xterm", "NO_COLOR": "1"})
    assert takes_colour({"TERM": "xterm", "NO_COLOR": ""})
    assert takes_escapes({"TERM": "xterm", "NO_COLOR": "1"})
    assert not takes_escapes({"TERM": "dumb"})
    assert not takes_escapes({})
