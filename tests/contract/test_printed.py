"""What debuggers' commands print is text that changes with their releases: few files read it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.contract.names import walk
from tests.contract.tree import ROOT, parsed

READERS = {
    "darc_gdb/deciding.py": "nothing: it is shown as it is",
    "darc_gdb/printed.py": "what gdb tells in no other way",
    "darc_gdb/remote.py": "packets of a machine's",
    "darc_lldb/otherhooks.py": "which stop hooks there are",
    "darc_lldb/server.py": "packets of lldb's helper",
    "darc_lldb/commands.py": "nothing: it is shown as it is",
}


def places(package: str) -> Iterator[tuple[str, int]]:
    """Where what a command prints is taken."""
    for file in sorted((ROOT / package).glob("*.py")):
        tree = parsed(file)
        dropped = {
            id(node.value if isinstance(node, ast.Expr) else node.body)
            for node in walk(tree)
            if isinstance(node, ast.Expr | ast.Lambda)
        }
        for node in walk(tree):
            if isinstance(node, ast.Call) and id(node) not in dropped and is_read(node):
                yield f"{package}/{file.name}", node.lineno


def is_read(call: ast.Call) -> bool:
    """Whether it gives what a command has printed."""
    text = ast.unparse(call.func)
    return text.endswith(".GetOutput") or (
        text == "gdb.execute" and any(one.arg == "to_string" for one in call.keywords)
    )


def test_who_reads_what_commands_print() -> None:
    found = [place for package in ("darc_gdb", "darc_lldb") for place in places(package)]
    wrong = [f"{file}:{line}" for file, line in found if file not in READERS]
    assert not wrong, "\n".join(wrong)
    assert {file for file, _ in found} == READERS.keys()
