"""darc: root causes of latency peaks, found inside the debugger.

Each folder is a floor and imports only floors below it. Nothing in this package imports a
debugger; see :mod:`darc.target.target` for what a debugger must offer.
"""

__version__ = "0.1.0"

FLOORS = (
    "model",
    "search",
    "target",
    "code",
    "saved",
    "agent",
    "pads",
    "debuggee",
    "collectors",
    "analyses",
    "session",
    "views",
    "app",
)
"""The folders of this package, the lowest first."""
