"""What holds for every test: what tests begin is as it is in a terminal, and what is said of a file
of tests is not said again of one in it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.contract.names import walk
from tests.contract.tree import parsed, python_files

ROOT = Path(__file__).resolve().parents[2]
IN_A_BACKGROUND_JOB = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
import tests.conftest
hears = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
subprocess.run([sys.executable, "-c", hears], check=True)
"""
AT_THE_END = """
import gc
import tests.conftest
class Left:
    def __del__(self):
        print("is collected")
left = Left()
left.itself = left
del left
tests.conftest.pytest_sessionfinish()
print("is done", len(gc.get_objects()) < 100)
"""


def test_nothing_is_left_for_a_collection_behind_the_end() -> None:
    command = [sys.executable, "-c", AT_THE_END]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "is collected\nis done True\n", done.stderr


def test_what_tests_begin_hears_ctrl_c_in_a_background_job() -> None:
    command = [sys.executable, "-c", IN_A_BACKGROUND_JOB]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n", done.stderr


def marks_of(tree: ast.Module) -> set[str]:
    """What a file says of all of its tests."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=ast.List(elts=marks)):
                return set(map(ast.unparse, marks))
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=mark):
                return {ast.unparse(mark)}
    return set()


def marked_again(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a test has a mark that its file has: whoever changes that of the file misses it."""
    marks = marks_of(tree)
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for by in node.decorator_list:
                if ast.unparse(by) in marks:
                    yield by.lineno, ast.unparse(by)


def test_a_files_mark_is_not_a_tests_as_well() -> None:
    wrong = [
        f"{file}:{line}: the file is marked with {mark}"
        for file in python_files("tests")
        for line, mark in marked_again(parsed(file))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_mark_that_stands_twice_is_noticed() -> None:
    tests = "@IN_BOTH\n@skip\ndef test_one(): ...\n@NEWEST\ndef test_two(): ...\n"
    assert list(marked_again(ast.parse(f"pytestmark = IN_BOTH\n{tests}"))) == [(2, "IN_BOTH")]
    assert list(marked_again(ast.parse(f"pytestmark = [skip, IN_BOTH]\n{tests}"))) == [
        (2, "IN_BOTH"),
        (3, "skip"),
    ]
    assert not list(marked_again(ast.parse(tests)))
