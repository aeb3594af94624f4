"""Commands and what they do, over any debugger; command lines, and the thread that runs beside.

Imports ``model``, ``search``, ``target``, ``code``, ``saved``, ``pads``, ``debuggee``,
``collectors``, ``analyses``, ``session`` and ``views``; debugger packages call it.
Imports no debugger, and writes nothing into a program: the session does.
"""
