"""Measures what timing a kernel's function costs: darc, and what else can do it, in one guest; and
what an analysis costs that goes on to its end.

Writes ``docs/benchmarks-kernel.md``.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import kernel_debugger as debugger
from benchmarks import kernel_overhead, kernel_stops
from benchmarks.measure import BIN, BUILT, HERE, ROOT, MeasurementError
from darc.model.errors import DarcError
from kgdb.vm import guest, kernels, machine

PAGE = ROOT / "docs" / "benchmarks-kernel.md"

READS_A_BLOCK = 1000
"""As in ``peers.c``."""

PAD_BLOCKS = 60
_SECONDS = 600

_TOOLS = {
    "darc": "darc, a pad",
    "kretprobe": "kprobe and kretprobe events (tracefs)",
    "function_graph": "function_graph tracer of this function (tracefs)",
    "breakpoints": "gdb, a pair of breakpoints with a Python stop",
}


@dataclass(frozen=True)
class ReadCost:
    """Nanoseconds per read: the median of the blocks, and the least."""

    median: float
    least: float


def main() -> None:
    """All of it; ends with status 1 where a measurement failed."""
    try:
        kernel = kernels.find("debian")
        costs = _measure(kernel)
        figures = kernel_overhead.measure_all(kernel)
        stops = kernel_stops.measure(kernel)
    except (MeasurementError, DarcError) as error:
        sys.exit(f"benchmarks: {error}")
    PAGE.write_text(_page(kernel, costs, figures, stops))
    print("\n".join([*_table(costs), "", *kernel_overhead.tables(figures)]))
    print(f"benchmarks: all figures are in {PAGE.relative_to(ROOT)}")


def _measure(kernel: kernels.CachedKernel) -> dict[str, ReadCost]:
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / "peers"
    options = ("-O2", "-Wall", "-Wextra", "-Werror", "-static")
    subprocess.run(["gcc", *options, str(HERE / "peers.c"), "-o", str(program)], check=True)
    started = machine.start(
        machine.Setup(kernel, guest.GuestProgram(program)), "benchmark", _SECONDS
    )
    try:
        started.wait_for(guest.READY, _SECONDS)
        costs = {name: _cost(blocks) for name, blocks in _blocks(started).items()}
        costs["darc"] = _with_pad(started)
        costs["breakpoints"] = _with_breakpoints(started)
    finally:
        started.stop()
    return costs


def _blocks(started: machine.Machine) -> dict[str, list[float]]:
    found = defaultdict(list)
    for name, mean in re.findall(r"^(\w+) ([0-9]+\.[0-9])$", started.messages, re.M):
        found[name].append(float(mean))
    return found


def _cost(blocks: list[float]) -> ReadCost:
    return ReadCost(statistics.median(blocks), min(blocks))


def _with_pad(started: machine.Machine) -> ReadCost:
    """The blocks between the moment the pad stands and the stop after PAD_BLOCKS of them."""
    lines = f"shell wc -l <{started.folder}/messages.log"
    operations = PAD_BLOCKS * READS_A_BLOCK
    output = debugger.run(
        BIN / "darc-gdb",
        started,
        f"darc start vfs_read --start-ops {operations}",
        lines,
        "continue",
        lines,
    )
    numbers = [int(line) for line in re.findall(r"^(\d+)$", output, re.M)]
    if len(numbers) != 2 or f"{operations} calls" not in output:
        raise MeasurementError(f"darc did not count the calls:\n{output}")
    printed = started.messages.splitlines()[numbers[0] + 1 : numbers[1]]
    blocks = [float(line.split()[1]) for line in printed if line.startswith("free ")]
    if len(blocks) < PAD_BLOCKS // 2:
        raise MeasurementError(f"the guest printed {len(blocks)} blocks while the pad stood")
    return _cost(blocks)


def _with_breakpoints(started: machine.Machine) -> ReadCost:
    output = debugger.run("gdb", started, f"source {HERE / 'kernel_breakpoints.py'}")
    found = re.search(r"^nanoseconds ([0-9.]+)$", output, re.M)
    if not found:
        raise MeasurementError(f"gdb did not see the calls:\n{output}")
    return ReadCost(float(found[1]), float(found[1]))


def _table(costs: dict[str, ReadCost]) -> list[str]:
    nothing, own = costs["nothing"], costs["darc"]
    added = own.least - nothing.least
    lines = ["|  | ns, median | least | added | × darc |", "| --- | ---: | ---: | ---: | ---: |"]
    lines.append(
        f"| a read of zero bytes alone | {nothing.median:,.0f} | {nothing.least:,.0f} | | |"
    )
    for name, title in _TOOLS.items():
        cost = costs[name]
        more = cost.least - nothing.least
        lines.append(
            f"| {title} | {cost.median:,.0f} | {cost.least:,.0f} "
            f"| {more:,.0f} | {more / added:,.1f} |"
        )
    return lines


def _page(
    kernel: kernels.CachedKernel,
    costs: dict[str, ReadCost],
    figures: kernel_overhead.OverheadFigures,
    stops: Sequence[kernel_stops.Stops],
) -> str:
    lines = [
        "# Benchmarks: a kernel's function",
        "",
        "`make bench-kernel` measures all of this in one run and writes this page. A program in a",
        "guest reads zero bytes over and over (`benchmarks/peers.c`), and each tool in its turn",
        "times every call of `vfs_read`. Nanoseconds for a read, system call and all, on the",
        f"guest's clock: the median over blocks of {READS_A_BLOCK} reads, and the least block.",
        "*Added* and the ratio are of the least, which a busy machine disturbs least. The",
        "breakpoints' cost is on the host's clock, as the guest's stands still at each stop.",
        "",
        "The guest runs under emulation (QEMU's TCG), where all code is slower than on a",
        "processor, by factors that differ: compare what tools add, and only roughly.",
        "",
        f"- guest: {kernel.version}, one processor",
        f"- QEMU: {_version(machine.QEMU)}; gdb: {_version('gdb')}",
        f"- host: {os.cpu_count()} cores",
        "",
        *_table(costs),
        "",
        *kernel_overhead.section(figures),
        "",
        *kernel_stops.section(stops),
    ]
    return "\n".join(lines)


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    return found[0] if found else "unknown"


if __name__ == "__main__":
    main()
