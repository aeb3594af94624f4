"""Who called whom, told from a few words of a stack that were copied out of a running program.

Frame information says where each frame's return address is (of x86-64: System V ABI, AMD64
supplement 3.7), as far as the copy reaches. Of registers only the stack pointer and the frame
pointer are known; where a function between has used that for something else, what it leads to is no
return address, and the path ends. On a whole stack it is read where that function has kept it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darc.code.frame_rule import FrameRule
from darc.code.processor import FRAME_POINTER, STACK_POINTER, cfa_of, slot_of
from darc.code.program import Program

MOST_FRAMES = 12

MOST_ON_A_STACK = 512


def callers(program: Program, stack: int, frame: int, words: Sequence[int]) -> tuple[int, ...]:
    """The return addresses, innermost first, of a thread whose stack pointer is ``stack``, where
    ``words`` begin with the first one, and whose frame pointer is ``frame``."""
    found: list[int] = []
    slot = stack
    while len(found) < MOST_FRAMES:
        back = _word(words, slot - stack)
        module = None if back is None else program.module_at(back)
        if back is None or module is None:
            break
        found.append(back)
        rule = module.image.frames.rule(back - 1 - module.bias)
        if rule is None or rule.through is not None:
            break
        after = cfa_of(slot)
        base = _base(rule, after, frame)
        if base is None:
            break
        above = slot_of(base + rule.offset)
        if above <= slot:
            break
        if rule.register == FRAME_POINTER:
            before = _word(words, frame - stack)
            if before is None:
                last = _word(words, above - stack)
                found += [] if last is None or program.module_at(last) is None else [last]
                break
            frame = before  # where it is the frame's, the caller's is what it points to
        slot = above
    return tuple(found)


def path(
    program: Program, pc: int, stack: int, *, frame: int, words: Sequence[int]
) -> tuple[int, ...]:
    """The addresses at which a thread stands, innermost first: ``pc``, and as :func:`callers`, of
    one that stands anywhere."""
    module = program.module_at(pc)
    rule = None if module is None else module.image.frames.rule(pc - module.bias)
    base = None if rule is None else _base(rule, stack, frame)
    if rule is None or base is None or rule.through is not None:
        return (pc,)
    skipped, rest = divmod(slot_of(base + rule.offset) - stack, 8)
    if rest or not 0 <= skipped < len(words):
        return (pc,)
    if rule.register == FRAME_POINTER and (index := (frame - stack) // 8) in range(len(words)):
        frame = words[index]
    return (pc, *callers(program, stack + 8 * skipped, frame, words[skipped:]))


@dataclass(frozen=True)
class Frame:
    """A function that a thread is in: an address in it, and where its return address stands; 0 of
    the outermost one that is known."""

    at: int
    slot: int


def frames(
    program: Program,
    pc: int,
    stack: int,
    *,
    frame: int,
    word: Callable[[int], int | None],
) -> list[Frame]:
    """The whole stack of a thread that stands at ``pc``, innermost first. ``word`` reads it."""
    found: list[Frame] = []
    look = pc
    while len(found) < MOST_ON_A_STACK and program.module_at(look) is not None:
        rule = program.outlines.frame_rule(look)
        base = (
            None
            if rule is None
            else {STACK_POINTER: stack, FRAME_POINTER: frame}.get(rule.register)
        )
        if rule is None or base is None or rule.through is not None:
            break
        slot = slot_of(base + rule.offset)
        back = word(slot) if slot >= stack else None
        if back is None:
            break
        kept = program.outlines.kept_frame_pointer(look)
        saved = None if kept is None else word(cfa_of(slot) + kept)
        if saved is not None:
            frame = saved
        elif rule.register == FRAME_POINTER:
            frame = word(frame) or 0
        found.append(Frame(look, slot))
        stack, look = cfa_of(slot), back - 1
    if program.module_at(look) is not None:
        found.append(Frame(look, 0))
    return found


def _base(rule: FrameRule, stack: int, frame: int) -> int | None:
    """The register that a CFA is told from, where it is one of these."""
    return {STACK_POINTER: stack, FRAME_POINTER: frame}.get(rule.register)


def _word(words: Sequence[int], offset: int) -> int | None:
    """That at ``offset`` bytes, where there is one."""
    index, rest = divmod(offset, 8)
    return None if rest or not 0 <= index < len(words) else words[index]
