"""The text of ``perf script``: events with stacks, from which contexts are inferred (IntroPerf 4).

Made by::

    perf record -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -e context-switches -c 1 \
        --switch-events -k CLOCK_MONOTONIC_RAW --call-graph dwarf,16384 -p PID
    perf script --ns --no-inline --no-demangle --show-lost-events > FILE

Where events were lost, the time since the last one counts for nobody: what was called meanwhile is
not known. Perf does not say of which thread they were, so that holds of all of them.

Reading is strict: a line that perf does not write is refused with one
:class:`~darc.model.errors.FormatError` that names it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from darc.code.demangle import display_name, without_signature
from darc.model.contexts import Context, FunctionName, function_name
from darc.model.errors import FormatError, NotFoundError, TargetError, UsageError
from darc.model.inference import Inference, Trace
from darc.model.libraries import FIRST_CODE, is_later_start

HOW = "perf script --ns --no-inline --no-demangle --show-lost-events"
"""What makes such a text."""

_EVENT = re.compile(
    r"\s*\S.*?\s+(?:-?\d+/)?(?P<thread>-?\d+)\s+(?:\[\d+\]\s+)?(?P<seconds>\d{1,12})\."
    r"(?P<fraction>\d{6}|\d{9}):\s+(?:\d+\s+)?(?P<event>[A-Za-z_][\w:./=,-]*?):(?:\s.*)?"
)
_RECORD = re.compile(
    r"\s*\S.*?\s+(?:-?\d+/)?-?\d+\s+(?:\[\d+\]\s+)?(?P<seconds>\d{1,12})\."
    r"(?P<fraction>\d{6}|\d{9}):\s+PERF_RECORD_(?P<kind>[A-Z_]+)(?P<rest>.*)"
)
_INLINED = re.compile(r"\s+(?P<address>[0-9a-f]+) (?P<symbol>.+) \(inlined\)")
_FRAME = re.compile(
    r"\s+(?P<address>[0-9a-f]+) (?P<symbol>.+?\+0x[0-9a-f]+|\[unknown\]|.+?) \((?P<file>.*)\)"
)
_LOST = re.compile(r".*?\blost (\d+)\s*")
_LONGEST_LINE = 65536

_KERNELS = ("[kernel.kallsyms]", "[kernel]", "[guest.kernel.kallsyms]", "vmlinux")
_KERNEL = "vmlinux"
_SYSTEM_CALL = FunctionName("do_syscall_64", _KERNEL)
"""What it calls for the sake of an event of raw_syscalls is the kernel's work for perf."""

_TASK_STARTS = frozenset(
    ("ret_from_fork", "ret_from_fork_asm", "secondary_startup_64_no_verify", "secondary_startup_64")
)
"""Where a kernel's tasks begin."""


@dataclass(frozen=True)
class _TraceEvent:
    """A line of a trace with the stack below it."""

    thread: int
    time: int
    stack: tuple[FunctionName, ...]
    """Where the thread began first."""


class _BadLineError(Exception):
    """What is wrong with the line that was read last."""


def read_file(file: Path) -> Trace:
    """What the text in ``file`` tells.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it is no file.
        TargetError: the system refuses to read it.
        FormatError: it is no text of perf script, a damaged one, or has no stacks.
    """
    try:
        if not file.exists():
            raise NotFoundError(f"there is no file {file}; '{HOW}' makes such a text")
        if not file.is_file():
            raise UsageError(f"{file} is not a file; name one that '{HOW}' made")
        with file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            return read_lines(iter(lambda: stream.readline(_LONGEST_LINE), ""), str(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"cannot read {file}: {reason}; name another file") from error


def read_lines(lines: Iterable[str], name: str) -> Trace:
    """The same of lines, each with its end; ``name`` is what messages call them.

    Raises:
        FormatError: they are no text of perf script, or have no event with a stack.
    """
    reader = _ScriptReader()
    try:
        events = list(reader.events(lines))
    except _BadLineError as error:
        raise FormatError(
            f"{name} is not a text of perf script: line {reader.line} {error}; make it with '{HOW}'"
        ) from None
    if not events:
        what = "no event with a stack" if reader.bare else "no events"
        raise FormatError(f"{name} has {what}: 'perf record' with '--call-graph dwarf,16384'")
    threads: dict[int, list[_TraceEvent]] = {}
    for event in events:
        threads.setdefault(event.thread, []).append(event)
    tree = Context()
    gaps = sorted(reader.gaps)
    used = begun = 0
    for own in threads.values():
        own.sort(key=lambda event: event.time)  # perf's own order, but for what came too late
        whole = _whole(own)
        if whole:
            inference = Inference(tree)
            gap = 0
            for event in whole:
                if gap < len(gaps) and gaps[gap] <= event.time:
                    inference.finish()
                    gap = bisect_right(gaps, event.time)
                inference.event(event.time, event.stack)
            inference.finish()
            used += len(whole)
            begun += 1
    times = [event.time for event in events]
    return Trace(
        tree,
        events=used,
        threads=begun,
        seconds=(max(times) - min(times)) / 1e9,
        cut=len(events) - used,
        bare=reader.bare,
        lost=reader.lost,
    )


def _whole(events: list[_TraceEvent]) -> list[_TraceEvent]:
    """Those of a thread whose stacks are not cut: they begin where threads do, or where most of
    this thread's stacks do, as not all programs begin in one of the C library's functions."""
    firsts = Counter(event.stack[0] for event in events)
    if any(_is_start(first.name) for first in firsts):
        return [event for event in events if _is_start(event.stack[0].name)]
    most, count = firsts.most_common(1)[0]
    if 2 * count <= len(events):
        return []
    return [event for event in events if event.stack[0] == most]


def _is_start(name: str) -> bool:
    return name in _TASK_STARTS or name == FIRST_CODE or is_later_start(name)


class _ScriptReader:
    """One pass over the lines."""

    def __init__(self) -> None:
        self.line = 0
        self.bare = 0
        self.lost = 0
        self.gaps: list[int] = []
        """Up to when events were lost, in ns: since the one before."""
        self._frames: dict[str, tuple[str, FunctionName]] = {}

    def events(self, lines: Iterable[str]) -> Iterator[_TraceEvent]:
        """The events that have a stack."""
        head: re.Match[str] | None = None
        frames: list[tuple[str, FunctionName]] = []
        for text in lines:
            self.line += 1
            if not text.endswith("\n"):
                _refuse("has no end: the file was cut off")
            if "\0" in text:
                _refuse("holds a NUL")
            if text == "\n":
                if head is not None:
                    yield from self._event(head, frames)
                head, frames = None, []
            elif head is not None and text[0] in " \t" and (frame := self._frame(text)) is not None:
                frames.append(frame)
            elif head is None and text[0] == "#":
                continue
            elif (record := _RECORD.fullmatch(text[:-1])) is not None and not frames:
                self._record(record)
                self.bare += head is not None
                head = None
            elif (found := _EVENT.fullmatch(text[:-1])) is not None and not frames:
                self.bare += head is not None
                head = found
            else:
                _refuse(f"is none of an event or of its stack: {text.strip()[:40]!a}")
        if head is not None:
            _refuse("is its last, in the middle of an event: the file was cut off")

    def _record(self, found: re.Match[str]) -> None:
        if found["kind"] in ("LOST", "LOST_SAMPLES"):
            many = _LOST.fullmatch(found["rest"])
            if many is None or len(many[1]) > 18:
                _refuse("does not say how many events were lost")
            self.lost += int(many[1])
            self.gaps.append(_ns(found))

    def _event(
        self, head: re.Match[str], frames: list[tuple[str, FunctionName]]
    ) -> Iterator[_TraceEvent]:
        stack = _functions(frames)
        if head["event"].startswith("raw_syscalls:") and _SYSTEM_CALL in stack:
            del stack[: stack.index(_SYSTEM_CALL)]
        if not stack:
            self.bare += 1
            return
        yield _TraceEvent(int(head["thread"]), _ns(head), tuple(reversed(stack)))

    def _frame(self, text: str) -> tuple[str, FunctionName] | None:
        """The frame's address and function, whose file is not told where that was inlined into the
        next one; nothing for a line that is none."""
        known = self._frames.get(text)
        if known is None:
            found = _INLINED.fullmatch(text[:-1])
            module = ""
            if found is None:
                found = _FRAME.fullmatch(text[:-1])
                if found is None:
                    return None
                module = _module(found["file"])
            function = function_name(_name(found["symbol"]), module)
            known = self._frames[text] = (found["address"], function)
        return known


def _functions(frames: list[tuple[str, FunctionName]]) -> list[FunctionName]:
    """The functions that have frames, the innermost first: of those inlined into each other the
    one that holds them, which perf names last."""
    made: list[FunctionName] = []
    for index, (address, function) in enumerate(frames):
        following = frames[index + 1] if index + 1 < len(frames) else None
        if following is not None and following[0] == address and not function.module:
            continue
        made.append(function)
    return made


def _ns(found: re.Match[str]) -> int:
    return int(found["seconds"]) * 1_000_000_000 + int(found["fraction"].ljust(9, "0"))


def _module(file: str) -> str:
    if file in _KERNELS:
        return _KERNEL
    base = PurePosixPath(file.removesuffix(" (deleted)")).name
    return base.strip("[]") if base.startswith("[") else base


def _name(symbol: str) -> str:
    """As darc calls the function: demangled, without parameters and the compiler's suffixes."""
    bare = re.sub(r"\+0x[0-9a-f]+$", "", symbol)
    return without_signature(bare) if "(" in bare else display_name(bare)


def _refuse(what: str) -> NoReturn:
    raise _BadLineError(what)
