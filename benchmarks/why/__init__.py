"""``darc why`` on real programs, with causes that it is not told of."""
