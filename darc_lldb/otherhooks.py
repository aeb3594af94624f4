"""Stop hooks of others, and whether darc's own is there.

lldb stops for the user wherever one of its stop hooks has nothing against it: with another hook
each stop of darc's own would be one for the user. So the others sleep while the program is analysed
and runs.
"""

from __future__ import annotations

import re

import lldb

from darc_lldb.inferior import Inferior

OWN = "darc_lldb.stophook.StopHook"
_ADD = f"target stop-hook add -P {OWN}"


class OtherHooks:
    """Those of the target of ``inferior``."""

    def __init__(self, inferior: Inferior) -> None:
        self._inferior = inferior
        self._asleep: set[int] = set()
        self._are_free = False
        """Whether the program has ended since, which is not always told where lldb may be asked."""

    def program_ended(self) -> None:
        """lldb may not be asked here: they are woken as :meth:`catch_up` is called. Any thread."""
        self._are_free = True

    def catch_up(self) -> None:
        """Before a command."""
        if self._are_free:
            self.wake()
        self._keep_own()

    def _keep_own(self) -> None:
        """lldb 14 numbers a new target's hooks from 1 on, also where it has taken darc's over from
        before there was a target: the user's first one takes its place."""
        if self._inferior.target.IsValid() and OWN not in self._run("list"):
            self._run(_ADD.removeprefix("target stop-hook "))

    def sleep(self) -> None:
        """The program is about to run for an analysis."""
        self._are_free = False
        for number, text in self._listed():
            if OWN not in text and re.search(r"State: *enabled", text):
                self._run(f"disable {number}")
                self._asleep.add(number)

    def wake(self) -> None:
        """The program stands still for the user, or is gone."""
        if not self._asleep:
            return
        there = {number for number, _ in self._listed()}
        for number in sorted(self._asleep & there):
            self._run(f"enable {number}")
        self._asleep.clear()

    def _listed(self) -> list[tuple[int, str]]:
        parts = re.split(r"^Hook: (\d+)$", self._run("list"), flags=re.M)
        return [(int(n), text) for n, text in zip(parts[1::2], parts[2::2], strict=True)]

    def _run(self, words: str) -> str:
        result = lldb.SBCommandReturnObject()
        command = f"target stop-hook {words}"
        with self._inferior.at_home():
            self._inferior.debugger.GetCommandInterpreter().HandleCommand(command, result)
        return str(result.GetOutput() or "")
