"""What the page of a second processor names."""

from __future__ import annotations

import re

from tests.debugger import ROOT


def told() -> set[str]:
    """The files of the table of what another processor must bring."""
    page = (ROOT / "docs/extending/architecture.md").read_text()
    found = set[str]()
    for row in re.findall(r"^\| (`.*?) \| ", page, re.M):
        folder = ""
        for name in re.findall(r"`([\w/]+\.(?:py|c|h|S))`", row):
            folder = name.rpartition("/")[0] or folder
            found.add(f"{folder}/{name.rpartition('/')[2]}")
    return found
