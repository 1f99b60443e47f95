"""The steps that an engine such as Spark takes on rows in pieces, compared with the command on the whole file."""

from __future__ import annotations

import pickle
import random
from collections import defaultdict

import pyarrow as pa
import pytest
from conftest import pages

import lookalike as lk
from lookalike._errors import BadInput
from lookalike._lookalike import DedupKernel, TextChunks
from lookalike.spark import _kernels

BUCKETS = 5


def kernel_of(*words: str) -> DedupKernel:
    return DedupKernel(["dedup", "-", "--output=./-", *words])


def rows_of(table) -> list[dict]:
    return pa.table(table).to_pylist()


def batches(rows: list[dict], size: int, schema: pa.Schema | None = None) -> list[pa.RecordBatch]:
    return pa.Table.from_pylist(rows, schema).to_batches(max_chunksize=size)


class Engine:
    """The stages of an engine that distributes rows over tasks; each task does what a Spark task does."""

    def __init__(self, rows: list[dict], words: list[str], *, tasks: int, size: int, group_limit: int | None) -> None:
        self.words, self.tasks, self.size, self.group_limit = words, tasks, size, group_limit
        self.kernel = kernel_of(*words)
        self.words = self.kernel.words
        self.rows = [self._row(row, position) for position, row in enumerate(rows)]

    def _row(self, row: dict, position: int) -> dict:
        named = {"id": row["id"], "text": row["text"], "against": row.get("against", False), "position": position, "checksum": 3}
        for name, field in (("value", self.kernel.value_field), ("category", self.kernel.category_field)):
            if field is not None:
                named[name] = row[field]
        return named

    def spread(self, step, rows: list[dict], key: str, *arguments, schema: pa.Schema | None = None) -> list[dict]:
        """Runs a step on whole groups of rows with the same key, in a random order."""
        parts = defaultdict(list)
        for row in random.Random(3).sample(rows, len(rows)):
            parts[(row[key] or 0) % self.tasks].append(row)
        return [
            row
            for part in parts.values()
            for batch in step(iter(batches(part, self.size, schema)), *arguments)
            for row in batch.to_pylist()
        ]

    def packed(self) -> list[dict]:
        parts = [self.rows[task :: self.tasks] for task in range(self.tasks)]
        levels = None
        if self.kernel.needs_levels:
            # One task counts, because a sample is enough.
            self.kernel.count(batches(parts[0], self.size))
            levels = DedupKernel.levels(DedupKernel.merge_frequencies([self.kernel.frequencies(), self.kernel.frequencies()]))
        return [
            row
            for part in parts
            for batch in _kernels.pack(iter(batches(part, self.size)), self.words, len(self.rows), BUCKETS, levels)
            for row in batch.to_pylist()
        ]

    def grouped(self) -> list[dict]:
        return self.spread(_kernels.group, self.packed(), "bucket", self.words, BUCKETS, self.group_limit, schema=_kernels.ARROW_SCHEMAS["pack"])

    def members(self, grouped: list[dict]) -> list[dict]:
        """Returns a row for each class that is in a component or has copies, and rows of these copies."""
        packed = [{"bucket": row["bucket"], "classes": row["classes"]} for row in grouped if row["classes"] is not None]
        edges = [{"bucket": row["bucket"], "edges": row["edges"]} for row in grouped if row["edges"] is not None]
        if edges:
            binary = pa.schema([("bucket", pa.int32()), ("edges", pa.binary())])
            edges = self.spread(_kernels.promising, edges, "bucket", self.words, schema=binary)
        if edges:
            components = [row for batch in _kernels.components(iter(batches(edges, self.size))) for row in batch.to_pylist()]
            packed += self.spread(_kernels.pack_components, components, "node", BUCKETS)
        return self.spread(_kernels.members, packed, "bucket", self.words, schema=_kernels.ARROW_SCHEMAS["pack_components"])

    def clusters(self, memory: int = 1 << 30) -> dict[str, tuple[str, float, str]]:
        """Returns survivor, similarity and reason of each removed document."""
        grouped = self.grouped()
        self.counts = {name: sum(row[name] or 0 for row in grouped) for name in ("new", "missing", "documents", "texts", "repeated")}
        texts = {(row["against"], row["id"]): row for row in self.rows}
        alone, together = [], []
        for row in self.members(grouped):
            if row["component"] is None:
                alone.append(row)
            elif row["copies"] is None:
                document = texts[row["against"], row["id"]]
                together.append({**row, "copies": [], "text": document["text"], "category": document.get("category")})
            else:
                together.append({**row, "text": None, "category": None})
        settled = self.spread(_kernels.settle, together, "component", self.words, memory, schema=self._schema())
        found = {row["id"]: (row["survivor"], row["similarity"], row["reason"]) for row in settled}
        assert len(found) == len(settled)
        for row in alone:
            if row["copies"] is not None and not row["are_against"] and self.kernel.copies_are_pairs:
                found.update({copy: (row["id"], 1.0, "exact") for copy in row["copies"]})
        return found

    def _schema(self) -> pa.Schema:
        category = [] if self.kernel.category_field is None else [("category", pa.string())]
        return pa.schema([*_kernels.ARROW_SCHEMAS["members"], ("text", pa.string()), *category])


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
    ["--method=super-shingle", "--equal=2", "--threshold=0.5"],
    ["--method=exact"],
    ["--method=exact", "--across=language"],
    ["--and=containment:words:1:0.9", "--lengths=0.9", "--threshold=0.5"],
]


@pytest.mark.parametrize("words", SETTINGS, ids=" ".join)
def test_rows_in_pieces_get_the_clusters_that_the_command_finds(rows, command_clusters, words):
    expected = command_clusters(rows, *words)
    assert expected
    for tasks, size, group_limit in [(1, 1000, None), (3, 7, 2), (4, 50, 32)]:
        engine = Engine(rows, words, tasks=tasks, size=size, group_limit=group_limit)
        assert engine.clusters() == expected
        assert engine.counts == {"new": len(rows), "missing": 0, "documents": len(rows), "texts": engine.counts["texts"], "repeated": 0}
        assert 0 < engine.counts["texts"] <= len({row["text"] for row in rows}) * 3


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
    for memory in [1 << 30, 1]:
        engine = Engine(marked, [], tasks=3, size=20, group_limit=3)
        assert engine.clusters(memory) == expected
    assert engine.counts["new"] == len(new)
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


def packed_by(kernel: DedupKernel, data: object) -> list[dict]:
    levels = DedupKernel.levels(kernel.frequencies()) if kernel.needs_levels else None
    kernel.prepare(10, BUCKETS, levels)
    return rows_of(kernel.pack(data)) + rows_of(kernel.packed())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_every_type_have_one_class_and_one_order(kind):
    texts = ["a b c d e f", None, "", "naïve 漢字", "a b c d e f"]
    plain = pa.table({"id": list("abcde"), "text": pa.array(texts, pa.string())})
    typed = plain.set_column(1, "text", plain["text"].cast(kind) if kind != pa.string_view() else pa.array(texts, kind))
    found = packed_by(kernel_of(), typed)
    assert found == packed_by(kernel_of(), plain)
    assert {name for row in found for name in "classes ids keys".split() if row[name]} == {"classes", "ids", "keys"}


def test_copies_are_rows_of_their_class_and_of_a_side_each():
    rows = [{"id": f"d{at:05}", "text": "a b c", "against": at % 3 == 0} for at in range(30_005)]
    found = Engine(rows, [], tasks=2, size=1000, group_limit=32)
    members = found.members(found.grouped())
    whole = [row for row in members if row["copies"] is None]
    assert [(row["id"], row["against"], row["component"]) for row in whole] == [("d00000", True, None)]
    copies = {side: [id for row in members if row["copies"] and row["are_against"] == side for id in row["copies"]] for side in (False, True)}
    assert copies == {side: [row["id"] for row in rows[1:] if row["against"] == side] for side in (False, True)}
    assert max(len(row["copies"] or []) for row in members) == 1_000


def test_the_ids_of_all_copies_were_in_one_column():
    rows = [{"id": f"{at:05}" + 2_000 * "x", "text": "a b c"} for at in range(40_000)]
    engine = Engine(rows, ["--method=exact"], tasks=1, size=10_000, group_limit=32)
    packed = [{"bucket": row["bucket"], "classes": row["classes"], "components": None} for row in engine.grouped() if row["classes"]]
    found = pa.table(engine.kernel.members(batches(packed, 100, _kernels.ARROW_SCHEMAS["pack_components"])))
    assert found["copies"].num_chunks == 2
    assert found.num_rows == 1 + 40


def test_many_copies_are_removed_in_parts_from_disk(monkeypatch):
    rows = [{"id": f"d{at:04}", "text": f"a b c d e f g h i j k {at % 2}", "against": at % 7 == 0} for at in range(6_000)]
    rows = [{**row, "id": row["id"] if row["against"] else f"e{at:04}"} for at, row in enumerate(rows)]
    words = ["--threshold=0.5"]
    expected = Engine(rows, words, tasks=2, size=50, group_limit=32).clusters()
    assert len(expected) > 5_000
    sizes = []
    joined_copies = _kernels._joined_copies
    monkeypatch.setattr(_kernels, "_joined_copies", lambda *given: sizes.append(given[2].nbytes) or joined_copies(*given))
    monkeypatch.setattr(_kernels, "_COPIES_BYTES", 10_000)
    assert Engine(rows, words, tasks=2, size=50, group_limit=32).clusters() == expected
    assert len(sizes) > 2 and max(sizes) < 50_000


def test_ids_that_stand_more_than_once_are_counted():
    rows = [{"id": id, "text": "x", "against": side} for id, side in [("a", False), ("a", True), ("b", False), ("b", False), ("b", False), ("c", True), ("c", True)]]
    grouped = Engine(rows, [], tasks=2, size=2, group_limit=32).grouped()
    assert sum(row["repeated"] or 0 for row in grouped) == 2


def test_a_text_that_is_too_long_equals_others_and_resembles_none():
    long, short = "a b c d e f g h i j", "a b c d e f"
    rows = [{"id": name, "text": text} for name, text in (("a", long), ("b", long), ("c", long + "."), ("d", short))]
    engine = Engine(rows, ["--max-document=16"], tasks=2, size=4, group_limit=32)
    assert engine.clusters() == {"b": ("a", 1.0, "exact")}
    assert engine.counts["texts"] == 3
    members = [{"component": 1, "rank": rank, "text": rows[at]["text"]} for rank, at in enumerate([0, 2, 3])]
    assert rows_of(engine.kernel.settle(batches(members, 4))) == []


def test_a_large_group_is_a_chain_of_linearly_many_edges():
    own = " ".join(f"w{at}" for at in range(60))
    rows = [{"id": f"d{at}", "text": f"{own} changed{at}"} for at in range(300)]
    counts = {}
    for limit in (32, None):
        engine = Engine(rows, [], tasks=2, size=100, group_limit=limit)
        counts[limit] = sum(row["edge_count"] or 0 for row in engine.grouped())
    # Each document has 13 keys.
    assert 299 <= counts[32] <= 13 * 299
    assert counts[None] >= 300 * 299 // 2


@pytest.mark.parametrize("edges", [[], [(3, 1), (7, 7), (1, 2), (9, 8), (-5, 9)]])
def test_nodes_get_the_least_of_those_that_they_are_connected_with(edges):
    table = pa.table({"x": pa.array([x for x, _ in edges], pa.int64()), "y": pa.array([y for _, y in edges], pa.int64())})
    found = {row["node"]: row["component"] for row in rows_of(DedupKernel.connected(table))}
    assert found == ({1: 1, 2: 1, 3: 1, 7: 7, 8: -5, 9: -5, -5: -5} if edges else {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threshold=2x"], "not a share"),
        (["--threshold=2"], "threshold 2 is not above 0"),
        (["--boilerplate=site"], "reads all records"),
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
    with pytest.raises(BadInput, match="rank 4 occurs twice"):
        kernel.settle(batches([member, member], 1))
    with pytest.raises(BadInput, match="rank 5 belongs to documents that are compared with"):
        kernel.settle(batches([member, {**member, "rank": 5, "against": True}], 2))
    with pytest.raises(ValueError, match="call prepare first"):
        kernel.pack(batches([{"id": "a", "text": "x"}], 1))
    with pytest.raises(ValueError, match="levels"):
        kernel.prepare(10, BUCKETS)
    with pytest.raises(BadInput, match="not valid as levels of features"):
        kernel.prepare(10, BUCKETS, b"something")
    with pytest.raises(BadInput, match="damaged"):
        DedupKernel.merge_frequencies([kernel.frequencies()[:-1]])
    with pytest.raises(BadInput, match="row 1 has no id"):
        packed_by(kernel, pa.table({"id": ["a", None], "text": ["x", "y"]}))
    with pytest.raises(BadInput, match="no value in row 0"):
        kernel.settle(pa.table({"component": pa.array([None], pa.int64()), "rank": [1], "text": ["a"]}))
    with pytest.raises(ValueError, match="no column 'text'|no column \"text\""):
        packed_by(kernel, pa.table({"id": ["a"]}))
    with pytest.raises(TypeError, match="must be int64"):
        kernel.settle(pa.table({"component": ["a"], "rank": [1], "text": ["a"]}))
    with pytest.raises(TypeError, match="Arrow data"):
        packed_by(kernel, 7)
    with pytest.raises(ValueError, match="position"):
        packed_by(kernel_of("--keep=first"), pa.table({"id": ["a"], "text": ["x"]}))
    for kind in (pa.binary(), pa.large_binary()):
        with pytest.raises(BadInput, match="packed edges are truncated"):
            kernel.promising(pa.table({"edges": pa.array([b"abc"], kind)}))
    with pytest.raises(TypeError, match="must be binary, not"):
        kernel.promising(pa.table({"edges": ["abc"]}))


def test_what_a_kernel_needs_is_told():
    kernel = kernel_of("--keep=newest:date,first", "--across=site", "--method=simhash")
    assert (kernel.value_field, kernel.category_field, kernel.needs_position) == ("date", "url", True)
    assert not kernel.copies_are_pairs and kernel.finds_near and not kernel.needs_levels
    assert kernel_of().needs_levels and not kernel_of("--method=exact").finds_near
    assert pickle.loads(pickle.dumps(kernel)).words == kernel.words


def test_texts_whose_chunks_were_handed_out_were_remembered_without_end():
    chunks = TextChunks(["overlap", "-", "--chunk=doc"])

    def sets_of(texts: list[str]) -> int:
        _, sets = chunks.chunk(pa.RecordBatch.from_pydict({"id": texts, "text": texts}))
        return pa.table(sets).num_rows

    assert [sets_of(["a"]), sets_of(["a"])] == [1, 0]
    assert sets_of([str(number) for number in range(1 << 20)]) == 1 << 20
    assert sets_of(["a"]) == 1


def test_a_sketch_in_the_scheme_of_sql_functions_is_that_of_fingerprints_only():
    texts, scheme = pa.array(["a rose is a rose", None]), lk.Scheme(sketch="simhash:64")
    assert _kernels.sql_minhash(texts, str(scheme)).to_pylist() == lk.minhash(texts).to_pylist()
    assert _kernels.sql_simhash(texts, str(scheme)).view(pa.uint64()).to_pylist() == lk.simhash(texts).to_pylist()
