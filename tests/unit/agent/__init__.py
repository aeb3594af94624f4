"""What the compiled agent and its builder have agreed on with who reads the agent's tables.

Reads the agent's code and layout. Does not run it: :mod:`tests.agent` does, against a model of
the paper's rules.
"""
