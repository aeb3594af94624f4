"""What kind of thing is debugged, where that matters to what can be done with it as a whole, or to
what is said of it.

Whoever wants to know whether it can be looked into, say, asks that (:mod:`darc.debuggee.duties`),
and not which kind it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Nature:
    """That of all debuggees of one kind."""

    noun: str
    """What messages call one."""
    begins_anew: bool
    """Whether the debugger's 'run' begins another one in the place of one that has ended."""
    left_in: str
    """What becomes of probes in one that the debugger has let go of while it ran, or has lost, and
    how they are taken out, for the user."""
    why_unread: str
    """Why none of these can be had by a command that looks at what is counted while it runs: what
    follows upon the command's name in the message. Empty where all can."""
    puts_back: str
    """What may have taken probes out of code that darc had put them into."""
