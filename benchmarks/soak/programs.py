"""The programs and what each of them does to test itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.soak.run import Job, Workplace
from benchmarks.soak.sources import Sources

SCRIPTS = Path(__file__).resolve().with_name("scripts")


def jobs(sources: Sources) -> dict[str, Callable[[], Iterator[Job]]]:
    """What makes the jobs of each program; sources are fetched and built only then."""
    return {
        "zstd": lambda: _zstd(sources),
        "sqlite": lambda: _sqlite(sources),
        "redis": lambda: _redis(sources),
        "python": lambda: _python(sources),
        "git": lambda: _git(sources),
        "interpreters": _interpreters,
        "tools": lambda: _tools(sources),
        "compiler": lambda: _compiler(sources),
        "rust": lambda: _rust(sources),
        "go": lambda: _go(sources),
        "zstd-shell": lambda: _zstd_shell(sources),
    }


def started(*arguments: object) -> Callable[[Workplace], Sequence[str]]:
    """Starts the program itself."""
    return lambda place: [str(place.program), *map(str, arguments)]


def shell(script: str) -> Callable[[Workplace], Sequence[str]]:
    """Runs a shell script, with the program as ``$PROGRAM``."""
    return lambda place: ["sh", "-c", f"PROGRAM='{place.program}'\n{script}"]


def without(*patterns: str) -> Callable[[str], str]:
    """Cleans output of everything that one of ``patterns`` matches."""
    found = re.compile("|".join(patterns), re.M)
    return lambda text: found.sub("", text)


def lines(pattern: str, *, ordered: bool = True) -> Callable[[str], str]:
    """Keeps the lines, or the first groups of them, that match ``pattern``."""
    wanted = re.compile(pattern, re.M)

    def clean(text: str) -> str:
        found: Iterable[str] = (m[m.lastindex or 0] for m in wanted.finditer(text))
        return "\n".join(found if ordered else sorted(found))

    return clean


def counted(pattern: str) -> Callable[[str], int]:
    """How often ``pattern`` is in the output."""
    return lambda text: len(re.findall(pattern, text, re.M))


# ----------------------------------------------------------------------------------- zstd


_ZSTD = (
    ("make", "-s", "-j2", "-C", "programs", "zstd", "MOREFLAGS=-g"),
    ("make", "-s", "-j2", "-C", "tests", "fuzzer", "zstreamtest", "datagen", "MOREFLAGS=-g"),
)


def _zstd(sources: Sources) -> Iterator[Job]:
    yield _zstd_rounds(sources, "fuzzer", 20)


def _zstd_rounds(sources: Sources, name: str, rounds: int) -> Job:
    return Job(
        "zstd",
        name,
        sources.source("zstd", _ZSTD) / "tests" / name,
        started("-s1", f"-i{rounds}", "-v"),
        clean=lines(r"^(test *\d+ : .*?)(?: : 0x.*)?$|^(.*(?:tests completed|rror).*)$"),
        count=counted(r"^test *\d+"),
    )


def _zstd_shell(sources: Sources) -> Iterator[Job]:
    yield _zstd_rounds(sources, "zstreamtest", 10)
    tree = sources.source("zstd", _ZSTD)
    tests = tree / "tests"
    yield Job(
        "zstd",
        "playTests.sh",
        tree / "programs" / "zstd",
        shell(f"ZSTD_BIN=$PROGRAM exec sh '{tests}/playTests.sh'"),
        clean=lines(r"^(===.*|.*[Tt]est: .*|.*\bOK$)"),
        count=counted(r"^"),
        environment={"DATAGEN_BIN": str(tests / "datagen")},
        share=0.03,
    )


# --------------------------------------------------------------------------------- SQLite


_SQLITE = (
    ("./configure", "-q", "--disable-shared", "--disable-tcl", "CFLAGS=-g -O2"),
    ("make", "-s", "speedtest1", "fuzzcheck"),
)


def _sqlite(sources: Sources) -> Iterator[Job]:
    tree = sources.source("sqlite3", _SQLITE)
    yield Job(
        "sqlite",
        "speedtest1",
        tree / "speedtest1",
        started("--verify", "--size", 60, "test.db"),
        clean=lines(r"^ *(\d+ - .*?)\.\.|^(Verification Hash.*)|^(.*[Ee]rror.*)"),
        count=counted(r"^\d+ - "),
        keep=["test.db"],
    )
    data = [tree / "test" / f"fuzzdata{number}.db" for number in range(1, 7)]
    yield Job(
        "sqlite",
        "fuzzcheck",
        tree / "fuzzcheck",
        started(*data),
        clean=without(r" in [\d.]+ seconds"),
        count=lambda text: int((re.search(r"out of (\d+) tests", text) or ["0", "0"])[1]),
    )


# ---------------------------------------------------------------------------------- redis

_REDIS_TESTS = "unit/type/hash unit/type/zset unit/scan unit/expire unit/scripting integration/rdb"


def _redis(sources: Sources) -> Iterator[Job]:
    tree = sources.source("redis")
    libraries = ("libhiredis0.14", "libjemalloc2", "liblzf1", "libatomic1", "libsystemd0")
    root = sources.programs("redis-server", "redis-tools", *libraries)

    def run(place: Workplace) -> Sequence[str]:
        shutil.copytree(tree / "tests", place.folder / "tests")
        (place.folder / "src").mkdir()
        for name in ("redis-server", "redis-sentinel", "redis-cli", "redis-benchmark"):
            (place.folder / "src" / name).symlink_to(
                place.program if name == place.program.name else root / "usr" / "bin" / name
            )
        tests = [word for name in _REDIS_TESTS.split() for word in ("--single", name)]
        return ["tclsh", "tests/test_helper.tcl", "--clients", "2", "--timeout", "2400", *tests]

    yield Job(
        "redis",
        "runtest",
        (root / "usr" / "bin" / "redis-check-rdb").resolve().with_name("redis-server"),
        run,
        clean=lines(r"^\S*(\[(?:ok|err|exception)\]\S*: .*?)(?: \(\d+ ms\))?$", ordered=False),
        count=counted(r"^\[ok\]"),
        environment={"LD_LIBRARY_PATH": str(root / "usr" / "lib" / "x86_64-linux-gnu")},
    )


# -------------------------------------------------------------------------------- CPython

_PYTHON_TESTS = (
    "test_json test_struct test_dict test_set test_exceptions test_generators test_thread "
    "test_zlib test_decimal test_contextlib test_asyncgen test_queue test_fork1"
)


def _python(sources: Sources) -> Iterator[Job]:
    root = sources.programs("libpython3.11-testsuite")
    found = root / "usr" / "lib" / "python3.11"
    installed = Path("/usr/lib/python3.11/test")

    def run(place: Workplace) -> Sequence[str]:
        package = place.folder / "lib" / "test"
        package.mkdir(parents=True)
        for source in (installed, found / "test"):
            for entry in source.iterdir():
                if not (package / entry.name).exists() and entry.name != "__pycache__":
                    (package / entry.name).symlink_to(entry)
        return [str(place.program), "-m", "test", "-v", *_PYTHON_TESTS.split()]

    yield Job(
        "python",
        "python -m test",
        Path("/usr/bin/python3.11"),
        run,
        clean=lines(
            r"^(test\w+ \(.*\).* \.\.\. .*)|^(Ran \d+ tests)|^((?:FAIL|ERROR|Tests result).*)",
            ordered=False,
        ),
        count=counted(r"\.\.\. ok"),
        environment={"PYTHONPATH": "lib", "PYTHONDONTWRITEBYTECODE": "1"},
    )


# ------------------------------------------------------------------------------------ git

_GIT_TESTS = "t5300-pack-object"


def _git(sources: Sources) -> Iterator[Job]:
    files = sources.source("sqlite3", _SQLITE) / "src"
    yield Job(
        "git",
        "repository.sh",
        Path("/usr/bin/git"),
        shell(f"export PROGRAM SOURCES='{files}'\nexec sh '{SCRIPTS / 'repository.sh'}'"),
        count=counted(r"^"),
    )
    lean = [f"NO_{what}=1" for what in "GETTEXT TCLTK EXPAT CURL OPENSSL PYTHON".split()]
    make = ["make", "-s", "-j2", *lean, "CFLAGS=-g -O1"]
    tree = sources.source(
        "git",
        [[*make, "GIT-BUILD-OPTIONS", "t/helper/test-tool"], [*make, "-C", "templates"]],
    )
    for test in _GIT_TESTS.split():
        yield Job(
            "git",
            test,
            Path("/usr/bin/git"),
            shell(
                "export GIT_TEST_INSTALLED=$(dirname $PROGRAM)\n"
                "export GIT_TEST_EXEC_PATH=/usr/lib/git-core root=$PWD\n"
                f"cd '{tree}/t' && exec sh ./{test}.sh --root=$root"
            ),
            clean=lines(r"^(?:ok|not ok|1\.\.|#).*"),
            count=counted(r"^ok "),
            share=0.04,
        )


# ------------------------------------------------------------- programs as they are installed


def _interpreters() -> Iterator[Job]:
    for interpreter, script in (
        ("/usr/bin/perl", "words.pl"),
        ("/usr/bin/python3.11", "threads.py"),
        ("/usr/bin/node", "files.js"),
        ("/usr/bin/bash", "processes.sh"),
    ):
        file = Path(interpreter)
        if file.exists():
            yield Job(file.name, script, file, started(SCRIPTS / script))


def _tools(sources: Sources) -> Iterator[Job]:
    data = sources.source("sqlite3", _SQLITE) / "sqlite3.c"
    for packer, suffix in (("xz -6 -T2 --block-size=2MiB", "xz"), ("zstd -q -18 -T2", "zst")):
        name, _, options = packer.partition(" ")
        script = (
            f"cp '{data}' data && $PROGRAM {options} -k data &&\n"
            f"$PROGRAM -d -c data.{suffix} | cmp - data && echo the same"
        )
        file = Path("/usr/bin") / name
        yield Job(name, f"{options}, there and back", file, shell(script), keep=[f"data.{suffix}"])
    yield Job(
        "sort",
        "--parallel=2",
        Path("/usr/bin/sort"),
        shell(
            f"for i in 1 2 3; do tr -s ' ' '\\n' <'{data}'; done >words\n"
            "$PROGRAM --parallel=2 -S 8M words >sorted && $PROGRAM -u -S 8M -r sorted >unique"
        ),
        keep=["sorted", "unique"],
    )
    yield Job(
        "openssl",
        "enc, dgst",
        Path("/usr/bin/openssl"),
        shell(
            f"$PROGRAM enc -aes-256-ctr -pbkdf2 -iter 4000000 -S 0011223344556677 -k x <'{data}' "
            ">sealed && for d in sha512 blake2b512 sha3-256 md5; do $PROGRAM dgst -$d sealed; done"
        ),
        keep=["sealed"],
    )


def _compiler(sources: Sources) -> Iterator[Job]:
    data = sources.source("sqlite3", _SQLITE) / "sqlite3.c"
    asked = ["gcc", "-print-prog-name=cc1"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    command = shell(f"gcc -B$(dirname $PROGRAM)/ -S -O0 '{data}' -o made.s")
    yield Job("gcc's cc1", "-O0 sqlite3.c", Path(found), command, keep=["made.s"])


def _rust(sources: Sources) -> Iterator[Job]:
    tree = sources.source("sqlite3", _SQLITE)
    root = sources.programs("ripgrep")
    script = (
        "for word in 'static +int' '[a-z]+_[a-z]+\\(' 'return.*[0-9]' 'if *\\( *!'; do\n"
        f"    $PROGRAM -j2 -c \"$word\" '{tree}' | sort\ndone"
    )
    yield Job("rg (Rust)", "-j2", root / "usr/bin/rg", shell(script), count=counted(r":"))


def _go(sources: Sources) -> Iterator[Job]:
    data = sources.source("sqlite3", _SQLITE) / "sqlite3.c"
    root = sources.programs("fzf")
    script = f"for word in sqlite 'int!' '^static'; do $PROGRAM -f \"$word\" <'{data}'; done"
    yield Job("fzf (Go)", "-f", root / "usr/bin/fzf", shell(script), count=counted(r"^"))
