"""Whether the user types at lldb's prompt, which is there while an attached program runs.

lldb has the terminal then, shows each key at once, and tells nobody of it. But its first thread
reads the keys, and at the prompt nothing else.
"""

from __future__ import annotations

import os
import threading

from darc.debuggee import procfs


class Keys:
    """Those of one debugger's prompt. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: int | None = None
        """How much was read when the program had gone on; ``None``: that is to be looked up."""

    def begin_anew(self) -> None:
        """The program runs by now, and the command for that was read."""
        with self._lock:
            is_reader = threading.get_native_id() == os.getpid()  # it reads what it looks up
            self._read = None if is_reader else procfs.bytes_read(os.getpid())

    def have_come(self) -> bool:
        """Whether any was typed since then. Not on the thread that reads them."""
        now = procfs.bytes_read(os.getpid())
        with self._lock:
            if self._read is None:
                self._read = now
            return now != self._read
