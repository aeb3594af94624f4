"""Writing over the program's code, and taking it back: in an order that a killed debugger cannot
break."""

from __future__ import annotations

import contextlib
import dataclasses
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.code.processor import decode
from darc.model.errors import TargetError
from darc.model.ftree import Function
from darc.pads.installer import PadInstaller
from darc.pads.patching import Patch, Patcher
from darc.target.target import Journal, Place, State
from tests.fake_target import FakeTarget

CODE, OTHER, PAD = 0x1000, 0x1100, 0x9000
OWN = bytes.fromhex("4883ec08 4831c0 90")  # sub rsp, 8; xor rax, rax; nop
JUMP = bytes.fromhex("e9f77f0000")


@dataclass
class Layout:
    size: int = 4096


class Notes(Journal):
    """Tells what is noted, in the order of everything else."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def patches(self, places: Iterable[Place]) -> None:
        self._log += [f"note {place.address:#x}" for place in places]


@dataclass
class PatchedCode:
    """Code, a pad, and what is asked of the agent's tables; everything that is written in order."""

    target: FakeTarget = field(default_factory=FakeTarget)
    log: list[str] = field(default_factory=list)
    users_breakpoints: set[int] = field(default_factory=set)
    patches: dict[int, bytes] = field(default_factory=dict)
    base: int = 0x8000
    layout: Layout = field(default_factory=Layout)

    def __post_init__(self) -> None:
        self.target.map(CODE, OWN + bytes(0x200))
        self.target.memory.write(OTHER, OWN)
        self.target.map(PAD, bytes(64))
        self.target.process = 1
        self.target.journals.keep(1, Notes(self.log))
        write = self.target.memory.write_code

        def write_code(address: int, data: bytes) -> None:
            self.log.append(f"{'restore' if data == OWN[: len(data)] else 'patch'} {address:#x}")
            write(address, data)

        self.target.memory.write_code = write_code  # type: ignore[method-assign]
        self.patcher = Patcher(self.target, self, self)  # type: ignore[arg-type]

    @property
    def live(self) -> PatchedCode:
        return self

    def raw(self, address: int, size: int) -> bytes:
        data = bytearray(self.target.memory.read(address, size))
        for at in self.users_breakpoints:
            if address <= at < address + size:
                data[at - address] = 0xCC
        return bytes(data)

    @property
    def sites(self) -> PatchedCode:
        return self

    @property
    def names(self) -> PatchedCode:
        return self

    def function_at(self, address: int) -> Function:
        return Function(
            name=f"f{address:x}",
            symbol=f"f{address:x}",
            module="program",
            address=address,
            offset=address,
        )

    def set(self, index: int, *, patched: int) -> None:
        self.log.append(f"site {index} {'on' if patched else 'off'}")

    def patch(self, address: int = CODE, index: int = 1, **more: Any) -> Patch:
        return Patch(
            address=address,
            original=OWN[:5],
            bytes=JUMP,
            index=index,
            pad=PAD,
            pad_back=PAD + 16,
            **more,
        )

    def code(self, address: int = CODE) -> bytes:
        return self.target.memory.read(address, len(OWN))


@pytest.fixture
def world() -> PatchedCode:
    return PatchedCode()


def test_a_patch_is_noted_before_it_stands_and_known_until_it_does_not(world: PatchedCode) -> None:
    patch = world.patch()
    world.patcher.activate(patch)
    assert world.code() == JUMP + OWN[5:]
    assert world.patches == {CODE: OWN[:5]}  # the program's own bytes, for whoever reads code
    world.patcher.deactivate(patch)
    assert world.code() == OWN
    assert not world.patches
    put, taken = ["note 0x1000", "site 1 on", "patch 0x1000"], ["restore 0x1000", "site 1 off"]
    assert world.log == [*put, *taken]


def test_several_at_once_stay_known_until_all_are_taken_back(world: PatchedCode) -> None:
    patches = [world.patch(), world.patch(OTHER, 2)]
    for patch in patches:
        world.patcher.activate(patch)
    world.log.clear()
    with world.patcher.together():
        for patch in patches:
            world.patcher.deactivate(patch)
        assert not any(line.startswith("site") for line in world.log)
    assert world.log[-2:] == ["site 1 off", "site 2 off"]


def test_at_a_stop_for_the_user_the_code_is_the_programs(world: PatchedCode) -> None:
    patch = world.patch()
    world.patcher.activate(patch)
    world.patcher.pause()
    assert world.code() == OWN
    assert world.patcher.paused
    assert world.patcher.in_use == {1}  # it is wanted still
    world.patcher.resume()
    assert world.code().startswith(JUMP)
    assert not world.patcher.paused


def test_what_is_activated_at_a_stop_comes_when_the_program_goes_on(world: PatchedCode) -> None:
    world.patcher.pause()
    world.patcher.activate(world.patch())
    assert world.code() == OWN
    world.patcher.resume()
    assert world.code().startswith(JUMP)


def test_code_that_is_not_darcs_any_more_stays(world: PatchedCode) -> None:
    """Its file was unloaded, and another one is there."""
    patch = world.patch()
    world.patcher.activate(patch)
    world.target.memory.write(CODE, b"\x11" * 8)
    world.patcher.deactivate(patch)
    assert world.code() == b"\x11" * 8
    assert list(world.patcher.written_over) == []
    assert "site 1 off" in world.log


@pytest.mark.parametrize("look", ["deactivate", "pause"])
def test_code_that_was_read_anew_is_told(world: PatchedCode, look: str) -> None:
    """Nobody has taken the patch out, and the program's own bytes are there."""
    patch, other = world.patch(), world.patch(OTHER, 2)
    world.patcher.activate(patch)
    world.patcher.activate(other)
    world.target.memory.write(CODE, OWN)
    if look == "pause":
        world.patcher.pause()
        world.patcher.resume()
        assert world.code().startswith(JUMP)  # it is there again
    world.patcher.deactivate(patch)
    world.patcher.deactivate(other)
    assert list(world.patcher.vanished) == [f"f{CODE:x}"]


@pytest.mark.parametrize("look", ["deactivate", "pause"])
def test_code_that_was_written_over_is_told(world: PatchedCode, look: str) -> None:
    """What hooks the function may have saved the patch, and may write it back: its pad is to
    stay."""
    patch = world.patch()
    hook = bytes.fromhex("e978563412")
    world.patcher.activate(patch)
    world.target.memory.write(CODE, hook)
    world.log.clear()
    if look == "pause":
        world.patcher.pause()
    world.patcher.deactivate(patch)
    assert world.code().startswith(hook)
    assert list(world.patcher.written_over) == [f"f{CODE:x}"]
    assert list(world.patcher.vanished) == []
    assert "site 1 off" not in world.log


def test_what_cannot_be_taken_back_as_it_runs_is_not_forgotten(
    world: PatchedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A debugger that has let it go on meanwhile may read nothing: no file was unloaded, and the
    pad is needed."""

    def read(address: int, size: int) -> bytes:
        raise TargetError("there is no program that is stopped")

    patch = world.patch()
    world.patcher.activate(patch)
    world.log.clear()
    monkeypatch.setattr(FakeTarget, "state", property(lambda _: State.RUNNING))
    monkeypatch.setattr(world.target.memory, "read", read)
    with pytest.raises(TargetError, match="no program that is stopped"):
        world.patcher.deactivate(patch)
    assert patch.in_place
    assert "site 1 off" not in world.log


def test_what_was_unloaded_is_told_from_what_runs_by_other_memory(
    world: PatchedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A debugger may call it running at a stop that it has told nobody of yet, where a kernel's
    module is gone: what was in it is not taken back, and that is no error."""
    read = world.target.memory.read

    def without_code(address: int, size: int) -> bytes:
        if address == CODE:
            raise TargetError("Cannot access memory")
        return read(address, size)

    patch = world.patch()
    world.patcher.activate(patch)
    world.target.map(world.base, bytes(64))
    monkeypatch.setattr(FakeTarget, "state", property(lambda _: State.RUNNING))
    monkeypatch.setattr(world.target.memory, "read", without_code)
    world.patcher.deactivate(patch)
    assert not patch.in_place
    assert not world.patches


def test_a_call_under_somebody_elses_breakpoint_gets_its_own_target_back(
    world: PatchedCode,
) -> None:
    """They put back the one byte that they have saved, and know nothing of the others."""
    call, led = b"\xe8\x01\x02\x03\x04", b"\xe8\x11\x12\x13\x14"
    world.target.memory.write(CODE, call)
    patch = dataclasses.replace(world.patch(), original=call, bytes=led)
    world.patcher.activate(patch)
    world.target.memory.write(CODE, b"\xcc")
    world.patcher.deactivate(patch)
    assert world.code()[:5] == b"\xcc" + call[1:]


@pytest.mark.parametrize("at_stop", [False, True])
def test_a_file_that_is_loaded_again_gets_its_patch_again(
    world: PatchedCode, *, at_stop: bool
) -> None:
    """In the same place; where other code is there it is not for that."""
    patch = world.patch()
    world.patcher.activate(patch)
    assert world.patcher.renew(patch), "it stands"
    world.target.memory.write(CODE, OWN)
    if at_stop:
        world.patcher.pause()
        assert world.patcher.renew(patch)
        assert world.code() == OWN
        world.patcher.resume()
    else:
        assert world.patcher.renew(patch)
    assert world.code() == JUMP + OWN[5:]
    world.target.memory.write(CODE, OWN[::-1])
    assert not world.patcher.renew(patch)
    assert world.code() == OWN[::-1]


def test_a_file_that_is_not_there_may_come_back(
    world: PatchedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = world.patch()
    world.patcher.activate(patch)
    with monkeypatch.context() as unloaded:
        read = world.target.memory.read

        def fails(address: int, size: int) -> bytes:
            if address == CODE:
                raise TargetError("nothing is there")
            return read(address, size)

        unloaded.setattr(world.target.memory, "read", fails)
        assert world.patcher.renew(patch)
        world.patcher.pause()
        world.patcher.resume()
        assert not patch.active
    world.target.memory.write(CODE, OWN)
    assert world.patcher.renew(patch)
    assert world.code() == JUMP + OWN[5:]


def test_code_that_has_changed_is_not_patched(world: PatchedCode) -> None:
    world.target.memory.write(CODE, b"\x11" * 8)
    patch = world.patch()
    told = f"the code of f{CODE:x} at {CODE:#x} has changed since it was read"
    with pytest.raises(TargetError, match=told):
        world.patcher.activate(patch)
    assert not patch.active
    assert not world.patches
    assert world.log == []


def test_code_that_changes_at_a_stop_is_told_and_given_up(world: PatchedCode) -> None:
    patch, other = world.patch(), world.patch(OTHER, 2)
    for one in (patch, other):
        world.patcher.activate(one)
    world.patcher.pause()
    world.target.memory.write(CODE, b"\x11" * 8)
    world.patcher.resume()
    assert [line for line in world.patcher.take_problems() if "0x1000" in line]
    assert world.patcher.in_use == {2}
    assert world.code() == b"\x11" * 8
    assert world.code(OTHER).startswith(JUMP)


def test_a_breakpoint_inside_is_waited_for(world: PatchedCode) -> None:
    """The debugger steps over a call, say: its own bytes are not to be written over."""
    world.users_breakpoints.add(CODE + 4)
    world.patcher.activate(world.patch())
    assert world.code() == OWN
    assert world.patcher.paused
    world.users_breakpoints.clear()
    world.patcher.resume()
    assert world.code().startswith(JUMP)


def test_a_thread_among_displaced_instructions_goes_on_in_the_pad(world: PatchedCode) -> None:
    displaced = tuple(decode(OWN[:7], CODE))
    world.target.add_thread(7, rip=CODE + 4)
    world.target.add_thread(8, rip=CODE)
    moved = {CODE: PAD, CODE + 4: PAD + 4}
    world.patcher.activate(world.patch(displaced=displaced, moved=moved))
    assert world.target.threads.read_register(7, "rip") == PAD + 4
    assert world.target.threads.read_register(8, "rip") == CODE  # it comes by the patch itself


def test_threads_are_looked_at_once_for_all_patches_of_a_stop(
    world: PatchedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once more where the program has run since, if only for a moment."""
    asked: list[int] = []
    runs = [1]
    counters = world.target.threads.program_counters

    def program_counters() -> Mapping[int, int]:
        asked.append(runs[0])
        return counters()

    monkeypatch.setattr(world.target.threads, "program_counters", program_counters)
    monkeypatch.setattr(FakeTarget, "stop_number", property(lambda _: runs[0]))
    world.target.add_thread(7, rip=CODE + 4)
    third, fourth = CODE + 0x80, OTHER + 0x40
    for address in (third, fourth):
        world.target.memory.write(address, OWN)

    def made(address: int, index: int) -> Patch:
        displaced = tuple(decode(OWN[:7], address))
        return world.patch(address, index, displaced=displaced, moved={address + 4: PAD + 4})

    with world.patcher.together():
        world.patcher.activate(made(CODE, 1))
        world.patcher.activate(made(OTHER, 2))
        assert asked == [1]
        runs[0] = 2
        world.patcher.activate(made(third, 3))
        assert asked == [1, 2]
    assert world.target.threads.read_register(7, "rip") == PAD + 4
    world.patcher.activate(made(fourth, 4))
    assert asked == [1, 2, 2]


def test_what_handlers_come_back_to_is_looked_for_once_for_all_members(world: PatchedCode) -> None:
    """That reads the program's memory: of a hundred functions of a compiler's it took 3 s."""
    asked: list[None] = []

    def interrupted() -> dict[int, int]:
        asked.append(None)
        return {}

    patcher = Patcher(world.target, world, world, interrupted)  # type: ignore[arg-type]
    displaced = {CODE: tuple(decode(OWN[:7], CODE)), OTHER: tuple(decode(OWN[:7], OTHER))}
    members = {
        number: world.patch(at, number, displaced=displaced[at])
        for number, at in enumerate((CODE, OTHER))
    }
    one_who_puts_in = SimpleNamespace(
        patcher=patcher,
        tables=SimpleNamespace(enabled=False),
        _members=members,
        _displacing=SimpleNamespace(user_stands_in=lambda start, end: False),
    )
    assert PadInstaller.enable_members(cast(PadInstaller, one_who_puts_in)) == {}
    assert world.code(CODE) == world.code(OTHER) == JUMP + OWN[5:]
    assert len(asked) == 1


def test_a_thread_in_the_middle_that_cannot_go_on_elsewhere(world: PatchedCode) -> None:
    displaced = tuple(decode(OWN[:7], CODE))
    world.target.add_thread(7, rip=CODE + 4)
    with pytest.raises(TargetError, match="thread 7 stands"):
        world.patcher.activate(world.patch(displaced=displaced))
    assert world.code() == OWN


def test_a_thread_in_a_relays_pad_is_led_back(world: PatchedCode) -> None:
    relay = world.patch(OTHER, 2, is_relay=True, moved={OTHER: PAD, OTHER + 4: PAD + 4})
    patch = world.patch(through=relay)
    world.patcher.activate(patch)
    order = [line for line in world.log if line.startswith("patch")]
    assert order == ["patch 0x1100", "patch 0x1000"]  # nothing leads to a relay that is not there
    world.log.clear()
    world.target.add_thread(7, rip=PAD + 4)
    world.patcher.pause()
    assert world.target.threads.read_register(7, "rip") == OTHER + 4
    order = [line for line in world.log if line.startswith("restore")]
    assert order == ["restore 0x1000", "restore 0x1100"]


def test_a_call_among_f0s_first_instructions_is_led_by_a_word(world: PatchedCode) -> None:
    patch = world.patch(cell=PAD + 32, cell_value=0x1234)
    world.target.memory.write(PAD + 32, (0x1234).to_bytes(8, "little"))
    world.patcher.activate(patch)
    assert int.from_bytes(world.target.memory.read(PAD + 32, 8), "little") == PAD
    assert world.code() == OWN
    world.patcher.deactivate(patch)
    assert int.from_bytes(world.target.memory.read(PAD + 32, 8), "little") == 0x1234


def test_guards_are_in_before_what_they_guard_and_out_behind_it(
    world: PatchedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is written by addresses: a debugger that is killed in between leaves no pad that
    an exception would find."""
    monkeypatch.setattr(world.target.memory, "flush", lambda: world.log.append("flush"))
    guarded, guard = world.patch(), world.patch(OTHER, 2, is_guard=True)

    def written() -> list[str]:
        told = [line for line in world.log if line.startswith(("patch", "restore", "flush"))]
        world.log.clear()
        return told

    with world.patcher.together():
        world.patcher.activate(guard)
        world.patcher.activate(guarded)
    assert written() == ["patch 0x1100", "flush", "patch 0x1000", "flush"]
    world.patcher.pause()
    assert written() == ["restore 0x1000", "flush", "restore 0x1100", "flush"]
    world.patcher.resume()
    assert written() == ["patch 0x1100", "flush", "patch 0x1000", "flush"]
    with world.patcher.together():
        world.patcher.deactivate(guarded)
        world.patcher.deactivate(guard)
    assert written() == ["restore 0x1000", "flush", "restore 0x1100", "flush"]


def test_what_is_made_ahead_is_noted_without_the_debugger(
    world: PatchedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread does it while the program runs, and may not ask which process there is."""
    patch = world.patch()

    def asked(_target: FakeTarget) -> int:
        raise AssertionError("pid was called on another thread")

    monkeypatch.setattr(FakeTarget, "pid", property(asked))
    world.patcher.note([patch])
    assert world.log == [f"note {CODE:#x}"]


SAVED = 0xA000
"""Where the kernel has saved where a handler of a signal comes back to."""


def interrupted(world: PatchedCode, pc: int) -> Patcher:
    """A patcher in a program of which a handler has come as a thread was at ``pc``."""
    world.target.map(SAVED, struct.pack("<Q", pc))

    return Patcher(world.target, world, world, lambda: {SAVED: pc})  # type: ignore[arg-type]


@pytest.mark.parametrize("together", [False, True])
def test_a_handler_comes_back_to_the_pad(world: PatchedCode, together: bool) -> None:
    """Into the middle of a jump it would come else; one that has interrupted the first instruction,
    or what comes behind the jump, finds code there."""
    first, second, third = decode(OWN, CODE)
    patch = world.patch(displaced=(first, second, third), moved={CODE + 4: PAD + 7, CODE + 7: PAD})
    for pc, comes_back in ((CODE + 4, PAD + 7), (CODE, CODE), (CODE + 7, CODE + 7)):
        patcher = interrupted(world, pc)
        with patcher.together() if together else contextlib.nullcontext():
            patcher.activate(patch)
        assert world.target.memory.read(SAVED, 8) == struct.pack("<Q", comes_back)
        patcher.deactivate(patch)


def test_a_handler_that_comes_back_between_instructions(world: PatchedCode) -> None:
    patch = world.patch(displaced=tuple(decode(OWN, CODE)), moved={CODE + 4: PAD + 7})
    patcher = interrupted(world, CODE + 2)
    with pytest.raises(TargetError, match="handler comes back into the bytes to patch at 0x1000"):
        patcher.activate(patch)
    assert world.code() == OWN
    assert world.target.memory.read(SAVED, 8) == struct.pack("<Q", CODE + 2)
