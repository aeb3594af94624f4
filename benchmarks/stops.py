"""Inside a debugger with darc: prints how long each stop of a descent lasted for the program, in
cycles of its time-stamp counter, from the ringing of the bell until the program went on; and for
how many of them darc was on a processor, which is the same on a busy machine."""

import time
from unittest import mock

from darc.agent.fieldnames import ControlField
from darc.collectors.pad_collector import PadCollector
from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.pads.backend import BellOutcome

cycles: list[int] = []
own: list[int] = []
_pending: list[int] = []
_places: list[tuple[int, int, int]] = []
_on_bell = PadCollector.on_bell


def _finish_last(start_of_next: int, end: int) -> None:
    if _pending:
        cycles.append(end - _pending.pop())
    if start_of_next:
        _pending.append(start_of_next)


def _observed(self: PadCollector) -> BellOutcome:
    tables = self.tables
    rang = bool(tables.bell)
    if rang:
        _finish_last(tables.bell_start, tables.bell_end)
        assert self.foothold is not None
        _places[:] = [(self.foothold.identity, *tables.field(ControlField.BELL_END))]
    begin = time.thread_time()
    try:
        return _on_bell(self)
    finally:
        if rang:
            own.append(int((time.thread_time() - begin) * self.counting.hz))


def report() -> None:
    """After the search: the last stop has ended too. Where the program has ended as well, it is not
    known how long that was."""
    pid, address, size = _places[0]
    try:
        with procfs.MemoryFile(pid) as memory:
            _finish_last(0, int.from_bytes(memory.read(address, size), "little"))
    except TargetError:
        own.pop()
    print("stops", *cycles)
    print("processor", *own)


mock.patch.object(PadCollector, "on_bell", _observed).start()
