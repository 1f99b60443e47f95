"""Deduplication on `local[2]`: the same bytes as the command, for any partitions and batches."""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys

import pyarrow as pa
import pytest
from conftest import corpus, found_lines, pair_lines
from pyspark.sql import functions

import lookalike as lk
import lookalike.spark as lks
from lookalike.spark._cluster import Cluster
from lookalike.spark._dedup import DedupJob
from lookalike.spark._result import _ANNOTATIONS

WORDS = "the a river stone bird light under over moves quickly slowly bright dark house road north south winter summer green ß é 河 🙂".split()


def pages(count: int, seed: int = 1) -> list[dict]:
    """Returns documents, many of which are near-duplicates or copies and some without text, with a score and a language."""
    draw = random.Random(seed)
    originals = [" ".join(draw.choices(WORDS, k=draw.randint(5, 60))) for _ in range(max(1, count // 3))]
    rows = []
    for at in range(count):
        words = draw.choice(originals).split()
        if draw.random() < 0.5:
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        text = None if at % 40 == 0 else "" if at % 40 == 1 else " \n" if at % 40 == 2 else " ".join(words)
        rows.append({"id": f"d{at}", "text": text, "score": draw.randint(0, 9), "language": draw.choice(["en", "de", None])})
    draw.shuffle(rows)
    return rows


SCHEMA = "id string, text string, score long, language string"


@pytest.mark.parametrize("name", ["license-texts", "reuters21578"])
def test_real_corpora_get_the_bytes_of_the_command(name, frame_of, command_lines):
    rows = corpus(name)
    result = lks.dedup(frame_of(rows, partitions=3), id="id")
    assert found_lines(result) == command_lines(rows)


@pytest.mark.parametrize(("partitions", "batch", "group_limit"), [(1, 10_000, 32), (4, 1, 2), (7, 3, None)])
def test_partitions_batches_and_group_limits_change_nothing(spark, frame_of, command_lines, partitions, batch, group_limit):
    rows = pages(300)
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, batch)
    try:
        frame = frame_of(rows, SCHEMA, partitions)
        told = {"threshold": 0.6, "shingle": "words:2", "method": "allpairs", "keep": "longest"}
        job = DedupJob(
            frame, text=None, id="id", against=None, position=None, told=told, partitions=partitions, group_limit=group_limit,
            edges_of_a_task=0 if partitions == 4 else 1_000_000,
        )
        found = found_lines(job.run(None))
    finally:
        spark.conf.set(name, before)
    expected = command_lines(rows, "--threshold=0.6", "--shingle=words:2")
    assert len(expected) > 1000
    assert found == expected


def test_batches_of_long_texts_outgrew_the_caches(spark, frame_of, monkeypatch):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before, found, whole = spark.conf.get(name), [], Cluster.batches

    def batches(cluster, rows):
        found.append(rows)
        return whole(cluster, rows)

    monkeypatch.setattr(Cluster, "batches", batches)
    lks.dedup(frame_of([{"id": str(at), "text": "ab " * 10_000} for at in range(20)]), id="id")
    assert found and all(130 < rows < 140 for rows in found)
    assert spark.conf.get(name) == before


def test_a_limit_of_batches_ends_with_its_last_call_and_never_raises_the_own_one(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before, cluster = spark.conf.get(name), Cluster(spark)

    def largest() -> int:
        def sizes(batches):
            for batch in batches:
                yield pa.record_batch({"rows": pa.array([batch.num_rows], pa.int64())})

        return max(row["rows"] for row in spark.range(2000, numPartitions=1).mapInArrow(sizes, "rows long").collect())

    first, second = cluster.batches(900), cluster.batches(400)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert largest() == 400
    second.__exit__(None, None, None)
    assert spark.conf.get(name) == before
    assert largest() == 2000
    spark.conf.set(name, 300)
    try:
        with cluster.batches(400):
            assert largest() == 300
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "minhash", "functions": 64}, ["--method=minhash", "--functions=64"]),
        ({"method": "simhash", "distance": 6, "threshold": 0.5}, ["--method=simhash", "--distance=6", "--threshold=0.5"]),
        ({"method": "exact"}, ["--method=exact"]),
        ({"within": "language"}, ["--within=language"]),
        ({"across": "language", "keep": "max:score,shortest"}, ["--across=language", "--keep=max:score,shortest"]),
    ],
    ids=["minhash", "simhash", "exact", "within", "across and keep"],
)
def test_options_mean_what_they_mean_for_the_command(frame_of, command_lines, options, words):
    rows = pages(200, seed=3)
    if options != {"method": "exact"}:
        options = {"threshold": 0.6, "shingle": "words:2", **options}
        words = [*words, "--shingle=words:2"] + ["--threshold=0.6"] * (not any("threshold" in word for word in words))
    result = lks.dedup(frame_of(rows, SCHEMA), id="id", **options)
    expected = command_lines(rows, *words)
    assert len(expected) > 300
    assert found_lines(result) == expected


def test_what_is_compared_with_is_never_removed_and_all_pairs_are_listed(frame_of, command_lines):
    rows = pages(240, seed=4)
    # Some ids occur on both sides.
    old, new = [{**row, "id": row["id"].replace("d1", "d2")} for row in rows[:80] if row["id"].startswith("d1")], rows[80:]
    options = {"threshold": 0.6, "shingle": "words:2"}
    words = ["--threshold=0.6", "--shingle=words:2", "--pairs=all"]
    result = lks.dedup(frame_of(new, SCHEMA), id="id", against=frame_of(old, SCHEMA), pairs="all", **options)
    expected = command_lines(new, *words, against=old)
    assert len(expected) > 300
    assert found_lines(result) == expected
    assert pair_lines(result) == sorted(command_lines(new, *words, against=old, name="pairs").splitlines())
    assert result.counts["documents"] == len(new)
    decided = lks.dedup(frame_of(new, SCHEMA), id="id", against=frame_of(old, SCHEMA), **options)
    lines = command_lines(new, *words[:2], against=old, name="pairs").splitlines()
    assert pair_lines(decided) == sorted(lines)
    # Documents from `against` occur on both sides of pairs.
    assert all(any(mark in line for line in lines) for mark in (b'"against":"a"', b'"against":"b"'))


def test_a_document_to_compare_with_could_not_be_told_from_a_new_one_of_its_id(spark, frame_of):
    new, old = [{"id": "1", "text": "a rose is a rose"}, {"id": "2", "text": "a rose is a rose"}], [{"id": "1", "text": "a rose is a rose"}]
    of_rows = lk.dedup(new, id="id", against=old, pairs="all")
    result = lks.dedup(frame_of(new), id="id", against=frame_of(old), pairs="all")
    for name in ("clusters", "pairs"):
        key = lambda row: tuple(str(value) for value in row.values())  # noqa: E731
        found = sorted((row.asDict() for row in getattr(result, name).collect()), key=key)
        assert found == sorted(getattr(of_rows, name).to_pylist(), key=key)
    assert [tuple(row) for row in result.pairs.orderBy("a", "b", "against").collect()] == [
        ("1", "1", 1.0, "a"),
        ("1", "2", 1.0, None),
        ("1", "2", 1.0, "a"),
    ]


def test_results_are_frames_of_the_data(frame_of):
    rows = pages(120, seed=5)
    result = lks.dedup(frame_of(rows, SCHEMA), id="id", threshold=0.6, shingle="words:2")
    expected = lk.dedup(rows, id="id", threshold=0.6, shingle="words:2")
    key = lambda row: row["id"]  # noqa: E731
    as_dicts = lambda frame: sorted((row.asDict() for row in frame.collect()), key=key)  # noqa: E731
    assert as_dicts(result.survivors) == sorted(expected.kept, key=key)
    assert as_dicts(result.removed) == sorted(expected.removed, key=key)
    annotated = [{**row, "cluster_size": row["cluster_size"]} for row in sorted(expected.annotated(), key=key)]
    assert as_dicts(result.annotated()) == annotated
    pairs = sorted(tuple(row.values()) for row in expected.pairs.to_pylist())
    assert sorted(tuple(row) for row in result.pairs.collect()) == pairs
    told = expected.counts
    assert result.counts == {**{name: told[name] for name in ("documents", "kept", "removed", "exact", "near", "clusters", "missing_text")}, "texts": result.counts["texts"], "keep_missing": 0, "keep_unusable": 0}
    assert repr(result) == repr(expected).replace("DedupResult", "SparkDedupResult")
    assert result.scheme == expected.scheme
    assert [cost["stage"] for cost in result.costs][:3] == ["sample", "groups", "edges"]
    assert all(cost["seconds"] >= 0 and cost["is_new"] for cost in result.costs)


def test_numbers_as_ids_several_texts_and_no_rows(spark, frame_of):
    rows = [{"id": at, "title": "a rose", "body": "is a rose is a rose"} for at in (10, 9)] + [{"id": 3, "title": None, "body": None}]
    frame = frame_of(rows, "id int, title string, body string")
    result = lks.dedup(frame, id="id", text=["title", "body"])
    assert [tuple(row) for row in result.clusters.collect()] == [("10", "9", 1.0, "exact", None)]
    assert sorted(row["id"] for row in result.survivors.collect()) == [3, 10]
    none = lks.dedup(frame.where("false"), id="id", text="body")
    assert none.counts["documents"] == none.counts["kept"] == 0
    assert none.clusters.collect() == []


def test_whole_numbers_of_64_bits_without_a_sign_were_no_ids(spark):
    frame = spark.createDataFrame([(at, "a rose is a rose") for at in (1, 2)], "id long, text string")
    large = frame.selectExpr("cast(18446744073709551613 + id as decimal(20,0)) as id", "text")
    with pytest.raises(TypeError, match="within cannot read interval year"):
        lks.dedup(frame.selectExpr("*", "interval '1' year as age"), id="id", within="age")
    # Options that False leaves out are none.
    result = lks.dedup(large, id="id", method="exact", strict=False)
    assert [tuple(row)[:2] for row in result.clusters.collect()] == [("18446744073709551614", "18446744073709551615")]
    with pytest.raises(TypeError, match="ids must be strings or whole numbers, not decimal.20,2."):
        lks.dedup(large.selectExpr("cast(id as decimal(20,2)) as id", "text"), id="id")


def test_the_first_row_is_kept_by_a_column_that_tells_the_order(frame_of):
    rows = [{"id": f"{at}", "text": "a rose is a rose is a rose", "at": -at} for at in range(5)]
    frame = frame_of(rows, "id string, text string, at long")
    result = lks.dedup(frame, id="id", text="text", keep="first", position="at")
    assert [row["id"] for row in result.survivors.collect()] == ["4"]


def test_a_small_memory_sends_texts_through_the_disk(frame_of, command_lines):
    rows = pages(300, seed=6)
    for options, words in [({}, []), ({"across": "language"}, ["--across=language"])]:
        result = lks.dedup(frame_of(rows, SCHEMA), id="id", threshold=0.5, shingle="words:1", memory=1000, **options)
        assert found_lines(result) == command_lines(rows, "--threshold=0.5", "--shingle=words:1", *words)


def test_pages_of_one_site_that_go_through_the_disk_ended_the_job(frame_of, command_lines):
    rows = [{**row, "url": f"http://{'ab'[at % 2]}.example/{at}"} for at, row in enumerate(pages(120, seed=6))]
    options = {"method": "henzinger", "distance": 4, "equal": 1, "distance_for": "site", "threshold": 0.6, "shingle": "words:2"}
    result = lks.dedup(frame_of(rows, f"{SCHEMA}, url string"), id="id", memory=1000, **options)
    assert found_lines(result) == command_lines(rows, *(f"--{name.replace('_', '-')}={value}" for name, value in options.items()))


def test_stages_of_another_table_of_terms_were_used_again(frame_of, tmp_path):
    rows = pages(60)
    terms, options = tmp_path / "t.terms", {"id": "id", "method": "simhash", "weight": "tf-idf", "distance": 6, "work_dir": tmp_path / "job"}
    for count in (60, 30):
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:count]))
        command = [sys.executable, "-m", "lookalike", "terms", str(tmp_path / "rows.jsonl"), "-o", str(terms), "--quiet"]
        terms.unlink(missing_ok=True)
        subprocess.run(command, check=True)
        if count == 60:
            lks.dedup(frame_of(rows, SCHEMA), terms=str(terms), **options)
    with pytest.raises(lk.LookalikeError, match="scheme"):
        lks.dedup(frame_of(rows, SCHEMA), terms=str(terms), **options)


def test_a_folder_with_stages_goes_on_and_that_of_another_job_is_refused(frame_of, tmp_path):
    rows = pages(60)
    frame = frame_of(rows, SCHEMA)
    first = lks.dedup(frame, id="id", work_dir=tmp_path / "job")
    again = lks.dedup(frame, id="id", work_dir=tmp_path / "job")
    assert not any(cost["is_new"] for cost in again.costs)
    assert found_lines(again) == found_lines(first)
    with pytest.raises(lk.LookalikeError, match="(?s)settings.*name another work_dir"):
        lks.dedup(frame, id="id", threshold=0.7, work_dir=tmp_path / "job")
    with pytest.raises(lk.LookalikeError, match="columns"):
        lks.dedup(frame.withColumnRenamed("id", "name"), id="name", work_dir=tmp_path / "job")
    # Two other sets of rows: in one a text differs, in the other a row is missing.
    for others in ([{**rows[0], "text": f"{rows[0]['text']} more"}, *rows[1:]], rows[1:]):
        with pytest.raises(lk.LookalikeError, match="made of other rows.*name another work_dir"):
            lks.dedup(frame_of(others, SCHEMA), id="id", work_dir=tmp_path / "job")
    assert found_lines(lks.dedup(frame_of(rows[::-1], SCHEMA, 5), id="id", work_dir=tmp_path / "job")) == found_lines(first)


def test_a_family_of_any_size_has_linearly_many_edges(frame_of, command_lines):
    # The long form has 200,000 documents. Each shares nearly all of its features with all others, so there would be n (n - 1) / 2 pairs.
    count = 200_000 if os.environ.get("LOOKALIKE_SPARK_LONG") else 3_000
    draw = random.Random(12)
    words = draw.sample([f"w{at}" for at in range(1000)], 100)
    rows = []
    for at in range(count):
        own = list(words)
        own[draw.randrange(100)] = f"changed{at}"
        rows.append({"id": f"d{at}", "text": " ".join(own)})
    result = lks.dedup(frame_of(rows, partitions=3), id="id")
    assert found_lines(result) == command_lines(rows)
    assert result.counts["removed"] > 0.9 * count
    edges = next(cost["edge_count"] for cost in result.costs if cost["stage"] == "groups")
    # Each document has 21 keys.
    assert edges < 30 * count


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({}, ValueError, "name the id column with id="),
        ({"id": "name"}, ValueError, "no column 'name', which id asks for: the columns are id, text, score, language"),
        ({"id": "id", "text": "score"}, TypeError, r'texts must be strings, not bigint \(column "score"\)'),
        ({"id": "id", "text": "body"}, ValueError, "no column 'body'"),
        ({"id": "id", "keep": "max:rank"}, ValueError, "no column 'rank', which keep asks for"),
        ({"id": "id", "within": "site"}, ValueError, "no column 'url'"),
        ({"id": "id", "threshold": 2}, ValueError, "threshold 2"),
        ({"id": "id", "method": "magic"}, ValueError, "magic"),
        ({"id": "id", "methd": "minhash"}, ValueError, "methd"),
        ({"id": "id", "threads": 4}, TypeError, "threads is no option here: Spark"),
        ({"id": "id", "keep": "first"}, ValueError, "position="),
        ({"id": "id", "memory": "much"}, ValueError, "no number of bytes"),
        ({"id": "id", "memory": -5}, ValueError, "memory -5 is not at least one byte"),
        ({"id": "id", "memory": 2.5}, TypeError, "memory must be a number of bytes"),
        ({"id": "id", "partitions": 0}, ValueError, "at least 1"),
        ({"id": "id", "partitions": "4"}, TypeError, "partitions must be a whole number, not '4'"),
        ({"id": "id", "partitions": 2.5}, TypeError, "partitions must be a whole number"),
        ({"id": "id", "text": 5}, TypeError, "text must name one or several columns, not be 5"),
        ({"id": 5}, TypeError, "id must name a column, not be 5"),
        ({"id": "id", "into": "collection"}, TypeError, "into is no option here: collections"),
        ({"id": "id", "checkpoint": "1M"}, TypeError, "checkpoint is no option here"),
        ({"id": "id", "annotate": True}, TypeError, "annotate is no option here: annotated"),
        ({"id": "id", "html_title": True}, TypeError, "html_title is no option here"),
        ({"id": "id", "html_alt": True}, TypeError, "html_alt is no option here"),
        ({"id": "id", "html_links": True}, TypeError, "html_links is no option here"),
        ({"id": "id", "method": "henzinger", "distance_for": "site"}, ValueError, "no column 'url', which distance_for asks for"),
        ({"id": "id", "against": "old"}, TypeError, "against must be a DataFrame"),
        ({"id": "id", "progress": "yes"}, TypeError, "progress must be"),
    ],
)
def test_wrong_calls_say_what_is_wrong_before_a_task_runs(frame_of, options, error, told):
    with pytest.raises(error, match=told) as caught:
        lks.dedup(frame_of(pages(3), SCHEMA), **options)
    assert "--" not in str(caught.value).replace("lookalike dedup --into", "")
    with pytest.raises(TypeError, match="DataFrame of Spark"):
        lks.dedup(["a"], id="id")


def test_the_tags_of_pages_were_compared_as_words(frame_of):
    rows = [{"id": "a", "html": "<p>a rose is a rose</p>"}, {"id": "b", "html": "<div>a rose is a rose</div>"}]
    frame = frame_of(rows, "id string, html string")
    assert lk.dedup(rows, id="id", text="html", progress=False).counts["exact"] == 1
    for call in (lks.dedup, lks.fingerprint, lks.overlap):
        with pytest.raises(ValueError, match="take the text out first, with the function lookalike_extract"):
            call(frame, id="id", text="html")
    with pytest.raises(ValueError, match="'page.html' holds pages"):
        lks.dedup(frame.selectExpr("id", "named_struct('html', html) as page"), id="id", text="page.html")
    lks.register(frame.sparkSession)
    texts = frame.selectExpr("id", "lookalike_extract(html) as text")
    assert lks.dedup(texts, id="id").counts["exact"] == 1


def test_ids_that_are_missing_or_repeated_are_named(frame_of, tmp_path):
    rows = [{"id": "a", "text": "x y"}, {"id": "b", "text": "x"}, {"id": "a", "text": "z"}]
    with pytest.raises(lk.BadInput, match=r"1 ids belong to several rows, for example 'a' \(column \"id\"\)"):
        lks.dedup(frame_of(rows), id="id", work_dir=tmp_path / "job")
    with pytest.raises(lk.BadInput, match=r"1 rows have no id"):
        lks.dedup(frame_of([*rows[:2], {"id": None, "text": "z"}]), id="id")


def test_values_that_keep_could_not_use_were_ignored(frame_of, tmp_path):
    rows = [{"id": f"{at}", "text": f"a rose is a rose {at}", "date": value} for at, value in enumerate(["5", "abc", None, "7.5"])]
    schema = "id string, text string, date string"
    counts = lks.dedup(frame_of(rows, schema, 2), id="id", keep="max:date").counts
    expected = lk.dedup(rows, id="id", keep="max:date", progress=False).counts
    assert (counts["keep_missing"], counts["keep_unusable"]) == (expected["keep_missing"], expected["keep_unusable"]) == (1, 1)
    with pytest.raises(lk.BadInput, match='none of the 2 rows has a value that keep can use .1 have none; column "date".*"abc" is not a number'):
        lks.dedup(frame_of(rows[1:3], schema), id="id", keep="max:date")


def test_columns_of_different_types_were_compared(spark):
    new = spark.createDataFrame([("a", "x", 5)], "id string, text string, rank int")
    old = new.selectExpr("id", "text", "cast(rank as string) as rank")
    with pytest.raises(TypeError, match='against: keep reads string there and int in the data .column "rank"'):
        lks.dedup(new, id="id", against=old, keep="max:rank")
    # In one column of doubles, large integers would be rounded and some would become equal.
    fractions = new.selectExpr("id", "text", "cast(rank as double) as rank")
    with pytest.raises(TypeError, match='against: across reads double there and int in the data .column "rank"'):
        lks.dedup(new, id="id", against=fractions, across="rank")
    larger = new.selectExpr("id", "text", "cast(rank as bigint) as rank")
    assert lks.dedup(new, id="id", against=larger, within="rank").counts["removed"] == 1


@pytest.mark.parametrize("option", ["within", "across"])
def test_a_category_that_no_row_has_made_all_rows_of_one(frame_of, option):
    frame = frame_of([{"id": at, "text": "a rose is a rose"} for at in "ab"], "id string, text string, language string")
    with pytest.raises(lk.BadInput, match=f'none of the 2 rows has a value in the column "language", as {option} requires'):
        lks.dedup(frame, id="id", **{option: "language"})


def test_columns_that_differ_by_case_ended_in_words_of_spark(spark, frame_of):
    frame = frame_of([{"id": "a", "text": "x"}])
    for names in (["id", "text", "Text"], ["id", "text", "ID"], ["id", "text", "text"]):
        with pytest.raises(ValueError, match="Spark cannot tell the columns .* apart: rename one"):
            lks.dedup(frame.selectExpr("id", "text", "'x'").toDF(*names), id="id", text="text")
    # Columns that are not read may differ only in case.
    unread = frame.selectExpr("id", "text", "1", "2").toDF("id", "text", "Rank", "rank")
    assert lks.dedup(unread, id="id", method="exact").counts["kept"] == 1


def test_an_annotation_clashed_with_a_column_in_capitals(frame_of):
    frame = frame_of([{"id": "a", "text": "x"}]).selectExpr("id", "text", "1 as Reason")
    with pytest.raises(ValueError, match="names that annotations have: Reason"):
        lks.dedup(frame, id="id", method="exact").annotated()


def test_a_temporary_folder_went_away_under_a_frame(frame_of):
    frame = frame_of([{"id": at, "text": "a rose is a rose"} for at in "abc"])
    survivors = lks.dedup(frame, id="id", method="exact").survivors
    edges = frame.selectExpr("id as a", "id as b")
    nodes = lks.components(edges).select("node")
    gc.collect()
    assert survivors.count() == 1
    assert nodes.count() == 3


def test_columns_that_are_not_read_could_not_be_annotated(spark):
    frame = spark.createDataFrame([("a", "one two", 1, 2), ("b", "one two", 3, 4)], "id string, text string, x int, X int")
    for data in (frame, frame.toDF("id", "text", "y", "y")):
        found = lks.dedup(data, id="id").annotated()
        assert found.columns == [*data.columns, *_ANNOTATIONS]
        assert sorted((row[0], row[2], row[3], row["survivor_id"], row["cluster_size"]) for row in found.collect()) == [
            ("a", 1, 2, "a", 2),
            ("b", 3, 4, "a", 2),
        ]


def test_errors_about_rows_of_against_were_looked_for_in_the_data(frame_of):
    data = frame_of([{"id": "a", "text": "x"}])
    for rows, told in [
        ([{"id": "o", "text": "x"}, {"id": "o", "text": "y"}], "against: 1 ids belong to several rows, for example 'o'"),
        ([{"id": "o", "text": "x"}, {"id": None, "text": "y"}], "against: 1 rows have no id"),
    ]:
        with pytest.raises(lk.BadInput, match=told):
            lks.dedup(data, id="id", against=frame_of(rows))
        with pytest.raises(lk.BadInput, match=f"^{told.removeprefix('against: ')}"):
            lks.dedup(frame_of(rows), id="id", against=data)


def test_a_row_without_a_position_was_told_as_row_0_of_a_batch(frame_of):
    rows = [{"id": f"{at}", "text": "x", "p": None if at == 1 else at} for at in range(3)]
    with pytest.raises(lk.BadInput, match='1 rows have no value in the column "p", as position requires'):
        lks.dedup(frame_of(rows, "id string, text string, p long"), id="id", keep="first", position="p")


def test_a_dot_in_a_name_could_not_be_named_as_for_the_command(spark):
    row = functions.struct(functions.lit("a").alias("i.d"), functions.lit("one two").alias("text"))
    frame = spark.range(1).select(row.alias("page"), functions.lit(1).alias("m.p"))
    result = lks.dedup(frame, id="page.i\\.d", text="page.text", keep="max:m\\.p")
    assert [found["page"]["i.d"] for found in result.survivors.collect()] == ["a"]


def test_a_stream_ended_in_words_of_spark_without_a_remedy(spark):
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) as id", "cast(value as string) as text")
    for call in (lks.dedup, lks.overlap):
        with pytest.raises(TypeError, match="is a stream.*foreachBatch"):
            call(stream, id="id")
