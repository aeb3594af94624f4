"""Fixtures in every way to build a program: see :mod:`tests.matrix.cells`.

Builds programs, and starts gdb on each. ``make matrix`` runs it: ``python -m tests.matrix`` prints
a table, and fails where an answer is wrong or a program is harmed.
"""
