"""Called by the shell that stands in for a program: lets a gdb attach to it before it goes on.

    fifo=$(python3 -I -S attend.py JOB.json $$)

Prints a fifo that the shell has to read a line from before it becomes the program, or nothing when
this process is to be left alone. The gdb is a process apart: the shell has no child that it does
not know of. It needs nothing but the standard library, as it runs for each process.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """See the module."""
    job = json.loads(Path(sys.argv[1]).read_text())
    pid = int(sys.argv[2])
    folder = Path(job["folder"])
    number = _number(folder)
    choice = random.Random(f"{job['seed']} {number}")
    if choice.random() >= job["share"] or not _enter(folder, pid, job["at_once"]):
        return
    fifo = folder / f"{pid}.fifo"
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo)
    settings = folder / f"{pid}.json"
    settings.write_text(
        json.dumps(
            {
                "pid": pid,
                "fifo": str(fifo),
                "log": job["log"],
                "hot": job["hot"],
                "seed": choice.randrange(1 << 30),
                "analyses": job["analyses"],
            }
        )
    )
    if os.fork():
        print(fifo, flush=True)
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    _look_after(job, folder, pid=pid, fifo=fifo, settings=settings)


def _number(folder: Path) -> int:
    """How many processes there were before."""
    with (folder / "processes").open("ab") as counted:
        counted.write(b".")
        return counted.tell()


def _enter(folder: Path, pid: int, most: int) -> bool:
    """Whether there is room for another gdb; those of processes that are gone do not count."""
    for place in range(most):
        mark = folder / f"place-{place}"
        try:
            holder = int(mark.read_text())
            if holder != pid and Path(f"/proc/{holder}").exists():
                continue
        except (FileNotFoundError, ValueError):
            pass
        mark.write_text(str(pid))
        return True
    return False


def _look_after(
    job: "dict[str, Any]", folder: Path, pid: int, *, fifo: Path, settings: Path
) -> None:
    """Runs gdb; whatever becomes of it, the shell is let go."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(3, 1024)
    gate = os.open(fifo, os.O_RDWR)
    output = folder / f"{pid}.gdb"
    with output.open("ab") as out:
        status = subprocess.run(
            [*job["gdb"], "-nx", "-q", "-batch", "-x", job["driver"], "-x", job["loop"]],
            env={**job["environment"], "DARC_SOAK_PROCESS": str(settings)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    os.write(gate, b"go\n")
    entry = {"event": "gdb", "pid": pid, "status": status}  # Event.GDB of events.py
    if status:
        entry["words"] = output.read_text(errors="replace")[-2000:]
    with Path(job["log"]).open("a") as log:
        log.write(json.dumps(entry) + "\n")
    for file in (fifo, settings):
        file.unlink(missing_ok=True)
    os._exit(0)


main()
