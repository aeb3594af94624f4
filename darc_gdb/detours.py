"""Calls in a program that gdb has attached to: see :mod:`darc.detour`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import gdb

from darc import detour, procfs
from darc.errors import TargetError

if TYPE_CHECKING:
    from darc_gdb.target import GdbTarget

_ATTEMPTS = 20


def find_place(pid: int) -> int | None:
    """Where code may stand for a moment: the zeros behind a file's code, up to the page's end."""
    with procfs.Memory(pid) as memory:
        for region in procfs.regions(pid):
            if "x" in region.permissions and region.path.startswith("/"):
                place = region.end - detour.LENGTH
                if not any(memory.read(place, detour.LENGTH)):
                    return place
    return None


def call(target: GdbTarget, place: int, number: int, address: int, arguments: Sequence[int]) -> int:
    """Calls a function in the selected thread, which rings with the signal ``number``, at which gdb
    stops; the others stay."""
    pid, thread = target.pid, gdb.selected_thread()
    assert pid is not None
    tid = thread.ptid[1]
    registers = {name: target.read_register(tid, name) for name in detour.REGISTERS}
    way = detour.plan(registers, place, _ringer(pid, tid, number), address, arguments)
    target.write(way.stack, way.data)
    target.write(place, way.code)
    try:
        target.write_register(tid, "rip", way.entry)
        with target.on_errand(), gdb.with_parameter("scheduler-locking", "on"):
            _go(target, tid, way)
        return int.from_bytes(target.read(way.result, 8), "little")
    finally:
        if thread.is_valid():
            for name, value in way.registers.items():
                target.write_register(tid, name, value)
            target.write(place, bytes(len(way.code)))


def _ringer(pid: int, tid: int, number: int) -> detour.Ringer:
    fields = procfs.status(pid, tid)
    process, own = (procfs.status(pid, task).get("NSpid", str(task)) for task in (pid, tid))
    blocked = int(fields.get("SigBlk", "0"), 16)
    return detour.Ringer(int(process.split()[-1]), int(own.split()[-1]), number, blocked)


def _go(target: GdbTarget, tid: int, way: detour.Detour) -> None:
    for _ in range(_ATTEMPTS):
        gdb.execute("continue", to_string=True)
        if target.pid is None:
            raise TargetError("the program ended in a call of darc's")
        if way.rung <= target.read_register(tid, "rip") < way.entry + len(way.code):
            return
    raise TargetError("a call of darc's in the program does not come back")
