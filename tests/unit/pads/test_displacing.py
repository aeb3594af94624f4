"""Which instructions may run in a pad: of functions of assembler, with breakpoints of a user's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from darc.code.architecture import Prologue
from darc.code.processor import PATCH_LENGTH
from darc.model.refusal import Refusal
from darc.pads.displacing import MAY_FAULT, MAY_RESTART, USERS, Displacing
from tests.unit.onefunction import ENTRY, LOAD, OneFunction

SET = bytes.fromhex("b801000000")  # mov eax, 1
RETURN = b"\xc3"


def displacing(program: Any, *breaks: int) -> Displacing:
    target: Any = SimpleNamespace(user_breaks=SimpleNamespace(addresses=lambda: breaks))
    return Displacing(target, program)


def test_what_is_timed_may_begin_behind_what_stays() -> None:
    """The handler finds the load in its place; a guard stands at the entry or nowhere."""
    program = OneFunction(LOAD + SET + RETURN, has_handler=True)
    found, prologue = displacing(program).entry(program.function(), is_timed=True)
    assert isinstance(prologue, Prologue)
    assert (found.entry, prologue.entry, prologue.original) == (
        *(ENTRY + len(LOAD), ENTRY + len(LOAD), SET),
    )
    found, why = displacing(program).entry(program.function(), is_timed=False)
    assert (found.entry, why) == (ENTRY, Refusal(MAY_FAULT))


def test_what_may_be_begun_anew_is_not_timed_behind_that() -> None:
    """A handler may look for a thread between the load and what follows. A guard's function is a
    runtime's, which no such handler knows."""
    program = OneFunction(LOAD + SET + RETURN, has_handler=True, sets_back=True)
    found, why = displacing(program).entry(program.function(), is_timed=True)
    assert (found.entry, why) == (ENTRY, Refusal(MAY_RESTART))
    program = OneFunction(LOAD + SET + RETURN, sets_back=True)
    _, prologue = displacing(program).entry(program.function(), is_timed=False)
    assert isinstance(prologue, Prologue)


def test_what_accesses_no_memory_may_run_elsewhere() -> None:
    program = OneFunction(SET + LOAD + RETURN, sets_back=True)
    _, prologue = displacing(program).entry(program.function(), is_timed=True)
    assert isinstance(prologue, Prologue)


def test_without_a_handler_all_may_run_elsewhere() -> None:
    program = OneFunction(LOAD + SET + RETURN)
    _, prologue = displacing(program).entry(program.function(), is_timed=True)
    assert isinstance(prologue, Prologue)
    assert prologue.original == LOAD + SET


@pytest.mark.parametrize(("at", "why"), [(0, None), (3, USERS), (4, USERS), (8, None)])
def test_a_breakpoint_of_the_users(at: int, why: str | None) -> None:
    """At the entry, and behind what is displaced, it is nobody's trouble."""
    program = OneFunction(LOAD + SET + RETURN)
    found = displacing(program, ENTRY + at)
    prologue = found.prologue(program.function(), PATCH_LENGTH, is_guard=False)
    assert (prologue.why if isinstance(prologue, Refusal) else None) == why
