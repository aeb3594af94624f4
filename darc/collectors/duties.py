"""What a collector does beside putting its probes in and taking them out.

Each duty is a class of its own, which those that need it are given alone: an analysis counts and
times, the monitor answers summons. Where a method does not say "any thread", it is called on the
debugger's own thread while the program is stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from darc.debuggee.holds import Scheduled
from darc.model.ftree import Fnode
from darc.model.ops import Event, KeptOps
from darc.model.profile import Profile
from darc.model.standing import OpenWait, ThreadStanding
from darc.search.contest import Vote
from darc.search.descent import Orders


class Counting(ABC):
    """Counts the calls of f0, and asks the listener when these are enough."""

    @property
    @abstractmethod
    def hz(self) -> int:
        """Cycles of its clock in a second."""

    @property
    @abstractmethod
    def seen(self) -> int:
        """What is compared with what is awaited: all calls of f0 so far (:meth:`await_calls`),
        those inside the peak since :meth:`await_in_peak`, or, since :meth:`await_more`, what
        :attr:`voted` was then and those after. Any thread."""

    @abstractmethod
    def profile(self) -> Profile:
        """The profile of f0 so far; from :meth:`search` on nothing more comes into it. Any
        thread."""

    @abstractmethod
    def await_calls(self, needed: int) -> None:
        """Asks the listener once f0 was called ``needed`` times in all; where these are many, up
        to 64 calls of each thread later, which count."""

    @abstractmethod
    def await_in_peak(self, needed: int) -> None:
        """Asks the listener after ``needed`` calls inside the peak from now on."""

    @property
    @abstractmethod
    def voted(self) -> int:
        """In how many calls inside the peak every vote was counted since the orders: what a
        decision rests on. (:attr:`seen` may be off by a call for each thread that a stop has
        caught on its way.)"""

    @abstractmethod
    def await_more(self, needed: int) -> None:
        """Asks the listener once :attr:`voted` is ``needed``."""

    @abstractmethod
    def await_user(self) -> None:
        """Asks nobody until something else is awaited: it is for the user to choose."""

    def tell_fastest(self, cycles: int) -> None:  # noqa: B027  most have no use for it
        """Before the search: so long the fastest calls of f0 took that are no outliers, without
        timed calls inside. What is taken out for these leaves no less."""

    @abstractmethod
    def search(self, low: int, high: int) -> None:
        """From now on only calls of f0 of at least ``low`` cycles and less than ``high`` count, and
        the profile stays as it is: what comes of f0 is in the votes of the tree's root."""

    @abstractmethod
    def hurry(self) -> None:
        """Enough was seen, whatever it was: the listener is asked at the next call. Any thread."""


class Timing(ABC):
    """Times the calls that orders name, and counts votes."""

    @abstractmethod
    def apply(self, orders: Orders) -> None:
        """Times what the orders name and nothing else; votes are counted anew. Where they name
        nothing, calls of f0 alone are timed."""

    def fits(self, orders: Orders) -> bool:
        """Whether all that the orders name can be timed at one time."""
        del orders
        return True

    @abstractmethod
    def votes(self) -> dict[Fnode, Vote]:
        """What was counted since the orders, of all threads together: of f0 as well, and of each
        node in the calls of f0 that were voted on. Learned callees join the ftree here."""

    def make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        """Makes room for more targets of indirect calls where that could change the decision.
        True: it did, and has begun anew with what was ordered."""
        del votes
        return False

    @property
    @abstractmethod
    def used(self) -> AbstractSet[int]:
        """The addresses of all call sites that were timed so far."""

    @property
    @abstractmethod
    def probe_cost(self) -> int:
        """Cycles that a timed call adds to its caller; 0 where nobody has measured it."""

    @property
    def probe_doubt(self) -> int:
        """By how many more cycles that may be at another time than it was measured at."""
        return 0

    @abstractmethod
    def drop_open_calls(self) -> None:
        """Calls that are under way are not measured: they span a stop."""


class UserStops(ABC):
    """What becomes of the probes where the program stops for the user."""

    def stands(self) -> None:  # noqa: B027  most have no use for it
        """The program has just stopped for the user: :meth:`pause` follows."""

    @abstractmethod
    def pause(self) -> None:
        """The program stopped for the user: it looks as if there were no probe. Calls that are
        under way are measured on only if the program goes on from here, by :meth:`resume`, and
        not step by step."""

    def passes(self) -> bool:
        """In place of :meth:`pause`: the debugger will let the program go on by itself, and nobody
        looks at it before. Whether probes are left in for that moment."""
        return False

    @property
    def passing(self) -> bool:
        """Whether they are, as :meth:`passes` has said so."""
        return False

    @abstractmethod
    def resume(self) -> list[str]:
        """The program is about to go on: probes are back. Tells which ones could not be."""

    @property
    @abstractmethod
    def paused(self) -> bool:
        """Whether probes are out, as the user steps through the program. Any thread."""


class Summons:
    """How a collector calls for the debugger while the program runs: this one does not, as its
    probes stop the program by themselves. A ``signal`` of the debuggee's makes it look, where there
    is one."""

    def __init__(self, signal: int | None = None) -> None:
        self._signal = signal

    def beat(self) -> None:
        """A sign of life, several times a second. Any thread."""

    def look_after(self) -> None:
        """Looks, once a second, at what may have changed while the program runs: asked as often as
        it is to :meth:`beat`. Any thread."""

    @property
    def waits(self) -> bool:
        """Whether it waits for the debugger to look. Any thread."""
        return False

    @property
    def rings_itself(self) -> bool:
        """Whether it calls the debugger by itself when it waits. Any thread."""
        return False

    @property
    def signal(self) -> int | None:
        """A signal that makes the debugger look when a thread gets it. Any thread."""
        return self._signal

    def take_interrupt(self) -> bool:
        """At a stop for the user, whose Ctrl-C was heard though it waits in the program, which
        blocks it: takes it out, as a debugger does with one that a thread gets; only then another
        one is heard. Whether it could.

        Raises:
            TargetError: the program can make no system call now.
        """
        return False


class LooksAhead(ABC):
    """Prepares for the next stop while the program runs, for collectors that can
    (:attr:`Collector.ahead <darc.collectors.collector.Collector.ahead>`)."""

    @abstractmethod
    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        """While the program runs: prepares for timing what ``nodes``, which are timed now, call,
        ``levels`` deep, as far as that goes in so many seconds. Whether there is more to do before
        ``nodes`` are to be asked for again. On a thread that may help (:class:`Turn
        <darc.target.ownthread.Turn>`)."""

    @abstractmethod
    def goes_on(self) -> None:
        """The program is about to go on, and :meth:`look_ahead` may be called."""


@dataclass(frozen=True)
class Running:
    """A call of f0 that is under way."""

    key: Hashable
    """Tells it from all others."""
    thread: int
    """The id of its thread, as the program knows it; 0: not known."""
    seconds: float
    """For how long it has been."""
    begun: int = 0
    """When it began, by the time-stamp counter."""


@dataclass(frozen=True)
class StandingCall:
    """Where the thread of a call that is under way stands still."""

    where: ThreadStanding
    """Up to f0."""
    wait: OpenWait | None
    """What it waits for, if that is seen."""
    show: str | None
    """What the user types to see it; ``None``: the debugger shows it."""


class KeepsOps(ABC):
    """Keeps some ops whole, for collectors that can (:attr:`Collector.ops
    <darc.collectors.collector.Collector.ops>`)."""

    @abstractmethod
    def keep_ops(self, least: int, fast: tuple[int, int]) -> None:
        """From now on some ops are kept whole: calls of f0 inside the peak, and those that take
        from ``fast[0]`` to below ``fast[1]`` cycles (none where both are 0). Calls in them of at
        least ``least`` cycles are kept one by one, of shorter ones there are sums. Of either kind
        up to 32 are kept, by chance, and the slowest. Orders come behind it."""

    @abstractmethod
    def watch_waits(self) -> None:
        """From now on ops that are kept tell what their threads wait for, and who releases it."""

    @abstractmethod
    def kept_ops(self) -> KeptOps:
        """The ops that were kept since the orders: those of different orders are not compared.
        Learned callees join the ftree here."""

    def own_back(self, word: int) -> int | None:
        """The program's own return address where ``word`` of a stack that was kept is one by which
        a call comes back to a probe. The program stands still; where it is gone, there is none."""
        del word
        return None


class SeesOpenCalls(ABC):
    """Tells which calls of f0 are under way, for collectors that can
    (:attr:`Collector.open_calls <darc.collectors.collector.Collector.open_calls>`)."""

    @abstractmethod
    def running(self) -> Sequence[Running] | None:
        """These calls; ``None``: that cannot be told while the program runs, here. Any thread."""

    @abstractmethod
    def waits_for(self, call: Running) -> Event | None:
        """What that call began to wait for last, if it is known to wait for anything. The program
        stands still."""

    @abstractmethod
    def standing(self, call: Running, event: Event | None) -> StandingCall:
        """Where the thread of that call is, and what it waits for; ``event`` is what it began to
        wait for last. The program stands still for the user, as if no probe were there; and the
        thread is the one that the debugger's commands are about from then on, if it can be."""

    @abstractmethod
    def deep_wait(self, call: Running) -> Sequence[str] | None:
        """The kernel's functions, innermost first, in which the thread of that call waits so that
        no signal ends it; ``None``: it does not, as far as can be seen. Any thread."""

    def may_have_stood(self) -> bool:
        """Whether the debugger may have held the program since that was asked last. Any thread, one
        at a time."""
        return False

    def scheduled(self, call: Running) -> Scheduled | None:
        """What has become of the thread of that call; ``None``: nothing tells. Any thread."""
        del call
        return None

    def is_in_probe(self, call: Running) -> bool:
        """Whether its thread is on its way through a probe, and not in the program's own code. The
        program stands still."""
        del call
        return False
