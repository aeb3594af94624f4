"""A program's bytes as they are in memory, without what darc wrote there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from darc.code.modules import Loaded
from darc.code.overlay import Overlay
from darc.code.processor import CONTEXT_RETURN, LONGEST_CALL, SIGNAL_RETURN, ends_in_call
from darc.model.errors import TargetError
from darc.target.target import Target

REWRITTEN = "the program has changed its first bytes, and may do so again"
"""Why nothing is told, and timed, of code that is another than its file has there."""


class NotNowError(BaseException):
    """While the program runs: what was asked for cannot be told now, and is to be asked for again
    when it stands still. Nobody is to take it for an answer, as they do with an end of memory."""


class KnowsCode(Loaded, Protocol):
    """The program whose bytes they are."""

    def is_code(self, address: int) -> bool: ...


class LiveBytes:
    """What is read of a program's memory. ``patches`` are the bytes that darc itself wrote over:
    readers see what stood there before."""

    def __init__(self, program: KnowsCode, target: Target) -> None:
        self._program = program
        self._target = target
        self.patches = Overlay()
        self._is_ahead = False

    def read(self, address: int, size: int) -> bytes:
        """Memory as it was before darc touched it.

        Raises:
            TargetError: it cannot be read.
            NotNowError: within :meth:`ahead`, code is not what its file has.
        """
        found = self.patches.over(address, self._target.memory.read(address, size))
        is_code = self._is_ahead and any(map(self._program.is_code, (address, address + size - 1)))
        if is_code and found != self.in_file(address, size):
            raise NotNowError
        return found

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """While the program runs, whose memory is read beside the debugger: code counts as read
        only where it is what its file has, as breakpoints stand in that memory.

        Raises:
            NotNowError: code is not.
        """
        self._is_ahead = True
        try:
            yield
        finally:
            self._is_ahead = False

    def in_file(self, address: int, size: int) -> bytes | None:
        """What a module's file has there."""
        module = self._program.module_at(address)
        return None if module is None else module.image.loaded(address - module.bias, size)

    def is_rewritten(self, address: int, size: int) -> bool:
        """Whether code is another than its file has there: who has written it may do so again."""
        stored = self.in_file(address, size)
        return stored is not None and self.read(address, len(stored)) != stored

    def is_returned_to(self, address: int) -> bool:
        """Whether a call may come back to ``address``: else no caller's address is what lies on top
        of a stack there, as code may have jumped to what looks like a function."""
        try:
            if ends_in_call(self.read(address - LONGEST_CALL, LONGEST_CALL)):
                return True
            behind = self.read(address, len(SIGNAL_RETURN))
        except TargetError:
            return False
        return behind.startswith((SIGNAL_RETURN, CONTEXT_RETURN))
