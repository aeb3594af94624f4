"""A program of one function, into which nobody else leads."""

from __future__ import annotations

from types import SimpleNamespace

from darc.code.architecture import FunctionCode
from darc.code.processor import decode

ENTRY = 0x401000
LOAD = bytes.fromhex("488b06")  # mov rax, [rsi]


class OneFunction:
    """Its handlers, if any, know loads: by their addresses, or to set them back."""

    def __init__(self, code: bytes, *, has_handler: bool = False, sets_back: bool = False) -> None:
        self.code = code
        self.mapped = SimpleNamespace(is_shared=lambda address: False)
        self.patchable = SimpleNamespace(
            may_fault=lambda instruction: has_handler and instruction.len == len(LOAD),
            may_be_restarted=lambda instruction: sets_back and instruction.len == len(LOAD),
            restarts=sets_back,
        )

    def way_in(self, address: int) -> int:
        return address

    def read(self, address: int, size: int) -> bytes:
        return self.code[address - ENTRY :][:size]

    def is_code(self, address: int) -> bool:
        return ENTRY <= address < ENTRY + len(self.code)

    def is_jumped_into(self, start: int, end: int) -> bool:
        return False

    def function(self) -> FunctionCode:
        found = {int(one.ip): one for one in decode(self.code, ENTRY)}
        return FunctionCode(ENTRY, [(ENTRY, ENTRY + len(self.code))], dict(found))
