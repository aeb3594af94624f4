"""What is read of a function's bytes: calls, tail jumps, cold parts, displaced instructions."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import pytest

from darc.code import x86_64
from darc.code.architecture import Prologue, Site
from darc.code.elf import Image
from darc.code.frame_rule import FrameRule
from darc.code.x86_64 import epilogues
from darc.code.x86_64_depth import frame_rules
from darc.model.errors import TargetError
from darc.model.ftree import CallKind
from darc.model.refusal import Refusal
from tests.unit.assembly import BASE, TABLE, Assemble, Code


def sites(code: Code, name: str = "f") -> list[Site[x86_64.Instruction]]:
    return x86_64.read_function(code.symbols[name], code).sites


def where(code: Code, text: str) -> int:
    """The address of the instruction that reads so."""
    return next(int(i.ip) for i in x86_64.decode(code.data, BASE) if str(i) == text)


def test_direct_calls_are_found_in_order_with_their_return_addresses(assembled: Assemble) -> None:
    code = assembled("f: sub rsp,8\ncall g\ncall h\nadd rsp,8\nret\ng: ret\nh: ret\n")
    found = sites(code)
    assert [s.target for s in found] == [code.symbols["g"], code.symbols["h"]]
    assert all(s.kind is CallKind.DIRECT and s.back == s.address + 5 for s in found)
    assert all(s.slot == FrameRule("rsp", 16) for s in found)


def test_a_call_of_the_next_instruction_reads_its_own_address_and_is_no_call(
    assembled: Assemble,
) -> None:
    assert sites(assembled("f: call 1f\n1: pop rax\nret\n")) == []


def test_a_short_indirect_call_takes_earlier_instructions_along(assembled: Assemble) -> None:
    code = assembled("f: sub rsp,8\nmov rdi,rax\ncall rax\nadd rsp,8\nret\n")
    (site,) = sites(code)
    assert site.problem is None
    assert site.length >= x86_64.PATCH_LENGTH
    assert [str(i) for i in site.displaced] == ["mov rdi,rax"]
    assert site.back == site.patch + site.length


def test_no_instruction_is_moved_that_a_jump_leads_behind(assembled: Assemble) -> None:
    code = assembled(
        "f: sub rsp,8\ntest edi,edi\nje 1f\nmov rax,rsi\n1: xor edi,edi\ncall rax\nadd rsp,8\nret\n"
    )
    (site,) = sites(code)
    assert site.problem == "a jump leads between the bytes that a patch needs"


def test_what_is_displaced_never_holds_another_call(assembled: Assemble) -> None:
    code = assembled("f: sub rsp,8\ncall g\ncall rax\nadd rsp,8\nret\ng: ret\n")
    first, second = sites(code)
    assert first.problem is None
    assert second.problem is not None


def test_a_jump_to_another_function_is_a_tail_call_and_a_jump_inside_is_not(
    assembled: Assemble,
) -> None:
    code = assembled("f: test edi,edi\nje 1f\njmp g\n1: jmp 1b\n.balign 16\ng: ret\n")
    (site,) = sites(code)
    assert (site.kind, site.target) == (CallKind.TAIL, code.symbols["g"])


def test_conditional_tail_jumps_are_seen(assembled: Assemble) -> None:
    code = assembled("f: test edi,edi\n.byte 0x0f,0x84\n.long g-.-4\nret\n.skip 200,0x90\ng: ret\n")
    (site,) = sites(code)
    assert (site.kind, site.target) == (CallKind.TAIL, code.symbols["g"])
    assert site.patch == site.address


def test_a_short_tail_jump_uses_the_padding_behind_it(assembled: Assemble) -> None:
    code = assembled("f: jmp g\nnop\nnop\nnop\nnop\ng: ret\n")
    code.parts["f"] = (BASE, BASE + 2)
    (site,) = sites(code)
    assert site.problem is None
    assert site.length >= x86_64.PATCH_LENGTH


def test_a_cold_part_belongs_to_its_function(assembled: Assemble) -> None:
    code = assembled("f: test edi,edi\nje f_cold\nret\nf_cold: sub rsp,8\ncall g\nud2\ng: ret\n")
    (site,) = sites(code)
    assert site.target == code.symbols["g"]
    assert len(x86_64.read_function(code.symbols["f"], code).ranges) == 2


def test_jump_tables_are_not_calls(assembled: Assemble) -> None:
    code = assembled(
        "f: lea rdx,[rip+table]\nmovsxd rax,dword ptr [rdx+rdi*4]\nadd rax,rdx\njmp rax\n"
        "1: ret\n.balign 4\ntable: .long 1b-table\n"
    )
    assert sites(code) == []


@pytest.mark.parametrize(
    ("jump", "form"),
    [
        (f"jmp [{TABLE}+rdi*8]", "<Q"),
        (f"mov rax,[{TABLE}+rdi*8]\njmp rax", "<Q"),
        (f"mov edx,{TABLE}\nmov rax,[rdx+rdi*8]\nnop\njmp rax", "<Q"),
        (
            f"lea rdx,[rip+1f]\nlea rcx,[{TABLE}]\nmovsxd rax,[rcx+rdi*4]\nadd rax,rdx\njmp rax",
            "<i",
        ),
    ],
)
def test_labels_in_tables_are_targets(jump: str, form: str, assembled: Assemble) -> None:
    """Whole addresses, or distances from a label: nothing may move that one of them is amid."""
    code = assembled(
        f"f: sub rsp,8\n{jump}\n1: mov eax,11\nmov rcx,rsi\n2: mov rdi,rcx\ncall rbx\n"
        "add rsp,8\nret\n"
    )
    first = where(code, "mov eax,0Bh")
    second = where(code, "mov rdi,rcx")
    call = where(code, "call rbx")
    base = 0 if form == "<Q" else first
    code.table = b"".join(struct.pack(form, at - base) for at in (first, second, call))
    code.rules = {call: FrameRule("rsp", 16)}
    function = x86_64.read_function(BASE, code)
    assert function.complete
    assert {first, second, call} <= function.targets
    (site,) = function.sites
    assert site.problem == "a jump leads between the bytes that a patch needs"
    assert site.is_short


def test_numbers_that_are_no_addresses_are_asked_for_once_a_page(assembled: Assemble) -> None:
    """As where a parser compares with hundreds: each costs a debugger a failed read."""
    compared = "".join(f"cmp edi,{number}\n" for number in range(100, 4000, 30))
    code = assembled(f"f: {compared}jmp [{TABLE}+rdi*8]\n1: mov eax,11\nret\n")
    code.table = struct.pack("<Q", where(code, "mov eax,0Bh"))
    asked: list[int] = []

    class Mapped(Code):
        def read(self, address: int, size: int) -> bytes:
            if address >= BASE:
                return super().read(address, size)
            asked.append(address)
            raise TargetError("cannot read memory")

    its = (getattr(code, one.name) for one in dataclasses.fields(code))
    function = x86_64.read_function(BASE, Mapped(*its))
    assert where(code, "mov eax,0Bh") in function.targets
    assert len(asked) == 1


def test_code_whose_address_is_taken_is_a_target(assembled: Assemble) -> None:
    """A table of labels may be made while the program runs."""
    code = assembled(
        f"f: sub rsp,8\nlea rax,[rip+1f]\nmov [rsi],rax\njmp [{TABLE}+rdi*8]\n"
        "2: mov rdi,rcx\n1: call rbx\nadd rsp,8\nret\n"
    )
    second = where(code, "mov rdi,rcx")
    call = where(code, "call rbx")
    code.table = struct.pack("<Q", second)
    function = x86_64.read_function(BASE, code)
    assert {second, call} <= function.targets


def test_an_indirect_jump_without_a_table_is_a_tail_call(assembled: Assemble) -> None:
    code = assembled("f: mov rax,[rdi]\nmov rsi,rdx\njmp [rax+16]\n")
    (site,) = sites(code)
    assert site.kind is CallKind.TAIL_INDIRECT
    assert site.problem is None


_BY_TABLE = pytest.mark.parametrize(
    "jump",
    [
        f"jmp [{TABLE}+rdi*8]",
        f"lea rax,[{TABLE}]\nmov rsi,rdx\njmp [rax+rdi*8]",
        f"lea rax,[{TABLE}-16]\njmp [rax+rdi*8+16]",
        f"mov eax,{TABLE}\nmov rax,[rax+rdi*8]\nmov rsi,rdx\njmp rax",
    ],
)


@_BY_TABLE
def test_a_jump_by_a_table_of_functions_is_a_tail_call(jump: str, assembled: Assemble) -> None:
    """Entries that are empty, or f itself, do not tell."""
    code = assembled(f"f: {jump}\ng: ret\nh: ret\n")
    places = (0, code.symbols["f"], code.symbols["g"], code.symbols["h"])
    code.table = struct.pack("<4Q", *places)
    function = x86_64.read_function(code.symbols["f"], code)
    assert [site.kind for site in function.sites] == [CallKind.TAIL_INDIRECT]
    assert function.complete


@_BY_TABLE
def test_a_jump_by_a_switchs_table_is_none(jump: str, assembled: Assemble) -> None:
    """Nor does it become one by a first case that is f from its start, or in its cold part."""
    code = assembled(f"f: {jump}\n1: mov eax,11\nret\nf_cold: ud2\n")
    code.cold = {code.symbols["f_cold"]}
    inside = where(code, "mov eax,0Bh")
    for first in (inside, code.symbols["f"], code.symbols["f_cold"]):
        code.table = struct.pack("<2Q", first, inside)
        assert sites(code) == []


def test_a_jump_by_a_table_that_the_code_does_not_name_is_no_tail_call(assembled: Assemble) -> None:
    code = assembled(f"f: mov rax,[{TABLE}]\njmp [rax+rdi*8]\ng: ret\n")
    code.table = struct.pack("<2Q", code.symbols["g"], code.symbols["g"])
    assert sites(code) == []


def test_a_prologue_is_not_moved_when_a_loop_leads_into_it(assembled: Assemble) -> None:
    code = assembled("f: xor eax,eax\n1: inc eax\ncmp eax,edi\njne 1b\nret\n")
    function = x86_64.read_function(code.symbols["f"], code)
    assert x86_64.read_prologue(function, code) == Refusal("a jump leads into its first bytes")


def test_a_prologue_is_not_moved_when_another_function_jumps_into_it(assembled: Assemble) -> None:
    code = assembled("f: mov rax,rdi\ncmp rdx,16\nret\n")
    function = x86_64.read_function(code.symbols["f"], code)
    assert isinstance(x86_64.read_prologue(function, code), Prologue)
    code.entered = {BASE + 3}
    assert x86_64.read_prologue(function, code) == Refusal("a jump leads into its first bytes")


def test_a_function_shorter_than_a_jump_needs_padding_behind_it(assembled: Assemble) -> None:
    code = assembled("f: mov eax,edi\nret\ng: ret\n")
    function = x86_64.read_function(code.symbols["f"], code)
    refusal = x86_64.read_prologue(function, code)
    assert isinstance(refusal, Refusal)
    assert "shorter than a jump" in refusal.why
    code = assembled("f: mov eax,edi\nret\nnop\nnop\nnop\nnop\ng: ret\n")
    code.parts["f"] = (BASE, BASE + 3)
    function = x86_64.read_function(code.symbols["f"], code)
    prologue = x86_64.read_prologue(function, code)
    assert isinstance(prologue, Prologue)
    assert prologue.length >= x86_64.PATCH_LENGTH


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("f: call g\nret\ng: ret\n", FrameRule("rsp", 8)),
        ("f: push rbx\nsub rsp,32\ncall g\nret\ng: ret\n", FrameRule("rsp", 48)),
        (
            "f: push rbp\nmov rbp,rsp\nand rsp,-32\ncall g\nleave\nret\ng: ret\n",
            FrameRule("rbp", 16),
        ),
        (
            "f: push rbp\nmov rbp,rsp\nsub rsp,rax\ncall g\nleave\nret\ng: ret\n",
            FrameRule("rbp", 16),
        ),
        ("f: lea rsp,[rsp-40]\ncall g\nlea rsp,[rsp+40]\nret\ng: ret\n", FrameRule("rsp", 48)),
        ("f: sub rsp,rax\ncall g\nret\ng: ret\n", None),
        ("f: test edi,edi\nje 1f\npush rax\n1: call g\nret\ng: ret\n", None),
    ],
)
def test_the_frame_is_known_from_the_code_or_not_at_all(
    assembled: Assemble, source: str, rule: FrameRule | None
) -> None:
    code = assembled(source)
    (site,) = sites(code)
    assert site.slot == rule
    assert (site.problem is None) == (rule is not None)


def test_depths_agree_with_the_frame_information_of_the_c_library() -> None:
    """The two ways to the same answer, on thousands of real call sites."""
    from darc.code.modules import load_image

    path = Path("/lib/x86_64-linux-gnu/libc.so.6")
    image: Image = load_image(path)
    data = path.read_bytes()
    compared = 0
    for symbol in list(image.symbols)[::17]:
        extent = image.frames.extent(symbol.address)
        if not symbol.size or ".cold" in symbol.name or extent is None:
            continue
        if extent[0] != symbol.address:
            continue
        segment = image.segment_of(symbol.address)
        assert segment is not None
        at = symbol.address - segment.address + segment.offset
        code = x86_64.decode(data[at : at + symbol.size], symbol.address)
        instructions = {int(i.ip): i for i in code}
        rules = frame_rules(symbol.address, instructions)
        for address, instruction in instructions.items():
            known, found = image.frames.rule(address), rules.get(address)
            if "call" not in str(instruction) or known is None or found is None:
                continue
            if known.register == found.register:
                assert known == found, f"{symbol.name} at {address:#x}"
                compared += 1
    assert compared > 200


@pytest.mark.parametrize(
    ("code", "offset"),
    [
        ("f: push rbx\ncall g\nmov eax,ebx\nadd rsp,8\npop rbx\nret\n", 8),
        ("f: test edi,edi\njz 1f\nnop\n1: add rsp,16\nret\n", 5),
        ("f: test edi,edi\njz 1f\nadd rsp,8\n1: pop rbx\npop rbp\nret\n", None),
        ("f: cmp edi,1\nsbb eax,eax\npop rbx\npop rbp\nret\n", None),
        ("f: call g\npop rbx\nret\n", None),
        ("f: test edi,edi\njz 1f\nret\n1: add rsp,16\nret\n", None),
    ],
)
def test_where_a_function_is_about_to_return(
    assembled: Assemble, code: str, offset: int | None
) -> None:
    """A patch fits there: no jump leads into it, and what it spoils is not looked at."""
    read = assembled(code + "g: ret\n")
    function = x86_64.read_function(read.symbols["f"], read)
    found = [address - read.symbols["f"] for address in epilogues(function)]
    assert found == ([] if offset is None else [offset])


@pytest.mark.parametrize(
    ("code", "main"),
    [
        ("31ed 488d3d00010000 ff1500020000 f4", BASE + 9 + 0x100),  # of a PIE
        ("31ed 48c7c700114000 67e800010000 f4", 0x401100),
        ("31ed bf00114000 e800010000 f4", 0x401100),
        ("488d3d00010000 4889e7 e800010000 f4", None),  # something else by then
        ("488d3d00010000 e800010000 90", None),  # a call that returns
        ("e800010000 f4", None),
        ("", None),
    ],
)
def test_the_main_that_a_program_begins_with(code: str, main: int | None) -> None:
    assert x86_64.handed_to_c(bytes.fromhex(code), BASE) == main
