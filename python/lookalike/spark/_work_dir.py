"""The folder of a job: its stages as Parquet, and markers of the complete ones."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lookalike._errors import LookalikeError
from lookalike.spark._cluster import Cluster, data_error_of_task
from lookalike.spark._documents import checksum_of_rows
from lookalike.spark._types import Column, DataFrame

__all__ = ["PATTERN_SIGNS", "OtherJob", "Stage", "WorkDir", "aggregates", "checksum", "ensure_no_file", "numbered_through", "parts"]

#: Characters that Spark interprets as a pattern in a path.
PATTERN_SIGNS = "[]{}*?"

#: Folder of the markers.
_MARKERS = "stages"


class Stage:
    """A complete stage: its rows, and the measurements taken when it was made."""

    def __init__(self, name: str, rows: DataFrame | None, told: dict[str, Any], is_new: bool) -> None:
        self.name = name
        self._rows = rows
        #: Numbers of the stage by name; `seconds` is the time that it took.
        self.told = told
        #: False if an earlier run had made it.
        self.is_new = is_new

    @property
    def rows(self) -> DataFrame:
        assert self._rows is not None, f"the stage {self.name} has no rows"
        return self._rows

    def __getitem__(self, name: str) -> Any:
        return self.told[name]


class OtherJob(LookalikeError):
    """Stages in a folder that were made for other settings or from other rows."""


class WorkDir:
    """Stages of one job.

    Each attempt at a stage has its own folder of Parquet files, and a marker once it is complete: a file that names the attempt, the
    attempt at the previous stage, and its measures. Only folders that markers name are read. So several drivers can work on one job: each
    follows one chain of attempts, and stages of two chains are never mixed. The first marker is the job itself: stages of another job are
    never reused. Spark reads and writes everything, because the driver may have no access to the files of the cluster.
    """

    def __init__(self, cluster: Cluster, path: str | os.PathLike[str] | None, job: Mapping[str, Any]) -> None:
        self._cluster = cluster
        # Nobody resumes from a temporary folder, so nothing is marked.
        self._is_temporary = path is None
        self.path = _temporary(cluster) if path is None else _plain(path)
        ensure_no_file(cluster, "work_dir", self.path)
        self.stages: list[Stage] = []
        #: Settings that distinguish the job from others.
        self.job = dict(job)
        own = json.dumps(job, sort_keys=True)
        #: Last attempt in the chain that is followed.
        self._last = hashlib.blake2b(own.encode(), digest_size=8).hexdigest()
        self._marks = [] if self._is_temporary else _marks(cluster, self.path)
        # In the form in which markers return it: with lists instead of tuples, and strings as keys.
        self._take(json.loads(own))

    @staticmethod
    def discard(cluster: Cluster, path: str | os.PathLike[str]) -> None:
        """Remove all stages, of whatever job. Nothing else in the folder is touched."""
        folder = _plain(path)
        names = sorted({mark["name"] for mark in _marks(cluster, folder)} - {"job"})
        # Markers last: a stage whose files are missing is made again.
        for name in [*names, _MARKERS]:
            cluster.session.range(0).write.mode("overwrite").parquet(f"{folder}/{name}")

    def _take(self, own: Mapping[str, Any]) -> None:
        is_marked = False
        for mark in self._marks:
            if mark["name"] != "job":
                continue
            is_marked, earlier = True, mark["told"]
            # What kind of job it is says more than settings that only one of the two has.
            for name in sorted({*earlier, *own}, key=lambda name: (name != "kind", name)):
                if earlier.get(name) != own.get(name):
                    raise OtherJob(
                        f"{self.path}: the stages there belong to another job, whose {name} is {earlier.get(name)!r} and not "
                        f"{own.get(name)!r}: name another work_dir, or remove that folder"
                    )
        if not is_marked:
            self._mark("job", uuid.uuid4().hex, dict(own))

    def _mark(self, name: str, attempt: str, told: dict[str, Any]) -> None:
        from pyspark.sql import functions as F

        if self._is_temporary:
            return
        mark = {"name": name, "attempt": attempt, "after": self._last, "told": told}
        row = self._cluster.session.range(1, numPartitions=1).select(F.lit(json.dumps(mark)).alias("mark"))
        # A separate folder for each: two drivers that append to one folder would remove each other's unfinished files.
        row.write.parquet(f"{self.path}/{_MARKERS}/attempt={attempt}")

    def ensure_same_rows(self, stage: Stage, rows: DataFrame, measure: str = "checksum") -> None:
        """Refuse to continue after a stage that an earlier run made from other rows: the sum of checksums in its ``measure`` differs."""
        if stage.is_new:
            return
        if checksum(rows) != (stage[measure] or 0):
            raise OtherJob(
                f"{self.path}: the stages there were made of other rows than the data has now, or the documents of against: name another "
                "work_dir, or remove that folder; if the data was not changed, write it before, for it must have the same rows each time it is read"
            )

    def _read(self, name: str, attempt: str, schema: str) -> DataFrame:
        # With a given schema, the files need not be read first to infer it.
        return self._cluster.session.read.schema(schema).parquet(f"{self.path}/{name}/{attempt}")

    def measured(self, name: str, measure: Callable[[], dict[str, Any]]) -> Stage:
        """Return a stage without rows: the numbers computed by ``measure``."""
        return self._stage(name, None, lambda _: measure())

    def stage(
        self,
        name: str,
        schema: str,
        make: Callable[[], DataFrame],
        measure: Callable[[DataFrame], dict[str, Any]] | None = None,
        *,
        is_packed: bool = False,
    ) -> Stage:
        """Return a stage with the rows that ``make`` returns. The result of ``measure`` on them, with their number ``rows``, is stored with the
        marker. Packed rows are written unchanged."""

        def write(attempt: str) -> dict[str, Any]:
            # Most values are ids and hashes, so a dictionary would be filled and then discarded.
            writer = make().write.option("parquet.enable.dictionary", "false")
            if is_packed:
                # Long rows of hashes, which cannot be compressed.
                writer = writer.option("compression", "uncompressed")
            writer.parquet(f"{self.path}/{name}/{attempt}")
            rows = self._read(name, attempt, schema)
            if measure is None:
                return {} if self._is_temporary else {"rows": rows.count()}
            return measure(rows)

        return self._stage(name, schema, write)

    def _stage(self, name: str, schema: str | None, work: Callable[[str], dict[str, Any]]) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        mark = self._earlier(name, schema)
        if mark is None and not self._is_temporary:
            # Another driver may have made it meanwhile.
            self._marks = _marks(self._cluster, self.path)
            mark = self._earlier(name, schema)
        attempt = uuid.uuid4().hex if mark is None else mark["attempt"]
        told = self._timed(lambda: work(attempt)) if mark is None else mark["told"]
        if mark is None:
            self._mark(name, attempt, told)
        self._last = attempt
        stage = Stage(name, None if schema is None else self._read(name, attempt, schema), told, mark is None)
        self.stages.append(stage)
        return stage

    def _earlier(self, name: str, schema: str | None) -> dict[str, Any] | None:
        """Return the marker of a complete stage that follows the previous one, if its rows are all there."""
        found = [mark for mark in self._marks if (mark["name"], mark["after"]) == (name, self._last)]
        # If there are several, always choose the same one. All are correct, but later stages belong to one of them.
        for mark in sorted(found, key=lambda mark: (not self._is_continued(mark), mark["attempt"])):
            if schema is None or self._is_whole(mark, schema):
                return mark
        return None

    def _is_continued(self, mark: dict[str, Any]) -> bool:
        return any(later["after"] == mark["attempt"] for later in self._marks)

    def _is_whole(self, mark: dict[str, Any], schema: str) -> bool:
        """Return false if files of the stage were lost. The footers of the files tell how many rows they have."""
        from pyspark.errors import AnalysisException

        try:
            return self._read(mark["name"], mark["attempt"], schema).count() == mark["told"]["rows"]
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return False
            raise

    @staticmethod
    def _timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        start = time.monotonic()
        try:
            told = work()
        except Exception as error:  # Spark 3.5 passes Java errors on when it writes.
            bad = data_error_of_task(error)
            if bad is None:
                raise
            raise bad from error
        return {**told, "seconds": round(time.monotonic() - start, 3)}


def _temporary(cluster: Cluster) -> str:
    """Return a folder that lives as long as the interpreter, because any frame made from the results may read it."""
    if not cluster.is_local:
        raise LookalikeError("name a folder that all machines of the cluster see with work_dir=: there is none by default")
    folder = tempfile.mkdtemp(prefix="lookalike-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _plain(path: str | os.PathLike[str]) -> str:
    folder = os.fspath(path).rstrip("/")
    if not folder:
        # Stages would become folders of the root.
        raise ValueError(f"work_dir {os.fspath(path)!r} names no folder of its own: name one that may hold the stages of a job")
    found = [sign for sign in PATTERN_SIGNS if sign in folder]
    if found:
        raise ValueError(f"work_dir {folder!r} has {' '.join(found)} in its name, which Spark reads as a pattern: name another folder")
    return folder


def ensure_no_file(cluster: Cluster, name: str, folder: str) -> None:
    """Refuse a folder that is a file or below one. Only a local master is known to have the files of this machine."""
    if not cluster.is_local:
        return
    path = Path(folder.removeprefix("file://").removeprefix("file:"))
    # Unlike the methods of `Path`, these functions do not fail on a path that this user may not look up, or that is too long.
    there = next((place for place in (path, *path.parents) if os.path.exists(place)), path)
    if os.path.isfile(there):
        raise NotADirectoryError(f"{name} {folder}: {there} is a file: name a folder")


def _marks(cluster: Cluster, folder: str) -> list[dict[str, Any]]:
    """Return all markers: that of the job, and those of complete attempts at its stages."""
    from pyspark.errors import AnalysisException

    reader = cluster.session.read.schema("mark string").option("recursiveFileLookup", True)
    try:
        rows = reader.parquet(f"{folder}/{_MARKERS}").collect()
    except AnalysisException as error:
        # This is not checked in advance, because the driver may only have access to the folder through Spark.
        if "PATH_NOT_FOUND" in str(error):
            return []
        raise
    return [json.loads(row["mark"]) for row in rows if row["mark"]]


def checksum(rows: DataFrame) -> int:
    """Return the sum of the checksums of all rows."""
    from pyspark.sql import functions as F

    return aggregates(sum=F.sum(checksum_of_rows(rows)))(rows)["sum"] or 0


def aggregates(**columns: Column) -> Callable[[DataFrame], dict[str, Any]]:
    """Return a measure of a stage: these aggregates over its rows, and the number of these, ``rows``."""
    from pyspark.sql import functions as F

    def measure(rows: DataFrame) -> dict[str, Any]:
        named = [column.alias(name) for name, column in columns.items()]
        return rows.agg(F.count(F.lit(1)).alias("rows"), *named).collect()[0].asDict()  # type: ignore[no-any-return]

    return measure


def parts(rows: DataFrame) -> dict[str, Any]:
    """Return measures of a stage whose rows have numbers (`row`) within numbered partitions (`part`): the number of rows in each
    partition."""
    from pyspark.sql import functions as F

    counts = rows.groupBy("part").agg(F.count(F.lit(1)).alias("n")).collect()
    sizes = {row["part"]: row["n"] for row in counts}
    return {"rows": sum(sizes.values()), "parts": [sizes.get(part, 0) for part in range(max(sizes, default=-1) + 1)]}


def numbered_through(stage: Stage) -> Column:
    """Return the position of a row among all rows of a stage measured by `parts`."""
    from pyspark.sql import functions as F

    starts, total = [], 0
    for size in stage["parts"]:
        starts.append(f"{total}L")
        total += size
    return F.expr(f"array({', '.join(starts) or '0L'})[part] + row")
