"""Memory that is mapped in a process for darc, by system calls that the program is let make.

It is anonymous, and ends with the process.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Sequence

from darc.code.program import Program
from darc.code.system_calls import SystemCall
from darc.debuggee import limits
from darc.debuggee.borrowing import borrowed
from darc.debuggee.detour import DispatchedError
from darc.debuggee.gaps import far_from_all, without
from darc.debuggee.mapflags import CODE, DATA, Access, Advice, MapFlag, mmap_arguments
from darc.debuggee.procfs import MemoryFile, is_locked, regions
from darc.debuggee.seccomp import may_forbid
from darc.model.errors import PadsImpossibleError, TargetError
from darc.target.target import Target

_ZEROS = bytes(1 << 20)

_BOXED = "the program has entered a seccomp sandbox, which may kill it for mapping memory"


class Mappings:
    """Those in one process. All its threads stand still whenever a system call is made."""

    def __init__(
        self, target: Target, program: Callable[[], Program], pid: int, memory: MemoryFile
    ) -> None:
        """``program`` tells what is loaded now, ``memory`` is the process's."""
        self._target = target
        self._program = program
        self._pid = pid
        self._memory = memory
        self._mapped: list[tuple[int, int]] = []
        self._was_boxed = may_forbid(target, pid)

    @property
    def is_boxed(self) -> bool:
        """Whether the program has entered a seccomp sandbox that was not there when darc began: it
        may be killed for what darc asks of the kernel."""
        return not self._was_boxed and may_forbid(self._target, self._pid)

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(size for _, size in self._mapped)

    def begins(self, place: range) -> bool:
        """Whether one of them begins there."""
        return any(start == place.start for start, _ in self._mapped)

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in one of them."""
        return any(start <= address < start + size for start, size in self._mapped)

    def adopt(self, places: Sequence[range]) -> None:
        """An earlier debugger has mapped these."""
        self._mapped += [(place.start, len(place)) for place in places]

    def system_call(self, number: SystemCall, *arguments: int) -> int:
        """Makes a system call in the program. Where the debugger has no better way, a few bytes of
        its code are borrowed for it.

        Raises:
            PadsImpossibleError: it has entered a sandbox meanwhile, or its system calls come to
                itself.
        """
        try:
            made = self._target.system_call(number, arguments)  # which makes none in a sandbox
        except DispatchedError as error:
            raise PadsImpossibleError(str(error)) from error
        if made is not None:
            return made - (1 << 64) if made >= 1 << 63 else made
        if self.is_boxed:
            raise PadsImpossibleError(_BOXED)
        memory, journal = self._target.memory, self._target.journal
        with borrowed(memory, journal, self._borrowed_place(), number) as function:
            result = self._target.call(function, arguments)
        return result - (1 << 64) if result >= 1 << 63 else result

    def _borrowed_place(self) -> int:
        program = self._program()
        main = program.modules[0]
        executable = self._target.executable
        for module in program.modules:
            if executable is not None and executable.endswith("/" + module.name):
                main = module
                break
        if main.image.entry:
            return main.image.entry + main.bias
        return next(r.start for r in program.regions if "x" in r.permissions)

    # ------------------------------------------------------------------ taking, and giving back

    def map_code(self, place: int, size: int) -> bool:
        """Memory for code at that place; ``False``: the place is taken.

        Raises:
            PadsImpossibleError: it may not be mapped.
        """
        return self._map_at(place, size, CODE)

    def map_words(self, place: int, size: int) -> bool:
        """The same for what the program is to write, all zero."""
        if not self._map_at(place, size, DATA):
            return False
        self.populate(range(place, place + size))
        return True

    def map_tables(self, size: int) -> int:
        """Memory for tables, all zero.

        Raises:
            PadsImpossibleError: there is none.
        """
        # Not to be used at first: memory that is locked as it is mapped would be used as a whole.
        base = self._map_far(size)
        error = self.make_writable(range(base, base + size))
        if error:
            self.unmap([range(base, base + size)])
            raise PadsImpossibleError(limits.refused(-error))
        self.system_call(SystemCall.MADVISE, base, size, int(Advice.NOHUGEPAGE))
        return base

    def make_writable(self, place: range) -> int:
        """The program may write there from now on, and execute nothing; else an error's number,
        below 0."""
        return self.system_call(SystemCall.MPROTECT, place.start, len(place), int(DATA))

    def wipe_in_children(self, place: range) -> int:
        """A child of the program finds it all zero; else an error's number, below 0."""
        advice = int(Advice.WIPEONFORK)
        return self.system_call(SystemCall.MADVISE, place.start, len(place), advice)

    def populate(self, fresh: range) -> None:
        """Writes into memory that is all zero and that nobody has used: the page faults happen now,
        while the program stands still, not in the calls that are timed."""
        with contextlib.suppress(TargetError):
            for at in range(fresh.start, fresh.stop, len(_ZEROS)):
                self._memory.write(at, _ZEROS[: fresh.stop - at])

    def unmap(self, places: Sequence[range], kept: Sequence[range] = ()) -> None:
        """These are given back, but for what is ``kept`` of them. What the program has sealed
        meanwhile (mseal(2)) stays mapped."""
        for place in places:
            self._target.journal.unmaps(place)
            parts = without(place, kept)
            sealed = [one for one in parts if self._unmap(one) < 0]
            self._target.journal.unmapped(place)
            self._mapped.remove((place.start, len(place)))
            self.adopt(sealed)

    def _unmap(self, part: range) -> int:
        return self.system_call(SystemCall.MUNMAP, part.start, len(part))

    def unmap_all(self, kept: Sequence[range] = ()) -> None:
        """The same of all."""
        self.unmap([range(start, start + size) for start, size in self._mapped], kept)

    def _map_far(self, size: int) -> int:
        """Where nothing of the program's grows; without such a place, where the kernel likes."""
        place = far_from_all(regions(self._pid), size)
        if place is not None:
            flags = MapFlag.NORESERVE | MapFlag.FIXED_NOREPLACE
            base = self._map(place, size, Access.NONE, flags)
            if base is not None:
                return base
        base = self._map(0, size, Access.NONE, MapFlag.NORESERVE)
        assert base is not None
        return base

    def _map_at(self, place: int, size: int, access: Access) -> bool:
        return self._map(place, size, access, MapFlag.FIXED_NOREPLACE) is not None

    def _map(self, hint: int, size: int, access: Access, flags: MapFlag) -> int | None:
        """Maps memory that is not locked, whatever the program has told the kernel of its own;
        ``None``: the place is taken.

        Raises:
            PadsImpossibleError: it may not.
        """
        base = self.system_call(SystemCall.MMAP, *mmap_arguments(size, access, flags, place=hint))
        if base == -errno.EEXIST:
            return None
        if base < 0:
            raise PadsImpossibleError(limits.refused(-base))
        self._mapped.append((base, size))
        self._target.journal.maps(range(base, base + size))
        if hint and base != hint:  # a kernel that does not know that the place matters
            self.unmap([range(base, base + size)])
            return None
        if is_locked(self._pid, base):
            self.system_call(SystemCall.MUNLOCK, base, size)
        return base
