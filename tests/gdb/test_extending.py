"""The worked examples of ``docs/extending``, done as they say in a copy of the tree."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import LLDB, PLAIN_GDB, REPORT, attempt, debug
from tests.extending import (
    PAGES,
    add_effect,
    add_hazard,
    add_trace,
    blocks,
    broken_cure,
    copied,
    insert,
    inside,
    run_python,
)
from tests.gdb.loading import plain
from tests.permission import needs_permission

SUITES_IN_ONE = pytest.mark.timeout(900)
"""Of a test that has ten files of tests run in the copy, or all of its types checked with nothing
known from before: less than a minute on a machine that does nothing else, many on a busy one."""

ADDED = ("idle", "mean", "rate", "spare", "split")
"""Commands."""


def joined(command: str, block: str) -> str:
    """The file of a command with what ``block`` adds, by its own imports alone: its functions come
    in the place of those that have their names."""
    for name in re.findall(r"^def (\w+)", block, re.M):
        command = re.sub(rf"^def {name}\(.*?\n\n\n", "", command, flags=re.M | re.S)
    imports = re.match(r"(?:(?:import|from) .*\n|\n)*", block)
    assert imports
    head, start, rest = re.split(r"^([A-Z]+ = )", command, maxsplit=1, flags=re.M)
    begin = "from __future__ import annotations\n"
    head = head.replace(begin, f"{begin}\n{imports[0]}", 1)
    return f"{head}{block[imports.end() :]}\n\n{start}{rest}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a command, a parameter, an analysis, a collector, an exporter and a hazard more,
    and nothing else."""
    tree = copied(tmp_path_factory.mktemp("extended") / "tree")
    add_trace(tree)
    commands = tree / "darc" / "app" / "commands"
    mean, its_test, its_option, its_kind = blocks("command")
    mean = joined(joined(mean, its_option), its_kind)
    mean = mean.replace("parse=no_arguments,", "parse=_parse_mean,\n    options=(_OF, _TIMES),")
    (commands / "mean.py").write_text(mean)
    (tree / "tests" / "unit" / "app" / "test_mean.py").write_text(its_test)
    rate, its_command, its_test = blocks("analysis")
    (tree / "tests" / "unit" / "analyses" / "test_rate.py").write_text(its_test)
    (tree / "darc" / "analyses" / "rate.py").write_text(rate)
    (commands / "rate.py").write_text(its_command)
    shutil.copytree(PAGES / "examples", tree, dirs_exist_ok=True)
    parts = tree / "darc" / "views" / "parts"
    line = "from darc.views.parts.split import SHARES\n"
    insert(parts / "__init__.py", line, "from darc.views.parts.walk")
    insert(parts / "__init__.py", "        SHARES,\n", "    )\n}\n")
    collector, its_command = blocks("collector")[-2:]
    (tree / "darc" / "collectors" / "sparing.py").write_text(collector)
    insert(tree / "docs" / "architecture.md", "`sparing.py`, ", "`pad_collector.py` |")
    (commands / "spare.py").write_text(its_command)
    registry = commands / "registry.py"
    for name in ADDED:
        line = f"from darc.app.commands.{name} import {name.upper()}\n"
        insert(registry, line, "from darc.app.commands.peak")
        insert(registry, f"    {name.upper()},\n", "    VERSION,\n")
    paths, its_test, end_to_end = blocks("exporter")
    (tree / "tests" / "unit" / "views" / "test_paths.py").write_text(its_test)
    (tree / "tests" / "gdb" / "test_paths.py").write_text(end_to_end)
    exporters = tree / "darc" / "views" / "exporters"
    (exporters / "paths.py").write_text(paths)
    line = "from darc.views.exporters.paths import PATHS\n"
    insert(exporters / "__init__.py", line, "from darc.views.exporters.text")
    insert(exporters / "__init__.py", "        PATHS,\n", "    )\n}\n")
    field, domain, parameter, effect, its_test = map(inside, blocks("parameter"))
    insert(tree / "darc/model/parameters.py", field, "\n    def __post_init__")
    insert(tree / "darc/model/domains.py", domain, ')\n"""One for each field')
    insert(tree / "darc/app/parameters.py", parameter, ')\n"""In the order of the fields')
    add_effect(tree / "darc/search/descent.py", effect)
    (tree / "tests" / "unit" / "search" / "test_virtual_calls.py").write_text(its_test)
    add_hazard(tree)
    with (tree / "docs" / "glossary.md").open("a") as glossary:
        glossary.writelines(f"| `{name}` | another one |\n" for name in ADDED)
    in_order = ("check", "-q", "--select", "I", "--fix")  # what a page has once is in two blocks
    run_python(tree, "-m", "ruff", *in_order, str(commands / "mean.py"), str(commands / "rate.py"))
    run_python(tree, "tools/commands_page.py")
    run_python(tree, "tools/modules_page.py")
    return tree


def test_an_analysis_and_a_command(tree: Path, tmp_path: Path) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc rate handle --start-time 1s", "run", "darc mean --of 99%", "help darc rate"]
    commands += ["help darc mean", attempt("darc mean --times nan"), "darc mean --times 2.5"]
    done = debug(tmp_path, build("mixture"), ("2000000",), [source, *commands], gdb=PLAIN_GDB)
    assert "--times: 'nan' is not a number as 2.5; type for example '--times 2.5'" in done.gdb
    assert re.search(r"^  handle is called \d+ times a second, of \d+ calls$", done.gdb, re.M), (
        done.gdb
    )
    assert "darc: handle: done" in done.gdb
    assert len(re.findall(r"^darc: \d+ cycles on average$", done.gdb, re.M)) == 2
    assert "--of SHARE" in done.gdb
    assert "Tell how often a function is called." in done.gdb
    assert "--start-time" in done.gdb
    assert "After so long it is told." in done.gdb
    assert "--decision-ops" not in done.gdb


@pytest.mark.debuggers(LLDB)
def test_an_analysis_and_a_command_in_lldb(tree: Path, tmp_path: Path) -> None:
    """Nothing of it is written for a debugger."""
    commands = ["darc rate handle --start-ops 2000 --batch 10", "run", "darc mean --of 99%"]
    done = plain(tmp_path, commands, {}, load=tree / "darc_lldb" / "load.py")
    assert re.search(r"^  handle is called \d+ times a second, of \d+ calls$", done.gdb, re.M), (
        done.gdb
    )
    assert re.search(r"^  that is \d+ items a second$", done.gdb, re.M)
    assert re.search(r"^darc: \d+ cycles on average$", done.gdb, re.M)


def test_an_analysis_that_another_run_goes_on_with(tree: Path, tmp_path: Path) -> None:
    """What it had counted counts; and a file of it is for nobody else."""
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc rate handle --start-ops 1000000", "run", "darc save s.json"]
    done = debug(tmp_path, build("mixture"), ("1000",), [source, *commands], gdb=PLAIN_GDB)
    assert "'darc resume s.json' goes on with it" in done.gdb
    assert json.loads((tmp_path / "s.json").read_text())["analysis"] == "rate"
    commands = [attempt("darc resume s.json --peak last")]
    commands += ["break main", "run", "darc resume s.json --start-ops 500", "continue"]
    done = debug(tmp_path, build("mixture"), ("1000",), [source, *commands], gdb=PLAIN_GDB)
    assert "s.json is of 'darc rate', which has no option '--peak'" in done.gdb
    assert "darc: counts calls of handle: 'continue'" in done.gdb  # as the command itself says
    assert re.search(r"^  handle is called \d+ times a second, of 1500 calls$", done.gdb, re.M), (
        done.gdb
    )
    session = json.loads((tmp_path / "s.json").read_text())
    session["parts"]["rate"]["calls"] = -1
    (tmp_path / "s.json").write_text(json.dumps(session))
    broken = [source, attempt("darc resume s.json")]
    done = debug(tmp_path, build("mixture"), (), broken, gdb=PLAIN_GDB)
    assert "s.json is damaged: parts.rate.calls is not a whole number" in done.gdb
    del session["parameters"]["virtual-calls"]  # of the example of a parameter
    (tmp_path / "s.json").write_text(json.dumps(session))
    done = debug(tmp_path, build("mixture"), (), [attempt("darc resume s.json")])
    assert "s.json is of 'darc rate', which this darc does not have" in done.gdb


def test_an_option_of_its_own_that_another_run_keeps_or_gives_anew(
    tree: Path, tmp_path: Path
) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc rate handle --start-ops 500 --batch 10", "run", "darc save s.json"]
    done = debug(tmp_path, build("mixture"), ("1000",), [source, *commands], gdb=PLAIN_GDB)
    assert re.search(r"^  that is \d+ items a second$", done.gdb, re.M), done.gdb
    assert json.loads((tmp_path / "s.json").read_text())["parts"]["rate"]["batch"] == 10
    (tmp_path / "s.json").rename(tmp_path / "kept.json")
    for typed, batch in (("", 10), (" --batch 7", 7)):
        commands = ["break main", "run", f"darc resume kept.json --start-ops 500{typed}"]
        commands += ["continue", "darc save s.json"]
        done = debug(tmp_path, build("mixture"), ("1000",), [source, *commands], gdb=PLAIN_GDB)
        assert json.loads((tmp_path / "s.json").read_text())["parts"]["rate"]["batch"] == batch
    commands = [attempt("darc resume kept.json --batch none")]
    done = debug(tmp_path, build("mixture"), (), [source, *commands], gdb=PLAIN_GDB)
    assert "--batch: 'none' is not a whole number" in done.gdb


def test_a_report_is_silent_about_what_an_analysis_does_not_know(
    tree: Path, tmp_path: Path
) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = [
        "darc rate handle --start-ops 2000",
        "run",
        "darc report --format text",
        "darc rate f --peak last",
    ]
    done = debug(tmp_path, build("mixture"), ("20000",), [source, *commands], gdb=PLAIN_GDB)
    assert "darc report: handle: done" in done.gdb, done.gdb
    assert not re.search("root cause|call sites|inside the peak|latency +calls", done.gdb), done.gdb
    assert "darc rate has no option '--peak'" in done.gdb


def test_an_analysis_with_orders_and_a_part(tree: Path, tmp_path: Path) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = [
        "set darc start-time 10min",  # is no option of this one
        "darc split handle --decision-ops 50",
        "run",
        "darc report -o out.json",
    ]
    done = debug(tmp_path, build("mixture"), ("20000",), [source, *commands], gdb=PLAIN_GDB)
    assert re.search(r"^darc: handle: done\n(  \d+% \w+\n)+", done.gdb, re.M), done.gdb
    shares = json.loads((tmp_path / "out.json").read_text())["shares"]
    assert len(shares) > 1
    assert 0.5 < sum(one["share"] for one in shares) <= 1


@needs_permission
def test_an_analysis_of_single_ops(tree: Path, tmp_path: Path) -> None:
    """The slowest call is among those that are kept, and it slept."""
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc idle fetch --start-ops 20 --decision-ops 100", "run", "darc report -o o.json"]
    done = debug(tmp_path, build("asleep"), ("4000",), [source, *commands], gdb=PLAIN_GDB)
    share = re.search(r"blocked: (\d+)% of the time of \d+ calls$", done.gdb, re.M)
    assert share, done.gdb
    assert int(share[1]) > 50, done.gdb
    assert json.loads((tmp_path / "o.json").read_text())["ops"]


def test_an_analysis_that_is_cut_short(tree: Path, tmp_path: Path) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc split handle --decision-ops 100000000 --max-time 2s", "run", "darc report"]
    done = debug(tmp_path, build("mixture"), ("2000000",), [source, *commands], gdb=PLAIN_GDB)
    told = r"^(  \d+% \w+\n)+note: the time is up.*: this is what was known by then$"
    assert re.search(told, done.gdb, re.M), done.gdb


def test_a_collector(tree: Path, tmp_path: Path) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc spare handle --peak last --start-ops 2000", "run", REPORT, "darc status"]
    done = debug(tmp_path, build("mixture"), ("20000",), [source, *commands], gdb=PLAIN_GDB)
    assert done.report is not None, done.gdb
    assert done.report["probes"] == "pad"
    assert done.paths, done.gdb
    assert all(path[0] == "handle" for path in done.paths)


def test_a_collector_that_needs_what_is_not_there(tree: Path, tmp_path: Path) -> None:
    """It says so by itself, and help has its word."""
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["break main", "run", attempt("darc start handle --probes trace"), "help darc start"]
    done = debug(tmp_path, build("mixture"), (), [source, *commands], gdb=PLAIN_GDB)
    assert "cannot time handle by a trace: nothing records its calls" in done.gdb, done.gdb
    assert "a trace that something else records" in " ".join(done.gdb.split())


def test_an_exporter(tree: Path, tmp_path: Path) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["darc start handle --peak last --start-ops 2000", "run", "darc report -o out.paths"]
    done = debug(tmp_path, build("mixture"), ("20000",), [source, *commands], gdb=PLAIN_GDB)
    assert "report written" in done.gdb, done.gdb
    written = (tmp_path / "out.paths").read_text()
    assert re.match(r"handle(;\w+)*$", written, re.M), done.gdb


@SUITES_IN_ONE
def test_an_exporters_own_test(tree: Path) -> None:
    """In both debuggers, as the page has it."""
    assert "2 passed" in run_tests(tree, "gdb/test_paths.py")


@SUITES_IN_ONE
def test_a_hazard(tree: Path) -> None:
    """Its program joins the suites, darc leaves it alone, and its test fails as the page says where
    the page's line is broken."""
    suites = ["system/test_fixtures.py", "gdb/test_fixtures.py", "gdb/test_hazards.py"]
    # In gdb; its header; two ways to compile it.
    own = "(whence or own_code_alone) and not lldb"
    assert "5 passed" in run_tests(tree, *suites, "-k", own)
    with broken_cure(tree):
        failed = run_tests(tree, "gdb/test_hazards.py", "-k", "own_code_alone", fails=True)
        assert "1 failed" in failed
        (told,) = [one for one in blocks("hazard", "text") if "operations" in one]
        as_told = re.sub(r"\d+\\ strangers", r"[1-9]\\d* strangers", re.escape(told.strip()))
        assert re.search(as_told, failed), failed


def test_a_parameter(tree: Path, tmp_path: Path) -> None:
    source = f"source {tree / 'darc_gdb' / 'load.py'}"
    commands = ["set darc virtual-calls 9", "show darc virtual-calls", "help darc start"]
    done = debug(tmp_path, build("mixture"), (), [source, *commands], gdb=PLAIN_GDB)
    assert re.search(r"virtual-calls.* 9\b", done.gdb), done.gdb
    assert "--virtual-calls N" in done.gdb


@SUITES_IN_ONE
def test_what_proves_a_change(tree: Path) -> None:
    """Types and style are as the house wants them."""
    own = ["app/test_mean", "views/test_paths", "analyses/test_rate", "collectors/test_traced"]
    own += ["search/test_virtual_calls"]
    tests = [f"tests/unit/{name}.py" for name in own]
    tests += [f"tests/gdb/test_{name}.py" for name in ("hazards", "paths")]
    checked = ["darc", "darc_gdb", *tests]
    run_python(tree, "-m", "mypy", "--strict", "--no-error-summary", *checked)
    pages = ["darc/analyses", "darc/collectors", "darc/model/split.py", "darc/views/parts/split.py"]
    pages += [f"darc/app/commands/{name}.py" for name in ADDED]
    pages += ["darc/model/parameters.py", "darc/app/parameters.py", "darc/search/descent.py"]
    pages += tests
    run_python(tree, "-m", "ruff", "check", "-q", *pages)
    run_python(tree, "-m", "ruff", "format", "-q", "--check", *pages)


def run_tests(tree: Path, *arguments: str, fails: bool = False) -> str:
    """What pytest says of these, each of which is run once."""
    own = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:rerunfailures")
    files = [str(tree / "tests" / one) if one.endswith(".py") else one for one in arguments]
    return run_python(tree, *own, *files, fails=fails)


@SUITES_IN_ONE
def test_the_tests_of_a_change(tree: Path) -> None:
    """The examples' own; and imports, docs, commands and reports are as the house wants them."""
    tests = [
        "unit/analyses/test_idle.py",
        "unit/analyses/test_rate.py",
        "unit/app/test_commands.py",
        "unit/app/test_mean.py",
        "unit/app/test_parameters.py",
        "unit/search/test_virtual_calls.py",
        "unit/views/test_paths.py",
        "unit/views/test_report.py",
        "contract/test_docs.py",
        "contract/test_imports.py",
        "contract/test_options.py",
    ]
    run_tests(tree, *tests)
