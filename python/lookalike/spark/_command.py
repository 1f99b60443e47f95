"""``python -m lookalike.spark``: deduplication of files on a cluster, for ``spark-submit``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from lookalike._errors import LookalikeError
from lookalike.spark._archives import read_archives
from lookalike.spark._dedup import dedup
from lookalike.spark._types import DataFrame, SparkSession

if TYPE_CHECKING:
    from lookalike.spark._result import SparkDedupResult

__all__ = ["main"]

_HELP = """\
Options that are not listed are those of `lookalike dedup`: --threshold 0.9, --method minhash, --keep max:score, --within language.
The results are folders of Parquet files, as `lookalike dedup --output-format parquet` names them: kept.parquet, removed.parquet,
clusters.parquet, pairs.parquet; and run.json, which is written last.

Example:
  spark-submit "$(python -c 'import lookalike.spark as s; print(s.__path__[0])')/__main__.py" \\
      s3a://crawl/pages/ --format parquet --id url -o s3a://crawl/deduplicated --work-dir s3a://crawl/job
"""

#: Formats by the end of a name.
_FORMATS = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".orc": "orc",
    ".warc": "warc",
    ".wet": "warc",
    ".arc": "warc",
}


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
    parser.add_argument("--id", default="id", help="column of the ids [default: id]")
    parser.add_argument("--text", action="append", help="column of the texts, may be repeated [default: text]")
    parser.add_argument("--against", action="append", metavar="PATH", help="data to compare with, which is never removed; may be repeated")
    parser.add_argument("--format", choices=sorted(set(_FORMATS.values())), help="format of all inputs [default: by their names]")
    parser.add_argument("--position", metavar="COLUMN", help="order of the rows, for --keep first")
    parser.add_argument("--partitions", type=int, metavar="N", help="partitions of each shuffle")
    parser.add_argument("--memory", default="512M", metavar="SIZE", help="what a task may hold of texts [default: 512M]")
    parser.add_argument("--overwrite", action="store_true", help="replace results that are there")
    return parser


def _parted(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The arguments for the parser, and the options of `lookalike dedup`, ``--name value`` or ``--name=value``, at any position.

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


def _read(session: SparkSession, paths: list[str], named: str | None) -> DataFrame:
    """The rows of files of one format."""

    def format_of(path: str) -> str:
        stem = path.rstrip("/")
        for packed in (".gz", ".zst", ".bz2"):
            stem = stem.removesuffix(packed)
        found = _FORMATS.get(os.path.splitext(stem)[1])
        if found is None:
            raise ValueError(f"{path}: its name does not tell its format: name it with --format")
        return found

    formats = {named or format_of(path) for path in paths}
    if len(formats) > 1:
        raise ValueError(f"the inputs are of several formats, {', '.join(sorted(formats))}: read one at a time")
    kind = formats.pop()
    if kind == "warc":
        return read_archives(session, paths)
    reader = session.read
    if kind == "csv":
        reader = reader.option("header", True).option("multiLine", True).option("escape", '"')
        separators = {"\t" if ".tsv" in path else "," for path in paths}
        if len(separators) > 1:
            raise ValueError("some inputs have tabs between their columns and others commas: read one kind at a time")
        reader = reader.option("sep", separators.pop())
    return reader.format(kind).load(paths)


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status: 0 done, 1 failed, 2 wrong usage."""
    parser = _parser()
    own, options = _parted(parser, sys.argv[1:] if arguments is None else arguments)
    asked = parser.parse_intermixed_args(own)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("lookalike").getOrCreate()
    try:
        data = _read(session, asked.inputs, asked.format)
        against = None if asked.against is None else _read(session, asked.against, asked.format)
        # The folder of stages below the results by default, since it must be seen by all machines, too.
        result = dedup(
            data,
            text=asked.text,
            id=asked.id,
            against=against,
            position=asked.position,
            work_dir=asked.work_dir or f"{asked.output.rstrip('/')}/work",
            partitions=asked.partitions,
            memory=asked.memory,
            **options,
        )
        _write(session, result, asked.output.rstrip("/"), asked.overwrite)
    except (LookalikeError, OSError, PySparkException, TypeError, ValueError) as error:
        print(f"error: {_without_stack(str(error))}", file=sys.stderr)
        return 1
    except Exception as error:
        # Spark 3.5 hands out some errors of Java as they are.
        of_java = getattr(error, "java_exception", None)
        if of_java is None:
            raise
        print(f"error: {_without_stack(of_java.toString())}", file=sys.stderr)
        return 1
    print(repr(result), file=sys.stderr)
    return 0


def _without_stack(told: str) -> str:
    """The text of an error, without its Java stack trace."""
    return told.split("JVM stacktrace:")[0].split("\n\tat ")[0].rstrip()


def _write(session: SparkSession, result: SparkDedupResult, folder: str, overwrite: bool) -> None:
    from pyspark.sql import functions as F

    mode = "overwrite" if overwrite else "errorifexists"
    summary = f"{folder}/run.json"
    if overwrite:
        # Without a row first: that of older results would stand beside newer ones, and with them if this breaks off.
        session.range(0).select(F.lit("").alias("value")).write.mode(mode).text(summary)
    members = F.array_sort(F.collect_list(F.struct("id", "similarity", "reason"))).alias("members")
    both = ["survivor", "is_new"]
    # By both columns: a survivor and a document to compare with may have one id.
    clusters = result.decided.groupBy(*both).agg(members)
    numbered = result.numbers.select(*both, (F.col("cluster_id") + 1).alias("cluster"))
    for name, frame in [
        ("kept", result.survivors),
        ("removed", result.removed),
        ("clusters", clusters.join(numbered, both).select("cluster", "survivor", "members").orderBy("cluster")),
        ("pairs", result.pairs.orderBy("a", "b")),
    ]:
        frame.write.mode(mode).parquet(f"{folder}/{name}.parquet")
    told = {
        "program": "lookalike.spark",
        "scheme": str(result.scheme),
        "scheme_id": result.scheme.id,
        "threshold": result.threshold,
        "counts": result.counts,
        "stages": result.costs,
        "work_dir": result.work_dir,
    }
    run = session.range(1, numPartitions=1).select(F.lit(json.dumps(told)).alias("value"))
    run.write.mode(mode).text(summary)
