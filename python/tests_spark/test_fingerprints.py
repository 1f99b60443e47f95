"""Fingerprints, joins and SQL functions, compared with those of one process."""

from __future__ import annotations

import random

import pandas
import pytest

import lookalike as lk
import lookalike.spark as lks
from lookalike.spark._cluster import Cluster

TEXTS = ["a rose is a rose is a rose", "A rose is a rose is a rose!", "something else", None, "", "河 🙂 ß é"]


def test_fingerprints_are_those_of_one_process(frame_of):
    rows = [{"id": str(at), "text": text} for at, text in enumerate(TEXTS)]
    found = {row["id"]: row["fingerprint"] for row in lks.fingerprint(frame_of(rows), id="id").collect()}
    expected = [code if code is None or code < 1 << 63 else code - (1 << 64) for code in lk.simhash(TEXTS).to_pylist()]
    assert [found[str(at)] for at in range(len(TEXTS))] == expected
    other = lks.fingerprint(frame_of(rows), id="id", scheme=lk.Scheme(shingle="words:1"))
    assert {row["id"]: row["fingerprint"] for row in other.collect()} != found


@pytest.mark.parametrize("shipped", [1_000_000, 0], ids=["queries shipped", "blocks"])
@pytest.mark.parametrize("distance", [0, 3, 16])
def test_joins_find_every_pair_within_the_distance(spark, shipped, distance):
    draw = random.Random(2)
    f = [draw.getrandbits(64) - (1 << 63) for _ in range(150)]
    # Near, far and equal numbers, and negative numbers on both sides.
    q = []
    for at in range(120):
        code = f[at]
        for bit in draw.sample(range(63), draw.randint(0, 5)):
            code ^= 1 << bit
        q.append(code)
    f += f[:5]
    frames = [
        spark.createDataFrame([*((f"{side}{at}", code) for at, code in enumerate(codes)), (f"{side}none", None)], "id string, fingerprint long")
        for side, codes in (("f", f), ("q", q))
    ]
    mask = (1 << 64) - 1
    expected = {
        (f"f{a}", f"q{b}", apart)
        for a, x in enumerate(f)
        for b, y in enumerate(q)
        if (apart := ((x ^ y) & mask).bit_count()) <= distance
    }
    found = [tuple(row) for row in lks.join(*frames, distance, shipped=shipped, partitions=3).collect()]
    assert len(expected) >= 10
    assert sorted(found) == sorted(expected)


def test_wrong_joins_say_what_is_wrong(spark):
    good = spark.createDataFrame([("a", 1)], "id string, fingerprint long")
    for call, error, told in [
        (lambda: lks.join(good, good, 17), ValueError, "from 0 to 16"),
        (lambda: lks.join(good, good, "3"), TypeError, "distance must be a whole number, not '3'"),
        (lambda: lks.join(good, ["a"]), TypeError, "Q must be a DataFrame of Spark, not list"),
        (lambda: lks.fingerprint(["a"], id="id"), TypeError, "data must be a DataFrame of Spark, not list"),
        (lambda: lks.join(good, good.drop("id")), ValueError, "Q must have the columns"),
        (lambda: lks.fingerprint(good, scheme=lk.Scheme(preset="one-topic")), ValueError, "have 64 bits"),
        (lambda: lks.register(spark, scheme=lk.Scheme(preset="one-topic")), ValueError, "have 64 bits"),
        (lambda: lks.fingerprint(good, scheme=lk.Scheme(sketch="simhash:32")), ValueError, "have 64 bits"),
        (lambda: lks.register(spark, scheme=lk.Scheme(sketch="minhash:128")), ValueError, "have 64 bits"),
        (lambda: lks.join(good.selectExpr("id", "'x' as fingerprint"), good), TypeError, "must be bigint, not string"),
    ]:
        with pytest.raises(error, match=told):
            call()


def test_functions_of_sql_give_what_the_package_gives(spark, frame_of):
    page = "<html><body><p>A rose is a rose is a rose, and that is all there is to be said about it.</p></body></html>"
    rows = [{"id": str(at), "text": text} for at, text in enumerate([*TEXTS, page])]
    frame_of(rows).createOrReplaceTempView("documents")
    assert "lookalike_simhash" in lks.register(spark)
    found = spark.sql(
        "select text, lookalike_simhash(text) s, lookalike_minhash(text) m, lookalike_extract(text) e, "
        "lookalike_resemblance(text, 'a rose is a rose is a rose') r from documents order by id"
    ).collect()
    texts = [row["text"] for row in rows]
    expected = [code if code is None or code < 1 << 63 else code - (1 << 64) for code in lk.simhash(texts).to_pylist()]
    assert [row["s"] for row in found] == expected
    assert [row["m"] for row in found] == lk.minhash(texts).to_pylist()
    assert found[-1]["e"] == lk.extract(page)
    assert found[0]["r"] == lk.resemblance(TEXTS[0], TEXTS[0]) == 1.0
    assert found[3]["r"] is None
    # The literal null has no type, which made the query fail.
    nulls = "select lookalike_simhash(null) s, lookalike_minhash(null) m, lookalike_extract(null) e, lookalike_resemblance('a', null) r"
    assert [tuple(row) for row in spark.sql(nulls).collect()] == [(None, None, None, None)]


@pytest.mark.parametrize("side", [0, 1], ids=["F", "Q"])
def test_pairs_of_other_fingerprints_were_those_of_the_first_call(spark, tmp_path, side):
    def frame(prefix: str, codes: list[int]):
        return spark.createDataFrame([(f"{prefix}{at}", code) for at, code in enumerate(codes)], "id string, fingerprint long")

    days = [frame("f", [1, 2, 300]), frame("q", [1, 700])]
    first = sorted(lks.join(*days, 1, work_dir=tmp_path / "work").collect())
    assert len(first) == 1
    assert sorted(lks.join(*days, 1, work_dir=tmp_path / "work").collect()) == first
    days[side] = frame("x", [301, 701])
    with pytest.raises(lk.LookalikeError, match="made of other rows"):
        lks.join(*days, 1, work_dir=tmp_path / "work")


def test_a_number_of_shuffle_partitions_that_spark_chooses_was_no_number():
    class Session:
        conf = {"spark.sql.shuffle.partitions": "auto"}

    cluster = Cluster.__new__(Cluster)
    cluster.session = Session()
    assert cluster.shuffle_partitions() == 200
    Session.conf = {"spark.sql.shuffle.partitions": "17"}
    assert cluster.shuffle_partitions() == 17


def test_a_column_of_pandas_2_was_read_value_by_value(spark):
    texts = [f"a rose is a rose {number}" for number in range(20)]
    frame = spark.createDataFrame(list(enumerate(texts)), "id long, text string")
    prints = lks.fingerprint(frame, id="id").toPandas().sort_values("id", key=lambda ids: ids.astype(int))["fingerprint"]
    assert not hasattr(prints, "__arrow_c_stream__") and (prints < 0).any()
    assert len(lk.join(prints, lk.simhash(texts), 0)) == 20
    # In pandas, a missing text is NaN.
    assert lk.simhash(pandas.Series(["a rose", None, float("nan")], dtype=object)).to_pylist()[1:] == [None, None]
