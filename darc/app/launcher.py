"""How ``darc-gdb`` and ``darc-lldb`` begin: what they share (:mod:`darc.app.launching`) is imported
where Ctrl-C is awaited."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from darc.model.refusal import Refusal

_INTERRUPTED = 130
"""As :data:`darc.app.launching.INTERRUPTED`, which takes a while to import."""


def run(name: str, find: Callable[[], tuple[Sequence[str], Mapping[str, str]] | Refusal]) -> None:
    """Become the debugger that ``find`` tells of; end with status 1 and one line where there is
    none that can load darc, and with 130 at Ctrl-C (see :func:`darc.app.launching.launch`)."""
    try:
        from darc.app.launching import launch
    except KeyboardInterrupt:  # a busy machine takes a while to import that
        sys.exit(_INTERRUPTED)
    launch(name, find)
