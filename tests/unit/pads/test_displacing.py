"""Which instructions may run in a pad: of functions of assembler, with breakpoints of a user's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from darc.code.architecture import FunctionCode, Prologue
from darc.code.processor import PATCH_LENGTH, decode
from darc.model.refusal import Refusal
from darc.pads.displacing import MAY_FAULT, MAY_RESTART, USERS, Displacing

ENTRY = 0x401000
LOAD, SET = bytes.fromhex("488b06"), bytes.fromhex("b801000000")  # mov rax, [rsi]; mov eax, 1
RETURN = b"\xc3"


class Program:
    """Nobody else leads into its one function; its handlers, if any, know loads."""

    def __init__(self, code: bytes, *, has_handler: bool = False, sets_back: bool = False) -> None:
        self.code = code
        self.mapped = SimpleNamespace(is_shared=lambda address: False)
        self.patchable = SimpleNamespace(
            may_fault=lambda instruction: has_handler and instruction.len == len(LOAD),
            may_be_restarted=lambda instruction: sets_back and instruction.len == len(LOAD),
            restarts=sets_back,
        )

    def read(self, address: int, size: int) -> bytes:
        return self.code[address - ENTRY :][:size]

    def is_code(self, address: int) -> bool:
        return ENTRY <= address < ENTRY + len(self.code)

    def is_jumped_into(self, start: int, end: int) -> bool:
        return False

    def function(self) -> FunctionCode:
        found = {int(one.ip): one for one in decode(self.code, ENTRY)}
        return FunctionCode(ENTRY, [(ENTRY, ENTRY + len(self.code))], dict(found))


def displacing(program: Any, *breaks: int) -> Displacing:
    target: Any = SimpleNamespace(user_breaks=SimpleNamespace(addresses=lambda: breaks))
    return Displacing(target, program)


def test_what_is_timed_may_begin_behind_what_stays() -> None:
    """The handler finds the load in its place; a guard stands at the entry or nowhere."""
    program = Program(LOAD + SET + RETURN, has_handler=True)
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
    program = Program(LOAD + SET + RETURN, has_handler=True, sets_back=True)
    found, why = displacing(program).entry(program.function(), is_timed=True)
    assert (found.entry, why) == (ENTRY, Refusal(MAY_RESTART))
    program = Program(LOAD + SET + RETURN, sets_back=True)
    _, prologue = displacing(program).entry(program.function(), is_timed=False)
    assert isinstance(prologue, Prologue)


def test_what_accesses_no_memory_may_run_elsewhere() -> None:
    program = Program(SET + LOAD + RETURN, sets_back=True)
    _, prologue = displacing(program).entry(program.function(), is_timed=True)
    assert isinstance(prologue, Prologue)


def test_without_a_handler_all_may_run_elsewhere() -> None:
    program = Program(LOAD + SET + RETURN)
    _, prologue = displacing(program).entry(program.function(), is_timed=True)
    assert isinstance(prologue, Prologue)
    assert prologue.original == LOAD + SET


@pytest.mark.parametrize(("at", "why"), [(0, None), (3, USERS), (4, USERS), (8, None)])
def test_a_breakpoint_of_the_users(at: int, why: str | None) -> None:
    """At the entry, and behind what is displaced, it is nobody's trouble."""
    program = Program(LOAD + SET + RETURN)
    found = displacing(program, ENTRY + at)
    prologue = found.prologue(program.function(), PATCH_LENGTH, is_guard=False)
    assert (prologue.why if isinstance(prologue, Refusal) else None) == why
