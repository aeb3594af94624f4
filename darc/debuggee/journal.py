"""What darc changes in a process, written down outside of it before it is changed.

A debugger may be killed at any moment. Whatever it had put into the program's code until then is in
the process's journal: a file that the next darc finds, in whatever debugger, also where the tables
in the program are gone or damaged. It is removed when nothing of darc is left in the code.

A journal makes darc write into a process. One is believed only if nobody could have written it who
may not write there: it is a file, not a link, of this user's, of root's or of the user that the
process itself runs as. It is kept where it outlives a login, as that may be what ended the
debugger. Each record is a line with a checksum of its own, written at once; what is torn is passed
over.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from darc.code.processor import BREAKPOINT
from darc.model.errors import TargetError, UnsupportedError
from darc.target.target import Journal, Passage, Place, Target

_BREAKPOINT = BREAKPOINT[0]
_SIZE_LIMIT = 1 << 26
"""Bytes of a journal that are read at most."""

_FULL = "No space left on device"

_ROOM = 256 << 10
"""Bytes that a folder must take beside the first record: what is in the program can only be taken
out by what is written down as well."""

_LARGEST_RANGE = 1 << 56


@dataclass
class Left:
    """What a journal says that a debugger has left."""

    places: dict[Place, None] = field(default_factory=dict)
    """In the order in which they were noted; an address may have had several."""
    passages: dict[int, Passage] = field(default_factory=dict)
    """By their addresses."""
    mapped: set[range] = field(default_factory=set)
    """Memory that was mapped for darc."""
    leaving: set[range] = field(default_factory=set)
    """That of it which the debugger was about to unmap when it ended: it may be the program's own
    by now."""
    stood: bool = False
    """Whether that debugger had stopped the program."""
    went_on: bool = False
    """Whether the program was seen to go on when that was gone."""
    files: list[Path] = field(default_factory=list)

    def remove(self) -> None:
        """Nothing is left any more."""
        for file in self.files:
            with contextlib.suppress(OSError):
                file.unlink()


class ProcessJournal(Journal):
    """The journal of one process."""

    def __init__(self, pid: int, *, required: bool, folders: Sequence[Path] | None = None) -> None:
        """``required``: nothing may be changed that cannot be noted, as the program outlives the
        debugger."""
        self.pid = pid
        self._is_required = required
        self._folders = folders
        self._name = name_of(pid)
        self._begin()

    def _begin(self) -> None:
        self._file: Path | None = None
        self._descriptor = -1
        self._written = bytearray()
        """What is in the file by this journal."""
        self._places: set[Place] = set()
        self._borrowed = 0
        """How many passages stand in the code: a thread may still have to go through one when the
        session is over, and the next one, or 'darc stop', gives it back."""
        self._is_open = False
        self._is_inherited = False
        """Whether its file was there: what an earlier debugger has noted stays until
        :meth:`begin_anew`, as it may be in use still."""
        self._stood: bool | None = None
        self._is_anothers_stop = False
        """Whether somebody else has stopped the program, and it has not gone on since."""

    def is_of(self, pid: int) -> bool:
        """Whether it is that of the process which has this id now."""
        return self.pid == pid and self._name == name_of(pid)

    def begin_anew(self) -> None:
        """Its file was removed with those of others: nothing that stood there is left."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._begin()

    def open(self, *, stopped_by_another: bool = False) -> None:
        self._is_open = True
        self._is_anothers_stop = False
        try:
            self._write({"debugger": os.getpid()})
        except TargetError as error:
            self._is_open = False
            raise UnsupportedError(
                f"{error}: what darc changes in a program that it has attached to has to be "
                "written down outside of it"
            ) from None
        self._stood = None
        if stopped_by_another:
            self.goes_on()
        else:
            self.stands()
        self._is_anothers_stop = stopped_by_another

    def patches(self, places: Iterable[Place]) -> None:
        new = [place for place in places if place not in self._places]
        if new:
            self._write({"patches": [_packed(place) for place in new]})
            self._places.update(new)

    def borrows(self, passage: Passage) -> None:
        self._write(
            {
                "borrows": _packed(passage.place),
                "thread": passage.thread,
                "leave": passage.leave,
                "registers": dict(passage.registers),
                "mask": passage.mask,
            }
        )
        self._borrowed += 1

    def gives_back(self) -> None:
        self._write({"gives_back": True})
        self._borrowed -= 1
        self._tidy()

    def maps(self, place: range) -> None:
        self._write({"maps": [place.start, place.stop]})
        self._tidy()

    def unmaps(self, place: range) -> None:
        self._write({"leaves": [place.start, place.stop]})

    def unmapped(self, place: range) -> None:
        self._write({"unmaps": [place.start, place.stop]})
        self._tidy()

    def stands(self) -> None:
        if not self._is_anothers_stop:
            self._note_stood(True)

    def goes_on(self) -> None:
        self._is_anothers_stop = False
        self._note_stood(False)

    def _note_stood(self, stopped: bool) -> None:
        if self._is_open and self._stood != stopped:
            with contextlib.suppress(TargetError):
                self._write({"stands": stopped})
                self._stood = stopped

    def close(self, is_in: Callable[[Place], bool]) -> None:
        self._is_open = False
        self._places = {place for place in self._places if is_in(place)}
        self._tidy()

    def _tidy(self) -> None:
        """Nothing that is in the program needs to be known of."""
        if not (self._is_open or self._is_inherited or self._places or self._borrowed):
            self._remove()

    def _remove(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
            self._file = None
        self._written.clear()

    def _write(self, record: Mapping[str, object]) -> None:
        data = _line(record)
        try:
            if self._descriptor < 0:
                self._create(data)
            elif not _goes_in(self._descriptor, data):
                self._move(data)
            self._written += data
        except OSError as error:
            if self._is_required:
                raise TargetError(
                    f"cannot write the journal of process {self.pid}: {error.strerror or error}"
                ) from None

    def _move(self, data: bytes) -> None:
        """Goes on in another folder, with all that was written so far: this one is full."""
        full, file, has_others = self._descriptor, self._file, self._is_inherited
        self._create(bytes(self._written) + data, but=file)
        os.close(full)
        if file is not None and not has_others:
            with contextlib.suppress(OSError):
                file.unlink()

    def _create(self, data: bytes, but: Path | None = None) -> None:
        """Makes the file, or goes on with one that is there, in the first folder that takes it;
        not the file ``but``."""
        refused: dict[Path, str] = {}
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_NONBLOCK  # a pipe without a reader is none
        for folder in own_folders() if self._folders is None else self._folders:
            if folder / self._name == but:
                refused[folder] = _FULL
                continue
            descriptor = -1
            try:
                _prepare(folder)
                _sweep(folder, self._name)
                descriptor = os.open(folder / self._name, flags, 0o600)
                if not _is_believed(os.fstat(descriptor), {os.geteuid()}):
                    raise OSError("it is somebody else's")
                is_inherited = os.fstat(descriptor).st_size > 0
                if not _goes_in(descriptor, data) or not _has_room(descriptor):
                    raise OSError(_FULL)
            except OSError as error:
                refused[folder] = error.strerror or str(error)
                if descriptor >= 0:
                    os.close(descriptor)
                continue
            self._descriptor, self._file = descriptor, folder / self._name
            self._is_inherited = self._is_inherited or is_inherited
            return
        raise OSError(_why_nowhere(refused))


def journal_of(target: Target, pid: int) -> ProcessJournal:
    """That of a process of the debugger's, which begins where the process has none.

    Raises:
        TargetError: the process is gone.
    """
    known = target.journals.of(pid)
    if isinstance(known, ProcessJournal) and known.is_of(pid):
        return known
    made = ProcessJournal(pid, required=target.outlives_debugger)
    target.journals.keep(pid, made)
    return made


def _why_nowhere(refused: Mapping[Path, str]) -> str:
    """Why each of these folders takes no file; those that this system has not at all say nothing
    that the others do not."""
    there = {folder: why for folder, why in refused.items() if folder.parent.is_dir()}
    told = [f"{folder.parent}: {why}" for folder, why in (there or refused).items()]
    return "; ".join(told) or "there is no folder for it"


def _goes_in(descriptor: int, data: bytes) -> bool:
    """Whether the file takes all of it: there may be no space left."""
    try:
        return os.write(descriptor, data) == len(data)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return False
        raise


def _has_room(descriptor: int) -> bool:
    """Whether more would go in. What is written for that is nothing to who reads the file, and no
    part of it afterwards."""
    size = os.fstat(descriptor).st_size
    try:
        return _goes_in(descriptor, b" " * _ROOM)
    finally:
        os.ftruncate(descriptor, size)


# ------------------------------------------------------------------------------- its place


def name_of(pid: int) -> str:
    """The name of a process's journal: it is never that of another process, also after a reboot.

    Raises:
        TargetError: the process is gone.
    """
    start = _start(pid)
    if start is None:
        raise TargetError(f"process {pid} is gone")
    return f"{_here()}-{pid}-{start}"


def _here() -> str:
    """This boot of the machine, and the namespace that process ids are of."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"


def _start(pid: int | str) -> int | None:
    """When a process began, in ticks since the machine did (proc_pid_stat(5), starttime)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def own_folders() -> list[Path]:
    """Where this user's journals are kept, the best place first."""
    return _folders(os.geteuid())


def _folders(user: int) -> list[Path]:
    name = f"darc-{user}"
    return [Path(f"{top}/{name}") for top in ("/tmp", "/var/tmp", "/dev/shm", f"/run/user/{user}")]


def _prepare(folder: Path) -> None:
    """Makes the folder; OSError where it cannot be one's own alone."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise OSError(f"{folder} is not this user's alone")


def _sweep(folder: Path, but: str) -> None:
    """Removes journals of processes that are gone."""
    boot, _, namespace = _here().partition("-")
    for file in folder.iterdir():
        parts = file.name.split("-")
        if file.name == but or len(parts) != 4 or not all(p.isalnum() for p in parts):
            continue
        if parts[0] == boot and parts[1] != namespace:
            continue  # of processes that cannot be seen here
        if parts[0] == boot and not (parts[2].isascii() and parts[2].isdecimal()):
            continue  # no journal
        if parts[0] != boot or str(_start(parts[2])) != parts[3]:
            with contextlib.suppress(OSError):
                file.unlink()


def _is_believed(found: os.stat_result, users: set[int]) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid in users and not found.st_mode & 0o022


# -------------------------------------------------------------------------------- records


def _line(record: Mapping[str, object]) -> bytes:
    """A record. It begins a line of its own even where the one before is torn."""
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"\n%08x %s\n" % (zlib.crc32(text), text)


WENT_ON = _line({"went_on": True}).decode()
"""What whoever has seen to that notes: see :attr:`Left.went_on`."""


def _packed(place: Place) -> list[object]:
    return [place.address, place.original.hex(), place.written.hex()]


def _unpacked(packed: object) -> Place:
    if not isinstance(packed, list):
        raise ValueError("no place")
    address, original, written = packed
    place = Place(_word(address), bytes.fromhex(original), bytes.fromhex(written))
    if len(place.original) != len(place.written):
        raise ValueError("of different lengths")
    return place


def _word(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError("no word of memory")
    return value


def _range(packed: object) -> range:
    if not isinstance(packed, list):
        raise ValueError("no range")
    start, stop = packed
    if not 0 < _word(stop) - _word(start) < _LARGEST_RANGE:
        raise ValueError("nothing that a process can have mapped")
    return range(start, stop)


def _overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def parse(data: bytes) -> Left:
    """What a journal's content says is left; what is torn or damaged is passed over."""
    left = Left()
    last = 0
    for line in data.split(b"\n"):
        checksum, _, text = line.partition(b" ")
        if not text or b"%08x" % zlib.crc32(text) != checksum:
            continue
        try:
            record = json.loads(text)
            if "patches" in record:
                places = [_unpacked(packed) for packed in record["patches"]]
                left.places.update(dict.fromkeys(places))
            elif "borrows" in record:
                place = _unpacked(record["borrows"])
                registers = {str(n): _word(v) for n, v in record["registers"].items()}
                mask = None if record["mask"] is None else _word(record["mask"])
                leave, thread = _word(record["leave"]), _word(record["thread"])
                left.passages[place.address] = Passage(
                    place=place, thread=thread, leave=leave, registers=registers, mask=mask
                )
                last = place.address
            elif "gives_back" in record:
                left.passages.pop(last, None)
            elif "maps" in record:
                left.mapped.add(_range(record["maps"]))
                left.leaving.discard(_range(record["maps"]))
            elif "leaves" in record:
                left.leaving.add(_range(record["leaves"]))
            elif "unmaps" in record:
                gone = _range(record["unmaps"])
                left.mapped = {p for p in left.mapped if not _overlap(p, gone)}
                left.leaving = {p for p in left.leaving if not _overlap(p, gone)}
            elif "debugger" in record:
                left.went_on = False
            elif "stands" in record:
                left.stood = bool(record["stands"])
            elif "went_on" in record:
                left.went_on = True
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return left


def left(pid: int, folders: Sequence[Path] | None = None) -> Left | None:
    """What the journals of a process say that a debugger which is gone has left in it; ``None``:
    there are none."""
    users = {os.geteuid(), 0, *_users(pid)}
    if folders is None:
        folders = [folder for user in sorted(users) for folder in _folders(user)]
    found: Left | None = None
    try:
        name = name_of(pid)
    except TargetError:
        return None
    for folder in folders:
        data = _read(folder / name, users)
        if data is None:
            continue
        one = parse(data)
        if found is None:
            found = one
        else:
            found.places.update(one.places)
            found.passages.update(one.passages)
            found.mapped |= one.mapped
            found.leaving |= one.leaving
            found.stood = found.stood or one.stood
            found.went_on = found.went_on and one.went_on
        found.files.append(folder / name)
    return found


def _read(file: Path, users: set[int]) -> bytes | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        folder, found = file.parent.lstat(), os.fstat(descriptor)
        if folder.st_uid not in users or folder.st_mode & 0o022:
            return None
        if not _is_believed(found, users):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as opened:
            return opened.read(_SIZE_LIMIT)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _users(pid: int) -> set[int]:
    """The user that a process runs as, if it is one alone: who writes its journal may as well write
    into the process."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return set()
    for line in text.splitlines():
        if line.startswith("Uid:"):
            ids = {int(word) for word in line.split()[1:]}
            return ids if len(ids) == 1 else set()
    return set()


# ----------------------------------------------------------------------------- taking out


def is_darcs(place: Place, live: bytes) -> bool:
    """Whether ``live`` is what a debugger may have left of a place: it is not as it was, and every
    byte is darc's, the program's or a breakpoint of that debugger's."""
    if live == place.original or len(live) != len(place.original):
        return False
    if len(live) > 1 and live == bytes([_BREAKPOINT]) * len(live):
        return live == place.written  # what others fill code with, where the file was unloaded
    known = zip(live, place.original, place.written, strict=True)
    return all(byte in (old, new, _BREAKPOINT) for byte, old, new in known)
