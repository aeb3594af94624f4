"""Callees of made-up functions: a program, and what its code calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from darc.code.architecture import Site
from darc.collectors.callees import Callees
from darc.model.ftree import Fnode, Function
from tests.unit.assembly import Code
from tests.unit.machine import Program

SOURCE = """
f: sub rsp,8
call g
call vfork
call rax
call h
call h
add rsp,8
ret
g: sub rsp,8
call h
add rsp,8
jmp t
h: ret
t: jmp u
u: ret
vfork: ret
"""


class Rules:
    """What the probes of a test cannot time."""

    max_targets = 2
    max_tails = 1

    def __init__(self, *, hopeless: str = "", no_room_at: int = 0) -> None:
        self._hopeless = hopeless
        self.no_room_at = no_room_at

    def problem(self, site: Site) -> str | None:
        return "it has no room" if site.address == self.no_room_at else None

    def why_notrace(self, program: object, callee: Function) -> str | None:
        return "it returns twice" if callee.symbol == self._hopeless else None


class World:
    def __init__(self, code: Code, rules: Rules | None = None) -> None:
        self.program = Program(code.data, code.symbols, code.parts)
        self.notes: list[str] = []
        self.callees = self.new(rules or Rules())
        self.root = Fnode(self.function("f"))
        sites = self.program.function(self.program.symbols["f"]).sites
        self.sites = sites
        (self.indirect,) = (site for site in sites if site.target is None)

    def new(self, rules: Rules) -> Callees:
        return Callees(self.program, rules, self.notes.append)  # type: ignore[arg-type]

    def function(self, name: str) -> Function:
        return self.program.names.function_at(self.program.symbols[name])

    def names(self, node: Fnode) -> list[str]:
        return [child.function.name for child in node.children]

    def at(self, name: str) -> int:
        return self.program.symbols[name]


Make = Callable[..., World]


@pytest.fixture
def make(assembled: Callable[[str], Code]) -> Make:
    return lambda rules=None: World(assembled(SOURCE), rules)
