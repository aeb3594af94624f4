"""Values: profiles, peaks, the ftree, parameters, what is known of a session, and errors.

Imports the standard library alone.
Knows no program, no debugger, no clock and no file; everything here can be made up in a test.
"""
