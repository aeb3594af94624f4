"""What the kernel tells of threads and time, beside its own account of the same run.

Starts programs, and asks the kernel of them as darc does; some of it needs root.
Starts no debugger.
"""
