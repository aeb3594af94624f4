"""Inside gdb with darc: prints how long each stop of a descent lasted for the program, in cycles
of its time-stamp counter, from the ringing of the bell until the program went on."""

import gdb

from darc.pad_collector import PadCollector
from darc.target import Bell

cycles: list[int] = []
_pending: list[int] = []
_places: list[tuple[int, int]] = []
_on_bell = PadCollector.on_bell


def _finish_last(start_of_next: int, end: int) -> None:
    if _pending:
        cycles.append(end - _pending.pop())
    if start_of_next:
        _pending.append(start_of_next)


def _observed(self: PadCollector) -> Bell:
    tables = self.tables
    if tables.get("bell"):
        _finish_last(tables.get("bell_start"), tables.get("bell_end"))
        _places[:] = [tables.field("bell_end")]
    return _on_bell(self)


def report() -> None:
    """After the search: the last stop has ended too."""
    address, size = _places[0]
    raw = bytes(gdb.selected_inferior().read_memory(address, size))
    _finish_last(0, int.from_bytes(raw, "little"))
    print("stops", *cycles)


PadCollector.on_bell = _observed  # type: ignore[method-assign]
