"""Compilers whose runtime finds the frames of its own code by their return addresses.

A garbage collector that knows from the return address what a frame holds does not know that of a
landing: it reads past its tables, or takes the frame for another one. Nothing hides landings from
it, as it is no unwinder, and runs at any allocation. Code that is made while the program runs needs
no name here: none of it is ever patched, and its calls of f0 are not timed (see
:meth:`darc.code.program.Program.ordinary_code`).
"""

from __future__ import annotations

from darc.code.elf import Image

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


def walks_stacks(image: Image) -> str | None:
    """The compiler of such code in this file; ``None`` where there is none."""
    for section, compiler in _SECTIONS.items():
        if image.has_section(section):
            return compiler
    for symbol, compiler in _SYMBOLS.items():
        if image.defines(symbol):
            return compiler
    stripped = not image.has_section(".symtab")
    if stripped and not image.defines(_BYTECODE) and image.holds(_OCAML):
        return "OCaml"
    return None
