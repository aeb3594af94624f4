"""The call sites that functions' code has, as they are read where they are asked for, or ahead,
while the program runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from darc.code.architecture import Site
from darc.code.program import Program
from darc.model.ftree import CallSite, Function


@dataclass(frozen=True)
class CodeSite:
    """A call site as a function's code has it."""

    site: Site
    callee: Function | None
    """``None``: it is indirect."""
    problem: str | None
    """Why it cannot be timed, wherever the function is in the ftree."""


def place_of(program: Program, site: Site) -> CallSite:
    """Where a call site is, as fnodes have it."""
    module = program.module_at(site.address)
    name, bias = (module.name, module.bias) if module is not None else ("", 0)
    return CallSite(site.address, site.kind, name, site.address - bias)


class CodeSites:
    """Those of ``program``'s functions. ``problem`` tells why a site cannot be timed, as far as its
    code tells, and ``why_notrace`` why no call of a function can be."""

    def __init__(
        self,
        program: Program,
        problem: Callable[[Site], str | None],
        why_notrace: Callable[[Program, Function], str | None],
    ) -> None:
        self._program = program
        self._problem = problem
        self._why_notrace = why_notrace
        self._ahead: dict[int, tuple[CodeSite, ...]] = {}
        """What functions call that were read while the program ran, by their entries."""

    def of(self, entry: int) -> Iterable[CodeSite] | None:
        """Those of the function at ``entry``; ``None``: its code cannot be read."""
        known = self._ahead.get(entry)
        if known is not None:
            return known
        return self._look(entry) if self._program.function(entry).ranges else None

    def _look(self, entry: int) -> Iterator[CodeSite]:
        for site in self._program.function(entry).sites:
            problem = self._problem(site)
            if site.kind.is_indirect:
                yield CodeSite(site, None, problem)
                continue
            assert site.target is not None
            callee = self._program.linkage.callee_at(site.target)
            why = problem or self._why_notrace(self._program, callee)
            yield CodeSite(site, callee, why)

    def look_ahead(self, function: Function) -> Iterator[None]:
        """While the program runs: reads those of ``function`` before :meth:`of` is asked, step by
        step.

        Raises:
            NotNowError: they cannot be read while the program runs.
        """
        resolved = self._program.linkage.resolve(function.address)
        if resolved is None or resolved[0] in self._ahead:
            return
        if not self._program.function(resolved[0]).ranges:
            return
        found = []
        for seen in self._look(resolved[0]):
            found.append(seen)
            yield
        self._ahead[resolved[0]] = tuple(found)

    def seen_ahead(self, function: Function) -> Sequence[CodeSite]:
        """Those of ``function``, as far as they were read ahead."""
        resolved = self._program.linkage.resolve(function.address)
        return () if resolved is None else self._ahead.get(resolved[0], ())

    def is_known(self, function: Function) -> bool:
        """Whether those of ``function`` were read ahead."""
        resolved = self._program.linkage.resolve(function.address)
        return resolved is not None and resolved[0] in self._ahead

    def forget_ahead(self) -> None:
        """Other places may be possible by now than when code was read ahead."""
        self._ahead.clear()
