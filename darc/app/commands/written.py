"""What commands share whose view is shown, or written to a file: ``--format`` and ``-o``."""

from __future__ import annotations

from pathlib import Path

from darc.app.commands.command import FILE, Actions, Option, Parsed, style_of
from darc.app.options import Typed
from darc.model.values import choice
from darc.views import output
from darc.views.exporters import json

FILE_OPTION = Option(
    "-o", "FILE", "Write to FILE, which is replaced as a whole.", FILE, "it is shown"
)
_FORMAT = Option(
    "--format",
    "FORMAT",
    "How it is written.",
    choice(*output.FORMATS),
    "what the file of -o ends in, else text",
)
VIEW_OPTIONS = (_FORMAT, FILE_OPTION)


def view_options_in(typed: Typed) -> dict[str, object]:
    """``format`` and ``file``, for :func:`write`, by what was typed of :data:`VIEW_OPTIONS`. Raises
    :class:`UsageError`."""
    file = FILE_OPTION.typed_in(typed)
    is_json = file is not None and file.suffix.lower() == ".json"
    form = _FORMAT.typed_in(typed) or ("json" if is_json else "text")
    return {"format": form, "file": file}


def write(app: Actions, parsed: Parsed, text: output.Text, values: output.Values) -> None:
    """Shows a view, or writes it, as the options of :func:`view_options_in` say."""
    file = parsed.options["file"]
    output.write_view(
        {"text": text, "json": lambda _style: json.json_text(values())},
        str(parsed.options["format"]),
        file if isinstance(file, Path) else None,
        emit=app.emit,
        style=style_of(app),
    )
