"""What runs in a machine: busybox, the disks' drivers, and one program.

The kernel gets it all as its initial file system. Lines that :mod:`kgdb.vm.machine` reads (and
everything that the program prints) go to the third serial line; the first is the console, with a
shell; the second is kgdb's.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kgdb.vm import cpio
from kgdb.vm.errors import VmError
from kgdb.vm.kernels import CachedKernel

BOOTED = "darc-vm: booted"
"""The line that tells that the disks are mounted; the program starts behind it."""

ENDED = "darc-vm: the program ended with status "
"""How the line begins that tells that the program is over; then comes its status."""

READY = "ready"
"""The line that a workload prints when it does from now on what it is there for."""

_INIT = """\
#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
mount -t tmpfs tmp /tmp
stty -F /dev/ttyS2 raw
exec 3>/dev/ttyS2
for module in $(cat /modules/order); do insmod /modules/$module; done
mount -t ext4 /dev/vda /ext4 >&3 2>&1
mount -t ext2 /dev/vdb /ext2 >&3 2>&1
echo '{booted}' >&3
{program}
exec 3>&-
while :; do setsid cttyhack sh; done
"""


@dataclass(frozen=True)
class GuestProgram:
    """What runs in the machine: a static program of the host and its arguments."""

    file: Path
    arguments: tuple[str, ...] = ()


def initial_files(kernel: CachedKernel, program: GuestProgram | None) -> bytes:
    """The initial file system, for the kernel to unpack."""
    busybox = _busybox()
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    folders = ("bin", "dev", "proc", "sys", "tmp", "modules", "programs", "ext2", "ext4")
    init = _INIT.format(booted=BOOTED, program=_start(program) if program else "")
    entries = [
        *(cpio.folder(name) for name in folders),
        # The console is opened before anything of the above is mounted.
        cpio.node("dev/console", 5, 1),
        cpio.program("bin/busybox", busybox.read_bytes()),
        *(
            cpio.link(f"bin/{name}", "busybox")
            for name in applets.stdout.split()
            if name != "busybox"
        ),
        cpio.program("init", init.encode()),
        *(cpio.program(f"modules/{file.name}", file.read_bytes()) for file in kernel.modules),
        cpio.text("modules/order", "\n".join(file.name for file in kernel.modules)),
    ]
    if program:
        entries.append(cpio.program(f"programs/{program.file.name}", _static(program.file)))
    return cpio.archive(*entries)


def _start(program: GuestProgram) -> str:
    """The line of a shell that runs the program in the background, under its own name."""
    command = shlex.join([f"/programs/{program.file.name}", *program.arguments])
    return f'({command} </dev/null >&3 2>&1; echo "{ENDED}$?" >&3) &'


def _busybox() -> Path:
    found = shutil.which("busybox")
    if found is None or b"ld-linux" in Path(found).read_bytes()[:4096]:
        raise VmError("a static busybox is needed: apt-get install busybox-static")
    return Path(found)


def _static(file: Path) -> bytes:
    """The content of a program that needs no library; VmError where it needs some."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with file.open("rb") as opened:
            interpreted = any(
                s.header.p_type == "PT_INTERP" for s in ELFFile(opened).iter_segments()
            )
    except OSError as error:
        raise VmError(f"cannot read {file}: {error.strerror}") from None
    except ELFError:
        interpreted = file.read_bytes()[:2] != b"#!"
    if interpreted:
        raise VmError(f"{file} must be a static program, as a machine has no libraries: cc -static")
    return file.read_bytes()
