"""What is asked of a program, over any collector: today the descent, from a profile to root causes.

Imports the search, collectors' seam and session files.
Neither patches nor stops anything, and draws nothing.
"""
