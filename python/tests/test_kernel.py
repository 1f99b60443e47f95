"""The steps that an engine such as Spark takes, on rows in pieces, against the command over the whole file."""

from __future__ import annotations

import pickle
import random
from collections import defaultdict

import pyarrow as pa
import pytest
from conftest import pages

from lookalike._errors import BadInput
from lookalike._lookalike import DedupKernel

TWO_32 = 1 << 32


def kernel_of(*words: str) -> DedupKernel:
    return DedupKernel(["dedup", "-", "--output=-", *words])


def rows_of(table) -> list[dict]:
    return pa.table(table).to_pylist()


def batches(rows: list[dict], size: int) -> list[pa.RecordBatch]:
    """Rows as Spark has them: sizes are 32 bits wide."""
    table = pa.Table.from_pylist(rows)
    for at, field in enumerate(table.schema):
        if field.name.startswith("size"):
            table = table.set_column(at, field.name, table[field.name].cast(pa.int32()))
    return table.to_batches(max_chunksize=size)


class Engine:
    """The stages of an engine that spreads rows over tasks, each of which makes a kernel of its own."""

    def __init__(self, rows: list[dict], words: list[str], *, tasks: int, size: int, group_limit: int | None) -> None:
        self.words, self.tasks, self.size, self.group_limit = words, tasks, size, group_limit
        self.kernel = kernel_of(*words)
        self.rows = [self._row(row, position) for position, row in enumerate(rows)]

    def task(self) -> DedupKernel:
        return pickle.loads(pickle.dumps(self.kernel))

    def _row(self, row: dict, position: int) -> dict:
        named = {"id": row["id"], "text": row["text"], "against": row.get("against", False), "position": position}
        for name, field in (("value", self.kernel.value_field), ("category", self.kernel.category_field)):
            if field is not None:
                named[name] = row[field]
        return named

    def spread(self, rows: list[dict], key: str) -> list[list[pa.RecordBatch]]:
        """Rows by a key, in a random order."""
        parts = defaultdict(list)
        for row in random.Random(3).sample(rows, len(rows)):
            parts[row[key] % self.tasks].append(row)
        return [batches(part, self.size) for part in parts.values()]

    def scan(self) -> list[dict]:
        scanned, counts = [], []
        for task in range(self.tasks):
            kernel = self.task()
            part = self.rows[task :: self.tasks]
            for batch in batches(part, self.size) if part else []:
                # One task counts: a sample is enough.
                scanned += rows_of(kernel.scan(batch, count=task == 0))
            counts.append(kernel.frequencies())
        self.levels = DedupKernel.levels(DedupKernel.merge_frequencies(counts))
        return scanned

    def classes(self, scanned: list[dict]) -> list[dict]:
        best: dict[bytes, dict] = {}
        for row in scanned:
            if row["text_hash"] is not None:
                first = best.setdefault(row["text_hash"], row)
                best[row["text_hash"]] = min(first, row, key=lambda row: row["order"])
        texts = {(row["against"], row["id"]): row for row in self.rows}
        ranked = sorted(best.values(), key=lambda row: row["order"])
        return [
            {**texts[row["against"], row["id"]], "text_hash": row["text_hash"], "rank": rank}
            for rank, row in enumerate(ranked)
        ]

    def edges(self, classes: list[dict]) -> list[dict]:
        keys = []
        for part in self.spread(classes, "rank"):
            kernel = self.task()
            kernel.prepare_keys(len(classes), self.levels if kernel.needs_levels else None)
            for batch in part:
                keys += rows_of(kernel.keys(batch))
        shared: dict[tuple, int] = defaultdict(int)
        for part in self.spread(keys, "key"):
            for edge in rows_of(self.task().work_edges(part, self.group_limit)):
                shared[edge["x"], edge["y"], edge["size_x"], edge["size_y"]] += edge["shared"]
        edges = [
            {"x": x, "y": y, "size_x": size_x, "size_y": size_y, "shared": count}
            for (x, y, size_x, size_y), count in shared.items()
        ]
        return [edge for batch in batches(edges, self.size) for edge in rows_of(self.kernel.promising(batch))] if edges else []

    def settle(self) -> tuple[list[dict], list[dict], list[dict]]:
        """Rows of the scan, classes, and those that join."""
        scanned = self.scan()
        classes = self.classes(scanned)
        component = list(range(len(classes)))
        for edge in self.edges(classes) if self.kernel.finds_near else []:
            old, new = component[edge["y"]], component[edge["x"]]
            component = [new if own == old else own for own in component]
        members = [{**row, "component": component[row["rank"]]} for row in classes]
        joined = []
        for part in self.spread(members, "component"):
            joined += rows_of(self.task().settle(part))
        return scanned, classes, joined

    def clusters(self) -> dict[str, tuple[str, float, str]]:
        """Survivor, similarity and reason of each removed document."""
        scanned, classes, joined = self.settle()
        joins = {row["rank"]: row for row in joined}
        rank_of = {row["text_hash"]: row["rank"] for row in classes}
        found = {}
        for row in scanned:
            if row["text_hash"] is None or row["against"]:
                continue
            rank = rank_of[row["text_hash"]]
            best = classes[rank]
            if rank in joins:
                join = joins[rank]
                found[row["id"]] = (classes[join["survivor"]]["id"], join["similarity"], join["reason"])
            elif self.kernel.copies_are_pairs and best["id"] != row["id"]:
                found[row["id"]] = (best["id"], 1.0, "exact")
        return found


SETTINGS = [
    [],
    ["--threshold=0.4", "--shingle=words:2"],
    ["--keep=max:score,longest"],
    ["--keep=min:score"],
    ["--keep=first"],
    ["--keep=latest:language,shortest"],
    ["--within=language"],
    ["--across=language"],
    ["--method=minhash", "--functions=64", "--threshold=0.6"],
    ["--method=simhash", "--distance=6"],
    ["--method=simhash", "--distance=6", "--bits=128", "--across=language"],
    ["--method=supershingle", "--agree=2", "--threshold=0.5"],
    ["--method=copies"],
    ["--method=copies", "--across=language"],
    ["--and=containment:words:1:0.9", "--lengths=0.9", "--threshold=0.5"],
]


@pytest.mark.parametrize("words", SETTINGS, ids=" ".join)
@pytest.mark.parametrize(("tasks", "size", "group_limit"), [(1, 1000, None), (3, 7, 2), (4, 50, 32)])
def test_rows_in_pieces_get_the_clusters_that_the_command_finds(rows, command_clusters, words, tasks, size, group_limit):
    expected = command_clusters(rows, *words)
    engine = Engine(rows, words, tasks=tasks, size=size, group_limit=group_limit)
    assert engine.clusters() == expected
    assert expected


def test_earlier_rows_come_first_and_survive(rows, command, tmp_path):
    import json

    old, new = rows[:80], rows[80:]
    for name, part in (("old", old), ("new", new)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    done = command("dedup", tmp_path / "new.jsonl", "--against", tmp_path / "old.jsonl", "-o", tmp_path / "out", "--quiet")
    assert done.returncode == 0, done.stderr
    expected = {}
    for line in (tmp_path / "out" / "clusters.jsonl").read_text(encoding="utf-8").splitlines():
        cluster = json.loads(line)
        for member in cluster["members"]:
            expected[member["id"]] = (cluster["survivor"], member["similarity"], member["reason"])
    marked = [{**row, "against": at < 80} for at, row in enumerate(rows)]
    engine = Engine(marked, [], tasks=3, size=20, group_limit=3)
    assert engine.clusters() == expected
    assert set(expected) <= {row["id"] for row in new}
    assert {survivor for survivor, _, _ in expected.values()} & {row["id"] for row in old}


def test_verified_pairs_are_those_of_the_package():
    import lookalike as lk

    texts = pages(60)
    expected = {(row["a"], row["b"]): row["similarity"] for row in lk.pairs(texts, threshold=0.4).to_pylist()}
    kernel = kernel_of("--threshold=0.4")
    rows = [{"component": 0, "rank": rank, "text": text} for rank, text in enumerate(dict.fromkeys(texts))]
    names = {row["rank"]: str(texts.index(row["text"])) for row in rows}
    found = rows_of(kernel.verify(batches(rows, 9)))
    assert {tuple(sorted((names[p["x"]], names[p["y"]]))): p["similarity"] for p in found} == {
        pair: similarity
        for pair, similarity in expected.items()
        if all(texts.index(texts[int(one)]) == int(one) for one in pair)
    }
    assert found


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_every_type_have_one_class_and_one_order(kind):
    texts = ["a b c d e f", None, "", "naïve 漢字", "a b c d e f"]
    plain = pa.table({"id": list("abcde"), "text": pa.array(texts, pa.string())})
    typed = plain.set_column(1, "text", plain["text"].cast(kind) if kind != pa.string_view() else pa.array(texts, kind))
    kernel = kernel_of()
    found = rows_of(kernel.scan(typed))
    assert found == rows_of(kernel.scan(plain))
    assert [row["text_hash"] is None for row in found] == [False, True, True, False, False]
    assert found[0]["text_hash"] == found[4]["text_hash"] != found[3]["text_hash"]
    assert len(found[0]["text_hash"]) == 16


def test_a_text_that_is_too_long_equals_others_and_resembles_none():
    kernel = kernel_of("--max-document=16")
    long, short = "a b c d e f g h i j", "a b c d e f"
    rows = [{"id": name, "text": text} for name, text in (("a", long), ("b", long), ("c", long + "."), ("d", short))]
    hashes = [row["text_hash"] for row in rows_of(kernel.scan(batches(rows, 4)))]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    members = [{"component": 1, "rank": rank, "text": rows[at]["text"]} for rank, at in enumerate([0, 2, 3])]
    assert rows_of(kernel.settle(batches(members, 4))) == []


def test_a_large_group_is_a_chain_of_linearly_many_edges():
    kernel = kernel_of()
    keys = [{"key": -5, "rank": rank, "size": 100 + rank % 7} for rank in range(1000)]
    table = pa.table({"key": [row["key"] for row in keys], "rank": [row["rank"] for row in keys]})
    table = table.append_column("size", pa.array([row["size"] for row in keys], pa.int32()))
    edges = rows_of(kernel.work_edges(table))
    assert len(edges) == 999
    assert all(edge["x"] < edge["y"] and edge["shared"] == TWO_32 for edge in edges)
    assert len(rows_of(kernel.promising(kernel.work_edges(table)))) == 999
    assert len(kernel.work_edges(table, None)) == 1000 * 999 // 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threshold=2x"], "not a share"),
        (["--threshold=2"], "threshold 2 is not above 0"),
        (["--boilerplate=site"], "learns from all records"),
        (["--fields=anchors:1"], "whole records"),
        (["--method=minhsh"], "unknown method"),
    ],
)
def test_words_that_mean_nothing_here_are_refused(words, said):
    with pytest.raises(ValueError, match=said):
        kernel_of(*words)


def test_steps_refuse_what_breaks_their_promises():
    kernel = kernel_of()
    member = {"component": 1, "rank": 4, "text": "a b c d e f", "against": False}
    with pytest.raises(BadInput, match="rank 4 stands twice"):
        kernel.settle(batches([member, member], 1))
    with pytest.raises(BadInput, match="rank 5 belongs to documents that are compared with"):
        kernel.settle(batches([member, {**member, "rank": 5, "against": True}], 2))
    with pytest.raises(ValueError, match="prepare_keys"):
        kernel.keys(batches([member], 1))
    with pytest.raises(ValueError, match="levels"):
        kernel.prepare_keys(10)
    with pytest.raises(BadInput, match="no levels of features"):
        kernel.prepare_keys(10, b"something")
    with pytest.raises(BadInput, match="damaged"):
        DedupKernel.merge_frequencies([kernel.frequencies()[:-1]])
    with pytest.raises(BadInput, match="row 1 has no id"):
        kernel.scan(pa.table({"id": ["a", None], "text": ["x", "y"]}))
    with pytest.raises(BadInput, match="no value in row 0"):
        kernel.settle(pa.table({"component": pa.array([None], pa.int64()), "rank": [1], "text": ["a"]}))
    with pytest.raises(ValueError, match="no column 'text'|no column \"text\""):
        kernel.scan(pa.table({"id": ["a"]}))
    with pytest.raises(TypeError, match="must be int64"):
        kernel.settle(pa.table({"component": ["a"], "rank": [1], "text": ["a"]}))
    with pytest.raises(TypeError, match="Arrow data"):
        kernel.scan(7)
    with pytest.raises(ValueError, match="position"):
        kernel_of("--keep=first").scan(pa.table({"id": ["a"], "text": ["x"]}))


def test_fingerprints_of_either_width_of_offsets_make_the_same_edges():
    kernel = kernel_of("--method=simhash", "--distance=8", "--shingle=words:2")
    kernel.prepare_keys(60)
    keys = pa.table(kernel.keys(pa.table({"rank": range(60), "text": pages(60)})))
    large = keys.set_column(3, "fingerprint", keys["fingerprint"].cast(pa.large_binary()))
    edges = rows_of(kernel.work_edges(keys))
    assert edges and edges == rows_of(kernel.work_edges(large))
    with pytest.raises(BadInput, match="3 bytes"):
        kernel.work_edges(keys.set_column(3, "fingerprint", pa.array([b"abc"] * len(keys))))


def test_what_a_kernel_needs_is_told():
    kernel = kernel_of("--keep=newest:date,first", "--across=site", "--method=simhash")
    assert (kernel.value_field, kernel.category_field, kernel.needs_position) == ("date", "url", True)
    assert not kernel.copies_are_pairs and kernel.finds_near and not kernel.needs_levels
    assert kernel.keys_schema == "key long, rank long, size int, fingerprint binary"
    assert kernel_of().needs_levels and not kernel_of("--method=copies").finds_near
    assert pickle.loads(pickle.dumps(kernel)).words == kernel.words
