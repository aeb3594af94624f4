"""The agent: what runs inside the program at a timed call, and the layout of what it shares.

``agent.bin`` and ``layout.json`` are made by :mod:`darc.agent.build` when the package is built.
Imports ``model``, and ``target`` for the size of a page; reads and writes the agent's tables, in
memory that it is given.
Knows neither pads nor why something is counted.
"""
