"""The phases of a search and the other analyses, with made-up collectors and calls.

Lets time pass as it says (:mod:`tests.unit.movedtime`), and hands on what a collector would have
seen. Knows no command, and types nothing.
"""
