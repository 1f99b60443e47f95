"""Deduplication of data in memory and of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lookalike import _lookalike
from lookalike._documents import DocumentColumns, every_row_read, input_words, text_columns
from lookalike._errors import LookalikeError
from lookalike._frames import Rows, rows_of
from lookalike._lookalike import Table
from lookalike._options import paths, positional, words
from lookalike._progress import observer
from lookalike._result import DedupResult, FrameResult, PathResult, Records
from lookalike._saved import kept_files

__all__ = ["dedup", "pairs"]

#: Options of `dedup` that `explain` has too.
_EXPLAINED = (
    "shingle segment normalize case mask fold stop stem nouns seed hash hash_key fields terms html html_title html_alt html_links "
    "method threshold distance distance_for bits agree size weight functions recall and_"
).split()

#: Options that mean files, and have no meaning for data in memory.
_FILES_ONLY = (
    "format delimiter no_header convert convert_limit pdf_limit follow_links boilerplate boilerplate_share "
    "boilerplate_lines order output_format compress link resume overwrite strict max_skipped"
).split()


def dedup(
    data: Any,
    *,
    text: str | Sequence[str] | Callable[[Any], str | None] | None = None,
    id: str | None = None,
    threshold: float | None = None,
    shingle: str | None = None,
    method: str = "allpairs",
    keep: str = "longest",
    against: Any = None,
    within: str | None = None,
    across: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    progress: Any = "auto",
    **options: Any,
) -> DedupResult:
    """Find exact and near-duplicate documents, and decide which are kept.

    ``data`` is a frame of pandas, polars, pyarrow or DuckDB, a ``datasets.Dataset``, any other Arrow data, or an iterable of
    ``str`` or ``dict``; or a path or glob (one ``str`` or ``pathlib.Path``, or a list of ``pathlib.Path``) of files in any format that the
    command reads.

    ``text`` names the column of texts, or several columns, which are joined by line breaks, or is a function of a row; the default is
    ``text``, else ``html``, else the only column. ``id`` names the column of ids; by default the row number is the id.
    ``against`` is data of the same kind to compare with, which is never removed; or the output directory of an earlier job. Its rows are
    called ``against-0`` and so on if there are no ids. It may also be the directory of a collection, which is not read again; ``into`` is
    the collection that the kept documents are added to.

    ``threshold`` is the minimum resemblance of near-duplicates, by default 0.8, and ``shingle`` the features, by default ``words:5``; the
    method ``copies`` has neither. All other options are those of ``lookalike dedup``: ``keep="newest:date"``, ``within="language"``, ``memory="4G"``,
    ``method="simhash", distance=6``, ``stem="en"``. ``progress`` is ``"auto"`` (a line on a terminal or in a notebook), true, false,
    or a function of stage, done and total.

    ``memory`` limits the process (bytes, or with ``K``, ``M``, ``G`` for powers of 1,024); ``threads`` is by default the number of processors. The
    result depends on neither. Ctrl-C interrupts a job.

    Raises ``TypeError`` for data, texts or options of a wrong type, ``ValueError`` for columns that do not exist and for settings that are
    invalid or conflict, :class:`BadInput` with ``row`` or ``source`` for data that cannot be read, :class:`MemoryLimit` with ``needed`` if
    the limit is too low, and :class:`LookalikeError` otherwise. Unreadable records of files are counted instead: ``counts["unreadable"]``.

    >>> result = dedup(["a rose is a rose", "A rose is a rose!", "something else"])
    >>> result
    <lookalike.DedupResult: 3 documents, 2 kept, 0 exact copies, 1 near-duplicates>
    >>> result.clusters.to_pylist()
    [{'survivor': '1', 'id': '0', 'similarity': 1.0, 'reason': 'near'}]
    """
    told = {
        "threshold": threshold,
        "shingle": shingle,
        "method": method,
        "keep": keep,
        "within": within,
        "across": across,
        "memory": memory,
        "threads": threads,
        **options,
    }
    # A str is a path, never a text: one text is nothing to compare.
    named = paths(data)
    if named is not None:
        return _dedup_paths(named, text, id, against, told, progress)
    job = _RowJob(data, text, id, against, told)
    return job.run(progress)


def pairs(data: Any, *, unit: str = "documents", **options: Any) -> Table:
    """Find all pairs of documents that resemble each other: ``a``, ``b``, ``similarity``, in the order of ids, the smaller id first.

    ``data`` and the options are as in :func:`dedup`. A family of n documents has n (n - 1) / 2 pairs. With
    ``unit="paragraphs"`` the pairs are paragraphs of different documents, with ``a_position`` and ``b_position`` (int64): the number of
    paragraphs before them in their documents. ``paragraphs`` says what ends a paragraph: ``auto``, ``blank`` (lines) or ``lines``; the
    options are then those of ``lookalike pairs``. A warning reports unreadable records of files.

    >>> pairs(["a rose is a rose", "A rose is a rose!", "something else"]).to_pylist()
    [{'a': '0', 'b': '1', 'similarity': 1.0}]
    """
    if unit == "documents":
        return dedup(data, **{**options, "pairs": "all"}).pairs
    if unit == "paragraphs":
        return _paragraph_pairs(data, **options)
    raise ValueError(f"unit must be documents or paragraphs, not {unit!r}")


def _paragraph_pairs(
    data: Any, *, text: Any = None, id: str | None = None, progress: Any = "auto", **options: Any
) -> Table:
    import tempfile

    with (
        tempfile.TemporaryDirectory(prefix="lookalike-", dir=options.get("tmp")) as folder,
        input_words(data, text, id, options) as (inputs, _),
    ):
        file = os.path.join(folder, "pairs.parquet")
        said = ["pairs", *inputs, "--unit=paragraphs", f"--output={file}", *words(options)]
        call, clear = observer(progress)
        try:
            told = _lookalike.pairs_paths(said, call)
        finally:
            clear()
        found = _lookalike.read_parquet(file)
    _warn(told)
    return found


def _warn(told: Iterable[str]) -> None:
    import warnings

    for warning in told:
        warnings.warn(warning, stacklevel=4)


def _refuse_after_adding(options: Mapping[str, Any]) -> None:
    if options.get("into") is not None:
        raise LookalikeError("the collection has these documents by now, and would find them again: call dedup without into for that")


def _explained_with(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _EXPLAINED if options.get(name) is not None}


def _dedup_paths(
    inputs: list[str], text: Any, id: str | None, against: Any, options: dict[str, Any], progress: Any
) -> PathResult:
    if text is not None and not isinstance(text, str):
        raise TypeError("text must be the name of a field where data is a path")
    compared = paths(against) if against is not None else []
    if compared is None:
        raise TypeError("against must be a path, or a list of them, where data is one")
    import tempfile

    # Beside the data if `tmp` says so: it holds a copy of all that is kept, as long as the result lives.
    folder = tempfile.TemporaryDirectory(prefix="lookalike-", dir=options.get("tmp"))
    said = words({"text": text, "id": id, "against": compared, **options})
    # A folder in it, for the decisions must not lie among the results, which are copied whole by `save`.
    output = os.path.join(folder.name, "results")
    call, clear = observer(progress)
    try:
        summary, largest, tables, told = _lookalike.dedup_paths(
            ["dedup", *positional(inputs), f"--output={output}", *said], os.path.join(folder.name, "decisions"), call
        )
    finally:
        clear()
    _warn(told)

    def again(threshold: float) -> PathResult:
        _refuse_after_adding(options)
        return _dedup_paths(inputs, text, id, against, {**options, "threshold": threshold}, False)

    return PathResult(
        folder,
        json.loads(summary),
        largest=largest,
        tables=tables,
        in_order=options.get("order") == "input",
        inputs=inputs,
        again=again,
        explained_with=_explained_with(options),
    )


class _RowJob:
    """A job over data in memory."""

    def __init__(self, data: Any, text: Any, id: str | None, against: Any, options: dict[str, Any]) -> None:
        for name in _FILES_ONLY:
            if options.get(name) is not None:
                raise TypeError(f"{name} is for files, and the data is in memory")
        self.rows = rows_of(data)
        self.options = options
        names = self.rows.columns()
        self.columns = DocumentColumns(self.rows, text, id)
        self.text, self.function, self.id = self.columns.text, self.columns.function, id
        # Three kinds: rows, the folder of a result, and the directory of a collection, which only the engine
        # can read.
        earlier = None if against is None else _earlier(against)
        self.against = None if earlier is None else self._alike(earlier)
        self.collection = None if earlier is not None else against
        is_stored = self.collection is not None and os.path.exists(self.collection)
        # Row numbers begin at 0 in each call: the collection would take new documents for changed ones of those
        # names.
        if id is None and (is_stored or options.get("into") is not None):
            raise TypeError("documents that meet a collection need names of their own: say which column has them with id=")
        category = options.get("within") or options.get("across")
        self.site = category == "site"
        self.category = "url" if self.site else category
        self.order = _order_field(options["keep"])
        for column, asked in [(self.category, "within or across"), (self.order, "keep")]:
            if column is not None and (names is None or column not in names):
                shown = ", ".join(names or []) or "none"
                raise ValueError(f"there is no column {column!r}, which {asked} asks for: the columns are {shown}")

    def run(self, progress: Any) -> FrameResult:
        columns = {
            "text": self.text,
            "id": self.id,
            "order": self.order,
            "category": self.category,
            "site": self.site,
            "html": self.columns.html,
        }
        import tempfile

        call, clear = observer(progress)
        with tempfile.TemporaryDirectory(prefix="lookalike-", dir=self.options.get("tmp")) as folder:
            try:
                decisions, pairs, summary, told = _lookalike.dedup_documents(
                    ["dedup", "-", "--output=-", *words({**self.options, "against": self.collection})],
                    self._documents(self.rows),
                    None if self.against is None else self._documents(self.against),
                    columns,
                    folder,
                    call,
                )
            finally:
                clear()
        _warn(told)
        return FrameResult(
            self.rows,
            decisions,
            pairs,
            json.loads(summary),
            # Read anew when somebody looks: a second copy of all texts would double the memory of the data.
            texts=lambda: self.columns.texts(self.rows),
            again=self._again,
            save=self._save,
            explained_with=_explained_with(self.options),
        )

    def _alike(self, earlier: Rows) -> Rows:
        """Rows to compare with, in the form of the data; those of a result may have another form."""
        names = earlier.columns()
        if self.function is not None or names is None or not set(self.text) - set(names) and self.text:
            return earlier
        # Columns of the earlier data by the default rule: `text` names those of the data alone.
        own, _ = text_columns(None, names)
        texts = ("\n".join(row[name] or "" for name in own) for row in earlier.dicts())
        if not self.text:
            return rows_of(list(texts))
        first, *others = self.text
        # Several columns are joined by line breaks. That was done here; the others are null, which the join
        # leaves out.
        beside = dict.fromkeys(others)
        return rows_of([{**row, first: text, **beside} for row, text in zip(earlier.dicts(), texts)])

    def _needed(self) -> list[str]:
        others = (self.id, self.order, self.category)
        return list(dict.fromkeys([*self.text, *(name for name in others if name is not None)]))

    def _documents(self, rows: Rows) -> Any:
        if self.function is None:
            return rows.arrow(self._needed())
        others = [name for name in (self.id, self.order, self.category) if name is not None]
        return [{"text": self.function(row), **{name: row[name] for name in others}} for row in rows.dicts()]

    def _again(self, threshold: float) -> FrameResult:
        _refuse_after_adding(self.options)
        # Without `__init__`: iterators are used up, and what they gave is in `rows`.
        other = _RowJob.__new__(_RowJob)
        other.__dict__.update(self.__dict__)
        other.options = {**self.options, "threshold": threshold}
        return other.run(False)

    def _save(self, folder: str, overwrite: bool) -> None:
        """Run the command's job over the same documents as JSON lines."""
        import tempfile
        from pathlib import Path

        _refuse_after_adding(self.options)
        with tempfile.TemporaryDirectory(prefix="lookalike-", dir=self.options.get("tmp")) as spool:
            documents = Path(spool, "documents.jsonl")
            fields = self.columns.fields(self.rows, self.against)
            self.columns.write(self.rows, documents, fields)
            said = words({**self.options, "against": self.collection, "overwrite": overwrite})
            inputs = [os.fspath(documents), *fields.words, "--strict", f"--output={folder}", *said]
            earlier = Path(spool, "against.jsonl")
            if self.against is not None:
                self.columns.write(self.against, earlier, fields, "against-")
                inputs.append(f"--against={os.fspath(earlier)}")
            with every_row_read(documents), every_row_read(earlier):
                *_, told = _lookalike.dedup_paths(["dedup", *inputs], None)
        _warn(told)


def _order_field(keep: str) -> str | None:
    """The column that the rule for survivors reads."""
    for rule in keep.split(","):
        kind, colon, field = rule.partition(":")
        # Others, such as `longest`, need no column. What a rule may be is checked by the engine.
        if colon and kind in ("max", "min", "newest", "latest"):
            return field
    return None


def _earlier(against: Any) -> Rows | None:
    """Data to compare with: rows, or the documents that an earlier job kept in its output directory. None for a collection."""
    if isinstance(against, FrameResult):
        return rows_of(against.kept)
    if isinstance(against, (str, os.PathLike)):
        from pathlib import Path

        # The summary is written last: a folder without it is no result, or half of one.
        kept = kept_files(Path(against))
        return None if kept is None else rows_of(list(Records(kept, None)))
    return rows_of(against)
