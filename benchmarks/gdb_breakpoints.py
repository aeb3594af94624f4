"""Inside gdb: times each call of ``leaf`` as a script with two breakpoints would."""

import time

import gdb

entered = 0
nanoseconds: list[int] = []


class _Entry(gdb.Breakpoint):
    def stop(self) -> bool:
        global entered
        entered = time.monotonic_ns()
        return False


class _Return(gdb.Breakpoint):
    def stop(self) -> bool:
        nanoseconds.append(time.monotonic_ns() - entered)
        return False


def _return_address() -> int:
    """Where leaf comes back to in inner."""
    inner = gdb.lookup_global_symbol("inner")
    assert inner is not None
    address = inner.value().address
    assert address is not None
    block = gdb.block_for_pc(int(address))
    assert block is not None
    code = gdb.selected_frame().architecture().disassemble(block.start, block.end - 1)
    call = next(i for i in code if i["asm"].startswith("call") and "<leaf>" in i["asm"])
    return int(call["addr"]) + int(call["length"])


gdb.execute("set pagination off")
gdb.execute("tbreak main", to_string=True)
gdb.execute("run", to_string=True)
_Entry("*leaf", internal=True)
_Return(f"*{_return_address():#x}", internal=True)
gdb.execute("continue")
print("calls", len(nanoseconds))
