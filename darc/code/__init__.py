"""Code reading: what a program's live bytes, symbols and frame information say of its calls.

Imports ``model`` and ``target``; reads memory through the target, and files.
In which groups its files are read: docs/architecture.md.
Writes nothing; knows no pads but by the bytes that they hide (:mod:`darc.code.overlay`).
"""
