"""Deduplication of data in memory and of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from lookalike import _lookalike
from lookalike._documents import (
    DocumentColumns,
    RecordFields,
    category_word,
    every_row_read,
    field_path,
    input_words,
    split_at_commas,
    text_fields,
    write_beside_files,
)
from lookalike._errors import BadInput, LookalikeError, of_losses, warn
from lookalike._explain import Explanation
from lookalike._frames import Rows, rows_of
from lookalike._lookalike import Table
from lookalike._options import is_given, paths, positional, with_paths, words
from lookalike._progress import observer
from lookalike._result import DedupResult, FrameResult, PathResult, Records, rows_of_records
from lookalike._saved import TemporaryFolder, kept_files, refuse_full

__all__ = ["dedup", "pairs"]

_Result = TypeVar("_Result", bound=DedupResult)

#: Options that concern files, and have no meaning for data in memory.
_FILES_ONLY = (
    "format delimiter no_header no_quotes convert convert_limit pdf_limit exclude follow_links inputs_from skip_unreadable boilerplate "
    "boilerplate_share boilerplate_lines order output_format compress link resume overwrite strict max_skipped"
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
    ``str`` or ``dict``. It may also be files in any format that the command reads, given by a path or glob: one ``str`` or ``pathlib.Path``,
    or a list or iterator of ``pathlib.Path``.

    ``text`` names the column of texts, or several columns, whose texts are joined by line breaks, or is a function of a row. By default it is, row
    by row, ``text``, else ``html``, else the only column. A column called ``html`` holds pages, whose text is extracted as for files
    (``html="visible"``); pages in ``bytes`` must be decoded, or given to :func:`extract` first. Columns are named as they are, even if the name
    contains dots or, in a frame, is a number; the keys of dicts are strings.
    Those of a ``datasets.Dataset`` are read without its format or transform: apply a transform with ``map`` first.

    ``id`` names the column of ids, of which none may be missing; by default, the row number is the id. Of rows with the same id, all but one get a
    number after it, such as ``p#2``, with a :class:`LookalikeWarning`; ``repeated_ids="refuse"`` raises :class:`BadInput` instead. Ids, and the
    values by which ``keep``, ``within`` and ``across`` decide, are those that the command would read from a file with the same rows: times are
    ISO 8601 in UTC, decimals are strings.

    ``against`` is data to compare with, which is never removed: data of any of these kinds, a result, the output directory of an earlier job, or the
    directory of a collection, whose documents are not read again. Its
    texts are in the same columns as those of ``data``; rows without these have them in those of the default rule, and files without these raise
    ``ValueError``. If rows have no column of ids, they are called ``against-0`` and so on. If only one of the two is files, the rows of the
    other are written to a temporary file, and texts of a function to the field ``text``. Where the files have a field in an object, ``a.b``, the rows have it
    in a column of structs or dicts, or in one called ``a.b``. ``into`` is the collection to which the kept documents
    are added, in the last step of a job; with it, or with a collection as ``against``, rows need ``id``. An empty list or iterator has any
    column, so a batch without documents is a job like any other.

    ``threshold`` is the minimum resemblance of near-duplicates, by default 0.8, and ``shingle`` the features, by default ``words:5``; the
    method ``exact`` has neither. All other options are those of ``lookalike dedup``: ``keep="newest:date"``, ``within="language"``, ``memory="4G"``,
    ``method="simhash", distance=6``, ``stem="en"``. Dashes are underscores, names that are words of Python end in one (``and_``), and a list
    repeats an option; None and False leave it out. ``progress`` is ``"auto"`` (a line on a terminal or in a notebook), true, false,
    or a function of stage, done and total.

    ``memory`` limits the process (bytes, or with ``K``, ``M``, ``G`` for powers of 1,024); ``threads`` is by default the number of processors, or
    fewer if ``memory`` is small. The result depends on neither. Ctrl-C interrupts a job.

    Raises ``TypeError`` for data, texts or options of a wrong type, ``ValueError`` for columns and options that do not exist and for settings that are
    invalid or conflict, :class:`BadInput` with ``row`` or ``source`` for data that cannot be read, :class:`MemoryLimit` with ``needed`` if
    the limit is too low, and :class:`LookalikeError` otherwise. If an exception such as Ctrl-C arrives after
    documents were added to ``into``, the job is complete, and the exception has its ``result``. Unreadable records and damaged files raise nothing,
    unless ``strict`` or ``max_skipped`` says so: a :class:`LookalikeWarning` reports them, and ``counts`` has their numbers, ``unreadable``
    and ``damaged``.

    >>> result = dedup(["a rose is a rose", "A rose is a rose!", "something else"])
    >>> result
    <lookalike.DedupResult: 3 documents, 2 kept, 0 exact copies, 1 near-duplicates>
    >>> result.clusters.to_pylist()
    [{'survivor': '1', 'id': '0', 'similarity': 1.0, 'reason': 'near', 'against': None}]
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
    # A str is a path, never a text, because a single text cannot be compared with anything.
    data, against = with_paths(data), with_paths(against)
    named = paths(data)
    if named is not None:
        return _dedup_paths(named, text, id, against, told, progress)
    job = _RowJob(data, text, id, against, told)
    return job.run(progress)


def pairs(data: Any, *, unit: str = "documents", **options: Any) -> Table:
    """Find all pairs of documents that resemble each other: ``a``, ``b``, ``similarity``, ``against``, in the order of ids, the smaller id first.

    ``against`` is ``a`` or ``b``, whichever is from ``against``, else null. ``data`` and the options are as in :func:`dedup`. A family of n
    documents has n (n - 1) / 2 pairs. A :class:`LookalikeWarning` reports records and files that could not be read.

    With ``unit="paragraphs"``, the pairs are paragraphs of different documents, with ``a_position`` and ``b_position`` (int64): the number of
    paragraphs before them in their documents. ``paragraphs`` says what ends a paragraph: ``auto``, ``blank`` (lines) or ``lines``. The
    options are then those of ``lookalike pairs``.

    >>> pairs(["a rose is a rose", "A rose is a rose!", "something else"]).to_pylist()
    [{'a': '0', 'b': '1', 'similarity': 1.0, 'against': None}]
    """
    if unit == "documents":
        if is_given(options.get("paragraphs")):
            raise TypeError('paragraphs is for pairs of paragraphs: add unit="paragraphs"')
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
        input_words(data, text, id, options) as (said, _),
        observer(progress) as call,
    ):
        file = os.path.join(folder, "pairs.parquet")
        _, told = _lookalike.run_job("pairs", [*said, "--unit=paragraphs", f"--output={file}"], call)
        found = _lookalike.read_parquet(file)
    warn(told)
    return found


def _refuse_after_adding(options: Mapping[str, Any]) -> None:
    if options.get("into") is not None:
        raise LookalikeError("the collection has these documents by now, and would find them again: call dedup without into for that")


def _of_repeated_ids(counts: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return the warning of documents that are not called by their own ids; there is none if the caller asked for numbers."""
    if not counts["ids_repeated"] or options.get("repeated_ids") is not None:
        return []
    return [f"documents with the id of another: {counts['ids_repeated']:,}, which have a number after the id: repeated_ids=\"refuse\" names one"]


def _warned(result: _Result, told: list[str], late: BaseException | None) -> _Result:
    """Return the result once its warnings are issued, unless an exception came too late to cancel the job. What is raised has the
    result: a collection may have its documents by now."""
    try:
        if late is not None:
            raise late
        warn(told)
    except BaseException as raised:
        raised.result = result  # type: ignore[attr-defined]
        raise
    return result


def _dedup_paths(*arguments: Any) -> PathResult:
    return _warned(*_run_paths(*arguments))


def _run_paths(
    inputs: list[str],
    text: Any,
    id: str | None,
    against: Any,
    options: dict[str, Any],
    progress: Any,
    folder: TemporaryFolder | None = None,
) -> tuple[PathResult, list[str], BaseException | None]:
    """Return the result of a job over files, its warnings, and the exception that came too late to cancel it."""
    text = text_fields(text)
    # In the directory given by `tmp`, if set: the folder holds a copy of everything that is kept, as long as the result lives.
    folder = folder or TemporaryFolder(options.get("tmp"))
    compared = _compared_files(against, text, id, options, folder)
    said = words({"text": text, "id": id, "against": compared, **options})
    # A folder within it, because the decisions must not be among the results, which `save` copies as a whole.
    output = os.path.join(folder.name, "results")
    job = ["dedup", *positional(inputs), f"--output={output}", *said]
    with observer(progress) as call:
        summary, largest, tables, told, late = _lookalike.dedup_paths(job, os.path.join(folder.name, "decisions"), call)
    place, summary = os.getcwd(), json.loads(summary)

    def read_again() -> None:
        # Ids contain names of files as they were given: an absolute path would be another id.
        if os.getcwd() != place and not all("://" in name or os.path.isabs(name) for name in (*inputs, *compared)):
            raise LookalikeError(f"the inputs are read again, and their paths are relative to {place}: change back to it, or name absolute paths")

    def again(threshold: float) -> PathResult:
        _refuse_after_adding(options)
        read_again()
        return _dedup_paths(inputs, text, id, against, {**options, "threshold": threshold}, False)

    def explain(a: dict[str, Any], b: dict[str, Any]) -> Explanation:
        read_again()
        # An explanation adds nothing and opens no collection.
        return Explanation._of(_lookalike.explain_paths([word for word in job if not word.startswith("--into=")], a, b))

    result = PathResult(
        folder,
        summary,
        largest=largest,
        tables=tables,
        in_order=options.get("order") == "input",
        again=again,
        explain=explain,
    )
    warnings = [*told, *of_losses(summary["skipped"], options.get("max_skipped")), *_of_repeated_ids(summary["counts"], options)]
    return result, warnings, late


def _compared_files(
    against: Any, text: str | None, id: str | None, options: Mapping[str, Any], folder: TemporaryFolder
) -> list[str]:
    """Return the files to compare with: those that are named, or one to which rows are written."""
    named = [] if against is None else paths(against, is_against=True)
    if named is not None:
        return named
    if isinstance(against, PathResult):
        return [os.fspath(against.folder)]
    for name in ("format", "delimiter", "no_header", "no_quotes"):
        if is_given(options.get(name)):
            raise TypeError(f"{name} says how the files of against are read, too, and these are rows: write them to a file of that format")
    rows = rows_of(against.kept if isinstance(against, FrameResult) else against)
    file = os.path.join(folder.name, "against.jsonl")
    write_beside_files(rows, text, id or "id", file)
    return [file]


#: Files that mark directories as results or collections.
_NOT_FILES = ("run.json", "lookalike.collection")


def _is_of_files(against: Any) -> bool:
    """Return true if ``against`` names files, as opposed to rows, and to directories of results or collections."""
    named = None if against is None else paths(against, is_against=True)
    if named is None or len(named) > 1:
        return named is not None
    if os.path.isdir(named[0]):
        # A directory in a list is data like any other, whatever it contains.
        return isinstance(against, (list, tuple)) or not any(os.path.exists(os.path.join(named[0], name)) for name in _NOT_FILES)
    return (os.path.exists(named[0]) or any(mark in named[0] for mark in ("*", "?", "[", "{", "://")))


class _RowJob:
    """A job over data in memory."""

    def __init__(self, data: Any, text: Any, id: str | None, against: Any, options: dict[str, Any]) -> None:
        for name in _FILES_ONLY:
            if is_given(options.get(name)):
                raise TypeError(f"{name} is for files, and the data is in memory")
        self.rows = rows_of(data)
        columns = DocumentColumns.of(self.rows, text, id)
        # Rows, which can also come from the output directory of a job; otherwise files, or the directory of a collection, which only the
        # engine can read.
        self.has_files = _is_of_files(against)
        self.against = None if against is None or self.has_files else _earlier(against)
        self.named = None if self.against is not None else against
        # As in the command, all rows of one side may lack a field. Those of files are not known here: the command refuses a field that none has.
        self.elsewhere = None if self.has_files else set(() if self.against is None else self.against.every_column())
        keep, order = _keep_rules(self.rows, options["keep"], self.elsewhere)
        self.columns = replace(columns, order=order, fields=_link_columns(self.rows, options.get("fields"), self.elsewhere))
        self.options = {**options, "keep": keep}
        self._set_category()
        self.against_columns = None if self.against is None else self.columns.alike(self.against)
        if against is not None and len(self.rows) > 0:
            self.columns = self.columns.present_in(self.rows)
        is_stored = self.named is not None and not self.has_files and os.path.exists(self.named)
        # Row numbers start at 0 in each call: the collection would take new documents for changed versions of those with the same numbers.
        if id is None and (is_stored or options.get("into") is not None):
            raise TypeError("documents that meet a collection need names of their own: say which column has them with id=")

    def _set_category(self) -> None:
        """Find the column of categories, and name it in the options in the command's form."""
        for option in ("within", "across", "distance_for"):
            name = self.options.get(option)
            if name == "site":
                # As in the command: the host of the URL, otherwise of the id.
                id, names = self.columns.id, self.rows.columns() or []
                column = id if id is not None and "url" not in names else self.rows.column("url", option)
                self.columns = replace(self.columns, category=column, site=True)
            elif name is not None and option != "distance_for":
                column = self.rows.column(name, option, self.elsewhere)
                self.columns = replace(self.columns, category=column)
                self.options[option] = category_word(column)

    def run(self, progress: Any) -> FrameResult:
        import tempfile

        if self.has_files:
            return self._run_beside_files(progress)
        with observer(progress) as call, tempfile.TemporaryDirectory(prefix="lookalike-", dir=self.options.get("tmp")) as folder:
            decisions, pairs, summary, told, late = _lookalike.dedup_documents(
                ["dedup", "-", "--output=./-", *words({**self.options, "against": self.named})],
                self.columns.request(self.rows),
                self._request_against(),
                folder,
                call,
            )
        result = FrameResult(
            self.rows,
            decisions,
            pairs,
            json.loads(summary),
            # Read again on demand: a second copy of all texts would double the memory of the data.
            texts=lambda: self.columns.texts(self.rows),
            again=self._again,
            save=self._save,
            explain=self._explain,
        )
        return _warned(result, [*told, *_of_repeated_ids(result.counts, self.options)], late)

    def _run_beside_files(self, progress: Any) -> FrameResult:
        """Run the command's job on the same documents as JSON lines, and on the files to compare with."""
        folder = TemporaryFolder(self.options.get("tmp"))
        documents = os.path.join(folder.name, "documents.jsonl")
        fields = RecordFields.of((self.columns, self.rows))
        for _ in self.columns.texts(self.rows):
            # This checks that all of them are texts, as if no file took part.
            pass
        fields.write(self.columns, self.rows, documents)
        text = None if fields.by_default else [field_path(name) for name in fields.text]
        if self.options.get("into") is not None:
            # First, because nothing may be added to the collection by a call that fails.
            self._refuse_unread(documents, fields)
        found, told, late = _run_paths([documents], text, field_path(fields.id), self.named, self.options, progress, folder)
        try:
            result = self._result_beside_files(found, documents, fields)
        except BaseException as raised:
            # A collection may have the documents by now.
            raised.result = found  # type: ignore[attr-defined]
            raise
        return _warned(result, told, late)

    def _result_beside_files(self, found: PathResult, documents: str, fields: RecordFields) -> FrameResult:
        summary = found.summary
        if found.counts["documents"] != len(self.rows):
            self._refuse_unread(documents, fields)
            raise BadInput("a row cannot be written as a JSON line: compare with rows instead of files")
        first = found.decisions.against
        return FrameResult(
            self.rows,
            found.decisions,
            found.pairs,
            [{**summary["counts"], "damaged": found.counts["damaged"]}, summary["decisions"], summary["scheme"], summary["threshold"]],
            # Read again on demand: see `run`.
            texts=lambda: self.columns.texts(self.rows),
            again=self._again,
            save=self._save,
            explain=lambda *pair: found.explain_numbers([(id, first + row) for id, row in pair]),
        )

    def _refuse_unread(self, documents: str, fields: RecordFields) -> None:
        """Refuse rows that are not read back from the file to which they were written."""
        import tempfile

        limits = {name: self.options.get(name) for name in ("max_document", "memory", "threads", "tmp")}
        with tempfile.TemporaryDirectory(prefix="lookalike-", dir=self.options.get("tmp")) as folder:
            job = ["dedup", documents, *fields.words, "--strict", "--method=exact", f"--output={folder}", *words(limits)]
            try:
                with every_row_read(documents):
                    _lookalike.dedup_paths(job, None)
            except BadInput as error:
                # Other errors, such as no text in any row, are for the job itself, which also knows the documents to compare with.
                if error.row is not None:
                    raise

    def _request_against(self) -> dict[str, Any] | None:
        if self.against is None or self.against_columns is None:
            return None
        return self.against_columns.request(self.against)

    def _again(self, threshold: float) -> FrameResult:
        _refuse_after_adding(self.options)
        # Without `__init__`, because iterators are used up, and their items are in `rows`.
        other = _RowJob.__new__(_RowJob)
        other.__dict__.update(self.__dict__)
        other.options = {**self.options, "threshold": threshold}
        return other.run(False)

    def _explain(self, a: tuple[str, int], b: tuple[str, int]) -> Explanation:
        """Explain two rows, each given with its id. Rows of the data to compare with have negative numbers."""
        own, earlier = self.columns.request(self.rows), self._request_against()
        rows = []
        for id, row in (a, b):
            if row < 0 and self.against is None:
                raise LookalikeError(f"{id} is in a collection, which has no texts: explain() the two texts")
            documents, at = (own, row) if row >= 0 or self.against is None else (earlier, row + len(self.against))
            rows.append({"documents": documents, "row": at, "id": id})
        return Explanation._of(
            # An explanation adds nothing and opens no collection.
            _lookalike.explain_documents(["dedup", "-", "--output=./-", *words({**self.options, "into": None})], *rows)
        )

    def _save(self, folder: str, overwrite: bool) -> None:
        """Run the command's job on the same documents as JSON lines."""
        import tempfile
        from pathlib import Path

        _refuse_after_adding(self.options)
        refuse_full(Path(folder), overwrite)
        with tempfile.TemporaryDirectory(prefix="lookalike-", dir=self.options.get("tmp")) as spool:
            documents, earlier = Path(spool, "documents.jsonl"), Path(spool, "against.jsonl")
            sides = [(self.columns, self.rows)]
            if self.against is not None and self.against_columns is not None:
                sides.append((self.against_columns, self.against))
            fields = RecordFields.of(*sides)
            fields.write(self.columns, self.rows, documents)
            said = words({**self.options, "against": self.named, "overwrite": overwrite})
            # Records of the files to compare with may be lost, as in the original job.
            strict = [] if self.has_files else ["--strict"]
            inputs = [os.fspath(documents), *fields.words, *strict, f"--output={folder}", *said]
            for columns, rows in sides[1:]:
                fields.write(columns, rows, earlier, "against-")
                inputs.append(f"--against={os.fspath(earlier)}")
            with every_row_read(documents), every_row_read(earlier):
                *_, told, _late = _lookalike.dedup_paths(["dedup", *inputs], None)
        warn(told)


def _keep_rules(rows: Rows, keep: str | None, elsewhere: set[str] | None) -> tuple[str, str | None]:
    """Return the rules for survivors in the command's form, and the column that they read."""
    if keep is None:
        return "longest", None
    if not isinstance(keep, str):
        raise TypeError(f"keep must be a rule, or several separated by commas, not {type(keep).__name__}")
    rules, order = [], None
    for rule in split_at_commas(keep):
        kind, colon, name = rule.partition(":")
        # Other rules, such as `longest`, need no column. The engine checks whether a rule is valid.
        if colon and kind in ("max", "min", "newest", "latest"):
            order = rows.column(name, "keep", elsewhere)
            escaped = field_path(order).replace(",", r"\,")
            rule = f"{kind}:{escaped}"
        rules.append(rule)
    return ",".join(rules), order


def _link_columns(rows: Rows, fields: Any, elsewhere: set[str] | None) -> list[str]:
    """Return the columns of anchors and links that the option ``fields`` requires."""
    names = [part.partition(":")[0].replace("-", "_") for part in str(fields or "").split(",")]
    return [rows.column(name, "fields", elsewhere) for name in names if name in ("anchors", "in_links", "out_links")]


def _earlier(against: Any) -> Rows | None:
    """Return the rows to compare with: given rows, or the documents that an earlier job kept in its output directory. None for a
    collection."""
    if isinstance(against, FrameResult):
        return rows_of(against.kept)
    if isinstance(against, PathResult):
        return rows_of_records(against.kept)
    if isinstance(against, (str, os.PathLike)):
        from pathlib import Path

        # The summary is written last, so a folder without one is not a result, or an incomplete one.
        kept = kept_files(Path(against))
        return None if kept is None else rows_of_records(Records(kept, None))
    return rows_of(against)
