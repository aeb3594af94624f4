"""What the types of variables are made of, as a debugger knows it from debug information."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


class Shape(ABC):
    """A type of the program. To be asked as the :class:`~darc.target.symbols.Symbols` are that it
    comes from, and may raise what these do."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As the source says, with the names of typedefs; empty where it has none."""

    @property
    @abstractmethod
    def size(self) -> int:
        """In bytes."""

    @abstractmethod
    def fields(self) -> Sequence[Field]:
        """Of a structure, class or union those that have a place in it, also its bases; of all
        else none."""

    @abstractmethod
    def element(self) -> Shape | None:
        """What an array is made of; ``None``: it is none."""


@dataclass(frozen=True)
class Field:
    """A field of a structure, or a class that this is made from."""

    name: str
    """Empty: it has none, as bases have none."""
    offset: int
    """In bytes."""
    shape: Shape
