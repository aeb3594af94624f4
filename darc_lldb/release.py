"""Which lldb this is, where releases differ in what cannot be asked of them."""

from __future__ import annotations

import functools
import re

import lldb


@functools.cache
def major() -> int:
    """Of ``lldb version 14.0.6`` the 14; 0 where that says no number."""
    found = re.search(r"version (\d+)", lldb.SBDebugger.GetVersionString())
    return int(found[1]) if found else 0
