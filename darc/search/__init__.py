"""The search for root causes (paper section 3): votes in, orders and decisions out.

Imports ``model``.
A pure state machine: no program, no debugger, no clock; it never asks, it is told.
"""
