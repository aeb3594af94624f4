"""One analysis from start to undo: it owns what was changed, and takes it out on every way out.

Imports ``model``, ``target``, ``code``, ``saved``, ``debuggee``, ``collectors`` and ``analyses``:
it joins an analysis with a collector and a debuggee.
Reads no command lines and makes no text for people but notes.
"""
