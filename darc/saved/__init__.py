"""Session files: written, read, and fitted to a program that runs now (paper section 3.4). Files
that are written at once or not at all; and what perf has recorded, as text.

Imports ``model``, ``search`` for contests, and ``code`` for the spelling of names.
Touches no program: addresses come in and go out as numbers.
"""
