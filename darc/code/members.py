"""Which part of a variable is meant by an address in it: ``shop.stripes[3].lock``."""

from __future__ import annotations

import re

from darc.target.shapes import Member, Shape

_MOST_LEVELS = 16


def member_at(shape: Shape, offset: int, levels: int = _MOST_LEVELS) -> str | None:
    """What to write behind the name of a variable with this ``shape``, to say what is ``offset``
    bytes into it: something that threads wait for, or a word. Empty: the variable itself.
    ``None``: the debug information does not tell."""
    if is_waited_for(shape.name):
        return ""
    if offset not in range(shape.size) or not levels:
        return None
    element = shape.element()
    if element is not None:
        number, within = divmod(offset, max(element.size, 1))
        found = member_at(element, within, levels - 1)
        return None if found is None else f"[{number}]{found}"
    members = shape.members()
    for member in members:
        within = offset - member.offset
        if within in range(member.shape.size):  # of a union they are several
            found = member_at(member.shape, within, levels - 1)
            if found is not None:
                return f".{member.name}{found}" if _is_shown(member) else found
    return None if members or offset else ""


def _is_shown(member: Member) -> bool:
    return bool(member.name) and not _LIBRARYS.match(member.name)


_LIBRARYS = re.compile(r"_[A-Z]|__")
"""What the C++ library calls its own members, which nobody knows."""

_POSIX = re.compile(r"pthread_\w+_t|sem_t|mtx_t|cnd_t")
_STANDARD = re.compile(
    r"(?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex|condition_variable(?:_any)?"
    r"|(?:counting_|binary_)?semaphore|barrier|latch|atomic(?:_\w+)?"
    r"|Mutex|ReentrantLock|RwLock|Condvar|Once|Barrier|Atomic\w+"
)
"""C++'s and Rust's."""


def is_waited_for(name: str) -> bool:
    """Whether a type of this name is something that threads wait for as a whole, whatever it is
    made of itself."""
    plain = re.sub(r"<.*", "", name).removeprefix("struct ")
    if _POSIX.fullmatch(plain):
        return True
    scope, _, last = plain.rpartition("::")
    return bool(scope) and _STANDARD.fullmatch(last) is not None
