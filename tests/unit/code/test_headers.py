"""Headers and the linker's table, against what pyelftools and nm say of real files."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from darc.code.elf import Image, read_image
from darc.code.headers import FileContent, Headers, HeldContent
from darc.code.processor import FRAME_AT_ENTRY
from darc.code.program import Program
from darc.debuggee import admission
from darc.model.errors import UnsupportedError
from darc.target.target import Region
from fixtures.build import build
from tests.fake_target import FakeTarget

LIBRARIES = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6")


def _files() -> list[Path]:
    done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if "x86-64" in line]
    found = {row[0]: Path(row[-1]) for row in rows}
    return [found[name] for name in LIBRARIES if name in found]


@pytest.mark.parametrize("path", [*_files(), build("mixture"), build("mixture", strip="all")])
def test_headers_are_those_of_the_file(path: Path) -> None:
    headers = Headers(FileContent(path))
    with path.open("rb") as opened:
        elf = ELFFile(opened)
        assert headers.entry == elf["e_entry"]
        loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        assert [s.address for s in headers.segments] == [s["p_vaddr"] for s in loads]
        assert [s.name for s in headers.sections] == [s.name for s in elf.iter_sections()]
        for mine, theirs in zip(headers.sections, elf.iter_sections(), strict=True):
            assert (mine.address, mine.size) == (theirs["sh_addr"], theirs["sh_size"])
            if theirs["sh_type"] != "SHT_NOBITS" and mine.size:
                assert headers.data(mine) == theirs.data()
        notes = elf.get_section_by_name(".note.gnu.build-id")
        assert notes is None or isinstance(notes, NoteSection)
        told = None if notes is None else next(iter(notes.iter_notes()))["n_desc"]
        assert headers.build_id() == told


@pytest.mark.parametrize("path", _files(), ids=lambda path: path.name)
def test_the_linkers_table_finds_what_a_file_exports(path: Path) -> None:
    image = read_image(path, path.name)
    expected: dict[str, set[int]] = {}
    for symbol in image.symbols:
        if symbol.exported:
            expected.setdefault(symbol.name, set()).add(symbol.address)
    assert len(expected) > 20
    for name, addresses in expected.items():
        assert {symbol.address for symbol in image.symbols.exported(name)} == addresses, name
    assert image.symbols.exported("no such function") == []


def test_only_files_that_define_a_name_are_unpacked() -> None:
    libc = next(path for path in _files() if path.name == "libc.so.6")
    image = read_image(libc, libc.name)
    assert image.symbols.named(["no_such_function"], "___no_such_end") == ()
    jumps = [symbol for symbol in image.symbols if symbol.name in ("longjmp", "siglongjmp")]
    assert jumps
    assert image.symbols.named(["siglongjmp", "longjmp"], "___no_such_end") == tuple(
        sorted(jumps, key=lambda symbol: (symbol.address, symbol.name))
    )
    ends = [symbol for symbol in image.symbols if symbol.name.endswith("jmp")]
    assert set(image.symbols.named((), "jmp")) == set(ends)
    user = read_image(build("mixture"), "mixture")
    assert user.symbols.may_name("__libc_start_main")
    assert user.symbols.named(["__libc_start_main"], "___no_such_end") == ()


def test_what_frame_information_covers_is_what_pyelftools_decodes() -> None:
    libm = next(path for path in _files() if path.name == "libm.so.6")
    with libm.open("rb") as file:
        entries = ELFFile(file).get_dwarf_info().EH_CFI_entries()
        told = [one for one in entries if isinstance(one, FDE)]
    extents = {one["initial_location"]: one["address_range"] for one in told}
    frames = read_image(libm, libm.name).frames
    assert len(extents) > 100
    for start, size in extents.items():
        assert frames.extent(start) == frames.extent(start + size - 1) == (start, start + size)
        if start + size not in extents:
            assert frames.extent(start + size) is None


def test_a_file_that_was_replaced_says_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "program"
    copy.write_bytes(build("mixture").read_bytes())
    image = read_image(copy, "program")
    other = tmp_path / "other"
    other.write_bytes(b"another build")
    other.replace(copy)
    assert not list(image.symbols)
    assert image.frames.extent(image.entry) is None
    assert not image.has_section(".text")
    assert image.identity


@pytest.mark.parametrize("is_same", [True, False])
def test_a_program_in_another_root_folder(is_same: bool, tmp_path: Path) -> None:
    """The kernel tells where its file is for this process, which may not be where it is there."""
    path = build("mixture")
    inode = path.stat().st_ino + (not is_same)
    region = Region(
        start=0x10000, end=0x20000, permissions="r-xp", offset=0, path=str(path), inode=inode
    )
    program = Program(FakeTarget(), tmp_path, [region])
    assert [module.name for module in program.modules] == ([path.name] if is_same else [])


@pytest.mark.parametrize("mapped", ["itself", "another build", "unread"])
@pytest.mark.parametrize("has_build_id", [True, False])
def test_a_file_of_another_inode_is_what_memory_has_or_it_is_refused(
    mapped: str, has_build_id: bool, tmp_path: Path
) -> None:
    """Overlays tell of another inode; where another file was mounted or moved there, nothing of it
    may be taken for the program's."""
    extra = [] if has_build_id else ["-Wl,--build-id=none"]
    path, other = (build("mixture", opt=opt, extra=extra) for opt in ("-O2", "-O1"))
    target = FakeTarget()
    image, base = read_image(path if mapped == "itself" else other, "mixture"), 0x10000000
    for segment in image.segments if mapped != "unread" else ():
        stored = image.loaded(segment.address, segment.size)
        assert stored is not None
        target.map(base + segment.address, stored)
    text = Region(
        start=base, end=base + 0x10000, permissions="r-xp", offset=0, path=str(path), inode=1
    )
    program = Program(target, Path("/"), [text])
    is_it = mapped == "itself"
    assert [module.name for module in program.modules] == ([path.name] if is_it else [])
    assert len(program.missed) == (not is_it)
    if not is_it:
        assert "root may read what is mapped" in program.missed[0]
        with pytest.raises(UnsupportedError, match="another file stands there"):
            admission.check_runtimes(program)


def test_parts_that_are_larger_than_any_memory_are_no_parts() -> None:
    """Python's own sizes end at 2 ** 63: a file that says more must not reach them."""
    data = bytearray(build("mixture").read_bytes())
    headers = Headers(HeldContent(bytes(data)))
    rows = range(headers.table.start, headers.table.stop, 56)
    loaded = [row for row in rows if data[row : row + 4] == b"\1\0\0\0"]
    struct.pack_into("<QQ", data, loaded[0] + 16, 0, 0)  # below all that it is moved to
    struct.pack_into("<QQ", data, loaded[0] + 32, len(data), (1 << 64) - 1)
    sections = int.from_bytes(data[40:48], "little")
    number = next(n for n, s in enumerate(headers.sections) if s.name.endswith("build-id"))
    struct.pack_into("<Q", data, sections + 64 * number + 32, (1 << 63) + 8)
    image = Image(bytes(data), "damaged")
    assert len(image.segments) == len(loaded) - 1
    assert image.section_range(".note.gnu.build-id") is None
    assert not image.is_in(lambda _, size: bytes(size))


@pytest.mark.parametrize("damage", ["cut", "no file", "another's"])
def test_a_damaged_debug_file_hides_no_other(tmp_path: Path, damage: str) -> None:
    """Names come from the next one that is there."""
    program, first = tmp_path / "program", tmp_path / "program.debug"
    program.write_bytes(build("mixture").read_bytes())
    second = tmp_path / ".debug" / first.name
    second.parent.mkdir()
    for options in (
        ("--only-keep-debug", str(program), str(second)),
        ("--strip-all", f"--add-gnu-debuglink={second}", str(program)),
    ):
        subprocess.run(["objcopy", *options], check=True)
    if damage == "cut":
        first.write_bytes(second.read_bytes()[:100])
    elif damage == "no file":
        first.mkdir()
    else:
        first.write_bytes(build("loop").read_bytes())
    image = read_image(program, "program", tmp_path)
    assert "handle" in {symbol.name for symbol in image.symbols}


def test_a_pyelftools_that_reads_no_single_entry_is_told_of_where_darc_is_loaded() -> None:
    """And not taken for files without frame information, by readers of damaged ones."""
    program = (
        "from elftools.dwarf.callframe import CallFrameInfo\n"
        "del CallFrameInfo._parse_entry_at\n"
        "try: import darc.code.frames\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert re.match("this pyelftools reads no single entry", done.stdout)


@pytest.mark.parametrize("path", _files(), ids=lambda path: path.name)
def test_what_is_told_of_first_instructions_is_what_pyelftools_decodes(path: Path) -> None:
    """Most entries say nothing of them, and are not decoded."""
    frames = read_image(path, path.name).frames
    with path.open("rb") as opened:
        entries = [e for e in ELFFile(opened).get_dwarf_info().EH_CFI_entries() if type(e) is FDE]
    for entry in entries[:: max(1, len(entries) // 300)]:
        start = entry["initial_location"]
        if any(one.opcode == 0x2E for one in entry.instructions):
            continue  # DW_CFA_GNU_args_size, which pyelftools decodes no table with
        first = entry.get_decoded().table[0]
        cfa = first["cfa"]
        is_usual = cfa.expr is None and (cfa.reg, cfa.offset) == (7, 8)  # rsp
        is_end = 16 in first and first[16].type == "UNDEFINED"
        assert frames.may_be_called(start) == (is_usual and not is_end), hex(start)
        rule = frames.rule(start)
        assert (rule is not None and rule == FRAME_AT_ENTRY) == is_usual, hex(start)
