"""Session files that earlier releases have written, each with the report of the same run.

Each is of the fixture ``mixture`` with 20000 operations, in gdb, by the last commit before the next
version of the format: ``darc start handle --peak >1ms --start-ops 2000``, and at its end ``darc
save`` and ``darc report -o report.json``.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = (1, 2, 3)


def session(version: int) -> bytes:
    """The session file that a darc has written whose format had this version."""
    return lzma.decompress((RECORDED / f"session-{version}.json.xz").read_bytes())


def report(version: int) -> dict[str, Any]:
    """What the same darc reported of it, in JSON."""
    text = lzma.decompress((RECORDED / f"report-{version}.json.xz").read_bytes())
    read: dict[str, Any] = json.loads(text)
    return read
