"""Which files may have a function, told without reading all of their symbols."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from darc.code.modules import Module, load_image
from darc.code.names import Names
from darc.code.spelling import find_symbols

SOURCE = """
int network(int x) { return x; }
int workers(int x) { return x; }
int other(int) __asm__("_ZN8workshop3runEv");
int other(int x) { return x; }
int found(int) __asm__("SYMBOL");
int found(int x) { return x; }
"""


def library(folder: Path, symbol: str) -> Path:
    source, made = folder / "some.c", folder / "libsome.so"
    source.write_text(SOURCE.replace("SYMBOL", symbol))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source], check=True, timeout=60)
    return made


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("work", "work"),
        ("work", "work.part.0"),
        ("work", "_ZN3app4workEi"),
        ("app::work", "_ZN3app4workEi"),
        ("work", "_ZN3app4workIiEEvT_"),
        ("work", "_RNvCs1234_3app4work"),
        ("_1st", "_RNvCs1234_3app4__1st"),
    ],
)
def test_a_function_is_found_however_its_symbol_is_made(
    name: str, symbol: str, tmp_path: Path
) -> None:
    image = load_image(library(tmp_path, symbol))
    assert len(find_symbols([(image.symbols, 0)], name)) == 1


def test_a_file_is_not_read_for_a_name_that_others_only_contain(tmp_path: Path) -> None:
    image = load_image(library(tmp_path, "homework_"))
    assert not find_symbols([(image.symbols, 0)], "work")
    assert "_symbols" not in vars(image.symbols)


ASSEMBLER = """
        .text
        .globl  first
first:  ret
        .skip   15, 0x90
second: .globl  second
        ret
        .skip   0x1100, 0x90
        .globl  sized
        .type   sized, @function
sized:  nop
        nop
        ret
        .size   sized, . - sized
"""


class One:
    """A program of one file, at an address of its own."""

    BIAS = 0x10000

    def __init__(self, path: Path) -> None:
        module = Module(
            path=str(path),
            name=path.name,
            bias=self.BIAS,
            start=self.BIAS,
            end=self.BIAS + 0x4000,
            image=load_image(path),
        )
        self.modules = (module,)

    def module_at(self, address: int) -> Module | None:
        (module,) = self.modules
        return module if module.start <= address < module.end else None


def test_a_symbol_without_a_size_names_no_other_function_that_a_call_enters(tmp_path: Path) -> None:
    """As in libraries with functions in assembler, most of whose symbols are stripped."""
    source, made = tmp_path / "some.s", tmp_path / "libsome.so"
    source.write_text(ASSEMBLER)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", made, source], check=True, timeout=60)
    program = One(made)
    names, (module,) = Names(program), program.modules
    at = {name: s.address + One.BIAS for s in module.image.symbols for name in [s.name]}
    for name in ("first", "second", "sized"):
        assert names.entered_at(at[name]).name == names.function_at(at[name]).name == name
    behind = at["second"] + 8
    assert names.function_at(behind).name == "second", "it may be its own code"
    entered = names.entered_at(behind)
    assert (entered.name, entered.address) == (f"libsome.so+{behind - One.BIAS:#x}", behind)
    far = at["second"] + 0x1000
    assert names.function_at(far).name == f"libsome.so+{far - One.BIAS:#x}"
    middle = names.entered_at(at["sized"] + 1)
    assert (middle.name, middle.address) == ("sized", at["sized"] + 1)
