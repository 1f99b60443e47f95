"""Files that the command for ``spark-submit`` reads: their rows, and the parts that could not be read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lookalike import _lookalike
from lookalike._errors import BadInput
from lookalike.spark._archives import read_archives
from lookalike.spark._cluster import Cluster
from lookalike.spark._documents import DocumentColumns, id_column, parts_of, text_by_default
from lookalike.spark._types import Column, DataFrame, SparkSession
from lookalike.spark._work_dir import PATTERN_SIGNS, OtherJob, WorkDir

__all__ = [
    "FORMATS",
    "NUMBERED",
    "SWALLOWED",
    "SparkRows",
    "has_format",
    "is_delimited",
    "is_finished",
    "numbered_ids",
    "paths_of_kept",
    "read_files",
    "with_urls",
]

#: Formats by the end of a name.
FORMATS = {
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

#: Column of ids in which repeated ids are numbered.
NUMBERED = "numbered_id"

#: Options for standard JSON without extensions.
_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}

#: Reason for rows of text files in which Spark would replace bytes.
_NOT_UTF8 = "not-utf8: Spark replaces bytes that are not UTF-8: convert the file, or read it with the command, which detects character sets"

#: Reason for rows that are read, but may have swallowed others.
SWALLOWED = "swallowed-rows: a quoted value has several lines that look like rows: --no-quotes reads each line as a row"

_BROKEN = "__lookalike_broken"
_SOURCE = "__lookalike_source"
_PARSED = "__lookalike_parsed"
_FIRST = "__lookalike_first"
_REASON = "__lookalike_reason"


@dataclass
class SparkRows:
    """Rows of files, and the parts that could not be read: ``source``, ``reason``, ``row``, ``count``. Rows with the reason
    `SWALLOWED` were read."""

    data: DataFrame
    skipped: DataFrame | None = None


def read_files(
    session: SparkSession,
    paths: list[str],
    named: str | None,
    work_dir: str,
    *,
    columns: DocumentColumns,
    check: Callable[[DataFrame], object],
    discards_others: bool,
    no_quotes: bool = False,
) -> SparkRows:
    """Return the rows of files of one format, with at least these columns. With ``no_quotes``, quotes in CSV are plain characters.

    Archives are read once: their texts are written to a folder in ``work_dir``. Before that, ``check`` checks the columns.
    """
    formats = {named or _format_of(path) for path in paths}
    if len(formats) > 1:
        raise ValueError(f"the inputs are of several formats, {', '.join(sorted(formats))}: read one at a time")
    kind = formats.pop()
    if kind == "warc":
        records = read_archives(session, paths, losses=True)
        check(records.drop("reason", "count"))
        found = _written(session, records, paths, work_dir, discards_others)
        lost = found.where("reason is not null").selectExpr("source", "reason", "cast(null as string) as row", "count")
        return SparkRows(found.where("reason is null").drop("reason", "count"), lost)
    _ensure_readable(paths)
    is_deep = _has_subfolders(session, paths)
    if kind == "json":
        return _json_lines(session, paths, is_deep, columns)
    if kind == "csv":
        return _delimited(session, paths, is_deep, columns, no_quotes)
    reader = session.read.option("recursiveFileLookup", is_deep)
    # Files written at different times may have different columns. Without merging, columns that only some files have would be dropped
    # silently.
    return _in_utf8(reader.format(kind).option("mergeSchema", True).load(paths), columns)


def _in_utf8(rows: DataFrame, columns: DocumentColumns) -> SparkRows:
    """Set aside rows with a string that is not UTF-8 in a column that is used: files may hold any bytes, and Spark does not check them."""
    from pyspark.sql import functions as F

    strings = columns.strings(rows)
    broken = [F.when(~_is_utf8(string), F.lit(f"not-utf8: column {name}: its text is not UTF-8")) for name, string in strings.items()]
    reason = F.coalesce(F.lit(None).cast("string"), *broken)
    id = id_column(rows, columns.id)
    # The id tells which row it is.
    return SparkRows(rows.where(reason.isNull()), _skipped(rows, reason, F.when(_is_utf8(id), id)))


def _is_utf8(string: Column) -> Column:
    """Return false if the bytes of a string are not UTF-8."""
    from pyspark.sql import functions as F

    if hasattr(F, "is_valid_utf8"):
        return F.coalesce(F.is_valid_utf8(string), F.lit(True))
    # Before Spark 4, encoding replaces such bytes.
    return F.encode(string, "UTF-8").eqNullSafe(string.cast("binary"))


def _shown(string: Column) -> Column:
    """Return a string with a replacement character in place of bytes that are not UTF-8."""
    from pyspark.sql import functions as F

    return F.make_valid_utf8(string) if hasattr(F, "make_valid_utf8") else F.decode(string.cast("binary"), "UTF-8")


def _skipped(rows: DataFrame, reason: Column, row: Column) -> DataFrame:
    """Return the rows with a reason to skip them, in the columns of `SparkRows.skipped`."""
    from pyspark.sql import functions as F

    # Named first: the name of a file is known where it is read.
    named = rows.select(F.input_file_name().alias("source"), reason.alias("reason"), row.alias("row"), F.lit(1).cast("long").alias("count"))
    return named.where(F.col("reason").isNotNull())


def _ensure_readable(paths: list[str]) -> None:
    """Refuse names of files that Spark silently skips, or takes for patterns."""
    for path in paths:
        name = os.path.basename(path.rstrip("/"))
        if name.startswith(("_", ".")) and _ending(path) in FORMATS:
            raise ValueError(f"{path}: Spark leaves out files whose names begin with {name[0]}: rename it")
        signs = [sign for sign in PATTERN_SIGNS if sign in path]
        if signs and os.path.exists(path.removeprefix("file:")):
            raise ValueError(f"{path} has {' '.join(signs)} in its name, which Spark reads as a pattern: rename it")


def _has_subfolders(session: SparkSession, paths: list[str]) -> bool:
    """Return true if files are in subfolders of the named folders. Spark only reads these if told to, or if they are partitions."""
    (flat, _), (deep, are_known) = _list_files(session, paths, is_deep=False), _list_files(session, paths)
    known = {path for path, *_ in flat} if are_known else set()
    below = [path for path, *_ in deep if path not in known] if are_known else []
    for path in below:
        if any("=" in part for part in path.split("/")[:-1]):
            raise BadInput(f"{path}: folders called NAME=VALUE are beside others, and Spark reads one kind: name the folders that hold files")
    return bool(below)


def _format_of(path: str) -> str:
    found = FORMATS.get(_ending(path))
    if found is None:
        raise ValueError(f"{path}: its name does not tell its format: name it with --format")
    return found


def _ending(path: str) -> str:
    stem = path.rstrip("/")
    for packed in (".gz", ".zst", ".bz2"):
        stem = stem.removesuffix(packed)
    return os.path.splitext(stem)[1]


def has_format(path: str) -> bool:
    """Return true if the name of a file or folder says which format it has."""
    return _ending(path) in FORMATS


def is_delimited(path: str) -> bool:
    """Return true if the name of a file says that it is CSV or TSV."""
    return FORMATS.get(_ending(path)) == "csv"


def paths_of_kept(session: SparkSession, path: str) -> list[str]:
    """Return the path unchanged, or for a folder with results of this program or of the command the paths of the documents kept."""
    folder = path.rstrip("/")
    is_complete = None if _ending(folder) in FORMATS else is_finished(session, folder)
    if is_complete is None:
        return [path]
    if not is_complete:
        raise BadInput(f"{path}: holds results of a job that is not finished: finish it, or name the files to read")
    told = session.read.text(f"{folder}/run.json", wholetext=True).collect()[0]["value"]
    try:
        names = json.loads(told)["kept_in"]
    except (KeyError, TypeError, ValueError):
        # Of another program.
        return [path]
    # Results may come from elsewhere: their summary must not make a job read other files.
    for name in names:
        if name in ("", ".", "..") or "/" in name:
            raise BadInput(f"{path}: run.json says that the kept documents are in {name!r}, which is not in this folder: name the files to read")
    return [f"{folder}/{name}" for name in names]


def _schema_without_rows(columns: DocumentColumns) -> Any:
    """Return the columns of files without a row that could tell their names."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    texts = [columns.text] if isinstance(columns.text, str) else columns.text or ["text"]
    names = dict.fromkeys(name for name in (columns.id, *texts, columns.value, columns.category) if name is not None)
    position = [] if columns.position is None else [StructField(columns.position, LongType())]
    return StructType([*(StructField(name, StringType()) for name in names), *position])


def _json_lines(session: SparkSession, paths: list[str], is_deep: bool, columns: DocumentColumns) -> SparkRows:
    """Read objects, one on each line. Set aside lines that are something else, or whose text is not a string.

    Spark's reader takes the first value of a line and silently ignores the rest. Wrapped in brackets, such a line is invalid JSON, or
    several values.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructType

    reason = "invalid-json: the line is not a JSON object"
    try:
        reader = session.read.options(recursiveFileLookup=is_deep, lineSep="\n", columnNameOfCorruptRecord=_BROKEN, **_STRICT)
        found = reader.json(paths).schema
    except AnalysisException as error:
        if "COLUMN_ALREADY_EXISTS" not in str(error):
            raise
        told = str(error).split(". ", 1)[0]
        remedy = "a line repeats a name, or names are told apart by case alone; rename them, or set spark.sql.caseSensitive for the latter"
        raise BadInput(f"{', '.join(paths)}: Spark cannot read the objects ({told}): {remedy}") from None
    lines = session.read.options(recursiveFileLookup=is_deep, lineSep="\n").text(paths)
    beside = [name for name in lines.columns if name != "value"]
    schema = StructType([field for field in found.fields if field.name != _BROKEN and field.name not in beside])
    if not schema.fields:
        schema = StructType([field for field in _schema_without_rows(columns) if field.name not in beside])
    trimmed = F.expr("ltrim(' \t\r', value)")
    lines = lines.where(trimmed != "").withColumn(_SOURCE, F.input_file_name())
    parsed = F.from_json(F.concat(F.lit("["), "value", F.lit("]")), ArrayType(schema), _STRICT)
    lines = lines.withColumn(_PARSED, parsed).withColumn(_FIRST, F.get(_PARSED, 0))
    is_object = F.coalesce((F.size(_PARSED) == 1) & F.col(_FIRST).isNotNull() & trimmed.startswith("{"), F.lit(False))
    wrong = F.when(~_is_utf8(F.col("value")), F.lit(_NOT_UTF8)).when(~is_object, F.lit(reason))
    wrong = wrong.otherwise(_wrong_type(schema, columns.text, columns.id or "id"))
    lines = lines.withColumn(_REASON, wrong)
    rows = lines.where(F.col(_REASON).isNull()).select(F.col(_FIRST).alias(_PARSED), *beside)
    skipped = lines.where(F.col(_REASON).isNotNull()).select(
        F.col(_SOURCE).alias("source"), F.col(_REASON).alias("reason"), _shown(F.col("value")).alias("row"), F.lit(1).cast("long").alias("count")
    )
    return SparkRows(rows.select(f"{_PARSED}.*", *beside), skipped)


def _wrong_type(schema: Any, text: str | Sequence[str] | None, id: str) -> Column:
    """Return the reason why a parsed line is not a document for the command: its text is not a string, or its id neither a string nor a
    number.

    If some values of a field are strings, Spark returns all others in their JSON form.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BooleanType, DecimalType, DoubleType, MapType, StringType

    text = text or text_by_default(schema.names) or []
    texts = [text] if isinstance(text, str) else text
    others = [
        ("a number", "-0123456789", DoubleType()),
        ("a boolean", "tf", BooleanType()),
        ("an array", "[", ArrayType(StringType())),
        ("an object", "{", MapType(StringType(), StringType())),
    ]
    reasons = [F.lit(None).cast("string")]
    for field, what, wanted in [*((name, "text", "a string") for name in texts), (id, "id", "a string or number")]:
        for kind, signs, other in others:
            if what != "id" or kind != "a number":
                is_other = _is_of_type(schema, field, signs, other)
                reasons.append(F.when(is_other, F.lit(f"wrong-type: the {what} field holds {kind}, not {wanted}")))
    is_rewritten = _is_of_type(schema, id, "-0123456789", DoubleType(), unless=DecimalType(38, 0))
    rewritten = "wrong-type: the id field holds a number of which Spark writes other digits, not a string or whole number"
    reasons.append(F.when(is_rewritten, F.lit(rewritten)))
    return F.coalesce(*reasons)


def _is_of_type(schema: Any, field: str, signs: str, other: Any, unless: Any = None) -> Column:
    """Return true where a field in a column of strings has another type in JSON, whose values begin with one of these characters, and
    (with ``unless``) is not written as a value of a third type is."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    path = [field] if field in schema.names else parts_of(field)
    found: Any = schema
    for part in path:
        if not isinstance(found, StructType) or part not in found.names:
            return F.lit(False)
        found = found[part].dataType
    if not isinstance(found, StringType):
        return F.lit(False)

    def parsed_as(kind: Any) -> Column:
        for part in reversed(path):
            kind = StructType([StructField(part, kind)])
        return _field(F.from_json("value", kind, _STRICT), path)

    # Parsed as the other type, a string becomes null. Few strings begin like such a value, so few lines are parsed again.
    value = _field(F.col(_FIRST), path)
    is_other = F.substring(value, 1, 1).isin(*signs) & parsed_as(other).isNotNull()
    return is_other if unless is None else is_other & ~parsed_as(unless).cast("string").eqNullSafe(value)


def _field(value: Column, path: list[str]) -> Column:
    """Return a field of a struct."""
    for part in path:
        value = value.getField(part)
    return value


def _delimited(session: SparkSession, paths: list[str], is_deep: bool, columns: DocumentColumns, no_quotes: bool) -> SparkRows:
    """Read CSV or TSV. Set aside rows that do not have the fields of the header, or lost bytes; and note rows that may have swallowed others."""
    from pyspark.sql import functions as F

    separators = {"\t" if ".tsv" in path else "," for path in paths}
    if len(separators) > 1:
        raise ValueError("some inputs have tabs between their columns and others commas: read one kind at a time")
    separator = separators.pop()
    reader = session.read.option("columnNameOfCorruptRecord", _BROKEN)
    # Without `enforceSchema`, the headers of all files are compared with the first.
    # With columns pruned, Spark does not see that a row has more fields than the header.
    reader = reader.options(header=True, enforceSchema=False, sep=separator, columnPruning=False)
    # Without quotes, a row ends with its line, and a backslash escapes nothing.
    quotes = {"quote": "", "escape": "\0"} if no_quotes else {"multiLine": True, "escape": '"'}
    reader = reader.options(**quotes)
    # Without the columns of partitions, which are no fields of the header.
    schema = reader.option("recursiveFileLookup", True).csv(paths).schema
    header = list(schema.names)
    if not header:
        return SparkRows(session.createDataFrame([], _schema_without_rows(columns)))
    rows = reader.option("recursiveFileLookup", is_deep).schema(schema.add(_BROKEN, "string")).csv(paths)
    fields = [_column(name) for name in header]
    # Spark refuses queries that use only the column of broken rows, so the condition includes another one.
    broken = F.col(_BROKEN)
    other = F.concat(F.lit("x"), F.xxhash64(fields[0]).cast("string"))
    is_broken = broken.eqNullSafe(F.coalesce(broken, other))
    reason = F.when(is_broken, F.lit(f"fields: the row does not have the {len(header)} fields of the header"))
    if _has_other_bytes(session, paths, is_deep):
        # The bytes are gone, so rows that had this character before are set aside as well.
        reason = reason.when(F.coalesce(*(F.when(field.contains("\ufffd"), True) for field in fields), F.lit(False)), F.lit(_NOT_UTF8))
    told = reason
    if not no_quotes and len(header) > 1:
        swallows = (F.when(_reads_like_rows(field, separator, at, len(header)), True) for at, field in enumerate(fields))
        told = F.coalesce(reason, F.when(F.coalesce(*swallows), F.lit(SWALLOWED)))
    # Spark reads an empty cell as null, quoted or not; for the command it is an empty text, category or id.
    whole = rows.where(reason.isNull()).drop(_BROKEN).fillna("")
    return SparkRows(whole, _skipped(rows, told, F.coalesce(broken, F.concat_ws(separator, *fields))))


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _has_other_bytes(session: SparkSession, paths: list[str], is_deep: bool) -> bool:
    """Return true if files of text have bytes that are not UTF-8. Spark's reader of CSV replaces them."""
    from pyspark.sql import functions as F

    lines = session.read.option("recursiveFileLookup", is_deep).text(paths)
    return not lines.where(~_is_utf8(F.col("value"))).isEmpty()


def _reads_like_rows(value: Column, separator: str, before: int, columns: int) -> Column:
    """Return true if each line of a value reads like a row, together with the values around it, of which ``before`` come before it: a quote
    that began it by chance may have swallowed rows. The command finds the same (``StrayQuotes::reads_like_rows``)."""
    from pyspark.sql import functions as F

    lines = F.split(value, "\n")

    def is_row(line: Column, number: Column) -> Column:
        around = F.when(number == 0, before).otherwise(0) + F.when(number == F.size(lines) - 1, columns - before - 1).otherwise(0)
        separators = F.length(line) - F.length(F.translate(line, separator, ""))
        # A space follows the commas of prose.
        return (around + separators + 1 == columns) & ~line.contains(f"{separator} ")

    return value.contains("\n") & F.forall(F.transform(lines, is_row), lambda is_like: is_like)


def with_urls(rows: SparkRows) -> SparkRows:
    """If the rows are records of archives, add a column ``url``: their ids are the addresses."""
    from pyspark.sql import functions as F

    if "url" in rows.data.columns or not _are_of_archives(rows.data):
        return rows
    return SparkRows(rows.data.withColumn("url", F.col("id")), rows.skipped)


def _are_of_archives(data: DataFrame) -> bool:
    return {"source", "record", "offset", "charset"} <= set(data.columns)


def numbered_ids(rows: SparkRows, id: str, paths: list[str], work_dir: str, *, discards_others: bool) -> SparkRows:
    """Add the column `NUMBERED`, in which the second row with an id has ``ID#2``, the third ``ID#3``.

    Rows have no order on a cluster. They are numbered by the names of their files, then by the records in these, and finally by their
    contents.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    data = rows.data
    if NUMBERED in data.columns:
        # Results of a job that has numbered them: numbering again would change the names.
        return rows
    order: list[Column] = [F.col("source"), F.col("record")] if _are_of_archives(data) else [F.col(_SOURCE)]
    contents = F.to_json(F.struct("*"))
    found = data.withColumn(_SOURCE, F.input_file_name()).withColumn(NUMBERED, id_column(data, id))
    window = Window.partitionBy(NUMBERED).orderBy(*order, contents)
    number = F.row_number().over(window)
    # Rows without an id get no number: the job counts them.
    name = F.when(number > 1, F.concat(NUMBERED, F.lit("#"), number.cast("string"))).otherwise(F.col(NUMBERED))
    found = found.select(*map(_column, data.columns), name.alias(NUMBERED))
    written = _written(data.sparkSession, found, paths, f"{work_dir}/numbered", discards_others, id=id)
    return SparkRows(written, rows.skipped)


def _written(
    session: SparkSession, rows: DataFrame, paths: list[str], folder: str, discards_others: bool, id: str | None = None
) -> DataFrame:
    """Write rows as a stage in a folder of their own, and read them from there."""
    cluster = Cluster(session)
    files, are_known = _list_files(session, paths)
    job = {"kind": "rows", "version": _lookalike.__version__, "columns": rows.schema.simpleString(), "files": files, "id": id}
    if discards_others and not are_known:
        # It is unknown whether the files have changed since.
        WorkDir.discard(cluster, f"{folder}/rows")
    try:
        work = WorkDir(cluster, f"{folder}/rows", job)
    except OtherJob:
        if not discards_others:
            raise
        WorkDir.discard(cluster, f"{folder}/rows")
        work = WorkDir(cluster, f"{folder}/rows", job)
    return work.stage("rows", rows.schema, lambda: rows).rows


def _list_files(session: SparkSession, paths: list[str], *, is_deep: bool = True) -> tuple[list[Any], bool]:
    """Return the files for paths and patterns, including those in subfolders, with sizes and times. The second value is false if Spark
    cannot list them."""
    from pyspark.errors import PySparkException

    columns = ["path", "length", "cast(modificationTime as string) as time"]
    try:
        # Without the contents, which are a separate column.
        reader = session.read.format("binaryFile").option("recursiveFileLookup", is_deep)
        found = reader.load(paths).selectExpr(*columns).collect()
    except (PySparkException, OSError):
        return list(paths), False
    except Exception as error:
        # Spark 3.5 passes some Java errors on unchanged.
        if getattr(error, "java_exception", None) is None:
            raise
        return list(paths), False
    return sorted([row["path"], row["length"], row["time"]] for row in found), bool(found)


def is_finished(session: SparkSession, folder: str) -> bool | None:
    """Return true if a folder has complete results, false if a job began to write some, None if it has no summary."""
    from pyspark.errors import AnalysisException

    try:
        return session.read.text(f"{folder}/run.json").count() > 0
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise
