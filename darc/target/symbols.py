"""What a debugger knows of names and lines, from debug information."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from darc.target.shapes import Shape


class Symbols(ABC):
    """Those of a target's program."""

    @abstractmethod
    def line_at(self, address: int) -> tuple[str, int] | None:
        """Source file (as compiled) and line of an address, from debug information."""

    @abstractmethod
    def inlined_at(self, address: int) -> tuple[str, ...]:
        """Names of the inlined functions that an address lies in, outermost first."""

    @abstractmethod
    def functions_in(self, file: str, function: str) -> Sequence[int]:
        """Entry addresses of ``function`` as defined in the source file ``file``."""

    def build_at(self, address: int) -> str | None:
        """The build id of the file that the debugger itself has read for what is mapped at
        ``address``, in hexadecimal digits; ``None`` where it reads the program's own, or there is
        no build id. In a container another file may stand at that path."""
        del address
        return None

    def functions_called(self, function: str) -> Sequence[int]:
        """Entry addresses of the functions that the debugger itself knows as ``function``, from
        debug information; none where that knows no other names than symbols do."""
        del function
        return ()

    def shape_of(self, variable: str, address: int) -> Shape | None:
        """The type of the global or static variable ``variable`` that is at ``address``; ``None``:
        the debugger does not know it."""
        del variable, address
        return None

    @abstractmethod
    def inlined_into(self, function: str) -> Sequence[str]:
        """Names of the functions that copies of ``function`` stand in, each once: where compilers
        have put its code instead of calls. Also before the program runs."""

    def knows_file(self, file: str) -> bool:
        """Whether the program has code of the source file ``file``, as far as is known. Also before
        it runs."""
        del file
        return True

    def function_at_line(self, file: str, line: int) -> str | None:
        """The name of the function that a line of a source file lies in, where that is known."""
        del file, line
        return None

    def functions_of(self, file: str, prefix: str) -> Sequence[str]:
        """Names of functions that are defined in the source file ``file``, for completion, where
        the debugger completes what darc offers; ``prefix`` is what is typed of them already."""
        del file, prefix
        return ()
