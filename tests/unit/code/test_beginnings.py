"""Completion of function names: the same ones as by reading every name, of which few are read."""

from __future__ import annotations

import re
import subprocess

import pytest

from darc.code import beginnings
from darc.code.beginnings import names_beginning
from darc.code.demangle import display_name
from darc.code.modules import load_image
from darc.code.symbols import FunctionSymbols

NAMES = """
#include <string>
namespace ab { struct Sum { int n; Sum(); ~Sum(); Sum operator+(const Sum &) const; };
Sum::Sum() {} Sum::~Sum() {} Sum Sum::operator+(const Sum &) const { return *this; }
template <class T> T twice(T v) { return v + v; } template int twice(int);
std::string text(const Sum &) { return ""; }
namespace { void hidden() {} } void *p = (void *)hidden; }
void other(ab::Sum) {} template <class T> T std_like(ab::Sum, T v) { return v; }
template int std_like(ab::Sum, int);
namespace std { void made() {} } extern "C" void ab_plain() {}
"""


@pytest.fixture(scope="module")
def symbols(tmp_path_factory: pytest.TempPathFactory) -> FunctionSymbols:
    folder = tmp_path_factory.mktemp("names")
    (folder / "names.cc").write_text(NAMES)
    command = ["g++", "-shared", "-fPIC", "-o", "names.so", "names.cc"]
    subprocess.run(command, cwd=folder, check=True)
    return load_image(folder / "names.so").symbols


@pytest.mark.parametrize(
    "start",
    "a ab ab:: ab::S ab::Sum::S ab::Sum::~ ab::Sum::op ab::tw std:: std::m st int (anon "
    "S Sum Sum:: Sum::S Sum::op tw twice<i hidden made".split(),
)
def test_all_that_begin_so(start: str, symbols: FunctionSymbols) -> None:
    """With their scopes, or without."""
    expected: set[str] = set()
    for name in {display_name(symbol.name) for symbol in symbols}:
        colons = [] if name.startswith("std::") else [at.end() for at in re.finditer("::", name)]
        spellings = [name, *(name[at:] for at in colons)]
        expected |= {*[one for one in spellings if one.startswith(start)][:1]}
    assert names_beginning([symbols], start, None, 1000) == sorted(expected)
    assert expected or start in ("int", "made")  # nobody writes the library's so


def test_more_than_are_listed_are_not_read(
    symbols: FunctionSymbols, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is typed is not made longer than all the names allow."""
    read: list[str] = []

    def display(raw: str) -> str:
        read.append(raw)
        return display_name(raw)

    monkeypatch.setattr(beginnings, "display_name", display)
    found = names_beginning([symbols], "ab::", 2, 1000)
    assert len(found) == 3
    assert not any(raw.startswith(("_Z5other", "_Z8std_like", "ab_plain")) for raw in read)
    assert found[0][len("ab::")] != found[1][len("ab::")]
    assert len(names_beginning([symbols], "ab::Sum::", 2, 1000)) == 3
