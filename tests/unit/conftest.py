"""Fixtures that several of these tests have in common."""

from __future__ import annotations

from tests.unit.assembly import assembled as assembled
from tests.unit.callees import make as make
from tests.unit.movedtime import run_time as run_time
