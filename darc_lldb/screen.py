"""What darc shows in lldb, and how: with lldb's settings, on lldb's terminal. Any thread."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import lldb

from darc.app.liveline import LineScreen, is_terminal
from darc.target.ownthread import Turn, any_thread, own_thread
from darc.views import glyphs
from darc_lldb.inferior import Inferior
from darc_lldb.keys import Keys


@own_thread
class LldbScreen(LineScreen):
    """The output of one debugger, and the line below it."""

    def __init__(self, turn: Turn, debugger: lldb.SBDebugger, inferior: Inferior) -> None:
        super().__init__()
        self.turn = turn
        self._debugger = debugger
        self._inferior = inferior
        self._keys = Keys()
        self._prompt = ""
        self._style = (False, 0)

    def accepts_pending(self, question: str) -> bool:
        """As lldb's own breakpoints always do."""
        return True

    @property
    @any_thread
    def is_script(self) -> bool:
        return _is_batch()

    @property
    @any_thread
    def colour(self) -> bool:
        return self.style()[0]

    @property
    @any_thread
    def width(self) -> int:
        return self.style()[1]

    @any_thread
    def style(self) -> tuple[bool, int]:
        """Colour and columns, those of the last time where lldb may not be asked."""
        if self.turn.is_own_thread() and is_terminal():
            debugger = self._debugger
            colour = bool(debugger.GetUseColor()) and glyphs.takes_colour(os.environ)
            self._style = (colour, int(debugger.GetTerminalWidth()))
        return self._style

    def goes_on(self) -> None:
        """The program is about to go on, by a command."""
        self._line.hide()
        self._prompt = str(self._debugger.GetPrompt() or "")

    @any_thread
    def runs(self) -> None:
        self._keys.begin_anew()

    @any_thread
    def live(self, text: str | None) -> None:
        """Nothing more once the user types at the prompt, up to the next command by which the
        program goes on."""
        if text is not None and self._is_typed_at():
            self._line.make_way(self._prompt, self._encoding())
            return
        super().live(text)

    def _is_typed_at(self) -> bool:
        return self._inferior.attached and self._keys.have_come()  # else it has no prompt

    def _is_free_while_it_runs(self) -> bool:
        return not self._inferior.seems_to_stand()  # lldb's prompt may be there already

    def _is_free_at_commands(self) -> bool:
        return is_terminal()

    def _encoding(self) -> str:
        return _encoding()

    @any_thread
    def prompts(self) -> None:
        """lldb has shown a stop, and perhaps its prompt, behind the live line."""
        self._line.is_behind()

    @any_thread
    def emit(self, text: str) -> None:
        with self._line.held():
            self._print(self._debugger.GetOutputFile(), text)

    @any_thread
    def complain(self, text: str) -> None:
        """Shows an error that is no command's."""
        with self._line.held():
            self._print(self._debugger.GetErrorFile(), text)

    def _print(self, file: lldb.SBFile, text: str) -> None:
        file.Write(glyphs.encoded(text + "\n", self._encoding()))
        file.Flush()


def fitting(text: str) -> str:
    """``text`` as lldb can show it."""
    return glyphs.fitting(text, _encoding())


def _encoding() -> str:
    return glyphs.locale_encoding(os.environ)


@functools.cache
def _is_batch() -> bool:
    """Whether lldb was started to carry out commands and end. What stands behind ``--`` is the
    program's."""
    words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    own = words[: words.index("--")] if "--" in words else words
    return not {"-b", "--batch"}.isdisjoint(own)
