"""End to end in kernels, in virtual machines of ``darc-vm``.

Starts QEMU and gdb; needs a kernel, which it may download (``make test-kernel``).
Touches nothing of the kernel that it runs on.
"""
