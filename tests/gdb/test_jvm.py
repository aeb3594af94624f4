"""A JVM as a distribution has it: it knows by their addresses the instructions that fault."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.build import SOURCES
from tests.debugger import Done, Server, debug, server

pytestmark = pytest.mark.skipif(shutil.which("javac") is None, reason="there is no JDK")

OPTIONS = (
    "-XX:TieredStopAtLevel=1",  # compiled soon, with null checks that the processor makes
    "-XX:-OmitStackTraceInFastThrow",  # and each time with a stack that is read
    "-XX:MaxJavaStackTraceDepth=1024",
    "-XX:+UseSerialGC",
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    java, compiler = shutil.which("java"), shutil.which("javac")
    assert java is not None
    assert compiler is not None
    command = [compiler, "-nowarn", "-d", str(tmp_path), str(SOURCES / "Nulls.java")]
    subprocess.run(command, check=True, capture_output=True)
    with server(Path(java), *OPTIONS, "-cp", str(tmp_path), "Nulls") as made:
        yield made


def analyse(function: str, running: Server, folder: Path) -> Done:
    """Each of its faults is what it would be without darc: the sums are right, and it goes on."""
    commands = [
        "handle SIGSEGV nostop noprint pass",
        f"darc start {function} --peak last --start-ops 300 --max-time 30s",
        "continue",
        "darc status",
        "darc stop",
        "detach",
    ]
    done = debug(folder, None, (), commands, options=["-p", str(running.pid)])
    assert "every probe is out" in done.gdb, done.gdb
    for wrong in ("Traceback", "internal error"):
        assert wrong not in done.gdb, done.gdb
    assert running.finish() == 0
    return done


def test_null_checks_of_a_jvm(running: Server, tmp_path: Path) -> None:
    done = analyse("JVM_FillInStackTrace", running, tmp_path)
    counted = re.search(r"^  (\d+) calls seen, (\d+) in ", done.gdb, re.M)
    assert counted, done.gdb
    assert int(counted[1]) >= 300, done.gdb
    assert int(counted[2]) > 0, done.gdb


@pytest.mark.long
def test_what_a_jvms_own_code_calls_is_not_timed(running: Server, tmp_path: Path) -> None:
    """It looks for the return addresses in it; and it is told."""
    done = analyse("Java_java_lang_Throwable_fillInStackTrace", running, tmp_path)
    assert re.search(r"\d+ calls were not timed: they came from code that was generated", done.gdb)
