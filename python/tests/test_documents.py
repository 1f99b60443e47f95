"""Rows of data as documents: the same values in memory, in saved results, and when the command reads them from a file."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import uuid
import warnings

import pytest

import lookalike as lk

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
datasets = pytest.importorskip("datasets")

ROSE = "a rose is a rose is a rose in the garden of the house"


def lines(path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def saved(result, folder) -> list[dict[str, object]]:
    folder = result.save(folder, overwrite=True)
    return [*lines(folder / "kept.jsonl"), *lines(folder / "removed.jsonl")]


def saved_survivors(result, folder) -> list[str]:
    return [cluster["survivor"] for cluster in lines(result.save(folder, overwrite=True) / "clusters.jsonl")]


# Values in columns.


def frames_with_arrays():
    cells = [np.arange(1500.0), np.arange(3.0)]
    yield pd.DataFrame({"text": ["a b c", "x y z"], "numbers": cells})
    yield [{"text": "a b c", "numbers": cells[0]}, {"text": "x y z", "numbers": cells[1]}]
    yield datasets.Dataset.from_dict({"text": ["a b c", "x y z"], "numbers": [cell.tolist() for cell in cells]}).with_format("numpy")


@pytest.mark.parametrize("frame", [*frames_with_arrays()], ids=["pandas", "list", "datasets"])
def test_arrays_in_columns_were_saved_as_the_dots_that_numpy_prints(frame, tmp_path):
    rows = saved(lk.dedup(frame), tmp_path / "out")
    assert {row["text"]: len(row["numbers"]) for row in rows} == {"a b c": 1500, "x y z": 3}
    assert rows[0]["numbers"][-1] in (1499, 2)


def test_values_of_other_types_were_saved_as_what_python_prints():
    from lookalike._json import json_text

    values = {
        "number": np.int64(5),
        "truth": np.bool_(True),
        "float": np.float32(0.5),
        "time": np.datetime64("2024-01-01T10:00:00.5", "ns"),
        "decimal": decimal.Decimal("1.50"),
        "bytes": b"a\xff",
        "missing": [pd.NaT, pd.NA, float("nan"), np.array([float("inf")])],
        "uuid": uuid.UUID(int=1),
        "span": [datetime.timedelta(days=1, seconds=61.5), -datetime.timedelta(seconds=1), datetime.timedelta(0)],
        "clock": datetime.time(10, 30),
    }
    assert json.loads(json_text(values)) == {
        "number": 5,
        "truth": True,
        "float": 0.5,
        "time": "2024-01-01T10:00:00.5Z",
        "decimal": "1.50",
        "bytes": "a\ufffd",
        "missing": [None, None, None, [None]],
        "uuid": "00000000-0000-0000-0000-000000000001",
        "span": ["PT24H1M1.5S", "-PT1S", "PT0S"],
        "clock": "10:30:00",
    }


def test_a_value_without_a_form_was_saved_as_its_address(tmp_path):
    result = lk.dedup([{"text": "x y z", "thing": None}, {"text": "a b c", "thing": object()}])
    with pytest.raises(lk.BadInput, match="row 1 cannot be written as a JSON line: values of the type object") as caught:
        result.save(tmp_path / "out")
    assert caught.value.row == 1


#: Columns of ids, and the ids that the command gives: as documented, times are ISO 8601 in UTC and decimals are strings.
IDS = {
    "whole floats": (pa.array([1.0, 2.5]), ["1", "2.5"]),
    "timestamps": (pa.array([0, 1_500_000], pa.timestamp("us")), ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.5Z"]),
    "zoned": (pa.array([0, 1], pa.timestamp("s", "Asia/Tokyo")), ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"]),
    "dates": (pa.array([0, 1], pa.date32()), ["1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"]),
    "dates of milliseconds": (pa.array([0, 86_400_000], pa.date64()), ["1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"]),
    "decimals": (pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00")]), ["1.50", "2.00"]),
    "huge": (pa.array([decimal.Decimal(2**100), decimal.Decimal(2)], pa.decimal128(38)), [str(2**100), "2"]),
    # As DuckDB hands out its HUGEINT: with more digits than the type declares.
    "39 digits": (
        pa.Array.from_buffers(pa.decimal128(38), 2, [None, pa.py_buffer(b"".join((2**127 - at).to_bytes(16, "little") for at in (7, 1)))]),
        [str(2**127 - 7), str(2**127 - 1)],
    ),
    "bytes": (pa.array([b"a", b"b"]), ["a", "b"]),
    "half floats": (pa.array(np.array([0.5, 2.0], np.float16)), ["0.5", "2"]),
    "times": (pa.array([0, 37_800_000_000], pa.time64("us")), ["00:00:00", "10:30:00"]),
    "categories": (pa.array([7, 8]).dictionary_encode(), ["7", "8"]),
}


@pytest.mark.parametrize("kind", IDS)
def test_a_table_had_other_ids_than_its_file(kind, tmp_path):
    ids, expected = IDS[kind]
    table = pa.table({"id": ids, "text": [ROSE, ROSE]})
    of_rows = lk.dedup(table, id="id")
    assert pa.table(of_rows.annotated())["survivor_id"].to_pylist() == [expected[0]] * 2
    assert of_rows.clusters["id"].to_pylist() == [expected[1]]
    assert saved_survivors(of_rows, tmp_path / "out") == [expected[0]]
    if kind != "half floats":
        pq.write_table(table, tmp_path / "t.parquet")
        assert lk.dedup(tmp_path / "t.parquet", id="id").clusters.to_pylist() == of_rows.clusters.to_pylist()
    # Python values give the same ids, except floats, which are written as in JSON.
    if "float" not in kind and kind != "categories":
        rows = [{"id": value, "text": ROSE} for value in ids.to_pylist()]
        assert lk.dedup(rows, id="id").clusters.to_pylist() == of_rows.clusters.to_pylist()


@pytest.mark.parametrize("made", [lambda ids: pd.DataFrame({"id": ids, "text": [ROSE, ROSE]}), lambda ids: [{"id": id, "text": ROSE} for id in ids]])
@pytest.mark.parametrize("ids", [[uuid.UUID(int=7), uuid.UUID(int=8)], [2**70, 2**70 + 1]])
def test_ids_that_arrow_has_no_number_for_were_refused_in_frames(made, ids, tmp_path):
    result = lk.dedup(made(ids), id="id")
    assert result.clusters.to_pylist()[0]["survivor"] == str(ids[0])
    assert saved_survivors(result, tmp_path / "out") == [str(ids[0])]


def test_a_time_out_of_range_counted_as_missing():
    table = pa.table({"text": [ROSE, ROSE], "day": pa.array([0, 2**31 - 1], pa.date32())})
    with pytest.raises(lk.BadInput, match='row 1: .*time out of range.*column "day"') as caught:
        lk.dedup(table, keep="max:day")
    assert caught.value.row == 1


def test_a_time_out_of_range_was_saved_as_null_in_silence(tmp_path):
    table = pa.table({"text": [ROSE, "else"], "day": pa.array([0, 2**31 - 1], pa.date32())})
    with pytest.warns(lk.LookalikeWarning, match="rows with a value that became null, .*: 1$"):
        lk.dedup(table).save(tmp_path / "out")


def test_a_second_after_the_day_was_a_time_of_the_next_day():
    clock = pa.table({"clock": pa.array([0, 86_400], pa.int32()).view(pa.time32("s"))})
    assert lk.Table(clock)["clock"][0] == datetime.time(0)
    with pytest.raises(OverflowError, match="no time of day"):
        lk.Table(clock)["clock"][1]


def test_integers_of_128_bits_in_polars_were_broken_data():
    frame = pl.DataFrame({"id": [2**70, 2**70 + 1], "text": [ROSE, ROSE]})
    assert lk.dedup(frame, id="id").clusters["survivor"].to_pylist() == [str(2**70)]


def test_periods_of_pandas_were_called_by_their_numbers(tmp_path):
    frame = pd.DataFrame({"id": pd.period_range("2024-01", periods=2, freq="M"), "text": [ROSE, ROSE]})
    result = lk.dedup(frame, id="id")
    assert result.clusters["survivor"].to_pylist() == ["2024-01"] == saved_survivors(result, tmp_path / "out")


def test_the_last_digit_of_the_hashes_of_duckdb_was_lost():
    relation = duckdb.sql(f"select * from (values ({2**127 - 1}::hugeint, 'a b c'), ({2 * 10**37}::hugeint, 'a b c')) rows(k, text)")
    assert [row["k"] for row in lk.Table(relation).to_pylist()] == [decimal.Decimal(2**127 - 1), decimal.Decimal(2 * 10**37)]
    assert lk.dedup(relation, text="text", keep="max:k").kept["k"].to_pylist() == [decimal.Decimal(2**127 - 1)]


def test_sums_of_duckdb_could_not_choose_survivors():
    relation = duckdb.sql("select text, sum(n) as score from (values ('a b c', 1), ('a b c ', 5)) rows(text, n) group by text")
    assert lk.dedup(relation, text="text", keep="max:score", threshold=0.5).kept["score"].to_pylist() == [decimal.Decimal(5)]


def test_truths_were_ids_in_memory_and_lost_records_in_files():
    for rows in ([{"id": True, "text": "x"}], pa.table({"id": [True], "text": ["x"]})):
        with pytest.raises(lk.BadInput, match="row 0: the id field holds a boolean"):
            lk.dedup(rows, id="id")


@pytest.mark.parametrize(
    "made",
    [
        lambda ids, texts: [{"id": id, "text": text} for id, text in zip(ids, texts)],
        lambda ids, texts: pa.table({"id": ids, "text": texts}),
        lambda ids, texts: pd.DataFrame({"id": ids, "text": texts}),
        lambda ids, texts: pl.DataFrame({"id": ids, "text": texts}),
    ],
)
def test_a_row_without_an_id_took_that_of_another_document(made):
    data = made(["1", None, "0"], [ROSE, ROSE, ROSE])
    calls = [
        lambda: lk.dedup(data, id="id"),
        lambda: lk.dedup([{"id": "x", "text": "y"}], id="id", against=data),
        lambda: lk.pairs(data, id="id", unit="paragraphs"),
        lambda: lk.overlap(data, id="id"),
    ]
    for call in calls:
        with pytest.raises(lk.BadInput, match="row 1: the id is missing") as caught:
            call()
        assert caught.value.row == 1


def test_repeated_column_names_lost_a_column_in_silence(tmp_path):
    frame = pd.DataFrame([["a b c", 1, 2], ["x y z", 3, 4]], columns=["text", "n", "n"])
    with pytest.raises(ValueError, match="several columns are called 'n'"):
        lk.dedup(frame).save(tmp_path / "out")
    with pytest.raises(ValueError, match="several columns are called 'text'"):
        lk.dedup(pd.DataFrame([["a", "b"]], columns=["text", "text"]))


# HTML.

PAGES = [
    {"id": "a", "html": f"<html><body><p>{ROSE}</p></body></html>"},
    {"id": "b", "html": f"<div><b>{ROSE[:6]}</b>{ROSE[6:]}</div>"},
]


@pytest.mark.parametrize("made", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_a_column_of_html_that_was_named_was_compared_as_markup(made, tmp_path):
    data = made(PAGES)
    for options in ({}, {"text": "html"}, {"text": ["html"]}, {"text": "html", "html": "visible"}):
        result = lk.dedup(data, id="id", **options)
        assert result.counts["kept"] == 1, options
        assert len(saved_survivors(result, tmp_path / "out")) == 1
        assert result.explain("a", "b").resemblance == 1
    (row,) = lk.overlap(data, id="id", text="html", chunk="doc").copies.to_pylist()
    assert row["copies"] == ["b"]


def test_texts_were_compared_with_the_markup_of_earlier_pages(tmp_path):
    result = lk.dedup([{"id": "t", "text": ROSE}], id="id", against=PAGES)
    assert result.clusters.to_pylist()[0]["id"] == "t"
    assert result.explain("t", result.clusters["survivor"][0]).resemblance == 1
    assert saved_survivors(result, tmp_path / "out") == result.clusters["survivor"].to_pylist()
    named = lk.dedup([{"id": "t", "body": ROSE}], id="id", text="body", against=PAGES)
    with pytest.raises(lk.LookalikeError, match="HTML"):
        named.save(tmp_path / "other")


# Columns whose names have dots.

DOTTED = [
    {"id": "a", "text": ROSE, "meta.date": "2020-01-01", "meta": {"date": "2024-01-01"}},
    {"id": "b", "text": ROSE, "meta.date": "2024-01-01", "meta": {"date": "2020-01-01"}},
]


@pytest.mark.parametrize("rows", [DOTTED, [{key: row[key] for key in ("id", "text", "meta.date")} for row in DOTTED]])
@pytest.mark.parametrize("name", ["meta.date", "meta\\.date"])
def test_saved_results_chose_survivors_by_another_field(rows, name, tmp_path):
    for data in (rows, pl.DataFrame([{k: v for k, v in row.items() if k != "meta"} for row in rows])):
        result = lk.dedup(data, id="id", keep=f"newest:{name},longest")
        assert result.clusters["survivor"].to_pylist() == ["b"] == saved_survivors(result, tmp_path / "out")
        assert "b" in str(result.report())


@pytest.mark.parametrize("option", ["within", "across"])
@pytest.mark.parametrize("name", ["m.s", "site"])
def test_saved_results_had_other_categories(option, name, tmp_path):
    rows = [{"id": id, "text": ROSE, name: value} for id, value in (("a", "x"), ("b", "y"), ("c", "y"))]
    said = {option: "\\site" if name == "site" else name}
    result = lk.dedup(rows, id="id", **said)
    clusters = lines(result.save(tmp_path / "out") / "clusters.jsonl")
    # `b` and `c` have the same category. Across categories both resemble `a`, which is kept.
    assert result.counts["kept"] == {"within": 2, "across": 1}[option]
    assert sum(len(cluster["members"]) for cluster in clusters) == len(result.clusters)


def test_servers_in_a_column_with_a_dot_were_not_found():
    rows = [{"id": id, "text": "x y\nz", "m.s": id} for id in "ab"]
    assert len(lk.overlap(rows, id="id", server="field:m.s", chunk="lines:1").servers) == 1


# Other fields that the engine reads.


def test_links_and_sites_of_rows_could_not_be_compared(tmp_path):
    def page(id, host, text, links):
        return {"id": id, "url": f"https://{host}/{id}", "text": text, "out_links": links}

    links = [f"https://x.org/{at}" for at in range(9)]
    rows = [page("a", "a.org", "one two three", links), page("b", "a.org", "four five six", links), page("c", "b.org", "seven", ["https://y.org"])]
    for data in (rows, pl.DataFrame(rows), pd.DataFrame(rows), datasets.Dataset.from_list(rows)):
        result = lk.dedup(data, id="id", fields="out-links:5", threshold=0.6)
        assert result.clusters["id"].to_pylist() == ["b"]
        assert result.explain("a", "b").found
    assert saved_survivors(result, tmp_path / "out") == ["a"]
    with pytest.raises(ValueError, match="no column 'anchors', which fields asks for"):
        lk.dedup(rows, fields="anchors:2")


@pytest.mark.parametrize("with_url", [True, False])
def test_rows_had_no_sites_for_distances(with_url):
    def text(at):
        return " ".join("new" if number == 7 * at + 5 else f"word{number}" for number in range(3000))

    def near(hosts, **options):
        urls = [f"https://{host}/{at}" for at, host in enumerate(hosts)]
        rows = [{"id": str(at) if with_url else url, "text": text(at), **({"url": url} if with_url else {})} for at, url in enumerate(urls)]
        return lk.dedup(rows, id="id", method="henzinger", distance=0, threshold=0.9, **options).counts["near"]

    # The fingerprints differ, which does not matter between sites: super-shingles alone decide.
    assert near(["a.org", "b.org"], distance_for="site") == 1
    assert near(["a.org", "a.org"], distance_for="site") == near(["a.org", "b.org"]) == 0


def test_sites_of_ids_were_not_those_of_the_command(tmp_path):
    rows = [{"id": f"https://{host}/{at}", "text": ROSE} for at, host in enumerate(["a.org", "a.org", "b.org"])]
    result = lk.dedup(rows, id="id", within="site")
    assert result.counts["kept"] == 2
    assert len(saved_survivors(result, tmp_path / "out")) == 1
    # One URL is missing.
    rows = [{**row, "url": None if at == 0 else row["id"]} for at, row in enumerate(rows)]
    assert lk.dedup(pl.DataFrame(rows), id="id", within="site").counts["kept"] == 2


# Data given as `against`.

EARLIER = {
    "list": lambda: [ROSE],
    "dicts": lambda: [{"text": ROSE}],
    "another column": lambda: pd.DataFrame({"body": [ROSE]}),
    "pandas": lambda: pd.DataFrame({"text": [ROSE], "n": [1]}),
    "polars": lambda: pl.DataFrame({"text": [ROSE]}),
    "pyarrow": lambda: pa.table({"text": [ROSE]}),
    "datasets": lambda: datasets.Dataset.from_dict({"text": [ROSE]}),
    "formatted": lambda: datasets.Dataset.from_dict({"body": [ROSE]}).with_format("pandas"),
    "Series of pandas": lambda: pd.Series([ROSE]),
    "Series of polars": lambda: pl.Series([ROSE]),
    "Array": lambda: pa.array([ROSE]),
    "result": lambda: lk.dedup([{"text": ROSE}]),
}


@pytest.mark.parametrize("earlier", EARLIER)
@pytest.mark.parametrize("made", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist, datasets.Dataset.from_list])
def test_earlier_data_without_the_columns_of_the_new_crashed(earlier, made, tmp_path):
    data = made([{"url": "u", "score": 1, "lang": "en", "text": ROSE}])
    for options in ({"id": "url", "keep": "max:score"}, {"id": "url"}, {}):
        result = lk.dedup(data, against=EARLIER[earlier](), **options)
        (cluster,) = result.clusters.to_pylist()
        assert cluster["survivor"] == "against-0"
        assert result.explain(cluster["id"], "against-0").resemblance == 1
        if options:
            assert saved_survivors(result, tmp_path / "out") == ["against-0"]
    assert len(lk.dedup(data, id="url", within="lang", against=EARLIER[earlier]()).kept) == 1


def test_the_result_of_files_was_no_data_to_compare_with(tmp_path):
    (tmp_path / "f.jsonl").write_text(json.dumps({"id": "old", "text": ROSE}) + "\n")
    result = lk.dedup([{"id": "new", "text": ROSE}], id="id", against=lk.dedup(tmp_path / "f.jsonl"))
    assert result.clusters["survivor"].to_pylist() == ["old"]


# Explanations.


def test_an_explanation_was_one_of_other_settings(tmp_path):
    rows = [{"key": "a", "text": "title", "body": ROSE}, {"key": "b", "text": "another", "body": f"{ROSE} now"}]
    path = tmp_path / "f.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.csv").write_text(f"a;{ROSE}\nb;{ROSE} now\n")
    csv = {"no_header": True, "delimiter": ";", "id": "1", "text": "2", "format": "csv"}
    options = {"text": "body", "id": "key", "threshold": 0.7}
    for result in (lk.dedup(path, **options), lk.dedup(rows, **options), lk.dedup(tmp_path / "t.csv", threshold=0.7, **csv)):
        (cluster,) = result.clusters.to_pylist()
        told = result.explain(cluster["id"], cluster["survivor"])
        assert told.found and told.resemblance == cluster["similarity"]
        with pytest.raises(KeyError, match="no document has the id 'x'"):
            result.explain("x", "a")


def test_an_explanation_left_out_the_rule_for_short_texts():
    rows = ["one two three", "one two three four"]
    result = lk.dedup(rows, threshold=0.5, short="49:1")
    (cluster,) = result.clusters.to_pylist()
    assert result.explain("0", "1").resemblance == cluster["similarity"] > 0.5


def test_a_text_that_was_too_long_was_explained_as_if_it_was_read():
    result = lk.dedup([ROSE, f"{ROSE} now"], max_document=20)
    assert len(result.kept) == 2
    with pytest.raises(lk.LookalikeError, match="0: it is longer than 20 B, and was not read"):
        result.explain("0", "1")


def test_documents_in_clusters_could_not_be_explained(tmp_path):
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text(json.dumps({"id": "o", "text": ROSE}) + "\n")
    rows = [{"id": "a", "text": f"{ROSE} now"}, {"id": "a", "text": "something else entirely"}]
    new.write_text("not json\n" + "".join(json.dumps(row) + "\n" for row in rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_files = lk.dedup(new, against=old, threshold=0.7)
    for result in (of_files, lk.dedup(rows, id="id", against=[{"id": "o", "text": ROSE}], threshold=0.7)):
        assert result.clusters["survivor"].to_pylist() == ["o"]
        assert result.explain("a", "o").resemblance == result.clusters["similarity"][0]
        assert result.explain("a", "a#2").resemblance == 0
    new.write_text("".join(json.dumps(row) + "\n" for row in [{"id": "z", "text": "z"}, *rows]))
    with pytest.raises(lk.LookalikeError, match="the inputs have changed since"):
        of_files.explain("a", "o")


def test_relative_inputs_were_looked_for_in_another_folder(tmp_path, monkeypatch):
    (tmp_path / "f.jsonl").write_text("".join(json.dumps({"id": id, "text": ROSE}) + "\n" for id in "ab"))
    monkeypatch.chdir(tmp_path)
    result = lk.dedup("f.jsonl")
    assert result.explain("a", "b").resemblance == 1
    os.chdir(tmp_path.parent)
    for call in (lambda: result.explain("a", "b"), lambda: result.at(0.5)):
        with pytest.raises(lk.LookalikeError, match="relative to .*: change back to it"):
            call()
    assert len(lk.dedup(tmp_path / "f.jsonl").at(0.5).kept) == 1


# Types of the results.


def typed_table() -> pa.Table:
    return pa.table(
        {
            "text": [ROSE, ROSE, "else"],
            "date": pa.array([datetime.date(2024, 1, 2)] * 3),
            "time": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 6)] * 3, pa.timestamp("ns")),
            "zoned": pa.array([datetime.datetime(2024, 1, 2)] * 3, pa.timestamp("us", "Asia/Tokyo")),
            "offset": pa.array([datetime.datetime(2024, 1, 2)] * 3, pa.timestamp("us", "+02:00")),
            "clock": pa.array([datetime.time(10, 30)] * 3),
            "span": pa.array([datetime.timedelta(hours=1)] * 3),
            "price": pa.array([decimal.Decimal("1.50")] * 3),
            "map": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
            "fixed": pa.array([b"ab"] * 3, pa.binary(2)),
        }
    )


def test_rows_with_dates_and_decimals_could_not_be_read(tmp_path):
    table = typed_table()
    expected = table.to_pylist()
    assert lk.Table(table).to_pylist() == expected
    pq.write_table(table.drop(["span"]), tmp_path / "t.parquet")
    kept = list(lk.dedup(tmp_path / "t.parquet").kept)
    assert [{**row, "span": datetime.timedelta(hours=1)} for row in kept] == [expected[0], expected[2]]
    assert kept[0]["date"] == datetime.date(2024, 1, 2) and kept[0]["price"] == decimal.Decimal("1.50")


def typed_forms():
    table = typed_table()
    yield lk.Table(table)
    yield duckdb.from_arrow(table.drop(["span", "fixed"]))
    dataset = datasets.Dataset(table.select(["text", "date", "time"]))
    yield from (dataset.with_format(kind) for kind in (None, "arrow", "pandas", "polars", "numpy"))


@pytest.mark.parametrize("data", [*typed_forms()], ids=["table", "duckdb", "plain", "arrow", "pandas", "polars", "numpy"])
def test_results_of_typed_rows_could_not_be_shown_or_saved(data, tmp_path):
    result = lk.dedup(data)
    assert result.counts["kept"] == 2
    assert "rose" in result._repr_html_()
    assert "<html" in str(result.report())
    survivor, gone = result.clusters["survivor"][0], result.clusters["id"][0]
    assert result.explain(survivor, gone).resemblance == 1
    rows = saved(result, tmp_path / "out")
    assert [row["date"] for row in rows] == ["2024-01-02T00:00:00Z"] * 3
    by_function = lk.dedup(data, text=lambda row: f"{row['text']} {row['date'].year}")
    assert by_function.counts["kept"] == 2
    assert len(saved(by_function, tmp_path / "out")) == 3


def test_rows_with_an_interval_could_not_be_saved(tmp_path):
    relation = duckdb.sql("select 'a b c' as text, interval '1 day 2 seconds' as span")
    rows = saved(lk.dedup(relation, text="text"), tmp_path / "out")
    assert [row["span"] for row in rows] == ["P0M1DT2S"]


@pytest.mark.parametrize("texts", [[ROSE, ROSE, "else"], ["one", "two"], []], ids=["copies", "none", "empty"])
def test_annotations_had_types_that_depend_on_the_data(texts):
    frame = pd.DataFrame({"text": pd.Series(texts, dtype="str")}).set_axis(range(10, 10 + len(texts)))
    found = lk.dedup(frame).annotated()
    string = pd.Series(["a"]).dtype
    kinds = {"cluster_id": "UInt64", "cluster_size": "uint64", "survivor_id": string, "similarity": "float64", "reason": string}
    kinds |= {"representative_id": string, "is_duplicate": "bool"}
    assert {name: found[name].dtype for name in kinds} == kinds
    assert list(found[~found["is_duplicate"]].columns) == list(found.columns)
    dataset = datasets.Dataset(pa.table({"text": pa.array(texts, pa.string())}))
    features = lk.dedup(dataset).annotated().features
    kinds = {"cluster_id": "uint64", "cluster_size": "uint64", "similarity": "float64", "is_duplicate": "bool"}
    assert {name: features[name].dtype for name in kinds} == kinds
    assert {features[name].dtype for name in ("survivor_id", "reason")} <= {"string", "large_string"}


# Smaller cases.


def test_rows_that_are_missing_or_texts_among_dicts_broke_saving(tmp_path):
    result = lk.dedup([{"text": ROSE, "n": 1}, None, ROSE])
    assert result.mask.to_pylist() == [True, True, False]
    assert [row["text"] for row in saved(result, tmp_path / "out")] == [ROSE, None, ROSE]


def test_rows_were_saved_among_other_files(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    result = lk.dedup([ROSE, ROSE])
    with pytest.raises(FileExistsError, match="there is something in it"):
        result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (result.save(tmp_path, overwrite=True) / "run.json").exists()


def test_without_servers_their_table_was_missing():
    servers = lk.overlap(["a\nb", "a\nc"], chunk="lines:1").servers
    assert len(servers) == 0 and "containment_a" in servers.column_names


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: lk.dedup(["x"], keep=["longest"]), TypeError, "keep must be a rule"),
        (lambda: lk.dedup(pd.DataFrame({"id": ["x"]}), text=[], id="id"), ValueError, "text names no column"),
        (lambda: lk.dedup(["x"], text="body"), ValueError, "text names the column 'body', but the data are texts"),
        (lambda: lk.dedup(["x"], help=True), TypeError, r"help is no option here: use help\(\)"),
    ],
)
def test_slips_crashed_or_did_something_else(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_a_rule_of_none_is_the_default():
    assert len(lk.dedup([ROSE, ROSE], keep=None).kept) == 1


def test_columns_could_not_be_named_by_numbers():
    frame = pd.DataFrame([["a", ROSE], ["b", ROSE]])
    assert lk.dedup(frame, id=0, text=1).clusters["id"].to_pylist() == ["b"]


def test_results_of_files_warned_that_nobody_closed_them(tmp_path):
    (tmp_path / "f.jsonl").write_text(json.dumps({"id": "a", "text": ROSE}) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for job in (lk.dedup, lk.overlap):
            result = job(tmp_path / "f.jsonl", tmp=tmp_path)
            assert len(list(tmp_path.iterdir())) == 2
            del result
            assert [path.name for path in tmp_path.iterdir()] == ["f.jsonl"]


def test_pairs_of_parquet_had_another_column(tmp_path):
    pq.write_table(pa.table({"id": ["a", "b"], "text": [ROSE, ROSE]}), tmp_path / "t.parquet")
    pairs = lk.pairs(tmp_path / "t.parquet")
    assert pairs.column_names == ["a", "b", "similarity", "against"]
    assert pairs["a"].type == "large_string"


def test_datasets_and_files_of_pyarrow_were_no_data(tmp_path):
    import pyarrow.dataset

    pq.write_table(pa.table({"text": [ROSE, ROSE, "else"]}), tmp_path / "t.parquet")
    for data in (pyarrow.dataset.dataset(tmp_path / "t.parquet"), pq.ParquetFile(tmp_path / "t.parquet")):
        assert lk.dedup(data).kept.num_rows == 2


TITLED = [{"title": "News"}, {"title": "News", "text": "The council met on Monday"}, {"title": "News", "text": "Ferries stop at noon", "score": 7}]


def test_columns_of_dicts_were_those_of_the_first(command_clusters):
    # By the title, which was compared before the fix, all three are copies.
    assert lk.dedup(TITLED).kept == TITLED
    assert command_clusters([{"id": str(at), **row} for at, row in enumerate(TITLED)], "--id=id") == {}
    with pytest.raises(ValueError, match="columns are title, text, score"):
        lk.dedup(TITLED, text="body")


def test_a_column_that_the_first_dict_lacks_was_none():
    rows = [{"text": ROSE}, {"text": ROSE, "score": 2, "day": "x"}, {"text": ROSE, "score": 9, "day": "x"}]
    assert lk.dedup(rows, keep="max:score").kept == [rows[2]]
    assert lk.dedup(rows, within="day", keep="max:score").kept == [rows[0], rows[2]]
    named = [{"text": ROSE}, {"text": ROSE, "id": "b"}]
    with pytest.raises(lk.BadInput, match="row 0: the id is missing"):
        lk.dedup(named, id="id")


def test_labels_in_memory_were_told_by_the_name_of_a_file():
    with pytest.raises((lk.LookalikeError, ValueError), match="labels") as refused:
        lk.evaluate.labels([{"text": ROSE}, {"text": "b"}], [{"a": "0", "b": "1", "label": "perhaps"}])
    assert "lookalike-" not in str(refused.value) and "/" not in str(refused.value).split(":")[0]


MIXED = [
    {"id": "a", "text": None, "html": f"<p>{ROSE}</p>"},
    {"id": "b", "text": ROSE, "html": "<p>another page</p>"},
    {"id": "c", "text": "something else", "html": None},
    {"id": "d", "text": None, "html": None},
]


@pytest.mark.parametrize("made", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist, datasets.Dataset.from_list])
def test_rows_without_a_text_lost_their_page(made, command_clusters, tmp_path):
    result = lk.dedup(made(MIXED), id="id")
    found = {row["id"]: (row["survivor"], row["similarity"], row["reason"]) for row in result.clusters.to_pylist()}
    assert found == command_clusters(MIXED, "--id=id") == {"b": ("a", 1.0, "exact")}
    assert saved_survivors(result, tmp_path / "saved") == ["a"]
    assert result.explain("a", "b").resemblance == 1.0
    # A named column is the only one used.
    assert len(lk.dedup(made(MIXED), id="id", text="text").clusters) == 0


def test_pages_of_dicts_that_lack_a_text_were_lost(command_clusters):
    rows = [{name: value for name, value in row.items() if value is not None} for row in MIXED]
    assert lk.dedup(rows, id="id").clusters["id"].to_pylist() == list(command_clusters(rows, "--id=id")) == ["b"]
    with pytest.raises(TypeError, match=r'texts must be strings, not int \(row 0\) \(column "html"\)'):
        lk.dedup([{"html": 5}, {"text": ROSE}])


def test_a_page_of_bytes_is_no_matter_where_every_row_has_a_text():
    rows = [{"text": ROSE, "html": b"<p>"}, {"text": ROSE, "html": None}]
    assert lk.dedup(pa.Table.from_pylist(rows)).mask.to_pylist() == lk.dedup(rows).mask.to_pylist()
    with pytest.raises(TypeError, match=r'texts must be strings, not binary \(column "html"\)'):
        lk.dedup(pa.Table.from_pylist([{**rows[0], "text": None}, rows[1]]))


def test_earlier_rows_were_compared_without_their_pages(tmp_path):
    new = [{"text": ROSE}, {"text": "something else"}]
    result = lk.dedup(new, against=MIXED[:1])
    assert result.kept == new[1:]
    assert saved_survivors(result, tmp_path / "saved") == ["against-0"]


def test_chunks_of_pages_without_a_text_were_not_counted(tmp_path):
    rows = [{"id": "a", "html": "<p>One. Two.</p>"}, {"id": "b", "text": "Two. Three."}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = lk.overlap(rows, id="id", chunk="sentences").pairs.to_pylist()
    assert found == lk.overlap(tmp_path / "rows.jsonl", chunk="sentences").pairs.to_pylist()
    assert [row["shared"] for row in found] == [1]


@pytest.mark.parametrize(
    "earlier",
    [
        [{"id": "o", "a.b": ROSE}],
        [{"id": "o", "text": ROSE}],
        [{"id": "o", "a": {"b": ROSE}}],
        [{"id": "o", "a": {"c": 1}, "text": ROSE}],
        pl.DataFrame({"id": ["o"], "a.b": [ROSE]}),
        pl.DataFrame({"id": ["o"], "a": [{"b": ROSE, "c": 1}]}),
    ],
    ids=["dicts", "other dicts", "dicts of dicts", "dicts beside texts", "frame", "frame of structs"],
)
def test_rows_had_no_texts_beside_files_whose_texts_are_inside_objects(earlier, tmp_path):
    (tmp_path / "f.jsonl").write_text(json.dumps({"id": "n", "a": {"b": ROSE}}) + "\n")
    result = lk.dedup(tmp_path / "f.jsonl", text="a.b", against=earlier)
    assert [(row["survivor"], row["id"]) for row in result.clusters.to_pylist()] == [("o", "n")]


@pytest.mark.parametrize("earlier", [[ROSE], [{"text": ROSE}], [{"a.b": ROSE}], pl.DataFrame({"a.b": [ROSE]})], ids=["texts", "others", "dicts", "frame"])
def test_rows_had_no_texts_beside_files_whose_field_has_a_dot(earlier, tmp_path):
    (tmp_path / "f.jsonl").write_text(json.dumps({"id": "n", "a.b": ROSE}) + "\n")
    assert lk.dedup(tmp_path / "f.jsonl", text=r"a\.b", against=earlier).clusters["survivor"].to_pylist() == ["against-0"]


def test_earlier_rows_were_named_after_a_temporary_file(tmp_path):
    (tmp_path / "f.jsonl").write_text(json.dumps({"m": {"id": "n"}, "text": ROSE}) + "\n")
    for ids, survivor in (({"m.id": "o"}, "o"), ({"m": {"id": "o"}}, "o"), ({}, "against-0")):
        result = lk.dedup(tmp_path / "f.jsonl", id="m.id", against=[{**ids, "text": ROSE}])
        assert [(row["survivor"], row["id"]) for row in result.clusters.to_pylist()] == [(survivor, "n")]


def test_new_rows_were_compared_with_no_text_of_files(tmp_path):
    file, other = tmp_path / "f.jsonl", tmp_path / "other.jsonl"
    file.write_text(json.dumps({"id": "o", "text": ROSE}) + "\n")
    other.write_text(json.dumps({"id": "n", "body": ROSE}) + "\n")
    rows = [{"id": "n", "body": ROSE}]
    lk.dedup(file).save(tmp_path / "earlier")
    told = "the only record does not have a value in the field body, .*: these are only compared with, and the first record has the fields id, text"
    for data, earlier in ((rows, file), (other, file), (other, tmp_path / "earlier")):
        with pytest.raises(ValueError, match=told):
            lk.dedup(data, id="id", text="body", against=earlier)
    with pytest.raises(ValueError, match="the first record has the fields body, id"):
        lk.dedup(rows, id="id", text=lambda row: row["body"], against=other)
    assert lk.dedup(rows, id="id", text=lambda row: row["body"], against=file).counts["exact"] == 1
    # A field of which all values are missing is there.
    file.write_text(json.dumps({"id": "o", "body": None}) + "\n")
    assert lk.dedup(rows, id="id", text="body", against=file).counts["kept"] == 1


@pytest.mark.parametrize("names", [["a", "b"], ["a, b", "c.d"]], ids=["plain", "marks"])
@pytest.mark.parametrize("made", [list, pl.DataFrame])
def test_several_columns_of_rows_were_compared_with_no_text_of_files(names, made, tmp_path):
    new, file = [dict(zip(names, [ROSE, "red"]), id="n")], tmp_path / "f.jsonl"
    file.write_text(json.dumps({**new[0], "id": "o"}) + "\n")
    result = lk.dedup(made(new), id="id", text=names, against=file)
    assert [(row["survivor"], row["id"]) for row in result.clusters.to_pylist()] == [("o", "n")]
    assert saved_survivors(result, tmp_path / "out") == ["o"]
    with pytest.raises(TypeError, match="texts must be strings, not int"):
        lk.dedup([{**new[0], names[1]: 5}], id="id", text=names, against=file)
    # A comma in the name of a column separates nothing.
    new = [{"id": at, "a,b": text, "a": "one", "b": "two"} for at, text in (("n", ROSE), ("m", "else"))]
    file.write_text(json.dumps({"id": "o", "a,b": ROSE}) + "\n")
    assert lk.dedup(made(new), id="id", text="a,b", against=file).clusters["id"].to_pylist() == ["n"]


def test_rows_had_nothing_to_do_with_files(tmp_path):
    new = [{"id": "a", "text": f"{ROSE}!", "lang": "en"}, {"id": "b", "text": "something else", "lang": "en"}]
    old = [{"id": "o", "text": ROSE, "lang": "en"}, {"id": "p", "text": "something else", "lang": "de"}]
    files = {}
    for name, rows in {"new": new, "old": old}.items():
        files[name] = tmp_path / f"{name}.jsonl"
        files[name].write_text("".join(json.dumps(row) + "\n" for row in rows))
    for options in ({}, {"within": "lang"}):
        expected = lk.dedup(new, id="id", against=old, **options).clusters.to_pylist()
        assert [row["survivor"] for row in expected] == (["o"] if options else ["o", "p"])
        for compared in (files["old"], os.fspath(files["old"]), [files["old"]], str(tmp_path / "o*.jsonl")):
            for made in (list, pd.DataFrame, pa.Table.from_pylist):
                result = lk.dedup(made(new), id="id", against=compared, **options)
                assert result.clusters.to_pylist() == expected
                assert type(result.kept) is type(made(new)) and len(result.kept) == 2 - len(expected)
        assert saved_survivors(result, tmp_path / "saved") == [row["survivor"] for row in expected]
        assert result.explain("a", "o").resemblance == 1.0
        assert result.at(1.0).counts["kept"] == len(result.kept)
        for compared in (old, pl.DataFrame(old), lk.dedup(old, id="id"), lk.dedup(files["old"]), iter(old)):
            result = lk.dedup(files["new"], against=compared, **options)
            assert result.clusters.to_pylist() == expected
        assert result.explain("a", "o").resemblance == 1.0
    # A list of texts has no columns, and the texts of files are found as the command finds them.
    texts = [row["text"] for row in new]
    assert lk.dedup(texts, against=files["old"]).clusters["survivor"].to_pylist() == ["o", "p"]
    assert lk.dedup(files["new"], against=[ROSE, "none"]).clusters["survivor"].to_pylist() == ["against-0"]
    with pytest.raises(lk.BadInput, match="nowhere") as missing:
        lk.dedup(files["new"], against=tmp_path / "nowhere.jsonl")
    assert missing.value.source == str(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize("call", [lk.dedup, lk.pairs, lk.overlap, lk.extract])
def test_errors_of_files_did_not_have_their_names(call, tmp_path):
    for name in (tmp_path / "nowhere.jsonl", tmp_path / "*.jsonl"):
        with pytest.raises(lk.BadInput) as missing:
            call(name)
        assert missing.value.source == str(name)


def test_a_collection_of_another_scheme_was_an_error_of_no_kind(tmp_path):
    rows = [{"id": "a", "text": ROSE}]
    lk.dedup(rows, id="id", into=tmp_path / "seen", shingle="words:2")
    for data in (rows, tmp_path / "rows.jsonl"):
        (tmp_path / "rows.jsonl").write_text(json.dumps(rows[0]) + "\n")
        with pytest.raises(lk.SchemeMismatch, match="words:2"):
            lk.dedup(data, id="id", against=tmp_path / "seen", shingle="words:3")


def test_a_text_beside_a_path_was_taken_for_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a rose is a rose")
    with pytest.raises(TypeError, match="both be texts, or both be paths"):
        lk.explain(path, "a rose is a rose")
    assert lk.explain("a rose is a rose", "a rose is a rose", in_=None).resemblance == 1


def test_options_that_false_leaves_out_were_refused(tmp_path):
    assert len(lk.dedup([ROSE, ROSE], strict=False, overwrite=False).kept) == 1
    assert len(lk.overlap(["a\nb", "a\nc"], chunk="lines:1", resume=False).pairs) == 1
    (tmp_path / "f.jsonl").write_text(json.dumps({"id": "a", "text": ROSE}) + "\n")
    assert lk.dedup(tmp_path / "f.jsonl", against=["x"], no_header=False).counts["kept"] == 1
    with pytest.raises(TypeError, match="strict is for files"):
        lk.dedup([ROSE], strict=True)


def test_what_names_no_column_was_not_iterable():
    for text in (1.5, pl.col("text")):
        with pytest.raises(TypeError, match="text must be a column, several, or a function of a row, not (float|Expr)"):
            lk.dedup([{"text": ROSE}], text=text)


def test_texts_that_are_all_missing_were_numbers_in_pandas():
    frame = pd.DataFrame({"title": [ROSE, f"{ROSE}!"], "body": [float("nan")] * 2})
    assert frame["body"].dtype.kind == "f"
    assert lk.dedup(frame, text=["title", "body"]).clusters["id"].to_pylist() == ["0"]
    assert lk.dedup(frame["title"], against=frame["body"]).counts["kept"] == 1
    with pytest.raises(lk.BadInput, match="none of the 2 records has a text"):
        lk.dedup(frame, text="body")


def test_objects_in_polars_were_saved_as_addresses_of_memory(tmp_path):
    values = [{"a": decimal.Decimal("1.5")}, None]
    frame = pl.DataFrame({"text": ["x", "y"], "value": pl.Series(values, dtype=pl.Object)})
    folder = lk.dedup(frame).save(tmp_path / "out")
    rows = [json.loads(line) for line in (folder / "kept.jsonl").read_text().splitlines()]
    assert [row["value"] for row in rows] == [{"a": "1.5"}, None]
    with pytest.raises(lk.BadInput, match="row 0 cannot be written as a JSON line: values of the type object have no form"):
        lk.dedup(frame.with_columns(pl.Series("value", [object(), None], dtype=pl.Object))).save(tmp_path / "no")


def test_a_document_with_the_id_of_an_earlier_one_could_not_be_explained(tmp_path):
    old = [{"id": "p", "text": "a b c d e f g h i j"}]
    new = [{"id": "p", "text": "a b c d e f g h i k x"}, {"id": "q", "text": "i k x l m"}]
    options = {"id": "id", "shingle": "words:2", "threshold": 0.5}
    for name, rows in (("old", old), ("new", new)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    files = [tmp_path / "new.jsonl", tmp_path / "old.jsonl"]
    for data, against in ((new, old), files, (new, files[1])):
        result = lk.dedup(data, against=against, **options)
        assert [(row["survivor"], row["id"], row["against"]) for row in result.clusters.to_pylist()] == [("p", "p", True)]
        # The pairs of words: 8 of 11 are in both, and 2 of 12.
        assert result.explain("p", "p").resemblance == 8 / 11
        assert result.explain("p", "q").resemblance == result.explain("q", "p").resemblance == 2 / 12
        # A survivor among the earlier documents is meant, whatever the order.
        other = lk.dedup([{"id": "p", "text": "z y x w v"}, {**new[0], "id": "r"}], against=old, **options)
        assert other.explain("p", "r").resemblance == other.explain("r", "p").resemblance == 8 / 11
        assert other.explain("p", "p").resemblance == 0
    lk.dedup(old, into=tmp_path / "seen", **options)
    result = lk.dedup(new, against=tmp_path / "seen", **options)
    assert result.explain("p", "q").resemblance == 2 / 12
    with pytest.raises(lk.LookalikeError, match="p is in a collection"):
        result.explain("p", "p")


def test_a_new_document_was_explained_in_place_of_an_earlier_one_of_its_id(tmp_path):
    old, new = [{"id": "p", "text": "a b c d"}], [{"id": "p", "text": "x y z"}, {"id": "q", "text": "a b c e"}]
    for name, rows in (("old", old), ("new", new)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    files = [tmp_path / "new.jsonl", tmp_path / "old.jsonl"]
    for data, against in ((new, old), files, (new, files[1])):
        result = lk.dedup(data, against=against, id="id", shingle="words:1", threshold=0.9)
        with pytest.warns(lk.LookalikeWarning, match="same id as one of p and q: new documents are explained; say against="):
            assert result.explain("p", "q").resemblance == 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Three of five words are in both.
            assert result.explain("p", "q", against="a").resemblance == 3 / 5
            assert result.explain("q", "p", against="b").resemblance == 3 / 5
            assert result.explain("p", "p").resemblance == 0
        with pytest.raises(KeyError, match="no document of against has the id 'q'"):
            result.explain("q", "p", against="a")
        with pytest.raises(ValueError, match="against must be"):
            result.explain("p", "q", against="old")
