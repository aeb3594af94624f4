"""What the name of a function that somebody types can become."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from darc.code.beginnings import names_beginning
from darc.code.elf import Image
from darc.code.modules import load_image
from darc.code.patterns import unnamed_starts
from darc.code.program import Program
from darc.code.spelling import is_called, split_spec
from darc.target.target import State, Target
from darc.views.words import LOG_NAME_WIDTH


def functions_beginning(target: Target, program: Callable[[], Program], prefix: str) -> list[str]:
    """Functions whose name begins with ``prefix``: of the ``program``, where one is there, else of
    the file that the debugger has. Raises DarcError: it cannot be looked at."""
    file, plus, digits = prefix.rpartition("+")
    if plus and file and "0x".startswith(digits[:2]):
        return _offsets_beginning(target, _images(target, program, f"{file}!"), file, prefix)
    scope, start = split_spec(prefix)
    if scope is not None and not scope.endswith("!"):
        found = target.symbols.functions_of(scope, start)
        return sorted(f"{scope}:{name}" for name in found if name.startswith(start))
    files = (image.symbols for image in _images(target, program, scope))
    names = names_beginning(files, start, target.screen.most_completions, LOG_NAME_WIDTH)
    return [(scope or "") + name for name in names]


def _offsets_beginning(target: Target, images: list[Image], file: str, prefix: str) -> list[str]:
    """Functions of ``file`` that are called by where they are in it, as they have no symbol."""
    found = itertools.chain.from_iterable(map(unnamed_starts, images))
    spelt = (f"{file}+{offset:#x}" for offset in found)
    fitting = (one for one in spelt if one.startswith(prefix))
    return sorted(itertools.islice(fitting, target.screen.most_completions))


def _images(target: Target, program: Callable[[], Program], scope: str | None) -> list[Image]:
    """The files of the program; those of the name in ``scope``, as ``lib.so!``, if any."""
    if target.state is not State.NONE:
        known = program()
        if known.has_more:  # of a kernel: its modules
            known.look_further()
        return [module.image for module in known.names.modules_called(scope)]
    path = target.executable
    if path is None or (scope is not None and not is_called(path, scope)):
        return []
    return [load_image(Path(path))]
