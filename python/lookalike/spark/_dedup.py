"""Deduplication of a DataFrame on all machines of a cluster, with the decisions of one machine.

The survivors of the plain sequence depend on earlier similar documents only. So the cluster looks for sets of documents beyond which no
two can be similar, the components of a graph of promising pairs, and the plain sequence runs inside each of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from lookalike import _lookalike
from lookalike._errors import BadInput
from lookalike._options import words as to_words
from lookalike._progress import observer
from lookalike.spark._cluster import Cluster
from lookalike.spark._components import EDGES_OF_A_TASK, component_stage, measured_edges
from lookalike.spark._documents import DocumentColumns
from lookalike.spark._result import SparkDedupResult
from lookalike.spark._types import DataFrame
from lookalike.spark._work_dir import Stage, WorkDir, aggregates, numbered_through, parts

__all__ = ["DedupJob", "dedup"]

#: Options that mean files or one machine, and what to use instead.
_NOT_HERE = {
    **dict.fromkeys(
        (
            "format delimiter no_header convert convert_limit pdf_limit follow_links boilerplate boilerplate_share order "
            "output_format compress link strict max_skipped resume overwrite"
        ).split(),
        "it is for files, and the data is a DataFrame",
    ),
    "threads": "Spark decides how many tasks run",
    "tmp": "tasks use the local folders of Spark",
    "fields": "columns of a DataFrame have no anchors or links",
    "html": "take the text out of the pages first, with the function lookalike_extract that register() brings",
    "repeated_ids": "ids must be different here: rows have no order to number them by",
}

#: Rows of a partition of each kind, about: what a task holds is some hundred bytes for each.
_ROWS_OF_A_TASK = 500_000
#: Keys of a partition, about.
_KEYS_OF_A_TASK = 2_000_000
#: Texts of a partition to be settled, about, where they are few; see also `memory`.
_TEXTS_OF_A_TASK = 20_000


def dedup(
    data: DataFrame,
    *,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    threshold: float | None = None,
    shingle: str | None = None,
    method: str = "allpairs",
    keep: str = "longest",
    against: DataFrame | SparkDedupResult | None = None,
    within: str | None = None,
    across: str | None = None,
    position: str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    partitions: int | None = None,
    memory: str | int = "512M",
    progress: Any = False,
    **options: Any,
) -> SparkDedupResult:
    """Find exact and near-duplicate documents in a DataFrame, with the decisions of ``lookalike.dedup``.

    ``id`` names the column of ids, strings or whole numbers, none twice. ``text`` names the column of texts, or several; by default
    ``text``. ``position`` names a column with the order of the rows, for ``keep="first"``. ``against`` is a DataFrame with the same
    columns, or an earlier result, whose survivors are meant: it is compared with and never removed.

    ``work_dir`` is a folder that all machines see: each stage is written there, and a job that was broken off goes on from the last
    whole one when it is called again. With a local master it may be left out. The DataFrame is read up to three times and must
    have the same rows each time.

    ``partitions`` is the number of partitions of each shuffle, by default one for each two million keys but no fewer than Spark is
    told to have where there is work for them. ``memory`` is what a task may hold of the texts that it decides about, outside of the
    heap of Spark; what is larger goes through its local disk. All other options are those of ``lookalike dedup``.
    """
    told = {"threshold": threshold, "shingle": shingle, "method": method, "keep": keep, "within": within, "across": across, **options}
    job = DedupJob(data, text=text, id=id, against=against, position=position, told=told, partitions=partitions, memory=memory)
    return job.run(work_dir, progress)


def _in_bytes(memory: str | int) -> int:
    """A number of bytes, or of K, M, G or T."""
    if isinstance(memory, int):
        return memory
    number, unit = memory.strip().rstrip("bB").removesuffix("i"), 1
    if number[-1:].upper() in "KMGT" and number:
        unit = 1 << 10 * (1 + "KMGT".index(number[-1].upper()))
        number = number[:-1]
    try:
        return int(float(number) * unit)
    except ValueError:
        raise ValueError(f"memory {memory!r} is no number of bytes: write for example '512M'") from None


class DedupJob:
    """A deduplication whose arguments were checked, before any task runs."""

    def __init__(
        self,
        data: DataFrame,
        *,
        text: str | Sequence[str] | None,
        id: str | None,
        against: DataFrame | SparkDedupResult | None,
        position: str | None,
        told: dict[str, Any],
        partitions: int | None = None,
        memory: str | int = "512M",
        group_limit: int | None = 32,
        edges_of_a_task: int = EDGES_OF_A_TASK,
    ) -> None:
        for name, reason in _NOT_HERE.items():
            if told.get(name) is not None:
                raise TypeError(f"{name} is no option here: {reason}")
        if not hasattr(data, "mapInArrow") or not hasattr(data, "sparkSession"):
            raise TypeError(f"data must be a DataFrame of Spark, not {type(data).__name__}: for other data there is lookalike.dedup")
        if partitions is not None and partitions < 1:
            raise ValueError(f"partitions {partitions} is not at least 1")
        self.pair_list = told.pop("pairs", None) or "deciding"
        self.kernel = _lookalike.DedupKernel(["dedup", "-", "--output=-", *to_words({**told, "pairs": self.pair_list})])
        self.words = list(self.kernel.words)
        self.threshold = self.kernel.threshold
        self.partitions = partitions
        self.memory = _in_bytes(memory)
        self.group_limit = group_limit
        self.edges_of_a_task = edges_of_a_task
        if self.kernel.needs_position and position is None:
            raise ValueError("keep='first' wants the order of the rows, and a DataFrame has none: name a column that has it with position=")
        if position is not None and not self.kernel.needs_position:
            raise ValueError("position is looked at with keep='first' only: leave it out")
        self.columns = DocumentColumns(
            text=text, id=id, value=self.kernel.value_field, category=self.kernel.category_field, position=position
        )
        self.data = data
        self.documents = self.columns.documents(data, is_against=False)
        self.against: DataFrame | None = None
        if against is not None:
            earlier = against.survivors if isinstance(against, SparkDedupResult) else against
            if not hasattr(earlier, "mapInArrow"):
                raise TypeError(f"against must be a DataFrame or an earlier result, not {type(against).__name__}")
            try:
                self.against = self.columns.documents(earlier, is_against=True)
            except (TypeError, ValueError) as error:
                raise type(error)(f"against: {error}") from None
            self.documents = self.documents.unionByName(self.against)

    def run(self, work_dir: str | os.PathLike[str] | None, progress: Any = False) -> SparkDedupResult:
        """Make the stages that are not there yet."""
        cluster = Cluster(self.data.sparkSession)
        call, clear = observer(progress)
        try:
            stages = _Stages(self, cluster, WorkDir(cluster, work_dir, self._told()), call)
            return stages.result()
        finally:
            clear()

    def _told(self) -> dict[str, Any]:
        """What makes this job another one than others, in the words of its user."""
        return {
            "kind": "dedup",
            "version": _lookalike.__version__,
            "settings": self.words,
            "columns": self.columns.told(self.data),
            "against": self.against is not None,
        }


class _Stages:
    """The stages of a job on a cluster."""

    def __init__(self, job: DedupJob, cluster: Cluster, work: WorkDir, call: Any) -> None:
        self.job = job
        self.cluster = cluster
        self.work = work
        self._call = call
        self._started = 0
        self._default = int(cluster.session.conf.get("spark.sql.shuffle.partitions", "200") or 200)

    def _begin(self, name: str) -> None:
        self._started += 1
        if self._call is not None:
            self._call(name, self._started, 8, False)

    def _partitions(self, rows: int, rows_of_a_task: int) -> int:
        """Partitions of a shuffle: as many as Spark is told to have, fewer for few rows, more for many."""
        if self.job.partitions is not None:
            return self.job.partitions
        most = -(-rows // rows_of_a_task)
        few = -(-rows // (rows_of_a_task // 20))
        return max(1, most, min(self._default, few))

    def result(self) -> SparkDedupResult:
        job, kernel = self.job, self.job.kernel
        self._begin("ids")
        ids = self._ids()
        self._begin("scan")
        scanned = self._scan()
        self._begin("classes")
        classes, ranked = self._classes(ids["documents"], scanned)
        settled, pairs = None, None
        if kernel.finds_near and classes["rows"]:
            self._begin("keys")
            edges = self._edges(ranked, self._keys(scanned, classes))
            self._begin("components")
            components = component_stage(self.work, self.cluster, edges, most=job.edges_of_a_task)
            self._begin("settle")
            settled, pairs = self._settled(ranked, components, edges)
        self._begin("clusters")
        clusters = self._clusters(scanned, ranked, settled)
        return SparkDedupResult(
            job.data,
            job.columns,
            self.work,
            self.cluster,
            clusters=clusters,
            pairs=self._pairs(scanned, ranked, pairs) if job.pair_list == "all" else None,
            read=ids["new"],
            classes=classes["rows"],
            scheme=kernel.scheme,
            threshold=job.threshold,
        )

    def _ids(self) -> Stage:
        """Counts documents and refuses ids that do not tell them apart."""
        from pyspark.sql import functions as F

        def measure() -> dict[str, Any]:
            each = self.job.documents.select("against", "id").groupBy("against", "id").agg(F.count(F.lit(1)).alias("n"))
            is_again = (F.col("n") > 1) & F.col("id").isNotNull()
            found = each.agg(
                F.sum("n").alias("documents"),
                F.sum(F.when(~F.col("against"), F.col("n"))).alias("new"),
                F.sum(F.when(F.col("id").isNull(), F.col("n"))).alias("missing"),
                F.count(F.when(is_again, 1)).alias("repeated"),
                F.min(F.when(is_again, F.col("id"))).alias("example"),
            ).collect()[0]
            name = self.job.columns.id
            if found["missing"]:
                raise BadInput(f'{found["missing"]} rows have no id (column "{name}"): give each one, or leave these rows out')
            if found["repeated"]:
                raise BadInput(
                    f'{found["repeated"]} ids belong to several rows, for example {found["example"]!r} (column "{name}"): '
                    "an id must tell one row from all others"
                )
            return {"documents": found["documents"] or 0, "new": found["new"] or 0}

        return self.work.measured("ids", measure)

    def _scan(self) -> Stage:
        """A row for each document without its text, and some with counts of features."""
        from pyspark.sql import functions as F

        kernel = self.job.kernel
        return self.work.stage(
            "scan",
            "id string, text_hash binary, order binary, against boolean, frequencies binary",
            lambda: self.cluster.run(
                self.job.documents,
                "scan",
                self.job.words,
                kernel.needs_levels,
                schema="id string, text_hash binary, order binary, against boolean, frequencies binary",
            ),
            aggregates(rows=F.count("id"), texts=F.count("text_hash")),
        )

    def _classes(self, documents: int, scanned: Stage) -> tuple[Stage, DataFrame]:
        """The classes with the document that stands for each, and the same with their ranks."""
        from pyspark.sql import functions as F

        columns = ["part", "row", "text_hash", "id", "against"]
        schema = "part int, row long, text_hash binary, id string, against boolean"

        def make() -> DataFrame:
            by_text = scanned.rows.where(F.col("text_hash").isNotNull()).groupBy("text_hash")
            best = by_text.agg(F.min(F.struct("order", "id", "against")).alias("best")).select("text_hash", "best.*")
            count = self._partitions(documents, _ROWS_OF_A_TASK)
            ordered = best.repartitionByRange(count, "order").withColumn("part", F.spark_partition_id())
            return self.cluster.run(ordered, "numbered", ["order"], columns, schema=schema)

        classes = self.work.stage("classes", schema, make, parts)
        rank = numbered_through(classes).alias("rank")
        return classes, classes.rows.select(rank, "text_hash", "id", "against")

    def _levels(self, scanned: Stage) -> bytes | None:
        from pyspark.sql import functions as F

        if not self.job.kernel.needs_levels:
            return None
        rows = scanned.rows.where(F.col("id").isNull()).select("frequencies").collect()
        kernel = _lookalike.DedupKernel
        return kernel.levels(kernel.merge_frequencies([bytes(row["frequencies"]) for row in rows]))

    def _keys(self, scanned: Stage, classes: Stage) -> Stage:
        """The keys of each document, in one row."""
        from pyspark.sql import functions as F

        schema = "id string, against boolean, size int, text_size int, fingerprint binary, keys array<long>, text_keys array<long>"

        def make() -> DataFrame:
            wanted = [name for name in ("id", "against", "text", "category") if name in self.job.documents.columns]
            return self.cluster.run(
                self.job.documents.select(*wanted),
                "keys",
                self.job.words,
                classes["rows"],
                self._levels(scanned),
                schema=schema,
            )

        return self.work.stage("keys", schema, make, aggregates(keys=F.sum(F.size("keys").cast("long"))))

    def _edges(self, ranked: DataFrame, keys: Stage) -> Stage:
        """Promising pairs of classes, and the chains of large groups."""
        from pyspark.sql import functions as F

        job = self.job
        others = ["fingerprint"] if "fingerprint" in job.kernel.keys_schema else []

        def make() -> DataFrame:
            of_rank = keys.rows.join(ranked.select("id", "against", "rank"), ["id", "against"])

            def rows(column: str, size: str) -> DataFrame:
                found = of_rank.select(F.explode(column).alias("key"), "rank", F.col(size).alias("size"), *others)
                return found.where(F.col("key").isNotNull())

            both = rows("keys", "size").unionByName(rows("text_keys", "text_size"))
            count = self._partitions(keys["keys"] or 0, _KEYS_OF_A_TASK)
            found = self.cluster.run(
                both.repartition(count, "key"),
                "work_edges",
                job.words,
                job.group_limit,
                schema="x long, y long, size_x int, size_y int, shared long",
            )
            sums = found.groupBy("x", "y", "size_x", "size_y").agg(F.sum("shared").alias("shared"))
            return self.cluster.run(sums, "promising", job.words, schema="x long, y long")

        return self.work.stage("edges", "x long, y long", make, measured_edges)

    def _settled(self, ranked: DataFrame, components: Stage, edges: Stage) -> tuple[Stage, Stage | None]:
        """The classes that join others; and all pairs, where they are asked for."""
        from pyspark.sql import functions as F

        job = self.job

        def members() -> DataFrame:
            of_rank = components.rows.select(F.col("node").alias("rank"), "component")
            named = of_rank.join(ranked.select("rank", "id", "against"), "rank")
            wanted = [name for name in ("id", "against", "text", "category") if name in job.documents.columns]
            found = job.documents.select(*wanted).join(named, ["id", "against"]).drop("id")
            # There are fewer nodes than two for each edge.
            count = self._partitions(2 * edges["rows"], _TEXTS_OF_A_TASK)
            return found.repartition(count, "component")

        schema = "rank long, survivor long, similarity double, reason string"
        settled = self.work.stage(
            "settled",
            schema,
            lambda: self.cluster.run(members(), "settle", job.words, job.memory, schema=schema),
            aggregates(rows=F.count(F.lit(1))),
        )
        if job.pair_list != "all":
            return settled, None
        pairs_schema = "x long, y long, similarity double"
        similar = self.work.stage(
            "similar",
            pairs_schema,
            # Without `against`: a class that has a document to compare with may have others too.
            lambda: self.cluster.run(members().drop("against"), "verified_pairs", job.words, schema=pairs_schema),
        )
        return settled, similar

    def _clusters(self, scanned: Stage, ranked: DataFrame, settled: Stage | None) -> Stage:
        """A row for each removed document; ``is_new`` is false where the survivor was only compared with."""
        from pyspark.sql import functions as F

        schema = "survivor string, is_new boolean, id string, similarity double, reason string"

        def make() -> DataFrame:
            own = ranked.select("rank", "text_hash", F.col("id").alias("best"), F.col("against").alias("best_against"))
            if settled is None:
                joined = own.select("*", *(F.lit(None).cast(kind).alias(name) for name, kind in _JOINED.items()))
            else:
                others = ranked.select(F.col("rank").alias("survivor"), F.col("id").alias("joins"), F.col("against").alias("joins_against"))
                of_rank = settled.rows.join(others, "survivor").select("rank", *_JOINED)
                joined = own.join(of_rank, "rank", "left")
            documents = scanned.rows.where(F.col("text_hash").isNotNull() & ~F.col("against")).select("id", "text_hash")
            found = documents.join(joined, "text_hash")
            is_copy = (F.col("id") != F.col("best")) | F.col("best_against")
            if not self.job.kernel.copies_are_pairs:
                is_copy = F.lit(False)
            joins = F.col("joins").isNotNull()
            return found.where(joins | is_copy).select(
                F.when(joins, F.col("joins")).otherwise(F.col("best")).alias("survivor"),
                (~F.when(joins, F.col("joins_against")).otherwise(F.col("best_against"))).alias("is_new"),
                "id",
                F.when(joins, F.col("similarity")).otherwise(F.lit(1.0)).alias("similarity"),
                F.when(joins, F.col("reason")).otherwise(F.lit("exact")).alias("reason"),
            )

        return self.work.stage(
            "clusters",
            schema,
            make,
            aggregates(
                rows=F.count(F.lit(1)),
                exact=F.count(F.when(F.col("reason") == "exact", 1)),
                clusters=F.countDistinct("survivor", "is_new"),
            ),
        )

    def _pairs(self, scanned: Stage, ranked: DataFrame, similar: Stage | None) -> Stage:
        """All pairs of documents that count, the smaller id first."""
        from pyspark.sql import functions as F

        def make() -> DataFrame:
            hashes = scanned.rows.where(F.col("text_hash").isNotNull()).select("id", "against", "text_hash")
            documents = hashes.join(ranked.select("text_hash", "rank"), "text_hash").select("rank", "id", "against")

            def side(name: str) -> DataFrame:
                return documents.select(
                    F.col("rank").alias(name), F.col("id").alias(f"id_{name}"), F.col("against").alias(f"against_{name}")
                )

            pairs = []
            if similar is not None:
                pairs.append(similar.rows.join(side("x"), "x").join(side("y"), "y"))
            if self.job.kernel.copies_are_pairs:
                copies = side("x").join(side("y"), F.col("x") == F.col("y")).withColumn("similarity", F.lit(1.0))
                # An id may stand on both sides: then the one to compare with comes first.
                own, other = F.struct("id_x", ~F.col("against_x")), F.struct("id_y", ~F.col("against_y"))
                pairs.append(copies.where(own < other))
            if not pairs:
                none = documents.where(F.lit(False))
                return none.select(F.col("id").alias("a"), F.col("id").alias("b"), F.lit(1.0).alias("similarity"))
            found = pairs[0] if len(pairs) == 1 else pairs[0].unionByName(pairs[1])
            found = found.where(~(F.col("against_x") & F.col("against_y")))
            return found.select(F.least("id_x", "id_y").alias("a"), F.greatest("id_x", "id_y").alias("b"), "similarity")

        return self.work.stage("pairs", "a string, b string, similarity double", make)


_JOINED = {"joins": "string", "joins_against": "boolean", "similarity": "double", "reason": "string"}
