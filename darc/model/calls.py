"""Functions, and the instructions that call them: what an fnode is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CallKind(Enum):
    """How control is handed to the callee at a call site."""

    DIRECT = "direct"
    INDIRECT = "indirect"
    TAIL = "tail"
    TAIL_INDIRECT = "tail indirect"
    INTERRUPT = "interrupt"
    """No instruction calls: the processor does, wherever the caller stands."""

    @property
    def is_tail(self) -> bool:
        """Whether the caller hands its frame on: the callee returns to the caller's caller."""
        return self in (CallKind.TAIL, CallKind.TAIL_INDIRECT)

    @property
    def is_indirect(self) -> bool:
        """Whether the instruction itself does not say which function it calls."""
        return self in (CallKind.INDIRECT, CallKind.TAIL_INDIRECT)


@dataclass(frozen=True)
class Function:
    """A function of the program: an fnode is a call of one."""

    name: str
    """Demangled, for people: no parameter list, return type or suffixes."""
    symbol: str
    """The raw symbol; the caller's spelling where one address has several names."""
    module: str
    """Base name of the executable, library or kernel module that holds it."""
    address: int
    """Where it is in the program's memory."""
    offset: int
    """``address`` relative to the base of the module."""
    file: str | None = None
    """Source file of the definition, where debug information tells."""
    line: int | None = None
    """Line of the definition in ``file``."""


@dataclass(frozen=True)
class CallSite:
    """The instruction that makes a call."""

    address: int
    """Of the call instruction itself, not of the instruction it returns to."""
    kind: CallKind
    module: str
    """Base name of the module that holds the instruction."""
    offset: int
    """``address`` relative to the base of the module."""
    file: str | None = None
    line: int | None = None
    inlined: tuple[str, ...] = ()
    """Names of the inlined functions that the call stands in, outermost first."""
