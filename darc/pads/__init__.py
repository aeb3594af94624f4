"""Pads: small pieces of code that stand between a call and its callee, near the program's code."""
