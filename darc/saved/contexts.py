"""Calling contexts as JSON: what ``darc contexts --format json`` writes, and reads as a base.

The tree is a flat list, each node after its parent, as paths may be longer than JSON readers like
to nest. Times are in ns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from darc.model.contexts import Context, Cost, FunctionName, coverage, measured_tree
from darc.model.errors import FormatError, NotFoundError, TargetError, UsageError
from darc.saved import perfscript, storage
from darc.saved.checked import (
    DamagedFileError,
    damaged,
    read_count,
    read_list,
    read_mapping,
    read_number,
    read_object,
    read_text,
)

FORMAT = "darc contexts"
"""What the file calls itself."""

VERSION = 1
LARGEST_FILE = 1 << 30
"""Bytes."""

SLOWEST = 0.01
"""The share of contexts that coverage is told of besides (IntroPerf 5.3)."""


def nodes_to_json(tree: Context) -> tuple[list[dict[str, Any]], dict[Context, int]]:
    """The nodes, and their numbers in the list."""
    numbers: dict[Context, int] = {}
    made: list[dict[str, Any]] = []
    for node in tree.walk():
        numbers[node] = len(made)
        made.append(
            {
                "parent": numbers.get(node.parent) if node.parent is not None else None,
                "function": node.function.name,
                "module": node.function.module,
                "measured": _cost(node.measured),
                "inferred": _cost(node.inferred),
            }
        )
    return made, numbers


def _cost(cost: Cost | None) -> dict[str, float] | None:
    if cost is None:
        return None
    return {"calls": cost.calls, "ns": cost.ns, "at_most": cost.at_most}


def coverage_to_json(tree: Context) -> dict[str, Any]:
    """How many of the measured contexts stacks have shown, of all and of the slowest."""
    parts = {"all": coverage(tree), "slowest": coverage(tree, SLOWEST)}
    return {key: {"contexts": one.contexts, "seen": one.seen} for key, one in parts.items()}


# ------------------------------------------------------------------------------------ reading


def read_any(file: Path) -> Context:
    """The contexts in a file of ``darc save``, of ``darc contexts --format json`` or of perf
    script, whichever it is.

    Raises:
        UsageError: it is a session in which nothing was measured yet.
        DarcError: it is none of them, or cannot be read.
    """
    if not _is_json(file):
        return perfscript.read_file(file).tree
    data = _data(file)
    content = _content(data)
    if isinstance(content, dict) and content.get("format") == FORMAT:
        try:
            return from_json(content)
        except DamagedFileError as error:
            raise FormatError(f"{file} {error}") from None
    stored = storage.from_bytes(data, str(file))
    tree = measured_tree(stored.root, stored.profile.hz)
    if tree is None:
        raise UsageError(
            f"{file} holds no measured tree: save the session again behind a search's first level"
        )
    return tree


def _is_json(file: Path) -> bool:
    """Whether a file begins as JSON does. What cannot be read is said by who reads it next."""
    try:
        if not file.exists():
            raise NotFoundError(f"there is no file {file}; name one that 'darc save' made")
        if not file.is_file():
            raise UsageError(f"{file} is not a file; name one that 'darc save' made")
        with file.open("rb") as stream:
            return stream.read(64).lstrip()[:1] == b"{"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"cannot read {file}: {reason}; name another file") from error


def _data(file: Path) -> bytes:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise FormatError(f"{file} is far too large")
        return file.read_bytes()
    except OSError as error:
        raise TargetError(f"cannot read {file}: {error.strerror}; name another file") from error


def _content(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None  # the reader of sessions says what is wrong


def from_json(content: object) -> Context:
    """The tree of a file's content.

    Raises:
        DamagedFileError: it is not as ``darc contexts`` would write it.
    """
    top = read_mapping(content, "the file")
    version = read_count(top.get("version"), "version", least=1)
    if version > VERSION:
        raise DamagedFileError(f"is of version {version}, and this darc reads up to {VERSION}")
    tree = Context()
    nodes: list[Context] = []
    for number, row in enumerate(read_list(top.get("nodes"), "nodes")):
        where = f"nodes[{number}]"
        found = read_object(row, where, "parent function module measured inferred")
        above = tree
        if found["parent"] is not None:
            above = nodes[read_count(found["parent"], f"{where}.parent", most=number - 1)]
        function = FunctionName(
            read_text(found["function"], f"{where}.function"),
            read_text(found["module"], f"{where}.module"),
        )
        if function in above.children:
            damaged(where, "another function than its siblings")
        node = above.child(function)
        node.measured = _read_cost(found["measured"], f"{where}.measured")
        node.inferred = _read_cost(found["inferred"], f"{where}.inferred")
        nodes.append(node)
    return tree


def _read_cost(content: object, where: str) -> Cost | None:
    if content is None:
        return None
    found = read_object(content, where, "calls ns at_most")
    return Cost(*(read_number(found[key], f"{where}.{key}") for key in ("calls", "ns", "at_most")))
