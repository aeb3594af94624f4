"""Who kept ops waiting, as lines of a tree: what was waited for, where, and who had it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.text import Text

from darc.model.ops import KeptOps, ObjectKind
from darc.model.waits import Holder, Role, WaitedFor, Waits, most_of, together
from darc.views.words import calls_text, counted, counted_were, name, threads_text, way

SHOWN = 6
"""Objects and holders each that are listed, the ones with most time."""

_LEAST_BEHIND = 100
"""What is behind a wait is shown from this part of all time on."""

_LEAST_UNTOLD = 0.1
"""Of a time without a processor: from more on it is told that nobody knows who had that."""

_KINDS = {
    ObjectKind.LOCK: "the lock",
    ObjectKind.RWLOCK: "the read-write lock",
    ObjectKind.CONDITION: "the condition",
    ObjectKind.SEMAPHORE: "the semaphore",
    ObjectKind.BARRIER: "the barrier",
    ObjectKind.THREAD: "the end of",
    ObjectKind.FUTEX: "the futex",
    ObjectKind.WAKE_UP: "a wake-up",
    ObjectKind.CALL: "something",
    ObjectKind.PROCESSOR: "a processor",
}

_ROLES = {
    Role.HELD: "held by",
    Role.HELD_FIRST: "held, when the wait began, by",
    Role.WOKE: "until the signal of",
    Role.INTERRUPT: "woken by an interrupt",
    Role.SOFT_INTERRUPT: "woken by a soft interrupt",
    Role.RAN: "meanwhile ran",
    Role.DID: "it ran itself",
    Role.SLEPT: "it slept",
    Role.READY: "it could have run",
    Role.UNKNOWN: "what it did is not known",
    Role.DISK: "the disk served",
    Role.HANDED_OVER: "free by then: until the thread ran again",
    Role.NOT_SEEN: "no release was seen: it gave up, or was released past the C library",
    Role.NOT_FOLLOWED: "not followed: there was no room for who released it",
}

_OF_TASKS = (ObjectKind.WAKE_UP, ObjectKind.PROCESSOR)
_IN_KERNELS = {
    (ObjectKind.WAKE_UP, Role.WOKE): "woken by",
    (ObjectKind.WAKE_UP, Role.HANDED_OVER): "woken by then: until it had a processor",
    (ObjectKind.WAKE_UP, Role.NOT_SEEN): "who woke it was not seen",
    (ObjectKind.PROCESSOR, Role.NOT_SEEN): "who ran meanwhile was not seen",
}


def draw_waits(
    waits: Waits,
    against: Waits | None,
    f0: str,
    *,
    latency: Callable[[float], str],
    show: Callable[[str], str] = name,
) -> Iterator[Text]:
    """The lines; ``latency`` formats cycles."""
    mean = latency(waits.cycles / waits.ops) if waits.ops else "-"
    moments = moments_text(waits)
    yield Text(f"● {show(f0)}  {mean} on average, of {calls_text(waits.ops)} kept{moments}")
    rest = max(0, waits.cycles - waits.waited - waits.not_followed)
    objects = together(waits.objects)
    rows = objects[:SHOWN]
    for one in rows:
        yield Text(f"├─ {_share(one.cycles, waits.cycles)}  {_object(one, show)}")
        holders = one.holders[:SHOWN]
        for number, holder in enumerate(holders):
            is_last = number == len(holders) - 1
            yield from _holder_lines(
                holder, one.kind, whole=waits.cycles, guides="│  ", is_last=is_last, show=show
            )
    if more := objects[SHOWN:]:
        share = _share(sum(one.cycles for one in more), waits.cycles)
        yield Text(f"├─ {share}  {len(more)} more", "dim")
    if waits.not_followed:
        share = _share(waits.not_followed, waits.cycles)
        yield Text(f"├─ {share}  blocked, in waits that were not followed: there was no room")
    yield Text(f"└─ {_share(rest, waits.cycles)}  no wait that darc sees", "dim")
    if against is not None and against.ops:
        share = _share(against.waited, against.cycles).strip()
        mean = latency(against.cycles / against.ops)
        yield Text(f"the fastest peak: {mean} on average, {share} of it in waits", "dim")
    if moments:
        told = "these calls waited together: who had it may be another at other moments"
        yield Text(f"{told}; more '--decision-ops' keep more", "dim")
    if waits.lost:
        many = counted_were(waits.lost, "release")
        told = "there is room for few in a call: of a function that waits less often more is known"
        yield Text(f"{many} not noted: {told}", "dim")


def moments_text(waits: Waits) -> str:
    """At how many moments the ops were, where these are few; as the end of a line."""
    few = waits.few_moments
    return "" if few is None else f", at {counted(few, 'moment')}"


def _holder_lines(
    holder: Holder,
    kind: ObjectKind,
    whole: int,
    *,
    guides: str,
    is_last: bool,
    show: Callable[[str], str],
) -> Iterator[Text]:
    """One, and what is behind it."""
    share = _share(holder.cycles, whole)
    branch = "└─" if is_last else "├─"
    yield Text(f"{guides}{branch} {share}  {holder_text(holder, kind, show)}")
    behind = [one for one in holder.behind if one.cycles * _LEAST_BEHIND >= whole][:SHOWN]
    guides += "   " if is_last else "│  "
    rest = holder.cycles - sum(one.cycles for one in holder.behind)
    is_untold = holder.role is Role.HANDED_OVER and bool(holder.behind)
    is_untold = is_untold and rest * _LEAST_BEHIND >= whole and rest > _LEAST_UNTOLD * holder.cycles
    kind = kind_behind(holder, kind)
    for number, one in enumerate(behind):
        is_last = number == len(behind) - 1 and not is_untold
        yield from _holder_lines(one, kind, whole=whole, guides=guides, is_last=is_last, show=show)
    if is_untold:
        unseen = _IN_KERNELS[ObjectKind.PROCESSOR, Role.NOT_SEEN]
        yield Text(f"{guides}└─ {_share(rest, whole)}  {unseen}")


def kind_behind(holder: Holder, kind: ObjectKind) -> ObjectKind:
    """What is waited for by whoever is behind a holder: of one that sleeps, to be woken."""
    return ObjectKind.WAKE_UP if holder.role is Role.SLEPT else kind


_LEAST_QUOTA = 0.01
"""Of the time without a processor: so much of a CPU quota's is told."""


def saved_run_text(kept: KeptOps) -> str | None:
    """That all that is told of the ops is another run's, if it is."""
    return "all of this is of the run that was saved" if kept.of_saved_run else None


def quota_text(kept: KeptOps | None) -> str | None:
    """How much of the time in which threads were ready their CPU quota was used up, if it was."""
    return quota_told(0.0 if kept is None else kept.quota_share)


def quota_told(share: float) -> str | None:
    """The same of a ``share`` from 0 to 1 of that time."""
    if share < _LEAST_QUOTA:
        return None
    return f"its CPU quota took up to {100 * share:.0f} % of the time without a processor"


def is_processor_untold(waits: Waits) -> bool:
    """Whether others had the processor for a time worth telling, and nobody knows who."""
    return any(
        one.kind is ObjectKind.PROCESSOR and not one.holders and 100 * one.cycles >= waits.cycles
        for one in waits.objects
    )


def kind_text(kind: ObjectKind) -> str:
    """What is waited for."""
    return _KINDS[kind]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:3.0f} %" if whole else "  - "


def _path(path: tuple[str, ...], show: Callable[[str], str]) -> str:
    return way(list(map(show, path)), " ← ")


def _object(one: WaitedFor, show: Callable[[str], str]) -> str:
    where = f" in {_path(one.path, show)}" if one.path else ""
    times = "" if one.waits == one.ops else f", {one.waits} times"
    if one.kind is ObjectKind.CALL:
        return f"blocked{where}: {calls_text(one.ops)}{times}"
    return f"waited for {object_text(one, show)}{where}: {calls_text(one.ops)}{times}"


def object_text(one: WaitedFor, show: Callable[[str], str]) -> str:
    """What was waited for, with its name."""
    if one.count > 1 and one.kind is ObjectKind.THREAD:
        return f"the ends of {threads_text(one.count)}"
    if one.count > 1:
        return counted(one.count, _KINDS[one.kind].removeprefix("the ").removeprefix("a "))
    return _KINDS[one.kind] + (f" {show(one.name)}" if one.name else "")


_MUCH = 0.25
"""Of all time without a processor: so much is told, as all else took longer by it."""


def processor_text(waits: Waits) -> str | None:
    """Where calls were much longer as others had the processor: for how long."""
    if waits.ready <= _MUCH * waits.cycles:
        return None
    had = "others had the processor: these calls' threads were awake without one"
    if 2 * waits.without_processor > waits.ready:
        had = "others had the processor when these calls' threads were woken, which waited"
    return f"{had} for {100 * waits.ready / waits.cycles:.0f} % of the time"


def waited_text(
    one: WaitedFor, cycles: int, show: Callable[[str], str], *, has_place: bool = False
) -> str:
    """What was waited for, for what part of all ``cycles``, and who had it; ``has_place``: also in
    which functions."""
    if one.kind is ObjectKind.CALL:
        text = f"blocked in {_path(one.path, show)}" if one.path else "blocked"
    elif one.kind is ObjectKind.WAKE_UP and one.path and not one.name:
        text = f"slept in {show(one.path[0])}"
    else:
        where = f" in {_path(one.path, show)}" if has_place and one.path else ""
        text = f"waited for {object_text(one, show)}{where}"
    text += f", {100 * one.cycles / max(cycles, 1):.0f} %"
    if not one.holders:
        return text
    most = most_of(one)
    whole = most.cycles >= _NEARLY_ALL * one.cycles
    of_it = "" if whole else f"{100 * most.cycles / one.cycles:.0f} % of that "
    text = f"{text}, {of_it}{holder_text(most, one.kind, show)}"
    text += _off_text(most, show)
    last = _last_in_chain(most)
    return text if last is most else f"{text}, itself {holder_text(last, ObjectKind.WAKE_UP, show)}"


_MUCH_OFF = 0.25
"""Of the time that somebody had something: for so long in one call it is told where it slept, and
for so long without a processor that it had none."""


def _off_text(holder: Holder, show: Callable[[str], str]) -> str:
    """In which call it was blocked itself for much of that time, and whether it could have run and
    had no processor; empty where neither took much."""
    told = []
    slept = [one for one in holder.behind if one.role is Role.SLEPT]
    most = max(slept, key=lambda one: one.cycles, default=None)
    if most is not None and most.cycles >= _MUCH_OFF * holder.cycles:
        where = f" in {_path(most.path, show)}" if most.path else ""
        told.append(f"was blocked{where} for {100 * most.cycles / holder.cycles:.0f} % of that")
    ready = sum(one.cycles for one in holder.behind if one.role is Role.READY)
    if ready >= _MUCH_OFF * holder.cycles:
        share = f"{100 * ready / max(holder.cycles, 1):.0f} %{'' if told else ' of that'}"
        told.append(f"could have run for {share}, without a processor")
    return f", which {' and '.join(told)}" if told else ""


def _last_in_chain(holder: Holder) -> Holder:
    """Whom a thread has waited for itself most of the time, and so on; ``holder`` for nobody."""
    slept = sum(one.cycles for one in holder.behind if one.role is Role.SLEPT)
    whom = [who for one in holder.behind for who in one.behind if one.role is Role.SLEPT]
    whom = [who for who in whom if who.role is Role.WOKE]
    if not whom or 2 * slept < holder.cycles:
        return holder
    return _last_in_chain(max(whom, key=lambda who: who.cycles))


_NEARLY_ALL = 0.9
"""Of a wait: who had this part of it is told as if it were all."""


_RELEASED_OUTSIDE = (
    "no release was seen in the program: another process that shares it has released it, or it "
    "gave up"
)


def is_outsider_untold(waits: Waits) -> bool:
    """Whether other processes have released what was waited for, and nobody knows which, or from
    where."""
    untold = (Role.NOT_SEEN, Role.HELD_FIRST)
    return any(h.is_outside and h.role in untold for one in waits.objects for h in one.holders)


def is_place_untold(waits: Waits) -> bool:
    """Whether somebody who had what was waited for slept meanwhile, and nobody knows where."""

    def is_untold(holders: Iterable[Holder]) -> bool:
        return any(
            (one.role is Role.SLEPT and not one.path) or is_untold(one.behind) for one in holders
        )

    return any(is_untold(one.holders) for one in waits.objects)


_SOMEBODY = (Role.HELD, Role.HELD_FIRST, Role.WOKE)


def is_due_to_somebody(one: WaitedFor, *more: Role) -> bool:
    """Whether it is known of somebody that a wait is due to, who had one of these roles or of
    ``more``."""
    return any(holder.role in (*_SOMEBODY, *more) for holder in one.holders)


_NOBODYS = frozenset(
    {Role.INTERRUPT, Role.SOFT_INTERRUPT, Role.DID, Role.SLEPT, Role.READY, Role.UNKNOWN}
)
"""Roles that tell all by themselves."""


def holder_text(holder: Holder, kind: ObjectKind, show: Callable[[str], str]) -> str:
    """Who had an object of that kind, in which function, and in how many calls."""
    if holder.role is Role.NOT_SEEN and holder.is_outside:
        return _RELEASED_OUTSIDE
    if holder.role in (Role.HANDED_OVER, Role.NOT_SEEN, Role.NOT_FOLLOWED):
        return _IN_KERNELS.get((kind, holder.role), _ROLES[holder.role])
    where = f" in {_path(holder.path, show)}" if holder.path else ""
    if holder.role is Role.SLEPT and not holder.path:
        return f"it slept, where is not told: {calls_text(holder.ops)}"
    if holder.role in _NOBODYS:
        return f"{_ROLES[holder.role]}{where}: {calls_text(holder.ops)}"
    threads = holder.threads
    is_thread = not holder.is_outside or holder.role is Role.HELD_FIRST  # whom the lock names
    thread = "process" if not is_thread else "task" if kind in _OF_TASKS else "thread"
    who = f"another {thread}" if not threads else f"{thread} {threads[0]}"
    if len(threads) > 1:
        who = counted(len(threads), thread)
    of = " of another process," if is_thread and holder.is_outside else ""
    named = f'{of} "{show(holder.thread)}"' if holder.thread else of.removesuffix(",")
    if holder.role is Role.DISK and not threads:
        who = "requests of nobody's that is known"
    role = "until the end of" if kind is ObjectKind.THREAD else _ROLES[holder.role]
    if (kind, holder.role) in _IN_KERNELS:
        role = _IN_KERNELS[kind, holder.role]
    return f"{role} {who}{named}{where}: {calls_text(holder.ops)}"
