"""What both debuggers say in the same words: which programs are refused, which signals go on."""

from __future__ import annotations

import pytest

from darc.debuggee.passedon import PassedOn
from darc.debuggee.refusals import check_processor, no_program
from darc.model.errors import UnsupportedError


def test_another_processor_is_refused() -> None:
    check_processor("x86_64", "x86_64")
    with pytest.raises(UnsupportedError, match=r"needs a .* program, this one is aarch64$"):
        check_processor("aarch64", "x86_64")


def test_without_a_program() -> None:
    assert str(no_program()) == "there is no program: 'run' or 'attach' it first"


def test_each_signal_is_told_of_once() -> None:
    told: list[str] = []
    passed_on = PassedOn(told.append)
    for name in ("SIGHUP", "SIGTERM", "SIGHUP"):
        passed_on.tell(name)
    assert told == [
        f"darc: {name} is passed on to the program, which has a handler for it: in batch the "
        "analysis goes on"
        for name in ("SIGHUP", "SIGTERM")
    ]


def test_what_stops_at_a_signal_all_the_same() -> None:
    told: list[str] = []
    PassedOn(told.append, stops_by="catch signal {}").tell("SIGHUP")
    assert told[0].endswith("in batch the analysis goes on ('catch signal SIGHUP' stops)")
