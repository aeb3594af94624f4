"""The agent's machine code against a model of the paper's rules (:mod:`tests.agent.model`).

Compiles the agent with a harness, and runs that beside the model on the same calls.
Has no pads and no debugger: what calls the agent is made up.
"""
