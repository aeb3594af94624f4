"""Memory that is far away, while everything stands still: few large reads and writes for many small
ones.

A debugger behind a serial line or a socket takes as long for eight bytes as for a thousand. While
a batch lasts, lines of memory that were read are kept, and writes wait until :meth:`Batch.flush`,
where those that touch become one.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterator

from darc.model.errors import TargetError
from darc.target.memory import Memory, Read, Write

_LINE = 1024
"""Bytes that are read at once; a reply of QEMU's gdbstub has room for 2047."""

_GAP = 256
"""Bytes between two writes that are written once more rather than sending two: more than a row of
the agent's table of sites."""

_SENT = 1 << 15
"""Bytes of one write at most."""

_Lines = dict[int, tuple[bytearray, list[tuple[int, int]]]]
"""Of each line what is to be written, and where in it."""


class Batch:
    """``read`` and ``write`` go to the memory; what they raise is passed on."""

    def __init__(
        self,
        read: Read,
        write: Write,
        fill: range = range(0),
    ) -> None:
        """In ``fill``, bytes between two writes may be written as they are."""
        self._read = read
        self._write = write
        self._fill = fill
        self._known: dict[int, bytes | None] = {}
        self._data: _Lines = {}
        self._code: _Lines = {}

    def read(self, address: int, size: int) -> bytes:
        """Memory as it will be."""
        if size > _LINE:
            return self._over(address, self._read(address, size))
        parts = []
        at, end = address, address + size
        while at < end:
            line = at // _LINE * _LINE
            known = self._line(line)
            if known is None:
                return self._over(address, self._read(address, size))
            parts.append(known[at - line : end - line])
            at = line + _LINE
        return self._over(address, b"".join(parts))

    def _line(self, line: int) -> bytes | None:
        """As it is; ``None`` where not all of it can be read."""
        if line not in self._known:
            try:
                self._known[line] = self._read(line, _LINE)
            except TargetError:
                self._known[line] = None
        return self._known[line]

    def _over(self, address: int, raw: bytes) -> bytes:
        end = address + len(raw)
        seen: bytearray | None = None
        for line in range(address // _LINE * _LINE, end, _LINE):
            for lines in (self._data, self._code):
                if line not in lines:
                    continue
                seen = seen if seen is not None else bytearray(raw)
                content, places = lines[line]
                for first, last in places:
                    low, high = max(line + first, address), min(line + last, end)
                    if low < high:
                        seen[low - address : high - address] = content[low - line : high - line]
        return raw if seen is None else bytes(seen)

    def write(self, address: int, data: bytes) -> None:
        """To be written."""
        self._add(self._data, address, data)

    def write_code(self, address: int, data: bytes) -> None:
        """To be written behind all that :meth:`write` was given."""
        self._add(self._code, address, data)

    def _add(self, lines: _Lines, address: int, data: bytes) -> None:
        at, end = address, address + len(data)
        while at < end:
            line = at // _LINE * _LINE
            content, places = lines.setdefault(line, (bytearray(_LINE), []))
            last = min(end, line + _LINE)
            content[at - line : last - line] = data[at - address : last - address]
            places.append((at - line, last - line))
            at = last

    def flush(self) -> None:
        """Writes what waits."""
        data, code = self._data, self._code
        self._data, self._code = {}, {}
        for lines in (data, code):
            for address, raw in self._joined(lines):
                for at in range(0, len(raw), _SENT):
                    self._write(address + at, raw[at : at + _SENT])
                self._forget(address, address + len(raw))

    def forget(self) -> None:
        """The memory was changed by others: all is read anew."""
        self._known.clear()

    def _forget(self, start: int, end: int) -> None:
        for line in range(start // _LINE * _LINE, end, _LINE):
            self._known.pop(line, None)

    def _joined(self, lines: _Lines) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each write, where those that are near each other are one."""
        start, raw = 0, bytearray()
        for address, piece in _pieces(lines):
            gap = self._between(start + len(raw), address) if raw else None
            if gap is None:
                if raw:
                    yield start, bytes(raw)
                start, raw = address, bytearray()
            else:
                raw += gap
            raw += piece
        if raw:
            yield start, bytes(raw)

    def _between(self, start: int, end: int) -> bytes | None:
        """What stands between two writes, if they are to be one."""
        if start == end:
            return b""
        if end - start > _GAP or start not in self._fill or end not in self._fill:
            return None
        return self.read(start, end - start)


class BatchedMemory(Memory):
    """Memory of a debugger's whose reads and writes may wait."""

    _batch: Batch | None = None

    @abstractmethod
    def _read(self, address: int, size: int) -> bytes:
        """As :meth:`read`, from the program."""

    @abstractmethod
    def _write(self, address: int, data: bytes) -> None:
        """As :meth:`write`, to the program."""

    def read(self, address: int, size: int) -> bytes:
        return (self._read if self._batch is None else self._batch.read)(address, size)

    def is_there(self, address: int) -> bool:
        try:
            self._read(address, 1)
        except TargetError:
            return False
        return True

    def write(self, address: int, data: bytes) -> None:
        (self._write if self._batch is None else self._batch.write)(address, data)

    def write_code(self, address: int, data: bytes) -> None:
        (self._write if self._batch is None else self._batch.write_code)(address, data)

    @contextlib.contextmanager
    def batched(self, fill: range) -> Iterator[None]:
        if self._batch is not None:
            yield
            return
        self._batch = Batch(self._read, self._write, fill)
        try:
            yield
        finally:
            try:
                self.flush()
            finally:
                self._batch = None

    def flush(self) -> None:
        if self._batch is not None:
            self._batch.flush()

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        self.flush()
        batch, self._batch = self._batch, None
        try:
            yield
        finally:
            self._batch = batch
            if batch is not None:
                batch.forget()


def _pieces(lines: _Lines) -> Iterator[tuple[int, bytes]]:
    """Address and bytes of all that is to be written, in order and nothing twice."""
    for line in sorted(lines):
        content, places = lines[line]
        first, last = -1, -1
        for low, high in sorted(places):
            if low > last:
                if first >= 0:
                    yield line + first, bytes(content[first:last])
                first, last = low, high
            else:
                last = max(last, high)
        yield line + first, bytes(content[first:last])
