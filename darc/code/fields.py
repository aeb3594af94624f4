"""Which part of a variable is meant by an address in it: ``shop.stripes[3].lock``."""

from __future__ import annotations

import re

from darc.target.shapes import Field, Shape

_MOST_LEVELS = 16


def field_at(shape: Shape, offset: int, levels: int = _MOST_LEVELS) -> str | None:
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
        found = field_at(element, within, levels - 1)
        return None if found is None else f"[{number}]{found}"
    fields = shape.fields()
    for field in fields:
        within = offset - field.offset
        if within in range(field.shape.size):  # of a union they are several
            found = field_at(field.shape, within, levels - 1)
            if found is not None:
                return f".{field.name}{found}" if _is_shown(field) else found
    return None if fields or offset else ""


def _is_shown(field: Field) -> bool:
    return bool(field.name) and not _LIBRARYS.match(field.name)


_LIBRARYS = re.compile(r"_[A-Z]|__")
"""What the C++ library calls its own fields, which nobody knows."""

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
