"""``make fuzz``: input that nobody sends by accident, made by the thousand from a seed.

Each fuzzer makes one input from a :class:`random.Random` and gives it to darc. What darc may say of
it is one of its own errors (one line that a terminal may show), or an answer; every other exception
is a *failure*. Trial ``n`` of a fuzzer depends on the seed and on ``n`` alone, so a failure is seen
again with ``--only NAME --first n --count 1``.
"""
