"""What is said where the kernel tells nobody when threads are off their processors."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from darc.debuggee import perf
from darc.debuggee.eventends import wait_for_ends
from darc.debuggee.switches import Switches
from darc.model.errors import UnsupportedError


def descriptors() -> int:
    wait_for_ends()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class TestRefused:
    def refuse(self, monkeypatch: pytest.MonkeyPatch, number: int) -> str:
        def refused(*_args: object, **_options: object) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(perf, "open_event", refused)
        before = descriptors()
        with pytest.raises(UnsupportedError) as caught:
            Switches(os.getpid())
        assert descriptors() == before
        assert re.fullmatch("cannot tell running from waiting: .+", str(caught.value))
        return str(caught.value)

    def refuse_at(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, paranoid: str, number: int
    ) -> str:
        setting = folder / "perf_event_paranoid"
        setting.write_text(f"{paranoid}\n")
        monkeypatch.setattr(perf, "_PARANOID", setting)
        return self.refuse(monkeypatch, number)

    @pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
    def test_by_the_kernels_setting(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
    ) -> None:
        told = self.refuse_at(monkeypatch, tmp_path, "4", number)
        assert "kernel.perf_event_paranoid is 4" in told
        assert "'sysctl kernel.perf_event_paranoid=2', or CAP_PERFMON" in told

    @pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
    def test_by_a_container(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
    ) -> None:
        told = self.refuse_at(monkeypatch, tmp_path, "2", number)
        assert "seccomp" in told
        assert "paranoid" not in told

    @pytest.mark.parametrize(
        ("number", "word"),
        [
            (errno.ENOSYS, "seccomp"),
            (errno.EMFILE, "ulimit -n"),
            (errno.ENOMEM, "ulimit -l"),
            (errno.EIO, "Input/output error"),
        ],
    )
    def test_otherwise(self, monkeypatch: pytest.MonkeyPatch, number: int, word: str) -> None:
        assert word in self.refuse(monkeypatch, number)
