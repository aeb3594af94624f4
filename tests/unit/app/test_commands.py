import dataclasses
import importlib
import inspect
import json
import pkgutil
import re
import shlex
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc import __version__
from darc.analyses.analysis import Analysis, Resumable
from darc.analyses.rootcauses import RootCauses
from darc.app import commands
from darc.app.commands import completion
from darc.app.commands.analysing import parameters_of, parse_function, search_options
from darc.app.commands.command import Actions, Command, Option, Parsed, Value
from darc.app.commands.resume import resume_of
from darc.app.commands.save import save_of
from darc.app.finding import Request
from darc.app.options import START_OPTIONS, Typed, options_of
from darc.app.parameters import PARAMETERS, Parameter, find_parameter
from darc.model.domains import PEAK
from darc.model.errors import DarcError, NotFoundError, UsageError
from darc.model.functionset import FunctionSet
from darc.model.parameters import OnFinish, Parameters, Probes
from darc.model.part import parts_of
from darc.model.values import count, named
from darc.saved import storage
from darc.saved.descents import to_parts
from darc.saved.storage import Stored
from darc.views.exporters import EXPORTERS
from tests.fake_app import FakeApp
from tests.unit import ops, samples
from tests.unit.sets import row


@pytest.fixture
def app() -> FakeApp:
    return FakeApp(ops.snapshot())


@pytest.mark.parametrize(
    ("name", "argline", "read"),
    [
        ("peak", " 3 ", ("3",)),
        ("peak", "last", ("last",)),
        ("peak", "'>4ms'", (">4ms",)),
        ("peak", "> 4ms", (">4ms",)),
        ("peak", "17 - 19", ("17-19",)),
        ("descend", "", ()),
        ("descend", "1.3.2 1.4", ("1.3.2", "1.4")),
        ("save", "out.json", {"file": Path("out.json")}),
        ("save", "'a b.json'", {"file": Path("a b.json")}),
        ("save", "~/out.json", {"file": Path.home() / "out.json"}),
        ("why", "", {"seconds": 30.0}),
        ("why", "--time 2m", {"seconds": 120.0}),
    ],
)
def test_what_is_typed_is_read(name: str, argline: str, read: object) -> None:
    parsed = commands.find_command(name).read(argline)
    own = {value.name: made for value, made in parsed.own.items()}
    assert read in (parsed.arguments, own)


def test_options_of_what_is_none_are_refused() -> None:
    """A name that is misspelt, or what ``set darc`` alone has, would be dropped without a word."""
    for field in ("max_tmie", "verbose"):
        with pytest.raises(AssertionError, match=field):
            options_of("start_ops", field)


def test_what_can_be_saved_is_begun() -> None:
    with pytest.raises(AssertionError, match="darc start does not begin"):
        dataclasses.replace(commands.COMMANDS["start"], begins=False)


def begin_rate(app: Actions, _: Parsed) -> None:
    app.analyse(Request("rate", "f", app.parameters, RootCauses))


def test_a_command_that_begins_and_does_not_say_so_is_told(
    app: FakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its first test, with what cures it: a debugger would wait for ever."""
    rate = dataclasses.replace(
        commands.find_command("stop"), name="rate", parse=parse_function, action=begin_rate
    )
    monkeypatch.setitem(cast(Any, commands.COMMANDS), "rate", rate)
    with pytest.raises(AssertionError, match=r"^darc rate has begun .* begins=True"):
        commands.run(app, "rate", "f")
    app.is_busy = False
    as_it_should = dataclasses.replace(rate, begins=True)
    monkeypatch.setitem(cast(Any, commands.COMMANDS), "rate", as_it_should)
    commands.run(app, "rate", "f")
    assert app.is_busy


def test_what_begins_does_more_than_look() -> None:
    with pytest.raises(AssertionError, match="darc start begins: it does more than look"):
        dataclasses.replace(commands.COMMANDS["start"], only_looks=True)


def told_what_becomes(command: Command) -> bool:
    """Whether a command says what becomes of the program by it: nothing, unless it begins something
    or there is more in its action's file than looks."""
    action = command.action.func if isinstance(command.action, partial) else command.action
    text = Path(inspect.getfile(action)).read_text()
    does_more = re.search(r"\.(analyse|stop|follow|set_parameter)\(", text)
    return command.begins or command.only_looks or does_more is not None


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_a_command_that_only_looks_says_so(name: str) -> None:
    command = commands.COMMANDS[name]
    assert told_what_becomes(command), f"darc {name} does nothing to the program: only_looks=True"
    if command.only_looks:
        assert not told_what_becomes(dataclasses.replace(command, only_looks=False))


def test_options_of_its_own_beside_those_of_a_search(app: FakeApp) -> None:
    """As an analysis has them that darc does not know."""
    start = commands.find_command("start")
    taken = options_of("start_ops", "peak")
    own = Option("--often", "N", "How often.", count())
    often: Value[int] = Value("start_ops")  # no name of a value's is in the way of a parameter

    def parse(typed: Typed) -> Parsed:
        parsed = parse_function(typed)
        return dataclasses.replace(parsed, own=often.put(own.value_in(typed)))

    made = dataclasses.replace(start, options=(*start.options, own), parse=parse)
    parsed = made.read("handle --often 3 --start-ops 5")
    assert often.of(parsed) == 3
    assert parameters_of(app, parsed, taken).start_ops == 5


def test_an_option_that_has_the_name_of_a_parameter_says_what_it_is() -> None:
    """It would be read as that, by its limits and for its end."""
    start = commands.find_command("start")
    own = Option("--start-ops", "N", "How often.", count(1, 9))
    others = tuple(option for option in start.options if option.name != own.name)
    with pytest.raises(AssertionError, match="darc start: --start-ops and a parameter: say"):
        dataclasses.replace(start, options=(*others, own))
    with pytest.raises(AssertionError, match="darc start: --start-ops is there twice"):
        dataclasses.replace(start, options=(*start.options, own))
    meant = START_OPTIONS[own.name]
    unlike = dataclasses.replace(own, unlike=meant)
    with pytest.raises(AssertionError, match="--start-ops is the parameter's behind 'darc resume'"):
        dataclasses.replace(start, options=(*others, unlike))
    for wrong in (START_OPTIONS["--peak"], None):
        with pytest.raises(AssertionError, match="darc start: --start-ops and a parameter: say"):
            dataclasses.replace(start, options=(dataclasses.replace(own, overrides=wrong),))
    with pytest.raises(AssertionError, match="--start-ops is not its own"):
        dataclasses.replace(unlike, overrides=meant)


def test_an_option_that_is_unlike_a_parameter_is_the_commands_own(app: FakeApp) -> None:
    own = Option("--start-ops", "N", "How often.", count(1, 9), unlike=START_OPTIONS["--start-ops"])
    often: Value[int | None] = Value("often")

    def parse(typed: Typed) -> Parsed:
        parsed = parse_function(typed)
        return dataclasses.replace(parsed, own=often.put(own.typed_in(typed)))

    start = commands.find_command("start")
    peak = tuple(option for option in start.options if option.name == "--peak")
    made = dataclasses.replace(start, options=(*peak, own), parse=parse, goes_on=None)
    parsed = made.read("handle --start-ops 5 --peak last")
    assert often.of(parsed) == 5
    assert parameters_of(app, parsed) == dataclasses.replace(app.parameters, peak="last")
    with pytest.raises(UsageError, match="--start-ops: '10' is not a whole number from 1 to 9"):
        made.read("handle --start-ops 10")


def test_what_is_said_of_an_option_that_is_not_taken_is_refused() -> None:
    """Help would be without it, and nobody would notice."""
    docs = {"--start-ops": "So many.", "--strat-time": "So long."}
    with pytest.raises(AssertionError, match="--strat-time"):
        search_options(lambda parameter: parameter.default_text, docs=docs)


def test_a_parser_leaves_parameters_to_the_command() -> None:
    def parse(_typed: Typed) -> Parsed:
        return Parsed(("handle",), overrides={find_parameter("peak"): "last"})

    made = dataclasses.replace(commands.find_command("start"), parse=parse)
    with pytest.raises(AssertionError, match="darc start reads parameters by itself"):
        made.read("handle")


def test_options_that_mean_nothing_to_a_command_are_at_their_defaults(app: FakeApp) -> None:
    """Whatever is set of them; what no command has as an option counts for all."""
    for name, text in (("verbose", "on"), ("start-ops", "7"), ("max-depth", "3")):
        commands.set_parameter(app, name, text)
    parsed = Parsed(("handle",), overrides={find_parameter("max-time"): 5.0})
    begun = parameters_of(app, parsed, options_of("start_ops", "max_time"))
    assert begun == Parameters(start_ops=7, max_time=5.0, verbose=True)
    assert parameters_of(app, parsed) == dataclasses.replace(app.parameters, max_time=5.0)


@pytest.mark.parametrize("command", commands.COMMANDS.values(), ids=lambda one: one.name)
def test_each_option_is_declared_once(command: commands.Command) -> None:
    """What help tells of can be typed, and nothing else can."""
    names = [option.name for option in command.options]
    assert len(set(names)) == len(names)
    for option in command.options:
        typed = command.split([option.name, "x"])
        assert typed.texts == {option.name: "x"}
        with pytest.raises(UsageError, match=f"{option.name} needs a value"):
            command.read(option.name)
    other = next(
        option.name
        for one in commands.COMMANDS.values()
        for option in one.options
        if option.name not in names
    )
    with pytest.raises(UsageError, match=f"darc {command.name} has no option '{other}'"):
        command.read(f"{other} x")


def test_no_command_takes_its_line_apart_by_itself() -> None:
    """By options of its own beside those that its help tells of."""
    folder = Path(commands.__file__).parent
    files = {file.name for file in folder.glob("*.py") if "split_options" in file.read_text()}
    assert files == {"command.py"}


def test_stop(app: FakeApp) -> None:
    commands.run(app, "stop", "")
    assert app.done == [("stop",)]


@pytest.mark.parametrize(("name", "argline"), [("save", "x.json"), ("peak", "1"), ("descend", "")])
def test_what_needs_a_session(app: FakeApp, name: str, argline: str) -> None:
    with pytest.raises(UsageError, match="nothing is being analysed"):
        commands.run(app, name, argline)
    assert not app.done


def test_a_command_behind_darc_needs_no_arguments(app: FakeApp) -> None:
    commands.run(app, "", "stop")
    assert app.done == [("stop",)]


@pytest.mark.parametrize("name", ["", "start"])
def test_start(app: FakeApp, name: str) -> None:
    commands.run(app, name, f"{'' if name else 'start '}handle --peak last")
    request = begun(app)
    assert (request.spec, request.analysis) == ("handle", RootCauses)
    assert request.parameters == app.parameters.overridden({"peak": "last"})


def test_why(app: FakeApp) -> None:
    commands.run(app, "why", "")
    request = begun(app)
    assert request.function == "main"
    assert request.command == "why"
    assert request.stops_unseen


@pytest.mark.parametrize("argline", ["1", "handle --above 0.5ms", "handle", ""])
def test_catch_needs_to_know_what_is_late(app: FakeApp, argline: str) -> None:
    with pytest.raises(UsageError, match=r"say |of 1ms and more"):
        commands.run(app, "catch", argline)
    assert not app.done


def test_catch(app: FakeApp) -> None:
    commands.run(app, "catch", "handle --above 4ms")
    request = begun(app)
    assert request.function == "handle"
    assert isinstance(request.analysis, partial)
    assert request.analysis.keywords == {"seconds": 0.004, "known": None}


def begun(app: FakeApp) -> Request:
    """What the application was asked to analyse."""
    (entry,) = app.done
    assert isinstance(entry, tuple)
    done, request = entry
    assert done == "analyse"
    assert isinstance(request, Request)
    return request


@pytest.mark.parametrize(
    ("name", "argline", "spec", "given"),
    [
        ("walk", "", "main", {"threshold": 0.25, "seconds": 2.0, "goes_below": False}),
        (
            "walk",
            "handle --threshold 10% --window 500ms",
            "handle",
            {"threshold": 0.1, "seconds": 0.5, "goes_below": True},
        ),
        ("walk", "--window 5", "main", {"threshold": 0.25, "seconds": 5.0, "goes_below": False}),
        ("profile", "read_* 'A::*'", "read_* A::*", {"seconds": 5.0, "top": 20, "every": None}),
        ("profile", "f.c --time=2m --top 3", "f.c", {"seconds": 120.0, "top": 3, "every": None}),
    ],
)
def test_run_begins_an_analysis(
    app: FakeApp, name: str, argline: str, *, spec: str, given: dict[str, object]
) -> None:
    commands.run(app, name, argline)
    request = begun(app)
    assert isinstance(request.analysis, partial)
    assert (request.spec, request.analysis.keywords) == (spec, given)
    assert request.replaces_finished


@pytest.mark.parametrize(
    ("name", "argline", "message"),
    [
        ("strat", "f", "no command 'strat'; did you mean start"),
        ("", "safe x", "darc has no command 'safe'; did you mean save"),
        ("save", "", "darc save needs one file: darc save FILE"),
        ("contexts", "--top 0", "--top: '0' is not a whole number from 1 to"),
        ("contexts", f"--top {'9' * 5000}", "is not a whole number from 1 to"),
        ("profile", f"* --top {'9' * 5000}", "is not a whole number from 1 to"),
        (
            "contexts",
            "--base ''",
            "--base: '' is not the name of a file; type for example '--base FILE'",
        ),
        ("contexts", "''", "takes files of 'darc save'"),
        ("save", "''", "darc save needs one file"),
        ("save", "a b.json", "not a and b.json; put quotes"),
        ("save", "~no-such-user/x", "there is no home directory"),
        ("save", "x --force", "darc save has no option '--force'"),
        ("resume", "", "darc resume needs one file: darc resume FILE"),
        ("resume", "--max-depth 3", "darc resume needs one file"),
        ("resume", "a b", "not a and b"),
        ("resume", "a --max-depth", "--max-depth needs a value"),
        ("resume", "a --max-depth 0", "from 1 to 1000"),
        ("resume", "a --deeper", "darc resume has no option '--deeper'"),
        ("start", "", "darc start needs a function"),
        ("peak", "", "darc peak needs a peak"),
        ("peak", "none", "darc peak takes a peak"),
        ("peak", "third", "'third' is not a peak"),
        ("peak", "last extra", "darc peak takes one peak, not 'last extra'"),
        ("status", "now", "darc status takes no argument, not 'now'"),
        ("stop", "--force", "darc stop has no option '--force'"),
        ("profile", "sd_* --task work", "has no option '--task': 'set darc task work' holds for"),
        ("profile", "sd_* --task=work", "has no option '--task': 'set darc task work' holds"),
        ("profile", "sd_* --on-finish", "'set darc on-finish stop|continue' holds for whatever"),
        ("profile", "sd_* --peak last", "has no option '--peak'; see 'help darc profile'"),
        ("stop", "--task work", "has no option '--task'; see 'help darc stop'"),
        ("descend", "1.x", "'1.x' is not an fnode"),
        ("descend", "1..2", "'1..2' is not an fnode"),
        ("report", "out.json", "type 'darc report -o out.json'"),
        ("report", "--format", "--format needs a value"),
        ("report", "--format pdf", "--format: 'pdf' is not one of text, json"),
        ("report", "--format pdf", "'pdf' is not one of text"),
        ("report", "-o out.pdf", "'out.pdf': no report can be written as .pdf; files end in .txt"),
        ("report", "-o ''", "-o: '' is not the name of a file"),
        ("report", "-o ~no-such-user/x", "there is no home directory"),
        (
            "report",
            "--require everything",
            "not one of root-cause, answer; type for example '--require root-cause'",
        ),
        ("report", "--from x", "did you mean --format"),
        ("ops", "1 2", "darc ops takes one op"),
        ("ops", "first", "'first' is not an op"),
        ("ops", "0", "there is no op 0: 'darc ops' lists 1 to 22"),
        ("ops", "1 --format pdf", "--format: 'pdf' is not one of text, json; type for"),
        ("compare", "1 --by size", "--by: 'size' is not one of emd, chi2, ops, latency"),
        ("walk", "--threshold 25", "--threshold: '25' is not a share from 1% to 100%"),
        ("walk", "--window 1ms", "--window: '1ms' is not a time of 50ms and more as 2s"),
        ("walk", "--time 0", "--time: '0' is not a time above 0 as 10s"),
        ("why", "--time 10ms", "--time: '10ms' is not a time of 1s and more as 30s"),
        ("profile", "* --time 0", "--time: '0' is not a time above 0"),
        ("profile", "* --every 1ms", "--every: '1ms' is not a time of 10ms and more as 20ms"),
        ("profile", "* --time 1s --every 800ms", "two intervals must fit into --time"),
        ("catch", "f --above 5", "'5' is not a time of 1ms and more, with its unit, as 4ms"),
        ("catch", "f --peak slow", "'slow' is not a peak"),
        ("compare", "1 2 3", "darc compare takes two peaks or files, not 3"),
        ("compare", "''", "darc compare takes peaks"),
        ("compare", "2", "no op of peak 2 is kept, but of peak 3 and peak 1"),
        ("compare", "1 1", "peak 1 is compared with itself"),
        ("compare", "1", "peak 1 is compared with itself"),
    ],
)
def test_usage_errors_are_one_line(app: FakeApp, name: str, argline: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        commands.run(app, name, argline)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert app.done == app.shown == []


@pytest.mark.parametrize("name", ["status", "histogram", "tree", "report", "ops", "compare"])
def test_views_need_a_session(name: str) -> None:
    with pytest.raises(DarcError, match="nothing is being analysed"):
        commands.run(FakeApp(), name, "")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("status", "darc: handle: root cause found"),
        ("histogram", "log2(cycles)"),
        ("tree", "● 1.7.1 write_out"),
        ("report", "Root cause paths"),
        ("ops", "11 of 31 ops of peak 3 are kept"),
        ("compare", "1.7 flush ← handle"),
    ],
)
def test_views(app: FakeApp, name: str, part: str) -> None:
    commands.run(app, name, "")
    assert len(app.shown) == 1
    assert part in app.shown[0]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("srv::Server::handle", "srv::Server::handle: 5 calls"),
        ("handle", "srv::Server::handle: 5 calls"),
        ("Server::handle", "srv::Server::handle: 5 calls"),
        ("Cache::get", "Cache<int>::get: 6 calls"),
        ("1", "srv::Server::handle: 5 calls"),
        ("put", "there is no profile of put"),
        ("get", "get names 2 functions: take one of Cache<int>::get, Store::get"),
    ],
)
def test_a_row_is_called_as_a_search_for_it_would_be(typed: str, shown: str) -> None:
    symbols = {
        "_ZN3srv6Server6handleEv": "srv::Server::handle",
        "_ZN5CacheIiE3getEv": "Cache<int>::get",
        "_ZN5Store3getEv": "Store::get",
    }
    rows = [row(name, {20: 5 + at}) for at, name in enumerate(symbols.values())]
    named = tuple(
        dataclasses.replace(one, function=dataclasses.replace(one.function, symbol=symbol))
        for one, symbol in zip(rows, symbols, strict=True)
    )
    app = FakeApp(samples.snapshot(parts=parts_of(FunctionSet(named))))
    try:
        commands.run(app, "histogram", typed)
    except DarcError as error:
        app.shown.append(str(error))
    assert shown in app.shown[0]


def test_report_takes_the_format_from_the_file_unless_it_is_given(
    app: FakeApp, tmp_path: Path
) -> None:
    commands.run(app, "report", f"-o {tmp_path}/out.json")
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == 1
    commands.run(app, "report", f"--format=text --output '{tmp_path}/a b.json'")
    assert (tmp_path / "a b.json").read_text().startswith("darc report: handle")
    commands.run(app, "report", "--format json --require root-cause")
    assert json.loads(app.shown[-1])["function"] == "handle"


def test_ops_and_comparisons_are_written_as_json(app: FakeApp, tmp_path: Path) -> None:
    commands.run(app, "ops", f"3 -o {tmp_path}/op.json")
    op = json.loads((tmp_path / "op.json").read_text())
    assert (op["number"], op["class"], op["hz"]) == (3, "in peak", samples.HZ)
    commands.run(app, "compare", "--format json")
    made = json.loads(app.shown[-1])
    assert made["calls"][0]["function"] == "flush"
    assert (made["first"]["ops"], made["second"]["ops"]) == (10, 10)


def test_a_session_goes_on_as_its_command_says(app: FakeApp, tmp_path: Path) -> None:
    """With options of that command's own; ones that it has not are told of, and so are files that
    no command goes on with."""
    made = ops.snapshot()
    assert made.ftree is not None
    stored = Stored(
        spec="handle",
        parameters=Parameters(),
        status=made.status,
        profile=samples.profile(samples.BINS),
        root=made.ftree,
        modules={},
        analysis="often",
    )
    file = tmp_path / "s.json"
    file.write_text(storage.to_text(stored))

    option, given = Option("--often", "N", "How often.", count()), Value[int | None]("often")

    def parse(typed: Typed) -> Parsed:
        parsed = parse_function(typed)
        return dataclasses.replace(parsed, own=given.put(option.typed_in(typed)))

    def goes_on(stored: Stored, parameters: Parameters, parsed: Parsed) -> Request:
        assert parsed.arguments == ("handle",)
        return Request("often", f"{given.of(parsed)}", parameters, RootCauses, verb="counts")

    start = commands.find_command("start")
    shared = tuple(option for option in start.options if option.name == "--start-ops")
    own = (*shared, option)
    often = dataclasses.replace(start, name="often", options=own, parse=parse, goes_on=goes_on)
    resume = resume_of([start, often])
    assert {"--often", "--start-ops"} < {option.name for option in resume.options}
    resume.action(app, resume.read(f"{file} --often 3 --start-ops 7"))
    (done,) = app.done
    assert isinstance(done, tuple)
    request = done[1]
    assert isinstance(request, Request)
    assert (request.command, request.function, request.verb) == ("resume", "3", "counts")
    assert request.parameters.start_ops == 7
    assert request.resumed is not None
    assert request.resumed.profile == stored.profile
    with pytest.raises(UsageError, match="--often: 'x' is not a whole number"):
        resume.read(f"{file} --often x")
    seldom = dataclasses.replace(often, name="seldom", options=(
        Option("--often", "HOW", "How often.", named({"never": 0, "hardly": 1})),
    ))  # fmt: skip
    both = resume_of([start, often, seldom])  # what the word means is seen when the file is read
    assert [both.read(f"{file} --often {text}").arguments for text in ("3", "never")] == [(), ()]
    with pytest.raises(UsageError, match="--often: 'x' is not a whole number"):
        both.read(f"{file} --often x")
    with pytest.raises(UsageError, match="is of 'darc often', which has no option '--peak'"):
        resume.action(app, resume.read(f"{file} --peak last"))
    with pytest.raises(UsageError, match="is of 'darc often', which this darc does not have"):
        commands.run(app, "resume", str(file))
    file.write_text(storage.to_text(dataclasses.replace(stored, analysis="start")))
    with pytest.raises(UsageError, match="is of 'darc start', which has no option '--often'"):
        resume.action(app, resume.read(f"{file} --often 3"))


def test_help_of_resume_says_what_options_mean_to_a_session_that_goes_on() -> None:
    start, resume = commands.find_command("start"), commands.find_command("resume")
    docs = {option.name: option.doc for option in start.options}
    told = {option.name: option.doc for option in resume.options}
    others = "peak start-ops start-time decision-ops max-depth max-time resolution thread loops"
    for name in (f"--{other}" for other in others.split()):
        assert told[name] != docs[name], f"{name}: what it does for 'darc start'"
    shown = " ".join(commands.help_text("resume").split())
    assert "before its profile is compared with the saved one" in shown
    assert "stops once the profile is known, for the choice" not in shown


def test_what_is_said_of_a_saved_file_is_what_its_command_says(
    app: FakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an analysis that darc does not know, too; and nothing of one that no command goes on
    with."""
    made = ops.snapshot()
    assert made.ftree is not None
    stored = Stored(
        spec="handle",
        parameters=Parameters(),
        status=made.status,
        profile=samples.profile(samples.BINS),
        root=made.ftree,
        modules={},
        analysis="often",
    )
    session = SimpleNamespace(alive=False, stored=lambda: stored, analysis=None)
    monkeypatch.setattr(app, "need_session", lambda: session)
    start = commands.find_command("start")
    often = dataclasses.replace(start, name="often", saves="how often")
    anew = dataclasses.replace(often, goes_on=None)
    file = tmp_path / "s.json"
    for known in ([start, often], [start, anew], [start]):
        save = save_of(known)
        assert ("Of 'darc often': how often." in save.details) == (len(known) > 1)
        save.action(app, save.read(str(file)))
        assert storage.read_file(file).analysis == "often"
    goes_on, is_anew, is_unknown = app.shown
    assert goes_on.endswith(f"'darc resume {file}' goes on with it")
    assert is_anew == is_unknown == f"darc: session saved to {file}"


def test_commands_say_what_is_saved_of_what_they_begin() -> None:
    kinds = Analysis.__subclasses__()
    for one in kinds:  # and those below, which come behind
        kinds += one.__subclasses__()
    of_darc = [one for one in kinds if one.__module__.startswith("darc.")]
    can_be = {one.key for one in of_darc if one.stored is not Analysis.stored} - {""}
    assert {one.name for one in commands.COMMANDS.values() if one.saves} == can_be


def test_every_command_that_a_file_makes_is_in_the_registry() -> None:
    made = {
        value
        for module in pkgutil.iter_modules(commands.__path__)
        for value in vars(importlib.import_module(f"{commands.__name__}.{module.name}")).values()
        if isinstance(value, Command)
    }
    missing = {one.name for one in made} - commands.COMMANDS.keys()
    assert not missing, f"darc/app/commands/registry.py does not name {missing}"


def test_what_can_be_saved_and_go_on_is_resumed() -> None:
    resumable = {one.key for one in Resumable.__subclasses__() if one.__module__[:5] == "darc."}
    going_on = {one.name for one in commands.COMMANDS.values() if one.goes_on is not None}
    assert going_on == resumable


def test_saved_sessions_are_compared(app: FakeApp, tmp_path: Path) -> None:
    made = ops.snapshot()
    assert made.ftree is not None
    stored = Stored(
        spec="handle",
        parameters=Parameters(),
        status=made.status,
        profile=samples.profile(samples.BINS),
        root=made.ftree,
        modules={},
        parts=to_parts(made.ops),
    )
    old, empty = tmp_path / "old.json", tmp_path / "empty.json"
    old.write_text(storage.to_text(stored))
    empty.write_text(storage.to_text(dataclasses.replace(stored, parts={})))
    commands.run(app, "compare", str(old))
    assert "10 kept" in app.shown[0].splitlines()[0]
    assert old.name in app.shown[0].splitlines()[0]
    commands.run(FakeApp(), "compare", f"{old} {old}")  # needs no session
    with pytest.raises(UsageError, match="holds no ops"):
        commands.run(app, "compare", f"3 {empty}")
    with pytest.raises(NotFoundError, match="there is no file"):
        commands.run(app, "compare", "nowhere.json")
    other = dataclasses.replace(made.ftree.function, name="serve")
    made.ftree.function = other
    old.write_text(storage.to_text(stored))
    with pytest.raises(UsageError, match=r"is of handle, and .* of serve"):
        commands.run(app, "compare", str(old))


def test_what_is_wrong_where_no_op_is_kept() -> None:
    for changes, message in (
        ({"peak": None}, "choose a peak first"),
        ({"probes": Probes.BREAKPOINT}, "timed by a breakpoint"),
        ({}, "no op of peak 3 is kept yet"),
    ):
        for name in ("ops", "compare"):
            with pytest.raises(UsageError, match=message):
                commands.run(FakeApp(samples.snapshot(**changes)), name, "")


def test_report_can_require_a_root_cause(tmp_path: Path) -> None:
    app = FakeApp(samples.snapshot(paths=()))
    with pytest.raises(DarcError, match="no root cause"):
        commands.run(app, "report", f"-o {tmp_path}/out.json --require root-cause")
    assert (tmp_path / "out.json").exists()


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_help_ends_in_examples_that_can_be_typed(name: str) -> None:
    command = commands.COMMANDS[name]
    text = commands.help_text(name)
    lines = text.splitlines()
    assert lines[0] == command.summary
    assert lines[0].endswith(".")
    assert lines[1] == f"Usage: {command.usage}"
    assert max(map(len, lines)) <= 80
    examples = text.split("Examples:\n")[1]
    for line, doc in command.examples:
        assert line in examples
        assert line.startswith(f"darc {name}")
        assert doc.endswith(".")
        command.read(line.removeprefix(f"darc {name}"))
    for option in command.options:
        assert f"  {option.name} {option.metavar}" in text


def test_darc_alone_is_its_help(app: FakeApp) -> None:
    commands.run(app, "", "")
    assert app.shown == [commands.help_text("")]
    for name in commands.COMMANDS:
        assert f"darc {name} " in app.shown[0]
    assert app.shown[0].split("Examples:\n")[1].count("\n") == 3
    assert max(map(len, app.shown[0].splitlines())) <= 80


def test_help_by_darcs_own_word(app: FakeApp) -> None:
    commands.run(app, "", "help")
    commands.run(app, "", "help start")
    assert app.shown == [commands.help_text(""), commands.help_text("start")]
    with pytest.raises(UsageError, match="no command"):
        commands.run(app, "", "help strat")


def test_the_commands_of_this_release() -> None:
    names = (
        "start peak status histogram tree descend ops compare waits catch profile walk contexts "
        "why stop save resume report version"
    )
    assert set(names.split()) <= set(commands.COMMANDS), "scripts rely on them"


@pytest.mark.parametrize(
    ("name", "argline", "word", "completions"),
    [
        ("start", "", "", ["handle", "handle_all", "ns::f"]),
        ("start", "han", "han", ["handle", "handle_all"]),
        ("start", "ns::f", "f", ["f"]),
        ("start", "'ns::g<int, i", "i", ["int>'"]),
        ("start", "'ns::g<int, int>' --peak la", "la", ["last"]),
        ("start", "f --max", "--max", ["--maxcount-percentage", "--max-depth", "--max-probes",
                                       "--max-time"]),
        ("start", "f --max-d", "max-d", ["max-depth"]),
        ("start", "f --on-finish ", "", [one.value for one in OnFinish]),
        ("start", "f --on-finish=s", "s", ["stop"]),
        ("start", "f --on-finish=s", "--on-finish=s", ["--on-finish=stop"]),
        ("start", "f --probes ", "", [one.value for one in Probes]),
        ("start", "f --i", "--i", []),
        ("start", "f --lookahead a", "a", ["auto"]),
        ("start", "f --peak ", "", ["1", "2", "3", "last", "none"]),
        ("start", "f --peak=", "", ["1", "2", "3", "last", "none"]),
        ("start", "f --peak last --pe", "--pe", []),
        ("catch", "f --peak ", "", ["1", "2", "3", "last"]),
        ("peak", "", "", ["1", "2", "3", "last"]),
        ("peak", "l", "l", ["last"]),
        ("descend", "1.7", "1.7", ["1.7", "1.7.1", "1.7.1.1", "1.7.2",
                                   "1.7.2.1"]),
        ("descend", "1.7 1.7.1.", "", ["1"]),
        ("report", "", "", ["--format", "-o", "--output", "--require"]),
        ("report", "--format ", "", list(EXPORTERS)),
        ("report", "--format j", "j", ["json"]),
        ("report", "--require ", "", ["root-cause", "answer"]),
        ("ops", "2", "2", ["2", "20", "21", "22"]),
        ("ops", "1 --f", "--f", ["--format"]),
        ("compare", "1", "1", ["1"]),
        ("compare", "3 --format ", "", ["text", "json"]),
        ("contexts", "--format ", "", ["text", "json"]),
        ("contexts", "a.json --i", "--i", ["--import"]),
        ("resume", "a.json --max-d", "--max-d", ["--max-depth"]),
        ("resume", "a.json --lookahead ", "", ["auto", "1"]),
        ("save", "--", "--", []),
        ("status", "", "", []),
        ("unknown", "", "", []),
    ],
)  # fmt: skip
def test_complete(
    app: FakeApp, name: str, argline: str, *, word: str, completions: list[str]
) -> None:
    assert commands.complete(app, name, argline, word) == completions


def test_files_are_completed_behind_options(
    app: FakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("slow.json", "slower.json", "with space", ".hidden", "folder/a", "folder/b"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()

    def complete(name: str, argline: str, word: str) -> list[str]:
        return commands.complete(app, name, argline, word)

    assert complete("report", "-o sl", "sl") == ["slow.json", "slower.json"]
    assert complete("report", "-o ", "") == ["folder/", "slow.json", "slower.json"]
    assert complete("report", "-o .h", ".h") == [".hidden"]
    assert complete("report", "--output=slowe", "slowe") == ["slower.json"]
    assert complete("report", "-o fol", "fol") == ["folder/a", "folder/b"]
    assert complete("report", f"-o {tmp_path}/sl", "sl") == ["slow.json", "slower.json"]
    assert complete("report", "-o nowhere/x", "x") == []
    assert complete("resume", "--max-depth 3 slowe", "slowe") == ["slower.json"]
    assert complete("compare", "3 slowe", "slowe") == ["slower.json"]
    assert complete("profile", "@slowe", "@slowe") == ["@slower.json"]
    assert complete("profile", "@slowe", "slowe") == ["slower.json"]
    assert complete("compare", "", "") == ["1", "3", "folder/", "slow.json", "slower.json"]


def test_help_tells_the_defaults() -> None:
    start = commands.COMMANDS["start"]
    docs = {option.name: option.help for option in start.options}
    assert docs["--decision-ops"].endswith(" Default: 20.")
    assert docs["--peak"].endswith(" Default: none.")
    assert all(" Default: " in doc for doc in docs.values())
    resumed = {option.name: option.help for option in commands.COMMANDS["resume"].options}
    assert resumed["--start-ops"].endswith(" Default: that of the session.")
    assert resumed["--thread"].endswith(" Default: all.")
    assert all("Default: " in option.help for option in commands.REPORT_OPTIONS[:2])


def test_help_has_the_words_of_an_option_that_takes_no_others() -> None:
    unit = Option(
        "--unit", "UNIT", "How it is shown.", named({"cycles": 1, "time": 2}), default="time"
    )
    assert unit.help == "How it is shown. One of cycles, time. Default: time."
    told = dataclasses.replace(unit, metavar="cycles|time")
    assert told.help == "How it is shown. Default: time."
    often = Option("--often", "N", "How often.", count(), default="1")
    assert often.help == "How often. Default: 1."
    probes = {option.name: option for option in commands.find_command("start").options}["--probes"]
    assert f"One of {', '.join(one.value for one in Probes)}." in probes.help


def arguments_of(command: commands.Command) -> str:
    """Those of its first example, as they are typed: options stand behind what it takes."""
    _darc, _name, *words = shlex.split(command.examples[0][0])
    return shlex.join(command.split(words).words)


@pytest.mark.parametrize("command", commands.COMMANDS.values(), ids=lambda one: one.name)
def test_values_of_options_are_read_and_refused_alike(command: commands.Command) -> None:
    """Completion offers what may be typed; a text that is none is told of with what is valid and
    what to type."""
    least = arguments_of(command)
    for option in command.options:
        for text in (*option.kind.words, option.kind.example):
            command.read(f"{least} {option.name} {text}")
        with pytest.raises(UsageError) as error:
            command.read(f"{least} {option.name} ''")
        assert str(error.value).startswith(f"{option.name}: '' is not ")
        if PEAK.valid not in option.kind.valid:  # of which there is more to say
            assert str(error.value) == (
                f"{option.name}: '' is not {option.kind.valid}; "
                f"type for example '{option.name} {option.kind.example}'"
            )


def test_the_version(app: FakeApp) -> None:
    commands.run(app, "version", "")
    assert app.shown[0].startswith(f"darc {__version__}, Python 3.")


def test_what_could_not_be_shown_is_no_completion(
    app: FakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what could not by itself, where the debugger breaks the word: an accent alone."""
    monkeypatch.setattr(app, "complete_function", lambda prefix: [prefix + "er"])
    assert commands.complete(app, "start", "caf\u0301", "\u0301") == []
    assert commands.complete(app, "start", "caf\u0301", "caf\u0301") == ["caf\u0301er"]
    assert commands.complete(app, "start", "\x1b", "\x1b") == []


def test_completion_without_a_session_is_quiet() -> None:
    assert commands.complete(FakeApp(), "descend", "1", "1") == []
    assert commands.complete(FakeApp(), "peak", "", "") == ["last"]
    assert commands.complete(FakeApp(), "start", "f --peak ", "") == ["last", "none"]


def test_an_option_says_what_completes_it(app: FakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    def sides(app: Actions, prefix: str) -> list[str]:
        return [f"{prefix}-of-{app.snapshot().function}", "left"]

    side = Option("--side", "SIDE", "Which.", named({"left": 0, "right": 1}), complete=sides)
    command = dataclasses.replace(commands.COMMANDS["stop"], options=(side,))
    monkeypatch.setattr(completion, "COMMANDS", {"stop": command})
    assert commands.complete(app, "stop", "--side ", "") == ["-of-handle", "left", "right"]
    assert commands.complete(app, "stop", "--side=l", "l") == ["l-of-handle", "left"]
    assert commands.complete(FakeApp(), "stop", "--side ", "") == []  # it asks for what is known


@pytest.mark.parametrize(
    ("name", "argline", "files"),
    [
        ("report", "-o ", True),
        ("report", "-o out", True),
        ("report", "--format json --output /tmp/", True),
        ("report", "--output=/tmp/", True),
        ("report", "--format ", False),
        ("report", "-o out.json ", False),
        ("report", "", False),
        ("start", "-o ", False),
        ("save", "", True),
        ("save", "/tmp/s", True),
        ("save", "a.json ", False),
        ("save", "-", False),
        ("resume", "", True),
        ("resume", "se", True),
        ("resume", "--max-depth 40 se", True),
        ("resume", "--max-depth ", False),
        ("resume", "--max-depth 4", False),
        ("resume", "a.json --max", False),
        ("resume", "a.json ", False),
        ("unknown", "-o ", False),
    ],
)
def test_files_are_completed_by_the_debugger(name: str, argline: str, files: bool) -> None:
    assert commands.completes_files(name, argline) is files


def test_parameters_are_set_and_shown(app: FakeApp) -> None:
    commands.set_parameter(app, "start-ops", "2000")
    assert commands.show_parameter(app, "start_ops") == "darc start-ops: 2000"
    commands.set_parameter(app, "max-time", "2min")
    assert commands.show_parameter(app, "max-time") == "darc max-time: 120s"
    shown = commands.show_parameter(app).splitlines()
    assert len(shown) == len(PARAMETERS)
    with pytest.raises(UsageError, match="start-ops: 'x' is not a whole number"):
        commands.set_parameter(app, "start-ops", "x")
    with pytest.raises(UsageError, match="no parameter 'speed'"):
        commands.show_parameter(app, "speed")


REFUSE = [parameter for parameter in PARAMETERS if parameter.name not in ("peak", "task")]
"""A task may be called by any word; what is no peak is told in words of its own."""


@pytest.mark.parametrize("parameter", REFUSE, ids=lambda parameter: parameter.name)
def test_a_setting_that_is_refused_is_told_as_one(app: FakeApp, parameter: Parameter) -> None:
    """By the command, in the words of who types it: options are for 'darc start'."""
    name = parameter.name
    with pytest.raises(UsageError, match=f"^{name}: .*'set darc {name} ") as refused:
        commands.set_parameter(app, name, "no such value")
    assert "--" not in str(refused.value)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_parameter_help(parameter: Parameter) -> None:
    text = commands.parameter_help(parameter.name)
    assert parameter.domain.valid in text
    assert text.splitlines()[-1] == f"  set darc {parameter.name} {parameter.example}"
    assert (f"{parameter.option} {parameter.metavar}" in text) == (parameter.option is not None)
