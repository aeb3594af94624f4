"""Which control groups limit a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from darc.debuggee import procfs
from darc.debuggee.cgroups import Controller, groups_of
from darc.target import living


@pytest.mark.parametrize(
    ("told", "root", "kind", "found"),
    [
        ("0::/a/b", "/", "memory", ["a/b", "a", ""]),
        ("3:cpu,cpuacct:/a", "/", "cpu", ["a", ""]),
        ("3:cpu,cpuacct:/a", "/", "memory", []),
        ("3:cpuset:/a\n0::/", "/", "cpu", [""]),
        ("0::/a/b", "/a", "cpu", ["b", ""]),
        ("0::/elsewhere", "/a", "cpu", [""]),
        ("0::/../a", "/", "cpu", [""]),
        ("0::/gone/b", "/", "cpu", [""]),
    ],
)
def test_groups_inner_before_outer(
    told: str,
    root: str,
    kind: str,
    *,
    found: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for folder in ("a/b", "b"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(living, "look", lambda _pid, _read: told)
    monkeypatch.setattr(procfs, "cgroup_mounts", lambda _kind: [(tmp_path, root)])
    assert list(groups_of(1, Controller(kind))) == [tmp_path / one for one in found]


def test_a_process_that_is_gone_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> str:
        raise OSError

    monkeypatch.setattr(living, "look", gone)
    assert not list(groups_of(1, Controller.CPU))
