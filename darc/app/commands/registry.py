"""Every command, once: what ``help darc`` lists, in this order."""

from __future__ import annotations

from collections.abc import Mapping

from darc.app.commands.catch import CATCH
from darc.app.commands.command import Command
from darc.app.commands.contexts import CONTEXTS
from darc.app.commands.ops import COMPARE, OPS
from darc.app.commands.peak import DESCEND, PEAK
from darc.app.commands.profile import PROFILE
from darc.app.commands.report import REPORT
from darc.app.commands.resume import resume_of
from darc.app.commands.save import save_of
from darc.app.commands.start import START
from darc.app.commands.stop import STOP
from darc.app.commands.version import VERSION
from darc.app.commands.views import HISTOGRAM, STATUS, TREE, WAITS
from darc.app.commands.walk import WALK
from darc.app.commands.why import WHY
from darc.model.errors import UsageError, near

_ALONE = (
    START,
    PEAK,
    STATUS,
    HISTOGRAM,
    TREE,
    DESCEND,
    OPS,
    COMPARE,
    WAITS,
    CATCH,
    PROFILE,
    WALK,
    CONTEXTS,
    WHY,
    STOP,
    REPORT,
    VERSION,
)
_FILES = (save_of(_ALONE), resume_of(_ALONE))
"""What speaks of the others: which of them begin what is saved, and goes on."""

COMMANDS: Mapping[str, Command] = {
    command.name: command
    for one in _ALONE
    for command in ((one, *_FILES) if one is STOP else (one,))
}


def find_command(name: str) -> Command:
    """The command called ``name``. Raises :class:`UsageError` that names the near ones."""
    if name in COMMANDS:
        return COMMANDS[name]
    hint = near(name, COMMANDS) or f"; there are {', '.join(COMMANDS)}"
    raise UsageError(f"darc has no command '{name}'{hint}")
