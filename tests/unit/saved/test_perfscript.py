"""Texts of ``perf script``: what they tell, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.contexts import Context, Cost
from darc.model.errors import DarcError, FormatError
from darc.model.inference import Trace
from darc.saved import perfscript

ENTER = "raw_syscalls:sys_enter: NR 230 (0, 0, 7ffe823fcc70, 0, 0, 7fe6d1ef26d0)"
EXIT = "raw_syscalls:sys_exit: NR 230 = 0"
KERNEL = "do_syscall_64", "entry_SYSCALL_64_after_hwframe"
KERNEL_TOO = (*KERNEL, "syscall_trace_enter", "schedule")
USER = "slow", "handle", "main", "_start"


def event(time: str, what: str, *frames: str, thread: str = "11004", cpu: str = "[000] ") -> str:
    """As perf writes it; the innermost frame first."""
    lines = [f"prog {thread} {cpu}{time}: {what}"]
    for frame in frames:
        file = "[kernel.kallsyms]" if frame in KERNEL_TOO else "/usr/lib/prog"
        whole = frame if frame.endswith(")") else f"{frame}+0x1f ({file})"
        lines.append(f"\t{0x1156:16x} {whole}")
    return "\n".join(lines) + "\n\n"


LOST = "prog 1 [000] 7.000001: PERF_RECORD_LOST "


def read(text: str) -> Trace:
    return perfscript.read_lines(text.splitlines(keepends=True), "p.txt")


def costs(tree: Context) -> dict[str, Cost]:
    return {
        ">".join(one.function.name for one in node.route()): node.cost
        for node in tree.walk()
        if node.inferred is not None
    }


SLEEP = (
    event("7.000001", ENTER, "syscall_trace_enter", *KERNEL, *USER)
    + event("7.000011", "         1       context-switches: ", "schedule", *KERNEL, *USER, cpu="")
    + "prog 11004 [000] 7.000013: PERF_RECORD_SWITCH OUT\n"
    + "prog 11004 [000] 7.002090: PERF_RECORD_SWITCH IN\n"
    + event("7.002101000", EXIT, "syscall_trace_enter", *KERNEL, *USER)
)


def test_a_system_call_and_the_switch_in_it() -> None:
    trace = read(SLEEP)
    assert (trace.events, trace.threads, trace.cut, trace.bare, trace.lost) == (3, 1, 0, 0, 0)
    assert trace.seconds == pytest.approx(0.0021)
    found = costs(trace.tree)
    whole = Cost(1, 2_100_000, 2_100_000)
    path = "_start>main>handle>slow>entry_SYSCALL_64_after_hwframe>do_syscall_64"
    assert found[path] == found["_start"] == whole
    assert found[f"{path}>schedule"] == Cost(1, 0, 2_090_000)
    assert not any("trace_enter" in one for one in found), "that is the kernel's work for perf"
    (start,) = trace.tree.children
    assert start.module == "prog"
    modules = {node.function.module for node in trace.tree.walk()}
    assert modules == {"prog", "vmlinux"}


def test_what_is_lost_and_cut_is_told() -> None:
    trace = read(
        SLEEP
        + "prog 11004 [000] 7.003900: PERF_RECORD_LOST lost 4\n"
        + event("7.003000", ENTER, *KERNEL, "slow", "handle")
        + event("7.003500", ENTER, *KERNEL)
        + "prog 11004 [000] 7.003600: raw_syscalls:sys_exit: NR 3 = 0\n\n"
        + event("7.004001", ENTER, *KERNEL, *USER)
    )
    assert (trace.events, trace.cut, trace.bare, trace.lost) == (4, 2, 1, 4)
    assert costs(trace.tree)["_start"] == Cost(2, 2_100_000, 2_100_000)


def test_what_is_cut_ends_no_call() -> None:
    later = event("7.003001", ENTER, *KERNEL, "slow") + event("7.004001", ENTER, *KERNEL, *USER)
    assert costs(read(SLEEP + later).tree)["_start"] == Cost(1, 4_000_000, 4_000_000)


def test_a_program_that_does_not_begin_in_the_c_library() -> None:
    """Most of its stacks tell where it does."""
    calls = "".join(event(f"1.00000{n}", ENTER, *KERNEL, "work", "goexit") for n in range(4))
    trace = read(calls + event("1.000009", ENTER, *KERNEL, "work"))
    assert (trace.events, trace.cut) == (4, 1)
    assert costs(trace.tree)["goexit>work"].ns == 3000


def test_functions_that_were_inlined_have_no_frame() -> None:
    inlined = "clamp+0x2 (inlined)", "slow (inlined)"
    lines = event("1.000000", ENTER, *KERNEL, *inlined, *USER)
    for above in ("_start", "main", "handle"):  # other addresses: these called each other
        lines = re.sub(rf"\S+ {above}\+", f"{len(above):x} {above}+", lines)
    found = [node.function.name for node in read(lines).tree.walk()]
    assert found[:5] == ["_start", "main", "handle", "slow", KERNEL[1]]


def test_names_are_those_that_darc_has() -> None:
    frames = (
        "_ZN2ns5Cache3getEi+0x12 (/opt/app (deleted))",
        "ns::Cache::put(int, char const*)+0x2 (/opt/lib dir/libx.so.1)",
        "work.isra.0+0x2 (/opt/app)",
        "usleep@@GLIBC_2.34+0x44 (/usr/lib/x86_64-linux-gnu/libc.so.6)",
        "[unknown] (/opt/app)",
        "_start+0x1 (/opt/app)",
    )
    trace = read(event("1.000000", ENTER, *frames))
    found = [(node.function.name, node.function.module) for node in trace.tree.walk()]
    assert found == [
        ("_start", "app"),
        ("[unknown]", "app"),
        ("usleep", "libc.so.6"),
        ("work", "app"),
        ("ns::Cache::put", "libx.so.1"),
        ("ns::Cache::get", "app"),
    ]


def test_threads_are_told_apart_and_may_come_out_of_order() -> None:
    one = event("1.000000", ENTER, *USER), event("1.000500", EXIT, *USER)
    other = event("1.000100", ENTER, *USER, thread="11004/11005")
    trace = read(one[1] + other + one[0])
    assert (trace.events, trace.threads) == (3, 2)
    assert costs(trace.tree)["_start"] == Cost(2, 500_000, 500_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p.txt has no events: 'perf record' with"),
        ("prog 1 [000] 7.000001: raw_syscalls:sys_exit: NR 3 = 0\n\n", "no event with a stack"),
        ("hello\n", "p.txt is not a text of perf script: line 1 is none of an event"),
        ('{"format": "darc session"}\n', "line 1 is none of"),
        (SLEEP[:-1], "line 28 is its last, in the middle of an event: the file was cut off"),
        (SLEEP[:-9], "line 28 has no end: the file was cut off"),
        (SLEEP.replace("main+0x1f (/usr/lib/prog)", "main+0x1f"), "line 7 is none of"),
        (SLEEP.replace("7.000001", "7.01"), "line 1 is none of"),
        (SLEEP.replace("handle", "han\0dle"), "line 6 holds a NUL"),
        ("\x7fELF\0\0\n", "line 1 holds a NUL"),
        (LOST + "lost some\n", "how many events were lost"),
        (SLEEP + "x" * 70000 + "\n", "is none of"),
    ],
)  # fmt: skip
def test_what_perf_does_not_write_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(FormatError) as refused:
        read(text)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@given(st.data())
def test_damaged_texts_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever was cut out or put in, there is a trace or one line."""
    text = SLEEP
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(text)))
        last = min(len(text), first + data.draw(st.integers(0, 80)))
        text = text[:first] + data.draw(st.text(max_size=12)) + text[last:]
    try:
        trace = read(text)
    except DarcError as error:
        said = str(error)
    else:
        said = f"{trace.events} events"
    assert len(said.splitlines()) == 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9),
            st.lists(st.sampled_from(("a", "b", "ns::c", "operator==")), max_size=5),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_what_is_written_is_read(steps: list[tuple[int, list[str]]]) -> None:
    time, texts, stacks = 0, [], set()
    for wait, functions in steps:
        time += wait
        stack = ("_start", *functions)
        frames = [f"{one}+0x1 (/opt/app)" for one in reversed(stack)]
        texts.append(event(f"{time // 10**9}.{time % 10**9:09}", ENTER, *frames))
        stacks |= {stack[:end] for end in range(1, len(stack) + 1)}
    trace = read("".join(texts))
    assert {tuple(one.function.name for one in n.route()) for n in trace.tree.walk()} == stacks
    assert trace.events == len(steps)
    assert costs(trace.tree)["_start"].ns == time - steps[0][0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for file, said in ((tmp_path, "is not a file"), (tmp_path / "none", "there is no file")):
        with pytest.raises(DarcError, match=said):
            perfscript.read_file(file)
    text = tmp_path / "p.txt"
    text.write_bytes(SLEEP.replace("handle", "h\xe4ndle").encode("latin-1"))
    assert perfscript.read_file(text).events == 3
