"""Programs whose return addresses are kept twice, as Linux 6.6 and later tell of them."""

from __future__ import annotations

import pytest

from darc.debuggee import procfs
from darc.debuggee.process_pads import ProcessPads
from tests.fake_target import FakeTarget


@pytest.mark.parametrize(
    ("features", "has"),
    [(None, False), ("", False), ("shstk ", True), ("shstk wrss ", True), ("wrss", False)],
)
def test_threads_with_shadow_stacks(
    features: str | None, has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {} if features is None else {"x86_Thread_features": features}
    monkeypatch.setattr(procfs, "status", lambda _pid, _thread=None: fields)
    monkeypatch.setattr(procfs, "threads", lambda _pid: [7, 8])
    assert procfs.has_shadow_stack(7) is has
    assert (ProcessPads(FakeTarget(), 7).risk() is not None) is has
