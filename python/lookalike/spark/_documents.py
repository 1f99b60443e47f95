"""The rows of a DataFrame as documents: the columns that are used, and their form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookalike._documents import parts_of
from lookalike.spark._types import Column, DataFrame

__all__ = [
    "DocumentColumns",
    "checksum_of_rows",
    "ensure_distinct_names",
    "ensure_frame",
    "id_column",
    "parts_of",
    "text_by_default",
    "text_column",
    "united",
]


def ensure_frame(data: Any, name: str, instead: str | None = None) -> None:
    """Refuse anything but a DataFrame of Spark; ``instead`` is the function of the package that takes other data, if there is one."""
    if not hasattr(data, "mapInArrow") or not hasattr(data, "sparkSession"):
        remedy = "" if instead is None else f": for other data there is lookalike.{instead}"
        raise TypeError(f"{name} must be a DataFrame of Spark, not {type(data).__name__}{remedy}")
    if data.isStreaming:
        raise TypeError(f"{name} is a stream, and decisions need all rows: call this for each batch of foreachBatch, with earlier data as against")


def _kind(frame: DataFrame, name: str) -> str:
    """Return the type of a column, or of a field ``a.b`` of a struct, in Spark's words."""
    found = _type(frame, name)
    assert found is not None, f"there is no column {name!r}"
    return found.simpleString()


def _type(frame: DataFrame, name: str) -> Any:
    """Return the type of a column or field; None if there is none."""
    if name in frame.columns:
        return frame.schema[name].dataType
    found: Any = frame.schema
    for part in parts_of(name):
        if part not in getattr(found, "names", []):
            return None
        found = found[part].dataType
    return found


def _ensure_there(frame: DataFrame, name: Any, asked: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{asked} must name a column, not be {name!r}")
    if _type(frame, name) is None:
        raise ValueError(f"there is no column {name!r}, which {asked} asks for: the columns are {', '.join(frame.columns)}")
    ensure_distinct_names(frame, name if name in frame.columns else parts_of(name)[0])


def ensure_distinct_names(frame: DataFrame, *wanted: str) -> None:
    """Refuse columns that Spark cannot tell from others, because their names are equal or differ only in case. If none is named, all are
    checked."""
    is_exact = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    for name in wanted or frame.columns:
        alike = [other for other in frame.columns if other == name or (not is_exact and other.lower() == name.lower())]
        if len(alike) > 1:
            remedy = "rename one" if len(set(alike)) == 1 else "rename one, or set spark.sql.caseSensitive"
            raise ValueError(f"Spark cannot tell the columns {' and '.join(alike)} apart: {remedy}")


def _own(frame: DataFrame, name: str) -> Column:
    """Return a column by its exact name, whatever characters it contains, or a field ``a.b`` of a struct."""
    from pyspark.sql import functions as F

    parts = [name] if name in frame.columns else parts_of(name)
    return F.col(".".join("`" + part.replace("`", "``") + "`" for part in parts))


def _is_text(kind: str) -> bool:
    return kind == "string" or kind.startswith(("varchar", "char", "string "))


def _is_integer(kind: str) -> bool:
    return kind in ("tinyint", "smallint", "int", "bigint")


def _are_compatible(one: str, other: str) -> bool:
    """Return true if one column can hold the values of both types without changing any: integers of all sizes, but not decimals of two
    scales."""
    return (
        one == other
        or (_is_text(one) and _is_text(other))
        or (_is_integer(one) and _is_integer(other))
        or {one, other} == {"float", "double"}
    )


def _has_no_value(frame: DataFrame, name: str) -> bool:
    return _is_text(_kind(frame, name)) and frame.where(_own(frame, name).isNotNull()).isEmpty()


def united(documents: DataFrame, against: DataFrame) -> DataFrame:
    """Return the rows of both, after `DocumentColumns.ensure_same_types`: strings beside another type have no value, and take that type."""
    from pyspark.sql import functions as F

    def cast(rows: DataFrame, other: DataFrame) -> DataFrame:
        for name in rows.columns:
            if _is_text(_kind(rows, name)) and not _is_text(_kind(other, name)):
                rows = rows.withColumn(name, F.col(name).cast(other.schema[name].dataType))
        return rows

    return cast(documents, against).unionByName(cast(against, documents))


def text_by_default(names: Sequence[str]) -> str | None:
    """Return the default column of texts."""
    if "text" in names:
        return "text"
    return names[0] if len(names) == 1 else None


def text_column(frame: DataFrame, text: str | Sequence[str] | None) -> Column:
    """Return the column of texts; several are joined by line breaks.

    Raises:
        ValueError: there is no such column, or none is named and there is no obvious one.
        TypeError: it is not a column of strings.
    """
    from pyspark.sql import functions as F

    if callable(text):
        raise TypeError("text must name columns: make a column of what the function gives, with a function of Spark")
    if text is None:
        names = frame.columns
        text = text_by_default(names)
        if text is None:
            raise ValueError(
                "none of the columns is called text: name the one of the texts with text=; the columns are " + ", ".join(names)
            )
    if not isinstance(text, str) and not isinstance(text, Sequence):
        raise TypeError(f"text must name one or several columns, not be {text!r}")
    chosen = [text] if isinstance(text, str) else list(text)
    if not chosen:
        raise ValueError("text names no column")
    for name in chosen:
        _ensure_there(frame, name, "text")
        kind = _kind(frame, name)
        if not _is_text(kind):
            remedy = "; decode it first" if kind == "binary" else ""
            raise TypeError(f'texts must be strings, not {kind} (column "{name}"){remedy}')
    if len(chosen) == 1 and (chosen[0] if chosen[0] in frame.columns else parts_of(chosen[0])[-1]) == "html":
        raise ValueError(
            f"the column {chosen[0]!r} holds pages for the command, and here tags would be compared as words: take the text out first, with "
            "the function lookalike_extract that register() brings, or rename the column to compare it as it is"
        )
    columns = [_own(frame, name) for name in chosen]
    if len(columns) == 1:
        return columns[0]
    # A text is missing if all of its parts are. `concat_ws` leaves null parts out, as the engine does, but returns an empty text if all are
    # null.
    return F.when(F.coalesce(*columns).isNotNull(), F.concat_ws("\n", *columns))


def id_column(frame: DataFrame, id: str | None) -> Column:
    """Return the column of ids, as strings.

    Raises:
        ValueError: none is named, or there is no such column.
        TypeError: its values are neither strings nor integers.
    """
    if id is None:
        raise ValueError("a DataFrame has no row numbers to use as ids: name the id column with id=")
    _ensure_there(frame, id, "id")
    kind = _kind(frame, id)
    # Spark has no unsigned integers: those of 64 bits are decimals without a fraction.
    is_whole = _is_integer(kind) or (kind.startswith("decimal") and kind.endswith(",0)"))
    if not _is_text(kind) and not is_whole:
        # As strings, Spark would write 12345678.5 as 1.23456785E7.
        raise TypeError(f'ids must be strings or whole numbers, not {kind} (column "{id}"): make them strings where they are written')
    return _own(frame, id).cast("string")


def checksum_of_rows(documents: DataFrame) -> Column:
    """Return a number for each row of documents, whose sum detects changed rows. It has 30 bits, so that sums over some billions of rows
    fit."""
    from pyspark.sql import functions as F

    return F.xxhash64(*(_own(documents, name) for name in documents.columns)).bitwiseAND(F.lit((1 << 30) - 1))


class DocumentColumns:
    """The columns of a DataFrame that are used, and their roles."""

    def __init__(
        self,
        *,
        text: str | Sequence[str] | None,
        id: str | None,
        value: str | None,
        category: str | None,
        position: str | None,
        category_option: str = "within or across",
    ) -> None:
        self.text = text
        self.id = id
        self.value = value
        self.category = category
        self.position = position
        #: Option that asks for the category.
        self.category_option = category_option

    def documents(self, frame: DataFrame, *, is_against: bool) -> DataFrame:
        """Return the documents: ``id``, ``against``, ``text`` and, if needed, ``value``, ``category``, ``position``.

        Raises:
            ValueError, TypeError: a column is missing, or has an unsuitable type.
        """
        from pyspark.sql import functions as F

        columns = [
            id_column(frame, self.id).alias("id"),
            F.lit(is_against).alias("against"),
            text_column(frame, self.text).alias("text"),
        ]
        for alias, name, asked in [("value", self.value, "keep"), ("category", self.category, self.category_option)]:
            if name is None:
                continue
            _ensure_there(frame, name, asked)
            kind = _kind(frame, name)
            if kind.startswith(("array", "map", "struct", "binary", "variant", "void")):
                raise TypeError(f'{asked} reads one value of a row, not {kind} (column "{name}")')
            if kind.startswith(("interval year", "interval month")):
                raise TypeError(f'{asked} cannot read {kind}, which has no type in Arrow (column "{name}"): cast it')
            column = _own(frame, name)
            # Decimals have no exact form in the kernel, but their digits do.
            columns.append((column.cast("string") if kind.startswith("decimal") and alias == "category" else column).alias(alias))
        if self.position is not None:
            _ensure_there(frame, self.position, "position")
            kind = _kind(frame, self.position)
            if not _is_integer(kind):
                raise TypeError(f'position must be whole numbers, not {kind} (column "{self.position}")')
            columns.append(_own(frame, self.position).cast("long").alias("position"))
        return frame.select(*columns)

    def strings(self, frame: DataFrame) -> dict[str, Column]:
        """Return those columns of strings in a frame that are used, by name."""
        texts: Sequence[str | None] = [self.text] if isinstance(self.text, str) else self.text or [text_by_default(frame.columns)]
        names = dict.fromkeys(name for name in (self.id, *texts, self.value, self.category) if name is not None)
        kinds = {name: _type(frame, name) for name in names}
        return {name: _own(frame, name) for name, kind in kinds.items() if kind is not None and _is_text(kind.simpleString())}

    def ensure_same_types(self, data: DataFrame, against: DataFrame) -> None:
        """Refuse to compare values of different types: in a common column Spark would change some of them. Only a column of strings
        without any value goes with all types, because files without rows do not tell theirs."""
        for name, asked in [(self.value, "keep"), (self.category, self.category_option)]:
            if name is None:
                continue
            own, other = _kind(data, name), _kind(against, name)
            if not (_are_compatible(own, other) or _has_no_value(data, name) or _has_no_value(against, name)):
                raise TypeError(f'against: {asked} reads {other} there and {own} in the data (column "{name}"): cast one of them')

    def told(self, frame: DataFrame) -> dict[str, Any]:
        """Return the facts that a resumed job must share: names and types of the columns used."""
        texts = [self.text] if isinstance(self.text, str) or self.text is None else list(self.text)
        names = [self.id, self.value, self.category, self.position, *texts]
        return {name: _kind(frame, name) for name in dict.fromkeys(names) if name is not None}
