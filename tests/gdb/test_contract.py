"""The contract of a target, kept by gdb and lldb: the checks are those of the made-up one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.checks import CHECKS
from tests.debugger import LLDB, NEWEST, PLAIN_GDB, ROOT, debug
from tests.lldb import runner

HERE = ROOT / "tests" / "contract"

NOT_FOR_LLDB = {"pending": "lldb has no setting for it: its own breakpoints always wait"}
"""Checks that make no sense in lldb, and why."""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contract")
    flags = ["-g", "-O1", "-fPIE", "-pie", "-pthread"]
    source, library = HERE / "program.c", folder / "empty.c"
    library.write_text("int nothing;\n")
    commands: tuple[list[str | Path], ...] = (
        ["gcc", *flags, "-o", folder / "program", source],
        ["gcc", "-shared", "-fPIC", "-o", folder / "empty.so", library],
    )
    for command in commands:
        subprocess.run(command, check=True)
    return folder / "program"


@pytest.mark.parametrize("check", CHECKS)
def test_gdb(
    check: str,
    program: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packages = [path for path in sys.path if path.endswith("-packages")]
    monkeypatch.setenv("CONTRACT_CHECK", check)
    monkeypatch.setenv("CONTRACT_PACKAGES", os.pathsep.join(packages))
    arguments = (str(program.with_name("empty.so")),)
    runner = f"source {HERE / 'inside_gdb.py'}"
    done = debug(tmp_path, program, arguments, [runner], gdb=PLAIN_GDB)
    assert "\ncontract: kept\n" in done.gdb, done.gdb


@pytest.mark.debuggers(LLDB, NEWEST, long=(NEWEST,))
@pytest.mark.parametrize("check", CHECKS)
def test_lldb(check: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if check in NOT_FOR_LLDB:
        pytest.skip(NOT_FOR_LLDB[check])
    packages = [path for path in sys.path if path.endswith("-packages")]
    monkeypatch.setenv("CONTRACT_CHECK", check)
    monkeypatch.setenv("CONTRACT_PACKAGES", os.pathsep.join(packages))
    arguments = (str(program.with_name("empty.so")),)
    imported = f"command script import {HERE / 'inside_lldb.py'}"
    done = runner.debug(tmp_path, program, arguments, [imported], plain=True)
    assert "\ncontract: kept\n" in done.gdb, done.gdb
