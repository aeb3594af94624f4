"""What can go wrong with a virtual machine; the message is one line that says what to do."""

from __future__ import annotations

from darc.model.errors import DarcError


class VmError(DarcError):
    """A machine, or what it needs, cannot be had."""
