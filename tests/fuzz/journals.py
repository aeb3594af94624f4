"""Journals that no darc has written: records of any values, torn ones, other files in their place.

A journal outlives the debugger that wrote it, in a folder of the user's; one of the user whom the
program belongs to is believed by whoever attaches to that.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import random
import tempfile
import zlib
from pathlib import Path
from typing import Any

from darc.code.program import Program
from darc.debuggee import admission, beside, journal
from darc.debuggee.leftbehind import give_back_noted
from darc.debuggee.procfs import MemoryFile
from darc.model.errors import DarcError
from darc.target.target import Passage, Place
from tests.fake_target import FakeTarget
from tests.fuzz import names, session_files

CODE = 0x40_0000
_OWN = ctypes.create_string_buffer(64)
_WORDS: tuple[Any, ...] = (
    0, 1, CODE, CODE + 4095, -1, 1 << 31, (1 << 47) - 1, 1 << 63, (1 << 64) - 4096, (1 << 64) - 1,
    1 << 64, 0.5, True, "4096", ctypes.addressof(_OWN), ctypes.addressof(_OWN) // 4096 * 4096,
)  # fmt: skip
_BYTES: tuple[Any, ...] = ("", "90", "9090909090", "e911223344", "cc", "0", "zz", "90" * 5000, 7)


class _Program(FakeTarget):
    """Has code, a thread in it, and unmaps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()
        self.map(CODE, b"\x90\xe9\x11\x22\x33\x44\xcc" * 600)
        self.add_thread(os.getpid(), rip=CODE + 2, rsp=0x7FFD_0000_0000, fs_base=0)

    def system_call(self, number: int, arguments: object) -> int:
        del number, arguments
        return 0

    def lead_out(self, thread: int, passage: Passage) -> bool:
        for value in (thread, passage.leave, *passage.registers.values()):
            value.to_bytes(8, "little")
        return thread % 2 == 0


def _word(chance: random.Random) -> object:
    if chance.random() < 0.5:
        return CODE + chance.randrange(4096)
    return chance.choice(_WORDS) if chance.random() < 0.8 else chance.choice(session_files.ODD)


def _place(chance: random.Random) -> object:
    made = [_word(chance), chance.choice(_BYTES), chance.choice(_BYTES)]
    if chance.random() < 0.5:
        size = chance.choice((1, 2, 5, 14))
        made[1:] = [chance.randbytes(size).hex(), chance.randbytes(size).hex()]
    return made[: chance.choice((0, 2))] if chance.random() < 0.05 else made


def _record(chance: random.Random) -> object:
    kind = chance.randrange(9)
    if kind == 0:
        return {"patches": [_place(chance) for _ in range(chance.choice((0, 1, 3, 40)))]}
    if kind == 1:
        found = {
            "borrows": _place(chance),
            "thread": _word(chance),
            "leave": _word(chance),
            "registers": {names.made(chance)[:40]: _word(chance), "rip": _word(chance)},
            "mask": chance.choice((None, _word(chance))),
        }
        if chance.random() < 0.1:
            del found[chance.choice(list(found))]
        return found
    if kind in (2, 3, 4):
        return {("maps", "leaves", "unmaps")[kind - 2]: [_word(chance), _word(chance)]}
    if kind == 5:
        return {"stands": chance.choice(session_files.ODD)}
    if kind == 6:
        return {"gives_back": True}
    return chance.choice((chance.choice(session_files.ODD), {"patches": _word(chance)}, "maps"))


def made(chance: random.Random) -> bytes:
    """The bytes of one file."""
    whole = b""
    for _ in range(chance.choice((0, 1, 2, 5, 20))):
        text = json.dumps(_record(chance)).encode()
        if chance.random() < 0.02:
            deep = chance.choice((900, 3000, 100_000))
            text = chance.choice((b"[", b'{"patches":')) * deep
        checksum = zlib.crc32(text) if chance.random() < 0.95 else chance.getrandbits(32)
        whole += b"\n%08x %s\n" % (checksum, text)
    raw = bytearray(whole)
    if raw and chance.random() < 0.2:
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    if chance.random() < 0.2:
        del raw[chance.randrange(len(raw) + 1) :]
    return bytes(raw) + (bytes(chance.randrange(5000)) if chance.random() < 0.1 else b"")


def _put(chance: random.Random, file: Path, content: bytes) -> None:
    """Something that has the journal's name."""
    kind = chance.randrange(12)
    if kind == 0:
        file.mkdir()
    elif kind == 1:
        file.symlink_to(chance.choice(("/dev/zero", "/nowhere", str(file), "/etc/passwd")))
    elif kind == 2:
        os.mkfifo(file)
    else:
        file.write_bytes(content)
        if kind == 3:
            file.chmod(chance.choice((0, 0o666, 0o755, 0o4600)))
        elif kind == 4 and os.geteuid() == 0:
            os.chown(file, 12345, 12345)
        elif kind == 5 and chance.random() < 0.02:
            os.truncate(file, 1 << 27)


def _neighbours(chance: random.Random, folder: Path) -> None:
    boot, namespace, *_ = journal.name_of(os.getpid()).split("-")
    for _ in range(chance.randrange(3)):
        parts = [chance.choice((boot, "b" * 32)), chance.choice((namespace, "1"))]
        words = ("1", "0", "x1", "²", "٣", "9" * 30, "9" * 5000, str(os.getpid()), "a b", "")
        parts += [chance.choice(words), chance.choice(words)]
        with contextlib.suppress(OSError, ValueError):
            (folder / "-".join(parts)[:255]).write_bytes(b"")


def _look(found: journal.Left) -> None:
    target = _Program()
    admission._let_out(target, found)
    admission._put_back(target, found)
    for place in found.places:
        journal.is_darcs(place, bytes(len(place.original)))
        beside._leads_to(place)
    with MemoryFile(os.getpid()) as memory:
        program = Program(target, Path("/"), [])
        give_back_noted(
            target,
            memory,
            program=program,
            pid=os.getpid(),
            noted=found.mapped,
            leaving=found.leaving,
        )
        for place in found.places:
            beside._is_changed(place, memory)


@functools.cache
def _top() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="darc-fuzz-")


def trial(chance: random.Random) -> None:
    """One journal is read, what it says is taken out, and the next debugger writes its own."""
    with tempfile.TemporaryDirectory(dir=_top().name) as name:
        folder = Path(name)
        _put(chance, folder / journal.name_of(os.getpid()), made(chance))
        _neighbours(chance, folder)
        found = journal.left(os.getpid(), [folder])
        if found is not None:
            _look(found)
        own = journal.ProcessJournal(os.getpid(), required=True, folders=[folder])
        with contextlib.suppress(DarcError):
            own.open()
            own.patches([Place(CODE, b"\x90", b"\xcc")])
            own.close(lambda place: False)
        if found is not None:
            found.remove()
