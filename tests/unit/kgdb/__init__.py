"""What is known of kernels by their bytes.

Reads a made-up kernel's memory, symbols and code (:mod:`tests.unit.kernel`).
Starts none: :mod:`tests.kernel` does.
"""
