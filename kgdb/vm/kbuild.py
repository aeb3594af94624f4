"""The kernel with kgdb: Debian's have none, so a small one is built from Debian's sources.

It has what the machines need (serial lines, virtio disks, ext4) and what darc needs (kgdb, symbols,
ftrace's nops, modules' memory), and little else, so that it builds in minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kgdb.vm import apt, cache, vmlinux
from kgdb.vm.errors import VmError

_META = "linux-source"
_TOOLS = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "pahole": "dwarves",
}

_OPTIONS = """
64BIT SMP PRINTK TTY SERIAL_8250 SERIAL_8250_CONSOLE MULTIUSER EXPERT
BLK_DEV_INITRD RD_GZIP BINFMT_ELF BINFMT_SCRIPT PROC_FS SYSFS TMPFS SHMEM DEVTMPFS PROC_SYSCTL
FUTEX EPOLL SIGNALFD TIMERFD EVENTFD POSIX_TIMERS FILE_LOCKING AIO ADVISE_SYSCALLS UNIX98_PTYS
HIGH_RES_TIMERS NO_HZ_IDLE HZ_250 HPET HPET_TIMER PREEMPT_VOLUNTARY VMAP_STACK
ACPI PCI PCI_MSI BLOCK BLK_DEV VIRTIO_MENU VIRTIO_PCI VIRTIO_BLK EXT4_FS EXT2_FS
MODULES KPROBES FTRACE FUNCTION_TRACER FUNCTION_GRAPH_TRACER DYNAMIC_FTRACE KPROBE_EVENTS
DEBUG_KERNEL DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT KALLSYMS KALLSYMS_ALL
UNWINDER_ORC BPF_SYSCALL DEBUG_INFO_BTF CPU_MITIGATIONS RETPOLINE RETHUNK JUMP_LABEL
STRICT_KERNEL_RWX STRICT_MODULE_RWX MAGIC_SYSRQ MAGIC_SYSRQ_SERIAL
INPUT VT KGDB KGDB_HONOUR_BLOCKLIST KGDB_SERIAL_CONSOLE
""".split()
"""Set to y on top of ``allnoconfig``."""

_UNUSED = (
    *(
        "arch/[!x]*/*.[chS]",
        "arch/[!x]*/*.dts*",
        "tools/testing",
        "Documentation/*/*",
        "sound/*.[ch]",
        "net/*/*.c",
    ),
    *(f"drivers/{name}/*.[ch]" for name in ("gpu/drm", "net", "media", "staging", "infiniband")),
)
"""Half of the sources, which this kernel has no use for: they are not unpacked."""


def built() -> Path:
    """The folder of the kernel, built now where the cache has none.

    Raises:
        VmError: it cannot be built, or what that needs is not installed.
    """
    made = sorted(
        (cache.root() / "kernels").glob(f"kgdb-*-{_key()}"), key=lambda p: p.stat().st_mtime
    )
    if made:
        return made[-1]
    for tool, package in _TOOLS.items():
        if shutil.which(tool) is None:
            raise VmError(f"{tool} is needed to build a kernel: apt-get install {package}")
    if not Path("/usr/include/gelf.h").exists():
        raise VmError("libelf is needed to build a kernel: apt-get install libelf-dev")
    return apt.with_fresh_lists(_fetch)


def _key() -> str:
    return hashlib.sha256(repr(_OPTIONS).encode()).hexdigest()[:8]


def _fetch(lists: apt.Lists) -> Path:
    found = re.match(r"(linux-source-[^ ]+) \(= ([^)]+)\)", lists.field(_META, "Depends") or "")
    if not found:
        raise apt.AptError(f"apt knows no package {_META}: darc-vm's kernels need Debian on x86-64")
    package, version = found.groups()

    def make(folder: Path) -> None:
        cache.say(f"downloading the sources of Linux {version}, about 140 MB")
        lists.download([f"{package}={version}"], folder)
        (archive,) = folder.glob("*.deb")
        cache.say("unpacking them, about 1 GB for the time of the build")
        tree = _sources(folder, archive)
        cache.say("building Linux with kgdb: some minutes")
        _configure(tree)
        _make(tree, "-j", str(os.cpu_count() or 1), "bzImage", "vmlinux")
        shutil.copy(tree / "arch/x86/boot/bzImage", folder / "bzImage")
        shutil.copy(tree / ".config", folder / "config")
        shutil.copy(tree / "vmlinux", folder / "vmlinux.debug")
        vmlinux.strip(folder)
        (folder / "modules").mkdir()
        (folder / "modules" / "order").touch()
        shutil.rmtree(tree)

    return cache.once(f"kernels/kgdb-{version}-{_key()}", make)


def _sources(folder: Path, archive: Path) -> Path:
    """Unpacks the sources in Debian's package; returns their top folder."""
    packed = folder / "source.tar.xz"
    apt.unpack(archive, lambda path: packed if path.endswith(".tar.xz") else None)
    archive.unlink()
    tree = folder / "tree"
    tree.mkdir()
    unused = [f"--exclude=linux-source-*/{pattern}" for pattern in _UNUSED]
    _run(["tar", "-xf", str(packed), "-C", str(tree), "--strip-components=1", *unused], folder)
    packed.unlink()
    return tree


def _configure(tree: Path) -> None:
    wanted = tree / "darc.config"
    wanted.write_text("".join(f"CONFIG_{option}=y\n" for option in _OPTIONS))
    _make(tree, f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig")
    got = set((tree / ".config").read_text().splitlines())
    lost = [option for option in _OPTIONS if f"CONFIG_{option}=y" not in got]
    if lost:
        raise VmError(f"this Linux cannot be built with {', '.join(lost)}")


def _make(tree: Path, *arguments: str) -> None:
    _run(["nice", "-n", "19", "make", "-s", *arguments], tree)


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.strip()] or ["no word"]
        wrong = next((line for line in words if "error" in line.lower()), words[-1])
        raise VmError(f"{' '.join(command[:6])} failed: {wrong.strip()}")
