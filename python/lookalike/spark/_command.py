"""``python -m lookalike.spark``: deduplication of files on a cluster, for ``spark-submit``."""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from lookalike._documents import split_at_commas
from lookalike._errors import BadInput, LookalikeError
from lookalike.spark._cluster import Cluster
from lookalike.spark._dedup import UNSUPPORTED_OPTIONS, DedupJob, bytes_of, columns_of, ensure_partitions, kernel_of
from lookalike.spark._documents import DocumentColumns, ensure_distinct_names
from lookalike.spark._inputs import (
    FORMATS,
    NUMBERED,
    SWALLOWED,
    SparkRows,
    has_format,
    is_delimited,
    is_finished,
    numbered_ids,
    paths_of_kept,
    read_files,
    with_urls,
)
from lookalike.spark._types import DataFrame, SparkSession
from lookalike.spark._work_dir import PATTERN_SIGNS, OtherJob, ensure_no_file

if TYPE_CHECKING:
    from lookalike.spark._result import SparkDedupResult

__all__ = ["main"]

_HELP = """\
Options that are not listed are those of `lookalike dedup`: --threshold 0.9, --method minhash, --keep max:score, --within language.
The results are folders of Parquet files, as `lookalike dedup --output-format parquet` names them: kept.parquet, removed.parquet,
clusters.parquet, pairs.parquet; skipped.parquet, rows and records that could not be read; and run.json, which is written last.
The exit status is 0 if done, 1 if failed, 2 if wrongly called, 3 if done but something could not be read.

Example:
  spark-submit "$(python -c 'import lookalike.spark as s; print(s.__path__[0])')/__main__.py" \\
      s3a://crawl/pages/ --format parquet --id url -o s3a://crawl/deduplicated --work-dir s3a://crawl/job
"""

#: Folders of results.
_RESULTS = ("kept", "removed", "clusters", "pairs", "skipped")

#: Options about what the other command prints.
_ABOUT_OUTPUT = {"json": "the summary is in run.json", "quiet": "Spark shows the progress: set spark.ui.showConsoleProgress"}

#: Options of the library that messages name, which the command shows as its own options.
_OPTIONS = ("across", "against", "distance_for", "id", "keep", "memory", "partitions", "position", "text", "within", "work_dir")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lookalike.spark",
        description="Find exact and near-duplicate documents of files on a cluster of Apache Spark",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="files or folders that all machines can read")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="write the results here")
    parser.add_argument("--work-dir", metavar="DIR", help="folder of the stages [default: DIR/work]; a job that was broken off goes on there")
    parser.add_argument("--id", default="id", help="column of the ids, or a field a.b of a struct [default: id]")
    parser.add_argument("--text", action="extend", type=_columns, metavar="COLUMN,...",
                        help="columns of the texts, or fields a.b of structs; may be repeated [default: text]")
    parser.add_argument("--against", action="append", metavar="PATH",
                        help="data to compare with, which is never removed, or results of an earlier job; may be repeated")
    parser.add_argument("--format", choices=sorted(set(FORMATS.values())), help="format of all inputs [default: by their names]")
    parser.add_argument("--no-quotes", action="store_true", help="read quotes in CSV and TSV as plain characters; each line is a row")
    parser.add_argument("--position", metavar="COLUMN", help="order of the rows, for --keep first")
    parser.add_argument("--partitions", type=int, metavar="N", help="partitions of each shuffle")
    parser.add_argument("--memory", default="512M", metavar="SIZE", help="what a task may hold of texts [default: 512M]")
    parser.add_argument("--repeated-ids", choices=["refuse", "number"], default="refuse",
                        help=f"what to do with ids that several rows have: refuse, or number them in the column {NUMBERED} (ID#2, ID#3, ...) "
                        "[default: refuse]")
    parser.add_argument("--strict", action="store_true", help="stop if a row or record cannot be read, instead of listing it")
    parser.add_argument("--overwrite", action="store_true", help="replace results that are there, and stages of other data or settings")
    return parser


def _columns(names: str) -> list[str]:
    """Return the columns in a list, in which a comma after a backslash belongs to a name."""
    return [name.replace("\\,", ",") for name in split_at_commas(names)]


def _parted(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments for the parser, and the options of `lookalike dedup`, ``--name value`` or ``--name=value``, at any position.

    Options that are valid here have one value each. The parser does not know them, and would take their values for inputs.
    """
    own: list[str] = []
    found: dict[str, Any] = {}
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            return [*own, word, *reversed(rest)], found
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name in parser._option_string_actions:
            own.append(word)
            continue
        key = name[2:].replace("-", "_")
        key = "and_" if key == "and" else key
        told: Any = value
        if not equals:
            told = rest.pop() if rest and not rest[-1].startswith("--") else True
        found[key] = [*_listed(found[key]), told] if key in found else told
    return own, found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status: 0 done, 1 failed, 2 wrong usage, 3 done with losses."""
    parser = _parser()
    own, options = _parted(parser, sys.argv[1:] if arguments is None else arguments)
    try:
        # Before the parser: an option without a value would have taken an input for one, which the parser then misses.
        _ensure_known(options)
        asked = parser.parse_intermixed_args(own)
        _ensure_usage(asked, options)
    except (TypeError, ValueError) as error:
        print(f"error: {_as_options(str(error))}", file=sys.stderr)
        return 2
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("lookalike").getOrCreate()
    try:
        return _run(session, asked, options)
    except (LookalikeError, OSError, PySparkException, TypeError, ValueError) as error:
        remedy = "; --overwrite discards them" if isinstance(error, OtherJob) else ""
        print(f"error: {_as_options(_without_stack(str(error)))}{remedy}", file=sys.stderr)
        return 1
    except Exception as error:
        # Spark 3.5 passes some Java errors on unchanged.
        of_java = getattr(error, "java_exception", None)
        if of_java is None:
            raise
        print(f"error: {_without_stack(of_java.toString())}", file=sys.stderr)
        return 1


def _ensure_known(options: dict[str, Any]) -> None:
    """Refuse options of `lookalike dedup` that have no meaning on a cluster."""
    for name, reason in {**UNSUPPORTED_OPTIONS, **_ABOUT_OUTPUT}.items():
        if name in options:
            told = "Spark reads and writes the files" if reason.startswith("it is for files") else reason
            raise ValueError(f"--{name.replace('_', '-')} is no option here: {told}")


def _ensure_usage(asked: argparse.Namespace, options: dict[str, Any]) -> None:
    """Refuse invalid options before Spark starts."""
    if asked.no_quotes and asked.format != "csv" and (asked.format or not any(map(is_delimited, asked.inputs))):
        raise ValueError("--no-quotes is about CSV and TSV, and no input is either: leave it out")
    columns_of(kernel_of(options), options, text=asked.text, id=asked.id, position=asked.position)
    ensure_partitions(asked.partitions)
    bytes_of(asked.memory)
    for name, folder in [("--output", asked.output), ("--work-dir", asked.work_dir)]:
        if folder is not None and not folder.rstrip("/"):
            raise ValueError(f"{name} {folder!r} names no folder of its own: name one that may hold the files of a job")
        signs = [sign for sign in PATTERN_SIGNS if sign in (folder or "")]
        if signs:
            raise ValueError(f"{name} {folder} has {' '.join(signs)} in its name, which Spark reads as a pattern: name another folder")


def _run(session: SparkSession, asked: argparse.Namespace, options: dict[str, Any]) -> int:
    folder = asked.output.rstrip("/")
    # By default the folder of stages is below the results, because all machines must see it, too.
    work_dir = (asked.work_dir or f"{folder}/work").rstrip("/")
    for name, path in [("--output", folder), ("--work-dir", work_dir)]:
        ensure_no_file(Cluster(session), name, path)
    _ensure_free(session, folder, asked.overwrite)
    _ensure_outside_inputs(folder, asked)
    columns = columns_of(kernel_of(options), options, text=asked.text, id=asked.id, position=asked.position)
    rows = _read(session, asked.inputs, asked.format, asked, work_dir, columns)
    against = None
    if asked.against is not None:
        paths = [kept for path in asked.against for kept in paths_of_kept(session, path)]
        # Results may have another format than the inputs.
        kind = asked.format if paths == asked.against or not all(map(has_format, paths)) else None
        try:
            against = _read(session, paths, kind, asked, f"{work_dir}/against", columns)
        except (TypeError, ValueError) as error:
            raise type(error)(f"against: {error}") from None
        columns.ensure_same_types(rows.data, against.data)
        against = _numbered(against, asked, paths, f"{work_dir}/against")
    rows = _numbered(rows, asked, asked.inputs, work_dir)
    skipped = [side.skipped for side in (rows, against) if side is not None and side.skipped is not None]
    if asked.strict:
        _ensure_whole(skipped)
    is_numbered = asked.repeated_ids == "number"
    job = DedupJob(
        rows.data,
        text=asked.text,
        id=NUMBERED if is_numbered else asked.id,
        against=None if against is None else against.data,
        position=asked.position,
        told=options,
        partitions=asked.partitions,
        memory=asked.memory,
    )
    try:
        result = job.run(work_dir, discards_others=asked.overwrite)
    except BadInput as error:
        if "ids belong to several rows" not in str(error):
            raise
        remedy = "some have a number, and other rows already had that name: rename these" if is_numbered else "--repeated-ids number gives them numbers"
        raise BadInput(f"{error}; {remedy}") from None
    lost = _write(session, result, folder, skipped)
    print(repr(result), file=sys.stderr)
    if missing := result.counts["missing_text"]:
        print(f"note: {missing} without a text, which are never duplicates", file=sys.stderr)
    for row in lost:
        kind = "note" if row["reason"] == SWALLOWED else "skipped"
        print(f"{kind}: {row['count']} in {row['source']}: {row['reason']}", file=sys.stderr)
    return 0 if all(row["reason"] == SWALLOWED for row in lost) else 3


def _read(
    session: SparkSession, paths: list[str], kind: str | None, asked: argparse.Namespace, work_dir: str, columns: DocumentColumns
) -> SparkRows:
    """Return the rows of files. Columns are checked first, so that hours of work do not end with an error about a wrong name."""

    def by_site(rows: SparkRows) -> SparkRows:
        return with_urls(rows) if columns.category == "url" else rows

    def check(data: DataFrame) -> None:
        # Results contain all columns.
        ensure_distinct_names(data)
        columns.documents(by_site(SparkRows(data)).data, is_against=False)

    rows = read_files(
        session,
        paths,
        kind,
        work_dir,
        columns=columns,
        check=check,
        discards_others=asked.overwrite,
        no_quotes=asked.no_quotes,
    )
    check(rows.data)
    return by_site(rows)


def _numbered(rows: SparkRows, asked: argparse.Namespace, paths: list[str], work_dir: str) -> SparkRows:
    if asked.repeated_ids != "number":
        return rows
    return numbered_ids(rows, asked.id, paths, work_dir, discards_others=asked.overwrite)


def _ensure_outside_inputs(folder: str, asked: argparse.Namespace) -> None:
    """Refuse to replace inputs, and to write into a folder of inputs, where files would be taken for documents the next time.

    Results that are only compared with are not written again, and inputs would be removed before they are read.
    """
    place = _place(folder)
    for name, own in [("--output", folder), ("--work-dir", asked.work_dir)]:
        for path in asked.inputs:
            if own is not None and _place(own).startswith(f"{_place(path)}/"):
                raise FileExistsError(f"{name} {own} is within the input {path}, whose files are all read: name a folder beside it")
    compared = "whose documents are only compared with and not written again"
    for paths, why in [(asked.inputs, "which is read"), (asked.against or [], compared)]:
        # Including files on this machine that match a pattern.
        for path in (found for named in paths for found in [named, *glob.glob(named)]):
            if asked.overwrite and f"{_place(path)}/".startswith(f"{place}/"):
                raise FileExistsError(f"--overwrite would replace {path}, {why}: name another --output")


def _place(path: str) -> str:
    """Return a path in a form that can be compared with others."""
    local = path.removeprefix("file://") if path.startswith("file:///") else path.removeprefix("file:")
    return path.rstrip("/") if "://" in local else os.path.realpath(local)


def _ensure_free(session: SparkSession, folder: str, overwrite: bool) -> None:
    """Refuse to replace complete results, or files that this program did not write, unless overwriting is allowed."""
    from pyspark.errors import AnalysisException

    found = is_finished(session, folder)
    if overwrite or found is False:
        return
    if found:
        raise FileExistsError(f"{folder} has results already: name another --output, or replace them with --overwrite")
    for name in _RESULTS:
        try:
            session.read.schema("id string").parquet(f"{folder}/{name}.parquet")
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                continue
            raise
        raise FileExistsError(f"{folder}/{name}.parquet already exists: name another --output, or replace it with --overwrite")


def _ensure_whole(skipped: list[DataFrame]) -> None:
    for frame in skipped:
        for row in frame.where(frame["reason"] != SWALLOWED).limit(1).collect():
            shown = f": {row['row'][:80]}" if row["row"] else ""
            raise BadInput(f"{row['source']}: {row['reason']}{shown}: repair it, or run without --strict to skip and list such rows")


def _as_options(told: str) -> str:
    """Return a message of the library with the options of the command in place of its arguments."""
    names = "|".join(_OPTIONS)
    for named in (r"(?<=unexpected argument ')\w+(?=')", r"(?<=did you mean ')\w+(?=')", r"^\w+(?= has no effect here)"):
        told = re.sub(named, lambda found: "--" + found[0].replace("_", "-"), told)
    told = re.sub(rf"\b({names})=(?='?\w)", lambda found: f"--{found[1]} ", told)
    told = re.sub(rf"\b({names})=", lambda found: f"--{found[1]}", told)
    return told.replace("another work_dir", "another --work-dir").replace("--work_dir", "--work-dir").replace("--distance_for", "--distance-for")


def _without_stack(told: str) -> str:
    """Return the text of an error without its Java stack trace."""
    return told.split("JVM stacktrace:")[0].split("\n\tat ")[0].rstrip()


def _write(session: SparkSession, result: SparkDedupResult, folder: str, skipped: list[DataFrame]) -> list[Any]:
    """Write the results, and return what was skipped or noted: a row for each file and reason."""
    from pyspark.sql import functions as F

    summary = f"{folder}/run.json"
    # First a summary without a row: otherwise the summary of older results would be beside newer ones. It indicates that results are
    # incomplete, so that another attempt replaces them.
    session.range(0).select(F.lit("").alias("value")).write.mode("overwrite").text(summary)
    lost = session.createDataFrame([], "source string, reason string, row string, count long")
    for frame in skipped:
        lost = lost.unionByName(frame)
    members = F.array_sort(F.collect_list(F.struct("id", "similarity", "reason"))).alias("members")
    both = ["survivor", "is_new"]
    # By both columns, because a survivor and a document to compare with may have the same id.
    clusters = result.decided.groupBy(*both).agg(members)
    numbered = result.numbers.select(*both, F.col("cluster_id").alias("cluster"))
    against = F.when(~F.col("is_new"), True).alias("against")
    for name, frame in [
        ("kept", result.survivors),
        ("removed", result.removed),
        ("clusters", clusters.join(numbered, both).select("cluster", "survivor", against, "members").orderBy("cluster")),
        ("pairs", result.pairs.orderBy("a", "b")),
        ("skipped", lost),
    ]:
        frame.write.mode("overwrite").parquet(f"{folder}/{name}.parquet")
    by_reason = session.read.parquet(f"{folder}/skipped.parquet").groupBy("source", "reason").agg(F.sum("count").alias("count"))
    found = by_reason.orderBy("source", "reason").collect()
    told = {
        "program": "lookalike.spark",
        "scheme": str(result.scheme),
        "scheme_id": result.scheme.id,
        "threshold": result.threshold,
        "counts": {**result.counts, "unreadable": sum(row["count"] for row in found if row["reason"] != SWALLOWED)},
        "skipped": [row.asDict() for row in found if row["reason"] != SWALLOWED],
        "notes": [row.asDict() for row in found if row["reason"] == SWALLOWED],
        "stages": result.costs,
        "work_dir": result.work_dir,
        "kept_in": ["kept.parquet"],
        "results": [*(f"{name}.parquet" for name in _RESULTS), "run.json"],
    }
    run = session.range(1, numPartitions=1).select(F.lit(json.dumps(told)).alias("value"))
    run.write.mode("overwrite").text(summary)
    return found
