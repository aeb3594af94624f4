"""The seam to debuggers: what one must offer, in ints and bytes, and on which thread it is asked.

Imports ``model``; every debugger's package implements :class:`darc.target.target.Target` and its
parts. Reads in ``/proc`` which threads live (:mod:`darc.target.living`); sends SIGCONT, no more.
Knows no particular debugger, and nothing of what is analysed.
"""
