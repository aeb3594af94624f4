"""What a thread that stands still waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from darc.code.processor import SYSTEM_CALL
from darc.debuggee.duties import TellsOfThreads
from darc.debuggee.standing import Standing, Stands, is_over
from darc.model.errors import TargetError
from darc.model.ops import Event, ObjectKind, Stack
from darc.model.standing import HolderTold, LockHolder, OpenWait, ThreadStanding
from tests.fake_target import FakeTarget, FakeThreads
from tests.unit.framed import FramedProgram

SLOT, BACK, ELSE = 0x7000, 0x1234, 0x5678


def wait() -> Event:
    return Event(
        time=1,
        object=0x1000,
        kind=ObjectKind.CONDITION,
        is_release=False,
        thread=0,
        node=None,
        stack=Stack(SLOT, 0, (BACK, 1, 2)),
    )


def test_a_wait_goes_on_while_its_function_does() -> None:
    where = Standing(
        names=("futex_wait", "wait", "f0"),
        addresses=(ELSE, ELSE, BACK),
        pointer=SLOT - 64,
        futex=0,
        is_whole=True,
    )
    assert not is_over(wait(), where, BACK)


def test_it_is_over_when_that_has_returned() -> None:
    assert is_over(
        wait(),
        Standing(names=("f0",), addresses=(ELSE,), pointer=SLOT + 8, futex=0, is_whole=True),
        BACK,
    )


def test_it_is_over_when_another_function_is_called_from_there() -> None:
    where = Standing(
        names=("signal", "f0"), addresses=(ELSE, ELSE), pointer=SLOT - 64, futex=0, is_whole=True
    )
    assert is_over(wait(), where, ELSE)


def test_a_word_that_was_left_on_the_stack_is_no_call() -> None:
    where = Standing(
        names=("write", "f0"), addresses=(ELSE, ELSE), pointer=SLOT - 64, futex=0, is_whole=True
    )
    assert is_over(wait(), where, BACK)


def test_where_the_callers_are_not_known_the_word_decides() -> None:
    assert not is_over(wait(), Standing(("write",), (ELSE,), SLOT - 64), BACK)


# -------------------------------------------------------------- in a program that stands

FUNCTIONS = {"f0": (0x1000, 16), "pthread_mutex_lock": (0x2000, 32), "futex_wait": (0x3000, 0)}
"""Where each begins, and how many bytes of stack it has beside its return address."""
FRAMES = {name: size for name, (_, size) in FUNCTIONS.items()}
FRAMED = FramedProgram(dict(FUNCTIONS.values()), {at: name for name, (at, _) in FUNCTIONS.items()})
OBJECT, STACK = 0x5000, 0x7000
OWN, THREAD, OTHER, OTHER_THREAD = 7, 1007, 8, 1008
"""Threads as the program knows itself, in a container, and as the debugger does."""


class StandingThread:
    """A thread in a system call of ``futex_wait``, which f0 has come to by way of
    ``pthread_mutex_lock``; all stand still."""

    def __init__(self) -> None:
        self.target = FakeTarget()
        self.target.process = THREAD
        for start, _ in FUNCTIONS.values():
            self.target.map(start, SYSTEM_CALL + b"\x90" * 0xF0)
        self.at = FUNCTIONS["futex_wait"][0] + len(SYSTEM_CALL)
        self.target.map(STACK, bytes(256))
        self.target.map(OBJECT, bytes(16))
        self.write(STACK, FUNCTIONS["pthread_mutex_lock"][0] + 0x20)
        self.write(STACK + 40, FUNCTIONS["f0"][0] + 0x20)
        self.add(THREAD)
        self.known = {OWN: THREAD}
        self.tells = FakeTells(self.known)
        self.stands = Stands(self.target, self.tells, cast(Any, FRAMED))

    def add(self, thread: int, at: int | None = None) -> None:
        pc = self.at if at is None else at
        self.target.add_thread(thread, rip=pc, rsp=STACK, rdi=OBJECT)

    def write(self, address: int, word: int, size: int = 8) -> None:
        self.target.memory.write(address, word.to_bytes(size, "little"))

    def held_by(self, owner: int) -> None:
        """The lock's own words."""
        self.write(OBJECT, 2, 4)
        self.write(OBJECT + 8, owner, 4)

    def where(self, last: str | None = "f0") -> Standing:
        return self.stands.standing(OWN, last)

    def wait(self, event: Event | None = None) -> OpenWait | None:
        return self.stands.wait(OWN, event, self.where())


class FakeTells(TellsOfThreads):
    """What the system tells of the threads that are known, by the ids that they have themselves."""

    def __init__(self, known: dict[int, int]) -> None:
        self._known = known

    def thread_called(self, own: int) -> int | None:
        return self._known.get(own)

    def thread_name(self, number: int) -> str | None:
        return f"worker {number}" if number in self._known else None


@pytest.fixture
def world() -> StandingThread:
    return StandingThread()


def begun(kind: ObjectKind = ObjectKind.LOCK, **changed: Any) -> Event:
    """That of the wait which the thread is in: its function comes back to f0."""
    slot, back = STACK + 40, FUNCTIONS["f0"][0] + 0x20
    event = replace(wait(), object=OBJECT, kind=kind, stack=Stack(slot, 0, (back,)))
    return replace(event, **changed)


def test_a_thread_stands_where_its_stack_says(world: StandingThread) -> None:
    where = world.where()
    assert where.names == ("futex_wait", "pthread_mutex_lock", "f0")
    backs = [FUNCTIONS[name][0] + 0x20 for name in where.names[1:]]
    assert where.addresses == (world.at, *backs)
    assert (where.pointer, where.futex, where.is_whole) == (STACK, OBJECT, True)
    told = world.stands.whereabouts(OWN, where)
    assert told == ThreadStanding(OWN, "worker 7", where.names, is_whole=True)


def test_the_callers_of_the_one_that_was_asked_for_are_not_told(world: StandingThread) -> None:
    where = world.where("pthread_mutex_lock")
    assert where.names == ("futex_wait", "pthread_mutex_lock")
    assert len(where.addresses) == 2
    assert where.is_whole


def test_one_that_is_not_on_the_stack_is_not_found(world: StandingThread) -> None:
    assert not world.where("main").is_whole
    assert world.where("main").names == world.where(None).names
    assert world.where(None).is_whole


def test_a_system_call_that_is_to_begin_anew_is_one_as_well(world: StandingThread) -> None:
    registers = world.target.fake_threads[THREAD].registers
    registers["rip"] = world.at - len(SYSTEM_CALL)
    world.target.memory.mapped[FUNCTIONS["futex_wait"][0] - 16] = bytearray(16)
    before = bytes(16) + bytes(world.target.memory.mapped.pop(FUNCTIONS["futex_wait"][0]))
    world.target.map(FUNCTIONS["futex_wait"][0] - 16, before)
    assert world.where().futex == OBJECT
    registers["rip"] = world.at + 0x10
    assert world.where().futex == 0


def test_a_lock_is_waited_for_that_another_thread_has(world: StandingThread) -> None:
    """By the lock's own words, also where no begin of the wait was written down."""
    world.held_by(OTHER)
    world.known[OTHER] = OTHER_THREAD
    world.add(OTHER_THREAD, FUNCTIONS["f0"][0] + 0x10)
    for event in (None, begun(), begun(ObjectKind.FUTEX)):
        found = world.wait(event)
        assert found is not None
        assert (found.kind, found.address) == (ObjectKind.LOCK, OBJECT)
        assert found.holder is not None
        assert (found.holder.thread, found.holder.told) == (OTHER, HolderTold.NOW)
        assert found.holder.where is not None
        assert found.holder.where.functions[:1] == ("f0",)
        assert not found.holder.is_outside
        assert not found.holder.is_free


def test_a_holder_that_is_no_thread_of_the_program_is_outside(world: StandingThread) -> None:
    world.held_by(OTHER)
    assert world.wait() == OpenWait(
        ObjectKind.LOCK, OBJECT, LockHolder(OTHER, HolderTold.NOW, is_outside=True)
    )


def test_a_lock_that_names_nobody_was_held_as_the_wait_began(world: StandingThread) -> None:
    world.known[OTHER] = OTHER_THREAD
    holder = LockHolder(OTHER, HolderTold.AS_IT_BEGAN, is_free=True)
    assert world.wait(begun(thread=OTHER)) == OpenWait(ObjectKind.LOCK, OBJECT, holder)


def test_who_has_the_lock_by_now_does_not_wait_for_it(world: StandingThread) -> None:
    world.held_by(OWN)
    world.target.fake_threads[THREAD].registers["rip"] = world.at + 0x10
    assert world.wait(begun()) is None


def test_a_condition_has_no_holder(world: StandingThread) -> None:
    world.target.fake_threads[THREAD].registers["rip"] = world.at + 0x10
    found = world.wait(begun(ObjectKind.CONDITION))
    assert found == OpenWait(ObjectKind.CONDITION, OBJECT, None)


def test_a_wait_that_is_over_is_not_told(world: StandingThread) -> None:
    """Another function was called from there; it is in no system call of a lock's."""
    world.target.fake_threads[THREAD].registers["rip"] = world.at + 0x10
    stack = Stack(STACK + 40, 0, (ELSE,))
    assert world.wait(begun(ObjectKind.CONDITION, stack=stack)) is None


def test_where_a_pad_stands_for_the_return_address_the_wait_goes_on(world: StandingThread) -> None:
    """As the functions above are not known then, its slot alone tells."""
    world.target.fake_threads[THREAD].registers["rip"] = world.at + 0x10
    world.write(STACK + 40, 0x9_0000)
    found = world.stands.wait(OWN, begun(ObjectKind.CONDITION), world.where(last="main"))
    assert found == OpenWait(ObjectKind.CONDITION, OBJECT, None)


def test_of_a_thread_that_is_not_there_nothing_is_told(world: StandingThread) -> None:
    world.known.clear()
    assert world.where() == Standing(())
    assert world.stands.whereabouts(OWN, Standing(())) == ThreadStanding(OWN, None, (), False)
    assert world.wait() is None
    assert world.stands.show(OWN) is None


def test_a_thread_that_the_debugger_does_not_show_by_itself(
    world: StandingThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its number there, which is not its own."""
    monkeypatch.setattr(FakeThreads, "show", lambda _self, thread: f"thread {thread}")
    assert world.stands.show(OWN) == f"thread {THREAD}"


# ------------------------------------------------------------------- and that is gone


def test_when_the_program_dies_nothing_is_told(
    world: StandingThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may still name its threads, of which the debugger knows no more."""
    where = world.where()
    world.target.end()

    def gone(_self: object, thread: int) -> str | None:
        raise TargetError(f"thread {thread} is gone")

    monkeypatch.setattr(FakeThreads, "show", gone)
    assert world.where() == Standing(())
    assert world.wait(begun()) is None
    assert world.stands.wait(OWN, begun(ObjectKind.CONDITION), where) == OpenWait(
        *(ObjectKind.LOCK, OBJECT),
        LockHolder(0, HolderTold.AS_IT_BEGAN),
    ), "what was seen before is told, and no word is made up"
    assert world.stands.show(OWN) is None


def test_when_it_dies_amid_a_stack_that_stays_what_was_read(
    world: StandingThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory goes first."""
    read = world.target.memory.read

    def dying(address: int, size: int) -> bytes:
        if address == STACK + 40:
            world.target.end()
        return read(address, size)

    monkeypatch.setattr(world.target.memory, "read", dying)
    assert world.where() == Standing(())


@pytest.mark.parametrize("part", ["memory", "threads"])
def test_ctrl_c_is_no_answer(
    world: StandingThread, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """It goes through to whoever has asked, and the next one is answered as if it had not come."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    before = world.where()
    with monkeypatch.context() as patch:
        if part == "memory":
            patch.setattr(world.target.memory, "read", interrupted)
        else:
            patch.setattr(world.target.threads, "read_register", interrupted)
        with pytest.raises(KeyboardInterrupt):
            world.where()
    assert world.where() == before
