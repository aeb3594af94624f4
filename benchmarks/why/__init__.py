"""``darc why`` on real programs, with causes that it is not told of: ``make bench-why``.

Starts servers, their clients and debuggers, and puts causes into what they do. Asks darc
for its report alone, and judges that by what was put in. Makes ``docs/benchmarks-why.md``.
"""
