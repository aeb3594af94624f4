"""The kernels that a machine can run, each in a folder of the cache.

``debian`` is the cloud kernel of the running Debian release, from its package and its debugging
package; neither is installed. Others of Debian's come likewise, the newest from a later release.
``kgdb`` is built from Debian's sources, see :mod:`kgdb.vm.kbuild`.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kgdb.vm import apt, cache, kbuild, vmlinux
from kgdb.vm.errors import VmError

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_BACKPORTS = f"deb [signed-by={_KEYS}] http://deb.debian.org/debian trixie-backports main"


@dataclass(frozen=True)
class _Source:
    """The package that depends on the newest kernel of a kind; of what lists, where those are not
    the system's."""

    meta: str
    source: str | None = None


DEFAULT = "debian"

_SOURCES = {
    DEFAULT: _Source("linux-image-cloud-amd64"),
    "rt": _Source("linux-image-rt-amd64"),
    "6.12": _Source("linux-image-6.12-cloud-amd64"),
    "6.12-rt": _Source("linux-image-6.12-rt-amd64"),
    "newest": _Source("linux-image-cloud-amd64", _BACKPORTS),
}

KGDB = "kgdb"
"""The kernel that is built with kgdb, by its name."""

NAMES = (*_SOURCES, KGDB)

_DISK_DRIVER = "virtio_blk"
_BUS_DRIVER = "virtio_pci"
_FILE_SYSTEM = "ext4"
_CHECKSUM = "crc32c_generic"
"""What ext4 asks the kernel for by another name than a module's."""
_PARTS = ("base", "binary", "modules")
"""Of a kernel's package, where that is divided."""
_XZ = bytes.fromhex("fd377a585a00")


@dataclass(frozen=True)
class CachedKernel:
    """A kernel in the cache."""

    name: str
    folder: Path

    @property
    def has_kgdb(self) -> bool:
        """Whether a debugger is served by the kernel itself."""
        return self.name == KGDB

    @property
    def version(self) -> str:
        """What ``uname -r`` says in it, and the package's version where there is one."""
        return self.folder.name

    @property
    def image(self) -> Path:
        """What is booted."""
        return self.folder / "bzImage"

    @property
    def symbols(self) -> Path:
        """The ELF file with symbols alone: what a debugger reads at once."""
        return self.folder / "vmlinux"

    @property
    def debug(self) -> Path:
        """The ELF file with everything."""
        return self.folder / "vmlinux.debug"

    @property
    def modules(self) -> tuple[Path, ...]:
        """The drivers of the disks, in the order in which they are loaded."""
        order = (self.folder / "modules" / "order").read_text().split()
        return tuple(self.folder / "modules" / name for name in order)


def find(name: str, update: bool = False) -> CachedKernel:
    """The kernel of that name, downloaded or built first where the cache has none.

    With ``update`` the newest there is, else the newest in the cache.
    """
    if name == KGDB:
        return CachedKernel(name, kbuild.built())
    return CachedKernel(name, _debian(name, update))


def _debian(name: str, update: bool) -> Path:
    folder = cache.root() / "kernels"
    made = sorted(folder.glob(f"{name}-[0-9]*"), key=lambda p: p.stat().st_mtime)
    if made and not update:
        return made[-1]
    found_in = _SOURCES[name]

    def fetch(lists: apt.Lists) -> Path:
        return _fetch(lists, name, found_in.meta)

    return apt.with_fresh_lists(fetch, at_once=update, source=found_in.source)


def _fetch(lists: apt.Lists, name: str, meta: str) -> Path:
    depends = lists.field(meta, "Depends") or ""
    found = re.search(r"\b(linux-image-([^ ]+)) \(= ([^)]+)\)", depends)
    if not found:
        raise apt.AptError(f"apt knows no package {meta}: darc-vm's kernels need Debian on x86-64")
    package, release, version = found.groups()

    def make(folder: Path) -> None:
        cache.say(f"downloading Linux {release} and its debugging information, about 300 MB")
        # Newer kernels' packages only depend on those that have something in them.
        needs = lists.field(package, "Depends") or ""
        parts = [part for part in (f"linux-{kind}-{release}" for kind in _PARTS) if part in needs]
        wanted = [f"{part}={version}" for part in (package, *parts, f"{package}-dbg")]
        lists.download(wanted, folder)
        (debugging,) = folder.glob("*-dbg_*.deb")
        plain = sorted(set(folder.glob("*.deb")) - {debugging})
        cache.say("unpacking them")
        _unpack(folder, plain, debugging, release)

    return cache.once(f"kernels/{name}-{release}-{version}", make)


def _take_needed(every: Path, modules: Path) -> Sequence[str]:
    """Moves those modules that a machine needs, with the order to load them in; the others go.
    Their names."""
    for packed in every.iterdir():
        unpack_module(packed)
    modules.mkdir()
    wanted = (_BUS_DRIVER, _DISK_DRIVER, _CHECKSUM, _FILE_SYSTEM)
    order = [one for name in wanted for one in load_order(every, name)]
    names = [f"{name}.ko" for name in dict.fromkeys(order)]
    for name in names:
        (every / name.removesuffix(".ko")).rename(modules / name)
    (modules / "order").write_text("\n".join(names))
    for left in every.iterdir():
        left.unlink()
    every.rmdir()
    return names


def _unpack(folder: Path, plain: Sequence[Path], debugging: Path, release: str) -> None:
    """Fills the folder of a :class:`CachedKernel` from Debian's packages, and deletes these."""
    every = folder / "every"

    def of_plain(path: str) -> Path | None:
        if path in (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz"):
            return folder / "bzImage"
        if path in (f"boot/config-{release}", f"usr/lib/modules/{release}/config"):
            return folder / "config"
        if path.endswith((".ko", ".ko.xz")):
            return every / module_name(path)
        return None

    for package in plain:
        apt.unpack(package, of_plain)
        package.unlink()
    modules = folder / "modules"
    names = _take_needed(every, modules)

    def of_debugging(path: str) -> Path | None:
        name = Path(path).name
        if name in ("vmlinux", f"vmlinux-{release}"):
            return folder / "vmlinux.debug"
        if path.endswith(".ko") and f"{module_name(path)}.ko" in names:
            return modules / f"{module_name(path)}.ko.debug"
        return None

    apt.unpack(debugging, of_debugging)
    debugging.unlink()
    if not (folder / "bzImage").exists() or not (folder / "vmlinux.debug").exists():
        raise VmError(f"the packages of Linux {release} are not laid out as darc-vm knows them")
    vmlinux.strip(folder)


def unpack_module(module: Path) -> None:
    """Debian packs modules in newer kernels; busybox loads only those that are not."""
    content = module.read_bytes()
    if content.startswith(_XZ):
        module.write_bytes(lzma.decompress(content))


def module_name(path: str) -> str:
    """How the kernel calls the module of a file."""
    return Path(path).name.removesuffix(".xz").removesuffix(".ko").replace("-", "_")


def load_order(folder: Path, name: str) -> list[str]:
    """The module and all it needs, what is needed first; a built-in one is not in ``folder``."""
    file = folder / name
    if not file.exists():
        return []
    with file.open("rb") as opened:
        section = ELFFile(opened).get_section_by_name(".modinfo")
        facts = section.data().split(b"\0") if section else []
    needs = [f.partition(b"=")[2].decode() for f in facts if f.startswith(b"depends=")]
    order: list[str] = []
    for needed in ",".join(needs).split(","):
        order += load_order(folder, needed.replace("-", "_")) if needed else []
    return [*order, name]
