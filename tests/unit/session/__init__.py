"""A session from its first probe to its last, on a made-up machine.

Runs a few instructions (:mod:`tests.unit.bench`), and stops them as a user would.
Looks at what a session tells and takes back, not at how that is shown.
"""
