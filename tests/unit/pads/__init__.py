"""Pads, landings and what is written over code: their bytes, their places, and their end.

Writes into made-up memory, and has this processor run what was made in memory of its own.
Patches no running program.
"""
