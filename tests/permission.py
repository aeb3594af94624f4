"""What a test needs the kernel's leave for."""

from __future__ import annotations

import os

import pytest

from darc.debuggee import perf


def may_watch() -> bool:
    try:
        os.close(perf.open_event(os.getpid()))
    except OSError:
        return False
    return True


needs_permission = pytest.mark.skipif(not may_watch(), reason="perf_event_open is forbidden here")
