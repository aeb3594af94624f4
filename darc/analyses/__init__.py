"""What is asked of a program, over any collector: its root causes, profiles of many functions, the
walk from main, late calls, what is slow at all; a module each.

Imports the search, collectors' seam and session files.
Neither patches nor stops anything, and draws nothing.
"""
