"""Documents in rows of data: the columns of their texts and ids, and how they are passed to a job over files."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lookalike._errors import BadInput
from lookalike._frames import Rows, rows_of
from lookalike._options import paths, positional

__all__ = ["DocumentColumns", "RecordFields", "every_row_read", "input_words", "text_columns", "written"]


class DocumentColumns:
    """Columns, or a function, of the texts of rows, and the column of their ids."""

    def __init__(self, rows: Rows, text: Any, id: str | None) -> None:
        names = rows.columns()
        self.function: Callable[[Any], str | None] | None = text if callable(text) else None
        self.id = id
        self.html = False
        # A function makes a column of its own, which the data need not have.
        if self.function is not None or names is None:
            self.text: list[str] = [] if self.function is None else ["text"]
        else:
            self.text, self.html = text_columns(text, names)
        if id is not None and (names is None or id not in names):
            shown = ", ".join(names or []) or "none"
            raise ValueError(f"there is no column {id!r}, which id asks for: the columns are {shown}")

    def texts(self, rows: Rows) -> Iterator[str | None]:
        """The text of each row."""
        for number, row in enumerate(rows.dicts()):
            if self.function is not None:
                yield _text(self.function(row), number)
            elif isinstance(row, Mapping):
                # As the engine joins them: a text here must be the one that was compared.
                texts = (_text(row.get(name), number, name) for name in self.text)
                parts = [text for text in texts if text is not None]
                yield "\n".join(parts) if parts else None
            else:
                yield _text(row, number)

    def fields(self, *several: Rows | None) -> RecordFields:
        """The fields of ids and texts in the records of all these rows."""
        taken = {name for rows in several if rows is not None for name in rows.every_column()}
        id = _field_path(self.id)
        text = _field_path(self.text[0]) if self.function is None and len(self.text) == 1 else None
        # The name says for the engine that texts are HTML.
        if text is not None and (self.text[0] == "html") is not self.html:
            text = None
        own_id = None if id is not None else _free("id", taken)
        own_text = None if text is not None else _free("text", {*taken, own_id})
        return RecordFields(own_id, own_text, [f"--id={id or own_id}", f"--text={text or own_text}"])

    def write(self, rows: Rows, path: str | os.PathLike[str], fields: RecordFields, prefix: str = "") -> None:
        """Write the rows as JSON lines. Their columns are unchanged; ids and texts that are not columns are added."""
        with open(path, "wb") as lines:
            for number, (row, text) in enumerate(zip(rows.dicts(), self.texts(rows))):
                # A copy: the rows of a list are the caller's own.
                record = dict(row) if isinstance(row, Mapping) else {}
                if fields.id is not None:
                    record[fields.id] = f"{prefix}{number}" if self.id is None else record.get(self.id)
                if fields.text is not None:
                    record[fields.text] = text
                lines.write(_line(record))


@dataclass(frozen=True)
class RecordFields:
    """Fields of records that rows become."""

    #: Field that is made for ids; None if a column of the rows has them.
    id: str | None
    #: The same of texts.
    text: str | None
    #: Words that say where ids and texts are.
    words: list[str]


def _free(name: str, taken: Container[str | None]) -> str:
    """A field name that no column has."""
    while name in taken:
        name += "_"
    return name


def _field_path(column: str | None) -> str | None:
    """The command's name for a column; None if it has none."""
    return column.replace("\\", "\\\\").replace(".", "\\.") if column else None


def _text(value: Any, row: int, column: str | None = None) -> str | None:
    """The value if it is a text. Any other value would be compared by its string form, which nobody requested."""
    if value is None or isinstance(value, str):
        return value
    told = "" if column is None else f' (column "{column}")'
    raise TypeError(f"texts must be strings, not {type(value).__name__} (row {row}){told}")


def _line(record: Any) -> bytes:
    """A record as a JSON line that every reader takes."""
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        line = json.dumps(_finite(record), ensure_ascii=False, allow_nan=False, default=str)
    try:
        return line.encode() + b"\n"
    except UnicodeEncodeError:
        # A lone surrogate, which UTF-8 has no bytes for and JSON an escape.
        return json.dumps(json.loads(line), default=str).encode() + b"\n"


def _finite(value: Any) -> Any:
    """The value, with None for numbers that JSON lacks: NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value


@contextmanager
def every_row_read(file: str | os.PathLike[str]) -> Iterator[None]:
    """Context for a job with `--strict` over a file of written rows: its errors name an unreadable line by its row."""
    try:
        yield
    except BadInput as error:
        told = re.fullmatch(re.escape(os.fspath(file)) + r", line (\d+): (.*?)(: repair the record.*)?", str(error), re.DOTALL)
        if told is None:
            raise
        row = int(told[1]) - 1
        raise BadInput(f"row {row} cannot be written as a JSON line: {told[2]}", row) from error


@contextmanager
def input_words(
    data: Any, text: Any, id: str | None, options: Mapping[str, Any]
) -> Iterator[tuple[list[str], str | None]]:
    """The arguments that name the input of a job over files with these options, and the file that data in memory was written to."""
    named = paths(data)
    if named is not None:
        if text is not None and not isinstance(text, str):
            raise TypeError("text must be the name of a field where data is a path")
        words = [f"--{name}={field}" for name, field in (("text", text), ("id", id)) if field is not None]
        yield [*positional(named), *words], None
        return
    import tempfile

    rows = rows_of(data)
    columns = DocumentColumns(rows, text, id)
    fields = columns.fields(rows)
    # Rows are all there: one that is lost on the way is no loss that a job may bear, unless its caller says so.
    bears = options.get("strict") or options.get("max_skipped") is not None
    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=options.get("tmp")) as folder:
        file = os.path.join(folder, "documents.jsonl")
        columns.write(rows, file, fields)
        with every_row_read(file):
            yield [file, *fields.words, *([] if bears else ["--strict"])], file


def text_columns(text: Any, names: list[str]) -> tuple[list[str], bool]:
    """The columns of the texts, and whether they are HTML."""
    if text is not None:
        chosen = [text] if isinstance(text, str) else list(text)
        for name in chosen:
            if name not in names:
                raise ValueError(f"there is no column {name!r}: the columns are {', '.join(names)}")
        return chosen, False
    for name in ("text", "html"):
        if name in names:
            return [name], name == "html"
    if len(names) == 1:
        return names, False
    raise ValueError(f"none of the columns is called text: name the one of the texts with text=; the columns are {', '.join(names)}")


def written(rows: Iterable[Any], path: str | os.PathLike[str]) -> str:
    """Write rows as JSON lines, and return the path."""
    with open(path, "wb") as lines:
        lines.writelines(map(_line, rows))
    return os.fspath(path)
