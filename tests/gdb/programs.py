"""Programs that a test has in its own text."""

from __future__ import annotations

import subprocess
from pathlib import Path


def compiled(folder: Path, source: str) -> Path:
    file, program = folder / "program.c", folder / "program"
    file.write_text(source)
    command = ["gcc", "-O1", "-g", "-pthread", str(file), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    return program
