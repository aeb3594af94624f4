"""``make bench-why``: how often ``darc why`` names what was injected, and how often it names
something where nothing was.

Each run starts a server, loads it, injects a cause that a seed chose, attaches ``darc-gdb`` and has
it say why. darc is told nothing; whether its answer is right is judged here, by the seed's cause.
Writes ``docs/benchmarks-why.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import BIN, BUILT, ROOT, MeasurementError, gdb_version
from benchmarks.why import programs
from benchmarks.why.programs import PROGRAMS, Injection, Kind, Program
from darc.model.ftree import Cause
from darc.model.ops import ObjectKind
from darc.model.waits import Role

PAGE = ROOT / "docs" / "benchmarks-why.md"
KEPT = BUILT / "why.jsonl"
RUNS = 10
UNDISTURBED = 20
_NONE = 100
"""From this number on runs are without an injection."""

_NO_REPORT = "no report"
"""In the place of a verdict."""

_TIME = "60s"
_PATIENCE = 180.0
_DISTURBED = 0.02
"""Of the time threads were ready without a processor: then it is no error to say so."""


@dataclass(frozen=True)
class Run:
    """A run and its judgement: ``said`` is darc's first answer in a line, ``own`` for how much of
    the time a thread was ready without a processor."""

    program: str
    number: int
    injected: str
    kind: str | None
    right: bool
    verdict: str
    sure: bool
    said: str
    seconds: float
    stopped: float
    ready: float
    right_paths: int
    paths: int


def judge(program: Program, injected: Injection, why: dict[str, Any]) -> tuple[int, int]:
    """How many of the paths of the first answer lead to what was injected, and how many it has."""
    if not why["answers"]:
        return 0, 0
    first = why["answers"][0]
    paths = first["root_cause_paths"]
    right = sum(is_right(program, injected, path) for path in paths)
    if injected.cause is not None and injected.cause.kind is Kind.HOG and lacks(first):
        right = len(paths)
    return right, len(paths)


def lacks(answer: dict[str, Any]) -> bool:
    """Whether darc says that the slow calls' thread was awake, and had no processor, for most of
    the time that they waited."""
    waits = (answer["waits"] or {}).get("in_peak")
    if not waits:
        return False
    ready = sum(
        holder["cycles"] for one in waits["objects"] if one["kind"] == ObjectKind.WAKE_UP.value
        for holder in one["holders"] if holder["role"] == Role.HANDED_OVER.value
    )  # fmt: skip
    return bool(2 * ready > waits["cycles"])


def _share(path: dict[str, Any]) -> float:
    """How much of the slow calls' time it explains."""
    return float(path["share"] or 0.0)


def is_right(program: Program, injected: Injection, path: dict[str, Any]) -> bool:
    """Of a call, a lock and a full disk: whether the last function of the program's own on the path
    is that, or its call. What a command does is all that is called by its function: that must be on
    the path. Another program that has the processor is no function of anybody's."""
    cause = injected.cause
    assert cause is not None
    if cause.kind is Kind.HOG:
        return _is_of_preemption(path)
    if _is_of_preemption(path):
        return False
    names = [plain(name) for name in path["functions"]]
    if cause.kind in (Kind.COMMAND, Kind.FAULTS) or program.is_deep:
        return any(name in cause.truth for name in names)
    last = 0
    for number, call in enumerate(path["calls"]):
        if call["module"] == program.module and not is_library(path["functions"][number]):
            last = number
    return any(name in cause.truth for name in names[last : last + 2])


def _is_of_preemption(path: dict[str, Any]) -> bool:
    return bool(path["cause"] == Cause.PREEMPTION.value)


def is_library(name: str) -> bool:
    """Whether it is one of the language's own library, though it is in the program's file."""
    return name.startswith(("std::", "core::", "alloc::", "<std::", "<core::", "<alloc::"))


def plain(name: str) -> str:
    """Without namespaces, arguments and what Rust appends."""
    name = name.split("(", 1)[0].split("@", 1)[0]
    parts = name.split("::")
    if len(parts) > 1 and parts[-1].startswith("h") and len(parts[-1]) == 17:
        parts.pop()
    return parts[-1].strip("_<>") if parts[-1].startswith("__") else parts[-1]


def sentence(why: dict[str, Any]) -> str:
    """The first answer."""
    if not why["answers"]:
        return ""
    paths = why["answers"][0]["root_cause_paths"]
    if not paths:
        return f"{why['answers'][0]['function']}: no cause"
    best = max(paths, key=_share)
    return " → ".join(best["functions"]) + (": preempted" if _is_of_preemption(best) else "")


def trial(program: Program, injected: Injection, number: int) -> Run:
    """One run."""
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(programs.folder())
        if injected.cause is not None and injected.cause.kind is Kind.DISK:
            stack.enter_context(programs.full_disk(folder / "disk"))
        process = program.start(folder, injected.environment)
        stack.callback(programs.end, process)
        load = programs.Load(program, folder, injected)
        serves = stack.enter_context(load.running())
        pid = process.pid if serves is None else serves
        if injected.cause is not None and injected.cause.kind is Kind.HOG:
            stack.enter_context(programs.hog(pid))
        before, since = programs.run_delay(pid), time.monotonic()
        why, said = _ask(pid, folder)
        spent = time.monotonic() - since
        ready = (programs.run_delay(pid) - before) / spent
        if load.errors:
            raise MeasurementError(f"{program.name}: {load.errors[0]}")
    if why is None:
        print(said[-2000:], file=sys.stderr)
        why = {"answers": [], "verdict": _NO_REPORT, "sure": False, "stopped_seconds": 0.0}
    if injected.cause is None:
        paths = (0, 0)
        right = not why["answers"] or (_is_preempted(why) and ready >= _DISTURBED)
    else:
        paths = judge(program, injected, why)
        right = paths[0] > 0
    if not right:
        kept = BUILT / f"why-{program.name}-{number}.txt".replace(" ", "_")
        kept.write_text(f"{injected}\n{said}\n{json.dumps(why)}")
    right_paths, all_paths = paths
    return Run(
        program=program.name,
        number=number,
        injected=str(injected),
        kind=injected.cause.kind.value if injected.cause else None,
        right=right,
        verdict=why["verdict"],
        sure=why["sure"],
        said=sentence(why),
        seconds=time.monotonic() - begin,
        stopped=why["stopped_seconds"],
        ready=ready,
        right_paths=right_paths,
        paths=all_paths,
    )


def _is_preempted(why: dict[str, Any]) -> bool:
    paths = [path for one in why["answers"] for path in one["root_cause_paths"]]
    return bool(paths) and all(map(_is_of_preemption, paths))


def _ask(pid: int, folder: Path) -> tuple[dict[str, Any] | None, str]:
    commands = (
        f"darc why --time {_TIME}", "continue", f"darc report --format json -o {folder}/why.json",
        "detach",
    )  # fmt: skip
    words = [word for command in commands for word in ("-ex", command)]
    gdb = subprocess.Popen(
        [str(BIN / "darc-gdb"), "-nx", "-q", "-batch", "-p", str(pid), *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = gdb.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(gdb.pid, 9)
        said, _ = gdb.communicate()
    try:
        report = json.loads((folder / "why.json").read_text())
    except (OSError, ValueError):
        return None, said
    return report["why"], said


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-why")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, nargs="*", default=list(range(RUNS)))
    parser.add_argument("--undisturbed", type=int, default=UNDISTURBED)
    parser.add_argument("--again", action="store_true", help="goes on with what was measured")
    parser.add_argument("--page", action="store_true", help="writes the page of what is there")
    options = parser.parse_args()
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    kept = (
        [Run(**json.loads(line)) for line in KEPT.read_text().splitlines()]
        if (options.again or options.page) and KEPT.exists()
        else []
    )
    if options.page:
        PAGE.write_text(page(kept, options.seed))
        return
    if not options.again:
        KEPT.write_text("")
    injected = [(program, number) for number in options.runs for program in PROGRAMS]
    others = [
        (PROGRAMS[number % len(PROGRAMS)], _NONE + number) for number in range(options.undisturbed)
    ]
    each = max(1, len(injected) // max(1, len(others)))
    wanted: list[tuple[Program, int]] = []
    while injected or others:  # in turns, as the machine is not the same all the time
        wanted += [*injected[:each], *others[:1]]
        injected, others = injected[each:], others[1:]
    wanted = [(program, number) for program, number in wanted if program.name in options.only]
    for program, number in wanted:
        if any(run.program == program.name and run.number == number for run in kept):
            continue
        drawn = Injection(None)
        if number < _NONE:
            drawn = programs.injection(program, options.seed, number)
        try:
            run = trial(program, drawn, number)
        except MeasurementError as error:
            print(f"bench-why: {error}", file=sys.stderr, flush=True)
            continue
        kept.append(run)
        with KEPT.open("a") as file:
            file.write(json.dumps(asdict(run)) + "\n")
        judged = f"{'right' if run.right else 'WRONG'} {run.right_paths} of {run.paths}"
        print(f"{judged} {run.seconds:3.0f} s  {run.program} {number}: {run.injected}")
        how = f"{run.verdict}{', sure' if run.sure else ''}"
        print(f"      {how}: {run.said} [ready {run.ready:.1%}]", flush=True)
    if len(kept) == len(PROGRAMS) * RUNS + UNDISTURBED:
        PAGE.write_text(page(kept, options.seed))
        print(f"bench-why: all runs are in {PAGE.relative_to(ROOT)}")


_HEAD = """# `darc why` on real programs

`make bench-why` measures all of this and writes this page (seed {seed}). Each run starts a
server, loads it by two clients, and injects one cause, from outside: a command of a client's, a
library that is preloaded and delays a call one time in so many, a file system that is full, a
lock that another client holds, a process that has the processor. Which one, how long and how
often is the seed's choice. Then `darc-gdb -p PID` has {time} for `darc why`, without a word of
what was done. All of it runs at a real-time priority, so that other work on the machine is no
cause.

*Right* is a run if a path of the *first* answer leads to what was injected: of a call, a lock and
a full disk the last function of the program's own on the path, or its call, is that; of a
command, and of page faults, its function is on the path, as all that it calls is the command's.
Where another process has the processor darc must say so. The table has how many of the answer's
paths are right: where a call is slow under a lock, its waiters have a path, too.

{goals}
| program | right | sure | sure and wrong | median time to the answer |
| --- | ---: | ---: | ---: | ---: |
{programs}

{cut}Times are from the server's start to its end. Without an injection {named} of {none} runs named
something{aside}.

## All runs

| program | injected | said | right paths | sure | took |
| --- | --- | --- | ---: | ---: | ---: |
{runs}

- kernel: Linux {kernel}; gdb: {gdb}; {cores} processors
"""


def page(kept: Sequence[Run], seed: int) -> str:
    """All runs."""
    injected = [run for run in kept if run.number < _NONE]
    none = [run for run in kept if run.number >= _NONE]
    rows = []
    for program in PROGRAMS:
        own = [run for run in injected if run.program == program.name]
        right, sure = [run for run in own if run.right], [run for run in own if run.sure]
        took = sorted(run.seconds for run in own) or [0.0]
        rows.append(
            f"| {program.name} | {len(right)} of {len(own)} | {len(sure)} | "
            f"{len([run for run in sure if not run.right])} | {took[len(took) // 2]:.0f} s |"
        )
    runs = [
        f"| {run.program} | {run.injected} | {_said(run)} | "
        f"{f'{run.right_paths} of {run.paths}' if run.paths else '-'}"
        f"{'' if run.right else ' **wrong**'} | {'yes' if run.sure else 'no'} | "
        f"{run.seconds:.0f} s |"
        for run in sorted(kept, key=lambda run: run.number)
    ]
    wrong = [run for run in none if not run.right]
    true = [run for run in none if run.right and run.said]
    all_right = sum(run.right for run in injected)
    aim = "the goal: 57 of 60, eight in each program"
    partly = sum(run.right and run.right_paths < run.paths for run in injected)
    goals = (
        f"{all_right} of {len(injected)} runs are right ({aim}). In {partly} of them the answer\n"
        "has paths beside that lead elsewhere.\n"
    )
    cut = ""
    wanted = len(PROGRAMS) * RUNS + UNDISTURBED
    if len(kept) < wanted:
        cut = f"Only {len(kept)} of {wanted} runs have been made so far.\n"
    told = f"; {len(true)} told truly that others had the processor" if true else ""
    return _HEAD.format(
        seed=seed, time=_TIME, goals=goals, cut=cut, programs="\n".join(rows), named=len(wrong),
        none=len(none), aside=told, runs="\n".join(runs), kernel=os.uname().release,
        gdb=gdb_version(), cores=os.cpu_count(),
    )  # fmt: skip


def _said(run: Run) -> str:
    """In short: the path's first function and its last four."""
    parts = run.said.split(" → ")
    parts = parts if len(parts) <= 5 else [parts[0], "…", *parts[-4:]]
    short = [part if len(part) <= 60 else f"{part[:57]}…" for part in parts]
    return f"`{' → '.join(short)}`" if run.said else run.verdict


if __name__ == "__main__":
    main()
