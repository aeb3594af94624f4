"""Commands and what they do, over any debugger; command lines, and the thread that runs beside.

Imports ``model``, ``search``, ``target``, ``code``, ``saved``, ``debuggee``, ``collectors``,
``analyses``, ``session`` and ``views``; debugger packages call it.
Imports no debugger, but starts the one that ``darc-gdb`` and ``darc-lldb`` stand for. It changes a
program by the session alone, but for breakpoints where it waits for a function's file or first call
(``waiting.py``); what another debugger has left there it has the debuggee take out.
"""
