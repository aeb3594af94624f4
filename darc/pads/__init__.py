"""Pads: small pieces of code that stand between a call and its callee, near the program's code.

Imports ``model``, ``target``, ``code`` and ``agent``. Places pads and guards, patches calls to lead
through them, and undoes every patch: through the target alone, while every thread stands still.
Asks the system nothing: how pads live in what is debugged is behind :mod:`darc.pads.backend`.
"""
