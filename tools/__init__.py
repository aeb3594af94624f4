"""Scripts for who works on darc: set-up, benchmarks, and what makes pages of ``docs/``.

Read the tree and write pages; the shell's install packages into the work tree, and start machines.
No part of darc imports or needs any of them once it is set up.
"""
