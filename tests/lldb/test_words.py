"""The commands of the registry in lldb: help, parameters and errors are those of every debugger."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from darc.app import commands
from darc.app.parameters import PARAMETERS, Parameter
from fixtures.build import build
from tests.lldb.runner import Done, debug, mark


def words(text: str) -> list[str]:
    return text.split()


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Done:
    asked = []
    for name in commands.COMMANDS:
        asked += [mark(name), f"help darc {name}"]
    for parameter in PARAMETERS:
        name = parameter.name.replace("-", "_")
        asked += [mark(f"set_{name}"), f"help set darc {parameter.name}"]
        asked += [mark(f"show_{name}"), f"show darc {parameter.name}"]
    return debug(tmp_path_factory.mktemp("help"), None, (), [*asked, mark("end")])


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_help(name: str, helped: Done) -> None:
    shown = words(helped.section(name))
    expected = words(commands.help_text(name))
    begin = next(i for i in range(len(shown)) if shown[i : i + 3] == expected[:3])
    assert any(shown[i : i + len(expected)] == expected for i in range(begin, len(shown)))


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_parameters(parameter: Parameter, helped: Done) -> None:
    name = parameter.name.replace("-", "_")
    text = " ".join(words(helped.section(f"set_{name}")))
    assert " ".join(words(commands.parameter_help(parameter.name))) in text
    default = parameter.default_text
    assert f"darc {parameter.name}: {default}\n" in helped.section(f"show_{name}")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("darc peak", "darc peak needs a peak"),
        ("darc status", "nothing is being analysed: type 'darc start FUNCTION'"),
        ("set darc peak nonsense", "'nonsense' is not a peak"),
        ("darc start handle", "there is no program: type 'file PROGRAM', or attach"),
        ("darc report --format pdf", "pdf"),
    ],
)
def test_errors_are_one_line(command: str, line: str, tmp_path: Path) -> None:
    done = debug(tmp_path, None, (), [command])
    (shown,) = (text for text in done.gdb.splitlines() if text.startswith("error:"))
    assert shown.startswith("error: darc: ")
    assert line in shown
    assert "Traceback" not in done.gdb
    assert done.status == 1


BROKEN = """
import lldb
from darc_lldb.debuggers import DEBUGGERS
(target,) = (one.target for one in DEBUGGERS.values())
def fail(thread):
    raise KeyError("no such thing")
target.at_stop = fail
"""


@pytest.mark.parametrize("verbose", ["off", "on"])
def test_errors_of_the_stop_hook_are_those_of_commands(verbose: str, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    begin = [f"command script import {script}", f"set darc verbose {verbose}"]
    done = debug(
        tmp_path, build("mixture"), (), [*begin, "breakpoint set -n main", "process launch"]
    )
    told = "darc: internal error: KeyError('no such thing') ('set darc verbose on' shows where)"
    assert told in done.gdb
    assert ("Traceback" in done.gdb) is (verbose == "on")


def test_settings_are_reached_by_their_short_name(tmp_path: Path) -> None:
    commands_ = ["set set target.run-args one", "set show target.run-args", mark("end")]
    assert '"one"' in debug(tmp_path, None, (), commands_).gdb


JUMPS_AT_ONCE = r"""
__asm__(".globl _start\n_start: jmp begin");
__attribute__((noinline)) long handle(long n)
{
    for (volatile long i = 0; i < n; i++)
        ;
    return n;
}
__attribute__((used)) static void begin(void)
{
    for (long i = 0; i < 2000; i++)
        handle(i % 64 ? 100 : 100000);
    __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
}
"""


def test_a_program_whose_first_instruction_is_a_jump(tmp_path: Path) -> None:
    """It has no dynamic linker, and stands at that instruction when lldb has launched it."""
    (tmp_path / "jumps.c").write_text(JUMPS_AT_ONCE)
    build = ["gcc", "-O1", "-static", "-nostdlib", "-o", "jumps", "jumps.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    done = debug(tmp_path, tmp_path / "jumps", (), ["darc start handle", "run", "darc status"])
    # lldb is not told of its end: what the latest look has shown is known.
    told = r"^  (\d+) calls seen(?: of 100|, and no later one could be read: .*)$"
    seen = re.findall(told, done.gdb, re.M)
    assert seen, done.gdb
    assert 100 <= int(seen[0]) <= 2000, done.gdb
