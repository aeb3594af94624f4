"""What commands share whose view is shown, or written to a file: ``--format`` and ``-o``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from darc.app.commands.command import FILE, Actions, Option, Parsed, Value
from darc.app.options import Typed
from darc.model.values import one_of_enum
from darc.views.jsonvalues import json_text
from darc.views.output import Text, Values, ViewFormat, write_view

FILE_OPTION = Option(
    "-o", "FILE", "Write to FILE, which is replaced as a whole.", FILE, default="it is shown"
)
_FORMAT = Option(
    "--format",
    "FORMAT",
    "How it is written.",
    one_of_enum(ViewFormat),
    default="what the file of -o ends in, else text",
)
_FORM: Value[ViewFormat] = Value("format")
_FILE: Value[Path | None] = Value("file")
VIEW_OPTIONS = (_FORMAT, FILE_OPTION)


def view_options_in(typed: Typed) -> dict[Value[Any], object]:
    """What :func:`write` looks for in :attr:`Parsed.own`, by what was typed of
    :data:`VIEW_OPTIONS`. Raises :class:`UsageError`."""
    file = FILE_OPTION.typed_in(typed)
    form = _FORMAT.typed_in(typed) or ViewFormat.of_file(file)
    return {**_FORM.put(form), **_FILE.put(file)}


def write(app: Actions, parsed: Parsed, text: Text, values: Values) -> None:
    """Shows a view, or writes it, as the options of :func:`view_options_in` say."""
    write_view(
        {ViewFormat.TEXT: text, ViewFormat.JSON: lambda _style: json_text(values())},
        _FORM.of(parsed),
        _FILE.of(parsed),
        emit=app.emit,
        style=app.style,
    )
