"""The names of files as gdb tells them: it has them in characters of the locale, and fails where a
name has bytes that are none. A program may lie anywhere."""

from __future__ import annotations

import gdb


def file_name(of: gdb.Objfile | gdb.Progspace | gdb.Symtab) -> str | None:
    """``None``: it has no name, or one that gdb cannot tell."""
    try:
        name = of.filename
    except UnicodeError:
        return None
    return str(name) if name else None


def is_untold(of: gdb.Objfile | gdb.Progspace) -> bool:
    """Whether it has a name that gdb cannot tell."""
    try:
        _ = of.filename
    except UnicodeError:
        return True
    return False


def files_at(address: int) -> list[gdb.Objfile]:
    """The file at ``address``, as far as gdb has read one; where it cannot tell its name, all whose
    names it cannot tell."""
    space = gdb.current_progspace()
    if space is None:
        return []
    try:
        name = space.solib_name(address) or space.filename
    except UnicodeError:
        return [file for file in gdb.objfiles() if is_untold(file)]
    file = gdb.lookup_objfile(name) if name else None
    return [] if file is None else [file]
