"""Collecting latencies and votes: the seam; by pads (docs/pad.md), or by breakpoints.

Carries out orders in the program through :mod:`darc.pads` and :mod:`darc.debuggee`.
Decides nothing: it counts what it is asked to count, and tells.
"""
