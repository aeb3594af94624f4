"""Compilers whose runtime moves the stacks of its code, or looks for frames by return addresses.

Go copies a stack that has become too small, with the return addresses of pads in it. A garbage
collector that knows from the return address what a frame holds does not know that of a landing: it
reads past its tables, or takes the frame for another one. Nothing hides landings from it, as it is
no unwinder, and runs at any allocation. Code that is made while the program runs needs no name
here: none of it is ever patched, and its calls of f0 are not timed (see
:meth:`darc.code.patchable.Patchable.ordinary_code`).
"""

from __future__ import annotations

import weakref

from darc.code.elf import Image
from darc.model.errors import UnsupportedError

_GO_SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid")
"""What tells a Go program, in every version and build mode of Go, also when it is stripped."""

_SECTIONS = {
    "__managedcode": ".NET (ahead of time)",
    ".svm_heap": "GraalVM's native-image",
}
"""What tells such code, also where it is stripped."""

_SYMBOLS = {
    "caml_frametable": "OCaml",
    "_kDartIsolateSnapshotInstructions": "Dart",
    "mono_aot_file_info": "Mono (ahead of time)",
}
"""And symbols, which are exported where nothing else tells."""

_OCAML = b"\0OCAMLRUNPARAM\0"
"""In every program with OCaml's runtime, also when its symbols are gone."""

_BYTECODE = "caml_interprete"
"""The interpreter of OCaml's bytecode, which has a stack of its own."""


_HARMLESS: weakref.WeakSet[Image] = weakref.WeakSet()
"""Files that were looked through: a program may load others all the time."""


def check(image: Image, name: str) -> None:
    """
    Raises:
        UnsupportedError: the file of this ``name`` has code of such a compiler.
    """
    if image in _HARMLESS:
        return
    check_sections(image, name)
    compiler = walks_stacks(image)
    if compiler is not None:
        raise _walks(name, compiler)
    _HARMLESS.add(image)


def check_sections(image: Image, name: str) -> None:
    """The same by what a file's section headers tell, at once: of the others it takes a look at
    their symbols, and at all that is in them.

    Raises:
        UnsupportedError: the file of this ``name`` has code of such a compiler.
    """
    if any(map(image.has_section, _GO_SECTIONS)):
        raise UnsupportedError(
            f"{name} is a Go program, whose runtime moves stacks: darc cannot time it yet"
        )
    for section, compiler in _SECTIONS.items():
        if image.has_section(section):
            raise _walks(name, compiler)


def _walks(name: str, compiler: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} has code of {compiler}, whose garbage collector looks for its return "
        "addresses on the stack: darc cannot time it yet"
    )


def walks_stacks(image: Image) -> str | None:
    """The compiler of such code in this file; ``None`` where there is none."""
    for section, compiler in _SECTIONS.items():
        if image.has_section(section):
            return compiler
    for symbol, compiler in _SYMBOLS.items():
        if image.symbols.defines(symbol):
            return compiler
    stripped = not image.has_section(".symtab")
    if stripped and not image.symbols.defines(_BYTECODE) and image.holds(_OCAML):
        return "OCaml"
    return None
