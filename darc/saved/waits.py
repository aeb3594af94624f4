"""Who kept ops waiting, in a session file: the part called ``waits``.

What single ops have of it (events, words of stacks) means nothing once the program is gone: the
file has what was merged of them, with its names.
"""

from __future__ import annotations

from collections.abc import Mapping

from darc.model.ops import ObjectKind, OpClass
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.saved.checked import (
    damaged,
    read_choice,
    read_count,
    read_list,
    read_mapping,
    read_object,
    read_text,
)

PART = "waits"
"""What the part is called."""


def to_part(waits: Mapping[OpClass, Waits]) -> dict[str, object]:
    """The part, as JSON values."""
    return {
        kept_as.value: {
            "ops": one.ops,
            "cycles": one.cycles,
            "lost": one.lost,
            "not_followed": one.not_followed,
            "moments": one.moments,
            "objects": [object_to_json(waited) for waited in one.objects],
        }
        for kept_as, one in waits.items()
    }


def object_to_json(one: WaitedFor) -> dict[str, object]:
    """One object, as JSON values: here, and in the report."""
    return {
        "kind": one.kind.value,
        "name": one.name,
        "path": list(one.path),
        "cycles": one.cycles,
        "ops": one.ops,
        "waits": one.waits,
        "holders": [_holder_to_json(holder) for holder in one.holders],
    }


def _holder_to_json(holder: Holder) -> dict[str, object]:
    more: dict[str, object] = {"outside": True} if holder.is_outside else {}
    if holder.behind:
        more["behind"] = [_holder_to_json(one) for one in holder.behind]
    return {
        "role": holder.role.value,
        "thread": holder.thread,
        "threads": list(holder.threads),
        "path": list(holder.path),
        "cycles": holder.cycles,
        "ops": holder.ops,
        **more,
    }


def from_part(content: object) -> dict[OpClass, Waits]:
    """The waits of the part.

    Raises:
        FormatError: it is not as :func:`to_part` would make it.
    """
    if not isinstance(content, dict):
        damaged(f"parts.{PART}", "an object")
    return {
        read_choice(OpClass, name, f"parts.{PART}"): _waits(value, f"parts.{PART}.{number}")
        for number, (name, value) in enumerate(content.items())
    }


def _waits(content: object, where: str) -> Waits:
    more = read_mapping(content, where).keys() & {"not_followed", "moments"}
    found = read_object(content, where, " ".join(("ops cycles lost objects", *more)))
    rows = read_list(found["objects"], f"{where}.objects")
    return Waits(
        ops=read_count(found["ops"], f"{where}.ops"),
        cycles=read_count(found["cycles"], f"{where}.cycles"),
        objects=tuple(
            _waited_for(row, f"{where}.objects[{number}]") for number, row in enumerate(rows)
        ),
        lost=read_count(found["lost"], f"{where}.lost"),
        not_followed=read_count(found.get("not_followed", 0), f"{where}.not_followed"),
        moments=read_count(found.get("moments", 0), f"{where}.moments"),
    )


def _waited_for(content: object, where: str) -> WaitedFor:
    found = read_object(content, where, "kind name path cycles ops waits holders")
    rows = read_list(found["holders"], f"{where}.holders")
    return WaitedFor(
        kind=read_choice(ObjectKind, found["kind"], f"{where}.kind"),
        name=read_text(found["name"], f"{where}.name"),
        path=_names(found["path"], f"{where}.path"),
        cycles=read_count(found["cycles"], f"{where}.cycles"),
        ops=read_count(found["ops"], f"{where}.ops"),
        waits=read_count(found["waits"], f"{where}.waits"),
        holders=tuple(
            _holder(row, f"{where}.holders[{number}]") for number, row in enumerate(rows)
        ),
    )


_DEEPEST = 64
"""A file with more than that is damaged."""


def _holder(content: object, where: str, depth: int = 0) -> Holder:
    if depth > _DEEPEST:
        damaged(where, f"at most {_DEEPEST} one behind the other")
    more = read_mapping(content, where).keys() & {"outside", "behind"}
    found = read_object(content, where, " ".join(("role thread path cycles ops threads", *more)))
    outside = found.get("outside", False)
    if not isinstance(outside, bool):
        damaged(f"{where}.outside", "true or false")
    threads = read_list(found["threads"], f"{where}.threads")
    return Holder(
        role=read_choice(Role, found["role"], f"{where}.role"),
        thread=read_text(found["thread"], f"{where}.thread"),
        path=_names(found["path"], f"{where}.path"),
        cycles=read_count(found["cycles"], f"{where}.cycles"),
        ops=read_count(found["ops"], f"{where}.ops"),
        threads=tuple(read_count(number, f"{where}.threads") for number in threads),
        is_outside=outside,
        behind=tuple(
            _holder(row, f"{where}.behind", depth + 1)
            for row in read_list(found.get("behind", []), f"{where}.behind")
        ),
    )


def _names(content: object, where: str) -> tuple[str, ...]:
    return tuple(read_text(name, where) for name in read_list(content, where))
