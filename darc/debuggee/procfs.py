"""What Linux tells of a process, read the way every debugger on the same machine can."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from darc.code.system_calls import MAKING_CHILDREN, SystemCall
from darc.debuggee.clock import Use
from darc.model.errors import TargetError
from darc.target import living
from darc.target.memory import PAGE
from darc.target.target import Region

_LONGEST_PATH = 4096
_AT_ENTRY, _AT_HWCAP2, _AT_EXECFN = 9, 26, 31
_HAS_FSGSBASE = 2  # HWCAP2_FSGSBASE

_PSEUDO_TERMINALS = range(136, 144)
"""Their devices' major numbers (``UNIX98_PTY_SLAVE_MAJOR``)."""

_MAPPING = re.compile(r"(\w+)-(\w+) (\S+) (\w+) (\w+):(\w+) (\d+) *(.*)")

threads = living.threads
is_kernels = living.is_kernels


def regions(pid: int) -> tuple[Region, ...]:
    """The mappings of a process.

    Raises:
        TargetError: it is gone, or it may not be read.
    """
    try:
        text = os.fsdecode(living.look(pid, _maps))
    except OSError as error:
        raise TargetError(f"cannot read the mappings of process {pid}: {why(error)}") from None
    return _regions(text)


def _maps(its: Path) -> bytes:
    return (its / "maps").read_bytes()


def why(error: OSError) -> str:
    """Why a file of a process's folder could not be read, and what to do where that is known:
    a process that is no more dumpable (prctl(2), ``PR_SET_DUMPABLE``; setuid programs are none)
    keeps its debugger, but its files are root's."""
    told = str(error.strerror)
    if not isinstance(error, PermissionError):
        return told
    return f"{told}: such a program (setuid, or undumpable by prctl) needs a debugger run by root"


@functools.lru_cache(maxsize=8)  # it is asked again and again while a program stands still
def _regions(text: str) -> tuple[Region, ...]:
    return tuple(map(_region, text.split("\n")[:-1]))


@functools.lru_cache(maxsize=1 << 17)  # a program has thousands, of which a call for darc makes one
def _region(line: str) -> Region:
    found = _MAPPING.fullmatch(line)
    assert found is not None, line
    start, end, permissions, offset, major, minor, inode, path = found.groups()
    return Region(
        start=int(start, 16),
        end=int(end, 16),
        permissions=permissions,
        offset=int(offset, 16),
        path=path,
        inode=int(inode),
        device=os.makedev(int(major, 16), int(minor, 16)),
    )


def root(pid: int) -> Path:
    """The root folder as the process sees it (a container's, perhaps). In another mount namespace
    it may be this process's own, and have other files below it all the same."""
    its = living.folder(pid)
    seen = its / "root"
    try:
        is_ours = (its / "ns/mnt").samefile("/proc/self/ns/mnt") and seen.samefile("/")
        return Path("/") if is_ours else seen
    except OSError:
        return Path("/")


def run_as(pid: int) -> Mapping[str, str]:
    """By the path of the program's file, as it is mapped, the name that it was run by: where that
    is a link, the mappings tell of what it leads to, and a program of several names would have the
    wrong one (``redis-server`` is a link to ``redis-check-rdb``, say). Empty where it is not known,
    or is no other."""
    text, its = _text_of(pid, _told(pid, _AT_EXECFN)), living.folder(pid)
    try:
        mapped = str((its / "exe").readlink())
        if not text or PurePath(text).name == PurePath(mapped).name:
            return {}
        places = [root(pid) / PurePath(mapped).parent.relative_to("/") / PurePath(text).name]
        is_whole = text.startswith("/")
        places.append(root(pid) / text.lstrip("/") if is_whole else its / "cwd" / text)
        found = any(place.exists() and place.samefile(its / "exe") for place in places)
    except (OSError, ValueError):
        return {}
    return {mapped: PurePath(text).name} if found else {}


def mapped_file(pid: int, mappings: Iterable[Region]) -> Iterator[Path]:
    """Where the file of these mappings may be read, whatever stands at its path by now: by each of
    them, and as the program's own, which it may be."""
    its = living.folder(pid)
    yield from (its / f"map_files/{one.start:x}-{one.end:x}" for one in mappings)
    yield its / "exe"


def _text_of(pid: int, address: int | None) -> str:
    """The text that a program has there; "" for none."""
    if not address:
        return ""
    raw = b""
    with contextlib.suppress(TargetError), MemoryFile(pid) as memory:
        while b"\0" not in raw and len(raw) < _LONGEST_PATH:
            at = address + len(raw)
            raw += memory.read(at, PAGE - at % PAGE)
    return os.fsdecode(raw.split(b"\0", 1)[0])


def entry(pid: int) -> int | None:
    """Where the program itself begins, when the dynamic linker has loaded its libraries; ``None``
    where the process is gone, or may not be read."""
    return _told(pid, _AT_ENTRY)


def may_read_pointer(pid: int) -> bool:
    """Whether its threads may read their thread pointers without a system call."""
    return bool((_told(pid, _AT_HWCAP2) or 0) & _HAS_FSGSBASE)


def _told(pid: int, what: int) -> int | None:
    """A word that the kernel has told the program at its begin (``getauxval(3)``)."""
    try:
        words = living.look(pid, lambda its: (its / "auxv").read_bytes())
    except OSError:
        return None
    return dict(struct.iter_unpack("<QQ", words[: len(words) // 16 * 16])).get(what)


def status(pid: int, thread: int | None = None) -> dict[str, str]:
    """Fields of ``/proc/PID/status`` (or of one thread's); empty when it is gone."""
    try:
        if thread is None:
            return living.look(pid, lambda its: _fields(its / "status", ":\t"))
        return _fields(Path(f"/proc/{pid}/task/{thread}/status"), ":\t")
    except OSError:
        return {}


def fields(file: Path, separator: str) -> dict[str, str]:
    """Name and value of each line that has the separator; none where the file cannot be read."""
    try:
        return _fields(file, separator)
    except OSError:
        return {}


def _fields(file: Path, separator: str) -> dict[str, str]:
    lines = file.read_text(errors="replace").splitlines()
    pairs = (line.partition(separator) for line in lines)
    return {name: value for name, found, value in pairs if found}


def limits(pid: int) -> dict[str, int]:
    """The limits that a process has by name as in ``/proc/PID/limits``; none for what is unlimited
    or not told."""
    found = {}
    try:
        lines = living.look(pid, lambda its: (its / "limits").read_text()).splitlines()
    except OSError:
        return {}
    for line in lines[1:]:
        soft = line[26:].split()[:1]
        if soft and soft[0].isdecimal():
            found[line[:26].strip()] = int(soft[0])
    return found


def mapping_count(pid: int) -> int:
    """How many mappings a process has; 0 when it is gone."""
    return (mapped(pid) or b"").count(b"\n")


def flags(pid: int, address: int) -> frozenset[str]:
    """What the kernel notes of the mapping at ``address`` (``VmFlags``, as "lo" for locked); empty
    where it does not tell."""
    try:
        text = living.look(pid, lambda its: (its / "smaps").read_text(errors="replace"))
    except OSError:
        return frozenset()
    here = False
    for line in text.splitlines():
        first = line.split(" ", 1)[0]
        if line.startswith("VmFlags:") and here:
            return frozenset(line.split()[1:])
        if "-" in first and ":" not in first:
            start, _, end = first.partition("-")
            here = int(start, 16) <= address < int(end, 16)
    return frozenset()


def is_locked(pid: int, address: int) -> bool:
    """Whether the mapping at ``address`` is locked in memory. Most processes lock nothing, and a
    look at every mapping takes long where they are large."""
    return status(pid).get("VmLck", "").split()[:1] != ["0"] and "lo" in flags(pid, address)


def cgroup_mounts(kind: str) -> list[tuple[Path, str]]:
    """Where cgroups are mounted here, and which of them stands there: those of ``kind``, or of the
    second version where it is empty."""
    found = []
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        before, _, after = line.partition(" - ")
        kinds, options = after.split()[0], after.split()[-1].split(",")
        if kinds == ("cgroup" if kind else "cgroup2") and (not kind or kind in options):
            fields = before.split()
            found.append((Path(fields[4]), fields[3]))
    return found


def catches(pid: int, signal: int) -> bool:
    """Whether the process has a handler for ``signal``."""
    return signal in caught(pid)


def blocks(pid: int, thread: int, signal: int) -> bool:
    """Whether a thread blocks ``signal``."""
    return bool(int(status(pid, thread).get("SigBlk", "0"), 16) >> (signal - 1) & 1)


def waits(pid: int, thread: int, signal: int) -> bool:
    """Whether ``signal`` is kept in the kernel for a thread, or for any of its process."""
    found = status(pid, thread)
    waiting = int(found.get("SigPnd", "0"), 16) | int(found.get("ShdPnd", "0"), 16)
    return bool(waiting >> (signal - 1) & 1)


def hears(pid: int, thread: int, signal: int) -> bool:
    """Whether a thread stops for its debugger at ``signal``: it does not block it, nor wait for
    signals itself. Such a wait takes them without a stop, and ``/proc`` tells of no block then."""
    return not (blocks(pid, thread, signal) or is_in(pid, thread, SystemCall.RT_SIGTIMEDWAIT))


def is_queue_full(pid: int) -> bool:
    """Whether as many signals wait for the processes of a process's user as may."""
    waiting, _, most = status(pid).get("SigQ", "").partition("/")
    return waiting.isdecimal() and most.isdecimal() and int(waiting) >= int(most)


def deaf(pid: int, signals: Sequence[int]) -> dict[int, int]:
    """How many threads do not hear each of these ``signals``. Of each thread it is one look, as
    threads come, go and block signals meanwhile."""
    counts = dict.fromkeys(signals, 0)
    for thread in threads(pid):
        blocked = int(status(pid, thread).get("SigBlk", "0"), 16)  # of all at one moment
        waits_itself = is_in(pid, thread, SystemCall.RT_SIGTIMEDWAIT)
        for signal in signals:
            counts[signal] += waits_itself or bool(blocked >> (signal - 1) & 1)
    return counts


def caught(pid: int) -> frozenset[int]:
    """The signals that the process has handlers for."""
    mask = int(status(pid).get("SigCgt", "0"), 16)
    return frozenset(number for number in range(1, 65) if mask >> (number - 1) & 1)


def children(pid: int) -> list[int]:
    """The processes that a process has made and that are there."""
    found = []
    for thread in threads(pid):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            found += [int(word) for word in text.split()]
    return found


def is_stopped_at_birth(pid: int) -> bool:
    """Whether a process is stopped, is traced by nobody and has not executed an instruction yet:
    a debugger that was killed has left it so."""
    if not is_in(pid, pid, *MAKING_CHILDREN):
        return False
    return status(pid).get("State", "").startswith("T (stopped)")


def is_traced_and_stopped(pid: int) -> bool:
    """Whether a process stands still for whoever traces it."""
    return status(pid).get("State", "").startswith("t")


def bytes_read(thread: int) -> int | None:
    """How much a thread of this process has read so far, from whatever it was; ``None``: the kernel
    does not tell."""
    try:
        text = Path(f"/proc/self/task/{thread}/io").read_text()
    except OSError:
        return None
    return next((int(line[6:]) for line in text.splitlines() if line.startswith("rchar:")), None)


def is_held(pid: int) -> bool:
    """Whether a process stands still, for its debugger or for a signal."""
    return _state(pid) in ("t", "T")


def tracer(pid: int) -> int:
    """The thread that traces a process; 0: none does."""
    return int(status(pid).get("TracerPid", "0"))


def own_id(pid: int, thread: int) -> int:
    """A thread's id as the process itself sees it: a container has its own."""
    ids = status(pid, thread).get("NSpid", "").split()
    return int(ids[-1]) if ids else thread


def thread_called(pid: int, own: int) -> int | None:
    """The thread of a process that has the id ``own`` as the process itself sees it."""
    if own_id(pid, pid) == pid:
        return own if living.is_thread(pid, own) else None
    return next((thread for thread in threads(pid) if own_id(pid, thread) == own), None)


def mapped(pid: int) -> bytes | None:
    """The mappings of a process as the kernel lists them; ``None``: it is gone."""
    try:
        return living.look(pid, _maps)
    except OSError:
        return None


def writes_on(pid: int, descriptor: int) -> bool:
    """Whether what a process writes on its standard output comes to the terminal that a descriptor
    of this process is: it is the same one, or one of this process's own, as lldb passes on what is
    written there."""
    with contextlib.suppress(OSError):
        own, other = os.fstat(descriptor), Path(f"/proc/{pid}/fd/1").stat()
        if stat.S_ISCHR(own.st_mode) and stat.S_ISCHR(other.st_mode):
            is_pseudo = os.major(other.st_rdev) in _PSEUDO_TERMINALS
            same = own.st_rdev == other.st_rdev
            return same or (is_pseudo and _passes_on(os.minor(other.st_rdev)))
    return False


def _passes_on(terminal: int) -> bool:
    """Whether this process has the other end of a pseudo-terminal."""
    for file in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            if re.search(rf"^tty-index:\s*{terminal}$", file.read_text(), re.M):
                return True
    return False


def is_gone(pid: int) -> bool:
    """Whether a process has ended, though its debugger may not have looked yet."""
    return _state(pid) in living.ENDED


def _state(pid: int) -> str:
    """That of a thread that speaks for the process."""
    return living.look(pid, lambda its: living.state(pid, int(its.name)))


def runs_without(pid: int, address: int, code: bytes) -> bool:
    """Whether a process that a debugger has runs, and that ``code``, a breakpoint say, does not
    stand at ``address``. Where nothing is mapped, nobody expects it."""
    if is_traced_and_stopped(pid) or is_let_go(pid) or is_gone(pid):
        return False
    try:
        with MemoryFile(pid) as memory:
            return memory.read(address, len(code)) != code
    except TargetError:
        return False


def is_let_go(pid: int) -> bool:
    """Whether a process lives and no debugger has it."""
    known = status(pid)
    return known.get("TracerPid", "").strip() == "0" and not is_gone(pid)


def own_ids(pid: int) -> frozenset[int]:
    """The ids of all threads of a process as it sees them itself."""
    if own_id(pid, pid) == pid:
        return frozenset(threads(pid))
    return frozenset(own_id(pid, thread) for thread in threads(pid))


def in_system_call(pid: int, thread: int) -> bool:
    """Whether a stopped thread is in the middle of a system call; so it is taken to be where the
    kernel does not tell."""
    return system_call(pid, thread) != "-1"


def system_call(pid: int, thread: int) -> str:
    """The number of the system call that a thread is in, ``-1``: in none, ``running``; empty where
    the kernel does not tell."""
    try:
        return Path(f"/proc/{pid}/task/{thread}/syscall").read_text().split()[0]
    except (OSError, IndexError):
        return ""


def is_in(pid: int, thread: int, *calls: SystemCall) -> bool:
    """Whether a thread is in one of these system calls, as far as the kernel tells."""
    return system_call(pid, thread) in [str(int(one)) for one in calls]


def program_counter(thread: int) -> int | None:
    """That of a thread of any process that stands still, or waits in a system call; ``None``: it
    runs, or the kernel does not tell."""
    return _told_of_call(thread, -1)


def stack_pointer(thread: int) -> int | None:
    """The same of its stack pointer (proc_pid_syscall(5))."""
    return _told_of_call(thread, -2)


def _told_of_call(thread: int, number: int) -> int | None:
    try:
        return int(Path(f"/proc/{thread}/syscall").read_text().split()[number], 16)
    except (OSError, ValueError, IndexError):
        return None


def waited_ns(thread: int) -> int:
    """How long a thread of any process has waited for a processor so far, in ns (the kernel's
    sched-stats.rst); 0 where the kernel does not count it or the thread is gone."""
    try:
        return int(Path(f"/proc/{thread}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


_COARSE = 6
"""``CLOCK_MONOTONIC_COARSE``, which goes on at each tick (clock_getres(2))."""


def tick() -> float:
    """Seconds between two ticks of this machine's kernel's timer."""
    return time.clock_getres(_COARSE)


def ran(thread: int) -> tuple[int, int] | None:
    """For how long a thread of any process has run so far, and waited for a processor, in ns;
    ``None`` where the kernel does not count it or the thread is gone."""
    try:
        running, ready, _ = Path(f"/proc/{thread}/schedstat").read_text().split()
        return int(running), int(ready)
    except (OSError, ValueError):
        return None


_PAUSES = b"\nvoluntary_ctxt_switches:"


def use(thread: int) -> Use | None:
    """That of a thread of any process that stands still; ``None`` where the kernel does not count
    it or the thread is gone."""
    its = Path(f"/proc/{thread}")
    try:
        ns = int((its / "schedstat").read_bytes().split()[0])
        status = (its / "status").read_bytes()
        return Use(ns, int(status.partition(_PAUSES)[2].split(None, 1)[0])) if ns else None
    except (OSError, IndexError, ValueError):
        return None


def in_sandbox(pid: int) -> bool:
    """Whether a seccomp filter stands over any thread of the process."""
    return any(is_filtered(pid, task) for task in threads(pid)[:256])


def is_filtered(pid: int, thread: int) -> bool:
    """Asked of all threads at each call for darc: the rest of the fields is not read."""
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.read(fd, 1 << 16).partition(b"\nSeccomp:\t")[2]
    except OSError:
        return False
    finally:
        os.close(fd)
    return found[:1] not in (b"", b"0")


def has_shadow_stack(pid: int) -> bool:
    """Whether a thread of the process keeps its return addresses a second time, where no debugger
    and no pad can change them (Linux, ``Documentation/arch/x86/shstk.rst``)."""
    found = (status(pid, task) for task in threads(pid)[:256])
    return any("shstk" in one.get("x86_Thread_features", "").split() for one in found)


def in_sandbox_of_its_own(pid: int) -> bool:
    """Whether seccomp filters stand over the process that do not stand over this one too (as in a
    container). That they were there before its file was executed says that memory could be mapped
    then, and nothing of the other system calls that darc makes."""
    if not in_sandbox(pid):
        return False
    filters = _filters(pid)
    if filters is None:
        return True
    return filters > (_filters(os.getpid()) or 0) and not _is_containers(pid, filters)


def _is_containers(pid: int, filters: int) -> bool:
    """Whether as many filters stand over every process of the container that it is in: a runtime
    puts them there before anything is executed."""
    ids = status(pid).get("NSpid", "").split()
    if len(ids) < 2:
        return False
    first = living.look(pid, lambda its: fields(its / "root/proc/1/status", ":\t"))
    return ids[-1] == "1" or first.get("Seccomp_filters", "").strip() == str(filters)


def _filters(pid: int) -> int | None:
    """How many seccomp filters stand over any thread of a process at most; ``None`` in strict mode
    and where the kernel does not tell."""
    found = [status(pid, task) for task in threads(pid)[:256]]
    if any(one.get("Seccomp", "0").strip() == "1" for one in found):
        return None
    counts = [one.get("Seccomp_filters") for one in found]
    if not counts or None in counts:
        return None
    return max(int(count or 0) for count in counts)


def file(pid: int) -> str:
    """The file that a process executes; empty where that is not told."""
    try:
        return str(living.look(pid, lambda its: (its / "exe").readlink()))
    except OSError:
        return ""


def waits_deeply(pid: int) -> bool:
    """Whether a thread of the process is in a wait that no signal ends: for a child of its vfork,
    for a device. A debugger that stops the process waits for that thread, with all others
    stopped."""
    return any(living.state(pid, task) == "D" for task in living.tasks(pid))


def deep_wait(pid: int, thread: int) -> list[str] | None:
    """The kernel's functions, innermost first, in which a thread is in such a wait: its whole stack
    where that may be read, else one function, or none; ``None``: it is in no such wait."""
    if living.state(pid, thread) != "D":
        return None
    task = Path(f"/proc/{pid}/task/{thread}")
    found: list[str] = []
    with contextlib.suppress(OSError):
        lines = (task / "stack").read_text(errors="replace").splitlines()
        found = [line.split()[-1].partition("+")[0] for line in lines if line.split()]
    if not found:
        with contextlib.suppress(OSError):
            found = [(task / "wchan").read_text(errors="replace").strip()]
    is_still = living.state(pid, thread) == "D"
    return [name for name in found if name.strip("0")] if is_still else None


def is_pending(pid: int, signal: int) -> bool:
    """Whether a thread of the process has still to take ``signal``."""
    found = (status(pid, task).get("SigPnd", "0") for task in threads(pid))
    return any(int(waiting, 16) >> (signal - 1) & 1 for waiting in found)


def is_pending_for_all(pid: int, *signals: int) -> bool:
    """Whether the process has still to take one of ``signals`` that was sent to none of its threads
    alone, as Ctrl-C at a terminal."""
    return bool(int(status(pid).get("ShdPnd", "0"), 16) & _mask_of(signals))


def is_heard(pid: int, *signals: int) -> bool:
    """Whether one of ``signals`` that was sent to the process may still be on its way, or its
    debugger may be looking at it: it waits for a thread, or a thread is stopped."""
    wanted = _mask_of(signals)
    return is_pending_for_all(pid, *signals) or any(
        living.takes(pid, task, wanted) for task in living.tasks(pid)
    )


def _mask_of(signals: Iterable[int]) -> int:
    return sum(1 << (signal - 1) for signal in signals)


_CLOSED = -1


def _check(done: int, wanted: int, what: str) -> None:
    """Where nothing is mapped the kernel says so, unless it has done a part; it has done nothing
    where nobody has that memory any more (``mem_rw`` in its fs/proc/base.c)."""
    if wanted and not done:
        raise TargetError(f"{what}: the process has ended, or is another program")
    if done != wanted:
        raise TargetError(f"{what}: it is not mapped")


class MemoryFile:
    """Reads and writes a process's memory beside its debugger, also while it runs. For counters
    alone: code is the debugger's to write, as it knows its own breakpoints.

    A context manager that owns the file descriptor.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._fd = living.look(
                pid, lambda its: os.open(its / "mem", os.O_RDWR | os.O_CLOEXEC), os.close
            )
        except OSError as error:
            raise TargetError(f"cannot open the memory of process {pid}: {why(error)}") from None

    def read(self, address: int, size: int) -> bytes:
        """Raises TargetError when it is not mapped or the process is gone."""
        try:
            data = os.pread(self._fd, size, address)
        except (OSError, OverflowError) as error:
            raise TargetError(f"cannot read memory at {address:#x}: {error}") from None
        _check(len(data), size, f"cannot read memory at {address:#x}")
        return data

    def read_into(self, address: int, buffer: memoryview) -> None:
        """Fills the whole buffer. Raises TargetError when it is not mapped or the process is
        gone."""
        try:
            done = os.preadv(self._fd, [buffer], address)
        except (OSError, OverflowError) as error:
            raise TargetError(f"cannot read memory at {address:#x}: {error}") from None
        _check(done, len(buffer), f"cannot read memory at {address:#x}")

    def write(self, address: int, data: bytes) -> None:
        """Raises TargetError when it is not mapped or the process is gone."""
        try:
            done = os.pwrite(self._fd, data, address)
        except (OSError, OverflowError) as error:
            raise TargetError(f"cannot write memory at {address:#x}: {error}") from None
        _check(done, len(data), f"cannot write memory at {address:#x}")

    def close(self) -> None:
        """Nothing can be read or written by it any more: its descriptor's number is another file's
        soon."""
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def __enter__(self) -> MemoryFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
