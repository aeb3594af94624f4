"""Command lines, options and parameters: words that belong there and words that do not."""

from __future__ import annotations

import contextlib
import random

from darc.app import commands
from darc.app.parameters import PARAMETERS
from darc.model.errors import DarcError
from tests.fake_app import FakeApp
from tests.fuzz import names

VALUES = (
    "0", "1", "-1", "1e9", "nan", "-nan", "inf", "-inf", "1e-400", "1e400", "9" * 400, "0x10",
    "9" * 5000,
    "99999999999999999999", "0.5", ".5", "5%", "1_000", "١٢٣", "²", "last", "p99", "p", "p1e9",
    "p-1", "p100", "p101", ">4ms", ">", "> 4ms", ">1e308s", ">nans", "<4ms", "17-19", "19-17",
    "17-", "-17", "0-99999999", "--", "-", "=", "", "''", '"', "'", "\\", "5min", "1h", "-5s",
    "1e308h", "nanmin", "all", "auto", "none", "on", "off", "yes", "pad", "breakpoint",
    "continue", "stop", "json", "text", "html", "root-cause", "1.1", "1.", ".", "1.x",
    "1.0.0.0.0", "1." * 500, "/dev/null/x", "~nobody-here/x", "~", "/", "\0", "a\0b", "x" * 300,
    "@", "@/dev/zero", "@/dev/full", "@/", "@~nobody-here", "@/proc/self/mem", "@" + "x" * 5000,
    "/(a", "//",
    "/proc/self/mem", "/dev/full", "/proc/self/task", "*", "lib*!*", "!", "x.c", "a::b!c",
)  # fmt: skip


def line(chance: random.Random, name: str) -> str:
    """The rest of a line of the command."""
    options = [f"--{p.name}" for p in PARAMETERS] + ["-o", "--output", "--format", "--require"]
    own = [option.name for option in commands.COMMANDS[name].options] if name else []
    if own and chance.random() < 0.8:
        options = own
    words = []
    for _ in range(chance.randrange(6)):
        word = chance.choice((
            chance.choice(options),
            chance.choice(VALUES),
            names.made(chance),
            f"{chance.choice(options)}={chance.choice(VALUES)}",
            "handle",
        ))  # fmt: skip
        words.append(word)
    return chance.choice((" ", "  ", "\t", "=")).join(words)


class _App(FakeApp):
    """Shows what commands show."""

    def emit(self, text: str) -> None:
        from darc.views.words import Shown, message

        names.check(text if isinstance(text, Shown) else message(text))

    def complete_function(self, prefix: str) -> list[str]:
        return [prefix + "f"]


def trial(chance: random.Random) -> None:
    """One line that is typed, completed, and one parameter that is set and shown."""
    from tests.unit import samples

    app = _App(samples.snapshot())
    name = chance.choice([*commands.COMMANDS, ""])
    text = line(chance, name)
    for candidate in commands.complete(app, name, text, chance.choice(("", text[-3:]))):
        names.check(candidate)
        assert "\n" not in candidate
    commands.completes_files(name, text)
    parameter = chance.choice(PARAMETERS)
    with contextlib.suppress(DarcError):
        commands.set_parameter(app, parameter.name, chance.choice((text, chance.choice(VALUES))))
        value = parameter.text_in(app.parameters)
        commands.set_parameter(app, parameter.name, value)
    names.check(commands.show_parameter(app))
    if "-o" in text or "--o" in text:
        return  # whatever it is, it would be written
    commands.run(app, name, text)
