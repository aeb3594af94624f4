"""Which of many functions is slow now and then, and worth a search (OSprof 3.1, 6).

A *suspect* has enough calls, enough of them in a slow peak that a valley parts from the faster
ones, though not most of them, and takes so much time by these that it matters. They are ranked by
the delay that their slow calls mean to others, which is half their rate times the mean of their
squared latency (the mean residual work of Pollaczek and Khinchine's formula): a function that takes
3 µs instead of 0.1 µs, a hundred thousand times a second, is no reason why a request waits for
20 ms. Of suspects that are called one in another the outermost is looked into first: what is below
it the search finds by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.peaks import Peak, PeakRange
from darc.model.profile import Profile
from darc.model.shares import SLIGHT
from darc.model.waitcalls import is_sleep
from darc.model.why import Suspect

LEAST_TO_JUDGE = 100
"""Calls, of which"""

LEAST_SLOW = 20
"""must be in the slow peak."""

_BUDDING = 5
"""Slow calls of one that is worth a wait for more of them."""

LEAST_VALLEY = 2
"""Bins between two summits that are so low that they part them."""

LEAST_SHARE = 0.05
"""Of the time in which one thread has something to do: so much must the slow calls take more than
fast ones;"""

_LEAST_OF_ALL = 0.02
"""and so much of all of its time. The threads of a server wait for requests most of the time, and
who has sent one of the slow ones waits for it all the same."""

_FEW = 0.1
"""Of the calls are slow where a part of the time is enough that is less than one thread's 5 %."""

OF_LARGEST = 0.8
"""Of the largest delay: who has so much may be called in the one that has that, or calls it."""

ALIKE = 0.8
"""Slow calls, and what they take: so much of each other's have two that may be the same calls."""

_OTHERS = 3
"""Functions that it takes to tell what happens to all."""

_EXPECTED = 4
"""Slow calls that there would be of one, as often as of a suspect: of fewer nothing can be told."""

_AS_OFTEN = 0.4
"""Slow calls, by the time that calls take, compared with those of a suspect."""

_AS_MANY = 0.01
"""By so much may differ how many calls two functions have that go together, as stops drop some."""

_MOST = 0.5
"""Of the calls of another function have a slow one each, where that is what they always do: those
that have none take as long all the same."""

_MOST_EACH = 8
"""Calls in each call of another function: with more of them, it would be no wonder if one of them
were slow every time by itself."""

_ENOUGH_SLOW = 3 * LEAST_SLOW
"""Slow calls after which a function is known well enough, in both halves of the time."""

_FAR = 3
"""Octaves between the median and calls that take far longer: those of a tail."""

_LARGE = 0.25
"""Of what the program has to do: a tail that takes so much is looked into where nothing else stands
out. Latencies are spread out for many a reason that nobody would call slow."""

_BULK = 0.8
"""Of a tail's delay: the longest of its calls that make so much of it are those to explain. Beside
them are shorter ones that are slow for something else, such as who had the processor."""

_WAITS_MOSTLY = 2.0
"""Times as long as the program has something to do, in all."""

_CHEAP = 0.1
"""Of what slow calls take more than fast ones do: so much may the probe of their function take,"""

_CHEAP_SHARE = 0.02
"""and that of a processor."""

_LOW = 3
"""A bin is of a valley that holds at most such a part of the lower summit."""


def suspects(
    known: FunctionSet, least: int = LEAST_SLOW, share: float | None = None
) -> tuple[Suspect, ...]:
    """Those among the functions of ``known``, the one with the longest delay first; ``least`` calls
    are slow, and take that ``share`` of a thread's time, or what matters by itself."""
    if share is None:
        share = _least_share(known)
    found = (_suspect(row, known.seconds_of(row), least, share) for row in known.rows)
    return tuple(sorted((s for s in found if s is not None), key=lambda s: -s.delay))


def _least_share(known: FunctionSet) -> float:
    return LEAST_SHARE if known.busy is None else max(_LEAST_OF_ALL, LEAST_SHARE * known.busy)


def longest_tail(
    known: FunctionSet, is_out: Callable[[Function], bool] = lambda function: False
) -> Suspect | None:
    """The function that matters most by its calls of eight times the median and more, of those
    that are not out, where no valley parts these from the others, as a disk's latency is spread.
    What takes far longer in all than the program has something to do waits for the most part,
    mostly for work: it is none of them."""
    return first_of(without(tails(known), is_out))


def _own_tail(
    known: FunctionSet, is_out: Callable[[Function], bool], least: int = LEAST_SLOW
) -> Suspect | None:
    """The same, by ``least`` such calls, of those that are not only disturbed, as all are."""
    return first_of(_undisturbed(known, without(tails(known, least), is_out)))


def tails(known: FunctionSet, least: int = LEAST_SLOW) -> tuple[Suspect, ...]:
    """Functions by ``least`` calls that take far longer than most, the longest delay first."""
    share = _least_share(known)
    found = []
    for row in known.rows:
        if not _waits_mostly(row, known):
            found.append(_tail(row, known.seconds_of(row), least, share))
    return tuple(sorted((s for s in found if s is not None), key=lambda s: -s.delay))


def _waits_mostly(row: FunctionProfile, known: FunctionSet) -> bool:
    does = (known.busy or 1.0) * row.profile.hz * known.seconds_of(row)
    return row.profile.total > _WAITS_MOSTLY * does


def _tail(row: FunctionProfile, seconds: float, least: int, least_share: float) -> Suspect | None:
    profile = row.profile
    if not _can_be_judged(row, seconds):
        return None
    middle = _median_bin(profile)
    first = middle + _FAR * profile.resolution
    far = {number: count for number, count in profile.bins.items() if number >= first}
    if sum(far.values()) < least:
        return None
    median = profile.scaled_cycles(middle)
    tail = _of_calls(row, seconds, PeakRange(None, first, None), slow=far, fast_mean=median)
    return tail if tail.share >= _enough(tail.slow, profile, least_share) else None


def too_few(known: FunctionSet, is_out: Callable[[Function], bool]) -> Suspect | None:
    """The function that matters most by calls far to the right of all others that are too few to be
    judged, and take most of its time and much of a thread's, of those that are not out: with more
    time there would be enough of them. As of tails, one that waits for the most part is none."""
    found = (_rare(row, known) for row in known.rows if not _waits_mostly(row, known))
    return first_of(without((one for one in found if one is not None), is_out))


def _rare(row: FunctionProfile, known: FunctionSet) -> Suspect | None:
    profile, seconds = row.profile, known.seconds_of(row)
    if not _can_be_judged(row, seconds):
        return None
    middle, slow = _median_bin(profile), dict[int, int]()
    median = profile.scaled_cycles(middle)
    for number in sorted(profile.bins, reverse=True):
        slow[number] = profile.bins[number]
        if number < middle + _FAR * profile.resolution or sum(slow.values()) >= LEAST_SLOW:
            break
        if sum(slow.values()) < _BUDDING or profile.bins.get(number - 1, 0):
            continue
        found = _of_calls(row, seconds, PeakRange(None, number, None), slow=slow, fast_mean=median)
        if found.share >= _LARGE and 2 * found.slow * found.slow_mean >= profile.total:
            return found
    return None


def seconds_for(rare: Suspect) -> float:
    """In which enough of these calls come, by and large."""
    return 1.5 * LEAST_SLOW * rare.seconds / rare.slow


def _median_bin(profile: Profile) -> int:
    counted = 0
    for number in sorted(profile.bins):
        counted += profile.bins[number]
        if 2 * counted >= profile.count:
            break
    return number


def is_worth_its_probe(row: FunctionProfile, seconds: float, cost: int) -> bool:
    """Whether a function that is called so often that its probe, of ``cost`` cycles a call, takes
    more than it should is to be timed all the same: one that stands out, until enough is known of
    it, and longer where the probe takes little beside what it tells of. What stands out is called
    often as a rule, with a few slow calls among many short ones."""
    suspect = _suspect(row, seconds, 1)
    if suspect is None:
        return False
    share = row.profile.count * cost / (row.profile.hz * seconds)
    return suspect.slow < _ENOUGH_SLOW or share <= min(_CHEAP_SHARE, _CHEAP * suspect.share)


def _suspect(
    row: FunctionProfile, seconds: float, least: int, least_share: float = LEAST_SHARE
) -> Suspect | None:
    profile = row.profile
    if not _can_be_judged(row, seconds):
        return None
    peak = _slow_peak(row, least)
    if peak is None:
        return None
    is_last = peak is row.peaks[-1]
    slow = _slow_calls(profile, peak, least, is_last=is_last)
    if sum(slow.values()) * 2 > profile.count:
        return None  # most calls are no exception
    last_bin = None if is_last else peak.last_bin
    fast_mean = profile.scale * _mean(profile, _fast_peak(row, peak))
    range_ = PeakRange(peak.number, peak.first_bin, last_bin)
    found = _of_calls(row, seconds, range_, slow=slow, fast_mean=fast_mean)
    return found if found.share >= _enough(found.slow, profile, least_share) else None


def _can_be_judged(row: FunctionProfile, seconds: float) -> bool:
    return not is_sleep(row.function) and row.profile.count >= LEAST_TO_JUDGE and seconds > 0


def _of_calls(
    row: FunctionProfile,
    seconds: float,
    peak: PeakRange,
    *,
    slow: Mapping[int, int],
    fast_mean: float,
) -> Suspect:
    """A suspect by these ``slow`` calls, by bin, where others take ``fast_mean`` cycles."""
    profile, calls = row.profile, sum(slow.values())
    means = {number: profile.scaled_cycles(number) for number in slow}
    excess = sum(n * (means[b] - fast_mean) for b, n in slow.items())
    squares = sum(n * (means[b] ** 2 - fast_mean**2) for b, n in slow.items())
    return Suspect(
        row=row,
        peak=peak,
        slow=calls,
        seconds=seconds,
        slow_mean=sum(count * means[number] for number, count in slow.items()) / calls,
        fast_mean=fast_mean,
        share=excess / (profile.hz * seconds),
        delay=squares / (2 * profile.hz**2 * seconds),
    )


def _enough(slow: int, profile: Profile, least_share: float) -> float:
    """The part of a thread's time that so many slow calls must take."""
    return min(least_share, LEAST_SHARE) if slow <= _FEW * profile.count else LEAST_SHARE


def _slow_calls(profile: Profile, peak: Peak, least: int, *, is_last: bool) -> dict[int, int]:
    """The calls of a slow peak by bin; of the last one those above it as well. Of longer ones by
    themselves, behind a gap, fewer than ``least`` are none of it: they are slow for something else,
    such as what has the processor."""
    slow = {
        number: profile.bins[number]
        for number in sorted(profile.bins)
        if number >= peak.first_bin and (is_last or number <= peak.last_bin)
    }
    numbers = list(slow)
    for before, number in pairwise(numbers):
        above = [one for one in numbers if one >= number]
        is_gap = number - before > LEAST_VALLEY and before >= _summit(profile, peak)
        if is_gap and sum(slow[one] for one in above) < least:
            return {one: slow[one] for one in numbers if one < number}
    return slow


def _slow_peak(row: FunctionProfile, least: int) -> Peak | None:
    """The peak whose calls take most beyond what the fastest ones do, of those that may be it."""
    profile, peaks = row.profile, row.peaks
    if len(peaks) < 2:
        return None
    fast = _mean(profile, peaks[0])

    def excess(peak: Peak) -> float:
        return peak.count * (_mean(profile, peak) - fast)

    enough = [
        after
        for number, after in enumerate(peaks[1:], 1)
        if after.count >= least
        and _valley(profile, _before(peaks[:number], after), after) >= LEAST_VALLEY
    ]
    return max(enough, key=excess, default=None)


def _before(faster: Sequence[Peak], slow: Peak) -> Peak:
    """Which of the ``faster`` peaks a slow one is to be apart from: the next that is not low beside
    it. Between them there may be some that are, as of calls that a busy machine has preempted."""
    return next((one for one in reversed(faster) if one.count * _LOW > slow.count), faster[-1])


def _fast_peak(row: FunctionProfile, slow: Peak) -> Peak:
    """Of the faster ones that with most calls: before it there may be one of a few calls that took
    no longer than their probes."""
    faster = [one for one in row.peaks if one.number < slow.number]
    return max(faster, key=lambda one: one.count)


def _mean(profile: Profile, peak: Peak) -> float:
    """Of the calls of a peak, in cycles, as far as bins tell."""
    inside = {b: n for b, n in profile.bins.items() if peak.first_bin <= b <= peak.last_bin}
    return sum(n * profile.mean_cycles(b) for b, n in inside.items()) / sum(inside.values())


def _valley(profile: Profile, before: Peak, after: Peak) -> int:
    """How many bins between two summits are low."""
    left, right = _summit(profile, before), _summit(profile, after)
    lower = min(profile.bins[left], profile.bins[right])
    between = range(left + 1, right)
    return sum(profile.bins.get(number, 0) * _LOW <= lower for number in between)


def _summit(profile: Profile, peak: Peak) -> int:
    inside = range(peak.first_bin, peak.last_bin + 1)
    return max(inside, key=lambda number: (profile.bins.get(number, 0), -number))


def first_of(found: Sequence[Suspect]) -> Suspect | None:
    """The one to look into first: the outermost of those with almost the longest delay. What is
    called in another function takes no more time in all than that does."""
    if not found:
        return None
    longest = max(one.delay for one in found)
    near = [one for one in found if one.delay >= OF_LARGEST * longest]
    return max(
        near, key=lambda s: (s.row.profile.total / s.seconds, -s.row.profile.count / s.seconds)
    )


def choice(
    known: FunctionSet, is_out: Callable[[Function], bool], told: Sequence[Suspect] = ()
) -> Suspect | None:
    """Whom to look into first, of those that are not out. Functions that are only disturbed, as all
    are, come last, unless what the others mean to anybody is slight beside that. What all of them
    mean may be slight beside a tail: that comes first then, unless it is slight beside what is
    ``told`` already."""
    found = without(suspects(known), is_out)
    first = first_of(_undisturbed(known, found) or found)
    tail = _own_tail(known, is_out)
    if tail is None or any(not outweighs(tail, one) for one in told):
        return first
    if first is None:
        is_first = tail.share >= _LARGE * (known.busy or 1.0)
    else:
        is_first = outweighs(tail, first)
    return _bulk(tail) if is_first else first


def _bulk(tail: Suspect) -> Suspect:
    """The longest calls of a tail, enough of them, that make most of its delay."""
    bins = {n: count for n, count in tail.row.profile.bins.items() if n in tail.peak}
    slow: dict[int, int] = {}
    found = tail
    for number in sorted(bins, reverse=True):
        slow[number] = bins[number]
        peak = PeakRange(None, number, None)
        found = _of_calls(tail.row, tail.seconds, peak, slow=slow, fast_mean=tail.fast_mean)
        if found.slow >= LEAST_SLOW and found.delay >= _BULK * tail.delay:
            break
    return found


def costs_more(one: Suspect, other: Suspect) -> bool:
    """Whether ``one`` delays calls longer, or takes more of the time, and its delay is not slight
    beside the other's; what is within a fifth is as much, by what bins tell."""
    return OF_LARGEST * one.delay > other.delay or (
        OF_LARGEST * one.share > other.share and one.delay * SLIGHT >= other.delay
    )


def outweighs(tail: Suspect, found: Suspect) -> bool:
    """Whether what was ``found`` is slight beside a tail."""
    return found.delay * SLIGHT < tail.delay


def _undisturbed(known: FunctionSet, found: Sequence[Suspect]) -> list[Suspect]:
    """Of suspects by their delay those that have by themselves almost the longest one that any has;
    none where that is slight. The others are not looked at: it takes a look at all functions."""
    near: list[Suspect] = []
    for one in found:
        if one.delay * SLIGHT < found[0].delay or (near and one.delay < OF_LARGEST * near[0].delay):
            break
        if not is_disturbed(known, one):
            near.append(one)
    return near


def held_up(known: FunctionSet, is_out: Callable[[Function], bool]) -> Suspect | None:
    """Whom to look into where all that stood out by itself waits for work: one of those that are
    slow only as all are. What the machine takes is spread over them: each has a part of it."""
    found = without(suspects(known, share=_LEAST_OF_ALL), is_out)
    return first_of([one for one in found if is_disturbed(known, one)])


def may_follow(known: FunctionSet, chosen: Suspect) -> bool:
    """Whether another function would be chosen before that one if its slow calls were some more."""
    found = [one for one in suspects(known, _BUDDING) if one.slow < LEAST_SLOW]
    first = first_of([one for one in found if not is_disturbed(known, one)])
    tail = _own_tail(known, lambda function: function == chosen.row.function, _BUDDING)
    return (first is not None and first.delay > chosen.delay) or (
        tail is not None and tail.slow < LEAST_SLOW and outweighs(tail, chosen)
    )


def is_disturbed(known: FunctionSet, suspect: Suspect) -> bool:
    """Whether calls of most other functions are as slow as often, by the time that they take: so it
    is where another program has the processor now and then, or the machine's host. What a
    function's slow calls are due to, those have not that do not call it and are not called by it:
    a quarter of them is enough to tell."""
    first = suspect.peak.first_bin
    own = max(_usual_time(suspect.row.profile, first), 1.0)
    rates = []
    for row in known.rows:
        profile = row.profile
        expected = suspect.slow * _usual_time(profile, first) / own
        usual = profile.quantile_bin(0.5)
        if row.function == suspect.row.function or expected < _EXPECTED:
            continue
        if usual is not None and usual < first:
            slow = sum(count for number, count in profile.bins.items() if number >= first)
            rates.append(slow / expected)
    if len(rates) < _OTHERS:
        return False
    return sorted(rates)[len(rates) // 4] > _AS_OFTEN


def _usual_time(profile: Profile, first: int) -> float:
    """What the calls below bin ``first`` have taken, in cycles, as far as bins tell."""
    return sum(n * profile.mean_cycles(b) for b, n in profile.bins.items() if b < first)


def always_takes_it(known: FunctionSet, caller: Function, suspect: Suspect) -> bool:
    """Whether most calls of a function that calls the suspect are as slow as its slow ones, and no
    more than these are: as where one reads a message byte by byte, and waits for the first."""
    row = _row_of(known, caller)
    if row is None:
        return False
    slow = sum(n for b, n in row.profile.bins.items() if b >= suspect.peak.first_bin)
    rate, own = slow / known.seconds_of(row), suspect.slow / suspect.seconds
    return slow * 2 > row.profile.count and rate * ALIKE <= own


def usual(known: FunctionSet) -> dict[int, tuple[Suspect, Function]]:
    """The suspects, by address, whose slow calls are what each call of another function always
    does, with that function: nobody waits longer for these now and then."""
    found = ((suspect, _usual_in(known, suspect)) for suspect in suspects(known))
    return {s.row.function.address: (s, row.function) for s, row in found if row is not None}


def _usual_in(known: FunctionSet, suspect: Suspect) -> FunctionProfile | None:
    """Who has one of the suspect's slow calls in each of its own, and as many fast ones each time,
    as far as their numbers and sums tell: as where a request has a function called for each of its
    phases, and one of these does the work. What calls the suspect takes no less in all, and what
    the suspect's slow calls call no more."""
    profile, until = suspect.row.profile, suspect.row.until

    def has_it(row: FunctionProfile) -> bool:
        count = row.profile.count
        if not _MOST * count <= suspect.slow <= (1 + _AS_MANY) * count:
            return False
        if not count or row.profile.total <= profile.total:
            return False
        each = profile.count / count
        slow = sum(n for b, n in row.profile.bins.items() if b >= suspect.peak.first_bin)
        return (
            abs(each - round(each)) <= _AS_MANY * each
            and 2 <= round(each) <= _MOST_EACH
            and slow >= (1 - _AS_MANY) * count
        )

    others = (row for row in known.rows if row.function != suspect.row.function)
    rows = [row for row in others if row.until == until and has_it(row)]
    return min(rows, key=lambda row: row.profile.total, default=None)


def returns(known: FunctionSet, function: Function) -> bool:
    """Whether calls of it have ended: a thread's loop is a function whose call never does."""
    return _row_of(known, function) is not None


def does_the_work(known: FunctionSet, suspect: Suspect) -> bool:
    """Whether its fast calls take as long as anything else that is done as fast, by and large: what
    only waits for work takes little where there is some."""
    first = suspect.peak.first_bin

    def usual_share(row: FunctionProfile) -> float:
        return _usual_time(row.profile, first) / known.seconds_of(row)

    return usual_share(suspect.row) * 2 >= max(map(usual_share, known.rows))


def _row_of(known: FunctionSet, function: Function) -> FunctionProfile | None:
    at = function.address
    return next((row for row in known.rows if row.function.address == at), None)


def are_alike(one: Suspect, two: Suspect) -> bool:
    """Whether their slow calls may be the same ones, those of one within those of the other, as far
    as their number and what they take tell."""
    rates = (one.slow / one.seconds, two.slow / two.seconds)
    pairs = (rates, (one.slow_mean, two.slow_mean))
    return all(min(pair) >= ALIKE * max(pair) for pair in pairs)


def without(found: Iterable[Suspect], seen: Callable[[Function], bool]) -> tuple[Suspect, ...]:
    """Those that were not ``seen`` in a search, nor looked into."""
    return tuple(one for one in found if not seen(one.row.function))
