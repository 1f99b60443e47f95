"""The same tests on Sail, as far as it supports them: an engine that implements Spark Connect but is not Spark. It has no shuffles to lose
and accepts no archives, so the package is installed where it runs."""

from __future__ import annotations


import pytest
from conftest import corpus, found_lines, pair_lines
from test_dedup import SCHEMA, pages
from test_overlap import command_rows, documents, in_order

import lookalike as lk
import lookalike.spark as lks


@pytest.fixture(scope="session")
def spark():
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    host, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    yield session
    session.stop()
    server.stop()


@pytest.mark.parametrize("name", ["license-texts", "reuters21578"])
def test_real_corpora_get_the_bytes_of_the_command(name, frame_of, command_lines, tmp_path):
    rows = corpus(name)
    result = lks.dedup(frame_of(rows, partitions=3), id="id", work_dir=tmp_path / "job")
    assert found_lines(result) == command_lines(rows)


@pytest.mark.parametrize("method", ["allpairs", "minhash", "simhash", "exact"])
@pytest.mark.parametrize("partitions", [1, 5])
def test_methods_and_partitions_get_the_bytes_of_the_command(frame_of, command_lines, tmp_path, method, partitions):
    rows = pages(300)
    told = {"method": method} if method == "exact" else {"method": method, "threshold": 0.6, "shingle": "words:2"}
    result = lks.dedup(frame_of(rows, SCHEMA, partitions), id="id", partitions=partitions, work_dir=tmp_path / "job", **told)
    expected = command_lines(rows, *(f"--{name}={value}" for name, value in told.items()))
    assert len(expected) > 300
    assert found_lines(result) == expected


def test_what_is_compared_with_is_never_removed_and_all_pairs_are_listed(frame_of, command_lines, tmp_path):
    rows = pages(240, seed=4)
    old, new = rows[:80], rows[80:]
    options = {"threshold": 0.6, "shingle": "words:2", "pairs": "all"}
    words = [f"--{name}={value}" for name, value in options.items()]
    result = lks.dedup(frame_of(new, SCHEMA), id="id", against=frame_of(old, SCHEMA), work_dir=tmp_path / "job", **options)
    assert found_lines(result) == command_lines(new, *words, against=old)
    assert pair_lines(result) == sorted(command_lines(new, *words, against=old, name="pairs").splitlines())


def test_a_folder_with_stages_goes_on(frame_of, tmp_path):
    frame = frame_of(pages(60), SCHEMA)
    first = lks.dedup(frame, id="id", work_dir=tmp_path / "job")
    again = lks.dedup(frame, id="id", work_dir=tmp_path / "job")
    assert not any(cost["is_new"] for cost in again.costs)
    assert found_lines(again) == found_lines(first)


def test_overlaps_are_those_of_the_command(frame_of, tmp_path):
    rows = documents()
    expected = command_rows(tmp_path, rows, "--chunk=lines:1", "--min-shared=3")
    found = lks.overlap(frame_of(rows, partitions=3), id="id", chunk="lines:1", min_shared=3, work_dir=tmp_path / "job")
    assert expected
    assert in_order([row.asDict() for row in found.collect()]) == in_order(expected)


def test_fingerprints_and_joins_are_those_of_the_library(frame_of, tmp_path):
    rows = [row for row in pages(200) if row["text"] and row["text"].strip()]
    prints = lks.fingerprint(frame_of(rows, SCHEMA), id="id")
    found = {row["id"]: row["fingerprint"] & (1 << 64) - 1 for row in prints.collect()}
    assert found == {row["id"]: value for row, value in zip(rows, lk.simhash([row["text"] for row in rows]).to_pylist())}
    near = {(row["a"], row["b"]) for row in lks.join(prints, prints, distance=3, work_dir=tmp_path / "job").collect()}
    assert near == {(a, b) for a, x in found.items() for b, y in found.items() if (x ^ y).bit_count() <= 3}
