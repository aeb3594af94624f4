"""Choosing and descending by votes that somebody has made up.

Has programs that are a few numbers (:mod:`tests.unit.simulation`), and profiles that are written
out. Collects nothing: who asks for votes is given them by the test.
"""
