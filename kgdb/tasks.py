"""Tasks: how the agent tells which one runs, and what the processor is doing for it.

A processor has variables of its own, each at a distance from its ``gs`` base. Up to Linux 6.14 the
distance is the symbol's value. From 6.15 on the symbol is an address as any other's, which moves
with the kernel (KASLR), and the base is the distance to the processor's copy of all of them: their
sum passes 2**64 (kernel commit "x86/percpu/64: Use relative percpu offsets").
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

from iced_x86 import Instruction, Mnemonic, OpKind, Register

from darc.agent.fieldvalues import ControlWords
from darc.code.frame_rule import WORD
from darc.code.x86_64 import decode
from darc.model.addresses import is_kernels
from darc.model.errors import FormatError, UnsupportedError
from darc.target.target import Target
from kgdb.btf import Btf
from kgdb.image import KernelImage

_COMM_SIZE = 16
_MOST_TASKS = 1 << 16
"""A list that is longer is damaged."""
_INTERRUPT_BEGINS = ("irq_enter_rcu", "irq_enter")
_USUAL_OFFSET = 0x1_0000, 4
"""From 7.x on it is 0x1000000 in eight bytes (kernel commit "preempt: Introduce
HARDIRQ_DISABLE_BITS")."""
_SOFT_INTERRUPT = 0x100  # one that is served; what disables them adds twice that
_HOT_PREEMPT = 8  # of pcpu_hot.preempt_count, behind current_task


def seen_from_gs(value: int, bias: int) -> int:
    """The distance of a processor's variable from the ``gs`` base, by the value of its symbol;
    ``bias`` is how far the kernel was moved."""
    return (value + bias) & WORD if is_kernels(value) else value


def current_at(image: KernelImage, bias: int) -> int:
    """Where the running task's address is, seen from gs."""
    return _per_cpu(image, bias, "current_task", 0)


def preempt_at(image: KernelImage, bias: int) -> int:
    """Where preempt_count is, seen from gs."""
    return _per_cpu(image, bias, "__preempt_count", _HOT_PREEMPT)


def stack_at(image: KernelImage, bias: int) -> int:
    """Where the end of the running task's stack is, seen from gs."""
    name = "cpu_current_top_of_stack"
    is_hot = name not in image.values
    return _per_cpu(
        image, bias, name, types(image).offset("pcpu_hot", "top_of_stack") if is_hot else 0
    )


def _per_cpu(image: KernelImage, bias: int, name: str, in_hot: int) -> int:
    found = image.values.get(name)
    if found is not None:
        return seen_from_gs(found, bias)
    hot = image.values.get("pcpu_hot")
    if hot is None:
        raise UnsupportedError(f"the kernel has no per-processor variable {name}")
    return seen_from_gs(hot, bias) + in_hot


@functools.lru_cache(maxsize=4)
def interrupt_offset(image: KernelImage) -> tuple[int, int] | None:
    """What one interrupt adds to ``preempt_count``, and how many bytes that has, by what the kernel
    does first in each (``HARDIRQ_OFFSET``, include/linux/preempt.h; ``irq_enter_rcu``,
    kernel/softirq.c). ``None``: it does not tell."""
    place = image.values.get("__preempt_count")
    hot = image.values.get("pcpu_hot")
    if place is None and hot is not None:
        place = hot + _HOT_PREEMPT
    for name in _INTERRUPT_BEGINS:
        start = image.values.get(name)
        symbol = None if start is None else image.symbols.at(start)
        if start is None or symbol is None or place is None:
            continue
        for one in decode(image.content(start, symbol.size), start):
            if (
                one.mnemonic == Mnemonic.ADD
                and one.segment_prefix == Register.GS
                and one.op1_kind in (OpKind.IMMEDIATE32, OpKind.IMMEDIATE32TO64)
                and _data(one) & WORD == place
                and one.immediate(1).bit_count() == 1
            ):
                return one.immediate(1), 8 if one.op1_kind == OpKind.IMMEDIATE32TO64 else 4
    return None


def _data(instruction: Instruction) -> int:
    if instruction.is_ip_rel_memory_operand:
        return int(instruction.ip_rel_memory_address)
    return int(instruction.memory_displacement)


def interrupts_count(image: KernelImage) -> int:
    """What one interrupt adds to ``preempt_count``."""
    return (interrupt_offset(image) or _USUAL_OFFSET)[0]


def not_task(image: KernelImage) -> int:
    """The bits of ``preempt_count``'s low half that are set where no task runs, but an interrupt,
    an NMI (whose counts follow each other, of four bits each) or a soft interrupt. Where all of the
    count has 32 bits, the highest one is another matter."""
    offset, size = interrupt_offset(image) or _USUAL_OFFSET
    return (offset * 0xFF | _SOFT_INTERRUPT) & (0xFFFFFFFF if size == 8 else 0x7FFFFFFF)


def preempt_count(target: Target, image: KernelImage, bias: int, per_cpu_base: int) -> int:
    """Of the processor whose ``gs`` base that is."""
    return int.from_bytes(
        target.memory.read(per_cpu_base + preempt_at(image, bias) & WORD, 4), "little"
    )


@functools.lru_cache(maxsize=4)
def types(image: KernelImage) -> Btf:
    """The kernel's types. Raises FormatError: it has none."""
    return Btf(image.section(".BTF"))


def watched(image: KernelImage, bias: int, task: int | str | None) -> ControlWords:
    """What the agent is told of the tasks to watch: a process id, a name or, by
    ``None``, all."""
    at, mask, value = _test(image, task)
    return {
        "current_at": current_at(image, bias),
        "preempt_at": preempt_at(image, bias),
        "not_task": not_task(image),
        "stack_at": stack_at(image, bias),
        "task_at": at,
        "task_mask": mask,
        "task_value": value,
    }


def scheduler(image: KernelImage) -> ControlWords:
    """Where the agent finds in a task what tells of its switches and of who wakes it, by the names
    of the agent's fields; 0, all of them, where that is not known."""
    fields = ("stack", "on_rq", "__state", "pid", "comm")
    try:
        known = types(image)
        stack, queued, state, number, name = (known.offset("task_struct", one) for one in fields)
    except FormatError:
        return ControlWords(stack_of=0, queued_of=0, state_of=0, id_of=0, name_of=0)

    def where(structure: str, field: str) -> int:
        try:
            return known.offset(structure, field)
        except FormatError:
            return 0

    return ControlWords(
        stack_of=stack,
        queued_of=queued,
        # From 6.12 on one that sleeps stays on its queue until it would have been its turn
        # (kernel commit "sched/fair: Implement delayed dequeue").
        delayed_of=where("task_struct", "se.sched_delayed"),
        state_of=state,
        id_of=number,
        name_of=name,
        cpu_of=where("task_struct", "thread_info.cpu"),
        work_of=where("work_struct", "func"),
        last_of=where("worker", "last_func"),
    )


def why_no_switches(image: KernelImage) -> str | None:
    """Why :func:`scheduler` tells nothing; ``None`` where it does."""
    if scheduler(image)["stack_of"]:
        return None
    return "the kernel's types (BTF) do not tell what a task does"


def is_there(target: Target, image: KernelImage, bias: int, task: int | str) -> bool:
    """Whether there is a process of that id, or a task of that name, at the moment. Raises
    FormatError, TargetError: it cannot be told."""
    first = image.values.get("init_task")
    if first is None:
        raise FormatError("the kernel has no init_task")
    at, mask, value = _test(image, task)
    size = (mask.bit_length() + 7) // 8
    return any(
        int.from_bytes(target.memory.read(one + at, size), "little") & mask == value
        for one in _all(target, types(image), first + bias)
    )


def _all(target: Target, known: Btf, first: int) -> Iterator[int]:
    """The addresses of all tasks, from that of the first one: each process's leader, and then the
    threads, that one among them."""

    def ring(head: int, field: int) -> Iterator[int]:
        node = head
        for _ in range(_MOST_TASKS):
            node = int.from_bytes(target.memory.read(node, 8), "little")
            if node == head:
                return
            yield node - field

    tasks, thread = known.offset("task_struct", "tasks"), known.offset("task_struct", "thread_node")
    signals = known.offset("task_struct", "signal")
    threads = known.offset("signal_struct", "thread_head")
    for leader in itertools.chain([first], ring(first + tasks, tasks)):
        yield leader
        own = int.from_bytes(target.memory.read(leader + signals, 8), "little")
        yield from ring(own + threads, thread)


def filter_of(
    target: Target, image: KernelImage, bias: int, task: int | str | None
) -> Callable[[int], bool]:
    """The same as a function of the processor's ``gs`` base."""
    at, mask, value = _test(image, task)
    current, size = current_at(image, bias), (mask.bit_length() + 7) // 8

    def is_watched(per_cpu_base: int) -> bool:
        running = int.from_bytes(target.memory.read(per_cpu_base + current & WORD, 8), "little")
        return int.from_bytes(target.memory.read(running + at, size), "little") & mask == value

    return is_watched


def _test(image: KernelImage, task: int | str | None) -> tuple[int, int, int]:
    """Where in its task structure one that is watched has which bits, and what they are."""
    if task is None:
        return 0, 0, 0
    known = types(image)
    if isinstance(task, int):
        return known.offset("task_struct", "tgid"), 0xFFFFFFFF, task
    name = task.encode()[: _COMM_SIZE - 1] + b"\0"
    mask = (1 << 8 * len(name)) - 1
    return known.offset("task_struct", "comm"), mask, int.from_bytes(name, "little")
