"""gdb's connection to QEMU's gdbstub, which others may let the machine go on beside.

A machine that runs is stopped by any byte that comes to its gdbstub, and that byte is thrown away
(``gdb_read_byte``, gdbstub.c of QEMU): of a packet of gdb's that means all of it. Where the machine
runs though gdb believes that it stands, as QEMU's monitor has let it, gdb waits for an answer that
never comes.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import functools
import os
import re
import select
import socket
import termios
import threading
import time
from pathlib import Path

from darc.target.ownthread import begin_thread
from darc_gdb import printed

_NOTHING = b"+"
"""What stops a machine that runs, and says nothing to one that stands: an acknowledgement."""
_NOT_UNDERSTOOD = b"$#01"
"""A packet with a wrong sum: QEMU asks for it again, and gdb sends its own."""
_OUT_OF_TURN = re.compile(rb"\+?\$T[^#]*#..")
_LOOK = 0.5
"""Seconds between two looks."""
_LOOKS, _LOOKS_FAR = 4, 20
"""After so many at which it was waited for an answer there will be none. The kernel does not tell
of TCP whether QEMU has read the question."""
_SETTLED = 0.2
"""Seconds in which QEMU tells that it has stopped."""
_LONGEST = 256
_SELECTS = frozenset(("23", "270"))
"""``select``, ``pselect6`` (asm/unistd_64.h): where gdb waits for a byte of an answer, as it waits
for nothing else."""


class Line:
    """The connection, beside gdb, by gdb's own descriptor as long as that leads there."""

    def __init__(self, descriptor: int, link: str, *, is_local: bool) -> None:
        self._descriptor = descriptor
        self._link = link
        self._family = socket.AF_UNIX if is_local else socket.AF_INET
        self._looks = _LOOKS if is_local else _LOOKS_FAR
        self._gdb = threading.main_thread().native_id
        self._has_gone_on = False
        self._is_watched = False

    def watch(self) -> None:
        """From now on lost questions are asked again, as long as the connection lasts: where gdb's
        waiting for an answer looks otherwise than that for a machine which runs."""
        if self._is_watched or not printed.waits_by_events():
            return
        self._is_watched = True
        begin_thread(self._watch, "darc-line")

    def hold(self) -> None:
        """Stops the machine, if it runs: what gdb asks from now on is heard."""
        self._say(_NOTHING)

    def has_gone_on(self) -> bool:
        """Whether the machine has run while gdb believed that it stood, since this was asked
        last, or does so at once. It stands now."""
        for _ in range(3):  # who has let it go on may have paused it a moment ago
            self.hold()
            with contextlib.suppress(OSError), self._open() as connection:
                self._has_gone_on |= _tells_of_a_stop(connection)
        gone_on, self._has_gone_on = self._has_gone_on, False
        return gone_on

    def _open(self) -> socket.socket:
        """A copy, to be closed soon: as long as one is open, so is the connection. Raises OSError:
        gdb has closed its own."""
        if _link(self._descriptor) != self._link:
            raise OSError("the connection is closed")
        return socket.fromfd(self._descriptor, self._family, socket.SOCK_STREAM)

    def _say(self, what: bytes) -> None:
        # It may be closed; and where it is full, what is in it stops the machine.
        with contextlib.suppress(OSError), self._open() as connection:
            connection.send(what, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _watch(self) -> None:
        looks = 0
        with contextlib.suppress(OSError):  # until it is closed
            while True:
                time.sleep(_LOOK)
                looks = looks + 1 if self._waits() else 0
                if looks >= self._looks:
                    looks = 0
                    self._has_gone_on = True
                    self._say(_NOTHING + _NOT_UNDERSTOOD)

    def _waits(self) -> bool:
        """Whether gdb waits for an answer, QEMU has read the question, and has said nothing.
        Raises OSError: the connection is closed."""
        with self._open() as connection:
            if _bytes(connection, termios.FIONREAD) or _bytes(connection, termios.TIOCOUTQ):
                return False
        with Path(f"/proc/self/task/{self._gdb}/syscall").open(encoding="ascii") as file:
            call = file.read().split()[0]  # or "running"
        return call in _SELECTS


def _tells_of_a_stop(connection: socket.socket) -> bool:
    """Whether QEMU does that now, which gdb does not ask for."""
    if not select.select([connection], [], [], _SETTLED)[0]:
        return False
    seen = connection.recv(_LONGEST, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    found = _OUT_OF_TURN.match(seen)
    if found is None:
        return False
    connection.recv(found.end(), socket.MSG_DONTWAIT)
    return True


def _bytes(connection: socket.socket, which: int) -> int:
    """That are to be read (``FIONREAD``), or that the other side has not read (``TIOCOUTQ``)."""
    count = array.array("i", [0])
    fcntl.ioctl(connection, which, count)
    return count[0]


def line() -> Line | None:
    """That to the machine which gdb is connected to; ``None``: it is by something else than a
    socket, as a serial line is."""
    where = printed.connection()
    if where is None:
        return None
    for path in Path("/proc/self/fd").iterdir():
        descriptor = int(path.name)
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as one:
            if _leads_to(one.getpeername(), where):
                return _to(descriptor, _link(descriptor), one.family == socket.AF_UNIX)
    return None


@functools.lru_cache(maxsize=1)
def _to(descriptor: int, link: str, is_local: bool) -> Line:
    """One for each connection, however often darc begins there."""
    return Line(descriptor, link, is_local=is_local)


def _leads_to(peer: object, path: str) -> bool:
    if isinstance(peer, str):  # as QEMU has bound it, which may be from another folder
        return bool(peer) and Path(peer).name == Path(path).name
    return isinstance(peer, tuple) and path.endswith(f":{peer[1]}")


def _link(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())
