"""Connected components by stars and in one task, compared with a simple search."""

from __future__ import annotations

import random

import pytest

import lookalike as lk
import lookalike.spark as lks
from lookalike.spark._components import connected


def slow(edges: list[tuple]) -> dict:
    """Returns the smallest node that each node reaches, by a walk."""
    beside: dict = {}
    for x, y in edges:
        beside.setdefault(x, set()).add(y)
        beside.setdefault(y, set()).add(x)
    found: dict = {}
    for node in sorted(beside):
        if node in found:
            continue
        waiting, found[node] = [node], node
        while waiting:
            for other in beside[waiting.pop()]:
                if other not in found:
                    found[other] = node
                    waiting.append(other)
    return found


def graphs() -> list[list[tuple[int, int]]]:
    draw = random.Random(5)
    # Each doubling of a path is a round of stars, of some seconds.
    path = [(at, at + 1) for at in range(8)]
    star = [(0, at) for at in range(1, 30)]
    loose = [(draw.randrange(300), draw.randrange(300)) for _ in range(120)]
    names = list(range(1000, 1050))
    draw.shuffle(names)
    shuffled = [(names[at], names[at + 1]) for at in range(49) if at % 8 != 7]
    return [path, star, loose, shuffled, [(7, 7)], [*path, *loose, (2, 2), (2, 2), (1, 0)]]


def test_in_memory_components_are_those_of_a_walk():
    draw = random.Random(1)
    for size in [1, 5, 30, 200]:
        for _ in range(50):
            edges = [(draw.randrange(size), draw.randrange(size)) for _ in range(draw.randrange(size + 1))]
            assert connected(edges) == slow(edges)


@pytest.mark.parametrize("most", [0, 1_000_000], ids=["stars", "one task"])
def test_components_of_all_graphs_are_those_of_a_walk(spark, most):
    # All graphs are put into one, without shared nodes, so each takes as many rounds as it needs.
    edges = [(x + 10_000 * at, y + 10_000 * at) for at, graph in enumerate(graphs()) for x, y in graph]
    frame = spark.createDataFrame(edges, "a long, b long")
    found = lks.components(frame, edges_of_a_task=most)
    assert {row["node"]: row["component"] for row in found.collect()} == slow(edges)


def test_nodes_may_be_strings(spark):
    edges = [("b", "é"), ("é", "z"), ("x", "y")]
    found = lks.components(spark.createDataFrame(edges, "a string, b string"))
    assert {tuple(row) for row in found.collect()} == {("b", "b"), ("é", "b"), ("z", "b"), ("x", "x"), ("y", "x")}


def test_wrong_edges_say_what_is_wrong(spark):
    with pytest.raises(ValueError, match="two columns"):
        lks.components(spark.range(1))
    with pytest.raises(TypeError, match="double"):
        lks.components(spark.createDataFrame([(0.5, 1.0)], "a double, b double"))


def test_data_and_sessions_of_another_library_had_no_attribute():
    with pytest.raises(TypeError, match="^edges must be a DataFrame of Spark, not list$"):
        lks.components([("a", "b")])
    for call in (lks.register, lambda session: lks.read_archives(session, "pages.warc")):
        with pytest.raises(TypeError, match="^session must be a session of Spark, not str$"):
            call("spark")


@pytest.mark.parametrize("most", [0, 4], ids=["stars to the end", "one task after a round"])
def test_nodes_with_no_edge_but_to_themselves_were_lost_where_stars_shrank_the_graph(spark, most):
    edges = [(1, 2), (2, 3), (3, 4), (5, 5), (5, 5)]
    found = lks.components(spark.createDataFrame(edges, "a long, b long"), edges_of_a_task=most)
    assert sorted(tuple(row) for row in found.collect()) == [(1, 1), (2, 1), (3, 1), (4, 1), (5, 5)]


@pytest.mark.parametrize(
    ("monday", "tuesday"), [([(1, 2), (3, 4)], [(1, 3), (2, 4)]), ([(1, 2)] * 2, [(3, 4)] * 2)], ids=["other edges", "edges twice"]
)
def test_components_of_other_edges_were_those_of_the_first_call(spark, tmp_path, monday, tuesday):
    frames = [spark.createDataFrame(edges, "a long, b long") for edges in (monday, tuesday)]
    first = lks.components(frames[0], work_dir=tmp_path / "work").collect()
    with pytest.raises(lk.LookalikeError, match="made of other rows"):
        lks.components(frames[1], work_dir=tmp_path / "work")
    assert sorted(lks.components(frames[0], work_dir=tmp_path / "work").collect()) == sorted(first)
