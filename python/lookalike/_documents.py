"""Documents in rows of data: the roles of their columns, and how they are passed to jobs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lookalike import _lookalike
from lookalike._errors import BadInput, LookalikeError, warn_of_nulls
from lookalike._frames import Rows, rows_of
from lookalike._json import json_text
from lookalike._lookalike import Table
from lookalike._options import paths, positional, with_paths, words

__all__ = [
    "DocumentColumns",
    "RecordFields",
    "category_word",
    "every_row_read",
    "field_path",
    "input_words",
    "parts_of",
    "split_at_commas",
    "text_fields",
    "write_beside_files",
    "written",
]


@dataclass(frozen=True)
class DocumentColumns:
    """The roles of the columns of some rows."""

    #: Columns of texts, which are joined by line breaks; empty if the rows themselves are texts.
    text: Sequence[str]
    #: A function that returns the text of a row.
    function: Callable[[Any], str | None] | None = None
    #: True if the texts are in the columns that the default rule finds.
    by_default: bool = False
    #: Column of HTML pages, which are used for rows without a text.
    page: str | None = None
    id: str | None = None
    order: str | None = None
    category: str | None = None
    #: True if the category is the host of a URL.
    site: bool = False
    #: Columns of anchors and links.
    fields: Sequence[str] = ()

    @classmethod
    def of(cls, rows: Rows, text: Any, id: Any) -> DocumentColumns:
        """Return the columns for the texts and ids that a caller names."""
        known_id = None if id is None else rows.column(id, "id")
        if callable(text):
            names = rows.columns() or []
            if repeated := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"several columns are called {repeated[0]!r}, and text is a function of rows: rename them first")
            return cls([], text, id=known_id)
        return replace(cls([], id=known_id, by_default=text is None)._with_texts(rows, text), id=known_id)

    def _with_texts(self, rows: Rows, text: Any) -> DocumentColumns:
        """Return the same columns, with the texts of these rows."""
        names = _text_columns(rows, text)
        # As in the command, which decides for each record separately.
        page = "html" if text is None and names == ["text"] and "html" in (rows.columns() or []) else None
        return replace(self, text=names, page=page)

    @property
    def html(self) -> bool:
        """True if texts are HTML, which the name of the column indicates, as in the command."""
        return self.function is None and list(self.text) == ["html"]

    @property
    def is_found(self) -> bool:
        """True if the command finds the texts by itself: in these columns, or in one that is written for rows without a text column."""
        return self.by_default and list(self.text) in (["text"], ["html"], [])

    def alike(self, rows: Rows) -> DocumentColumns:
        """Return the columns of other rows to compare with, which may lack some, or have their texts in others."""
        names = list(rows.every_column())
        # For columns with these names, the default rule applies.
        by_rule = self.by_default and not {"text", "html"}.isdisjoint(names)
        has_texts = not by_rule and (self.function is not None or self.text and set(self.text) <= set(names))

        return (self if has_texts else self._with_texts(rows, None)).present_in(rows)

    def present_in(self, rows: Rows) -> DocumentColumns:
        """Return the columns without those, other than of texts, that no row has."""
        names = set(rows.every_column())

        def known(name: str | None) -> str | None:
            return name if name in names else None

        return replace(
            self,
            id=known(self.id),
            order=known(self.order),
            category=known(self.category),
            fields=[name for name in self.fields if name in names],
        )

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the rows and their columns in the form that the engine takes."""
        others = [name for name in (self.id, self.order, self.category, *self.fields) if name is not None]
        text = list(self.text)
        if self.function is None:
            data = rows.arrow(list(dict.fromkeys([*self._read, *others])))
        else:
            text = [_free("text", rows.every_column())]
            data = _extended(rows, list(dict.fromkeys(others)), {text[0]: list(self.texts(rows))})
        names = ("id", "order", "category", "site", "html", "page")
        columns = {"text": text, "fields": list(self.fields), **{name: getattr(self, name) for name in names}}
        return {"rows": data, "columns": columns}

    @property
    def _read(self) -> list[str]:
        """The columns from which texts are read."""
        return [*self.text, *([] if self.page is None else [self.page])]

    def texts(self, rows: Rows) -> Iterator[str | None]:
        """Return the text of each row."""
        if self.function is not None:
            for number, row in enumerate(rows.dicts()):
                yield _text(self.function(row), number)
            return
        data = rows.arrow(self._read)
        of_rows: Iterable[Sequence[Any]]
        if isinstance(data, list):
            of_rows = ([row.get(name) for name in self._read] if isinstance(row, Mapping) else [row] for row in data)
        elif self.text:
            # Only these columns, because others may have types that Python cannot represent.
            table = Table(data)
            of_rows = zip(*(table[name].to_pylist() for name in self._read))
        else:
            of_rows = zip(data.to_pylist() if hasattr(data, "to_pylist") else data)
        names: Sequence[str | None] = self.text or [None]
        for number, row in enumerate(of_rows):
            # Joined in the same way as in the engine, so that this is the text that was compared.
            texts = (_text(text, number, name) for name, text in zip(names, row))
            parts = [text for text in texts if text is not None]
            if not parts and self.page is not None:
                parts = [page for page in [_text(row[-1], number, self.page)] if page is not None]
            yield "\n".join(parts) if parts else None


@dataclass(frozen=True)
class RecordFields:
    """The fields for ids and texts in the records that are written for rows."""

    id: str
    #: Fields of texts, which the command joins as the engine joins columns.
    text: Sequence[str]
    #: True if the command finds the texts by itself.
    by_default: bool

    @classmethod
    def of(cls, *several: tuple[DocumentColumns, Rows]) -> RecordFields:
        """The fields in the records of all these rows, the first of which are the documents of the job."""
        columns, _ = several[0]
        by_default = all(other.is_found for other, _ in several)
        if not by_default and any(other.html is not columns.html or other.page for other, _ in several):
            raise LookalikeError("the texts of one side are HTML, and no file has both kinds in one field: extract() them before dedup")
        taken = {name for _, rows in several for name in rows.every_column()}
        id = columns.id or _free("id", taken)
        if by_default:
            return cls(id, ["text"], True)
        has_columns = columns.function is None and len(columns.text) > 0
        return cls(id, columns.text if has_columns else [_free("text", {*taken, id})], False)

    @property
    def words(self) -> list[str]:
        """Arguments that tell where ids and texts are."""
        # If fields of texts are named, there are no others, and HTML is not used where they are missing.
        text = [] if self.by_default else [f"--text={text_fields(map(field_path, self.text))}"]
        return [f"--id={field_path(self.id)}", *text]

    def write(self, columns: DocumentColumns, rows: Rows, path: str | os.PathLike[str], prefix: str = "") -> None:
        """Write the rows as JSON lines. Their columns are unchanged; ids and texts that are not columns are added."""
        names = rows.columns() or []
        added: dict[str, list[str | None]] = {}
        if columns.id is None:
            added[self.id] = [f"{prefix}{number}" for number in range(len(rows))]
        # Strings in a list of dicts are documents too, and have no columns.
        are_dicts = not isinstance(rows.data, list) or all(isinstance(row, Mapping) for row in rows.data)
        is_there = self.by_default and len(columns.text) > 0 or columns.function is None and list(columns.text) == list(self.text)
        text, *others = self.text
        if not is_there:
            added[text] = list(columns.texts(rows))
            # The text is complete: nothing is joined to it.
            added.update((name, [None] * len(rows)) for name in others if name in rows.every_column())
        elif not are_dicts:
            added[text] = [row.get(text) if isinstance(row, Mapping) else row for row in rows.data]
        # If two fields have the same name, readers see the last one.
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"several columns are called {repeated[0]!r}: rename them first")
        data = _extended(rows, names, added)
        # Ids in columns of columns are not known here.
        id = self.id if self.id in names or self.id in added else None
        if isinstance(data, list):
            written(data, path, id)
        else:
            warn_of_nulls(_lookalike.write_lines(data, path, id))


def write_beside_files(rows: Rows, text: str | None, id: str, path: str) -> None:
    """Write rows that files are compared with as JSON lines, with ids and texts in the fields of the files that these paths name. Rows without the
    fields of texts have those of the default rule."""
    names = set(rows.every_column())
    paths = [parts_of(path) for path in (id, *split_at_commas(text or ""))]
    # A path is also the name of a column.
    id, *texts = (".".join(parts) for parts in paths)
    known = [name for name, parts in zip([id, *texts], paths) if name in names or _is_inside(rows, parts)]
    columns = DocumentColumns([name for name in texts if name in known])
    if not columns.text:
        columns = DocumentColumns.of(rows, None, None)
        if texts and (columns.html or columns.page):
            raise LookalikeError("the texts to compare with are HTML, and stand in another field than those of the files: extract() them before dedup")
    fields = RecordFields(id, columns.text if not columns.by_default else texts or ["text"], not texts and columns.is_found)
    fields.write(replace(columns, id=id if id in known else None), rows, path, "against-")
    if any(len(parts) > 1 for parts in paths):
        _nest(path, dict(zip([id, *texts], paths)))


def _is_inside(rows: Rows, parts: Sequence[str]) -> bool:
    """Return true if a row has a value at this path into its columns."""
    if len(parts) < 2 or parts[0] not in rows.every_column():
        return False

    def value(row: Any) -> Any:
        for part in parts:
            row = row.get(part) if isinstance(row, Mapping) else None
        return row

    return any(value(row) is not None for row in rows.dicts())


def _nest(path: str, fields: Mapping[str, Sequence[str]]) -> None:
    """Copy these fields of records to where their paths lead."""
    with open(path, encoding="utf-8") as lines, open(f"{path}.nested", "w", encoding="utf-8") as nested:
        for line in lines:
            record = json.loads(line)
            for name, (*outer, last) in fields.items():
                if outer and name in record:
                    inner = record
                    for part in outer:
                        if not isinstance(inner.get(part), dict):
                            inner[part] = {}
                        inner = inner[part]
                    inner[last] = record[name]
            nested.write(json.dumps(record) + "\n")
    os.replace(f"{path}.nested", path)


def _extended(rows: Rows, names: list[str], added: Mapping[str, list[str | None]]) -> Any:
    """Return these columns of the rows, with other columns of strings appended, as Arrow data or a list of dicts."""
    beside = [dict(zip(added, values)) for values in zip(*added.values())]
    if not names:
        return beside
    data = rows.arrow(names)
    if isinstance(data, list):
        return [{**(row if isinstance(row, Mapping) else {}), **other} for row, other in zip(data, beside)] if added else data
    if not added:
        return data
    return Table(data).with_columns(_lookalike.table([(name, "string", values) for name, values in added.items()]))


def _free(name: str, taken: Iterable[str]) -> str:
    """Return a field name that no column has."""
    while name in taken:
        name += "_"
    return name


def field_path(column: str) -> str:
    """Return the command's name for a column."""
    return column.replace("\\", "\\\\").replace(".", "\\.")


def split_at_commas(text: str) -> list[str]:
    """Return the parts of a list in the command's form, in which a comma after a backslash belongs to a part."""
    return re.findall(r"(?:[^,\\]|\\.)+", text)


def parts_of(path: str) -> list[str]:
    """Return the names in a path ``a.b`` of the command, in which a dot after a backslash belongs to a name."""
    return [re.sub(r"\\(.)", r"\1", part) for part in re.findall(r"(?:[^.\\]|\\.)+", path)] or [path]


def text_fields(text: Any) -> str | None:
    """Return the command's name for the fields of texts in files: names are paths, and commas in a list of them belong to the names."""
    if text is None or isinstance(text, str):
        return text
    if isinstance(text, Iterable) and (fields := list(text)) and all(isinstance(field, str) for field in fields):
        return ",".join(field.replace(",", "\\,") for field in fields)
    raise TypeError("text must be the name of a field, or a list of names, where data is a path")


def category_word(column: str) -> str:
    """Return the command's name for a column of categories."""
    # `site` by itself means the host of the URL.
    return "\\site" if column == "site" else field_path(column)


def _text(value: Any, row: int, column: str | None = None) -> str | None:
    """Return the value if it is a text. Any other value would be compared by its string form, which nobody requested."""
    if value is None or isinstance(value, str):
        return value
    told = "" if column is None else f' (column "{column}")'
    raise TypeError(f"texts must be strings, not {type(value).__name__} (row {row}){told}")


@contextmanager
def every_row_read(file: str | os.PathLike[str]) -> Iterator[None]:
    """Run a job with `--strict` on a file of written rows: its errors name an unreadable line by the number of its row."""
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
    data: Any, text: Any, id: Any, options: Mapping[str, Any]
) -> Iterator[tuple[list[str], str | None]]:
    """Return the arguments of a job over files with these options, its input first, and the file to which data in memory was written."""
    data = with_paths(data)
    named = paths(data)
    if named is not None:
        said = [f"--{name}={field}" for name, field in (("text", text_fields(text)), ("id", id)) if field is not None]
        yield [*positional(named), *said, *words(options)], None
        return
    import tempfile

    rows = rows_of(data)
    columns = DocumentColumns.of(rows, text, id)
    fields = RecordFields.of((columns, rows))
    # All rows are present, so a job must not lose any on the way, unless its caller allows that.
    bears = options.get("strict") or options.get("max_skipped") is not None
    said = words(_of_columns(options, set(rows.every_column())))
    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=options.get("tmp")) as folder:
        file = os.path.join(folder, "documents.jsonl")
        for _ in columns.texts(rows):
            # This checks that all of them are texts: an error about the file would show other values in its own form.
            pass
        fields.write(columns, rows, file)
        with every_row_read(file):
            yield [file, *fields.words, *([] if bears else ["--strict"]), *said], file


def _of_columns(options: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Return the options with the command's names for the columns that they name. Other names may be paths into dicts."""
    said = dict(options)
    for option in ("within", "across"):
        name = options.get(option)
        if name in names and name != "site":
            said[option] = category_word(name)
    server = options.get("server")
    if isinstance(server, str) and server.startswith("field:") and server[6:] in names:
        said["server"] = f"field:{field_path(server[6:])}"
    return said


def _text_columns(rows: Rows, text: Any) -> list[str]:
    """Return the columns of texts: those that are named, or those of the default rule; empty if the rows themselves are texts."""
    names = rows.columns()
    if text is not None:
        if not isinstance(text, (str, int, Iterable)):
            raise TypeError(f"text must be a column, several, or a function of a row, not {type(text).__name__}")
        chosen = [text] if isinstance(text, (str, int)) else list(text)
        if not chosen:
            raise ValueError("text names no column")
        if names is None and len(rows):
            raise ValueError(f"text names the column {chosen[0]!r}, but the data are texts without columns: leave text out")
        return [rows.column(name, "text") for name in chosen]
    if names is None:
        return []
    for name in ("text", "html"):
        if name in names:
            return [rows.column(name, "text")]
    if len(names) == 1:
        return list(names)
    shown = ", ".join(names) or "none"
    raise ValueError(f"none of the columns is called text: name the one of the texts with text=; the columns are {shown}")


def written(rows: Iterable[Any], path: str | os.PathLike[str], id: str | None = None) -> str:
    """Write rows as JSON lines, each with a value for ``id`` if it is given, and return the path."""
    with open(path, "wb") as lines:
        for number, row in enumerate(rows):
            try:
                line = json_text(row)
                has_id = id is None or json_text((row or {}).get(id)) != "null"
            except TypeError as error:
                raise BadInput(f"row {number} cannot be written as a JSON line: {error}", number) from error
            if not has_id:
                told = f"row {number}: the id is missing: give every document one, or leave out id= (column {json_text(id)})"
                raise BadInput(told, number, id)
            # A lone surrogate cannot be encoded in UTF-8, so it is written as a JSON escape.
            lines.write(line.encode("utf-8", "backslashreplace") + b"\n")
    return os.fspath(path)
