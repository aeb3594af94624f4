"""What each side of a seam keeps: the targets, made up and real, and the tree's own rules.

Starts both debuggers on one program (:mod:`tests.contract.world`), reads the project's files, and
tries its packages, benchmarks and fuzzers.
Knows of no analysis what it finds.
"""
