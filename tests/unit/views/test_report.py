import dataclasses
import importlib
import json
import os
import pkgutil
import re
import stat
import sys
from pathlib import Path

import pytest

from darc.app import commands
from darc.model.errors import DarcError, TargetError, UsageError
from darc.model.ftree import Cause, Ending, Unclear
from darc.model.ops import KeptOps, ObjectKind
from darc.model.part import Part
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.saved.files import replace_file
from darc.views import exporters
from darc.views.exporters import EXPORTERS
from darc.views.exporters.dot import DOT
from darc.views.exporters.exporter import Exporter
from darc.views.exporters.json import JSON, to_json
from darc.views.exporters.reportfile import format_of, write_report
from darc.views.exporters.text import TEXT, report
from darc.views.parts import PARTS
from darc.views.style import Style
from tests.fake_app import FakeApp
from tests.unit import ops, samples


def write(
    snapshot: Snapshot | None = None,
    form: Exporter = JSON,
    file: Path | None = None,
    style: Style | None = None,
) -> list[str]:
    shown: list[str] = []
    write_report(snapshot or samples.snapshot(), form, file, emit=shown.append, style=style)
    return shown


def require_root_cause(snapshot: Snapshot, file: Path) -> list[str]:
    """The same by the command, which refuses a snapshot without a root cause."""
    app = FakeApp(snapshot)
    commands.run(app, "report", f"-o {file} --require root-cause")
    return app.shown


def test_the_json_report_has_the_ops_and_what_causes_explain() -> None:
    report = to_json(ops.snapshot())
    path, loop = report["root_cause_paths"]
    assert (path["kept_ops"], path["without"]) == (10, None)
    assert 0.59 < path["share"] < 0.61
    assert loop["without"] == {"first_bin": 23, "last_bin": 23, "peak": 3}
    kept = report["ops"]
    assert (kept["hz"], kept["in_peak_seen"], kept["fastest_seen"]) == (samples.HZ, 31, 1805)
    first = kept["kept"][0]
    assert (first["number"], first["class"], first["slowest"]) == (1, "in peak", False)
    assert first["spans"][0] == {
        "id": "1.7", "function": "flush", "start": ops.MS // 2, "end": 9 * ops.MS // 2, "cost": 0,
    }  # fmt: skip
    assert {"id": "1.1", "function": "parse0", "calls": 1, "sum": 700, "max": 700} in first["sums"]
    assert first["off"] is None
    few = to_json(samples.snapshot())
    assert few["ops"] is None
    assert [p["share"] for p in few["root_cause_paths"]] == [None, None]


def test_the_json_report_is_schema_1() -> None:
    report = to_json(samples.snapshot())
    assert list(report) == [
        "schema",
        "function",
        "status",
        "probes",
        "profile",
        "peaks",
        "peak",
        "root_cause_paths",
        "ftree",
        "ops",
        "waits",
        "set",
        "walk",
        "why",
        "decisions",
        "program",
        "notes",
        "explained",
    ]
    assert (report["schema"], report["function"], report["probes"]) == (1, "handle", "pad")
    assert report["status"] == "root cause found"
    profile = samples.snapshot().profile
    assert profile is not None
    assert report["profile"] == {
        "unit": "cycles",
        "hz": samples.HZ,
        "resolution": 1,
        "count": 2000,
        "sum": profile.total,
        "bins": {"11": 1805, "12": 70, "19": 94, "23": 30, "24": 1},
    }
    assert report["peaks"][0] == {"number": 1, "first_bin": 11, "last_bin": 12, "count": 1875}
    assert report["peak"] == {"number": 3, "first_bin": 23, "last_bin": None}
    path, loop = report["root_cause_paths"]
    assert path["functions"] == ["handle", "flush", "write_out", "usleep"]
    assert (path["cause"], path["maxcount"]) == ("function", 20)
    assert path["calls"][0] == {
        "function": "flush",
        "symbol": "flush",
        "module": "mixture",
        "offset": 0x1319,
        "file": "mixture.c",
        "line": 25,
        "inlined": ["flush_one"],
    }
    assert path["calls"][2]["file"] is None
    assert path["calls"][2]["line"] is None
    assert "loop" not in path
    assert loop["cause"] == "loop"
    assert loop["loop"] == {"function": "memcpy", "calls": 400.0, "share": 0.93}
    root = report["ftree"]
    assert list(root) == [
        *("id", "function", "maxcount", "self_maxcount", "ops"),
        *("root_cause", "mean_cycles", "calls", "repeated", "children"),
    ]
    assert (root["id"], root["root_cause"], root["mean_cycles"]) == ("1", True, 12_000_000)
    assert [child["id"] for child in root["children"]] == [f"1.{n}" for n in range(1, 8)]
    assert root["children"][6]["children"][1]["maxcount"] == 12
    assert report["decisions"] == [
        {
            **{"id": "1", "function": "handle", "ops": 20, "needed": 20, "conclusive": True},
            **{"itself": 0, "winners": [{"id": "1.7", "function": "flush", "votes": 20}]},
        },
        {
            **{"id": "1.7", "function": "flush", "ops": 20, "needed": 20, "conclusive": True},
            "itself": 0,
            "winners": [
                {"id": "1.7.1", "function": "write_out", "votes": 20},
                {"id": "1.7.2", "function": "fill", "votes": 12},
            ],
        },
    ]
    assert report["program"] == {
        "stops": 4,
        "stopped_seconds": 0.041235,
        "longest_stop": 0.0,
        "setup_seconds": 0.0625,
        "in_peak_calls": 60,
        "probes": 12,
        "sites": [
            {"function": "handle", "offset": 0x1319, "state": "instrumented", "why": None},
            {
                "function": "flush",
                "offset": 0x131F,
                "state": "fell back",
                "why": "short indirect call",
            },
            {
                "function": "flush",
                "offset": 0x1321,
                "state": "not possible",
                "why": "returns twice",
            },
        ],
    }
    assert report["notes"] == ["the TSC is not invariant here"]


def test_the_counts_agree_with_each_other() -> None:
    snapshot = samples.snapshot()
    assert snapshot.profile is not None
    snapshot.profile.check()
    report = json.loads(json.dumps(to_json(snapshot)))
    profile = report["profile"]
    assert profile["count"] == sum(profile["bins"].values())
    for peak in report["peaks"]:
        inside = range(peak["first_bin"], peak["last_bin"] + 1)
        assert peak["count"] == sum(profile["bins"].get(str(number), 0) for number in inside)
    assert sum(peak["count"] for peak in report["peaks"]) <= profile["count"]
    for path in report["root_cause_paths"]:
        assert path["functions"][0] == report["function"] == report["ftree"]["function"]
        assert [call["function"] for call in path["calls"]] == path["functions"][1:]


def test_what_is_not_known_is_null() -> None:
    report = to_json(
        samples.snapshot(
            status=Status.PENDING, profile=None, peaks=(), peak=None, ftree=None, paths=()
        )
    )
    assert report["profile"] is report["peak"] is report["ftree"] is None
    assert report["peaks"] == report["root_cause_paths"] == []


def test_json_is_shown_or_written(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert write(file=file) == [f"darc: report written to {file}"]
    assert json.loads(file.read_text()) == json.loads(write()[0]) == to_json(samples.snapshot())
    assert file.read_text().endswith("}\n")


def test_text_in_a_file_has_no_escape_codes(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    write(form=TEXT, file=file, style=Style(colour=True))
    assert "\x1b" not in file.read_text()
    assert "\x1b[" in write(form=TEXT, style=Style(colour=True))[0]


@pytest.mark.parametrize("form", ["pdf", "no-such-format"])
def test_formats_that_there_are_not(form: str, tmp_path: Path) -> None:
    told = f"--format: '{form}' is not one of {', '.join(EXPORTERS)}; type for example"
    with pytest.raises(UsageError, match=told):
        commands.run(FakeApp(), "report", f"--format {form} -o {tmp_path / 'out'}")
    assert not list(tmp_path.iterdir())


def test_endings_that_promise_what_no_exporter_makes_are_refused(tmp_path: Path) -> None:
    """In the words of what was typed, which is no option but a file's name."""
    file = tmp_path / "Out.PDF"
    with pytest.raises(UsageError) as error:
        commands.run(FakeApp(), "report", f"-o {file}")
    told = re.fullmatch(
        rf"'{file}': no report can be written as \.pdf; files end in (\.txt, .*), or "
        r"'--format' says (text, json.*)",
        str(error.value),
    )
    assert told
    endings, names = (re.split(", | or ", words) for words in told.groups())
    assert endings == [end for one in EXPORTERS.values() for end in one.suffixes]
    assert names == list(EXPORTERS)
    app = FakeApp(samples.snapshot())
    commands.run(app, "report", f"-o {file} --format dot")
    assert file.read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.json", "json"), ("a.JSON", "json"), ("a.txt", "text"), ("a", "text"), ("a.gv", "dot")],
)
def test_the_suffix_tells_the_format(name: str, form: str) -> None:
    assert format_of(Path(name)).name == form
    assert format_of(None).name == "text"


def test_a_suffix_is_of_one_format() -> None:
    """Else the second one is never chosen by it."""
    endings = [end for one in EXPORTERS.values() for end in one.suffixes]
    assert len(endings) == len(set(endings))


def test_require_fails_after_the_report_was_written(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    snapshot = samples.snapshot(status=Status.INCONCLUSIVE, paths=())
    with pytest.raises(DarcError, match="no root cause of handle was found: not conclusive"):
        require_root_cause(snapshot, file)
    assert json.loads(file.read_text())["status"] == "not conclusive"
    assert len(require_root_cause(samples.snapshot(), file)) == 1


def test_a_written_file_replaces_the_old_one_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("old")
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    write(file=link)
    assert link.is_symlink()
    assert json.loads(file.read_text())["schema"] == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "out.json"]


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(file=tmp_path / "out.json")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o640


def test_directories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory; name a file in it"):
        write(file=tmp_path)
    with pytest.raises(UsageError, match="there is no directory"):
        write(file=tmp_path / "missing" / "out.json")
    with pytest.raises(UsageError, match=r"name a file in it: .*/slow\.json$"):
        replace_file(tmp_path, "{}", "slow.json")


def test_a_program_is_not_replaced(tmp_path: Path) -> None:
    """Its name is close at hand, as it is debugged."""
    file = tmp_path / "server"
    file.write_bytes(Path(sys.executable).read_bytes())
    with pytest.raises(UsageError, match="server is a program or a library; name another file"):
        write(file=file)
    assert file.read_bytes() == Path(sys.executable).read_bytes()


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_refused_write_keeps_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.json"
    file.write_text("old")

    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        owner: object = Path if step == "replace" else os
        patch.setattr(owner, step, refuse)
        with pytest.raises(TargetError, match=r"cannot write .*: No space left on device"):
            write(file=file)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_full_device_is_one_line() -> None:
    with pytest.raises(TargetError, match="cannot write /dev/full: No space left on device"):
        write(file=Path("/dev/full"))


def test_a_name_that_is_too_long_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="File name too long"):
        write(file=tmp_path / ("a" * 300))


def test_who_waited_for_whom_is_a_graph() -> None:
    held = Holder(
        role=Role.HELD,
        thread="worker",
        path=("checkpoint", "janitor"),
        cycles=750,
        ops=3,
        threads=(7,),
    )
    free = Holder(role=Role.HANDED_OVER, thread="", path=(), cycles=50, ops=3)
    lock = WaitedFor(
        kind=ObjectKind.LOCK,
        name='log"lock',
        path=("append", "handle"),
        cycles=800,
        ops=3,
        waits=3,
        holders=(held, free),
    )
    kept = KeptOps(samples.HZ, sees_waits=True)
    shown = samples.snapshot(ops=kept, waits=Waits(3, 1000, (lock,)))
    (text,) = write(shown, DOT)
    assert text.splitlines() == [
        "digraph waits {",
        "  rankdir=LR;",
        "  node [shape=box];",
        '  f0 [label="handle"];',
        '  object1 [shape=ellipse, label="the lock log\\"lock"];',
        '  f0 -> object1 [label="80 %\\nin append <- handle"];',
        '  holder1_1 [label="held by thread 7 \\"worker\\" in checkpoint ← janitor: 3 calls"];',
        '  object1 -> holder1_1 [label="75 %"];',
        "}",
    ]
    text = report(shown, Style())
    assert "\nWaits\n●" in text
    assert 'waited for the lock log"lock in append ← handle: 3 calls' in text
    assert "Waits" not in report(samples.snapshot(), Style())
    (text,) = write(samples.snapshot(), DOT)
    assert text.splitlines()[-2:] == ['  f0 [label="handle"];', "}"]
    text = EXPORTERS["dot"].text(samples.snapshot(function="f" * 5000), Style(whole_names=True))
    assert "f" * 5000 in text


def test_a_frozen_snapshot_stays_as_it_is() -> None:
    shown = ops.snapshot()
    frozen = shown.frozen()
    before = [report(frozen, Style(verbose=True)), to_json(frozen)]
    assert before == [report(shown, Style(verbose=True)), to_json(shown)]
    assert shown.ftree is not None
    for node in list(shown.ftree.walk()):
        node.maxcount += 1
        node.add_child(node.function, node.site)
    assert before == [report(frozen, Style(verbose=True)), to_json(frozen)]
    assert before[1] != to_json(shown)


def test_causes_of_the_smaller_part_are_no_root_cause_for_a_script(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    whole = ops.snapshot()
    assert len(require_root_cause(whole, file)) == 1
    assert json.loads(file.read_text())["explained"]["is_minor"] is False
    little = dataclasses.replace(whole, paths=(ops.path_of(whole, "fill"),))
    with pytest.raises(DarcError, match="no root cause of most of the time of handle's slow calls"):
        require_root_cause(little, file)
    told = json.loads(file.read_text())
    assert told["explained"]["is_minor"] is True
    assert told["status"] == "root cause found"
    assert [path["functions"][-1] for path in told["root_cause_paths"]] == ["fill"]


def test_what_an_analysis_knows_is_shown() -> None:
    """A part that has no view would be missing in status, report and JSON without a word."""
    made = {one for one in Part.__subclasses__() if one.__module__.startswith("darc.")}
    missing = made - {view.kind for view in PARTS.values()}
    assert not missing, f"darc/views/parts/__init__.py does not name a view of {missing}"


def test_every_exporter_that_a_file_makes_is_in_the_registry() -> None:
    made = {
        value.name
        for module in pkgutil.iter_modules(exporters.__path__)
        for value in vars(importlib.import_module(f"{exporters.__name__}.{module.name}")).values()
        if isinstance(value, Exporter)
    }
    missing = made - exporters.EXPORTERS.keys()
    assert not missing, f"darc/views/exporters/__init__.py does not name {missing}"


def test_no_part_takes_the_place_of_what_the_report_says_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Choose another key for yours."""
    monkeypatch.setattr("darc.views.exporters.json.PARTS", {})
    own = to_json(samples.snapshot()).keys()
    assert not own & PARTS.keys()


def test_every_call_of_f0_counts_once() -> None:
    """It has no siblings with which it was compared."""
    tree = to_json(samples.snapshot())["ftree"]
    assert tree["calls"] == tree["ops"] == 20


def test_a_cause_that_may_be_the_debuggers_is_none_for_a_script(tmp_path: Path) -> None:
    shown = ops.snapshot()
    ending = Ending(Cause.BLOCKED, 20, unclear=frozenset({Unclear.WHO_HELD}))
    held = dataclasses.replace(shown.paths[0], ending=ending)
    doubtful = dataclasses.replace(shown, paths=(held,))
    with pytest.raises(DarcError, match=r"no root cause of handle is sure: .* held it"):
        require_root_cause(doubtful, tmp_path / "out.json")
    assert "darc: possible cause of peak 3" in report(doubtful, Style())
    assert "root cause found" not in report(doubtful, Style())
