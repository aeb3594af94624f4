"""A file's symbols, made of Python values."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from darc.code.debug_file import DebugFile
from darc.code.headers import no_headers
from darc.code.symbols import FunctionSymbols, Listed
from darc.code.symscans import Symbol


class FakeSymbols(FunctionSymbols):
    """These, the best ones of an address first."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        super().__init__(no_headers(), DebugFile(no_headers(), Path("/")))
        self._listed = Listed(((number,), symbol) for number, symbol in enumerate(symbols))
        self.stripped = False
        """Whether they are only those that the file shows to others."""

    @property
    def is_stripped(self) -> bool:
        return self.stripped

    def _read(self) -> Listed:
        return self._listed
