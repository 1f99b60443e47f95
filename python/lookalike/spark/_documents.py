"""The rows of a DataFrame as documents: the columns that are used, and their form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookalike.spark._types import Column, DataFrame

__all__ = ["DocumentColumns", "checksum_of_rows", "id_column", "text_column"]


def _kind(frame: DataFrame, name: str) -> str:
    """The type of a column in Spark's words."""
    return frame.schema[name].dataType.simpleString()


def _ensure_there(frame: DataFrame, name: str, asked: str) -> None:
    if name not in frame.columns:
        raise ValueError(f"there is no column {name!r}, which {asked} asks for: the columns are {', '.join(frame.columns)}")


def _own(name: str) -> Column:
    """A column by its exact name, whatever characters it contains."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _is_text(kind: str) -> bool:
    return kind == "string" or kind.startswith(("varchar", "char", "string "))


def text_column(frame: DataFrame, text: str | Sequence[str] | None) -> Column:
    """The column of texts; several are joined by line breaks.

    Raises:
        ValueError: there is no such column, or none is named and there is no obvious one.
        TypeError: it is not a column of strings.
    """
    from pyspark.sql import functions as F

    if callable(text):
        raise TypeError("text must name columns: make a column of what the function gives, with a function of Spark")
    if text is None:
        names = frame.columns
        if "text" in names:
            text = "text"
        elif len(names) == 1:
            text = names[0]
        else:
            raise ValueError(
                "none of the columns is called text: name the one of the texts with text=; the columns are " + ", ".join(names)
            )
    chosen = [text] if isinstance(text, str) else list(text)
    if not chosen:
        raise ValueError("text names no column")
    for name in chosen:
        _ensure_there(frame, name, "text")
        kind = _kind(frame, name)
        if not _is_text(kind):
            remedy = "; decode it first" if kind == "binary" else ""
            raise TypeError(f'texts must be strings, not {kind} (column "{name}"){remedy}')
    columns = [_own(name) for name in chosen]
    if len(columns) == 1:
        return columns[0]
    # A text is missing if all of its parts are.
    # `concat_ws` leaves null parts out, as the engine does, but gives an empty text where all are null.
    return F.when(F.coalesce(*columns).isNotNull(), F.concat_ws("\n", *columns))


def id_column(frame: DataFrame, id: str | None) -> Column:
    """The column of ids, as strings.

    Raises:
        ValueError: none is named, or there is no such column.
        TypeError: its values are neither strings nor integers.
    """
    if id is None:
        raise ValueError("rows of a DataFrame have no numbers to be called by: name the column of ids with id=")
    _ensure_there(frame, id, "id")
    kind = _kind(frame, id)
    if not _is_text(kind) and kind not in ("tinyint", "smallint", "int", "bigint"):
        raise TypeError(f'ids must be strings or whole numbers, not {kind} (column "{id}"): cast it')
    return _own(id).cast("string")


def checksum_of_rows(documents: DataFrame) -> Column:
    """A number for each row of documents, whose sum detects changed rows. It has 30 bits, so sums over some billions of rows fit."""
    from pyspark.sql import functions as F

    return F.xxhash64(*map(_own, documents.columns)).bitwiseAND(F.lit((1 << 30) - 1))


class DocumentColumns:
    """The columns of a DataFrame that are used, and their purposes."""

    def __init__(
        self,
        *,
        text: str | Sequence[str] | None,
        id: str | None,
        value: str | None,
        category: str | None,
        position: str | None,
    ) -> None:
        self.text = text
        self.id = id
        self.value = value
        self.category = category
        self.position = position

    def documents(self, frame: DataFrame, *, is_against: bool) -> DataFrame:
        """The documents: ``id``, ``against``, ``text`` and, if needed, ``value``, ``category``, ``position``.

        Raises:
            ValueError, TypeError: a column is missing, or has an unsuitable type.
        """
        from pyspark.sql import functions as F

        columns = [
            id_column(frame, self.id).alias("id"),
            F.lit(is_against).alias("against"),
            text_column(frame, self.text).alias("text"),
        ]
        for alias, name, asked in [("value", self.value, "keep"), ("category", self.category, "within or across")]:
            if name is None:
                continue
            _ensure_there(frame, name, asked)
            kind = _kind(frame, name)
            if kind.startswith(("array", "map", "struct", "binary", "variant", "void")):
                raise TypeError(f'{asked} reads one value of a row, not {kind} (column "{name}")')
            column = _own(name)
            # Decimal numbers have no exact form in the kernel; their digits have.
            columns.append((column.cast("string") if kind.startswith("decimal") and alias == "category" else column).alias(alias))
        if self.position is not None:
            _ensure_there(frame, self.position, "position")
            kind = _kind(frame, self.position)
            if kind not in ("tinyint", "smallint", "int", "bigint"):
                raise TypeError(f'position must be whole numbers, not {kind} (column "{self.position}")')
            columns.append(_own(self.position).cast("long").alias("position"))
        return frame.select(*columns)

    def told(self, frame: DataFrame) -> dict[str, Any]:
        """The facts that a resumed job must share: names and types of the columns used."""
        texts = [self.text] if isinstance(self.text, str) or self.text is None else list(self.text)
        names = [self.id, self.value, self.category, self.position, *texts]
        return {name: _kind(frame, name) for name in dict.fromkeys(names) if name is not None}
