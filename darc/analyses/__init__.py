"""What is asked of a program, over any collector: its root causes, profiles of many functions, the
walk from main, late calls, what is slow at all; a module each.

Imports ``model``, ``search``, ``collectors`` and ``saved``; ``code`` to name what was found, and of
``debuggee`` only who watches switches.
Neither patches nor stops anything, and draws nothing.
"""
