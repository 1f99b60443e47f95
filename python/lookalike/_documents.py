"""Documents in rows of data: which columns have their texts and ids, and how they are handed to a job over files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lookalike._frames import Rows, rows_of
from lookalike._options import paths, positional

__all__ = ["DocumentColumns", "input_words", "text_columns", "written"]


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
        for row in rows.dicts():
            if self.function is not None:
                yield self.function(row)
            elif isinstance(row, Mapping):
                # As the engine joins them: a text here must be the one that was compared.
                parts = [row[name] for name in self.text if row[name] is not None]
                yield "\n".join(parts) if parts else None
            else:
                yield row

    def write(self, rows: Rows, path: str | os.PathLike[str], prefix: str = "") -> list[str]:
        """Write the rows as JSON lines, with id and text, and return the words that say where these are."""
        field = "html" if self.html else "text"
        with open(path, "w", encoding="utf-8") as lines:
            for number, (row, text) in enumerate(zip(rows.dicts(), self.texts(rows))):
                # A copy: the rows of a list are the caller's own.
                own = dict(row) if isinstance(row, Mapping) else {}
                own["id"] = row[self.id] if self.id is not None else f"{prefix}{number}"
                own[field] = text
                lines.write(json.dumps(own, ensure_ascii=False, default=str) + "\n")
        return ["--id=id", f"--text={field}"]


@contextmanager
def input_words(data: Any, text: Any, id: str | None, tmp: Any) -> Iterator[tuple[list[str], str | None]]:
    """The words that name the input of a job over files, and the file where data in memory was written to."""
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
    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=tmp) as folder:
        file = os.path.join(folder, "documents.jsonl")
        yield [file, *columns.write(rows, file)], file


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
    with open(path, "w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
    return os.fspath(path)
