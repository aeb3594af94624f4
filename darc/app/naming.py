"""What can be told of a function's name before the program runs, by the program's file, by the
libraries that are loaded with it, and by what the debugger knows of source files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from darc.app.options import number_in
from darc.code.elf import Image
from darc.code.loadtime import loaded_with
from darc.code.midway import why_none
from darc.code.modules import load_image
from darc.code.patterns import Pattern, told_of_missing
from darc.code.spelling import (
    ambiguous,
    find_symbols,
    inlined_only,
    is_called,
    near_names,
    not_found,
    split_offset,
    split_spec,
    symbol_spelling,
)
from darc.model.errors import AmbiguousError, InlinedError, NotFoundError, UsageError
from darc.target.target import Target

_PATTERN = re.compile(r"[^*?<(&\[\s][^*?<(&\[\s]*[*?][\w:*?]*")


def check_form(name: str, command: str) -> None:
    """Raises UsageError: it is a pattern, for many functions, or a bare number."""
    if re.fullmatch(r"0x[0-9a-fA-F]+", name):
        raise UsageError(f"{name} is a number: 'darc {command} *{name}' means the code there")
    if _PATTERN.fullmatch(name) and "operator" not in name:
        raise UsageError(
            f"{name} is a pattern, and 'darc {command}' takes one function: "
            f"'darc profile {name}' times all that it means"
        )


def check_elsewhere(target: Target, name: str) -> None:
    """Of a name that no code has.

    Raises:
        InlinedError: there are copies of it elsewhere.
        UsageError: it is a line of a source file.
    """
    if split_offset(name) is not None:
        return
    scope, last = split_spec(name)
    line = number_in(last)
    if scope is not None and not scope.endswith("!") and line is not None:
        outer = target.symbols.function_at_line(scope, line)
        if outer is not None:
            there = f"{scope}:{outer.split('(', 1)[0]}"
            raise UsageError(f"{name} is a line, and darc times functions: '{there}' holds it")
    outers = target.symbols.inlined_into(last)
    if outers:
        raise InlinedError(inlined_only(name, outers))


def missing(target: Target, name: str, path: Path, progress: Callable[[str], None]) -> str | None:
    """What to say of a ``name`` that nothing has which is known before the program at ``path``
    runs; a library that comes later may have it. ``None``: it is there.

    Raises:
        AmbiguousError: several functions have it.
        DarcError: nothing can come of it.
    """
    if (place := split_offset(name)) is not None:
        return _at_offset(name, place, path, progress)
    scope, last = split_spec(name)
    if scope is None:
        return _plain(target, name, path, progress)
    if scope == "!":
        raise UsageError("the name of a library stands before '!': LIBRARY!FUNCTION")
    if scope.endswith("!"):
        return _of_library(target, name, path, progress)
    image = load_image(path)
    found = set(target.symbols.functions_in(scope, last))
    if found:
        _check_one(name, image, found)
        return None
    check_elsewhere(target, name)
    there = _spellings(image, find_symbols([(image.symbols, 0)], last, progress))
    hint = f": '{there[0]}' is elsewhere" if len(there) == 1 else ""
    if target.symbols.knows_file(scope):
        return (
            f"no function of {scope} is called {last}{hint}"
            if hint
            else not_found(name, _names(image))
        )
    if not image.has_debug_information:
        return f"no source file is called {scope}, as {path.name} has no debug information{hint}"
    return f"no source file of {path.name} is called {scope}{hint}"


def check_patterns(
    patterns: Iterable[Pattern], path: Path, progress: Callable[[str], None]
) -> list[str]:
    """Before the program at ``path`` runs: what to say of patterns that name no file, and mean no
    function of that, nor of the libraries that are loaded with it. Nor will they when the program
    begins.

    Raises:
        NotFoundError: no pattern means any.
    """
    image = load_image(path)
    missing, known = [], list(patterns)
    for pattern in known:
        if pattern.scope is not None or _has_any(image, pattern):
            continue
        libraries = (one for _, one in _libraries(path, progress))
        if not any(_has_any(one, pattern) for one in libraries):
            missing.append(
                f"no function of {path.name}, or of a library that is loaded with it, is called "
                f"{pattern.text}"
            )
    if missing and len(missing) == len(known):
        raise NotFoundError(missing[0])
    return told_of_missing(missing)


def _has_any(image: Image, pattern: Pattern) -> bool:
    return any(pattern.fits(symbol.name) for symbol in image.symbols)


def _plain(target: Target, name: str, path: Path, progress: Callable[[str], None]) -> str | None:
    image = load_image(path)
    found = find_symbols([(image.symbols, 0)], name, progress)
    if found:
        _check_one(name, image, found)
        return None
    if not name.isidentifier() and target.symbols.functions_called(name):
        return None
    libraries = list(_libraries(path, progress))
    if any(find_symbols([(one.symbols, 0)], name, progress) for _, one in libraries):
        return None
    check_elsewhere(target, name)
    return not_found(name, _names(image), _names(*(one for _, one in libraries)))


def _at_offset(
    name: str,
    place: tuple[str, int],
    path: Path,
    progress: Callable[[str], None],
) -> str | None:
    scope, offset = place
    files = [(path, load_image(path))]
    if not is_called(str(path), scope):
        files += _libraries(path, progress)
    meant = [image for file, image in files if is_called(str(file), scope)]
    if not meant:
        return _no_such_library(scope, path, [file for file, _ in files])
    segment = meant[0].segment_of(offset)
    if segment is None or not segment.executable:
        raise NotFoundError(f"at {name} is no code")
    if (why := why_none(meant[0], offset)) is not None:
        raise UsageError(why)
    return None


def _no_such_library(scope: str, path: Path, files: Iterable[Path]) -> str:
    """No file of the program at ``path`` is called as the ``scope`` of what was typed."""
    near = near_names(scope[:-1], (file.name for file in files))
    return f"no library that is loaded with {path.name} is called {scope[:-1]}{near}"


def _of_library(
    target: Target, name: str, path: Path, progress: Callable[[str], None]
) -> str | None:
    scope, last = split_spec(name)
    assert scope is not None
    files = [(path, load_image(path)), *_libraries(path, progress)]
    meant = [image for file, image in files if is_called(str(file), scope)]
    if not meant:
        return _no_such_library(scope, path, [file for file, _ in files])
    for image in meant:
        found = find_symbols([(image.symbols, 0)], last, progress)
        if found:
            _check_one(name, image, found)
            return None
    check_elsewhere(target, name)
    return not_found(name, _names(meant[0]))


def _libraries(path: Path, progress: Callable[[str], None]) -> Iterator[tuple[Path, Image]]:
    for number, (file, image) in enumerate(loaded_with(path), 1):
        progress(f"looks for the function in library {number}, {file.name}")
        yield file, image


def _check_one(name: str, image: Image, addresses: set[int]) -> None:
    """Raises AmbiguousError where several functions of ``image`` are meant, which their whole names
    tell from each other."""
    spellings = _spellings(image, addresses)
    if len(addresses) > 1 and len(spellings) == len(addresses):
        raise AmbiguousError(ambiguous(name, spellings))


def _spellings(image: Image, addresses: set[int]) -> list[str]:
    named = (image.symbols.names_at(address) for address in addresses)
    return sorted({symbol_spelling(names[0]) for names in named if names})


def _names(*images: Image) -> Iterator[str]:
    """What the functions of these are called."""
    return (symbol.name for image in images for symbol in image.symbols)
