"""Fixtures in every way to build a program: see :mod:`tests.matrix.cells`."""
