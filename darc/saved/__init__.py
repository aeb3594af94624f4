"""Session files: written, read, and fitted to a program that runs now (paper section 3.4).

Imports values, the search's, and modules' identities.
Touches no program: addresses come in and go out as numbers.
"""
