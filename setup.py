"""Compiles the agent while the package is built, so that nothing is compiled at run time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
AGENT = Path("darc", "agent")


def compile_agent(outdir: Path) -> None:
    """Write the agent into ``outdir``; the build ends with one line where there is no gcc."""
    spec = importlib.util.spec_from_file_location("agent_build", ROOT / AGENT / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build_agent(outdir)
    module.build_scans(outdir.parent)


class BuildPy(build_py):
    """The package's modules, and the agent beside them."""

    def run(self) -> None:
        super().run()
        compile_agent(ROOT / AGENT if self.editable_mode else Path(self.build_lib) / AGENT)


class BdistWheel(bdist_wheel):
    """A wheel for every Python 3 on one platform: it carries machine code but no extension."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class PlatformDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel},
)
