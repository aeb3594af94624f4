"""Collecting latencies and votes: the seam; by pads (docs/pad.md), or by breakpoints.

Imports ``model``, ``target``, ``code``, ``agent``, ``pads`` and ``debuggee``, by which it carries
out orders in the program; the words of ``search`` for them, and ``saved`` for what is to be found
again.
In which groups its files are read: docs/architecture.md.
Decides nothing: it counts what it is asked to count, and tells.
"""
