"""The harness of 'make soak' on a small program: it analyses, and it sees differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import run
from benchmarks.soak.programs import shell, started
from fixtures.build import build, find


def soak(job: run.Job, folder: Path) -> run.JobOutcome:
    said: list[str] = []
    outcome = run.run(job, folder, 1, said.append)
    assert not outcome.figures.trouble, outcome.figures.trouble
    assert not (folder / "attend.err").read_text()
    return outcome


def test_one_analysis_after_the_other(tmp_path: Path) -> None:
    program = build("mixture")
    job = run.Job("fixture", "mixture", program, started(*find("mixture").args))
    outcome = soak(job, tmp_path)
    assert outcome.difference == ""
    assert not outcome.failed
    assert outcome.figures.processes == 1
    assert outcome.figures.analyses >= 1
    assert outcome.figures.calls > 0


def test_processes_of_a_shell_keep_what_they_have(tmp_path: Path) -> None:
    """Input, output, status, parent and environment are those of an undisturbed run."""
    script = """
        printf 'one\\ntwo\\n' | $PROGRAM -c 'cat; echo to 2 >&2; exit 3' 2>errors
        echo "status $?"
        $PROGRAM -c 'test $PPID = '$$' && echo the same parent'
        $PROGRAM -c 'kill -9 $$'
        echo "status $?"
        $PROGRAM -c 'env | sort'
    """
    job = run.Job("fixture", "sh", Path("/bin/dash"), shell(script), keep=["errors"])
    outcome = soak(job, tmp_path)
    assert outcome.difference == ""
    output = (tmp_path / "analysed" / "output").read_text()
    assert "one\ntwo\nstatus 3\nthe same parent\n" in output
    assert "status 137\n" in output
    assert "soak" not in output.replace(str(tmp_path), "").lower()
    assert outcome.figures.processes == 4


def test_difference_that_is_not_darcs(tmp_path: Path) -> None:
    job = run.Job("fixture", "clock", Path("/bin/dash"), shell("$PROGRAM -c 'date +%N'"))
    outcome = soak(job, tmp_path)
    assert outcome.difference
    assert outcome.blame == "it differs undisturbed, too"
    assert not outcome.failed


def test_job_that_fails_by_itself(tmp_path: Path) -> None:
    job = run.Job("fixture", "fails", Path("/bin/dash"), shell("$PROGRAM -c 'exit 3'"))
    with pytest.raises(run.JobError, match="ends with status 3 by itself"):
        soak(job, tmp_path)
