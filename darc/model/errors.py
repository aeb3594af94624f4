"""What can go wrong, as the user is told of it.

Every error that a user may come to see is a :class:`DarcError`, and its message is one line that
says what to do. The debugger packages print that line and nothing else; ``set darc verbose on``
adds the traceback. No other one leaves darc:

- what begins with an underscore and is none ends something within its own module;
- ``NotNowError`` ends what a helper prepares, and is a ``BaseException``, so that nobody takes it
  for an answer (:mod:`darc.code.live`);
- a ``ValueError`` says that a text or bytes are of no use, an ``OSError`` what a system call says:
  whoever has asked tells in which file, option or place, by one of these or as a reason;
- what cannot be loaded at all (``ImportError``, ``RuntimeError``) is told by each debugger's
  ``load.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DarcError(Exception):
    """Base of the family. ``str(error)`` is the one line shown to the user."""


class UsageError(DarcError):
    """A command, option, parameter or argument is not of the form it must have."""


class NotFoundError(DarcError):
    """A function, file or node that was named does not exist (yet)."""


class InlinedError(NotFoundError):
    """A function that has no code of its own, as compilers have put it where it is called."""


class UnchosenError(NotFoundError):
    """A function of which the program has several, and chooses one when it first needs it (IFUNC),
    has not been chosen yet. ``resolver`` is the address of what chooses."""

    def __init__(self, message: str, resolver: int) -> None:
        super().__init__(message)
        self.resolver = resolver


class AmbiguousError(DarcError):
    """A name has several matches; the message lists the spellings that have one."""


class TargetError(DarcError):
    """The debugger or the operating system refused an access to the program."""


class TimeUpError(DarcError):
    """What the user asked for was not ready within the time that it may take."""


class WrittenOverError(TargetError):
    """What is counted with lies in the program, which has written over it."""


class UnsupportedError(DarcError):
    """darc refuses this program, mode or place, because it could not be right or safe there."""


class ProbesImpossibleError(UnsupportedError):
    """No probe of one kind can be put into this program at all. Another kind may be."""


class PadsImpossibleError(ProbesImpossibleError):
    """No pad can be put into this program at all. Breakpoints can."""


class EntryImpossibleError(UnsupportedError):
    """No probe of one kind can stand at the function that is to be timed. Another kind may."""


class FormatError(DarcError):
    """A file is corrupt, truncated, foreign or of a version that is not known."""


class ProfileError(DarcError):
    """A profile contradicts its own checksum (OSprof section 4)."""


def near(word: str, words: Iterable[str]) -> str:
    """``"; did you mean --peak?"`` for the words closest to ``word``, or nothing."""
    found = difflib.get_close_matches(word, list(words), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(found)}?" if found else ""
