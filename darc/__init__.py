"""darc: root causes of latency peaks, found inside the debugger.

The engine and the agent. Nothing in this package imports a debugger; see :mod:`darc.target` for
what a debugger must offer.
"""

__version__ = "0.1.0"
