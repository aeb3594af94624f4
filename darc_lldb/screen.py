"""What darc shows in lldb, and how: with lldb's settings, on lldb's terminal. Any thread."""

from __future__ import annotations

import os
from collections.abc import Callable

import lldb

from darc.app.liveline import LiveLine, is_terminal
from darc.views import glyphs


class Screen:
    """The output of one debugger, and the line below it."""

    def __init__(
        self, debugger: lldb.SBDebugger, may_ask: Callable[[], bool], stands: Callable[[], bool]
    ) -> None:
        """``may_ask`` tells whether lldb may be asked on this thread, ``stands`` whether the
        program stands still, or is none of darc's."""
        self._debugger = debugger
        self._may_ask = may_ask
        self._stands = stands
        self._line = LiveLine()
        self._style = (False, 0)

    def style(self) -> tuple[bool, int]:
        """Colour and columns, those of the last time where lldb may not be asked."""
        if self._may_ask() and is_terminal():
            debugger = self._debugger
            colour = bool(debugger.GetUseColor()) and glyphs.takes_colour(os.environ)
            self._style = (colour, int(debugger.GetTerminalWidth()))
        return self._style

    def live(self, text: str | None) -> None:
        """See :meth:`darc.target.target.Target.live`."""
        if not is_terminal():
            return
        if text is None:
            self._line.hide()
        elif not self._stands():  # lldb's prompt may be there already
            self._line.show(text, glyphs.locale_encoding(os.environ))

    def prompts(self) -> None:
        """lldb has shown a stop, and perhaps its prompt, behind the live line."""
        self._line.is_behind()

    def emit(self, text: str) -> None:
        """See :meth:`darc.target.target.Target.emit`."""
        self.live(None)
        _print(self._debugger.GetOutputFile(), text)

    def complain(self, text: str) -> None:
        """Shows an error that is no command's."""
        self.live(None)
        _print(self._debugger.GetErrorFile(), text)


def _print(file: lldb.SBFile, text: str) -> None:
    file.Write(glyphs.encoded(text + "\n", glyphs.locale_encoding(os.environ)))
    file.Flush()
