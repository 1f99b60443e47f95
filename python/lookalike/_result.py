"""Results of deduplication."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from lookalike import _lookalike
from lookalike._errors import LookalikeError, damaged_files, warn
from lookalike._explain import Explanation
from lookalike._frames import Rows, refuse_taken, rows_of
from lookalike._lookalike import Array, Decisions, Scheme, Table
from lookalike._options import refuse_none
from lookalike._page import Page
from lookalike._report import summary_page
from lookalike._saved import TemporaryFolder, copy_results

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DedupResult", "Records"]


class DedupResult:
    """Decisions of :func:`lookalike.dedup`: the documents kept, the documents removed, and their survivors.

    A notebook shows counts, the distribution of similarities and the largest clusters.
    """

    #: Repeats the job with another threshold.
    _again: Callable[[float], DedupResult]

    @property
    def kept(self) -> Any:
        """The kept documents, in the type of the data, with unchanged rows in their order; for files, :class:`Records` in the order of ids, byte by
        byte, or, with ``order="input"``, of the inputs; rows of Parquet and Arrow files stay in the order of their file.

        They are the rows at the time of the call: a frame or list may be sorted or shortened afterwards, but changes to the dicts of a
        list show here, too. A ``LazyFrame``, and a reader, file or dataset of pyarrow, is read once and comes back as a frame or
        table; other Arrow data, such as a DuckDB relation, comes back as a :class:`Table`.
        """
        raise NotImplementedError

    @property
    def removed(self) -> Any:
        """The removed documents, in the same form as ``kept``."""
        raise NotImplementedError

    @property
    def mask(self) -> Array:
        """True for every kept document: a column of bool with ``counts["documents"]`` values, in the order of the data.

        Files are in the order of the inputs, files of a folder in the order of their paths, and records in the order of their file. A
        record that could not be read is not a document and has no value.
        """
        raise NotImplementedError

    @property
    def clusters(self) -> Table:
        """A row for each removed document: ``survivor`` and ``id`` (large_string), ``similarity`` (double, the exact resemblance, in
        [0, 1]), ``reason`` (string), ``against`` (bool: true if the survivor is from ``against``, else null).

        Reasons are ``exact``, ``near``, and ``same-main-text`` for HTML pages that differ outside their main text. Rows are in the order
        of the survivors' ids, then of their own ids. A document of ``against`` may have the same id as a new one. If documents of the data have the same
        id, ``counts["ids_repeated"]`` of them have a number after it, such as ``p#2``, which a join with the data by id does not find:
        ``repeated_ids="refuse"`` refuses such data.
        """
        raise NotImplementedError

    @property
    def pairs(self) -> Table:
        """Pairs of similar documents: ``a``, ``b`` (ids, the smaller first), ``similarity`` (double, in [0, 1]), ``against`` (string:
        ``a`` or ``b``, whichever is from ``against``, else null), in the order of ids.

        The pairs are each removed document with its survivor; for a job with ``pairs="all"``, they are all pairs that reach the threshold.
        """
        raise NotImplementedError

    def annotated(self) -> Any:
        """The data, in its order, with columns for the decision on each document.

        The columns are ``cluster_id`` (uint64, from 1, as in ``clusters.jsonl``; null without a cluster), ``cluster_size`` (uint64),
        ``survivor_id`` (its own id if it is kept), ``similarity`` to the survivor (double, in [0, 1]; null if it is kept), ``reason`` (null if it is kept), and two under the names that other
        libraries use: ``representative_id`` (as ``survivor_id``) and ``is_duplicate`` (bool). The types do not depend on the data. In pandas,
        ``cluster_id`` is ``UInt64``, which allows missing values, and strings have the type that pandas itself gives them.

        For files, it is a :class:`Table` of all records, in the order of ``mask``, with the types of Parquet results. Unlike ``kept`` and
        ``removed``, this table is in memory.

        Raises ``ValueError`` if the data has columns of these names, :class:`LookalikeError` if it consists of tables with different columns.
        """
        raise NotImplementedError

    @property
    def counts(self) -> dict[str, Any]:
        """Numbers of documents: ``documents``, ``kept``, ``removed``, ``exact``, ``near``, ``clusters``, and those of ``run.json``.

        ``unreadable`` is the number of records that could not be read, ``damaged`` the number of files that could not be read to their end.
        """
        raise NotImplementedError

    @property
    def scheme(self) -> Scheme:
        """The scheme by which features were made from texts."""
        raise NotImplementedError

    @property
    def threshold(self) -> float:
        """Minimum resemblance of near-duplicates, in (0, 1]; without effect with ``method="exact"``, which finds no near-duplicates."""
        raise NotImplementedError

    def at(self, threshold: float) -> DedupResult:
        """The result with another threshold, higher or lower.

        The job runs again, from the rows as in ``kept`` or from the files as they are now, and takes as long as the first time, because another threshold
        needs comparisons between removed documents that were not made before. To compare many thresholds, use
        :func:`lookalike.evaluate.sweep`.

        Raises :class:`LookalikeError` if the job had ``into``, because the collection already has the documents, or if its paths were
        relative to another working directory.
        """
        refuse_none(threshold=threshold)
        return self._again(threshold)

    def explain(self, a: Any, b: Any, *, against: str | None = None) -> Explanation:
        """Explain why two documents match or do not, with the settings of the job. Ids are those in ``clusters`` and ``pairs``.

        ``against`` is ``"a"`` or ``"b"`` if that one is a document of the option ``against``, as in ``pairs``. Without it, if such a document has the
        id of a new one, the new one is meant (with a :class:`LookalikeWarning`), unless the other is its survivor, or both ids are the same.

        Files are read again. Raises ``KeyError`` if there is no such document, :class:`LookalikeError` if its text is not available: in
        files that have changed, in a collection, or too long to be read.
        """
        raise NotImplementedError

    def report(self) -> Page:
        """The command's page ``report.html``; a notebook shows it.

        For data in memory, the job runs again to make it. If it had ``into``, this raises :class:`LookalikeError`, because the collection has the
        documents by now: write the rows to a file and read that, or call :func:`lookalike.dedup` without ``into`` before.
        """
        raise NotImplementedError

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the output directory of ``lookalike dedup``, with the same bytes, and return its path.

        Data in memory is written as JSON lines first, and the job runs again. Values have the forms that the command gives
        those of a table: numbers that JSON lacks, such as NaN, are null, times and durations are ISO 8601, decimals and UUIDs are strings,
        arrays are lists. Row numbers and joined texts are added as ``id`` and ``text``, or as ``id_`` and ``text_`` if such columns exist. Raises
        ``FileExistsError`` if the folder is not empty; with ``overwrite=True``, :class:`LookalikeError` if a file in it has the name of a result, but
        no job wrote it; :class:`BadInput` for a row that JSON cannot represent, ``ValueError`` for two
        columns with one name, and :class:`LookalikeError` if the data is in memory and the job had ``into``, as for ``report``, or if texts are compared with pages of ``against``, because no file could have both in one field.
        """
        raise NotImplementedError

    def _largest_clusters(self, most: int) -> list[list[tuple[str, str | None]]]:
        """Return ids and texts of the largest clusters, the survivor first."""
        raise NotImplementedError

    def __copy__(self) -> DedupResult:
        return self

    def __reduce__(self) -> NoReturn:
        # Otherwise Python would report that it cannot pickle some internal part, which means nothing to the user.
        raise TypeError("a result of dedup cannot be pickled, as it reads the data again: pickle its clusters, mask or annotated(), or save() it")

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"<lookalike.DedupResult: {counts['documents']:,} documents, {counts['kept']:,} kept, "
            f"{counts['exact']:,} exact copies, {counts['near']:,} near-duplicates>"
        )

    def _repr_html_(self) -> str:
        similarities = self.clusters["similarity"].to_pylist()
        return summary_page(self.counts, self.threshold, similarities, self._largest_clusters(5))


def _numbers(decisions: Decisions, a: Any, b: Any, against: str | None) -> list[tuple[str, int]]:
    """Return each id with the number of its document, counting those that others were compared with first."""
    if against not in (None, "a", "b"):
        raise ValueError(f"against must be 'a', 'b' or None, not {against!r}")
    names = {"a": str(a), "b": str(b)}
    numbers, is_guess = decisions.pair(names["a"], names["b"], against)
    numbered = []
    for (side, name), number in zip(names.items(), numbers):
        if number is None:
            raise KeyError(f"no document {'of against ' if side == against else ''}has the id {name!r}")
        numbered.append((name, number))
    if is_guess:
        warn([f"a document of against has the same id as one of {a} and {b}: new documents are explained; say against='a' or 'b' for the other"])
    return numbered


def _counted(read: dict[str, Any], decided: dict[str, Any], skipped: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    exact, near = decided["removed_exact"], decided["removed_near"]
    counts = {
        "documents": read["documents"] - read["against"],
        "kept": decided["kept"],
        "removed": exact + near,
        "exact": exact,
        "near": near,
        "clusters": decided["clusters"],
    }
    return {"damaged": damaged_files(skipped), **read, **decided, **counts}


class FrameResult(DedupResult):
    """Decisions on data in memory."""

    def __init__(
        self,
        rows: Rows,
        decisions: Decisions,
        pairs: Table,
        summary: list[Any],
        *,
        texts: Callable[[], Iterable[str | None]],
        again: Callable[[float], DedupResult],
        save: Callable[[str, bool], None],
        explain: Callable[[tuple[str, int], tuple[str, int]], Explanation],
    ) -> None:
        self._rows = rows
        self._decisions = decisions
        self._pairs = pairs
        read, decided, self._scheme, self._threshold = summary
        self._counts = _counted(read, decided)
        self._texts = texts
        self._again = again
        self._save = save
        self._explain = explain

    @property
    def kept(self) -> Any:
        return self._rows.take(self.mask, True)

    @property
    def removed(self) -> Any:
        return self._rows.take(self.mask, False)

    @property
    def mask(self) -> Array:
        return self._decisions.mask

    @property
    def clusters(self) -> Table:
        return self._decisions.clusters

    @property
    def pairs(self) -> Table:
        return self._pairs

    def annotated(self) -> Any:
        annotations = self._decisions.annotations
        refuse_taken(self._rows.every_column(), annotations)
        return self._rows.with_columns(annotations)

    @property
    def counts(self) -> dict[str, Any]:
        return dict(self._counts)

    @property
    def scheme(self) -> Scheme:
        return Scheme(self._scheme)

    @property
    def threshold(self) -> float:
        return float(self._threshold)

    def explain(self, a: Any, b: Any, *, against: str | None = None) -> Explanation:
        first = self._decisions.against
        return self._explain(*((id, number - first) for id, number in _numbers(self._decisions, a, b, against)))

    def report(self) -> Page:
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
            self.save(Path(folder, "results"))
            return Page(Path(folder, "results", "report.html").read_text(encoding="utf-8"))

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        from pathlib import Path

        self._save(os.fspath(folder), overwrite)
        return Path(folder)

    def _largest_clusters(self, most: int) -> list[list[tuple[str, str | None]]]:
        clusters = [cluster[:2] for cluster in self._decisions.largest_clusters(most)]
        wanted = {row for cluster in clusters for row in cluster if row is not None}
        ids = self._decisions.ids
        # Some rows are None: a survivor among the data that others are compared with is not a row of this data.
        known = {row: (ids[row], text) for row, text in enumerate(self._texts()) if row in wanted}
        return [[known[row] for row in cluster if row is not None] for cluster in clusters]


class Records:
    """Records of result files: an iterable of dicts that is read again each time, and a table for anything that takes Arrow data.

    If each document is a file, its record has the ``id`` and the ``file``, which is its copy in the output directory. Iteration gives times of Parquet as
    Python's types, which have no nanoseconds; the table keeps them.
    """

    def __init__(self, paths: list[Path], folder: Any, count: int | None = None) -> None:
        #: The files, in the format of the results.
        self.paths = paths
        # The folder lives as long as the records may be read.
        self._folder = folder
        # Known if a job has counted them: `list` asks for the length, and the files would otherwise be read twice.
        self._count = count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for path in self.paths:
            if path.suffix == ".parquet":
                yield from _lookalike.read_parquet(os.fspath(path))
            else:
                yield from map(json.loads, _lines(path))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _table(self.paths).__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(1 for _ in self)
        return self._count

    def __repr__(self) -> str:
        return f"<lookalike.Records in {', '.join(map(str, self.paths))}>"


def rows_of_records(records: Records) -> Rows:
    """Return the records as data for a job."""
    if records.paths and all(path.suffix == ".parquet" for path in records.paths):
        # As Python values, times would lose nanoseconds, and bytes would be read differently.
        joined = _lookalike.concat_tables([_lookalike.read_parquet(os.fspath(path)) for path in records.paths])
        if joined is not None:
            return rows_of(joined)
    # This also covers several tables with different columns.
    return rows_of(list(records))


def _table(paths: list[Path]) -> Table:
    """Return all records of some files, one file after another."""
    tables = [_lookalike.read_parquet(os.fspath(path)) for path in paths if path.suffix == ".parquet"]
    lines = [path for path in paths if path.suffix != ".parquet"]
    if lines:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
            # First, because `_paths` names shared files before tables, and rows are found by their position in this order.
            tables.insert(0, _lookalike.table_of_lines((line for path in lines for line in _lines(path)), folder))
    joined = _lookalike.concat_tables(tables)
    if joined is None:
        raise LookalikeError("the results are several tables, each with its own columns: read the files in paths one by one")
    return joined


def _lines(path: Path) -> Iterator[bytes]:
    """Return the lines of a result file, however it is compressed."""
    if path.suffix == ".zst":
        yield from _lookalike.ZstdLines(path)
        return
    if path.suffix == ".gz":
        import gzip

        with gzip.open(path, "rb") as unpacked:
            yield from unpacked
        return
    with open(path, "rb") as plain:
        yield from plain


class PathResult(DedupResult):
    """Results in the output directory of a job."""

    def __init__(
        self,
        folder: TemporaryFolder,
        summary: dict[str, Any],
        *,
        largest: list[list[tuple[str, str | None]]],
        tables: list[list[Path] | None],
        in_order: bool,
        again: Callable[[float], DedupResult],
        explain: Callable[[dict[str, Any], dict[str, Any]], Explanation],
    ) -> None:
        from pathlib import Path

        # The folder is removed with the result and all records read from it.
        self._owner = folder
        self._folder = Path(folder.name, "results")
        self.summary = summary
        self._largest = largest
        # Files of kept and of removed rows for each input that has tables of its own.
        self._tables = tables
        self._in_order = in_order
        self._again = again
        self._explain = explain
        self._counts = _counted(summary["counts"], summary["decisions"], summary["skipped"])
        self._opened: tuple[Decisions, Array] | None = None

    def _decided(self) -> tuple[Decisions, Array]:
        """Return the decisions on all documents, and the row of each in the results that `_paths` lists for both kinds."""
        if self._opened is None:
            self._owner.ensure()
            own = [tables is not None for tables in self._tables]
            self._opened = _lookalike.open_decisions(os.path.join(self._owner.name, "decisions"), self._in_order, own)
        return self._opened

    @property
    def folder(self) -> Path:
        """The output directory, which lives as long as the result."""
        return self._folder

    @property
    def decisions(self) -> Decisions:
        """The decisions on all documents."""
        return self._decided()[0]

    def _paths(self, kinds: Iterable[int]) -> list[Path]:
        """Return the files of kept records (0) and of removed ones (1): first those of inputs without tables of their own, then those
        tables."""
        self._owner.ensure()
        own = [tables for tables in self._tables if tables is not None]
        names = [name for tables in own for name in tables]
        # The suffix depends on format and compression; the stem does not.
        shared = [sorted(self._folder.glob(f"{('kept', 'removed')[kind]}.*")) for kind in kinds]
        paths = [path for found in shared for path in found if path not in names]
        return paths + [tables[kind] for tables in own for kind in kinds]

    @property
    def kept(self) -> Records:
        return Records(self._paths([0]), self._owner, self._counts["kept"])

    @property
    def removed(self) -> Records:
        return Records(self._paths([1]), self._owner, self._counts["removed"])

    @property
    def mask(self) -> Array:
        return self.decisions.mask

    @property
    def clusters(self) -> Table:
        return self.decisions.clusters

    @property
    def pairs(self) -> Table:
        # The files have more columns, with other types, and pairs with documents of `against` first.
        names = ("a", "b", "similarity", "against")
        self._owner.ensure()
        parquet = self._folder / "pairs.parquet"
        rows = _lookalike.read_parquet(os.fspath(parquet)) if parquet.exists() else Records([self._folder / "pairs.jsonl"], None)
        pairs = sorted(([row.get(name) for name in names] for row in rows), key=lambda pair: pair[:2])
        kinds = ("string", "string", "double", "string")
        return _lookalike.table([(name, kind, [pair[at] for pair in pairs]) for at, (name, kind) in enumerate(zip(names, kinds))])

    def annotated(self) -> Table:
        decisions, rows = self._decided()
        records, annotations = _table(self._paths([0, 1])), decisions.annotations
        refuse_taken(records.column_names, annotations)
        return records.take(rows).with_columns(annotations)

    @property
    def counts(self) -> dict[str, Any]:
        return dict(self._counts)

    @property
    def scheme(self) -> Scheme:
        return Scheme(self.summary["scheme"])

    @property
    def threshold(self) -> float:
        return float(self.summary["threshold"])

    def explain(self, a: Any, b: Any, *, against: str | None = None) -> Explanation:
        return self.explain_numbers(_numbers(self.decisions, a, b, against))

    def explain_numbers(self, numbered: Iterable[tuple[str, int]]) -> Explanation:
        """Explain two documents, each given with its id and its number, counting those that others were compared with first."""
        found, in_collection = [], self.decisions.in_collection
        for id, number in numbered:
            # Documents of a collection come first, and were not read.
            if number < in_collection:
                raise LookalikeError(f"{id} is in a collection, which has no texts: explain() the two texts")
            found.append({"id": id, "number": number - in_collection})
        return self._explain(*found)

    def report(self) -> Page:
        self._owner.ensure()
        return Page((self._folder / "report.html").read_text(encoding="utf-8"))

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        self._owner.ensure()
        return copy_results(self._folder, folder, overwrite, "dedup")

    def _largest_clusters(self, most: int) -> list[list[tuple[str, str | None]]]:
        return self._largest[:most]
