"""Real programs under continuous analysis: their own tests must pass with no difference.

A job (``programs.py``) runs alone and with darc in its processes (``run.py``); its results are
compared, and told in a table (``page.py``). ``make soak`` runs all.
Imports ``benchmarks.measure`` and ``darc_gdb``, and of darc ``app``, ``code``, ``debuggee`` and
``model``; fetches packages from Debian into a cache and builds them, starts programs and debuggers,
kills those of a run that do not end, and writes the page.
Changes nothing in a program itself: it types commands of darc's (``inside_gdb.py``), and looks.
"""
