"""Shared chunks on `local[2]`: the same rows as the command."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest
from conftest import corpus

import lookalike as lk
import lookalike.spark as lks
from lookalike import _lookalike
from lookalike.spark import _overlap
from lookalike.spark._cluster import Cluster
from lookalike.spark._work_dir import WorkDir


def documents(count: int = 150) -> list[dict]:
    """Returns documents that mostly have a common head and foot; many share lines, and some are equal."""
    draw = random.Random(7)
    lines = [" ".join(draw.choices("abcdefghij", k=5)) + "." for _ in range(60)]
    rows = []
    for at in range(count):
        own = draw.sample(lines, draw.randint(1, 12))
        text = "\n".join(["Head one.", "Head two.", *own, "Foot é."][draw.randint(0, 2) :])
        rows.append({"id": f"d{at}", "text": draw.choice(rows)["text"] if at % 7 == 6 else text})
    rows[3]["text"], rows[4]["text"], rows[5]["text"] = None, " \n", ""
    draw.shuffle(rows)
    return rows


def command_rows(tmp_path, rows: list[dict], *words: str) -> list[dict]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    copies = [] if any(word.startswith("--copies") for word in words) else ["--copies=listed"]
    out = tmp_path / "atlas"
    call = [sys.executable, "-m", "lookalike", "overlap", str(path), "-o", str(out), "--quiet", *copies, *words]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (out / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]


def in_order(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: (row["chunking"], row["a"].encode(), row["b"].encode()))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chunk": "lines:1"}, ["--chunk=lines:1"]),
        ({"chunk": "doc,lines:1,lines:2:sliding", "min_shared": "doc=1,lines:1=4,lines:2:sliding=2"},
         ["--chunk=doc,lines:1,lines:2:sliding", "--min-shared=doc=1,lines:1=4,lines:2:sliding=2"]),
        ({"chunk": "words:3:sliding", "min_shared": 9, "min_containment": 0.4, "copies": "apart"},
         ["--chunk=words:3:sliding", "--min-shared=9", "--min-containment=0.4", "--copies=apart"]),
        ({"chunk": "sentences", "min_shared": 30}, ["--chunk=sentences", "--min-shared=30"]),
    ],
    ids=["all pairs", "several chunkings", "contained, copies apart", "none"],
)  # fmt: skip
def test_rows_are_those_of_the_command(frame_of, tmp_path, options, words):
    rows = documents()
    expected = command_rows(tmp_path, rows, *words)
    found = [row.asDict() for row in lks.overlap(frame_of(rows, partitions=3), id="id", **options).collect()]
    assert in_order(found) == in_order(expected)
    assert bool(expected) == (options.get("min_shared") != 30)


@pytest.mark.parametrize("common", [1, 5])
def test_what_common_chunks_are_changes_nothing(spark, frame_of, tmp_path, common):
    rows = documents()
    expected = command_rows(tmp_path, rows, "--chunk=lines:1", "--min-shared=5")
    chunks = _lookalike.TextChunks(["overlap", "-", "--chunk=lines:1", "--min-shared=5"])
    cluster = Cluster(spark)
    work = WorkDir(cluster, None, {})
    job = _overlap._Overlap(chunks, cluster, work, common=common)
    found = [row.asDict() for row in job.rows(frame_of(rows), "id").collect()]
    assert len(expected) > 100
    assert in_order(found) == in_order(expected)


def test_a_real_corpus_has_the_rows_of_the_command(frame_of, tmp_path):
    rows = corpus("license-texts")
    expected = command_rows(tmp_path, rows, "--chunk=lines:2", "--min-shared=40")
    found = lks.overlap(frame_of(rows, partitions=2), id="id", chunk="lines:2", min_shared=40)
    assert in_order([row.asDict() for row in found.collect()]) == in_order(expected)
    assert expected


def test_wrong_calls_say_what_is_wrong(frame_of):
    rows = [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}, {"id": None, "text": "z"}]
    with pytest.raises(lk.BadInput, match="1 ids belong to several rows, for example 'a'"):
        lks.overlap(frame_of(rows[:2]), id="id")
    with pytest.raises(lk.BadInput, match="have no id"):
        lks.overlap(frame_of(rows), id="id")
    with pytest.raises(ValueError, match="lnes"):
        lks.overlap(frame_of(rows), id="id", chunk="lnes:2")
    with pytest.raises(TypeError, match="by is no option here: pairs of documents"):
        lks.overlap(frame_of(rows), id="id", by="server")
    with pytest.raises(TypeError, match=r"DataFrame of Spark.*lookalike\.overlap"):
        lks.overlap(["a"], id="id")
