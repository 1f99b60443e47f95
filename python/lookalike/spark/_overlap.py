"""Chunks that documents share, counted by shuffles.

Shivakumar and Garcia-Molina, *Finding near-replicas of documents on the web* (WebDB 1998), section 2. One of several equal texts is used.
Pairs are formed from the list of documents of each chunk, sorted by both documents and counted: the *sort-based approach*. If a row needs T
chunks, each document leaves its T - 1 most common chunks out of these lists, as *probabilistic counting* leaves out very common chunks. Two
documents that share T chunks still meet in one list: that of the least common chunk that they share, because T - 1 shared chunks are more
common. Chunks left out are added for pairs that met, so counts are exact.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from lookalike import _lookalike
from lookalike._errors import BadInput, warn
from lookalike._options import is_given
from lookalike._options import words as to_words
from lookalike.spark._cluster import Cluster
from lookalike.spark._dedup import UNSUPPORTED_OPTIONS
from lookalike.spark._documents import DocumentColumns, ensure_frame
from lookalike.spark._schemas import SCHEMAS
from lookalike.spark._types import Column, DataFrame
from lookalike.spark._work_dir import Stage, WorkDir, aggregates, checksum

__all__ = ["overlap"]

#: Maximum number of texts of a chunk that is never left out.
_COMMON = 16

#: Options of `lookalike overlap` that concern things other than a DataFrame or pairs of documents.
_NOT_OF_PAIRS = dict.fromkeys(
    "by server address copies_of rerank engine copy_containment set_page_share set_server_share alias_pages memory".split(),
    "pairs of documents are all that is counted here: for servers, page sets and single documents there is lookalike.overlap",
)


def overlap(
    data: DataFrame,
    *,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    chunk: str = "lines:2",
    min_shared: int | str = 1,
    work_dir: str | os.PathLike[str] | None = None,
    **options: Any,
) -> DataFrame:
    """Count the chunks that every two documents share, exactly: the rows of ``lookalike overlap``, in any order.

    A row has ``a``, ``b`` (a < b), ``chunking``, ``shared``, ``chunks_a``, ``chunks_b``, ``containment_a``, ``containment_b``,
    ``resemblance``. ``id``, ``text`` and ``work_dir`` are as in :func:`dedup`; ``chunk``, ``min_shared`` and all other options are those of
    ``lookalike overlap``: ``min_containment=0.5``, ``copies="apart"``, ``bits=32``. There is a row for every two documents with equal
    text; with ``copies="apart"`` the smallest id stands for all.
    """
    for name, reason in {**UNSUPPORTED_OPTIONS, **_NOT_OF_PAIRS}.items():
        if is_given(options.get(name)):
            raise TypeError(f"{name} is no option here: {reason}")
    ensure_frame(data, "data", "overlap")
    chunks = _lookalike.TextChunks(["overlap", "-", *to_words({"chunk": chunk, "min_shared": min_shared, **options})])
    warn(chunks.warnings)
    columns = DocumentColumns(text=text, id=id, value=None, category=None, position=None)
    documents = columns.documents(data, is_against=False).select("id", "text")
    cluster = Cluster(data.sparkSession)
    told = {"kind": "overlap", "version": _lookalike.__version__, "settings": list(chunks.words), "columns": columns.told(data)}
    work = WorkDir(cluster, work_dir, told)
    return _Overlap(chunks, cluster, work).rows(documents, columns.id or "id")


class _Overlap:
    """The stages of a count."""

    def __init__(self, chunks: _lookalike.TextChunks, cluster: Cluster, work: WorkDir, common: int = _COMMON) -> None:
        self.chunks = chunks
        self.cluster = cluster
        self.work = work
        self.common = common

    def rows(self, documents: DataFrame, id: str) -> DataFrame:
        """Return the rows, from documents with ``id`` and ``text``."""
        from pyspark.sql import functions as F


        def cut() -> DataFrame:
            return self.cluster.run(documents, "chunks", list(self.chunks.words))

        def measure(rows: DataFrame) -> dict[str, Any]:
            again = rows.where("id is not null").groupBy("id").agg(F.count(F.lit(1)).alias("n")).where("n > 1")
            repeated = aggregates(example=F.min("id"))(again)
            told = {"repeated": repeated["rows"], "example": repeated["example"], "checksum": checksum(documents)}
            return {**told, **aggregates()(rows)}

        cut_texts = self.work.stage("texts", SCHEMAS["chunks"], cut, measure)
        if cut_texts["repeated"]:
            raise BadInput(
                f'{cut_texts["repeated"]} ids belong to several rows, for example {cut_texts["example"]!r} (column "{id}"): '
                "an id must tell one row from all others"
            )
        self.work.ensure_same_rows(cut_texts, documents)
        named = cut_texts.rows.where("id is not null and unit is not null").select("id", "unit")
        sets = self.work.stage(
            "sets",
            "unit binary, chunking int, chunks array<long>",
            # A text that several tasks processed appears several times.
            lambda: cut_texts.rows.where("chunking is not null").select("unit", "chunking", "chunks").dropDuplicates(["unit", "chunking"]),
        )
        units = self.work.stage("units", "x binary, y binary, chunking int, shared long", lambda: self._units(sets))
        schema = (
            "a string, b string, chunking string, shared int, chunks_a int, chunks_b int, containment_a double, containment_b double, "
            "resemblance double"
        )
        return self.work.stage("pairs", schema, lambda: self._pairs(named, sets, units)).rows

    def _of_chunking(self, values: Sequence[Any]) -> Column:
        """Return the value for the chunking of each row."""
        from pyspark.sql import functions as F

        return F.element_at(F.array(*map(F.lit, values)), F.col("chunking") + 1)

    def _least(self) -> Column:
        return self._of_chunking([least for _, least in self.chunks.chunkings])

    def _units(self, sets: Stage) -> DataFrame:
        """Make the pairs of texts that share enough chunks, with the number of these."""
        from pyspark.sql import functions as F

        each = sets.rows.select("unit", "chunking", F.explode("chunks").alias("chunk"))
        shared = each.groupBy("chunking", "chunk").agg(F.count(F.lit(1)).alias("units")).where("units > 1")
        each = each.join(shared, ["chunking", "chunk"]).withColumn("least", self._least())
        # With a minimum of 1, nothing may be left out: a pair may share only this chunk.
        is_common = (F.col("units") > self.common) & (F.col("least") > 1)
        # The most common first. Ties are broken in the same way for all texts.
        common = each.where(is_common).groupBy("unit", "chunking", "least")
        common = common.agg(F.sort_array(F.collect_list(F.struct((-F.col("units")).alias("place"), "chunk"))).alias("common"))
        common = common.withColumn("common", F.expr("transform(common, it -> it.chunk)"))
        kept = F.expr("slice(common, least, greatest(size(common) - least + 1, 0))")
        listed = each.where(~is_common).select("chunking", "chunk", "unit", F.lit(1).alias("counts"))
        # Pairs meet in the common chunks that are kept; all common chunks are added below.
        listed = listed.unionByName(common.select("chunking", F.explode(kept).alias("chunk"), "unit", F.lit(0).alias("counts")))
        x = listed.select("chunking", "chunk", F.col("unit").alias("x"), "counts")
        y = listed.select("chunking", "chunk", F.col("unit").alias("y"))
        # Quadratic in the number of texts of a chunk, which is why common chunks are thinned out above.
        met = x.join(y, ["chunking", "chunk"]).where("x < y").groupBy("x", "y", "chunking").agg(F.sum("counts").alias("counted"))
        for side in ("x", "y"):
            own = common.select(F.col("unit").alias(side), "chunking", F.col("common").alias(f"common_{side}"))
            met = met.join(own, [side, "chunking"], "left")
        added = F.coalesce(F.size(F.array_intersect("common_x", "common_y")), F.lit(0))
        is_there = F.col("common_x").isNotNull() & F.col("common_y").isNotNull()
        shared_chunks = (F.col("counted") + F.when(is_there, added).otherwise(F.lit(0))).cast("long").alias("shared")
        return met.select("x", "y", "chunking", shared_chunks).where(F.col("shared") >= self._least())

    def _pairs(self, named: DataFrame, sets: Stage, units: Stage) -> DataFrame:
        """Return pairs of documents for pairs of texts."""
        from pyspark.sql import functions as F

        if not self.chunks.lists_copies:
            named = named.groupBy("unit").agg(F.min("id").alias("id"))
        sizes = sets.rows.select("unit", "chunking", F.size("chunks").alias("size"))
        found = units.rows
        for side in ("x", "y"):
            found = found.join(sizes.withColumnsRenamed({"unit": side, "size": f"size_{side}"}), [side, "chunking"])
        found = found.where(F.col("shared") / F.least("size_x", "size_y") >= self.chunks.min_containment)
        for side in ("x", "y"):
            found = found.join(named.select(F.col("unit").alias(side), F.col("id").alias(f"id_{side}")), side)
        # The ids of a pair are in their own order, whatever that of the texts is.
        is_turned = F.col("id_x") > F.col("id_y")
        pairs = found.select(
            F.least("id_x", "id_y").alias("a"),
            F.greatest("id_x", "id_y").alias("b"),
            "chunking",
            "shared",
            F.when(is_turned, F.col("size_y")).otherwise(F.col("size_x")).alias("chunks_a"),
            F.when(is_turned, F.col("size_x")).otherwise(F.col("size_y")).alias("chunks_b"),
        )
        if self.chunks.lists_copies:
            a, b = (named.select("unit", F.col("id").alias(side)) for side in ("a", "b"))
            copies = a.join(b, "unit").where("a < b").join(sizes, "unit").where(F.col("size") >= self._least())
            size = F.col("size")
            pairs = pairs.unionByName(
                copies.select("a", "b", "chunking", size.cast("long").alias("shared"), size.alias("chunks_a"), size.alias("chunks_b"))
            )
        name = self._of_chunking([name for name, _ in self.chunks.chunkings])
        shared, of_a, of_b = (F.col(column).cast("double") for column in ("shared", "chunks_a", "chunks_b"))
        return pairs.select(
            "a",
            "b",
            name.alias("chunking"),
            F.col("shared").cast("int").alias("shared"),
            "chunks_a",
            "chunks_b",
            (shared / of_a).alias("containment_a"),
            (shared / of_b).alias("containment_b"),
            (shared / (of_a + of_b - shared)).alias("resemblance"),
        )
