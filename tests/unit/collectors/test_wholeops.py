"""What pads tell of the ops that are kept whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from darc.collectors.wholeops import PadOps
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.process import ProcessDebuggee
from darc.model.ops import KeptOps
from kgdb.debuggee import KernelDebuggee


@pytest.mark.parametrize(
    ("kind", "cannot", "is_watched", "why"),
    [
        (ProcessDebuggee, None, False, None),
        (KernelDebuggee, None, False, KernelDebuggee.unseen_waits),
        (KernelDebuggee, None, True, None),
        (KernelDebuggee, "no types", False, "no types"),
    ],
)
def test_why_it_is_not_known_what_they_waited_for(
    kind: type[Debuggee], cannot: str | None, is_watched: bool, why: str | None
) -> None:
    """A kernel has no C library that it may have to do with."""
    debuggee = SimpleNamespace(
        hz=10**9,
        unseen_waits=kind.unseen_waits,
        why_no_waits=lambda _program: cannot,
        watch_holds=lambda: None,
    )
    ops = pad_ops(debuggee, has_waits=True)
    if is_watched:
        ops.watch_waits()
    assert ops.kept_ops().why_no_waits == why


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_program_that_waits_elsewhere_is_told_from_a_search_that_ended_before(
    *, is_watched: bool
) -> None:
    """Whether its C library is known was found out before the last round asks."""
    debuggee = SimpleNamespace(
        hz=10**9, unseen_waits=None, why_no_waits=lambda _program: None, watch_holds=lambda: None
    )
    ops = pad_ops(debuggee, has_waits=False)
    if is_watched:
        ops.watch_waits()
    assert ops.kept_ops().why_no_waits == "they wait by a C library other than glibc"


def pad_ops(debuggee: object, *, has_waits: bool) -> PadOps:
    """Those of a program that has places where threads wait for each other, or none."""
    guards = SimpleNamespace(
        has_waits=has_waits, knows_waits=True, has=lambda _guard: True, put_waits=list
    )
    return PadOps(
        cast("object", None),  # type: ignore[arg-type]
        cast(Debuggee, debuggee),
        cast("object", None),  # type: ignore[arg-type]
        installer=SimpleNamespace(guards=guards),  # type: ignore[arg-type]
        reader=SimpleNamespace(ops=lambda *_: KeptOps(10**9)),  # type: ignore[arg-type]
        note=print,
        foothold=None,  # type: ignore[arg-type]
        f0="f0",
    )
