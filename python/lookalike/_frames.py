"""Data of any kind as rows: its columns, how rows are chosen, and how its type is preserved.

No frame library is imported here: the type of a value says which library it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from lookalike._lookalike import Array, Table

__all__ = ["Rows", "refuse_taken", "rows_of"]


class Rows:
    """Data with rows. Each subclass handles one library.

    Rows are chosen by position later, so objects that their owner may change are copied: the object itself, not the values in it.
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def columns(self) -> list[str] | None:
        """Return the names of the columns; None if the data is one column of texts."""
        raise NotImplementedError

    def every_column(self) -> Iterable[str]:
        """Return all names that occur, if rows may have different columns."""
        return self.columns() or []

    def column(self, name: Any, asker: str, elsewhere: Collection[str] | None = ()) -> str:
        """Return the column for ``name``, which may be a number, or have dots after backslashes as in the command. It may be missing here if it is
        one of the columns ``elsewhere``, which are None if they are not known."""
        names = self.columns() or []
        spellings = (str(name), re.sub(r"\\(.)", r"\1", str(name)))
        for known in spellings:
            if names.count(known) > 1:
                raise ValueError(f"several columns are called {known!r}, which {asker} asks for: rename them first")
            if known in names:
                return known
        for known in spellings:
            if elsewhere is None or known in elsewhere:
                return known
        shown = ", ".join(names) or "none"
        raise ValueError(f"there is no column {name!r}, which {asker} asks for: the columns are {shown}")

    def arrow(self, names: list[str]) -> Any:
        """Return these columns as Arrow data or a list of dicts; the texts themselves if there are no columns."""
        raise NotImplementedError

    def take(self, mask: Array, is_kept: bool) -> Any:
        """Return the rows where ``mask`` is ``is_kept``, in the same type."""
        raise NotImplementedError

    def with_columns(self, table: Table) -> Any:
        """Return the rows with the columns of ``table`` appended."""
        return self.table().with_columns(table)

    def table(self) -> Table:
        """Return all rows as a table."""
        return Table(self.data)

    def dicts(self) -> Iterable[Any]:
        """Return the rows as dicts, or the texts."""
        return self.table().to_pylist()


class _Polars(Rows):
    def __init__(self, data: Any) -> None:
        super().__init__(data.clone())

    def columns(self) -> list[str] | None:
        return list(self.data.columns) if hasattr(self.data, "columns") else None

    def arrow(self, names: list[str]) -> Any:
        if not names:
            return self.data
        chosen = self.data.select(names)
        if any(str(kind) == "Object" for kind in chosen.schema.values()):
            # As Arrow data, these columns would contain addresses of memory.
            return chosen.to_dicts()
        # Arrow has no type for 128-bit integers, and its decimals do not hold those of more than 38 digits.
        wide = [name for name, kind in chosen.schema.items() if str(kind) in ("Int128", "UInt128")]
        return chosen.with_columns(chosen.get_column(name).cast(str) for name in wide) if wide else chosen

    def take(self, mask: Array, is_kept: bool) -> Any:
        import polars

        # Through Arrow, without a Python object for each row.
        kept = polars.Series(mask)
        return self.data.filter(kept if is_kept else ~kept)

    def with_columns(self, table: Table) -> Any:
        import polars

        beside = polars.DataFrame(table)
        frame = self.data if hasattr(self.data, "columns") else self.data.to_frame()
        return frame.hstack(beside.get_columns())

    def dicts(self) -> Iterable[Any]:
        return self.data.iter_rows(named=True) if hasattr(self.data, "columns") else iter(self.data)


class _Pandas(Rows):
    def __init__(self, data: Any) -> None:
        super().__init__(data.copy(deep=False))

    def columns(self) -> list[str] | None:
        return [str(name) for name in self.data.columns] if hasattr(self.data, "columns") else None

    def _list(self, column: Any) -> list[Any]:
        # In pandas, NaN, NaT, NA and None all mean missing; for the engine only None does.
        missing = column.isna()
        return [None if absent else value for value, absent in zip(column.tolist(), missing.tolist())]

    def arrow(self, names: list[str]) -> Any:
        try:
            import pyarrow

            if not names:
                return pyarrow.nulls(len(self.data)) if _is_missing(self.data) else pyarrow.Array.from_pandas(self.data)
            return pyarrow.Table.from_pandas(self._chosen(names), preserve_index=False)
        except (ImportError, ValueError, TypeError, OverflowError):
            # Without pyarrow, or if a column has values of several types; the engine then reports the error.
            return self._objects(names)

    def _chosen(self, names: list[str]) -> Any:
        """Return the columns with these names, which may be numbers in the frame."""
        import pandas

        known = self.columns() or []
        chosen = self.data.iloc[:, [known.index(name) for name in names]].set_axis(names, axis=1)
        # Arrow data would contain the numbers of periods, which nobody else can interpret.
        periods = [name for name in names if isinstance(chosen[name].dtype, pandas.PeriodDtype)]
        empty = [name for name in names if _is_missing(chosen[name])]
        chosen = chosen.copy() if periods or empty else chosen
        for name in periods:
            chosen[name] = chosen[name].map(str, na_action="ignore")
        for name in empty:
            chosen[name] = None
        return chosen

    def _objects(self, names: list[str]) -> Any:
        if not names:
            return self._list(self.data)
        chosen = self._chosen(names)
        columns = [self._list(chosen.iloc[:, at]) for at in range(len(names))]
        return [dict(zip(names, values)) for values in zip(*columns)]

    def take(self, mask: Array, is_kept: bool) -> Any:
        # By row numbers: pandas takes an empty list of booleans for a list of columns, and the frame would lose all of them.
        return self.data.iloc[[row for row, kept in enumerate(mask.to_pylist()) if kept is is_kept]]

    def with_columns(self, table: Table) -> Any:
        import pandas

        frame = self.data if hasattr(self.data, "columns") else self.data.to_frame()
        # With the index of the frame, because pandas aligns by it: otherwise rows in another order or with gaps would be mixed up. This is
        # the type that pandas itself uses for strings.
        string = pandas.Series(["a"]).dtype
        beside = {}
        for name in table.column_names:
            column = table[name]
            # The type is given by name, because for missing values pandas would guess another type for numbers and strings. Only its own
            # type of integers has missing values.
            kind = {"uint64": "UInt64" if name == "cluster_id" else "uint64", "double": "float64", "bool": "bool"}.get(column.type, string)
            beside[name] = pandas.Series(column.to_pylist(), index=frame.index, dtype=kind)
        return pandas.concat([frame, pandas.DataFrame(beside, index=frame.index)], axis=1)

    def dicts(self) -> Iterable[Any]:
        if hasattr(self.data, "columns"):
            return self._objects(self.columns() or [])  # type: ignore[no-any-return]
        return self._list(self.data)


def _is_missing(column: Any) -> bool:
    """Return true for a column of pandas that is all NaN, the type that it gives to texts that are all missing."""
    return column.dtype.kind == "f" and bool(column.isna().all())


class _PyArrow(Rows):
    def __init__(self, data: Any) -> None:
        # A reader can only be read once, but its rows are needed again. Files and datasets are read only once, too.
        for read in ("read_all", "to_table", "read"):
            if hasattr(data, read):
                data = getattr(data, read)()
                break
        super().__init__(data)

    def columns(self) -> list[str] | None:
        return list(self.data.column_names) if hasattr(self.data, "column_names") else None

    def arrow(self, names: list[str]) -> Any:
        return self.data.select(names) if names else self.data

    def take(self, mask: Array, is_kept: bool) -> Any:
        import pyarrow

        chosen = pyarrow.array([kept is is_kept for kept in mask.to_pylist()], pyarrow.bool_())
        try:
            return self.data.filter(chosen)
        except NotImplementedError:
            # Not supported for every type, such as string_view or runs.
            if not hasattr(self.data, "column_names"):
                chosen_values = [value for value, kept in zip(self.data.to_pylist(), chosen.to_pylist()) if kept]
                return pyarrow.array(chosen_values, self.data.type)
            return pyarrow.table(Table(self.data).filter(mask, is_kept)).cast(self.data.schema)

    def with_columns(self, table: Table) -> Any:
        import pyarrow

        own = self.data if hasattr(self.data, "column_names") else pyarrow.table({"text": self.data})
        if isinstance(own, pyarrow.RecordBatch):
            own = pyarrow.Table.from_batches([own])
        for name in table.column_names:
            own = own.append_column(name, pyarrow.array(table[name]))
        return own

    def dicts(self) -> Iterable[Any]:
        return self.data.to_pylist()  # type: ignore[no-any-return]


class _Dataset(Rows):
    """``datasets.Dataset``: rows are chosen by number, so nothing is copied."""

    def columns(self) -> list[str] | None:
        return list(self.data.column_names)

    def arrow(self, names: list[str]) -> Any:
        # Dataset formats such as torch would turn columns into tensors; the caller's rows keep their format.
        return self._whole(self.data.select_columns(names))

    def _whole(self, data: Any) -> Any:
        """Return all rows as Arrow data."""
        data = data.with_format("arrow")
        if getattr(data, "_indices", None) is None or not len(data):
            return data[:]
        import pyarrow

        # Of a dataset that was shuffled or filtered, `[:]` has a batch for each row.
        return pyarrow.concat_tables(part.combine_chunks() for part in data.iter(batch_size=1_000))

    def take(self, mask: Array, is_kept: bool) -> Any:
        return self.data.select([row for row, kept in enumerate(mask.to_pylist()) if kept is is_kept])

    def with_columns(self, table: Table) -> Any:
        import pyarrow

        dataset = self.data
        for name in table.column_names:
            # Arrow data, which has a type even if all values are missing.
            dataset = dataset.add_column(name, pyarrow.array(table[name]))
        return dataset

    def table(self) -> Table:
        return Table(self._whole(self.data))

    def dicts(self) -> Iterable[Any]:
        # Without the format of the dataset, in which a row may be a table or a tensor.
        return iter(self.data.with_format(None))


class _Arrow(Rows):
    """Any other object with Arrow data, as the package's own table."""

    def __init__(self, data: Any) -> None:
        super().__init__(data if isinstance(data, Table) else Table(data))

    def columns(self) -> list[str] | None:
        return self.data.column_names

    def arrow(self, names: list[str]) -> Any:
        return self.data

    def take(self, mask: Array, is_kept: bool) -> Any:
        return self.data.filter(mask, is_kept)

    def table(self) -> Table:
        return self.data


class _List(Rows):
    def __init__(self, data: Iterable[Any]) -> None:
        super().__init__(list(data))

    def columns(self) -> list[str] | None:
        # All rows are of the same kind, which the first one that is not None tells.
        first = next((row for row in self.data if row is not None), None)
        return list(self.every_column()) if isinstance(first, Mapping) else None

    def column(self, name: Any, asker: str, elsewhere: Collection[str] | None = ()) -> str:
        # A list without rows, such as the batch of a day without news, has any column.
        return super().column(name, asker, elsewhere) if self.data else str(name)

    def every_column(self) -> Iterable[str]:
        return self._names

    @cached_property
    def _names(self) -> dict[str, None]:
        """The keys of all rows, because a row may lack keys that others have."""
        names: dict[str, None] = {}
        for row in self.data:
            if isinstance(row, Mapping):
                names.update(dict.fromkeys(row))
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"the keys of rows must be strings, not {type(name).__name__} ({name!r})")
        return names

    def arrow(self, names: list[str]) -> Any:
        return self.data

    def take(self, mask: Array, is_kept: bool) -> Any:
        return [row for row, kept in zip(self.data, mask.to_pylist()) if kept is is_kept]

    def with_columns(self, table: Table) -> Any:
        rows = (row if isinstance(row, Mapping) else {"text": row} for row in self.data)
        return [{**row, **beside} for row, beside in zip(rows, table.to_pylist())]

    def dicts(self) -> Iterable[Any]:
        return self.data


def refuse_taken(names: Iterable[str], beside: Table) -> None:
    """Refuse data with a column that has the same name as an added one: one of the two would be lost."""
    taken = sorted(set(names) & set(beside.column_names))
    if taken:
        raise ValueError(f"the data has columns of the names that annotations have: {', '.join(taken)}; rename them first")


def rows_of(data: Any) -> Rows:
    """Return data of any kind as rows."""
    # Compare names of types, so that nothing is imported: no value can be of a library that is not loaded. Check base classes too, because
    # an instance of a user's subclass of a frame is a frame.
    for kind in type(data).__mro__:
        root, name = kind.__module__.partition(".")[0], kind.__name__
        if root == "polars" and name == "LazyFrame":
            return _Polars(data.collect())
        if root == "polars" and name in ("DataFrame", "Series"):
            return _Polars(data)
        if root == "pandas" and name in ("DataFrame", "Series"):
            return _Pandas(data)
        if root == "pyarrow" and hasattr(data, "schema" if name != "ChunkedArray" else "chunks"):
            return _PyArrow(data)
        if root == "pyarrow" and hasattr(data, "to_pylist"):
            return _PyArrow(data)
        if root == "datasets" and name == "Dataset":
            return _Dataset(data)
    # After the known libraries, whose objects also have Arrow data, but would lose their type.
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _Arrow(data)
    if isinstance(data, (bytes, Mapping)):
        raise TypeError(f"data must be several documents, not one {type(data).__name__}")
    if isinstance(data, Iterable):
        return _List(data)
    raise TypeError(
        "data must be a data frame, a dataset, Arrow data, an iterable of str or dict, or a path, not "
        + type(data).__name__
    )
