"""Compiles what is C in the package: the agent, and a library beside each ``.c`` of another folder,
``libNAME.so``, which the debugger loads.

``python tools/compile.py`` does so in the tree; ``setup.py`` where the package is built. Uses the
standard library alone, as it runs before anything is installed.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
AGENT = Path("darc", "agent")
CFLAGS = "-std=gnu11 -O2 -fPIC -shared -nostdlib -Wall -Wextra -Werror".split()


def agent_build() -> ModuleType:
    """What compiles the agent. It is no part of a package that could be imported by now."""
    spec = importlib.util.spec_from_file_location("agent_build", ROOT / AGENT / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def libraries() -> list[Path]:
    """The sources of what the debugger loads, each in the folder of who asks it."""
    found = sorted((ROOT / "darc").rglob("*.c"))
    return [source.relative_to(ROOT) for source in found if ROOT / AGENT not in source.parents]


def compile_all(outdir: Path = ROOT) -> None:
    """Write what is made of C into the package in ``outdir``; exits with one line where there is
    no gcc."""
    build = agent_build()
    build.build_agent(outdir / AGENT)
    for source in libraries():
        made = (outdir / source).with_name(f"lib{source.stem}.so")
        new = made.with_suffix(".new")
        made.parent.mkdir(parents=True, exist_ok=True)
        build.run("gcc", *CFLAGS, ROOT / source, "-o", new, what=str(source))
        new.replace(made)  # a debugger may have it loaded


if __name__ == "__main__":
    compile_all()
