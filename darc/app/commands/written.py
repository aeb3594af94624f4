"""What commands share whose view is shown, or written to a file: ``--format`` and ``-o``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from darc.app.commands.command import Actions, Option, Parsed, path_of, style_of
from darc.model.errors import UsageError
from darc.views import output
from darc.views.exporters import json

FILE_OPTION = Option(
    "-o",
    "FILE",
    "Write to FILE, which is replaced as a whole; the default is to show it.",
    is_file=True,
)


def file_of(text: str | None) -> Path | None:
    """The file that was typed behind ``-o``, if any. Raises :class:`UsageError`."""
    if text == "":
        raise UsageError("-o needs the name of a file: -o FILE")
    return None if text is None else path_of(text)


def options_of(texts: Mapping[str, str]) -> dict[str, object]:
    """``format`` and ``file``, for :func:`write`, by what was typed behind the options. Raises
    :class:`UsageError`."""
    file = file_of(texts.get("-o"))
    is_json = file is not None and file.suffix.lower() == ".json"
    form = texts.get("--format") or ("json" if is_json else "text")
    output.check_format(form)
    return {"format": form, "file": file}


def write(app: Actions, parsed: Parsed, text: output.Text, values: output.Values) -> None:
    """Shows a view, or writes it, as the options of :func:`options_of` say."""
    file = parsed.options["file"]
    output.write_view(
        {"text": text, "json": lambda _style: json.json_text(values())},
        str(parsed.options["format"]),
        file if isinstance(file, Path) else None,
        emit=app.emit,
        style=style_of(app),
    )
