"""Compiles what is C while the package is built, so that nothing is compiled at run time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


def compile_all(outdir: Path) -> None:
    """Write what is made of C into ``outdir``; the build ends with one line where there is no
    gcc."""
    spec = importlib.util.spec_from_file_location("compiling", ROOT / "tools" / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.compile_all(outdir)


class BuildPy(build_py):
    """The package's modules, and what is compiled beside them."""

    def run(self) -> None:
        super().run()
        compile_all(ROOT if self.editable_mode else Path(self.build_lib))


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
