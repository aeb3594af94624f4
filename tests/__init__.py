"""What is known of darc: a folder for each kind of test, and what several of them share.

What is shared here drives a debugger (:mod:`tests.debugger`), or stands in for one.
No file imports a test, and nothing that is installed imports any of it.
"""
