"""The wheel carries everything that runs, and the set-up scripts keep quiet or say one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "tools" / "setup.sh"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources alone, without anything that was built in them."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("setup.py", "setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    (tree / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "compile.py", tree / "tools")
    built = shutil.ignore_patterns("__pycache__", "agent.bin", "agent.elf", "layout.json", "*.so")
    for name in ("darc", "darc_gdb"):
        shutil.copytree(ROOT / name, tree / name, ignore=built)
    return tree


def make_wheel(tree: Path, path: str) -> subprocess.CompletedProcess[str]:
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    return subprocess.run(
        [*pip, "-w", "dist", "."],
        cwd=tree,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(
    1800
)  # it compiles the agent, which a busy machine takes many times as long for
def test_wheel_carries_the_compiled_agent(tree: Path) -> None:
    done = make_wheel(tree, os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    (wheel,) = (tree / "dist").glob("*.whl")
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {
        str(path.relative_to(tree))
        for package in ("darc", "darc_gdb")
        for path in (tree / package).rglob("*.py")
    }
    assert modules <= names
    assert {"darc/agent/agent.bin", "darc/agent/layout.json", "darc/py.typed"} <= names
    sources = [path for path in (tree / "darc").rglob("*.c") if path.parent.name != "agent"]
    assert len(sources) >= 4
    assert {
        str(path.with_name(f"lib{path.stem}.so").relative_to(tree)) for path in sources
    } <= names
    assert {
        "darc/debuggee/libwordscan.so",
        "darc/app/libpresses.so",
        "darc/code/libcallscan.so",
        "darc/code/libsymscan.so",
    } <= names
    assert not [name for name in names if name.startswith(("tests", "fixtures", "build"))]


def test_wheel_without_a_compiler_is_refused_in_words(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = make_wheel(tree, str(tmp_path))
    assert done.returncode != 0
    assert "gcc is needed to compile the agent" in done.stderr


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A PATH with stand-ins: ``dpkg-query`` knows all packages but those in ``missing``."""
    for tool in ("bash", "mktemp", "rm", "tail", "env", "grep"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    write(tmp_path / "dpkg-query", 'for p; do :; done; grep -qx "$p" "$MISSING" || echo installed')
    write(tmp_path / "apt-get", 'echo "$*" >>"$CALLS"; [ "$2" = update ] || [ -s "$LISTS" ]')
    write(tmp_path / "id", "echo 1000")
    (tmp_path / "missing").touch()
    return tmp_path


def write(script: Path, text: str) -> None:
    script.write_text(f"#!/bin/bash\n{text}\n")
    script.chmod(0o755)


def setup(system: Path, *purposes: str) -> subprocess.CompletedProcess[str]:
    places = {name.upper(): str(system / name) for name in ("missing", "calls", "lists")}
    return subprocess.run(
        ["/bin/bash", SETUP, *purposes],
        env={"PATH": str(system), **places},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_setup_says_nothing_when_nothing_is_missing(system: Path) -> None:
    done = setup(system)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (system / "calls").exists()


def test_setup_for_several_purposes(system: Path) -> None:
    (system / "missing").write_text("clang\nbusybox-static\n")
    advice = "setup: as root, run: apt-get update && apt-get install -y"
    assert setup(system).stderr == ""
    assert setup(system, "kernel").stderr == f"{advice} busybox-static\n"
    assert setup(system, "test", "kernel").stderr == f"{advice} clang busybox-static\n"
    assert "kernels" in setup(system, "test", "kernels").stderr


def test_setup_says_what_to_install_when_it_may_not(system: Path) -> None:
    (system / "missing").write_text("gdb\nlibc6-dbg\n")
    done = setup(system)
    assert done.returncode == 1
    advice = "as root, run: apt-get update && apt-get install -y libc6-dbg gdb"
    assert (done.stdout, done.stderr) == ("", f"setup: {advice}\n")


def test_setup_installs_what_is_missing_and_fetches_no_lists(system: Path) -> None:
    write(system / "id", "echo 0")
    (system / "missing").write_text("gdb\n")
    (system / "lists").write_text("there")
    done = setup(system)
    assert (done.returncode, done.stdout, done.stderr) == (0, "setup: installing gdb\n", "")
    calls = (system / "calls").read_text().splitlines()
    assert calls == ["-qq install -y --no-install-recommends gdb"]


def test_setup_fetches_lists_by_sudo_when_they_are_missing(system: Path) -> None:
    write(
        system / "sudo", 'if [ "$1" = -n ]; then shift; "$@"; else echo sudo >>"$CALLS"; "$@"; fi'
    )
    write(
        system / "apt-get",
        'echo "$2" >>"$CALLS"; [ "$2" != update ] || echo . >"$LISTS"; [ -s "$LISTS" ]',
    )
    write(system / "true", "exit 0")
    (system / "missing").write_text("gcc\n")
    done = setup(system)
    assert (done.returncode, done.stdout, done.stderr) == (0, "setup: installing gcc\n", "")
    calls = (system / "calls").read_text().split()
    assert calls == ["sudo", "install", "sudo", "update", "sudo", "install"]


@pytest.mark.parametrize("failing", ["", "check", "format"])
def test_lint_runs_both_and_fails_where_either_does(failing: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    ruff = tmp_path / "ruff"
    ruff.write_text(f'#!/bin/sh\necho "$*" >> {said}\n[ "$1" != "{failing}" ]\n')
    ruff.chmod(0o755)
    command = ["make", "-o", ".venv/.stamp", f"BIN={tmp_path}", "lint"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is (failing == ""), done.stderr
    assert [line.split()[0] for line in said.read_text().splitlines()] == ["check", "format"]
