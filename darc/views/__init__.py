"""What the user sees: profile, tree, reports, from one frozen ``Snapshot`` or from files.

Imports ``model``, ``search`` and ``saved``; makes text fit to be shown (:mod:`darc.views.words`).
Writes the files that users ask for.
Never touches the program, a session or a debugger.
"""
