"""What holds for every test: no deadline for single examples, as test machines are shared.

Tests that drive a debugger measure latencies of real programs, and those of ``tests/system`` time
itself. On a busy machine another function is now and then the slow one, and darc rightly says so:
such a test is tried again, up to twice, and the summary counts it. No other test measures.

A test of hypothesis has longer than others: it looks for the smallest example that fails for up to
five minutes, and a test that is broken off in that ends its worker.

What tests begin hears Ctrl-C, also in a job that a shell runs in the background: that shell has it
ignore SIGINT, which goes from parent to child, and tests that send one would wait for ever.

Python keeps what it has compiled, whatever the environment says: otherwise each of some thousand
debuggers would compile all of darc anew, for as long as most of them run a program.

What tests have left is collected before xdist hears that a worker is done: five seconds behind that
it sends the worker SIGINT, and pytest's own last collection takes longer on a busy machine.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import debugger

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest.register_assert_rewrite(
    *("tests.agent.trees", "tests.gdb.cases", "tests.kernel.analyses", "tests.unit.bench")
)  # what tests share asserts as they do

settings.register_profile("darc", deadline=None, max_examples=50)
settings.register_profile("night", deadline=None, max_examples=1000)
settings.load_profile("darc")

_SHRINKING_SECONDS = 600
_MEASURED = {"gdb", "kernel", "lldb", "matrix", "system"}
"""Folders of tests that run what is measured."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).parts[0] in _MEASURED:
            item.add_marker(pytest.mark.flaky(reruns=2))
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.timeout(_SHRINKING_SECONDS))
        mark = item.get_closest_marker("debuggers")  # that of a single parameter, perhaps
        made_of = getattr(item, "callspec", None)
        chosen = made_of and made_of.params.get("driven_by")
        if mark is not None and chosen and chosen not in mark.args:
            item.add_marker(pytest.mark.skip(reason=mark.kwargs["reason"]))


def pytest_sessionfinish() -> None:
    gc.collect()
    gc.freeze()  # there is nothing to collect for the next one


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("debuggers")
    if mark is not None:
        late = mark.kwargs.get("long", ())
        made = [pytest.param(n, marks=pytest.mark.long if n in late else []) for n in mark.args]
        metafunc.parametrize("driven_by", made, indirect=True, scope="session")


@pytest.fixture(scope="session", autouse=True)
def driven_by(request: pytest.FixtureRequest) -> Iterator[str]:
    """The debugger that the test is run in: gdb, where its mark names no others."""
    chosen = getattr(request, "param", debugger.GDB)
    with debugger.driven_by(chosen):
        yield chosen
