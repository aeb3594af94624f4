"""``python -m tests.fuzz.live``: programs that write over darc's tables while they are analysed.

Each analysis is of the fixture ``scribble``, which writes one word, anywhere in the tables, at each
operation from some moment on. It may die of it, as of any stray pointer; gdb may not, and darc has
to say what has happened in lines.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fixtures.build import build
from tests.debugger import attempt, debug

OPERATIONS, AFTER = 4000, 1500
BAD = ("Traceback", "internal error", "Exception in thread", "Python Exception")


def main() -> int:
    """So many analyses; status 1 when one ended in a traceback."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.live", description=__doc__)
    parser.add_argument("--count", type=int, default=10, help="analyses of 2,500 words each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program, failed = build("scribble"), 0
    commands = [
        "darc start handle --start-ops 1000 --decision-ops 1000000 --peak last", "run",
        attempt("darc status"), attempt("darc report"), attempt("darc stop"), attempt("continue"),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.count):
            arguments = (str(OPERATIONS), str(AFTER), "random", str(seed))
            done = debug(Path(folder), program, arguments, commands)
            wrong = [word for word in BAD if word in done.gdb]
            told = "damaged" in done.gdb
            print(f"seed {seed}: {'FAILED' if wrong else 'ok'}, {'told' if told else 'not told'}")
            if wrong:
                failed += 1
                print(done.gdb)
    print(f"{options.count * (OPERATIONS - AFTER)} words written over, {failed} analyses failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
