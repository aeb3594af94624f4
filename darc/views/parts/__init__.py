"""What analyses know beside the descent, as it is shown: a file for each, and this registry.

A view makes lines of text and JSON values from a part of a frozen ``Snapshot``.
It touches no file, no program and no session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darc.views.parts.catching import CATCH
from darc.views.parts.functionset import SET
from darc.views.parts.part import PartView
from darc.views.parts.walk import WALK
from darc.views.parts.why import WHY

PARTS: Mapping[str, PartView[Any]] = {
    one.kind.key: one
    for one in (
        SET,
        WALK,
        WHY,
        CATCH,
    )
}
"""By the keys of the parts, which the JSON report has in this order."""
