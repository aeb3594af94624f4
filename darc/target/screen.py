"""What the user sees of darc, and is asked by it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from darc.target.ownthread import any_thread


class Screen(ABC):
    """A debugger's output."""

    @abstractmethod
    def accepts_pending(self, question: str) -> bool:
        """Whether to wait for a function that does not exist yet, as the debugger's own setting
        for breakpoints says; it may ask the user."""

    @property
    @abstractmethod
    def colour(self) -> bool:
        """Whether output takes escape codes."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of the output; 0 when unlimited."""

    @property
    def wraps(self) -> bool:
        """Whether sentences are to be wrapped at the :attr:`width`."""
        return False

    @property
    def is_script(self) -> bool:
        """Whether nobody is there to type: the debugger carries out the commands that it was given
        and ends (batch)."""
        return False

    @property
    def most_completions(self) -> int | None:
        """Of so many the debugger lists no more; ``None``: it lists all."""
        return None

    @abstractmethod
    def live(self, text: str | None) -> None:
        """Shows one line in place of the last one, ``None`` takes it away; nothing where output is
        no terminal. Any thread."""

    @any_thread
    def leave(self, text: str) -> None:
        """Shows a line that stays, where a program that writes on the same terminal would write
        behind one that changes, and that over what the program has written. Any thread."""
        del text

    @any_thread
    def leave_at_command(self, text: str) -> None:
        """The same while a command is carried out in a script. Any thread."""
        del text

    @property
    def has_live_line(self) -> bool:
        """Whether output takes a line that changes."""
        return True

    @any_thread  # noqa: B027  most have nothing to do then
    def runs(self) -> None:
        """The program runs by now, for the user. Any thread."""

    def begins_progress(self) -> bool:
        """While the user waits for a command: whether :meth:`progress` will show that line."""
        return self.has_live_line

    @any_thread
    def progress(self, text: str | None) -> None:
        """As :meth:`live`, while the user waits for a command, or the program at a stop. Any
        thread, once :meth:`begins_progress` has been asked."""
        self.live(text)

    def calls_off(self) -> Callable[[], bool]:
        """What tells whether the user has pressed Ctrl-C, and darc is at work that lets it wait:
        what takes long asks. One that waits for the debugger counts whenever it has come, one of
        the program's from now on: it may block that signal, and leave it for ever."""
        return lambda: False

    @any_thread
    def is_to_end(self) -> bool:
        """Whether the debugger was told to end (SIGTERM, SIGHUP), and does when darc's command is
        over: what takes long asks, and breaks off. Any thread."""
        return False

    @abstractmethod
    def emit(self, text: str) -> None:
        """Shows text to the user; a newline is added."""
