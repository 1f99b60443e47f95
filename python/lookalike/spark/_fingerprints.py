"""Fingerprints of texts, and all pairs of two sets of fingerprints within a distance."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lookalike._lookalike import Scheme, __version__
from lookalike.spark._cluster import Cluster
from lookalike.spark._dedup import ensure_partitions
from lookalike.spark._documents import ensure_frame, id_column, text_column
from lookalike.spark._schemas import SCHEMAS
from lookalike.spark._types import DataFrame
from lookalike.spark._work_dir import WorkDir, aggregates, checksum

__all__ = ["fingerprint", "join"]

#: Maximum number of queries that are sent to every task: 8 MB.
_SHIPPED = 1_000_000
#: Approximate number of entries of a table in one partition.
_ENTRIES_PER_TASK = 2_000_000


def fingerprint(
    data: DataFrame,
    *,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    scheme: Scheme | None = None,
) -> DataFrame:
    """The simhash fingerprint of each text: ``id`` (a string) and ``fingerprint``.

    Ids are not checked: rows without one, and rows with the same, are all in the result. The 64 bits are stored in a ``bigint``, so half of the
    values are negative; a text without features has null. The values are those
    of :func:`lookalike.simhash`. Nothing is computed before the frame is used, and everything again at each use: write it
    as a table first if it is used more than once, as :func:`join` does. Raises ``ValueError`` for a scheme of another sketch.
    """
    from pyspark.sql import functions as F

    ensure_frame(data, "data", "simhash")
    chosen = narrow_scheme(scheme)
    documents = data.select(id_column(data, id).alias("id"), text_column(data, text).alias("text"))
    cluster = Cluster(data.sparkSession)
    return cluster.run(documents.select("id", F.col("text")), "fingerprints", str(chosen))


def narrow_scheme(scheme: Scheme | None) -> Scheme:
    """Return the scheme, or the default; raise an error if its fingerprints do not have the 64 bits of a ``bigint``."""
    chosen = Scheme() if scheme is None else scheme
    if not {"sketch=none", "sketch=simhash:64"} & set(str(chosen).split()):
        raise ValueError("fingerprints on Spark have 64 bits: leave the sketch or preset out, or make those of 128 with lookalike.simhash")
    return chosen


def join(
    F: DataFrame,  # noqa: N803
    Q: DataFrame,  # noqa: N803
    distance: int = 3,
    *,
    work_dir: str | os.PathLike[str] | None = None,
    shipped: int = _SHIPPED,
    partitions: int | None = None,
) -> DataFrame:
    """All pairs of a fingerprint of ``F`` and one of ``Q`` within a Hamming distance of 0 to 16: ``a``, ``b``, ``distance``.

    Both have the columns ``id`` and ``fingerprint``, as :func:`fingerprint` returns them; rows without a fingerprint are in no pair. Up to
    ``shipped`` different fingerprints of ``Q`` are sent to every task of ``F``, the batch query of Manku, Jain and Das Sarma (2007, section 3.3).
    If there are more, fingerprints of both sides are cut into ``distance + 1`` blocks: two within the distance agree in at least one of them.

    ``work_dir`` is as in :func:`dedup`. The fingerprints must be the same each time; both sides are read once more to check that.
    In all, each side is read two to four times, so it should be a table.
    """
    from pyspark.sql import functions as fn

    if isinstance(distance, bool) or not isinstance(distance, int):
        raise TypeError(f"distance must be a whole number, not {distance!r}")
    ensure_partitions(partitions)
    if not 0 <= distance <= 16:
        raise ValueError(f"distance {distance} is not from 0 to 16: larger distances are not searched")
    for name, frame in [("F", F), ("Q", Q)]:
        ensure_frame(frame, name, "join")
        if not {"id", "fingerprint"} <= set(frame.columns):
            raise ValueError(f"{name} must have the columns id and fingerprint, and has {', '.join(frame.columns)}")
        kind = frame.schema["fingerprint"].dataType.simpleString()
        if kind != "bigint":
            raise TypeError(f"fingerprints must be bigint, not {kind}: their 64 bits stand in one (column fingerprint of {name})")
    cluster = Cluster(F.sparkSession)
    told = {"kind": "join", "version": __version__, "distance": distance, "ids": [dict(F.dtypes)["id"], dict(Q.dtypes)["id"]]}
    work = WorkDir(cluster, work_dir, told)

    def codes(frame: DataFrame) -> DataFrame:
        # Codes without their ids: equal fingerprints are compared once, and ids are joined again at the end.
        return frame.where(fn.col("fingerprint").isNotNull()).select(fn.col("fingerprint").alias("code")).distinct()

    if work_dir is not None:
        # The stages contain no ids and not all fingerprints, so a change of the data would not be noticed otherwise.
        sides = {"F": F.select("fingerprint"), "Q": Q.select("fingerprint")}
        measured = work.measured("sides", lambda: {name: checksum(side) for name, side in sides.items()})
        for name, side in sides.items():
            work.ensure_same_rows(measured, side, name)
    queries = work.stage("queries", "code long", lambda: codes(Q), aggregates())

    def near() -> DataFrame:
        if queries["rows"] <= shipped:
            asked = [row["code"] for row in queries.rows.collect()]
            return cluster.run(codes(F), "near_queries", asked, distance)
        sides = [codes(F).withColumn("is_query", fn.lit(False)), queries.rows.withColumn("is_query", fn.lit(True))]
        blocks = fn.explode(fn.array(*(_block(number, distance) for number in range(distance + 1)))).alias("block")
        cut = sides[0].unionByName(sides[1]).select("code", "is_query", blocks).select("code", "is_query", "block.*")
        # By the queries, from which a task makes tables; the other side only passes by.
        least = -(-queries["rows"] * (distance + 1) // _ENTRIES_PER_TASK)
        parts = cut.repartition(partitions or max(least, cluster.shuffle_partitions()), "block", "bits")
        return cluster.run(parts, "near_in_blocks", distance)

    pairs = work.stage("near", SCHEMAS["near_queries"], near).rows
    ids_f = F.select(fn.col("id").alias("a"), fn.col("fingerprint").alias("x"))
    ids_q = Q.select(fn.col("id").alias("b"), fn.col("fingerprint").alias("y"))
    return pairs.join(ids_f, "x").join(ids_q, "y").select("a", "b", "distance")


def _block(number: int, distance: int):  # type: ignore[no-untyped-def]
    """Return a block of the bits of ``code``, of about the same width as the others."""
    from pyspark.sql import functions as fn

    start, end = (64 * at // (distance + 1) for at in (number, number + 1))
    bits = fn.shiftrightunsigned("code", start).bitwiseAND(fn.lit((1 << (end - start)) - 1 if end - start < 63 else -1))
    return fn.struct(fn.lit(number).alias("block"), bits.alias("bits"))
