"""The formats of the report: a file for each, and this registry.

An exporter makes text from a frozen ``Snapshot``: it touches no file, no program and no session.
:mod:`darc.views.exporters.reportfile` alone writes files, those that ``darc report -o`` names.
"""

from __future__ import annotations

from darc.views.exporters.dot import DOT
from darc.views.exporters.exporter import Exporter
from darc.views.exporters.json import JSON
from darc.views.exporters.text import TEXT

EXPORTERS: dict[str, Exporter] = {
    one.name: one
    for one in (
        TEXT,
        JSON,
        DOT,
    )
}
"""By the name that ``darc report --format`` takes; the first is the default."""
