"""What a kernel needs of the debugger beyond a :class:`~darc.target.target.Target`: the seam.

The debugger is connected to a machine, by QEMU's gdbstub or kgdb. All processors stand still
whenever the debugger does. Raw addresses are those that its connection takes just now: virtual
ones, or physical ones inside :meth:`Remote.physical`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from darc.target.memory import Hidden
from darc.target.outcome import OnHit, Outcome
from darc.target.target import Target


class Remote(ABC):
    """The debugger's connection to the machine that runs the kernel."""

    @property
    @abstractmethod
    def target(self) -> Target:
        """The same debugger, as for any program."""

    @property
    @abstractmethod
    def is_qemu(self) -> bool:
        """Whether the connection is to QEMU's gdbstub, which can watch memory."""

    @abstractmethod
    def be_patient(self) -> None:
        """Lets the debugger wait for answers as long as a busy host may take for them."""

    @abstractmethod
    def move_symbols(self, path: str, value: int, bias: int) -> None:
        """Lets the debugger know where the kernel really is, if it does not: the file's
        ``linux_banner``, at ``value`` there, is ``bias`` higher."""

    @abstractmethod
    def spare_line(self, longest: int) -> None:
        """The line to the machine is slow: memory is read and written in packets of ``longest``
        bytes, and breakpoints stay in at stops, until :meth:`spare_line_no_more`."""

    @abstractmethod
    def spare_line_no_more(self) -> None:
        """Undoes :meth:`spare_line`, if there is anything to undo."""

    @abstractmethod
    def run_to(
        self, address: int, accepts: Callable[[], bool], waiting: str, late: str | None = None
    ) -> None:
        """Lets everything run until a processor comes to ``address`` and ``accepts`` says yes,
        which may look at its registers; that one is the debugger's thread then.
        ``waiting`` tells the user what for, if that takes long. Where ``late`` says what is wrong
        then, it does not last longer than the target's patience, nor than until the debugger is to
        end.

        Raises:
            TargetError: it stopped for something else, or it was too ``late``. Ctrl-C ends it at
                once where it may be late, else when it comes again.
        """

    @abstractmethod
    def undivided(self) -> AbstractContextManager[None]:
        """What is begun is done as a whole: Ctrl-C counts at its end. Within it one does not end
        :meth:`run_to` where that cannot be late; a second one does.

        Raises:
            TargetError: at the end, it has come.
        """

    @abstractmethod
    def register(self, name: str) -> int:
        """A register of the processor that is the debugger's thread. Raises TargetError."""

    @abstractmethod
    def set_registers(self, values: Mapping[str, int]) -> None:
        """Sets those that have other values, in one step where the connection can: a debugger that
        is killed has set all of them or none. Else one after the other, in their order."""

    @abstractmethod
    def physical(self) -> AbstractContextManager[bool]:
        """Whether raw addresses are physical ones meanwhile, as QEMU (4.1 and newer) allows: the
        machine itself knows nothing of it."""

    @abstractmethod
    def be_virtual(self) -> None:
        """Raw addresses are virtual ones, which an earlier debugger may have left otherwise."""

    @abstractmethod
    def read_raw(self, address: int, size: int) -> bytes:
        """Memory at raw addresses."""

    @abstractmethod
    def write_raw(self, address: int, data: bytes) -> None:
        """Writes there."""

    @abstractmethod
    def reach_through(self, hidden: Hidden | None) -> None:
        """The target reads and writes by ``hidden`` what it cannot reach by itself."""

    @abstractmethod
    def unlock_by(self, unlock: Callable[[int, int], bool] | None) -> None:
        """Where the target may not write, ``unlock`` makes so many bytes at an address writable;
        it tells whether it could."""

    @abstractmethod
    def set_watch(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        """As the target's ``set_break``, for a write to the word at ``address``, where the
        connection :attr:`is_qemu`."""

    @abstractmethod
    def arm_interrupt(self, handler: Callable[[], Outcome]) -> None:
        """``handler`` decides, with everything stopped, after :meth:`interrupt`. The user's own
        Ctrl-C stops as always. Taken back as the target's bell is."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stops the machine for the handler of :meth:`arm_interrupt`, if it runs. Any thread."""
