"""What darc costs, beside what other tools cost, all measured in one run: ``make bench``.

Imports ``fixtures``, ``kgdb/vm`` and ``darc_gdb``, and of darc ``app``, ``analyses``, ``debuggee``,
``pads``, ``collectors``, ``code``, ``agent``, ``saved`` and ``model``; starts programs and
debuggers. Is no part of what is installed: of the project, tests of it alone import it.
"""
