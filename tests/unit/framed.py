"""A program that is known by its frames alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

from darc.code.frame_rule import WORD_SIZE, FrameRule
from darc.code.processor import STACK_POINTER


class FramedProgram:
    """Functions of a hundred hex bytes each, by where they begin, with frames of so many bytes up
    to the return address; some have names."""

    def __init__(self, frames: Mapping[int, int], names: Mapping[int, str] | None = None) -> None:
        self._frames = frames
        known = names or {}
        self.names = SimpleNamespace(
            function_at=lambda address: SimpleNamespace(name=known.get(self._begin(address) or 0))
        )
        self.outlines = SimpleNamespace(
            frame_rule=self._rule, kept_frame_pointer=lambda address: None
        )

    def module_at(self, address: int) -> object:
        return self._begin(address)

    def _begin(self, address: int) -> int | None:
        return next((at for at in self._frames if 0 <= address - at < 0x100), None)

    def _rule(self, address: int) -> FrameRule | None:
        begin = self._begin(address)
        return None if begin is None else FrameRule(STACK_POINTER, self._frames[begin] + WORD_SIZE)
