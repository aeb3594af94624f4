"""Real programs under continuous analysis: their own tests must pass with no difference."""
