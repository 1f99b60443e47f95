"""Results of deduplication on Spark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from lookalike._lookalike import Scheme
from lookalike.spark._cluster import Cluster
from lookalike.spark._documents import id_column
from lookalike.spark._types import DataFrame
from lookalike.spark._work_dir import Stage, WorkDir, numbered_through, parts

if TYPE_CHECKING:
    from lookalike.spark._dedup import DedupJob

__all__ = ["SparkDedupResult"]


class SparkDedupResult:
    """Decisions of :func:`lookalike.spark.dedup`: the documents kept, the documents removed, and their survivors.

    All decisions are in the job's folder; each property is a DataFrame that reads them from there.
    """

    def __init__(self, job: DedupJob, cluster: Cluster, work: WorkDir, groups: Stage, clusters: Stage, pairs: Stage | None) -> None:
        self._job = job
        self._data = job.data
        self._cluster = cluster
        self._work = work
        self._groups = groups
        self._clusters = clusters
        self._pairs = pairs

    @property
    def clusters(self) -> DataFrame:
        """A row for each removed document: ``survivor``, ``id``, ``similarity``, ``reason`` (``exact`` or ``near``), and ``against``: true if
        the survivor is from ``against``, else null. A document of ``against`` may have the same id as a new one."""
        from pyspark.sql import functions as F

        return self.decided.select("survivor", "id", "similarity", "reason", F.when(~F.col("is_new"), True).alias("against"))

    @property
    def decided(self) -> DataFrame:
        """The rows of ``clusters`` with ``is_new`` in place of ``against``: false if the survivor is from ``against``."""
        return self._clusters.rows

    @property
    def pairs(self) -> DataFrame:
        """Pairs of similar documents, ``a``, ``b``, ``similarity``, the smaller id first: each removed document with its survivor, or,
        with ``pairs="all"``, all pairs. ``against`` is ``a`` or ``b``, whichever is from ``against``, else null.
        """
        from pyspark.sql import functions as F

        if self._pairs is not None:
            return self._pairs.rows
        both = [F.col("id"), F.col("survivor")]
        # Of two documents with the same id, the one that was only compared with comes first.
        against = F.when(F.col("survivor") <= F.col("id"), "a").otherwise("b")
        return self.decided.select(
            F.least(*both).alias("a"), F.greatest(*both).alias("b"), "similarity", F.when(~F.col("is_new"), against).alias("against")
        )

    @property
    def survivors(self) -> DataFrame:
        """The kept rows."""
        return self._chosen("left_anti")

    @property
    def removed(self) -> DataFrame:
        """The removed rows."""
        return self._chosen("left_semi")

    def _chosen(self, how: str) -> DataFrame:
        from pyspark.sql import functions as F

        gone = self.clusters.select(F.col("id").alias(_ID))
        return self._data.join(gone, id_column(self._data, self._job.columns.id) == F.col(_ID), how)

    def annotated(self) -> DataFrame:
        """The data with columns for the decision on each row.

        The columns are ``cluster_id`` (null without a cluster; clusters are numbered from 1 in the order of their survivors' ids), ``cluster_size``,
        ``survivor_id`` and ``representative_id`` (its own id if it is kept), ``similarity``, ``reason``, ``is_duplicate``.
        """
        from pyspark.sql import functions as F

        is_exact = str(self._data.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
        taken = sorted(name for name in self._data.columns if (name if is_exact else name.lower()) in _ANNOTATIONS)
        if taken:
            raise ValueError(f"the data has columns of the names that annotations have: {', '.join(taken)}; rename them first")
        numbers = self.numbers
        of_removed = self.decided.join(numbers, ["survivor", "is_new"]).select(
            F.col("id").alias(_ID), "cluster_id", "cluster_size", "survivor", "similarity", "reason"
        )
        # A survivor that was only compared with is not a row of the data.
        own = numbers.where("is_new").select(
            F.col("survivor").alias(_ID),
            "cluster_id",
            "cluster_size",
            "survivor",
            F.lit(None).cast("double").alias("similarity"),
            F.lit(None).cast("string").alias("reason"),
        )
        id = id_column(self._data, self._job.columns.id)
        beside = of_removed.unionByName(own)
        # With names that no column of the data has, because columns that are not read may have equal names and cannot be selected one by one.
        names = {name: f"{_ID}_{name}" for name in beside.columns[1:]}
        beside = beside.toDF(_ID, *names.values())
        cluster, size, survivor, similarity, reason = map(F.col, names.values())
        survivor = F.coalesce(survivor, id)
        found = self._data.join(beside, id == F.col(_ID), "left").select(
            "*",
            cluster.alias("cluster_id"),
            F.coalesce(size, F.lit(1)).alias("cluster_size"),
            survivor.alias("survivor_id"),
            similarity.alias("similarity"),
            reason.alias("reason"),
            survivor.alias("representative_id"),
            reason.isNotNull().alias("is_duplicate"),
        )
        return found.drop(*beside.columns)

    @property
    def numbers(self) -> DataFrame:
        """A row for each cluster: ``survivor``, ``is_new`` (false if it was only compared with), ``cluster_id``, ``cluster_size``.

        Clusters are numbered from 1 in the order of their survivors' ids, first those whose survivor is from ``against``, as on one machine.
        """
        from pyspark.sql import functions as F

        schema = "part int, row long, survivor string, is_new boolean, cluster_size long"
        names = [column.split()[0] for column in schema.split(", ")]

        def make() -> DataFrame:
            sizes = self.decided.groupBy("survivor", "is_new").agg((F.count(F.lit(1)) + 1).alias("cluster_size"))
            # By ranges, so that partitions follow one another in the order of ids: the number of a row is its position in its partition
            # plus the sizes of all partitions before.
            count = -(-max(1, self._clusters["clusters"]) // 500_000)
            ordered = sizes.repartitionByRange(count, "is_new", "survivor").withColumn("part", F.spark_partition_id())
            return self._cluster.run(ordered, "numbered", ["is_new", "survivor"], names, schema=schema)

        numbered = self._work.stage("numbers", schema, make, parts)
        number = numbered_through(numbered)
        return numbered.rows.select("survivor", "is_new", (number + 1).alias("cluster_id"), "cluster_size")

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of documents: ``documents``, ``kept``, ``removed``, ``exact``, ``near``, ``clusters``, different ``texts``,
        ``missing_text``, those without a text, which are never duplicates, and ``keep_missing`` and ``keep_unusable``, those that a rule of
        ``keep`` ranks last because they have no value or none that it can use.
        """
        read, removed, exact = self._groups["new"], self._clusters["rows"], self._clusters["exact"]
        return {
            "documents": read,
            "kept": read - removed,
            "removed": removed,
            "exact": exact,
            "near": removed - exact,
            "clusters": self._clusters["clusters"],
            **{name: self._groups[name] for name in ("texts", "missing_text", "keep_missing", "keep_unusable")},
        }

    @property
    def costs(self) -> list[dict[str, Any]]:
        """The stages in order: ``stage``, ``seconds``, ``is_new`` (false if an earlier run made it), and their measures."""
        return [{"stage": stage.name, **stage.told, "is_new": stage.is_new} for stage in self._work.stages]

    @property
    def scheme(self) -> Scheme:
        """The scheme by which features were made from texts."""
        return Scheme(self._job.kernel.scheme)

    @property
    def threshold(self) -> float:
        """Minimum resemblance of near-duplicates."""
        return self._job.threshold

    @property
    def work_dir(self) -> str | os.PathLike[str]:
        """The folder of the job."""
        return self._work.path

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"<lookalike.SparkDedupResult: {counts['documents']:,} documents, {counts['kept']:,} kept, "
            f"{counts['exact']:,} exact copies, {counts['near']:,} near-duplicates>"
        )


#: A name that no column of a user has.
_ID = "__lookalike_id"

_ANNOTATIONS = "cluster_id cluster_size survivor_id similarity reason representative_id is_duplicate".split()
