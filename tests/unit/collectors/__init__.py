"""How calls are watched and counted, on made-up machines and on the agent's tables alone.

Has a machine of a few instructions run (:mod:`tests.unit.machine`), or fills tables as an agent
would. Has no latencies but those that are written down.
"""
