"""Files as darc writes them: all of one or nothing."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from darc.model.errors import TargetError, UsageError

_ELF = b"\x7fELF"


def replace_file(file: Path, text: str, proposed: str = "report.json") -> None:
    """Write ``text`` to ``file``, all of it or nothing; a directory is told to have room for a file
    of the ``proposed`` name.

    Raises :class:`UsageError` when no file of this name can be, and :class:`TargetError` when
    the system refuses it.
    """
    try:
        if file.is_dir():
            raise UsageError(f"{file} is a directory; name a file in it: {file / proposed}")
        if not file.absolute().parent.is_dir():
            raise UsageError(f"there is no directory {file.parent}; make it first")
        if _is_program(file):
            raise UsageError(f"{file} is a program or a library; name another file")
        if file.exists() and not file.is_file():
            _write_to_device(file, text)
        else:
            _replace(Path(os.path.realpath(file)), text)
    except (OSError, ValueError) as error:  # a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"cannot write {file}: {reason}; name another file") from error


def _is_program(file: Path) -> bool:
    """The program that is debugged is easily named by mistake. The kernel does not protect that:
    it is not written to, another file takes its place."""
    if file.is_file():
        with contextlib.suppress(OSError), file.open("rb") as opened:
            return opened.read(len(_ELF)) == _ELF
    return False


def _write_to_device(file: Path, text: str) -> None:
    """A terminal, a pipe: one that nobody reads from is refused, as waiting for a reader would be
    for ever."""
    descriptor = os.open(file, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        os.set_blocking(descriptor, True)
        stream.write(text)


def _replace(target: Path, text: str) -> None:
    temporary = target.with_name(f".darc-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
