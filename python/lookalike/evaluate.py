"""Measurements of how well a method or a scheme works on your own data.

:func:`audit` needs no labels, :func:`labels` compares one scheme with labels, :func:`sweep` tries many settings.

What cannot be read, of documents or of ``fingerprints``, is left out, and a `LookalikeWarning` reports it; ``strict`` and
``max_skipped`` make it an error. Documents without a text, or longer than ``max_document``, count as empty texts; a warning counts them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lookalike import _lookalike
from lookalike._documents import input_words, written
from lookalike._errors import BadInput, LookalikeError, warn, warn_of_nulls
from lookalike._frames import Rows, rows_of
from lookalike._lookalike import Table
from lookalike._options import paths, refuse_none
from lookalike._progress import observer

__all__ = [
    "Advice",
    "Audit",
    "ClusterAccuracy",
    "CoreAccuracy",
    "CurvePoint",
    "Estimate",
    "PairAccuracy",
    "Sweep",
    "audit",
    "labels",
    "sweep",
]

Text = str | Sequence[str] | Callable[[Any], str | None] | None


@dataclass(frozen=True)
class Estimate:
    """An estimated value with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CurvePoint:
    """Pairs found at a cutoff, and how many of them are true."""

    cut: float
    #: The cut in terms of the sketch, such as ``k <= 3``.
    parameter: str
    found: int
    correct: int
    precision: Estimate
    recall: Estimate
    f1: float


@dataclass(frozen=True)
class Audit:
    """Share of the true pairs of a sample that a method finds."""

    method: str
    scheme: str
    threshold: float
    #: Number of documents with distinct texts.
    documents: int
    #: Number of documents that were left out because another one has the same text.
    copies: int
    #: Number of documents in the sample, each compared with all.
    sample: int
    #: Number of pairs at or above the threshold with a document in the sample.
    true_pairs: int
    #: Number of those pairs that the method finds.
    found: int
    #: Number of pairs that the method proposes before verification.
    proposed: int
    recall: Estimate
    precision: Estimate
    #: Estimated number of such pairs in the whole data.
    all_true_pairs: Estimate


@dataclass(frozen=True)
class PairAccuracy:
    """Accuracy of a scheme on labelled pairs."""

    labelled: int
    unknown: int
    true_pairs: int
    average_precision: float
    #: Point with the largest F1; None if nothing was found.
    best: CurvePoint | None
    points: list[CurvePoint]
    #: If pairs were drawn by bands, the curve of the whole collection, as ``lookalike evaluate labels --json`` prints it.
    bands: dict[str, Any] | None

    @property
    def curve(self) -> Table:
        """The points, one per row."""
        return _curve(self.points)


@dataclass(frozen=True)
class ClusterAccuracy:
    """Accuracy of clusters against known clusters."""

    cut: str
    adjusted_rand_index: float
    #: Result for pairs of documents in the same cluster.
    pairs: CurvePoint


@dataclass(frozen=True)
class CoreAccuracy:
    """Accuracy of a scheme on the labels of the CORE benchmark, by the rules of text-dedup."""

    cut: str
    precision_duplicates: float
    recall_duplicates: float
    precision_non_duplicates: float
    recall_non_duplicates: float
    macro_f1: float
    accuracy: float


@dataclass(frozen=True)
class Advice:
    """A recommended setting and cutoff, with figures from the same data that chose them."""

    setting: str
    #: Size of a document's sketch in bytes: the cost.
    bytes: float
    point: CurvePoint
    #: True if the lower confidence limits also reach the target.
    is_sure: bool
    #: Job that follows the advice; None if no job decides in this way. Data in memory is called ``documents.jsonl``.
    command: str | None


@dataclass(frozen=True)
class Sweep:
    """Results of many settings, and advice which to use."""

    #: The source of truth, described in a sentence.
    truth: str
    documents: int
    #: Number of documents that were left out because another one has the same text; 0 with labels.
    copies: int
    true_pairs: int
    #: The setting with the best F1, whatever its cost.
    best: Advice | None
    #: Settings that reach the target, the cheapest first.
    advice: list[Advice]
    #: A row for each setting: ``features``, ``weight``, ``sketch``, ``scheme``, ``bytes``, ``average_precision``, and the best cut.
    settings: Table
    #: The complete answer, as ``lookalike evaluate sweep --json`` prints it.
    data: dict[str, Any]

    def curve(self, setting: int) -> Table:
        """The points of the setting in this row of ``settings``."""
        return _curve([_point(point) for point in self.data["rows"][setting]["curve"]["points"]])


def audit(
    data: Any,
    *,
    method: str,
    text: Text = None,
    id: str | None = None,
    threshold: float = 0.8,
    sample: int = 2000,
    progress: Any = "auto",
    **options: Any,
) -> Audit:
    """Estimate without labels what a method would miss: a sample of documents is compared with all, exactly and by the method.

    ``data``, ``text`` and ``id`` are as in :func:`lookalike.dedup`; other options are those of ``lookalike evaluate audit``.

    >>> rows = ["a rose is a rose is a rose", "a rose is a rose is a red rose", "a rose is a rose is a rose!"]
    >>> audit(rows, method="simhash", distance=3, threshold=0.9, sample=3).recall.value
    1.0
    """
    refuse_none(method=method)
    said = {"method": method, "threshold": threshold, "sample": sample, **options}
    answer, _ = _answer("audit", data, text, id, said, progress)
    return Audit(
        **{name: answer[name] for name in ("method", "scheme", "threshold", "documents", "copies", "sample", "true_pairs", "found", "proposed")},
        recall=Estimate(**answer["recall"]),
        precision=Estimate(**answer["precision"]),
        all_true_pairs=Estimate(*answer["all_true_pairs"]),
    )


def labels(
    data: Any,
    labels: Any,
    *,
    text: Text = None,
    id: str | None = None,
    sketch: str = "none",
    progress: Any = "auto",
    **options: Any,
) -> PairAccuracy | ClusterAccuracy | CoreAccuracy:
    """Measure precision and recall of a scheme against labels.

    ``labels`` is a file, or rows of one kind: ``a``, ``b``, ``label`` (a number, true, false or None); or ``id``, ``cluster``; or rows of
    CORE. ``data``, ``text`` and ``id`` are as in :func:`lookalike.dedup`; other options are those of ``lookalike evaluate labels``.

    >>> rows = ["a rose is a rose", "A rose is a rose!", "something else"]
    >>> found = labels(rows, [{"a": "0", "b": "1", "label": True}, {"a": "0", "b": "2", "label": False}])
    >>> found.best.f1, found.best.cut
    (1.0, 1.0)
    """
    refuse_none(labels=labels)
    with _labels_file(labels, options.get("tmp")) as file:
        answer, _ = _answer("labels", data, text, id, {"labels": file, "sketch": sketch, **options}, progress)
    if answer["labels"] == "clusters":
        return ClusterAccuracy(answer["cut"], answer["adjusted_rand_index"], _point(answer["pairs"]))
    if answer["labels"] == "core":
        return CoreAccuracy(**{name: answer[name] for name in CoreAccuracy.__dataclass_fields__})
    curve = answer["row"]["curve"]
    return PairAccuracy(
        labelled=answer["labelled"],
        unknown=answer["unknown"],
        true_pairs=curve["true_pairs"],
        average_precision=curve["average_precision"],
        best=_point(curve["best"]) if curve["best"] else None,
        points=[_point(point) for point in curve["points"]],
        bands=answer.get("bands"),
    )


def sweep(
    data: Any,
    labels: Any = None,
    *,
    text: Text = None,
    id: str | None = None,
    threshold: float | None = None,
    precision: float = 0.9,
    recall: float = 0.9,
    progress: Any = "auto",
    **options: Any,
) -> Sweep:
    """Try many settings at once, and recommend the cheapest that reaches ``precision`` and ``recall``.

    Without ``labels`` the truth is the exact resemblance at ``threshold``, by default 0.8. ``data``, ``text`` and ``id`` are as in
    :func:`lookalike.dedup`; other options are those of ``lookalike evaluate sweep``: ``shingles="words:3,words:5"``,
    ``sketches="simhash:64"``, ``page="sweep.html"``.

    >>> rows = ["a rose is a rose is a rose", "A rose is a rose is a rose!", "something else", "something else that is new"]
    >>> swept = sweep(rows, shingles="words:1,words:2", sketches="simhash:64", weights="set", masks="none")
    >>> len(swept.settings), swept.best.point.f1
    (2, 1.0)
    """
    said = {"threshold": threshold, "precision": precision, "recall": recall, **options}
    with _labels_file(labels, options.get("tmp")) as file:
        answer, spooled = _answer("sweep", data, text, id, {"labels": file, **said}, progress)
    advised = [_advice(advice, spooled) for advice in answer["advice"]]
    return Sweep(
        truth=answer["truth"],
        documents=answer["documents"],
        copies=answer["copies"],
        true_pairs=answer["true_pairs"],
        best=_advice(answer["best"], spooled) if answer["best"] else None,
        advice=advised,
        settings=_settings(answer["rows"]),
        data=answer,
    )


def _answer(
    what: str, data: Any, text: Any, id: str | None, options: Mapping[str, Any], progress: Any
) -> tuple[dict[str, Any], str | None]:
    """Return the command's answer, and the file to which data in memory was written."""
    with input_words(data, text, id, options) as (said, spooled), observer(progress) as call:
        answer, told = _lookalike.run_job("evaluate", [what, *said], call)
    warn(told)
    return json.loads(answer), spooled


@contextmanager
def _labels_file(labels: Any, tmp: Any) -> Iterator[str | None]:
    """Return the file of labels: the given path, or a temporary file to which rows are written."""
    named = paths(labels) if labels is not None else None
    if labels is None or named is not None:
        yield named[0] if named else None
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=tmp) as folder:
        file = _written_labels(rows_of(labels), os.path.join(folder, "labels.jsonl"))
        try:
            yield file
        except (LookalikeError, ValueError) as error:
            # The rows are the caller's, but the file was temporary and is gone.
            error.args = (str(error).replace(file, "labels"), *error.args[1:])
            if isinstance(error, BadInput) and error.source == file:
                error.source = None
            raise


def _written_labels(rows: Rows, file: str) -> str:
    """Write the rows in the same way as data, and return the path: ids that frames keep as floats are then integers on both sides."""
    names = rows.columns()
    data = rows.arrow(names) if names else rows.dicts()
    if not names or isinstance(data, list):
        return written(data, file)
    warn_of_nulls(_lookalike.write_lines(data, file))
    return file


def _point(point: Mapping[str, Any]) -> CurvePoint:
    return CurvePoint(**{**point, "precision": Estimate(**point["precision"]), "recall": Estimate(**point["recall"])})


def _advice(advice: Mapping[str, Any], spooled: str | None) -> Advice:
    command = advice["command"]
    if command is not None and spooled is not None:
        command = command.replace(spooled, "documents.jsonl")
    return Advice(advice["setting"], advice["bytes"], _point(advice["point"]), advice["is_sure"], command)


def _curve(points: Sequence[CurvePoint]) -> Table:
    columns: list[tuple[str, str, list[Any]]] = [
        ("cut", "double", [point.cut for point in points]),
        ("parameter", "string", [point.parameter for point in points]),
        ("found", "uint64", [point.found for point in points]),
        ("correct", "uint64", [point.correct for point in points]),
    ]
    for share in ("precision", "recall"):
        for limit, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
            columns.append((share + suffix, "double", [getattr(getattr(point, share), limit) for point in points]))
    columns.append(("f1", "double", [point.f1 for point in points]))
    return _lookalike.table(columns)


def _settings(rows: Sequence[Mapping[str, Any]]) -> Table:
    kinds = [("features", "string"), ("weight", "string"), ("sketch", "string"), ("scheme", "string"), ("bytes", "double")]
    columns: list[tuple[str, str, list[Any]]] = [(name, kind, [row[name] for row in rows]) for name, kind in kinds]
    curves = [row["curve"] for row in rows]
    columns.append(("average_precision", "double", [curve["average_precision"] for curve in curves]))
    best = [curve["best"] or {} for curve in curves]
    columns.append(("best_cut", "double", [point.get("cut") for point in best]))
    columns.append(("best_parameter", "string", [point.get("parameter") for point in best]))
    columns.append(("best_f1", "double", [point.get("f1") for point in best]))
    return _lookalike.table(columns)
