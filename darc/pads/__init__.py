"""Pads: small pieces of code that stand between a call and its callee, near the program's code.

Places pads and guards, patches calls to lead through them, and undoes every patch.
Writes into the program through the target alone, while every thread of it is stopped.
"""
