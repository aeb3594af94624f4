"""The contract of :class:`darc.target.target.Target`. Each check gets a fresh world; none knows
which debugger it is."""

from __future__ import annotations

import threading
from abc import ABC, ABCMeta
from collections.abc import Callable, Mapping
from pathlib import Path

from darc.code.processor import FLAGS
from darc.model.errors import TargetError
from darc.target.outcome import Outcome
from darc.target.ownthread import is_for_any_thread, public_members
from darc.target.target import State
from tests.contract.world import World

WORD = 0x1122334455667788
SIGURG = 23
UNMAPPED = 0x10
PARTS = ("bell", "breaks", "frames", "memory", "screen", "symbols", "threads", "user_breaks")
"""Attributes of a target that are parts of it."""
NOWHERE = 0x7FFF_0000_0000_0000


def refused(function: Callable[[], object]) -> bool:
    """Whether ``function`` fails as a target's functions may fail: in one line."""
    try:
        function()
    except TargetError as error:
        words = str(error)
    else:
        return False
    assert words
    assert "\n" not in words
    return True


def word_at(world: World, name: str) -> int:
    return int.from_bytes(world.target.memory.read(world.address(name), 8), "little")


def asked_elsewhere(thing: object) -> dict[str, str]:
    """What each public method and property of a target, or of a part of it, says on this thread."""

    def ask(name: str, member: object) -> str:
        try:
            if isinstance(member, property):
                getattr(thing, name)
            elif is_for_any_thread(member):
                return "is not called"
            else:
                getattr(thing, name)()
        except AssertionError as error:
            return str(error)
        except TypeError:
            return "would have run"
        return "ran"

    return {
        name: ask(name, member)
        for name, member in public_members(type(thing)).items()
        if callable(member) or isinstance(member, property)
    }


def marked(thing: object) -> set[str]:
    """Names of those that any thread may call."""
    return {
        name
        for name, member in public_members(type(thing)).items()
        if is_for_any_thread(member.fget if isinstance(member, property) else member)
    }


def promised(base: type[object]) -> set[str]:
    """Names of those of which their words say so."""
    members = public_members(base).items()
    return {name for name, member in members if "Any thread." in (member.__doc__ or "")}


def check_only_the_debuggers_own_thread_asks_it(world: World) -> None:
    """Every public method and property says no on another thread, before it asks anything; what
    bears the mark can be called there."""
    world.start()
    target = world.target
    things: list[object] = [target, *(getattr(target, name) for name in PARTS)]
    heard: list[dict[str, str]] = []

    def ask_all() -> None:
        heard.extend(map(asked_elsewhere, things))
        target.screen.live("a line")
        target.screen.live(None)

    other = threading.Thread(target=ask_all)
    other.start()
    other.join()
    for thing, answers in zip(things, heard, strict=True):
        made_from = type(thing).__mro__[1:]
        base = [one for one in made_from if isinstance(one, ABCMeta) and one is not ABC][-1]
        assert base.__abstractmethods__ - {"hits_stop_all"} <= set(answers)
        said = {n: w for n, w in answers.items() if "was called on another thread" not in w}
        assert set(said) <= marked(thing), said
        assert promised(base) <= marked(thing)
    assert "live" in marked(target.screen)
    assert "arm" not in marked(target.bell)
    assert not marked(target.memory) | marked(target.symbols) | marked(target.user_breaks)
    assert not marked(target.threads.ids) & {"ids", "read_register"}
    assert target.turn.is_own_thread()
    assert target.threads.ids()


def check_before_the_program_runs(world: World) -> None:
    target = world.target
    assert target.state is State.NONE
    assert target.pid is None
    assert target.executable is not None
    assert target.executable.endswith("/program")
    assert list(target.threads.ids()) == []
    assert refused(lambda: target.memory.read(UNMAPPED, 1))


def check_a_stopped_program(world: World) -> None:
    world.start()
    target = world.target
    assert target.state is State.STOPPED
    assert isinstance(target.pid, int)
    assert target.pid in target.threads.ids()
    assert not target.attached
    target.check_supported()


def check_after_the_end(world: World) -> None:
    world.start()
    while world.go() is not None:
        pass
    check_before_the_program_runs(world)
    assert not refused(world.target.bell.disarm)
    assert not refused(world.target.breaks.cancel_break)


def check_after_a_kill(world: World) -> None:
    world.start()
    world.target.bell.arm(SIGURG, lambda: Outcome.CONTINUE)
    world.target.breaks.break_once(world.address("pass"), lambda: Outcome.CONTINUE)
    world.kill()
    check_before_the_program_runs(world)
    assert not refused(world.target.bell.disarm)
    assert not refused(world.target.breaks.cancel_break)


def check_memory(world: World) -> None:
    world.start()
    target, address = world.target, world.address("word")
    assert word_at(world, "word") == WORD
    target.memory.write(address + 1, b"\xaa\xbb")
    assert target.memory.read(address, 8) == b"\x88\xaa\xbb\x55\x44\x33\x22\x11"
    target.memory.write(address, WORD.to_bytes(8, "little"))
    assert target.memory.read(address, 0) == b""
    assert isinstance(target.memory.read(address, 8), bytes)


def check_memory_that_is_not_there(world: World) -> None:
    world.start()
    assert refused(lambda: world.target.memory.read(UNMAPPED, 8))
    assert refused(lambda: world.target.memory.write(UNMAPPED, b"x"))
    assert refused(lambda: world.target.memory.read(NOWHERE, 1))


def check_code_is_read_without_breakpoints(world: World) -> None:
    world.start()
    target, address = world.target, world.address("add")
    before = target.memory.read(address, 16)
    world.set_breakpoint(address)
    assert target.memory.read(address, 16) == before
    world.go()
    assert target.memory.read(address, 16) == before


def check_code_is_written_under_a_breakpoint(world: World) -> None:
    """The breakpoint stays, the bytes under it are the new ones, also once it is gone."""
    world.start()
    target, address = world.target, world.address("pass")
    original = target.memory.read(address, 16)
    world.set_breakpoint(address)
    target.memory.write(address, b"\xc3" + original[1:])
    assert target.memory.read(address, 16) == b"\xc3" + original[1:]
    assert world.go() == address
    world.clear_breakpoint(address)
    assert target.memory.read(address, 16) == b"\xc3" + original[1:]
    assert world.go() == world.address("stop_here")
    assert word_at(world, "passed") == 0, "ret is what was written there"
    target.memory.write(address, original)
    assert world.go() == world.address("stop_here")
    assert word_at(world, "passed") == 3


def check_threads(world: World) -> None:
    world.start()
    target = world.target
    assert len(set(target.threads.ids())) == len(target.threads.ids()) == 2
    assert set(target.threads.program_counters()) == set(target.threads.ids())
    assert target.pid is not None
    assert target.threads.program_counters()[target.pid] == world.address("stop_here")
    for thread, pc in target.threads.program_counters().items():
        assert target.threads.read_register(thread, "rip") == pc
    bases = {target.threads.read_register(thread, "fs_base") for thread in target.threads.ids()}
    assert len(bases) == 2
    assert 0 not in bases
    assert target.threads.read_register(target.pid, "rsp") % 16 == 8


def check_registers_are_written(world: World) -> None:
    """64 bits without a sign, in the thread that is meant, and told to whoever asks next."""
    world.start()
    target = world.target
    for thread in target.threads.ids():
        old = target.threads.read_register(thread, "r11")
        target.threads.write_register(thread, "r11", (1 << 64) - 2)
        assert target.threads.read_register(thread, "r11") == (1 << 64) - 2
        target.threads.write_register(thread, "r11", old)
    main = target.pid
    assert main is not None
    before = target.threads.program_counters()[main]
    target.threads.write_register(main, "rip", world.address("rung"))
    assert target.threads.program_counters()[main] == world.address("rung")
    target.threads.write_register(main, "rip", before)
    assert target.threads.program_counters()[main] == before
    flags = target.threads.read_register(main, FLAGS)
    for made in (flags ^ 1, flags):  # the carry
        target.threads.write_register(main, FLAGS, made)
        assert target.threads.read_register(main, FLAGS) == made


def check_registers_that_are_not_there(world: World) -> None:
    world.start()
    target, main = world.target, world.target.pid
    assert main is not None
    assert refused(lambda: target.threads.read_register(main, "nonsense"))
    assert refused(lambda: target.threads.read_register(1, "rip"))
    assert refused(lambda: target.threads.write_register(1, "rip", 0))


def check_calls(world: World) -> None:
    """All arguments and the result have 64 bits; the caller's registers are as before."""
    world.start()
    target, main = world.target, world.target.pid
    assert main is not None
    names = ("rip", "rsp", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
    before = {name: target.threads.read_register(main, name) for name in names}
    add = world.address("add")
    assert target.call(add, [1, 2, 3, 4, 5, 6]) == 21
    assert target.call(add, [1 << 63, 1, 0, 0, 0, 0]) == (1 << 63) + 1
    assert target.call(add, [(1 << 64) - 1, 0, 0, 0, 0, 0]) == (1 << 64) - 1
    assert word_at(world, "calls") == 3
    assert {name: target.threads.read_register(main, name) for name in names} == before
    assert target.threads.program_counters()[main] == world.address("stop_here")
    assert world.go() == world.address("stop_here")


def check_other_threads_stay_in_calls(world: World) -> None:
    world.start()
    target = world.target
    ticks = word_at(world, "ticks")
    for _ in range(20):
        target.call(world.address("add"), [0] * 6)
    assert word_at(world, "ticks") == ticks
    world.go()
    assert word_at(world, "ticks") >= ticks


def check_a_call_that_crashes(world: World) -> None:
    """An error, and the program stands where it stood."""
    world.start()
    target, main = world.target, world.target.pid
    assert main is not None
    assert refused(lambda: target.call(world.address("crash"), []))
    assert target.threads.read_register(main, "rip") == world.address("stop_here")
    assert target.call(world.address("add"), [1, 1, 0, 0, 0, 0]) == 2
    assert world.go() == world.address("stop_here")


def check_break_once(world: World) -> None:
    """Once, with the program really stopped there, and it goes on by itself."""
    world.start()
    target, main = world.target, world.target.pid
    assert main is not None
    found: list[int] = []

    def handler() -> Outcome:
        found.append(target.threads.read_register(main, "rip"))
        found.append(target.call(world.address("add"), [len(found), 4, 0, 0, 0, 0]))
        return Outcome.CONTINUE

    target.breaks.break_once(world.address("pass"), handler)
    assert world.go() == world.address("stop_here")
    assert found == [world.address("pass"), 5]
    assert word_at(world, "passed") == 3
    assert world.go() == world.address("stop_here")
    assert len(found) == 2


def check_break_once_stays(world: World) -> None:
    """Where its handler says so the program stays there, and goes on from there."""
    world.start()
    world.target.breaks.break_once(world.address("pass"), lambda: Outcome.STOP)
    assert world.go() == world.address("pass")
    assert world.go() == world.address("stop_here")


def check_break_once_is_set_anew(world: World) -> None:
    world.start()
    target = world.target
    found: list[str] = []

    def meets(name: str) -> Callable[[], Outcome]:
        def met() -> Outcome:
            found.append(name)
            return Outcome.CONTINUE

        return met

    target.breaks.break_once(world.address("pass"), meets("first"))
    target.breaks.break_once(world.address("pass"), meets("second"))
    world.go()
    assert found == ["second"]
    target.breaks.break_once(world.address("pass"), meets("third"))
    target.breaks.break_once(world.address("rung"), meets("fourth"))
    world.go()
    assert found == ["second", "fourth"]


def check_break_once_is_cancelled(world: World) -> None:
    world.start()
    world.target.breaks.break_once(world.address("pass"), lambda: Outcome.STOP)
    world.target.breaks.cancel_break()
    world.target.breaks.cancel_break()
    assert world.go() == world.address("stop_here")


def check_break(world: World) -> None:
    """At every pass, in the thread that came there, without the user's command noticing."""
    world.start()
    target, address = world.target, world.address("pass")
    hits: list[tuple[int, int, int]] = []

    def on_hit(thread: int) -> None:
        rip = target.threads.read_register(thread, "rip")
        hits.append((thread, rip, word_at(world, "passed")))
        assert target.threads.read_register(thread, "rsp") % 16 == 8
        target.threads.read_register(thread, "eflags")

    code = target.memory.read(address, 8)
    take_back = target.breaks.set_break(address, on_hit)
    for passed in (0, 3):
        assert world.go() == world.address("stop_here")
        assert hits == [(target.pid, address, passed + n) for n in range(3)]
        assert target.memory.read(address, 8) == code
        assert set(target.user_breaks.addresses()) == {world.address("stop_here")}
        hits.clear()
    take_back()
    take_back()
    assert world.go() == world.address("stop_here")
    assert hits == []


def check_break_defers(world: World) -> None:
    """What a hit asks for is done with all threads stopped: code is written, breaks change, also
    the very one that was hit."""
    world.start()
    target = world.target
    seen: list[str] = []
    takes: dict[str, Callable[[], None]] = {}

    def at_once(thread: int) -> Callable[[], Outcome]:
        return act

    def act() -> Outcome:
        first = word_at(world, "ticks")
        assert set(target.threads.program_counters()) == set(target.threads.ids())
        seen.append("pass")
        takes["pass"]()
        takes["rung"] = target.breaks.set_break(world.address("rung"), later)
        target.memory.write(world.address("outer"), b"\xc3")
        assert word_at(world, "ticks") == first
        return Outcome.CONTINUE

    def later(thread: int) -> None:
        seen.append("rung")

    takes["pass"] = target.breaks.set_break(world.address("pass"), at_once)
    original = target.memory.read(world.address("outer"), 1)
    assert world.go() == world.address("stop_here")
    assert seen == ["pass", "rung"]
    assert target.memory.read(world.address("outer"), 1) == b"\xc3"
    target.memory.write(world.address("outer"), original)
    takes["pass"] = target.breaks.set_break(world.address("pass"), at_once)
    takes["rung"]()
    assert world.go() == world.address("stop_here")
    assert seen == ["pass", "rung"] * 2


def check_break_stops_the_program(world: World) -> None:
    """There, when what it asked for says so; breaks may all be taken back then."""
    world.start()
    target, address = world.target, world.address("pass")

    def stop() -> Outcome:
        take_back()
        return Outcome.STOP

    take_back = target.breaks.set_break(address, lambda thread: stop)
    assert world.go() == address
    assert target.state is State.STOPPED
    assert target.call(world.address("add"), [1, 1, 0, 0, 0, 0]) == 2
    assert world.go() == world.address("stop_here")
    assert word_at(world, "passed") == 3


def check_break_where_the_user_has_one(world: World) -> None:
    """Both act, in either order of setting them."""
    world.start()
    target, hits = world.target, []
    first, second = world.address("pass"), world.address("rung")
    world.set_breakpoint(first)
    target.breaks.set_break(first, lambda thread: hits.append(first))
    target.breaks.set_break(second, lambda thread: hits.append(second))
    world.set_breakpoint(second)
    for expected in (first, first, first, second):
        assert world.go() == expected
    assert hits == [first, first, first, second]
    world.clear_breakpoint(second)
    world.clear_breakpoint(first)
    assert world.go() == world.address("stop_here")


def check_break_where_no_code_is(world: World) -> None:
    world.start()
    assert refused(lambda: world.target.breaks.set_break(UNMAPPED, lambda thread: None))
    assert world.go() == world.address("stop_here")


def check_own_threads(world: World) -> None:
    """The debugger's, as this system knows them, and none of the program's."""
    world.start()
    own = set(world.target.own_threads())
    assert not own & set(world.target.threads.ids())
    assert all(Path(f"/proc/{thread}").exists() for thread in own)
    assert isinstance(world.target.breaks.hits_stop_all, bool)


def check_break_after_the_end(world: World) -> None:
    world.start()
    take_back = world.target.breaks.set_break(world.address("pass"), lambda thread: None)
    world.kill()
    take_back()
    assert world.target.state is State.NONE


def check_bell(world: World) -> None:
    """With all threads stopped, at each ring, without the user's command noticing."""
    world.start()
    target = world.target
    ticks: list[tuple[int, int]] = []

    def handler() -> Outcome:
        first = word_at(world, "ticks")
        for _ in range(50):
            target.threads.program_counters()
        ticks.append((first, word_at(world, "ticks")))
        assert set(target.threads.program_counters()) == set(target.threads.ids())
        return Outcome.CONTINUE

    target.bell.arm(SIGURG, handler)
    for expected in (1, 2):
        assert world.go() == world.address("stop_here")
        assert len(ticks) == expected
    assert all(first == last for first, last in ticks)
    target.bell.disarm()
    assert world.go() == world.address("stop_here")
    assert len(ticks) == 2


def check_each_stop_at_the_bell_has_a_number(world: World) -> None:
    """What was read of the program at one of them may be otherwise at the next."""
    world.start()
    target = world.target
    numbers: list[int | None] = []

    def handler() -> Outcome:
        numbers.append(target.stop_number)
        assert target.stop_number == numbers[-1]
        return Outcome.CONTINUE

    target.bell.arm(SIGURG, handler)
    world.go()
    world.go()
    numbers.append(target.stop_number)
    known = [number for number in numbers if number is not None]
    assert len(set(known)) == len(known)
    assert len(numbers) == 3
    target.bell.disarm()


def check_bell_may_patch_code(world: World) -> None:
    world.start()
    target, address = world.target, world.address("pass")
    original = target.memory.read(address, 1)

    def handler() -> Outcome:
        target.memory.write(address, b"\xc3")
        return Outcome.CONTINUE

    target.bell.arm(SIGURG, handler)
    world.go()
    assert word_at(world, "passed") == 3
    world.go()
    assert word_at(world, "passed") == 3
    assert target.memory.read(address, 1) == b"\xc3" != original


def check_bell_stops_the_program(world: World) -> None:
    """In the thread that rang, where the handler has led it by its registers."""
    world.start()
    target, main = world.target, world.target.pid
    assert main is not None
    rung = world.address("rung")

    def handler() -> Outcome:
        back = target.threads.read_register(main, "rip")
        slot = target.threads.read_register(main, "rsp") - 8
        target.memory.write(slot, back.to_bytes(8, "little"))
        target.threads.write_register(main, "rsp", slot)
        target.threads.write_register(main, "rip", rung)
        return Outcome.STOP

    target.bell.arm(SIGURG, handler)
    assert world.go() == rung
    assert target.state is State.STOPPED
    assert target.threads.read_register(main, "rip") == rung
    assert target.call(world.address("add"), [1, 1, 0, 0, 0, 0]) == 2
    target.bell.disarm()
    assert world.go() == world.address("stop_here")
    assert world.go() == world.address("stop_here")


def check_bell_stops_at_once(world: World) -> None:
    """Wherever the thread is."""
    world.start()
    target = world.target
    target.bell.arm(SIGURG, lambda: Outcome.STOP)
    pc = world.go()
    assert pc is not None
    assert pc not in (world.address("stop_here"), world.address("rung"))
    assert target.state is State.STOPPED
    target.bell.disarm()
    assert world.go() == world.address("stop_here")


def check_bell_is_disarmed_in_its_handler(world: World) -> None:
    world.start()
    rings: list[int] = []

    def handler() -> Outcome:
        rings.append(1)
        world.target.bell.disarm()
        return Outcome.CONTINUE

    world.target.bell.arm(SIGURG, handler)
    world.go()
    world.go()
    assert rings == [1]
    world.target.bell.arm(SIGURG, handler)
    world.go()
    assert rings == [1, 1]


def check_modules_change(world: World) -> None:
    """At loading and unloading; memory may be read and a breakpoint set there."""
    world.start()
    target = world.target
    seen: list[int] = []

    def handler() -> Outcome:
        seen.append(word_at(world, "word"))
        target.breaks.break_once(world.address("pass"), lambda: Outcome.CONTINUE)
        return Outcome.CONTINUE

    target.when_modules_change(handler)
    world.go()
    loaded = len(seen)
    assert loaded > 0
    assert set(seen) == {WORD}
    target.when_modules_change(None)
    world.go()
    assert len(seen) == loaded


def check_modules_are_unloaded(world: World) -> None:
    world.start()
    world.go()
    seen: list[int] = []

    def handler() -> Outcome:
        seen.append(1)
        return Outcome.CONTINUE

    world.target.when_modules_change(handler)
    world.go()
    assert seen


def check_breakpoints_of_the_user(world: World) -> None:
    """Those alone, not what the target sets for itself; a handler is told of changes."""
    world.start()
    target = world.target
    stop_here, rung = world.address("stop_here"), world.address("rung")
    told: list[int] = []
    target.breaks.break_once(world.address("pass"), lambda: Outcome.CONTINUE)
    target.bell.arm(SIGURG, lambda: Outcome.CONTINUE)
    assert set(target.user_breaks.addresses()) == {stop_here}
    target.user_breaks.when_changed(lambda: told.append(1))
    world.set_breakpoint(rung)
    assert told
    assert set(target.user_breaks.addresses()) == {stop_here, rung}
    world.clear_breakpoint(rung)
    assert set(target.user_breaks.addresses()) == {stop_here}
    target.user_breaks.when_changed(None)
    count = len(told)
    world.set_breakpoint(rung)
    assert len(told) == count


def check_source(world: World) -> None:
    world.start()
    target = world.target
    found = target.symbols.line_at(world.address("add"))
    assert found is not None
    assert found[0].endswith("program.c")
    assert found[1] > 0
    assert target.symbols.line_at(UNMAPPED) is None
    assert target.symbols.inlined_at(world.address("inlined_place")) == ("inner",)
    assert target.symbols.inlined_at(world.address("add")) == ()
    assert target.symbols.inlined_at(UNMAPPED) == ()


def check_shapes(world: World) -> None:
    """Of a structure with an array, and a union in that."""
    world.start()
    at = world.address("whole")
    shape = world.target.symbols.shape_of("whole", at)
    assert shape is not None
    assert (shape.name, shape.size, shape.element()) == ("", 32, None)
    first, parts = shape.fields()
    assert (first.name, first.offset, first.shape.size) == ("first", 0, 8)
    assert (parts.name, parts.offset) == ("parts", 8)
    assert not first.shape.fields()
    assert not parts.shape.fields()
    part = parts.shape.element()
    assert part is not None
    assert (part.name, part.size) == ("part_t", 8)
    assert [(one.name, one.offset) for one in part.fields()] == [("before", 0), ("", 4)]
    assert [one.name for one in part.fields()[1].shape.fields()] == ["number", "other"]
    assert world.target.symbols.shape_of("whole", at + 1) is None
    assert world.target.symbols.shape_of("no_such_variable", at) is None


def check_functions_of_a_file(world: World) -> None:
    world.start()
    target = world.target
    assert list(target.symbols.functions_in("program.c", "add")) == [world.address("add")]
    assert list(target.symbols.functions_in("program.c", "no_such_function")) == []
    assert list(target.symbols.functions_in("no_such_file.c", "add")) == []


def check_functions_that_the_debugger_knows(world: World) -> None:
    """Or does not know, where it has no names of its own."""
    world.start()
    called = world.target.symbols.functions_called
    assert list(called("outer")) in ([], [world.address("outer")])
    assert list(called("inner")) == list(called("no_such_function")) == []
    assert list(called("shell echo")) == list(called("$_exit + 1")) == []


def check_inlined_functions(world: World) -> None:
    def check() -> None:
        assert list(world.target.symbols.inlined_into("inner")) == ["outer"]
        assert list(world.target.symbols.inlined_into("outer")) == []
        assert list(world.target.symbols.inlined_into("no_such_function")) == []
        assert list(world.target.symbols.inlined_into("shell echo")) == []

    check()
    world.start()
    check()
    assert list(world.target.symbols.functions_in("program.c", "inner")) == []
    assert list(world.target.symbols.functions_in("program.c", "outer")) == [world.address("outer")]


def check_frames_may_be_forgotten(world: World) -> None:
    world.start()
    world.target.frames.forget()
    world.target.frames.hide_pads()


def check_pending(world: World) -> None:
    for accept in (True, False):
        world.set_pending(accept)
        assert world.target.screen.accepts_pending("wait for it?") == accept


def check_output(world: World) -> None:
    """Text as it is; no escape codes and no live line, as this is no terminal."""
    target = world.target
    assert target.screen.width >= 0
    assert target.screen.colour is False
    live = threading.Thread(target=lambda: target.screen.live("handle: 5 calls"))
    live.start()
    live.join()
    target.screen.emit("two → lines\nof 100 %s")
    target.screen.live(None)
    assert "two → lines\nof 100 %s\n" in world.shown()
    assert "5 calls" not in world.shown()


CHECKS: Mapping[str, Callable[[World], None]] = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
