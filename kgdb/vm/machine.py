"""Machines that run: each is a QEMU process and a folder with its sockets and logs.

The folders are below ``$XDG_RUNTIME_DIR/darc`` (else a private folder in the system's temporary
one). A machine holds a lock on its folder as long as it lives, whoever started it and whatever
became of that one: a folder whose lock is free belongs to a dead machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from kgdb.vm import cache, disk, guest, qmp
from kgdb.vm.errors import VmError
from kgdb.vm.kernels import KGDB, CachedKernel

QEMU = "qemu-system-x86_64"

_LONGEST_SOCKET = 107
"""Bytes that Linux allows in the path of a socket (``man 7 unix``)."""

_POLL_SECONDS = 0.05

_SYSRQ_DEBUG = "sysrq: DEBUG"
"""What the kernel prints when it was asked to stop for a debugger."""


class Accel(Enum):
    """What executes the guest's code, as QEMU's ``-accel`` takes it."""

    TCG = "tcg"
    KVM = "kvm"


@dataclass(frozen=True)
class Setup:
    """What a machine is to be."""

    kernel: CachedKernel
    program: guest.GuestProgram | None = None
    cpus: int = 1
    memory_mib: int = 512
    icount: bool = False
    kaslr: bool = False
    accel: Accel = Accel.TCG
    cpu: str = "max"
    """QEMU's model of the processor, where it is emulated."""
    disk_iops: int = 0
    """How many requests a second each disk serves; 0: as many as it can."""
    parameters: str = ""
    """More parameters for the kernel."""
    plugin: str | None = None
    """A TCG plugin with its arguments, as QEMU's ``-plugin`` takes it."""


@dataclass(frozen=True)
class Machine:
    """A machine that was started; what it prints is in ``console`` and ``messages``."""

    name: str
    folder: Path
    pid: int
    kernel: str
    release: str
    program: str
    symbols: Path
    debug: Path

    @property
    def has_kgdb(self) -> bool:
        """Whether its kernel is the one with kgdb."""
        return self.kernel == KGDB

    @property
    def gdb_socket(self) -> Path:
        """QEMU's gdbstub."""
        return self.folder / "gdb.sock"

    @property
    def kgdb_socket(self) -> Path:
        """The guest's second serial line, which kgdb listens to."""
        return self.folder / "kgdb.sock"

    @property
    def target(self) -> Path:
        """What gdb connects to."""
        return self.kgdb_socket if self.has_kgdb else self.gdb_socket

    @property
    def console_socket(self) -> Path:
        """The guest's first serial line, for one reader and writer; a shell is on it."""
        return self.folder / "console.sock"

    @property
    def monitor_socket(self) -> Path:
        """QEMU's machine protocol (QMP)."""
        return self.folder / "qmp.sock"

    @property
    def console(self) -> str:
        """All that was written to the console."""
        return _text(self.folder / "console.log")

    @property
    def messages(self) -> str:
        """All that the program printed, and darc-vm's own lines."""
        return _text(self.folder / "messages.log")

    @property
    def alive(self) -> bool:
        """Whether it runs (or is stopped by a debugger)."""
        return _locked(self.folder)

    def last_words(self, lines: int = 25) -> str:
        """The ends of everything it wrote, for messages."""
        parts = []
        for name in ("qemu.log", "messages.log", "console.log"):
            end = _text(self.folder / name).splitlines()[-lines:]
            parts += [f"--- end of {name}", *end] if end else []
        return "\n".join(parts) or "it wrote nothing"

    def wait_for(self, line: str, seconds: float, count: int = 1) -> None:
        """Returns when ``line`` was printed ``count`` times by the program (or by darc-vm's init).

        Raises VmError when the machine or its program ends before, or after ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while True:
            alive = self.alive
            lines = self.messages.splitlines()
            if lines.count(line) >= count:
                return
            ended = [said for said in lines if said.startswith(guest.ENDED)]
            if ended:
                why = f"{ended[0].removeprefix('darc-vm: ')}"
            elif not alive:
                why = "the machine died"
            elif time.monotonic() > deadline:
                why = f"nothing after {seconds:.0f} s"
            else:
                time.sleep(_POLL_SECONDS)
                continue
            raise VmError(
                f"{self.name} did not say '{line}': {why}; last words:\n{self.last_words()}"
            )

    def break_in(self, seconds: float = 60) -> None:
        """Lets kgdb stop the guest's kernel, by the magic key on its console.

        Returns when the kernel is about to stop; then a debugger can connect. Raises VmError when
        the kernel has no kgdb, or does not react in ``seconds``.
        """
        if not self.has_kgdb:
            raise VmError(f"{self.name} has no kgdb: connect gdb to {self.gdb_socket}")
        before = self.console.count(_SYSRQ_DEBUG)
        qmp.execute(self.monitor_socket, "chardev-send-break", id="console")
        with socket.socket(socket.AF_UNIX) as console:
            try:
                console.connect(str(self.console_socket))
            except OSError as error:
                raise VmError(f"cannot type on {self.console_socket}: {error.strerror}") from None
            console.sendall(b"g")
            deadline = time.monotonic() + seconds
            while self.console.count(_SYSRQ_DEBUG) == before:
                if not self.alive or time.monotonic() > deadline:
                    words = self.last_words()
                    raise VmError(f"{self.name} does not stop; last words:\n{words}")
                time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Ends it, dead or alive, and removes its folder."""
        # The descriptor means this process alone, so a number that was given anew is not hit.
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(self.pid)
            try:
                if self.alive:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    select.select([process], [], [])
            finally:
                os.close(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def machines() -> list[Machine]:
    """All that were started and not stopped, dead ones too, by name."""
    found = []
    for record in sorted(runtime().glob("*/machine.json")):
        fields = json.loads(record.read_text())
        for key in ("symbols", "debug"):
            fields[key] = Path(fields[key])
        found.append(Machine(folder=record.parent, name=record.parent.name, **fields))
    return found


def start(setup: Setup, name: str, seconds: float = 300) -> Machine:
    """Starts a machine and returns when it has booted and its program was started.

    Raises:
        VmError: QEMU is not there, died, or the guest did not boot in ``seconds``.
    """
    if shutil.which(QEMU) is None:
        raise VmError(f"{QEMU} is not installed: apt-get install qemu-system-x86")
    disks = disk.images()
    files = guest.initial_files(setup.kernel, setup.program)
    folder, lock = _new_folder(name)
    try:
        (folder / "initramfs").write_bytes(files)
        cache.say("booting")
        pid = _launch(_command(setup, folder, disks), folder, lock)
        machine = Machine(
            name=folder.name,
            folder=folder,
            pid=pid,
            kernel=setup.kernel.name,
            release=setup.kernel.version,
            program=setup.program.file.name if setup.program else "",
            symbols=setup.kernel.symbols,
            debug=setup.kernel.debug,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        # From here on the machine alone holds it.
        os.close(lock)
    try:
        _record(machine)
        machine.wait_for(guest.BOOTED, seconds)
    except BaseException:
        machine.stop()
        raise
    return machine


class _Apart(subprocess.Popen[bytes]):
    """Is to outlive this process, so nobody waits for it. Popen knows no such child: it would warn
    of one that still runs, and a later Popen would ask for it, after which its number is
    another's."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        super().__init__(command, **options)
        self.returncode = 0


def _launch(command: Sequence[str], folder: Path, lock: int) -> int:
    """Starts QEMU apart from this process and its terminal, and returns its process number."""
    with (folder / "qemu.log").open("wb") as log:
        process = _Apart(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[lock],
            start_new_session=True,
        )
    return process.pid


def _command(setup: Setup, folder: Path, disks: Sequence[Path]) -> list[str]:
    lines = "console=ttyS0 quiet panic=-1" + ("" if setup.kaslr else " nokaslr")
    if setup.kernel.has_kgdb:
        # With a rate the line has its FIFO. Its check of the timer fails on a busy host.
        lines += " kgdboc=ttyS1,115200 no_timer_check"
    lines += f" {setup.parameters}" if setup.parameters else ""
    command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    command += ["-machine", "pc", "-accel", setup.accel.value, "-smp", str(setup.cpus)]
    cpu = "host" if setup.accel is Accel.KVM else setup.cpu
    command += ["-cpu", cpu, "-m", f"{setup.memory_mib}M"]
    command += ["-kernel", str(setup.kernel.image), "-append", lines, "-initrd", "initramfs"]
    for line in ("console", "kgdb", "messages"):
        # Nothing is lost, and nothing waits, while nobody is connected: the log has it all.
        where = f"socket,id={line},path={line}.sock,server=on,wait=off"
        command += ["-chardev", f"{where},logfile={line}.log", "-serial", f"chardev:{line}"]
    command += ["-chardev", "socket,id=gdb,path=gdb.sock,server=on,wait=off", "-gdb", "chardev:gdb"]
    command += ["-qmp", "unix:qmp.sock,server=on,wait=off"]
    limit = f",throttling.iops-total={setup.disk_iops}" if setup.disk_iops else ""
    for image in disks:
        command += ["-drive", f"file={image},format=raw,if=virtio,snapshot=on{limit}"]
    if setup.icount:
        command += ["-icount", "shift=0,sleep=on"]
    if setup.plugin:
        command += ["-plugin", setup.plugin]
    return command


def runtime() -> Path:
    """Where the machines' folders are; only its owner can look into it. Raises VmError: it cannot
    be made, or others can."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base.startswith("/") and Path(base).is_dir():
        folder = Path(base) / "darc"
    else:
        folder = Path(tempfile.gettempdir()) / f"darc-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise VmError(f"cannot make {folder}: {error.strerror}; set XDG_RUNTIME_DIR") from None
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise VmError(f"{folder} is not yours alone: remove it, or set XDG_RUNTIME_DIR")
    return folder


def _new_folder(wanted: str) -> tuple[Path, int]:
    """A new folder, called as wanted or with a number behind it, and the descriptor of its lock."""
    for number in itertools.count(1):
        folder = runtime() / (wanted if number == 1 else f"{wanted}-{number}")
        if len(os.fsencode(folder / "messages.sock")) > _LONGEST_SOCKET:
            raise VmError(f"{folder} is too long for sockets: set XDG_RUNTIME_DIR to a shorter one")
        if folder.exists() and not _locked(folder):
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            break
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, lock


def _locked(folder: Path) -> bool:
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _record(machine: Machine) -> None:
    fields = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in asdict(machine).items()
    }
    del fields["folder"], fields["name"]
    new = machine.folder / "machine.json.new"
    new.write_text(json.dumps(fields))
    new.rename(machine.folder / "machine.json")


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").replace("\r", "")
    except FileNotFoundError:
        return ""
