"""Fixtures and helpers shared by the tests on Spark."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest

#: Real corpora, beside the checkout.
CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

#: Sail has an environment of its own, because its client is another version of pyspark.
collect_ignore = [] if importlib.util.find_spec("pysail") else ["test_sail.py"]


def settings(master: str = "local[2]") -> dict[str, str]:
    """Returns settings of a small session without access to the network."""
    return {
        "spark.master": master,
        "spark.app.name": "lookalike tests",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in settings().items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def corpus(name: str) -> list[dict[str, str]]:
    """Returns ids and texts of a real corpus, or skips the test with a message if it is missing."""
    folder = CORPORA / name
    files = [*folder.glob("docs.jsonl"), *folder.glob("docs.jsonl.gz")]
    if not files:
        warnings.warn(f"SKIPPED: the corpus {name} is not in {CORPORA}", stacklevel=2)
        pytest.skip(f"the corpus {name} is not in {CORPORA}")
    opened = gzip.open if files[0].suffix == ".gz" else open
    with opened(files[0], "rt", encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return [{"id": str(row["id"]), "text": row["text"]} for row in rows]


def found_lines(result) -> bytes:
    """Returns the clusters of a result as the command writes them to `clusters.jsonl`."""
    clusters: dict[tuple[bool, bytes], list[dict]] = {}
    for row in result.clusters.collect():
        member = {"id": row["id"], "similarity": row["similarity"], "reason": row["reason"]}
        # Survivors from `against` are numbered first.
        clusters.setdefault((row["against"] is None, row["survivor"].encode()), []).append(member)
    lines = []
    for number, ((is_new, survivor), members) in enumerate(sorted(clusters.items(), key=lambda cluster: cluster[0]), 1):
        members.sort(key=lambda member: member["id"].encode())
        against = {} if is_new else {"against": True}
        line = {"cluster": number, "survivor": survivor.decode(), **against, "members": members}
        lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def pair_lines(result) -> list[bytes]:
    """Returns the pairs of a result as the command writes them to `pairs.jsonl`, sorted by their bytes."""
    lines = []
    for row in result.pairs.collect():
        line = {name: value for name, value in row.asDict().items() if value is not None}
        lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode())
    return sorted(lines)


@pytest.fixture
def command_lines(tmp_path):
    """Returns the bytes that the command of the same package writes for the same rows to `clusters.jsonl` or another file."""

    def run(rows: Iterable[dict], *words: str, against: Iterable[dict] | None = None, name: str = "clusters") -> bytes:
        files = [tmp_path / "rows.jsonl"]
        files[0].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        more: list[str] = []
        if against is not None:
            earlier = tmp_path / "against.jsonl"
            earlier.write_text("".join(json.dumps(row) + "\n" for row in against), encoding="utf-8")
            more = [f"--against={earlier}"]
        out = tmp_path / "out"
        call = [sys.executable, "-m", "lookalike", "dedup", *map(str, files), "-o", str(out), "--overwrite", "--quiet", *more, *words]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (out / f"{name}.jsonl").read_bytes()

    return run


@pytest.fixture
def frame_of(spark, tmp_path):
    """Returns a DataFrame of rows, read from a file of JSON lines."""

    def make(rows: list[dict], schema: str = "id string, text string", partitions: int | None = None):
        path = tmp_path / f"frame-{len(list(tmp_path.iterdir()))}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        frame = spark.read.schema(schema).json(os.fspath(path))
        return frame if partitions is None else frame.repartition(partitions)

    return make
