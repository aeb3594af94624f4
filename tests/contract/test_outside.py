"""Who may start threads and programs, write files, and speak to the terminal: named here, and
nobody else. What the debugger itself is asked to print goes through ``darc/app`` and a screen."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
THREADS = {"darc/target/ownthread.py": "one that no signal comes to"}
ESCAPES = {"darc/app/liveline.py": "the line that changes"}

Finder = Callable[[ast.AST], bool]


def name_of(node: ast.expr) -> str:
    """``os.open``, ``open``; of a method of what is no name, ``.open``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = node.value
        return f"{inner.id if isinstance(inner, ast.Name) else ''}.{node.attr}"
    return ""


def is_thread(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(
        re.search(r"(^|\.)(Thread|Timer|\w*PoolExecutor|start_new_thread)$", name_of(node.func))
    )


def is_program(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(
        re.match(
            r"(subprocess\.(run|Popen|call|check_\w+)|(os)?\.(fork|exec\w+|posix_spawnp?|system|popen))$",
            name_of(node.func),
        )
    )


def is_writing(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = name_of(node.func)
    method = name.rpartition(".")[2]
    if name == "os.write":  # to a terminal: see is_speech
        first = node.args[0]
        return not (isinstance(first, ast.Constant) and first.value in (1, 2))
    if name == "os.open":
        flags = ast.dump(node)
        return any(word in flags for word in ("O_WRONLY", "O_RDWR", "O_CREAT", "'flags'"))
    if method in ("open", "fdopen"):
        place = 1 if name in ("open", "io.open", "os.fdopen") else 0  # else a path's method
        modes = node.args[place : place + 1]
        modes += [word.value for word in node.keywords if word.arg == "mode"]
        texts = [one.value for one in modes if isinstance(one, ast.Constant)]
        return any(isinstance(text, str) and set(text) & set("wax+") for text in texts)
    return (
        method in ("write_text", "write_bytes", "pwrite", "pwritev", "ftruncate", "symlink_to")
        or method in ("mkdir", "makedirs", "touch", "mkfifo")
        or name.startswith("tempfile.")
        or name in ("shutil.copy", "shutil.copyfile", "shutil.copytree", "shutil.move")
    )


def is_speech(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and name_of(node.func) == "os.write":
        first = node.args[0]
        return isinstance(first, ast.Constant) and first.value in (1, 2)
    if isinstance(node, ast.Call):
        return name_of(node.func) in ("print", "console.print", "input")
    return isinstance(node, ast.Attribute) and name_of(node) in ("sys.stdout", "sys.stderr")


def is_escape(node: ast.AST) -> bool:
    """A sequence that a terminal obeys."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    return isinstance(value, bytes) and bool(re.search(rb"\x1b[\[\]()]", value))


@functools.cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), str(file))


def found(finder: Finder, tree: ast.Module) -> Iterator[int]:
    return (node.lineno for node in ast.walk(tree) if finder(node) and isinstance(node, ast.expr))


RULES = {
    "starts a thread": (is_thread, THREADS),
    "starts a program": (is_program, STARTERS),
    "writes": (is_writing, WRITERS),
    "speaks past the debugger": (is_speech, SPEAKERS),
    "has escapes of a terminal": (is_escape, ESCAPES),
}


@pytest.mark.parametrize("deed", RULES)
def test_who_reaches_outside(deed: str) -> None:
    finder, allowed = RULES[deed]
    wrong, used = [], set[str]()
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            name = str(file.relative_to(ROOT))
            by = [one for one in allowed if name == one or name.startswith(f"{one.rstrip('/')}/")]
            lines = list(found(finder, tree_of(file)))
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
        ("starts a program", "subprocess.run(['true'])"),
        ("starts a program", "os.execv('/bin/true', [])"),
        ("writes", "open('x', 'w')"),
        ("writes", "open('x', mode='r+b')"),
        ("writes", "folder.joinpath('x').open('a')"),
        ("writes", "os.open('x', os.O_RDWR)"),
        ("writes", "Path('x').write_text('y')"),
        ("writes", "os.write(descriptor, b'x')"),
        ("speaks past the debugger", "print('x')"),
        ("speaks past the debugger", "sys.stderr.write('x')"),
        ("speaks past the debugger", "os.write(2, b'x')"),
        ("has escapes of a terminal", r"'\x1b[31m'"),
    ],
)
def test_each_is_noticed(deed: str, line: str) -> None:
    finder, _ = RULES[deed]
    assert list(found(finder, ast.parse(line)))


@pytest.mark.parametrize("line", ["open('x')", "os.open('x', os.O_RDONLY)", "Path('x').open('rb')"])
def test_who_reads_does_not_write(line: str) -> None:
    assert not list(found(is_writing, ast.parse(line)))
