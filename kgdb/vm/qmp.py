"""Commands for a QEMU that runs, by its machine protocol (QMP)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import IO

from kgdb.vm.errors import VmError

_TIMEOUT_SECONDS = 60


def execute(monitor: Path, command: str, **arguments: object) -> object:
    """What QEMU answers to a command on the socket ``monitor``. Raises VmError: it refuses, or does
    not answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            connection.connect(str(monitor))
            with connection.makefile("rw") as lines:
                lines.readline()
                for line in (
                    {"execute": "qmp_capabilities"},
                    {"execute": command, "arguments": arguments},
                ):
                    lines.write(json.dumps(line) + "\n")
                    lines.flush()
                    answer = _answer(lines, command)
    except OSError as error:
        raise VmError(f"QEMU does not answer at {monitor}: {error}") from None
    return answer


def _answer(lines: IO[str], command: str) -> object:
    while True:
        answer = json.loads(lines.readline() or "null")
        if answer is None:
            raise VmError(f"QEMU ended before it answered {command}")
        if "error" in answer:
            raise VmError(f"QEMU refuses {command}: {answer['error']['desc']}")
        # In between it may tell of events.
        if "return" in answer:
            return answer["return"]
