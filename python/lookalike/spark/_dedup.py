"""Deduplication of a DataFrame on all machines of a cluster, with the same decisions as on one machine.

The plain sequence decides on a document only by earlier similar documents. So the cluster divides documents into sets such that no
document can be similar to one of another set: the components of a graph of promising pairs. The plain sequence runs inside each set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from lookalike import _lookalike
from lookalike._errors import BadInput, warn
from lookalike._options import is_given
from lookalike._options import words as to_words
from lookalike._progress import observer
from lookalike.spark._cluster import Cluster
from lookalike.spark._components import EDGES_PER_TASK, component_stage, measured_edges
from lookalike.spark._documents import DocumentColumns, checksum_of_rows, ensure_frame, united
from lookalike.spark._result import SparkDedupResult
from lookalike.spark._schemas import SCHEMAS
from lookalike.spark._types import DataFrame
from lookalike.spark._work_dir import OtherJob, Stage, WorkDir, aggregates

__all__ = ["UNSUPPORTED_OPTIONS", "DedupJob", "bytes_of", "columns_of", "dedup", "ensure_partitions", "kernel_of"]

#: Options that concern files or a single machine, and what to use instead.
UNSUPPORTED_OPTIONS = {
    **dict.fromkeys(
        (
            "format delimiter no_header no_quotes convert convert_limit pdf_limit exclude follow_links inputs_from skip_unreadable "
            "boilerplate boilerplate_share boilerplate_lines html_title html_alt html_links order output_format compress link strict max_skipped resume overwrite"
        ).split(),
        "it is for files, and the data is a DataFrame",
    ),
    "annotate": "annotated() of the result has the decision on each row",
    "checkpoint": "a job resumes after its last complete stage, whatever its size",
    "into": "collections are folders of one machine: write the survivors, and add them with lookalike dedup --into",
    "threads": "Spark decides how many tasks run",
    "tmp": "tasks use the local folders of Spark",
    "fields": "columns of a DataFrame have no anchors or links",
    "html": "take the text out of the pages first, with the function lookalike_extract that register() brings",
    "repeated_ids": "ids must be different here: rows have no order to number them by",
}

#: Approximate number of rows in a partition of packed rows: a task holds some tens of bytes for each.
_ROWS_PER_TASK = 4_000_000
#: Approximate number of texts in a partition to be settled; see also `memory`.
_TEXTS_PER_TASK = 20_000
#: Maximum number of rows that are broadcast to every machine instead of shuffling all texts: about 50 MB.
_ROWS_FOR_ALL = 500_000
#: Approximate size of a batch of texts in bytes. In larger ones, vectors are copied as they grow, and exceed all caches.
_BYTES_PER_BATCH = 4 << 20
#: Approximate number of documents whose features are counted, and the number of tasks that do it: a sample is enough.
_COUNTED, _COUNTING_TASKS = 40_000, 2
#: Approximate number of keys of a document, for a method without levels.
_KEYS_PER_DOCUMENT = 25


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
    memory: str | int | None = None,
    progress: Any = False,
    **options: Any,
) -> SparkDedupResult:
    """Find exact and near-duplicate documents in a DataFrame, with the decisions of ``lookalike.dedup``.

    ``id`` names the column of ids, which are distinct strings or integers. ``text`` names the column of texts, or several; by default
    ``text``. ``position`` names a column with the order of the rows, for ``keep="first"``. ``against`` is data to compare with, which is
    never removed: a DataFrame with the same columns, or an earlier result, whose survivors are used.

    ``work_dir`` is a folder that all machines can access. Each stage is written there, and an interrupted job resumes after the last
    complete stage when it is called again; several drivers may run one job there. With a local master, it may be left out. The
    DataFrame is read up to four times, and once more with ``pairs="all"``. It must have the same rows each time.

    ``partitions`` is the number of partitions of each shuffle, by default one per four million keys, but at least as many as Spark is
    configured for if there is enough work. ``memory`` limits the texts that a task holds outside the heap of Spark while it decides
    about them, 512 MB by default; larger sets go to its local disk. The limit does not apply to ``pairs="all"``: there, a task
    has all texts of its sets of similar documents in memory, and the pairs. All other options are those of ``lookalike dedup``, except those about
    files (such as ``format``, ``order``, ``strict``, ``overwrite``, ``boilerplate``, ``html_title``), and ``annotate``, ``html``, ``fields``, ``into``, ``checkpoint``,
    ``threads``, ``tmp`` and ``repeated_ids``, which are refused with the reason.
    """
    told = {"threshold": threshold, "shingle": shingle, "method": method, "keep": keep, "within": within, "across": across, **options}
    job = DedupJob(data, text=text, id=id, against=against, position=position, told=told, partitions=partitions, memory=memory)
    return job.run(work_dir, progress)


def bytes_of(memory: str | int | None) -> int:
    """Return a number of bytes, or a number with K, M, G or T, in bytes; by default 512 MB."""
    if memory is None:
        return 512 << 20
    if isinstance(memory, bool) or not isinstance(memory, (int, str)):
        raise TypeError(f"memory must be a number of bytes or a size such as '512M', not {memory!r}")
    if isinstance(memory, int):
        found = memory
    else:
        number, unit = memory.strip().rstrip("bB").removesuffix("i"), 1
        if number[-1:].upper() in "KMGT" and number:
            unit = 1 << 10 * (1 + "KMGT".index(number[-1].upper()))
            number = number[:-1]
        try:
            found = int(float(number) * unit)
        except (OverflowError, ValueError):
            raise ValueError(f"memory {memory!r} is no number of bytes: write for example '512M'") from None
    if found < 1:
        raise ValueError(f"memory {memory!r} is not at least one byte")
    return found


def ensure_partitions(partitions: Any) -> None:
    """Refuse a value that is not a number of partitions."""
    if partitions is None:
        return
    if isinstance(partitions, bool) or not isinstance(partitions, int):
        raise TypeError(f"partitions must be a whole number, not {partitions!r}")
    if partitions < 1:
        raise ValueError(f"partitions {partitions} is not at least 1")


def kernel_of(told: dict[str, Any]) -> _lookalike.DedupKernel:
    """Return the kernel with these options of `lookalike dedup`, which must have a meaning on a cluster."""
    for name, reason in UNSUPPORTED_OPTIONS.items():
        if is_given(told.get(name)):
            raise TypeError(f"{name} is no option here: {reason}")
    return _lookalike.DedupKernel(["dedup", "-", "--output=./-", *to_words({**told, "pairs": told.get("pairs") or "deciding"})])


def columns_of(
    kernel: _lookalike.DedupKernel, told: dict[str, Any], *, text: str | Sequence[str] | None, id: str | None, position: str | None
) -> DocumentColumns:
    """Return the columns that these options read."""
    if kernel.needs_position and position is None:
        raise ValueError("keep='first' wants the order of the rows, and a DataFrame has none: name a column that has it with position=")
    if position is not None and not kernel.needs_position:
        raise ValueError("position is looked at with keep='first' only: leave it out")
    return DocumentColumns(
        text=text,
        id=id,
        value=kernel.value_field,
        category=kernel.category_field,
        position=position,
        category_option=next((name for name in ("within", "across", "distance_for") if told.get(name) is not None), "within or across"),
    )


class DedupJob:
    """A deduplication with checked arguments, before any task runs."""

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
        memory: str | int | None = None,
        group_limit: int | None = 32,
        edges_of_a_task: int = EDGES_PER_TASK,
    ) -> None:
        self.kernel = kernel_of(told)
        ensure_frame(data, "data", "dedup")
        ensure_partitions(partitions)
        self.pair_list = told.get("pairs") or "deciding"
        # The arguments as the kernel has read them: tasks build the same kernel from them, and a resumed job compares them.
        self.words = list(self.kernel.words)
        self.threshold = self.kernel.threshold
        self.partitions = partitions
        self.memory = bytes_of(memory)
        self.group_limit = group_limit
        self.edges_of_a_task = edges_of_a_task
        self.columns = columns_of(self.kernel, told, text=text, id=id, position=position)
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
            self.columns.ensure_same_types(data, earlier)
            self.documents = united(self.documents, self.against)

    def run(
        self, work_dir: str | os.PathLike[str] | None, progress: Any = False, *, discards_others: bool = False
    ) -> SparkDedupResult:
        """Make the missing stages. Stages of other settings or rows are refused, or discarded."""
        warn(self.kernel.warnings)
        # Before the cluster does any work, so that a wrong argument is reported at once.
        with observer(progress) as call:
            cluster = Cluster(self.data.sparkSession)
            try:
                return self._run(cluster, work_dir, call)
            except OtherJob:
                if work_dir is None or not discards_others:
                    raise
            WorkDir.discard(cluster, work_dir)
            return self._run(cluster, work_dir, call)

    def _run(self, cluster: Cluster, work_dir: str | os.PathLike[str] | None, call: Any) -> SparkDedupResult:
        return _Stages(self, cluster, WorkDir(cluster, work_dir, self._identity()), call).result()

    def _identity(self) -> dict[str, Any]:
        """Return the settings that distinguish this job from others, in terms of the user."""
        return {
            "kind": "dedup",
            "version": _lookalike.__version__,
            "settings": self.words,
            # The scheme contains the hashes of tables and keys, which the settings only name.
            "scheme": str(self.kernel.scheme),
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
        self._default = cluster.shuffle_partitions()

    def _begin(self, name: str) -> None:
        self._started += 1
        if self._call is not None:
            self._call(name, self._started, 6, False)

    def _partitions(self, rows: int, rows_of_a_task: int) -> int:
        """Return the number of partitions of a shuffle: Spark's setting, fewer for few rows, more for many."""
        if self.job.partitions is not None:
            return self.job.partitions
        # Rounded up. Tasks get at most `rows_of_a_task`; if Spark's setting asks for more tasks, at least a fourth of that, because each
        # Python task costs a process.
        most = -(-rows // rows_of_a_task)
        few = -(-rows // (rows_of_a_task // 4))
        return max(1, most, min(self._default, few))

    def result(self) -> SparkDedupResult:
        self._begin("sample")
        sample = self._sample()
        if not sample["sampled"]:
            return self._decided(sample)
        with self.cluster.batches(_BYTES_PER_BATCH * sample["sampled"] // sample["bytes"]):
            return self._decided(sample)

    def _decided(self, sample: Stage) -> SparkDedupResult:
        job, kernel = self.job, self.job.kernel
        self._begin("groups")
        groups = self._groups(sample)
        self.work.ensure_same_rows(groups, job.documents)
        components = None
        if kernel.finds_near and groups["texts"]:
            self._begin("edges")
            edges = self._edges(groups)
            self._begin("components")
            components = component_stage(self.work, self.cluster, edges, most=job.edges_of_a_task)
        self._begin("members")
        members = self._members(groups, components)
        self._begin("clusters")
        clusters = self._clusters(members)
        pairs = self._pairs(members) if job.pair_list == "all" else None
        return SparkDedupResult(job, self.cluster, self.work, groups, clusters, pairs)

    def _sample(self) -> Stage:
        """Make the counts of features in a sample of documents, and the number of documents."""
        from pyspark.sql import functions as F

        documents = 0

        def make() -> DataFrame:
            nonlocal documents
            documents = self._count()
            chosen = self.job.documents.where(F.col("id").isNotNull())
            # In this case the stage has no rows, but its measure is needed: the number of documents determines partitions and keys.
            if not self.job.kernel.needs_levels:
                chosen = chosen.where(F.lit(False))
            elif documents > _COUNTED:
                # By hashes of ids, so that every part of the data has its share, and here instead of in the task: a Python task that leaves
                # rows unread costs a process.
                number = F.xxhash64("id").bitwiseAND(F.lit((1 << 30) - 1))
                chosen = chosen.where(number < F.lit((_COUNTED << 30) // documents))
            return self.cluster.run(chosen.repartition(_COUNTING_TASKS, "id"), "sample", self.job.words)

        def measure(rows: DataFrame) -> dict[str, Any]:
            found = aggregates(sampled=F.coalesce(F.sum("documents"), F.lit(0)), features=F.sum("features"), bytes=F.sum("bytes"))(rows)
            return {"documents": documents, **found}

        return self.work.stage("sample", SCHEMAS["sample"], make, measure)

    def _count(self) -> int:
        """Return the number of documents. A category that no document has is refused, because all documents would be in the same one."""
        from pyspark.sql import functions as F

        rows, columns = self.job.documents, self.job.columns
        if columns.position is not None:
            without = rows.where("position is null").count()
            if without:
                raise BadInput(f'{without} rows have no value in the column "{columns.position}", as position requires: give each one')
        if columns.category is None:
            # In many formats Spark can count rows without reading them.
            return rows.count()
        number, found = rows.agg(F.count(F.lit(1)), F.count("category")).collect()[0]
        if number and not found:
            raise BadInput(
                f'none of the {number} rows has a value in the column "{columns.category}", as {columns.category_option} requires: '
                "name another column, or leave it out"
            )
        return int(number)

    def _texts(self) -> DataFrame:
        wanted = [name for name in ("id", "against", "text", "category") if name in self.job.documents.columns]
        return self.job.documents.select(*wanted)

    def _levels(self, sample: Stage) -> bytes | None:
        from pyspark.sql import functions as F

        if not self.job.kernel.needs_levels:
            return None
        rows = sample.rows.where(F.col("frequencies").isNotNull()).select("frequencies").collect()
        kernel = _lookalike.DedupKernel
        return kernel.levels(kernel.merge_frequencies([bytes(row["frequencies"]) for row in rows]))

    def _keys(self, sample: Stage) -> int:
        """Return the approximate number of keys."""
        if not self.job.kernel.finds_near:
            return 0
        of_a_document = float(_KEYS_PER_DOCUMENT)
        if sample["sampled"]:
            # A prefix of each set, whose length follows from the threshold.
            of_a_document = 1 + (1 - self.job.threshold) * sample["features"] / sample["sampled"]
        return int(of_a_document * sample["documents"])

    def _groups(self, sample: Stage) -> Stage:
        """Make all classes and edges, packed by bucket."""
        from pyspark.sql import functions as F

        count = self._partitions(self._keys(sample) + 2 * sample["documents"], _ROWS_PER_TASK)
        # Many buckets for each partition: buckets are hashed to partitions, and with few of them some tasks would have twice the work.
        buckets = max(64, 16 * count)

        def make() -> DataFrame:
            packed = self.cluster.run(
                self.job.documents.withColumn("checksum", checksum_of_rows(self.job.documents)),
                "pack",
                self.job.words,
                sample["documents"],
                buckets,
                self._levels(sample),
            )
            whole = packed.repartition(count, "bucket")
            return self.cluster.run(whole, "group", self.job.words, buckets, self.job.group_limit)

        def measure(rows: DataFrame) -> dict[str, Any]:
            counted = ["documents", "texts", "repeated", "edge_count"]
            names = ["new", "missing", "missing_text", "checksum", *counted, "keep_missing", "keep_unusable"]
            sums = {name: F.coalesce(F.sum(name), F.lit(0)) for name in names}
            found = aggregates(**sums, keep_unusable_first=F.min("keep_unusable_first"))(rows)
            self._ensure_ids(found)
            if found["new"] and found["new"] == found["missing_text"]:
                raise BadInput(f"none of the {found['new']} rows has a text: name the column of the texts with text=")
            self._ensure_usable(found)
            return {"buckets": buckets, **found}

        return self.work.stage("groups", SCHEMAS["group"], make, measure, is_packed=True)

    def _ensure_ids(self, groups: dict[str, Any]) -> None:
        """Refuse ids that are not distinct."""
        from pyspark.sql import functions as F

        name = self.job.columns.id
        if groups["missing"]:
            found = self.job.documents.where("id is null").groupBy("against").count().orderBy("against").collect()
            side = "against: " if found and found[0]["against"] else ""
            number = found[0]["count"] if found else groups["missing"]
            raise BadInput(f'{side}{number} rows have no id (column "{name}"): give each one, or leave these rows out')
        if not groups["repeated"]:
            return
        # Their hashes are equal, so look up whether the ids themselves are.
        each = self.job.documents.select("against", "id").groupBy("against", "id").agg(F.count(F.lit(1)).alias("n"))
        found = each.where("n > 1").groupBy("against").agg(F.count(F.lit(1)).alias("repeated"), F.min("id").alias("example"))
        for row in found.orderBy("against").take(1):
            side = "against: " if row["against"] else ""
            raise BadInput(
                f'{side}{row["repeated"]} ids belong to several rows, for example {row["example"]!r} (column "{name}"): '
                "an id must tell one row from all others"
            )

    def _ensure_usable(self, groups: dict[str, Any]) -> None:
        """Refuse a column none of whose values can be used to choose survivors."""
        missing, name = groups["keep_missing"], self.job.columns.value
        ranked = groups["new"] - missing - groups["keep_unusable"]
        if name is None or not groups["new"] or ranked:
            return
        if not groups["keep_unusable"]:
            raise BadInput(f'none of the {missing} rows has a value in the column "{name}", as keep requires: name another column or rule')
        raise BadInput(
            f'none of the {groups["new"]} rows has a value that keep can use ({missing} have none; column "{name}"): for example, '
            f'{groups["keep_unusable_first"]}; max: and min: need numbers, newest: needs dates, latest: compares texts'
        )

    def _edges(self, groups: Stage) -> Stage:
        """Make the edges between classes that promising pairs and the chains of large groups connect."""
        from pyspark.sql import functions as F

        def make() -> DataFrame:
            count = self._partitions(groups["edge_count"], _ROWS_PER_TASK)
            packed = groups.rows.where(F.col("edges").isNotNull()).select("bucket", "edges")
            return self.cluster.run(packed.repartition(count, "bucket"), "promising", self.job.words)

        return self.work.stage("edges", SCHEMAS["promising"], make, measured_edges)

    def _members(self, groups: Stage, components: Stage | None) -> Stage:
        """Make the classes in components, and the classes with copies: one row per class, and rows with some copies each."""
        from pyspark.sql import functions as F

        def make() -> DataFrame:
            packed = groups.rows.where(F.col("classes").isNotNull()).select(
                "bucket", "classes", F.lit(None).cast("binary").alias("components")
            )
            if components is not None:
                packed = packed.unionByName(self.cluster.run(components.rows, "pack_components", groups["buckets"]))
            count = self._partitions(groups["documents"], _ROWS_PER_TASK)
            return self.cluster.run(packed.repartition(count, "bucket"), "members", self.job.words)

        return self.work.stage("members", SCHEMAS["members"], make, aggregates(texts=F.count(F.when(F.expr(_IS_MEMBER), 1))))

    def _in_components(self, members: Stage) -> DataFrame:
        """Return the classes in components with their texts."""
        from pyspark.sql import functions as F

        named = members.rows.where(_IS_MEMBER).select("id", "against", "component", "order")
        if members["texts"] <= _ROWS_FOR_ALL:
            # Texts then stay where they are read; otherwise all of them would be shuffled to find a few.
            named = F.broadcast(named)
        return self._texts().join(named, ["id", "against"])

    def _clusters(self, members: Stage) -> Stage:
        """Make a row for each removed document; ``is_new`` is false if the survivor was only compared with."""
        from pyspark.sql import functions as F

        job = self.job

        def make() -> DataFrame:
            copies = members.rows.where("copies is not null and not are_against")
            settled = None
            if members["texts"]:
                # Empty lists instead of nulls: where lists are null, Spark goes over all rows of a batch for each row that it adds.
                texts = self._in_components(members).withColumn("copies", F.array().cast("array<string>"))
                own = copies.where("component is not null").select("component", "order", "id", "against", "copies", "are_against")
                both = texts.unionByName(own, allowMissingColumns=True)
                count = self._partitions(members["texts"], _TEXTS_PER_TASK)
                # By component alone: a component is decided by a single task, whatever its size.
                both = both.repartition(count, "component")
                settled = self.cluster.run(both, "settle", job.words, job.memory)
            if not job.kernel.copies_are_pairs:
                copies = copies.where(F.lit(False))
            alone = copies.where("component is null").select(
                F.col("id").alias("survivor"),
                (~F.col("against")).alias("is_new"),
                F.explode("copies").alias("id"),
                F.lit(1.0).alias("similarity"),
                F.lit("exact").alias("reason"),
            )
            return alone if settled is None else settled.unionByName(alone)

        return self.work.stage(
            "clusters",
            SCHEMAS["settle"],
            make,
            aggregates(
                exact=F.count(F.when(F.col("reason") == "exact", 1)),
                clusters=F.countDistinct("survivor", "is_new"),
            ),
        )

    def _pairs(self, members: Stage) -> Stage:
        """Make all pairs of documents that count, the smaller id first."""
        from pyspark.sql import functions as F

        job = self.job

        def similar() -> DataFrame:
            count = self._partitions(members["texts"], _TEXTS_PER_TASK)
            whole = self._in_components(members).repartition(count, "component")
            return self.cluster.run(whole, "verified_pairs", job.words)

        verified = self.work.stage("similar", SCHEMAS["verified_pairs"], similar) if members["texts"] else None

        def make() -> DataFrame:
            # Each document with the preferred document of its class.
            best = members.rows.select(F.col("id").alias("best"), F.col("against").alias("best_against"), "copies", "are_against")
            own = best.where("copies is null").select("best", "best_against", F.col("best").alias("id"), F.col("best_against").alias("against"))
            copies = best.where("copies is not null")
            others = copies.select("best", "best_against", F.explode("copies").alias("id"), F.col("are_against").alias("against"))
            documents = own.unionByName(others)

            def side(name: str) -> DataFrame:
                return documents.select(
                    F.col("best").alias(name),
                    F.col("best_against").alias(f"{name}_against"),
                    F.col("id").alias(f"id_{name}"),
                    F.col("against").alias(f"against_{name}"),
                )

            pairs = []
            if verified is not None:
                pairs.append(verified.rows.join(side("x"), ["x", "x_against"]).join(side("y"), ["y", "y_against"]))
            if job.kernel.copies_are_pairs:
                is_same = (F.col("x") == F.col("y")) & (F.col("x_against") == F.col("y_against"))
                same = side("x").join(side("y"), is_same).withColumn("similarity", F.lit(1.0))
                # Both sides may have the same id: the document to compare with then comes first.
                first, second = (
                    F.struct(F.col(f"id_{name}").alias("id"), (~F.col(f"against_{name}")).alias("is_new")) for name in ("x", "y")
                )
                pairs.append(same.where(first < second))
            if not pairs:
                none = documents.where(F.lit(False))
                return none.select(F.col("id").alias("a"), F.col("id").alias("b"), F.lit(1.0).alias("similarity"), F.lit("a").alias("against"))
            found = pairs[0] if len(pairs) == 1 else pairs[0].unionByName(pairs[1].select(pairs[0].columns))
            found = found.where(~(F.col("against_x") & F.col("against_y")))
            # Of two documents with the same id, the one that was only compared with comes first.
            is_first = (F.col("id_x") < F.col("id_y")) | ((F.col("id_x") == F.col("id_y")) & F.col("against_x"))
            against = F.when(F.col("against_x"), F.when(is_first, "a").otherwise("b")).when(
                F.col("against_y"), F.when(is_first, "b").otherwise("a")
            )
            return found.select(F.least("id_x", "id_y").alias("a"), F.greatest("id_x", "id_y").alias("b"), "similarity", against.alias("against"))

        return self.work.stage("pairs", "a string, b string, similarity double, against string", make)


#: Condition for the rows of classes, not of copies, that edges lead to.
_IS_MEMBER = "component is not null and copies is null"
