"""What makes foreign text fit for a terminal, and for files."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from darc.model.ops import ObjectKind
from darc.model.waits import WaitedFor
from darc.views.style import Style
from darc.views.waitsview import object_text
from darc.views.words import (
    MOST_ON_WAY,
    Shown,
    columns,
    counted,
    lines,
    message,
    name,
    printable,
    shorten,
    way,
    whole,
    without_arguments,
    wrapped,
)


@pytest.mark.parametrize(
    ("count", "what", "told"),
    [
        (1, "futex", "1 futex"),
        (4, "futex", "4 futexes"),
        (2, "process", "2 processes"),
        (0, "call site", "0 call sites"),
        (3, "wake-up", "3 wake-ups"),
    ],
)
def test_how_many_there_are(count: int, what: str, told: str) -> None:
    assert counted(count, what) == told


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (ObjectKind.FUTEX, "4 futexes"),
        (ObjectKind.LOCK, "4 locks"),
        (ObjectKind.RWLOCK, "4 read-write locks"),
        (ObjectKind.THREAD, "the ends of 4 threads"),
        (ObjectKind.WAKE_UP, "4 wake-ups"),
        (ObjectKind.PROCESSOR, "4 processors"),
    ],
)
def test_of_several_objects_their_number_is_told(kind: ObjectKind, told: str) -> None:
    several = WaitedFor(
        kind=kind, name="", path=("f",), cycles=100, ops=9, waits=9, holders=(), count=4
    )
    assert object_text(several, str) == told


TEXTS = st.text(st.characters(codec=None) | st.sampled_from("\x1b\x9b\u202e\u0301\udce9\n漢"))


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("std::vector<int>", "std::vector<int>"),
        ("größe_漢字", "größe_漢字"),
        ("\x1b[2Jf", r"\x1b[2Jf"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x9b31m", r"\u009b31m"),
        ("f\u202egnp", r"f\u202egnp"),
        ("\u2066f\u2069", r"\u2066f\u2069"),
        ("f\udce9", r"f\xe9"),
        ("f\ud800", r"f\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("f\u2028g\u00a0h", r"f\u2028g\u00a0h"),
        ("\u3164\u2800", r"\u3164\u2800"),
        ("cafe\u0301", "cafe\u0301"),
        ("\u0301f", r"\u0301f"),
        ("f\u0301\u0302\u0303\u0304", "f\u0301\u0302\\u0303\\u0304"),
    ],
)
def test_what_a_terminal_would_not_show_is_written_out(foreign: str, shown: str) -> None:
    assert printable(foreign) == shown


@given(TEXTS)
def test_nothing_that_is_shown_has_a_control(text: str) -> None:
    for shown in (printable(text), name(text, 20), message(text)):
        assert shown.isprintable()
        assert not re.search(r"[^\x20-\x7e\xa1-\U0010ffff]", shown)
        assert all(unicodedata.category(c)[0] != "C" for c in shown)
    assert printable(printable(text)) == printable(text)
    assert set(lines(text)) - set(message(text)) <= {"\n"}


@given(TEXTS, st.integers(1, 40))
def test_names_keep_to_their_columns(text: str, width: int) -> None:
    assert columns(printable(text)) == cell_len(printable(text))
    assert columns(name(text, width)) <= width
    assert columns(shorten(printable(text), width)) <= width


def test_long_names_are_cut_in_the_middle() -> None:
    shown = name("begin" + "x" * 100_000 + "end")
    assert len(shown) == 200
    assert shown.startswith("beginxx")
    assert "xx…xx" in shown
    assert shown.endswith("xxend")
    assert len(message("darc: " + "x" * 100_000 + " is not there")) < 500
    assert len(message("a b " * 100_000)) <= 4096
    path = "/" + "/".join(["folder"] * 40)
    assert path in message(f"darc: session saved to {path}")


@given(TEXTS)
def test_files_keep_everything(text: str) -> None:
    kept = whole(text)
    assert kept.encode().decode() == kept
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert kept == text


def test_bytes_that_are_no_text_are_written_out_in_files() -> None:
    assert whole(b"caf\xe9_\xc3\xa9".decode("utf-8", "surrogateescape")) == "caf\\xe9_é"


def test_only_what_was_made_fit_is_taken_for_it() -> None:
    assert isinstance(message("x"), Shown)
    assert not isinstance(name("x"), Shown)  # it may stand within anything


@pytest.mark.parametrize(
    ("name_", "shown"),
    [
        ("serve<3>(int, std::string const&)", "serve<3>(int, std::string const&)"),
        (
            "std::__detail::_Executor<__gnu_cxx::__normal_iterator<char const*, std::string>, "
            "std::regex_traits<char>, true>::_M_dfs(std::__detail::_Match_mode, long)",
            "std::__detail::_Executor<…>::_M_dfs(…)",
        ),
        (
            "(anonymous namespace)::Table<std::pair<std::string, std::string>, 64>::look_up_again",
            "(anonymous namespace)::Table<std::pair<…>, 64>::look_up_again",
        ),
        (
            "bool operator< <std::vector<int, std::allocator<int> > >(std::vector<int, X> const&)",
            "bool operator< <std::vector<…> >(std::vector<int, X> const&)",
        ),
        (
            "<alloc::vec::Vec<T,A> as core::iter::traits::collect::Extend<&'a T>>::extend_slowly",
            "<alloc::vec::Vec<T,A> as core::iter::traits::collect::Extend<&'a T>>::extend_slowly",
        ),
        ("a<b" * 40, "a<b" * 40),
        ("long_name_of_a_function_in_c_" * 4, "long_name_of_a_function_in_c_" * 4),
    ],
)
def test_what_stands_in_brackets_of_long_names_is_shortened(name_: str, shown: str) -> None:
    assert name(name_) == shown
    assert name(name_, is_whole=True) == name_
    assert Style(verbose=True).name(name_) == Style(whole_names=True).name(name_) == name_


@given(st.text("ab<>()[]{},: *&-", max_size=200))
def test_of_brackets_only_what_is_in_them_goes(text: str) -> None:
    made = without_arguments(text)
    assert len(made) <= len(text)
    at = 0
    for piece in made.split("…"):
        at = text.find(piece, at)
        assert at >= 0, (made, text)
        at += len(piece)


def test_who_call_each_other_again_and_again_are_told_once() -> None:
    assert way(list("ab")) == "a → b"
    assert way(list("abb")) == "a → b → b"
    assert way([*"a", *"v" * 14, "z"]) == "a → v ×14 → z"
    assert way([*"a", *"bc" * 5, "b", "z"]) == "a → (b → c) ×5 → b → z"
    assert way(list("zyyy"), " ← ") == "z ← y ×3"
    mixed = list("fabacabcacbabcz")
    assert way(mixed) == "f → a → b → a → c → … 9 more of these … → z"
    assert way(mixed, most=None) == " → ".join(mixed)
    many = [str(number) for number in range(100)]
    assert way(many).count("→") == MOST_ON_WAY
    assert way(many).startswith("0 → 1 → ")
    assert way(many).endswith(" → 98 → 99")
    assert "… 76 more …" in way(many)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("  a line that fits", ["  a line that fits"]),
        (
            "  not looked into: 'darc start a_function --peak last'",
            ["  not looked into:", "      'darc start a_function --peak last'"],
        ),
        (
            "darc: found in a → b, c's; type 'darc tree'.",
            ["darc: found in a → b,", "    c's; type", "    'darc tree'."],
        ),
        (
            "it's far_longer_than_a_line_is and more",
            ["it's", "    far_longer_than_a_line_is", "    and more"],
        ),
        ("漢字漢字漢字 漢字漢字漢字", ["漢字漢字漢字", "    漢字漢字漢字"]),
        ("", [""]),
    ],
)
def test_a_sentence_is_wrapped_between_words(text: str, made: list[str]) -> None:
    """A command is to be typed as it stands: it is one word."""
    assert wrapped(text, 22) == made
