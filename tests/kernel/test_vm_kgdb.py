"""The kernel with kgdb, built from Debian's sources: it stops by its magic key, and goes on."""

from __future__ import annotations

import re

import pytest

from kgdb.vm import kernels
from kgdb.vm.errors import VmError
from kgdb.vm.machine import Machine
from tests.debugger import PLAIN_GDB
from tests.kernel import machines
from tests.kernel.machines import assert_goes_on, darc_vm, debug, workload

BUILD_SECONDS = 3600
"""For hangs alone; the build takes four minutes of two processors that do nothing else."""

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(BUILD_SECONDS)]


machine = machines.shared("stat", kernel="kgdb", cpus=2)


def test_it_stops_for_a_debugger_and_goes_on_again_and_again(machine: Machine) -> None:
    for _ in range(2):
        assert_goes_on(machine)
        assert darc_vm("break").returncode == 0
        seen = debug(
            machine,
            *("break vfs_statx", "continue", "x/i $pc", "info threads", "delete", "detach"),
            gdb=PLAIN_GDB,
        )
        assert re.search(r"=> 0x\w+ <vfs_statx>:\s+(nopl|call)", seen), seen
        assert re.search(r"^\* .*\(stat\)", seen, re.M), seen
    assert_goes_on(machine)


def test_code_can_be_patched_and_memory_be_had() -> None:
    """What pads need: ftrace's nops at the functions' begin, and an allocator for code."""
    config = (kernels.find("kgdb").folder / "config").read_text().splitlines()
    needed = (
        *("KGDB_SERIAL_CONSOLE", "FUNCTION_TRACER", "DYNAMIC_FTRACE", "MODULES", "VMAP_STACK"),
        *("UNWINDER_ORC", "DEBUG_INFO_BTF", "RETPOLINE"),
    )
    for option in needed:
        assert f"CONFIG_{option}=y" in config


def test_a_kernel_without_kgdb_is_not_stopped() -> None:
    with workload("zeroread") as started, pytest.raises(VmError, match="has no kgdb: connect gdb"):
        started.break_in()
