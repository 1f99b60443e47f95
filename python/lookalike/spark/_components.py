"""Connected components of a graph whose edges are rows, by large-star and small-star.

Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, *Connected Components in MapReduce and Beyond* (2014), section 3: in turns, each
node sends the smallest node that it knows to its larger neighbours, and then to its smaller ones, until nothing changes. A graph with few
edges is left to a single task, which needs one pass.
"""

from __future__ import annotations

import os
from typing import Any

from lookalike._lookalike import __version__
from lookalike.spark._cluster import Cluster
from lookalike.spark._documents import checksum_of_rows, ensure_frame
from lookalike.spark._types import DataFrame
from lookalike.spark._work_dir import Stage, WorkDir, aggregates

__all__ = ["EDGES_PER_TASK", "component_stage", "components", "connected", "measured_edges"]

#: Maximum number of edges that a single task handles alone: about 200 MB, in seconds.
EDGES_PER_TASK = 1_000_000

#: Maximum number of star rounds, far beyond the logarithm of any number of nodes.
_MAX_ROUNDS = 100


def components(
    edges: DataFrame, *, work_dir: str | os.PathLike[str] | None = None, edges_of_a_task: int = EDGES_PER_TASK
) -> DataFrame:
    """Find the connected components of a graph: a row for each node, with ``node`` and ``component``, the smallest node of its component.

    ``edges`` has two columns, of strings or of integers. ``work_dir`` is as in :func:`dedup`; the edges must be the same each time.
    Graphs of more than ``edges_of_a_task`` edges take O(log n) rounds of shuffles until they are smaller or done.
    """
    ensure_frame(edges, "edges")
    names = edges.columns
    if len(names) != 2:
        raise ValueError(f"edges must have two columns, and there are {len(names)}: {', '.join(names)}")
    kinds = {field.dataType.simpleString() for field in edges.schema.fields}
    if kinds == {"string"}:
        node = "string"
    elif kinds <= {"tinyint", "smallint", "int", "bigint"}:
        node = "long"
    else:
        raise TypeError(f"nodes must be strings or whole numbers in both columns, not {' and '.join(sorted(kinds))}")
    cluster = Cluster(edges.sparkSession)
    work = WorkDir(cluster, work_dir, {"kind": "components", "version": __version__, "columns": dict(edges.dtypes)})
    named = edges.toDF("x", "y").selectExpr(f"cast(x as {node}) as x", f"cast(y as {node}) as y").dropna()
    stage = work.stage("edges", f"x {node}, y {node}", lambda: named, measured_edges)
    work.ensure_same_rows(stage, named, "sum")
    return component_stage(work, cluster, stage, node=node, most=edges_of_a_task).rows


def component_stage(
    work: WorkDir, cluster: Cluster, edges: Stage, *, node: str = "long", most: int = EDGES_PER_TASK
) -> Stage:
    """Return the stage ``components`` with a row for each node: ``node``, and ``component``, the smallest node that it is connected with.

    ``edges`` has the columns ``x`` and ``y``, and was measured by `measured_edges`; ``node`` is their type.
    """
    schema = f"node {node}, component {node}"

    def stars() -> Stage:
        now, number = edges, 0
        while now["rows"] > most and number < _MAX_ROUNDS:
            number += 1
            before = now

            def turn(frame: DataFrame = before.rows) -> DataFrame:
                return _small_star(_large_star(frame))

            now = work.stage(f"stars-{number}", f"x {node}, y {node}", turn, measured_edges)
            if (now["rows"], now["checksum"]) == (before["rows"], before["checksum"]):
                break
        return now

    now = stars()

    def make() -> DataFrame:
        from pyspark.sql import functions as F

        def by_themselves(nodes: DataFrame) -> DataFrame:
            return nodes.select(F.col("x").alias("node"), F.col("x").alias("component"))

        centres = now.rows.select(F.col("y").alias("x")).distinct()
        if now["rows"] <= most:
            alone = now.rows.select("x", "y").repartition(1)
            found = cluster.run(alone, "components", schema=schema)
        else:
            # These are stars: each y is the centre of its component, and each x belongs to one.
            leaves = now.rows.select(F.col("x").alias("node"), F.col("y").alias("component"))
            found = leaves.unionByName(by_themselves(centres))
        if now is edges:
            return found
        # A node whose only edge leads to itself is in no star. There may be many such nodes, so they are not passed to the single task.
        in_stars = now.rows.select("x").unionByName(centres)
        loops = edges.rows.where("x = y").select("x").distinct().join(in_stars, "x", "left_anti")
        return found.unionByName(by_themselves(loops))

    return work.stage("components", schema, make)


def measured_edges(rows: DataFrame) -> dict[str, Any]:
    """Return measures that distinguish sets of edges. Whole hashes are not summed: the sum would overflow, which is an error under ANSI
    rules.

    ``sum`` also distinguishes sets that may contain an edge twice; in ``checksum`` the hashes of the two cancel out.
    """
    from pyspark.sql import functions as F

    named = rows.select("x", "y")
    return aggregates(checksum=F.bit_xor(F.xxhash64("x", "y")), sum=F.sum(checksum_of_rows(named)))(named)


def _large_star(edges: DataFrame) -> DataFrame:
    """Connect the larger neighbours of each node with the smallest of its neighbours and itself."""
    from pyspark.sql import functions as F

    there = edges.select("x", "y")
    both = there.unionByName(edges.select(F.col("y").alias("x"), F.col("x").alias("y")))
    both = both.where("x != y")
    least = both.groupBy("x").agg(F.least(F.col("x"), F.min("y")).alias("m"))
    # One edge for each larger neighbour, as before, so the number of edges never grows.
    found = both.where("y > x").join(least, "x").select(F.col("y").alias("x"), F.col("m").alias("y"))
    return found.where("x != y").distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Connect each node and its smaller neighbours with the smallest of these."""
    from pyspark.sql import functions as F

    # After a large star, x is the larger node of every edge.
    least = edges.groupBy("x").agg(F.min("y").alias("m"))
    neighbours = edges.join(least, "x").select(F.col("y").alias("x"), F.col("m").alias("y")).where("x != y")
    # The node itself stays connected with the smallest one: otherwise it would be lost once its neighbours have moved.
    own = least.select("x", F.col("m").alias("y"))
    return neighbours.unionByName(own).distinct()


def connected(edges: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the smallest node of each node's component, computed in memory: O(e log n)."""
    above: dict[Any, Any] = {}

    def root(node: Any) -> Any:
        above.setdefault(node, node)
        # Halves the path along the way: each node is linked to its grandparent.
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    for x, y in edges:
        a, b = root(x), root(y)
        if a != b:
            # The smaller node becomes the root, so roots are the smallest nodes.
            above[max(a, b)] = min(a, b)
    return {node: root(node) for node in above}
