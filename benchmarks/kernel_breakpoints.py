"""Inside gdb, connected to a kernel: times calls of ``vfs_read`` as a script would, and what that
takes of the guest."""

import time

import gdb

CALLS = 300

since = 0
calls = 0


class _Entry(gdb.Breakpoint):
    def stop(self) -> bool:
        return False


class _Return(gdb.Breakpoint):
    def stop(self) -> bool:
        global since, calls
        if not since:
            # The first one is not counted: gdb reads a good deal for it.
            since = time.monotonic_ns()
            return False
        calls += 1
        return calls == CALLS


def _return_addresses() -> list[int]:
    """Where vfs_read comes back to in the system call's function."""
    symbol = int(gdb.parse_and_eval("(long)&ksys_read")) & (1 << 64) - 1
    architecture = gdb.selected_inferior().architecture()
    code = architecture.disassemble(symbol, symbol + 0xE0)
    calls = [i for i in code if i["asm"].startswith("call") and "<vfs_read>" in i["asm"]]
    return [int(call["addr"]) + int(call["length"]) for call in calls]


gdb.execute("set pagination off")
_Entry("*vfs_read", internal=True)
for address in _return_addresses():
    _Return(f"*{address:#x}", internal=True)
gdb.execute("continue", to_string=True)
print("nanoseconds", (time.monotonic_ns() - since) / calls)
