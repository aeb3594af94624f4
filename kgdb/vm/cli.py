"""``darc-vm``: starts, lists and stops machines to try darc on a kernel.

darc-vm start --workload zeroread
darc-vm list
darc-vm stop
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from darc.model.errors import DarcError
from darc.views.words import message
from kgdb.vm import cache, disk, guest, kernels, machine, workloads
from kgdb.vm.errors import VmError

_AUTO = "auto"
"""Of ``--accel``: KVM where a machine boots with it."""

BOOT_SECONDS = 300
"""How long a machine may take to boot; it takes 3 s of a processor's time."""

KVM_BOOT_SECONDS = 30
"""The same with KVM, before ``--accel auto`` gives it up: on some hosts it is there and hangs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; one line on standard error, and status 1, when it fails."""
    options = _parser().parse_args(arguments)
    # What was begun is undone then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        status: int = options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it, as head does, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return 128 + signal.SIGPIPE
    except DarcError as error:
        print(message(f"darc-vm: {error}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="darc-vm", description="Virtual machines to try darc on a kernel."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = commands.add_parser("start", help="start a machine and say how to connect gdb to it")
    _add_kernel(start)
    start.add_argument("--update", action="store_true", help="get the newest kernel of the release")
    what = start.add_mutually_exclusive_group()
    what.add_argument("--workload", metavar="NAME", help="see: darc-vm workloads")
    what.add_argument(
        "--run", dest="program", metavar="PROGRAM", help="a static program of yours, and arguments"
    )
    start.add_argument("--args", metavar="ARGS", default="", help="arguments of the workload")
    start.add_argument("--name", help="default: the workload's, the program's or the kernel's")
    start.add_argument("--smp", type=int, default=1, metavar="N", help="processors (default: 1)")
    start.add_argument("--memory", type=int, default=512, metavar="MIB", help="default: 512")
    start.add_argument("--icount", action="store_true", help="a clock that counts instructions")
    start.add_argument(
        "--disk-iops", type=int, default=0, metavar="N", help="slow disks: N requests a second"
    )
    start.add_argument("--kaslr", action="store_true", help="let the kernel choose its addresses")
    start.add_argument("--append", default="", metavar="PARAMETERS", help="for the kernel")
    start.add_argument(
        "--accel",
        choices=(*(one.value for one in machine.Accel), _AUTO),
        default=machine.Accel.TCG.value,
        help=f"default: {machine.Accel.TCG.value}",
    )
    start.set_defaults(command=_start)

    fetch = commands.add_parser("fetch", help="download or build a kernel, and make the disks")
    _add_kernel(fetch)
    fetch.add_argument("--update", action="store_true", help="get the newest kernel of the release")
    fetch.set_defaults(command=_fetch)

    listing = commands.add_parser("list", help="the machines, and what they do")
    listing.set_defaults(command=_list)

    stop = commands.add_parser("stop", help="end a machine (the only one, when none is named)")
    stop.add_argument("name", nargs="*", metavar="NAME")
    stop.add_argument("--all", action="store_true", help="end every machine")
    stop.set_defaults(command=_stop)

    stop_in = commands.add_parser("break", help="let kgdb stop a machine, for gdb to connect")
    stop_in.add_argument("name", nargs="?", metavar="NAME")
    stop_in.set_defaults(command=_break)

    known = commands.add_parser("workloads", help="the programs that --workload knows")
    known.set_defaults(command=_workloads)
    return parser


def _add_kernel(parser: argparse.ArgumentParser) -> None:
    of = f"default: {kernels.DEFAULT}"
    parser.add_argument("--kernel", choices=kernels.NAMES, default=kernels.DEFAULT, help=of)


def _start(options: argparse.Namespace) -> int:
    program = _program(options)
    if options.icount and options.accel != machine.Accel.TCG.value:
        raise VmError(f"--icount needs --accel {machine.Accel.TCG.value}")
    if options.smp < 1 or options.memory < 128:
        raise VmError("a machine needs --smp 1 and --memory 128 at least")
    if options.disk_iops < 0:
        raise VmError("--disk-iops is how many requests a second each disk serves")
    setup = machine.Setup(
        kernel=kernels.find(options.kernel, options.update),
        program=program,
        cpus=options.smp,
        memory_mib=options.memory,
        icount=options.icount,
        kaslr=options.kaslr,
        disk_iops=options.disk_iops,
        parameters=options.append,
    )
    default = program.file.name if program else options.kernel
    started = _boot(setup, options.accel, options.name or default)
    if options.workload:
        try:
            started.wait_for(guest.READY, BOOT_SECONDS)
        except VmError:
            started.stop()
            raise
    print(message(f"{started.name}: {started.release}, {started.program or 'no program'}"))
    if started.has_kgdb:
        print(f"  darc-vm break {started.name}")
    print(f"  {connect(started)}")
    print(f"  darc-vm stop {started.name}")
    return 0


def _boot(setup: machine.Setup, accel: str, name: str) -> machine.Machine:
    if accel != _AUTO:
        return machine.start(replace(setup, accel=machine.Accel(accel)), name, BOOT_SECONDS)
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        try:
            return machine.start(replace(setup, accel=machine.Accel.KVM), name, KVM_BOOT_SECONDS)
        except VmError:
            cache.say("KVM does not boot here")
    return machine.start(setup, name, BOOT_SECONDS)


def _fetch(options: argparse.Namespace) -> int:
    kernel = kernels.find(options.kernel, options.update)
    disk.images()
    print(kernel.folder)
    return 0


def _program(options: argparse.Namespace) -> guest.GuestProgram | None:
    if options.workload:
        return workloads.built(options.workload, tuple(shlex.split(options.args)))
    if not options.program:
        return None
    file, *arguments = shlex.split(options.program)
    found = shutil.which(file)
    if found is None:
        raise VmError(f"{file} is not a program")
    return guest.GuestProgram(Path(found).resolve(), (*arguments, *shlex.split(options.args)))


def connect(started: machine.Machine) -> str:
    """What to type to debug a machine's kernel."""
    return shlex.join(["darc-gdb", str(started.symbols), "-ex", f"target remote {started.target}"])


def _list(_: argparse.Namespace) -> int:
    for one in machine.machines():
        state = "runs" if one.alive else f"is dead: {one.last_words(1).splitlines()[-1]}"
        print(message(f"{one.name}: {one.release}, {one.program or 'no program'}; {state}"))
        if one.alive:
            print(f"  {connect(one)}")
    return 0


def _stop(options: argparse.Namespace) -> int:
    there = machine.machines()
    for one in there if options.all else [_named(name) for name in options.name or [None]]:
        one.stop()
    return 0


def _break(options: argparse.Namespace) -> int:
    _named(options.name).break_in()
    return 0


def _named(name: str | None) -> machine.Machine:
    """The machine of that name, or the only one where none is named."""
    there = {one.name: one for one in machine.machines()}
    if name is None:
        if len(there) != 1:
            raise VmError(f"which one? {', '.join(there) or 'there is none'}")
        return next(iter(there.values()))
    if name not in there:
        raise VmError(f"no machine is called {name}: see darc-vm list")
    return there[name]


def _workloads(_: argparse.Namespace) -> int:
    for name in workloads.names():
        workload = workloads.find(name)
        text = f"{name} ({workload.function}): {workload.summary}"
        print(textwrap.fill(text, subsequent_indent="  "))
    return 0
