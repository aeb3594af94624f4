"""Text, for people: what ``darc report`` shows."""

from __future__ import annotations

from darc.views import render
from darc.views.exporters.exporter import Exporter

TEXT = Exporter(name="text", suffixes=(".txt",), text=render.report)
