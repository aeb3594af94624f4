"""What is written down outside of a process: it is found, believed only where it may be, and never
mistaken for another process's."""

from __future__ import annotations

import errno
import os
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.debuggee import journal
from darc.debuggee.journal import ProcessJournal, is_darcs, journal_of, left, name_of, parse
from darc.model.errors import TargetError, UnsupportedError
from darc.target.target import Passage, Place
from tests.fake_target import FakeTarget

PATCH = Place(0x40_1000, b"\xe8\x11\x22\x33\x44", b"\xe9\x55\x66\x77\x88")
OTHER = Place(0x40_2000, b"\x90" * 5, b"\xe9\x01\x02\x03\x04")
HOLE = Passage(
    place=Place(0x40_8000, bytes(4), b"\x0f\x05\x0f\x05"),
    thread=7,
    leave=0x40_8002,
    registers={"rip": 5},
    mask=3,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "darc-0"


def opened(folder: Path, *, required: bool = True) -> ProcessJournal:
    made = ProcessJournal(os.getpid(), required=required, folders=[folder])
    made.open()
    return made


def found(folder: Path) -> journal.Left:
    seen = left(os.getpid(), [folder])
    assert seen is not None
    return seen


def test_what_a_killed_debugger_has_noted(folder: Path) -> None:
    noted = opened(folder)
    noted.patches([PATCH])
    noted.patches([PATCH, OTHER])
    noted.borrows(HOLE)
    seen = found(folder)
    assert list(seen.places) == [PATCH, OTHER]
    assert seen.passages == {HOLE.place.address: HOLE}
    assert seen.stood
    noted.gives_back()
    noted.goes_on()
    assert not found(folder).passages
    assert not found(folder).stood
    assert (folder / name_of(os.getpid())).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_memory_is_known_until_the_kernel_has_unmapped_it(folder: Path) -> None:
    """The debugger may be killed before, and after that."""
    noted, place = opened(folder), range(0x7000_0000, 0x7000_4000)
    noted.maps(place)
    assert (found(folder).mapped, found(folder).leaving) == ({place}, set())
    noted.unmaps(place)
    assert (found(folder).mapped, found(folder).leaving) == ({place}, {place})
    noted.unmapped(place)
    assert (found(folder).mapped, found(folder).leaving) == (set(), set())
    noted.maps(place)
    assert (found(folder).mapped, found(folder).leaving) == ({place}, set())


def test_who_stops_a_program_when_a_killed_debugger_was_seen_to_let_it_go(folder: Path) -> None:
    opened(folder)
    assert not found(folder).went_on
    with (folder / name_of(os.getpid())).open("a") as file:
        file.write(journal.WENT_ON)
    assert found(folder).went_on
    opened(folder)
    assert not found(folder).went_on


def test_a_stop_of_somebody_elses(folder: Path) -> None:
    """It is none of the debugger's until the program has gone on."""
    noted = ProcessJournal(os.getpid(), required=True, folders=[folder])
    noted.open(stopped_by_another=True)
    noted.stands()
    assert not found(folder).stood
    noted.goes_on()
    noted.stands()
    assert found(folder).stood


def test_it_is_removed_when_all_is_out(folder: Path) -> None:
    noted = opened(folder)
    noted.patches([PATCH, OTHER])
    noted.close(lambda place: place == OTHER)  # an error left one
    assert list(found(folder).places) == [PATCH, OTHER]
    noted.open()
    noted.close(lambda place: False)
    assert left(os.getpid(), [folder]) is None
    noted.borrows(HOLE)  # a call between two analyses
    assert found(folder).passages
    noted.gives_back()
    assert left(os.getpid(), [folder]) is None
    assert list(folder.iterdir()) == []


def test_it_stays_while_a_thread_may_be_in_what_is_borrowed(folder: Path) -> None:
    """The session may be over by then, and others may have called meanwhile."""
    noted = opened(folder)
    noted.borrows(HOLE)
    noted.borrows(replace(HOLE, place=replace(HOLE.place, address=HOLE.place.address + 4096)))
    noted.gives_back()
    noted.close(lambda place: False)
    assert list(found(folder).passages) == [HOLE.place.address]
    noted.gives_back()
    assert left(os.getpid(), [folder]) is None


def test_it_stays_while_a_thread_may_be_in_what_an_earlier_debugger_has_borrowed(
    folder: Path,
) -> None:
    """What the one after it does and takes back again says nothing of that."""
    opened(folder).borrows(HOLE)
    noted = ProcessJournal(os.getpid(), required=True, folders=[folder])
    noted.maps(range(4096, 8192))
    noted.open()
    noted.patches([PATCH])
    noted.close(lambda place: False)
    noted.borrows(replace(HOLE, place=replace(HOLE.place, address=HOLE.place.address + 4096)))
    noted.gives_back()
    assert list(found(folder).passages) == [HOLE.place.address]
    found(folder).remove()
    noted.begin_anew()
    noted.maps(range(4096, 8192))
    assert left(os.getpid(), [folder]) is None


places = st.builds(
    lambda address, pair: Place(address, pair[0], pair[1]),
    st.integers(0, (1 << 64) - 1),
    st.integers(1, 16).flatmap(
        lambda size: st.tuples(
            st.binary(min_size=size, max_size=size), st.binary(min_size=size, max_size=size)
        )
    ),
)


@given(st.lists(places, max_size=8), st.data())
def test_a_torn_end_costs_the_last_record_alone(noted: list[Place], data: st.DataObject) -> None:
    lines = [journal._line({"patches": [journal._packed(place)]}) for place in noted]
    raw = b"".join(lines)
    cut = data.draw(st.integers(0, len(raw)))
    whole = 0
    while whole < len(lines) and sum(map(len, lines[: whole + 1])) - 1 <= cut:
        whole += 1
    assert list(parse(raw[:cut]).places) == list(dict.fromkeys(noted[:whole]))
    # A debugger that goes on behind a torn record.
    more = journal._line({"patches": [journal._packed(PATCH)]})
    assert PATCH in parse(raw[:cut] + more).places


@given(st.binary(max_size=300))
def test_no_content_is_an_error(raw: bytes) -> None:
    assert not parse(raw).places


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["patches", "borrows", "thread", "leave", "registers", "mask", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_no_record_is_an_error(record: object) -> None:
    parse(journal._line(record))  # type: ignore[arg-type]


def test_others_are_not_believed(folder: Path, tmp_path: Path) -> None:
    opened(folder).patches([PATCH])
    file = folder / name_of(os.getpid())
    assert left(os.getpid(), [folder]) is not None
    file.chmod(0o622)
    assert left(os.getpid(), [folder]) is None
    file.chmod(0o600)
    folder.chmod(0o777)
    assert left(os.getpid(), [folder]) is None
    folder.chmod(0o700)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert left(os.getpid(), [folder]) is None
    file.unlink()
    os.mkfifo(file)
    assert left(os.getpid(), [folder]) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_is_not_believed(folder: Path) -> None:
    opened(folder).patches([PATCH])
    os.chown(folder / name_of(os.getpid()), 12345, 12345)
    assert left(os.getpid(), [folder]) is None
    with pytest.raises(UnsupportedError):
        opened(folder)


@pytest.mark.parametrize("what", ["directory", "pipe"])
def test_what_is_no_file_in_its_place(folder: Path, tmp_path: Path, what: str) -> None:
    """Others may have put it there, in a folder that they made first. Nobody waits for a pipe."""
    folder.mkdir(mode=0o700)
    place = folder / name_of(os.getpid())
    place.mkdir() if what == "directory" else os.mkfifo(place)
    assert left(os.getpid(), [folder]) is None
    noted = ProcessJournal(os.getpid(), required=True, folders=[folder, tmp_path / "next"])
    noted.open()
    noted.patches([PATCH])
    assert list(found(tmp_path / "next").places) == [PATCH]


@pytest.mark.parametrize("deep", [b"[", b'{"patches":'])
def test_a_record_without_an_end_is_passed_over(deep: bytes) -> None:
    text = deep * 100_000
    more = journal._line({"patches": [journal._packed(PATCH)]})
    assert list(parse(b"\n%08x %s\n" % (zlib.crc32(text), text) + more).places) == [PATCH]


def test_memory_that_no_process_can_have_is_passed_over() -> None:
    """Python's own sizes end at 2 ** 63."""
    ranges = [(0, (1 << 64) - 1), (1 << 63, 0), (4096, 4096), (4096, 8192)]
    lines = [journal._line({"maps": list(one)}) for one in ranges]
    assert parse(b"".join(lines)).mapped == {range(4096, 8192)}


def test_files_that_are_no_journals_are_left_alone(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    boot, namespace, *_ = name_of(os.getpid()).split("-")
    others = [folder / f"{boot}-{namespace}-{pid}-7" for pid in ("x1", "\N{SUPERSCRIPT TWO}")]
    for file in others:
        file.touch()
    opened(folder).close(lambda place: False)
    assert sorted(folder.iterdir()) == sorted(others)


def test_a_link_in_its_place_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder.mkdir(mode=0o700)
    (folder / name_of(os.getpid())).symlink_to(victim)
    with pytest.raises(UnsupportedError):
        opened(folder)
    assert victim.read_bytes() == b"precious"


def test_no_place_for_it(tmp_path: Path) -> None:
    blocked = tmp_path / "file" / "darc-0"
    (tmp_path / "file").write_text("")
    with pytest.raises(UnsupportedError, match="cannot write the journal"):
        opened(blocked)
    noted = opened(blocked, required=False)  # the program ends with its debugger
    noted.patches([PATCH])
    noted.borrows(HOLE)
    noted.gives_back()
    noted.close(lambda place: False)


def test_a_folder_that_becomes_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = tmp_path / "one" / "darc-0", tmp_path / "two" / "darc-0"
    first.parent.mkdir()
    second.parent.mkdir()
    noted = ProcessJournal(os.getpid(), required=True, folders=[first, second])
    noted.open()
    noted.patches([PATCH])
    full, write = (first / name_of(os.getpid())).stat().st_ino, os.write

    def refuse(descriptor: int, data: bytes) -> int:
        if os.fstat(descriptor).st_ino == full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", refuse)
    noted.patches([OTHER])
    seen = left(os.getpid(), [first, second])
    assert seen is not None
    assert list(seen.places) == [PATCH, OTHER]
    noted.close(lambda place: False)
    assert left(os.getpid(), [first, second]) is None


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    noted = opened(folder)
    monkeypatch.setattr(os, "write", lambda descriptor, data: len(data) - 1)
    with pytest.raises(TargetError, match="No space"):
        noted.patches([PATCH])


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """It would be so in the middle: what had been mapped by then could not be given back."""
    write = os.write

    def refuse(descriptor: int, data: bytes) -> int:
        if os.fstat(descriptor).st_size + len(data) > 40 << 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(UnsupportedError, match="No space left on device"):
        opened(folder)


def test_a_debugger_that_is_killed_as_it_looks_for_room(folder: Path) -> None:
    noted = opened(folder)
    noted.patches([PATCH])
    file = folder / name_of(os.getpid())
    known = left(os.getpid(), [folder])
    assert known is not None
    file.write_bytes(file.read_bytes() + b" " * (256 << 10))
    assert left(os.getpid(), [folder]) == known
    noted.patches([OTHER])
    seen = left(os.getpid(), [folder])
    assert seen is not None
    assert list(seen.places) == [PATCH, OTHER]


def test_why_each_place_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that a system need not have is no reason where others are."""
    full, barred, absent = tmp_path / "full", tmp_path / "barred", tmp_path / "absent"
    full.mkdir()
    barred.mkdir()
    (barred / "darc-0").write_text("a file")
    monkeypatch.setattr(os, "write", lambda descriptor, data: len(data) - 1)
    folders = [one / "darc-0" for one in (full, barred, absent)]
    noted = ProcessJournal(os.getpid(), required=True, folders=folders)
    with pytest.raises(UnsupportedError) as told:
        noted.open()
    assert f": {full}: No space left on device; {barred}: {barred}/darc-0 is not" in str(told.value)
    assert "absent" not in str(told.value)


def test_journals_of_processes_that_are_gone_are_swept(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    own = name_of(os.getpid())
    boot, namespace, pid, start = own.split("-")
    gone = [f"{boot}-{namespace}-{pid}-{int(start) + 1}", f"{'0' * 32}-{namespace}-{pid}-{start}"]
    kept = [f"{boot}-{int(namespace) + 1}-{pid}-{start}", f"{boot}-{namespace}-1-{start}x", "notes"]
    kept[1] = f"{boot}-{namespace}-{os.getppid()}-{name_of(os.getppid()).split('-')[3]}"
    for name in (*gone, *kept):
        (folder / name).write_text("")
    opened(folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted([own, *kept])


@pytest.mark.parametrize(
    ("live", "ours"),
    [
        (PATCH.written, True),
        (PATCH.original, False),
        (b"\xcc" + PATCH.original[1:], True),  # the breakpoint of a debugger that is gone
        (PATCH.written[:2] + PATCH.original[2:], True),  # killed in the middle
        (b"\xe9\x00\x00\x00\x00", False),
        (PATCH.written[:4], False),
        (b"\xcc" * 5, False),  # what code that is made at run time is filled with
    ],
)
def test_what_is_darcs(live: bytes, ours: bool) -> None:
    assert is_darcs(PATCH, live) is ours


# ------------------------------------------------------------------------------- whose it is


def test_a_child_and_its_parent_have_one_each() -> None:
    """A debugger that goes on with a child comes back to its parent, whose journal is as it was."""
    target = FakeTarget()
    target.process = os.getppid()
    parents = journal_of(target, os.getppid())
    assert target.journal is parents
    target.process = os.getpid()
    childs = journal_of(target, os.getpid())
    assert target.journal is childs is not parents
    target.process = os.getppid()
    assert target.journal is parents is journal_of(target, os.getppid())


def test_another_process_with_the_same_id_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    target = FakeTarget()
    before = journal_of(target, os.getpid())
    monkeypatch.setattr(journal, "name_of", lambda pid: f"later-{pid}")
    after = journal_of(target, os.getpid())
    assert after is not before
    assert target.journals.of(os.getpid()) is after


def test_nothing_is_written_down_where_there_is_none() -> None:
    target = FakeTarget()
    target.journal.patches([PATCH])
    target.process = os.getpid()
    target.journal.open()
    assert target.journal is target.journals.of(None)


def test_it_begins_anew_where_its_file_was_removed(folder: Path) -> None:
    noted = ProcessJournal(os.getpid(), required=True, folders=[folder])
    noted.open()
    noted.patches([PATCH])
    left = found(folder)
    left.remove()
    noted.begin_anew()
    assert not list(folder.iterdir())
    noted.patches([PATCH])
    assert PATCH in found(folder).places, "as if it had never been noted"
