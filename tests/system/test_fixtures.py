"""The fixtures themselves: what they print, undisturbed, at -O0 and -O2, is in their headers."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from fixtures.build import Strip, analysed, build, find, names

TESTS = Path(__file__).resolve().parents[1]


def run(program: Path, *args: str) -> str:
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout


def inspect(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def disassemble(program: Path, function: str) -> str:
    return inspect("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(program))


@pytest.mark.parametrize("name", names())
def test_header_says_what_is_to_be_found(name: str) -> None:
    fixture = find(name)
    assert fixture.cause in ("function", "loop", "blocked", "preemption")
    assert fixture.paths
    for path in fixture.paths:
        assert path[0] == fixture.function
        assert len(path) > (fixture.cause != "preemption")


@pytest.mark.parametrize("name", sorted({*names()} - {*analysed()}))
def test_what_no_suite_looks_for_has_a_test_of_its_own(name: str) -> None:
    """Why, and where, is said in the header."""
    said = re.search(r"\w.* \((test_\w+\.py)\)$", find(name).elsewhere)
    assert said, f"{find(name).source.name}: elsewhere: WHY (TEST)"
    tests = [file.read_text() for file in TESTS.rglob(said[1])]
    assert any(f'"{name}"' in text for text in tests), f"{said[1]} does not build {name}"


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize("name", names())
def test_output_is_known(name: str, opt: str) -> None:
    fixture = find(name)
    assert run(build(name, opt=opt, extra=["-Werror"]), *fixture.args) == fixture.output


@pytest.mark.parametrize(
    ("name", "mode"),
    [("farlib", "reload"), ("forker", "vfork"), ("signals", "alt")],
)
def test_modes_do_the_same(name: str, mode: str) -> None:
    fixture = find(name)
    assert run(build(name, extra=["-Werror"]), *fixture.args, mode) == fixture.output


@pytest.mark.parametrize("mode", ["self", "above", "inside"])
def test_exceptions_are_caught_by_one(mode: str) -> None:
    caught = {"self": "127 0 0", "above": "0 127 0", "inside": "0 0 127"}[mode]
    assert f"caught {caught}," in run(build("exceptions", extra=["-Werror"]), "4000", mode)


@pytest.mark.parametrize(
    ("pie", "static", "strip"),
    [(False, False, None), (False, True, "debug"), (True, True, None), (True, False, "all")],
)
def test_kinds_of_program(pie: bool, static: bool, strip: Strip) -> None:
    program = build("recursion", pie=pie, static=static, strip=strip)
    assert run(program, *find("recursion").args) == find("recursion").output
    header = inspect("readelf", "-hlSW", str(program))
    assert ("DYN (" in header) == pie
    assert ("INTERP" not in header) == static
    assert (".debug_info" in header) == (strip is None)
    assert (".symtab" in header) == (strip != "all")


def test_library_and_static_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="shared library"):
        build("plt", static=True)


@pytest.mark.parametrize("static", [False, True])
def test_libraries_stand_behind_the_source(
    static: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the linker looks for what the source has left open."""
    header = "/* roots: of a number.\n *\n * f0: handle\n * libs: -lm\n */\n"
    (tmp_path / "roots.c").write_text(f"""{header}
        #include <math.h>
        int main(int argc, char **argv) {{ (void)argv; return pow(argc, 3.0) != 1; }}""")
    monkeypatch.setattr("fixtures.build.SOURCES", tmp_path)
    assert find("roots").libs == ("-lm",)
    program = build("roots", static=static, extra=["-Wl,--as-needed"])
    assert run(program) == ""


def test_unknown_fixture() -> None:
    with pytest.raises(LookupError, match="no fixture is called nothing"):
        build("nothing")


def test_compiler_is_quoted_when_it_fails() -> None:
    with pytest.raises(RuntimeError, match="no-such-option"):
        build("mixture", extra=["-fno-such-option"])


def test_built_once() -> None:
    first = build("short")
    made = first.stat().st_mtime_ns
    assert build("short") == first
    assert first.stat().st_mtime_ns == made
    assert build("short", opt="-O1") != first


def test_server_ends_at_sigterm() -> None:
    with subprocess.Popen([build("server")], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        server.send_signal(signal.SIGTERM)
        assert server.stdout.read() == "stopped, 0 wrong\n"
    assert server.returncode == 0


class TestHazardsAreThere:
    """A fixture is worth nothing when the compiler optimised its hazard away."""

    def test_tail_jumps(self) -> None:
        assert re.search(r"jmp +\w+ <choose>", disassemble(build("tail"), "handle"))
        assert re.search(r"jne +\w+ <store>", disassemble(build("tail"), "choose"))

    def test_indirect_calls(self) -> None:
        program = build("indirect")
        assert re.search(r"call +\*%r", disassemble(program, "handle"))
        assert re.search(r"call +\*0x8\(%rdi\)", disassemble(program, "do_sync"))
        assert re.search(r"call +\*0x\w+\(%rip\)", disassemble(program, "wait_device"))

    def test_cold_part(self) -> None:
        assert re.search(r"call +\w+ <complain>", disassemble(build("cold"), "handle.cold"))
        assert "<complain>" not in disassemble(build("cold"), "handle")

    def test_values_in_caller_saved_registers(self) -> None:
        """mix sets r10 before the call of churn and uses it after."""
        before, after = re.split(r"call +\w+ <churn>", disassemble(build("ipara"), "mix"))
        assert re.search(r",%r10$", before, re.M)
        assert re.search(r"\(%r10", after)

    def test_red_zone(self) -> None:
        assert re.search(r"-0x\w+\(%rsp", disassemble(build("redzone"), "leaf"))
        assert "sub " not in disassemble(build("redzone"), "leaf").partition("(%rsp")[0]

    def test_short_function_and_its_neighbour(self) -> None:
        table = inspect("nm", str(build("short")))
        address = {name: int(at, 16) for at, name in re.findall(r"(\w+) T (\w+)", table)}
        assert address["neighbour"] == address["handle"] + 3

    def test_lazy_binding(self) -> None:
        program = build("plt")
        assert "<lib_process@plt>" in disassemble(program, "handle")
        assert "<lib_wait@plt>" in disassemble(program.with_name("libplt.so"), "lib_flush")
        flags = inspect("readelf", "-d", str(program))
        assert "NOW" not in flags
