"""Commands and what they do, over any debugger; command lines, and the thread that runs beside.

Imports everything below; debugger packages call it.
Imports no debugger.
"""
