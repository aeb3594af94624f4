"""Which files may have a function, told without reading all of their symbols."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from darc.code.modules import load_image
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
