"""``python -m tests.kills``: see the package."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from darc.debuggee.procfs import children
from fixtures.build import hazards
from tests.kills.debuggers import DEBUGGERS
from tests.kills.run import harm, kills, line, table
from tests.kills.trial import Kill


def made_by(pid: int) -> Iterator[int]:
    """Its children, and theirs."""
    for child in children(pid):
        yield child
        yield from made_by(child)


def end(done: Sequence[Kill], *_: object) -> None:
    """Whoever ends this ends the programs and debuggers that it has begun, which have sessions of
    their own; what was done by then is told."""
    print(*table(done), sep="\n", flush=True)
    for pid in list(made_by(os.getpid())):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(128 + signal.SIGTERM)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--count", type=int, default=1000, help="kills of a debugger with darc")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", nargs="*", choices=hazards(), default=hazards())
    parser.add_argument("--debugger", nargs="*", choices=DEBUGGERS, default=DEBUGGERS)
    parser.add_argument("--bare", type=int, default=1, help="one bare kill per so many")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    chosen = parser.parse_args(arguments)
    done: list[Kill] = []
    signal.signal(signal.SIGTERM, functools.partial(end, done))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as last:
        last.callback(lambda: print(*table(done), sep="\n"))  # also where it ends early
        for kill in kills(
            chosen.count,
            chosen.seed,
            Path(folder),
            programs=chosen.programs,
            debuggers=chosen.debugger,
            bare=chosen.bare,
            jobs=chosen.jobs,
        ):
            done.append(kill)
            if kill.hurt is not None or kill.stopped:
                print(line(kill), flush=True)
            if len(done) % 20 == 0:
                print(f"{len(done)} kills", flush=True)
    beyond = harm(done)
    with_darc = sum(not kill.cell.bare for kill in done)
    print(
        f"{with_darc} kills with darc, {len(done) - with_darc} without (seed {chosen.seed}): "
        f"{len(beyond)} hurt beyond what bare debuggers do"
    )
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
