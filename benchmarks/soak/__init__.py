"""Real programs under continuous analysis: their own tests must pass with no difference.

A job (``programs.py``) runs alone and with darc in its processes (``run.py``); its results are
compared, and told in a table (``page.py``). ``make soak`` runs all.
"""
