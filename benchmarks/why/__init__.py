"""``darc why`` on real programs, with causes that it is not told of: ``make bench-why``.

Starts servers, their clients and debuggers, and puts causes into what they do. Makes
``docs/benchmarks-why.md``.
Imports ``benchmarks.measure``, and of darc the words of its reports (``model``) and the clock's
rate (``debuggee``); compiles servers and a library that makes calls slow, starts programs, mounts a
file system where it is root, and writes the page.
Asks darc for its report alone, tells it nothing, and judges that by what was put in.
"""
