"""Who may start threads and programs, send signals, call C code, write files, and speak to the
terminal: named here, and nobody else. What the debugger itself is asked to print goes through
``darc/app`` and a screen."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.contract.names import UNKNOWN, Names, imported, name_of, names_in, walk
from tests.contract.tree import ROOT, parsed

PACKAGES = ("darc", "darc_gdb", "darc_lldb", "kgdb")

WRITERS = {
    "darc/agent/build.py": "the agent, where darc is installed",
    "darc/debuggee/guardian.py": "pipes to what watches over a debugger",
    "darc/debuggee/journal.py": "what in a program is not its own",
    "darc/debuggee/procfs.py": "a program's memory",
    "darc/saved/files.py": "reports and sessions, all of one or nothing",
    "darc_lldb/frames.py": "the agent as lldb takes it, for a moment",
    "darc_lldb/watcher.py": "a pipe that wakes a thread of darc's",
    "darc_lldb/farewell.py": "a pipe that wakes a thread of darc's",
    "kgdb/vm/": "guests, kernels and disks for them",
}
SPEAKERS = {
    "darc/app/launching.py": "before there is a debugger",
    "darc/app/liveline.py": "the line that changes",
    "darc/views/style.py": "onto a console in memory",
    "darc_gdb/remote.py": "while gdb is busy and keeps what is written to itself",
    "darc_gdb/screen.py": "a question, whose answer is typed behind it",
    "darc_lldb/load.py": "before there is a screen",
    "kgdb/vm/": "darc-vm, which no debugger runs",
}
STARTERS = {
    "darc/agent/build.py": "the compiler",
    "darc/app/launching.py": "a debugger: to ask what it is, and in its own place",
    "darc/debuggee/guardian.py": "what outlives a debugger",
    "kgdb/vm/": "QEMU, and what makes kernels and disks",
}
SENDERS = {
    "darc/app/launching.py": "to a debugger that does not answer",
    "darc/debuggee/admission.py": "to children that a killed debugger has left stopped",
    "darc/debuggee/beside.py": "to lldb's server, and a program that it leaves",
    "darc/target/target.py": "to a program that was stopped for others, too",
    "darc_gdb/detours.py": "to such a program, in a thread of its own",
    "darc_gdb/farewell.py": "to gdb, again, when it may end",
    "darc_gdb/remote.py": "to gdb, as Ctrl-C does",
    "darc_lldb/farewell.py": "to lldb, again, when it may end",
    "kgdb/vm/": "to QEMU",
}
THREADS = {"darc/target/ownthread.py": "one that no signal comes to"}
CALLERS_OF_C = {
    "darc/app/sigactions.py": "sigaction, as the debugger itself sees it",
    "darc/code/demangle.py": "the C++ runtime's demangler",
    "darc/code/jumps.py": "libcallscan",
    "darc/code/scans.py": "libcallscan",
    "darc/code/symscans.py": "libsymscan, which is darc's",
    "darc/debuggee/bell.py": "signals to one thread, with a value",
    "darc/debuggee/companions.py": "kcmp, of who shares the program's memory",
    "darc/debuggee/clock.py": "a few instructions that read the time-stamp counter",
    "darc/debuggee/perf.py": "system calls that Python has not",
    "darc/app/presses.py": "libpresses, which is darc's",
    "darc/debuggee/tracing.py": "ptrace",
    "darc/debuggee/wordscan.py": "libwordscan, which is darc's",
    "darc_gdb/later.py": "what comes as gdb ends",
    "darc_gdb/tracee.py": "tgkill",
    "darc_lldb/overrides.py": "what lldb's module does not hand on",
}
KEEPERS = {
    "darc/app/observer.py": "that the program stands for the user, or goes on",
    "darc/debuggee/borrowing.py": "code that is borrowed for a system call",
    "darc/debuggee/leftbehind.py": "memory that is given back of an earlier debugger",
    "darc/debuggee/mappings.py": "memory that is mapped and given back",
    "darc/debuggee/process_pads.py": "that it stands for a decision, or goes on",
    "darc/pads/patching.py": "patches, whoever has made them",
    "darc_lldb/calls.py": "code that is borrowed for a call",
}
"""What each writes down."""
ESCAPES = {"darc/app/liveline.py": "the line that changes"}

Finder = Callable[[ast.AST, "Names"], bool]


def called(node: ast.AST, names: Names) -> str:
    return name_of(node.func, names) if isinstance(node, ast.Call) else ""


def means(node: ast.AST, names: Names) -> str:
    """What is named, whether it is called there or handed on."""
    return name_of(node, names) if isinstance(node, ast.expr) else ""


def imports_any(node: ast.AST, modules: str) -> bool:
    """Whether it is an import of one of ``modules``, or of what is in it."""
    pattern = rf"({modules})(\.|$)"
    return isinstance(node, ast.Import | ast.ImportFrom) and any(
        re.match(pattern, name) for _, name in imported(node)
    )


def is_thread(node: ast.AST, names: Names) -> bool:
    pattern = r"(^|\.)(Thread|Timer|\w*PoolExecutor|start_new_thread)$"
    made = [called(node, names)]
    if isinstance(node, ast.ClassDef):
        made += [name_of(base, names) for base in node.bases]
    return any(re.search(pattern, one) for one in made) or imports_any(
        node, r"asyncio|concurrent|_thread|socketserver"
    )


def is_program(node: ast.AST, names: Names) -> bool:
    return bool(
        re.match(
            r"(subprocess\.(run|Popen|call|check_\w+|getoutput|getstatusoutput)"
            rf"|os\.(fork(pty)?|exec\w+|spawn\w+|posix_spawnp?|system|popen|{re.escape(UNKNOWN)})"
            rf"|subprocess\.{re.escape(UNKNOWN)})$",
            means(node, names),
        )
    ) or imports_any(node, r"multiprocessing|pty|webbrowser")


def is_signal(node: ast.AST, names: Names) -> bool:
    return means(node, names) in (
        *("os.kill", "os.killpg", "signal.pthread_kill", "signal.pidfd_send_signal"),
        *("signal.raise_signal", "signal.alarm", "signal.setitimer", f"os.{UNKNOWN}"),
    )


def is_c(node: ast.AST, _names: Names) -> bool:
    """By which all of the above can be done, unseen."""
    return imports_any(node, r"_?ctypes|cffi")


CHANGED = {
    *("os.remove", "os.unlink", "os.rename", "os.renames", "os.replace", "os.rmdir", "os.link"),
    *("os.removedirs", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.symlink"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"),
    *("shutil.rmtree",),
}
"""Functions by which files come, go and change."""
CHANGING = {
    *("write_text", "write_bytes", "pwrite", "pwritev", "ftruncate", "symlink_to", "hardlink_to"),
    *("mkdir", "makedirs", "touch", "mkfifo", "unlink", "rename", "rmdir", "chmod"),
}
"""Methods of paths, and functions of ``os``, that do."""


def is_writing(node: ast.AST, names: Names) -> bool:
    name = called(node, names)
    if not isinstance(node, ast.Call) or not name:
        return False
    method = name.rpartition(".")[2]
    if name == "os.write":  # to a terminal: see is_speech
        first = node.args[0]
        return not (isinstance(first, ast.Constant) and first.value in (1, 2))
    if name == "os.open":
        flags = ast.dump(node)
        return any(word in flags for word in ("O_WRONLY", "O_RDWR", "O_CREAT", "'flags'"))
    if method in ("open", "fdopen"):
        return may_write(node, 1 if name in ("open", "io.open", "os.fdopen") else 0)
    return method in CHANGING or name in CHANGED or name.startswith("tempfile.")


def may_write(node: ast.Call, place: int) -> bool:
    """Whether what is opened may be written; the mode is the argument at ``place``, of a path's own
    method 0: a variable one may say so. Others' methods of that name take more than one."""
    modes = node.args[place : place + 1]
    if place == 0 and len(node.args) > 1 and not isinstance(node.args[0], ast.Constant):
        return False
    modes += [word.value for word in node.keywords if word.arg == "mode"]
    texts = [one.value if isinstance(one, ast.Constant) else "w" for one in modes]
    return any(isinstance(text, str) and bool(set(text) & set("wax+")) for text in texts)


def is_speech(node: ast.AST, names: Names) -> bool:
    name = called(node, names)
    if isinstance(node, ast.Call) and name == "os.write":
        first = node.args[0]
        return isinstance(first, ast.Constant) and first.value in (1, 2)
    if name in ("print", "input", "console.print", "rich.print") or name.endswith("Console"):
        return True
    if imports_any(node, r"logging|warnings|faulthandler|pprint|pdb|cgitb"):
        return True
    return bool(
        re.match(
            r"(sys\.(__)?(stdout|stderr|displayhook|excepthook)(__)?|traceback\.print_\w+)$",
            means(node, names),
        )
    )


def is_escape(node: ast.AST, _names: Names) -> bool:
    """A sequence that a terminal obeys, or what begins one."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    return isinstance(value, bytes) and bool(re.search(rb"\x1b([\[\]()]|\Z)", value))


def found(finder: Finder, tree: ast.Module) -> Iterator[int]:
    names = names_in(tree)
    nodes = (node for node in walk(tree) if isinstance(node, ast.expr | ast.stmt))
    return (node.lineno for node in nodes if finder(node, names))


def is_entry(node: ast.AST, names: Names) -> bool:
    """What is written down of the program's changes, of its memory, or of how it stands."""
    return bool(re.search(r"\b_?journal\.(patches|maps|unmap(s|ped)|stands)$", called(node, names)))


def is_limit(node: ast.AST, names: Names) -> bool:
    """Where a target is told for how long it may wait."""
    return called(node, names).endswith(".wait_at_most")


def is_fault(node: ast.AST, names: Names) -> bool:
    """What code is told of the faults that the program handles; nobody else can set that
    (:mod:`tests.contract.test_owners`)."""
    return called(node, names).endswith(".leave_in_place")


def is_file_name(node: ast.AST, _: Names) -> bool:
    """What gdb is asked for the name of a file, and fails at where that is not of the locale."""
    return isinstance(node, ast.Attribute) and node.attr in ("filename", "solib_name")


RULES = {
    "starts a thread": (is_thread, THREADS),
    "starts a program": (is_program, STARTERS),
    "sends signals": (is_signal, SENDERS),
    "calls C code": (is_c, CALLERS_OF_C),
    "writes": (is_writing, WRITERS),
    "speaks past the debugger": (is_speech, SPEAKERS),
    "has escapes of a terminal": (is_escape, ESCAPES),
    "writes into the journal": (is_entry, KEEPERS),
    "says which faults are handled": (
        is_fault,
        {"darc/collectors/faulthandlers.py": "as it looks, and as the program sets others"},
    ),
    "asks gdb for a file's name": (
        is_file_name,
        {
            "darc_gdb/filenames.py": "the one place that knows that gdb may be unable to tell it",
            "darc/agent/build.py": "asks no gdb, but an error which program is not there",
        },
    ),
    "says for how long a target waits": (
        is_limit,
        {"darc/app/beginning.py": "as long as the user lets an analysis take"},
    ),
}


@pytest.mark.parametrize("deed", RULES)
def test_who_reaches_outside(deed: str) -> None:
    finder, allowed = RULES[deed]
    wrong, used = [], set[str]()
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            name = str(file.relative_to(ROOT))
            by = [one for one in allowed if name == one or name.startswith(f"{one.rstrip('/')}/")]
            lines = list(found(finder, parsed(file)))
            if by and lines:
                used.update(by)
            elif lines:
                wrong += [f"{name}:{line} {deed}" for line in lines]
    assert not wrong, "\n".join(wrong) + f"\nthose that may: {', '.join(allowed)}"
    assert used == set(allowed), f"no longer needed: {sorted(set(allowed) - used)}"


@pytest.mark.parametrize(
    ("deed", "line"),
    [
        ("starts a thread", "threading.Thread(target=print)"),
        ("starts a thread", "threading.Timer(1, f)"),
        ("starts a thread", "futures.ThreadPoolExecutor()"),
        ("starts a thread", "class T(threading.Thread): ..."),
        ("starts a thread", "import asyncio; asyncio.run(f())"),
        ("starts a thread", "from concurrent.futures import Executor"),
        ("starts a thread", "import _thread; _thread.start_new_thread(f, ())"),
        ("starts a program", "from multiprocessing import Process"),
        ("starts a program", "import os; o = os; o.system('true')"),
        ("starts a program", "subprocess.run(['true'])"),
        ("starts a program", "os.execv('/bin/true', [])"),
        ("starts a thread", "from threading import Thread as Work; Work(target=print)"),
        ("starts a program", "from subprocess import run; run(['true'])"),
        ("starts a program", "import subprocess as sub; sub.run(['true'])"),
        ("sends signals", "os.kill(1, 9)"),
        ("sends signals", "from os import kill as end; end(1, 9)"),
        ("sends signals", "import os; o = os; o.kill(1, 9)"),
        ("sends signals", "import os; o = os; end = o.kill; end(1, 9)"),
        ("sends signals", "import os; getattr(os, 'kill')(1, 9)"),
        ("sends signals", "import os; getattr(os, word)(1, 9)"),
        ("sends signals", "import os; partial(os.kill, 1)(9)"),
        ("calls C code", "import ctypes; ctypes.CDLL(None).kill(1, 9)"),
        ("calls C code", "from ctypes import CDLL as C; C(None).kill(1, 9)"),
        ("writes", "open('x', 'w')"),
        ("writes", "open('x', mode)"),
        ("writes", "Path('x').open(mode)"),
        ("writes", "Path('x').unlink()"),
        ("writes", "Path('x').rename('y')"),
        ("writes", "os.remove('x')"),
        ("writes", "from os import rename; rename('x', 'y')"),
        ("writes", "shutil.rmtree('x')"),
        ("writes", "open('x', mode='r+b')"),
        ("writes", "folder.joinpath('x').open('a')"),
        ("writes", "os.open('x', os.O_RDWR)"),
        ("writes", "Path('x').write_text('y')"),
        ("writes", "os.write(descriptor, b'x')"),
        ("speaks past the debugger", "print('x')"),
        ("speaks past the debugger", "sys.stderr.write('x')"),
        ("speaks past the debugger", "os.write(2, b'x')"),
        ("speaks past the debugger", "from sys import stderr; stderr.write('x')"),
        ("speaks past the debugger", "from rich.console import Console as C; C().print('x')"),
        ("speaks past the debugger", "import traceback; traceback.print_exc()"),
        ("speaks past the debugger", "import traceback as t; getattr(t, 'print_exc')()"),
        ("speaks past the debugger", "import warnings; warnings.warn('x')"),
        ("speaks past the debugger", "from logging import error; error('x')"),
        ("speaks past the debugger", "import sys; s = sys; s.stderr.write('x')"),
        ("has escapes of a terminal", r"'\x1b[31m'"),
        ("has escapes of a terminal", r"'\x1b' + '[31m'"),
        ("writes into the journal", "self._target.journal.patches([place])"),
        ("says which faults are handled", "program.patchable.leave_in_place(known)"),
        ("asks gdb for a file's name", "str(found.symtab.filename)"),
        ("asks gdb for a file's name", "space.solib_name(address)"),
        ("says for how long a target waits", "self._target.wait_at_most(seconds)"),
    ],
)
def test_each_is_noticed(deed: str, line: str) -> None:
    finder, _ = RULES[deed]
    assert list(found(finder, ast.parse(line)))


@pytest.mark.parametrize("line", ["open('x')", "os.open('x', os.O_RDONLY)", "Path('x').open('rb')"])
def test_who_reads_does_not_write(line: str) -> None:
    assert not list(found(is_writing, ast.parse(line)))
