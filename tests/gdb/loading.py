"""A debugger that loads darc when it has begun."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fixtures.build import build
from tests.debugger import GDB, LOAD, Done, current, watched


def plain(
    folder: Path,
    commands: list[str],
    variables: Mapping[str, str],
    *,
    load: Path | None = None,
    before: str = "",
) -> Done:
    """A debugger that loads darc when it has begun; ``before`` is Python that it runs first."""
    program = str(build("mixture"))
    if current() == GDB:
        command = ["gdb", "-nx", "-q", "-batch", "-ex", "set args 20000 > program.out"]
        words = [f"python {before}"] if before else []
        words += [f"source {load or LOAD}", *commands]
        command += [part for word in words for part in ("-ex", word)]
        return Done(*watched(folder, [*command, program], variables))
    from tests.lldb import runner

    lldb, needed = runner.plain_lldb(runner.chosen_lldb())
    words = [f"script {before}"] if before else []
    words += [f"command script import {load or runner.LOAD}"]
    words += ["settings set target.output-path program.out", "settings set target.run-args 20000"]
    words += runner.translated(commands)
    command = [*lldb, "-x", "-b", *(part for word in words for part in ("-o", word))]
    return Done(*watched(folder, [*command, program], {**needed, **variables}))
