"""Where exceptions come back to, against what the compiler says of it in assembly."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from darc.code import lsda
from darc.code.elf import read_image

SOURCE = """
#include <stdexcept>
struct Guard { ~Guard(); };
int guards;
__attribute__((noinline)) Guard::~Guard() { guards++; }
__attribute__((noinline)) void may_throw(int x) { if (x > 3) throw x; }
extern "C" __attribute__((noinline)) int caught(int x)
{
    Guard guard;
    try { may_throw(x); } catch (const std::runtime_error &) { return 1; } catch (int) { return 2; }
    may_throw(x + 1);
    try { may_throw(2); } catch (...) { may_throw(4); }
    return 0;
}
extern "C" __attribute__((noinline)) int plain(int x) { return x + 1; }
int main(int argc, char **) { return caught(argc) + plain(argc); }
"""
_TABLE = re.compile(r"\.L(?:LSDACSB|cst_begin)(\w+):(.*?)\.L(?:LSDACSE|cst_end)\1:", re.S)
_VALUE = re.compile(r"^\s+\.(?:uleb128|byte)\s+(\S+)", re.M)


@pytest.mark.parametrize("options", [("-O2", "-fPIC"), ("-O0", "-fno-pic"), ("-O2", "-fno-pic")])
@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_landing_pads(cxx: str, options: tuple[str, ...], tmp_path: Path) -> None:
    source, compiled, linked = (tmp_path / f"code{end}" for end in (".cpp", ".s", ""))
    source.write_text(SOURCE)
    subprocess.run([cxx, *options, "-S", source, "-o", compiled], check=True)
    link = [cxx, "-Wa,-L", *(["-no-pie"] if "-fno-pic" in options else [])]
    subprocess.run([*link, compiled, "-o", linked], check=True)
    names = subprocess.run(["nm", linked], capture_output=True, text=True, check=True).stdout
    addresses = {words[-1]: words[0] for words in map(str.split, names.splitlines())}

    named = set()
    for _, table in _TABLE.findall(compiled.read_text()):
        labels = [value.split("-")[0] for value in _VALUE.findall(table)[2::4]]
        named |= {int(addresses[label], 16) for label in labels if label != "0"}
    image = read_image(linked, "code")
    found: set[int] = set()
    for function in ("caught", "plain", "main"):
        for name in (function, f"{function}.cold"):
            if name in addresses:
                pads = image.frames.landing_pads(int(addresses[name], 16))
                assert pads is not None
                found |= pads
    assert len(named) >= 3
    assert found == named
    assert image.frames.landing_pads(int(addresses["plain"], 16)) == frozenset()


@pytest.mark.parametrize(
    "table", [b"", b"\xff", b"\xff\xff\x01\x05\x01", b"\xff\xff\x55\x04\0\0\0\0"]
)
def test_damaged_tables(table: bytes) -> None:
    with pytest.raises(ValueError, match=r"exception table|encoding"):
        lsda.landing_pads(table, 0x1000, 0x1000, 0x2000)
