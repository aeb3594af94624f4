"""Runs darc-lldb in batch and watches over it, as :mod:`tests.debugger` does with gdb, and puts
gdb's commands into lldb's words."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from darc.model.refusal import Refusal
from darc_lldb import launcher
from tests import debugger

DARC_LLDB = (sys.executable, str(debugger.ROOT / "darc_lldb" / "launcher.py"))
LOAD = debugger.ROOT / "darc_lldb" / "load.py"
TOOLS = f"command script import {debugger.ROOT / 'tests' / 'lldb' / 'inside_lldb.py'}"

PROMPT = r"\(lldb\) \x1b\[0m ?\x1b\[8G"
"""What lldb writes when it waits for a command on a terminal; it writes a prompt by itself before
commands of other origins too."""

EXIT = "tell-exit"
"""A command for :func:`debug`: its result is in :attr:`Done.program_status`."""


@dataclass(frozen=True)
class Done(debugger.Done):
    """A batch run of lldb that has ended; ``gdb`` is what lldb wrote."""

    @property
    def program_status(self) -> int:
        """What the program ended with, or the signal that killed it. A command too many behind that
        ends lldb: its own words are enough."""
        found = re.findall(r"^Process \d+ exited with status = (-?\d+)", self.gdb, re.M)
        assert found, self.gdb
        return int(found[-1])

    def section(self, name: str) -> str:
        """Without the commands, which lldb repeats in batch, and without its word for errors."""
        return re.sub(r"^\(lldb\) .*\n|^error: (?=darc: )", "", super().section(name), flags=re.M)


def mark(name: str) -> str:
    """A command that begins a :meth:`Done.section`."""
    return f"script print('<{name}>')"


def debug(
    folder: Path,
    program: Path | None,
    args: Sequence[str],
    commands: Sequence[str],
    *,
    options: Sequence[str] = (),
    plain: bool = False,
) -> Done:
    """Runs lldb in batch, in ``folder``, on ``program``, whose output goes to files of its own.
    ``plain`` is lldb without darc, which :data:`LOAD` loads.

    Raises:
        HangError: it did not end.
    """
    lldb, variables = (plain_lldb if plain else _loading_lldb)(chosen_lldb())
    command = [*lldb, "-x", "-b", *options]
    if any(word.startswith(_TOOL_COMMANDS) for word in commands):
        commands = [TOOLS, *commands]
    if program is not None:
        for name, file in (("output", "program.out"), ("error", "program.err")):
            command += ["-o", f"settings set target.{name}-path {folder / file}"]
    for one in commands:
        command += ["-o", one]
    if program is not None:
        command += ["--", str(program), *args]
    return Done(*debugger.watched(folder, command, variables))


def on_terminal() -> tuple[Sequence[str], dict[str, str]]:
    """The command that starts darc-lldb for a person, and what to set in its environment."""
    chosen = chosen_lldb()
    return (*DARC_LLDB, "-x"), {launcher.LLDB: chosen} if chosen else {}


# --------------------------------------------------------------------------- which lldb


def chosen_lldb() -> str | None:
    """The lldb that the test is to run with, ``None`` for the system's: the newest one, or that
    which the environment of pytest names."""
    if debugger.current() == debugger.NEWEST:
        return newest_lldb()
    return os.environ.get(launcher.LLDB)


@functools.cache
def newest_lldb() -> str:
    """The newest lldb that the system has packages of."""
    script = debugger.ROOT / "tools" / "newest-lldb.sh"
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def plain_lldb(wanted: str | None) -> tuple[Sequence[str], dict[str, str]]:
    """lldb alone, and the environment in which its Python works."""
    lldb, chosen = _usable(wanted)
    return (lldb,), chosen


@functools.cache
def _loading_lldb(wanted: str | None) -> tuple[Sequence[str], dict[str, str]]:
    """What ``darc-lldb`` becomes, and what it sets."""
    return launcher.loading(*_usable(wanted))


@functools.cache
def _usable(wanted: str | None) -> tuple[str, dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        if wanted:
            patch.setenv(launcher.LLDB, wanted)
        usable = launcher.find_usable()
    assert not isinstance(usable, Refusal), usable
    return usable


# -------------------------------------------------------------------------- lldb's words

_TOOL_COMMANDS = ("attempt ", "complete ", "tell-exit")
"""Those of :data:`TOOLS` that need not be asked for."""

_SAME = re.compile(
    r"(darc|set darc|show darc|help|run|print|continue|bt|next|step|finish|up|detach|quit|attempt|"
    r"tell-code|watch-code|tell-watched|interrupt-at|complete|with-app|start-at|tell-exit|slow-decisions|"
    r"breakpoint|process|thread|settings|script|command)\b.*",
    re.S,
)
_ONCE = {"t": "-o true ", "": ""}


def _break(found: re.Match[str]) -> str:
    how, place, condition = _ONCE[found["once"]], found["place"], found["condition"]
    option = "-l" if place.isdigit() else "-a" if place.startswith("*") else "-n"
    text = f"breakpoint set {how}{option} {place.removeprefix('*')}"
    return f"{text} -c '{condition}'" if condition else text


_WORDS = (
    (r"echo <(\w+)>\\n", lambda found: mark(found[1])),
    (r"source .*/tests/inside_gdb\.py", lambda _: TOOLS),
    (r"source .*/darc_gdb/load\.py", lambda _: f"command script import {LOAD}"),
    (re.escape(debugger.EXIT), lambda _: EXIT),
    (r"attach (\d+)", lambda found: f"process attach -p {found[1]}"),
    (r"kill", lambda _: "process kill"),
    (r"starti", lambda _: "process launch -s"),
    (r"delete", lambda _: "breakpoint delete -f"),
    (r"set confirm off", lambda _: "settings set auto-confirm true"),
    # lldb passes the signals of the threads' library on by itself.
    (r"handle SIG32 nostop noprint pass", lambda _: "settings show auto-confirm"),
    (
        r"handle ((?:SIG[A-Z]+ ?)+) nostop noprint pass",
        lambda found: f"process handle {found[1]} -s false -n false -p true",
    ),
    # lldb stops at every exec by itself.
    (r"catch exec", lambda _: "settings show auto-confirm"),
    # lldb's breakpoints always wait for libraries.
    (r"set breakpoint pending (on|off)", lambda _: "settings show auto-confirm"),
    (
        r"set disable-randomization (on|off)",
        lambda found: f"settings set target.disable-aslr {str(found[1] == 'on').lower()}",
    ),
    (r"run( \d+)? > (\S+)", lambda found: f"process launch -o {found[2]} --{found[1] or ''}"),
    (r"(?P<once>t?)break (?P<place>\S+)(?: if (?P<condition>.*))?", _break),
)


def translated(commands: Sequence[str]) -> list[str]:
    """gdb's commands in lldb's words.

    Raises:
        LookupError: there are none for one of them.
    """
    return [_translated(command) for command in commands]


def _translated(command: str) -> str:
    for pattern, word in _WORDS:
        found = re.fullmatch(pattern, command)
        if found is not None:
            return word(found)
    if _SAME.fullmatch(command) is None:
        raise LookupError(f"no word of lldb's for: {command}")
    return command
