"""What is shown and exported, word for word.

Shows sessions that are made up (:mod:`tests.unit.samples`). Measures nothing, and needs no
terminal.
"""
