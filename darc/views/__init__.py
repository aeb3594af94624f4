"""What the user sees: profile, tree, reports, from one frozen ``Snapshot``.

Imports values and the search's words; makes text fit to be shown (:mod:`darc.views.words`).
Never touches the program, a session or a debugger.
"""
