"""Files with code of compilers whose runtimes find frames by return addresses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from darc.code.elf import Image
from darc.code.runtimes import check, walks_stacks
from darc.model.errors import UnsupportedError

OCAML = "OCaml"


def image(folder: Path, source: str, *flags: str) -> Image:
    program = folder / "program"
    file = folder / "program.c"
    file.write_text(source + "\nint main(void) { return 0; }\n")
    subprocess.run(["gcc", file, "-o", program, *flags], check=True)
    return Image(program.read_bytes(), "program")


@pytest.mark.parametrize(
    ("source", "flags", "compiler"),
    [
        ("", (), None),
        ("void *caml_frametable[1];", (), OCAML),
        ("void *caml_frametable[1];", ("-s", "-Wl,-E"), OCAML),
        ('const char *volatile name = "OCAMLRUNPARAM";', ("-s", "-static"), OCAML),
        ('const char *volatile name = "OCAMLRUNPARAM";', (), None),
        (
            'const char *volatile name = "OCAMLRUNPARAM"; void caml_interprete(void) {}',
            ("-s", "-Wl,-E"),
            None,
        ),
        ("extern int caml_frametable[] __attribute__((weak)); int *x = caml_frametable;", (), None),
        ('__asm__(".section .svm_heap,\\"a\\"\\n.quad 0\\n.text");', ("-s",), "GraalVM"),
        ('__asm__(".section __managedcode,\\"ax\\"\\n.quad 0\\n.text");', ("-s",), ".NET"),
    ],
    ids=[
        "none",
        "symbols",
        "exported",
        "stripped",
        "a word",
        "bytecode",
        "not its own",
        "native-image",
        "dotnet",
    ],
)
def test_compilers(
    source: str, flags: tuple[str, ...], compiler: str | None, tmp_path: Path
) -> None:
    found = walks_stacks(image(tmp_path, source, *flags))
    assert found is None if compiler is None else found is not None and compiler in found


def test_go_is_refused_by_its_file(tmp_path: Path) -> None:
    section = '__asm__(".section .gopclntab,\\"a\\"\\n.quad 1\\n.text");'
    with pytest.raises(UnsupportedError, match="fzf is a Go program"):
        check(image(tmp_path, section), "fzf")


def test_long_code_without_frame_information(tmp_path: Path) -> None:
    """A little is what people write, a lot is what a machine makes."""
    for size, count in ((100_000, 0), (600_000, 1)):
        code = f'__asm__(".text\\n.skip {size}, 0x90\\nlast: ret");'
        made = image(tmp_path, code)
        assert len(made.frames.unframed) == count
        if count:
            [(low, high)] = made.frames.unframed
            [last] = [s.address for s in made.symbols if s.name == "last"]
            assert low <= last - size
            assert last < high
    made = image(tmp_path, code, "-fno-asynchronous-unwind-tables", "-nostartfiles", "-Wl,-emain")
    assert not made.frames.unframed, "nothing tells there what is ordinary"
