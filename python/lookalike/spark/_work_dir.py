"""The folder of a job: its stages as Parquet, and a record of the complete ones."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from lookalike._errors import LookalikeError
from lookalike.spark._cluster import Cluster, told_by_task
from lookalike.spark._documents import checksum_of_rows
from lookalike.spark._types import Column, DataFrame

__all__ = ["Stage", "WorkDir", "aggregates", "checksum", "numbered_through", "parts"]

_MARKERS = "name string, told string"


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


class WorkDir:
    """Stages of one job.

    A stage is a folder of Parquet files. When it is complete, a row is added to the table of markers; a stage without a marker is made
    again. The first marker is the job itself: stages of another job are never reused. Spark reads and writes everything, because
    the driver may have no access to the files of the cluster.
    """

    def __init__(self, cluster: Cluster, path: str | os.PathLike[str] | None, job: Mapping[str, Any]) -> None:
        self._cluster = cluster
        # Keeps a temporary folder as long as the stages are wanted.
        self._owner: Any = None
        if path is None:
            if not cluster.is_local:
                raise LookalikeError("name a folder that all machines of the cluster see with work_dir=: there is none by default")
            self._owner = tempfile.TemporaryDirectory(prefix="lookalike-spark-")
            path = self._owner.name
        self.path = os.fspath(path).rstrip("/")
        self.stages: list[Stage] = []
        self._known = self._markers()
        #: What makes the job another one than others.
        self.job = dict(job)
        self._take(job)

    def _markers(self) -> dict[str, dict[str, Any]]:
        from pyspark.errors import AnalysisException

        try:
            rows = self._cluster.session.read.schema(_MARKERS).parquet(f"{self.path}/stages").collect()
        except AnalysisException as error:
            # Not by looking first: the driver may have no way to the folder but Spark.
            if "PATH_NOT_FOUND" in str(error):
                return {}
            raise
        return {row["name"]: json.loads(row["told"]) for row in rows}

    def _take(self, job: Mapping[str, Any]) -> None:
        # As it comes back from the marker: tuples are lists there, keys strings.
        own = json.loads(json.dumps(job))
        earlier = self._known.get("job")
        if earlier is None:
            self._mark("job", own)
            return
        for name in sorted({*earlier, *own}):
            if earlier.get(name) != own.get(name):
                raise LookalikeError(
                    f"{self.path}: the stages there belong to another job, whose {name} is {earlier.get(name)!r} and not "
                    f"{own.get(name)!r}: name another work_dir, or remove that folder"
                )

    def _mark(self, name: str, told: dict[str, Any]) -> None:
        from pyspark.sql import functions as F

        marker = self._cluster.session.range(1, numPartitions=1)
        marker = marker.select(F.lit(name).alias("name"), F.lit(json.dumps(told)).alias("told"))
        marker.write.mode("append").parquet(f"{self.path}/stages")
        self._known[name] = told

    def ensure_same_rows(self, stage: Stage, rows: DataFrame, measure: str = "checksum") -> None:
        """Refuse to continue after a stage that an earlier run made from other rows: the sum of checksums in its ``measure`` differs."""
        if stage.is_new:
            return
        if checksum(rows) != (stage[measure] or 0):
            raise LookalikeError(
                f"{self.path}: the stages there were made of other rows than the DataFrame has now: name another work_dir, or remove that "
                "folder; if the data was not changed, write it before, for it must have the same rows each time it is read"
            )

    def folder(self, name: str) -> str:
        """The folder of a stage."""
        return f"{self.path}/{name}"

    def read(self, name: str, schema: str) -> DataFrame:
        """The rows of a complete stage."""
        # With its schema the files need not be looked at first.
        return self._cluster.session.read.schema(schema).parquet(self.folder(name))

    def measured(self, name: str, measure: Callable[[], dict[str, Any]]) -> Stage:
        """A stage without rows: the numbers computed by ``measure``."""
        return self._stage(name, None, measure)

    def stage(
        self,
        name: str,
        schema: str,
        make: Callable[[], DataFrame],
        measure: Callable[[DataFrame], dict[str, Any]] | None = None,
        *,
        is_packed: bool = False,
    ) -> Stage:
        """A stage with the rows that ``make`` returns. The result of ``measure`` on them is stored with the marker. Packed rows are written unchanged."""

        def write() -> dict[str, Any]:
            # What lies there without a marker is of a run that was broken off.
            writer = make().write.mode("overwrite")
            if is_packed:
                # Long rows of hashes: nothing makes them fewer, and no two are equal.
                writer = writer.option("compression", "uncompressed").option("parquet.enable.dictionary", "false")
            writer.parquet(self.folder(name))
            return {} if measure is None else measure(self.read(name, schema))

        return self._stage(name, schema, write)

    def _stage(self, name: str, schema: str | None, work: Callable[[], dict[str, Any]]) -> Stage:
        told = self._known.get(name)
        is_new = told is None
        if told is None:
            told = self._timed(work)
            self._mark(name, told)
        stage = Stage(name, None if schema is None else self.read(name, schema), told, is_new)
        self.stages.append(stage)
        return stage

    @staticmethod
    def _timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        start = time.monotonic()
        try:
            told = work()
        except Exception as error:  # Spark 3.5 hands out those of Java where it writes.
            bad = told_by_task(error)
            if bad is None:
                raise
            raise bad from error
        return {**told, "seconds": round(time.monotonic() - start, 3)}


def checksum(rows: DataFrame) -> int:
    """The sum of the checksums of all rows."""
    from pyspark.sql import functions as F

    return aggregates(sum=F.sum(checksum_of_rows(rows)))(rows)["sum"] or 0


def aggregates(**columns: Column) -> Callable[[DataFrame], dict[str, Any]]:
    """A measure of a stage: these aggregates over its rows."""

    def measure(rows: DataFrame) -> dict[str, Any]:
        named = [column.alias(name) for name, column in columns.items()]
        return rows.agg(*named).collect()[0].asDict()  # type: ignore[no-any-return]

    return measure


def parts(rows: DataFrame) -> dict[str, Any]:
    """A measure of a stage whose rows have numbers (`row`) within numbered partitions (`part`): the number of rows in each partition."""
    from pyspark.sql import functions as F

    counts = rows.groupBy("part").agg(F.count(F.lit(1)).alias("n")).collect()
    sizes = {row["part"]: row["n"] for row in counts}
    return {"rows": sum(sizes.values()), "parts": [sizes.get(part, 0) for part in range(max(sizes, default=-1) + 1)]}


def numbered_through(stage: Stage) -> Column:
    """The position of a row among all rows of a stage measured by `parts`."""
    from pyspark.sql import functions as F

    starts, total = [], 0
    for size in stage["parts"]:
        starts.append(f"{total}L")
        total += size
    return F.expr(f"array({', '.join(starts) or '0L'})[part] + row")
