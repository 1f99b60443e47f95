"""Data of each frame library, in each Arrow type for texts."""

from __future__ import annotations

import gc
import importlib
import json

import pytest
from conftest import pages

import lookalike as lk
from lookalike._frames import rows_of

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
datasets = pytest.importorskip("datasets")


def texts() -> list[str | None]:
    return [*pages(90), None, "", "Zürich 北京 🌍 a b c"]


FORMS = {
    "string": lambda values: pa.array(values, pa.string()),
    "large_string": lambda values: pa.array(values, pa.large_string()),
    "string_view": lambda values: pa.array(values, pa.string_view()),
    "dictionary": lambda values: pa.array(values, pa.string()).dictionary_encode(),
    "sliced": lambda values: pa.array(["x", "y", *values, "z"], pa.string())[2:-1],
    "sliced view": lambda values: pa.array(["x" * 20, *values, "z"], pa.string_view())[1:-1],
    "sliced dictionary": lambda values: pa.array(["x", *values]).dictionary_encode()[1:],
    "runs": lambda values: pc.run_end_encode(pa.array(values, pa.string())),
    "sliced runs": lambda values: pc.run_end_encode(pa.array(["x", "x", *values, "z"], pa.large_string()), pa.int64())[2:-1],
    "chunked": lambda values: pa.chunked_array([values[:30], [], values[30:]], pa.string()),
    "chunked of one": lambda values: pa.chunked_array([[value] for value in values], pa.large_string()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_texts_gives_the_same_sketches_and_decisions(form):
    values = texts()
    array = FORMS[form](values)
    assert lk.simhash(array).to_pylist() == lk.simhash(values).to_pylist()
    assert lk.features(array, threads=2).to_pylist() == lk.features(values).to_pylist()
    expected = lk.dedup(values).mask.to_pylist()
    result = lk.dedup(array)
    assert result.mask.to_pylist() == expected
    assert result.kept.to_pylist() == [value for value, kept in zip(values, expected) if kept]
    table = pa.table({"n": range(len(values)), "text": array})
    result = lk.dedup(table)
    assert result.mask.to_pylist() == expected
    assert result.kept.to_pylist() == [row for row, kept in zip(table.to_pylist(), expected) if kept]
    assert result.removed.num_rows == expected.count(False)
    assert result.kept.schema == table.schema


@pytest.mark.parametrize("form", FORMS)
def test_no_rows_and_no_texts_are_data_too(form):
    if form.startswith("sliced"):
        return
    empty = FORMS[form]([])
    assert lk.simhash(empty).to_pylist() == []
    assert lk.dedup(pa.table({"text": empty})).kept.num_rows == 0
    missing = FORMS[form]([None, None])
    assert lk.minhash(missing, 4).to_pylist() == [None, None]
    assert lk.dedup(pa.table({"text": pa.array([None, "x"])})).kept.num_rows == 2


def test_a_column_of_nulls_is_a_column_of_missing_texts():
    assert lk.simhash(pa.nulls(3)).to_pylist() == [None] * 3
    # As with files, an error is raised, because it is probably the wrong column.
    with pytest.raises(lk.BadInput, match="none of the 3 records has a text"):
        lk.dedup(pa.table({"text": pa.nulls(3)}))


FRAMES = {
    "pyarrow.Table": pa.table,
    "pyarrow.RecordBatch": pa.RecordBatch.from_pydict,
    "pyarrow.RecordBatchReader": lambda data: pa.table(data).to_reader(max_chunksize=7),
    "pandas": pd.DataFrame,
    "pandas with an index": lambda data: pd.DataFrame(data, index=[f"i{at}" for at in range(len(data["text"]))]),
    "pandas of objects": lambda data: pd.DataFrame(data).astype({"text": object}),
    "polars": pl.DataFrame,
    "polars lazy": lambda data: pl.DataFrame(data).lazy(),
    "datasets": datasets.Dataset.from_dict,
    "datasets reordered": lambda data: datasets.Dataset.from_dict({name: values[::-1] for name, values in data.items()}).select(
        range(len(data["text"]) - 1, -1, -1)
    ),
    "list": lambda data: [dict(zip(data, row)) for row in zip(*data.values())],
}


def data() -> dict[str, list[object]]:
    values = texts()
    count = len(values)
    return {
        "id": [f"d{at}" for at in range(count)],
        "text": values,
        "score": [at * 7 % 11 for at in range(count)],
        "weight": [at / 3 for at in range(count)],
        "language": [("en", "de")[at % 2] for at in range(count)],
    }


def ids(frame: object) -> list[str]:
    if isinstance(frame, list):
        return [row["id"] for row in frame]
    return list(pl.DataFrame(frame)["id"]) if hasattr(frame, "__arrow_c_stream__") else list(frame["id"])


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize(
    ("options", "words"),
    [({}, []), ({"keep": "max:score"}, ["--keep", "max:score"]), ({"keep": "min:weight", "within": "language"}, ["--keep", "min:weight", "--within", "language"])],
)
def test_every_library_gets_the_clusters_of_the_command_and_its_own_rows_back(library, options, words, command_clusters):
    values = data()
    rows = FRAMES["list"](values)
    expected = command_clusters(rows, *words)
    frame = FRAMES[library](values)
    result = lk.dedup(frame, id="id", **options)
    found = {row["id"]: (row["survivor"], row["similarity"], row["reason"]) for row in result.clusters.to_pylist()}
    assert found == expected and expected
    assert ids(result.kept) == [row["id"] for row in rows if row["id"] not in expected]
    assert ids(result.removed) == [row["id"] for row in rows if row["id"] in expected]
    if "lazy" not in library and "Reader" not in library:
        assert type(result.kept) is type(frame)
    assert len(result.annotated()) == len(rows)
    assert "rows" in str(result.annotated()) or len(result.annotated()) == len(rows)
    assert result._repr_html_().startswith("<div")


def test_a_dataset_that_was_shuffled_came_with_a_batch_for_each_row():
    shuffled = rows_of(datasets.Dataset.from_dict({"id": list(range(2_500)), "text": ["a"] * 2_500}).shuffle(seed=1))
    assert shuffled.arrow(["text"])["text"].num_chunks == 3
    table = pa.table(shuffled.table())
    assert table["id"].num_chunks == 3 and table["id"].to_pylist() == shuffled.data["id"][:]


def test_kept_rows_of_pandas_keep_index_and_types():
    frame = FRAMES["pandas with an index"](data())
    kept = lk.dedup(frame).kept
    pd.testing.assert_frame_equal(kept, frame.loc[kept.index])


def test_kept_rows_of_polars_are_those_of_its_own_filter():
    frame = pl.DataFrame(data())
    result = lk.dedup(frame)
    assert result.kept.equals(frame.filter(pl.Series(result.mask)))
    assert result.annotated().columns == [*frame.columns, *(pl.DataFrame(result._decisions.annotations).columns)]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_the_methods_themselves(library):
    frames = importlib.import_module(library)
    importlib.import_module(f"lookalike.{library}")
    frame = frames.DataFrame({"body": pages(50), "n": range(50)})
    result = lk.dedup(frame, text="body", threshold=0.6)
    assert 0 < len(result.kept) < 50
    assert frame.lookalike.dedup("body", threshold=0.6).equals(result.kept)
    assert frame.lookalike.annotated("body", threshold=0.6).equals(result.annotated())


def test_series_come_back_as_series():
    values = texts()
    assert isinstance(lk.dedup(pl.Series(values)).kept, pl.Series)
    kept = lk.dedup(pd.Series(values)).kept
    assert isinstance(kept, pd.Series) and kept.index.tolist() == [at for at, is_kept in enumerate(lk.dedup(values).mask.to_pylist()) if is_kept]


def test_a_shuffled_dataset_is_read_in_its_own_order():
    dataset = datasets.Dataset.from_dict(data()).shuffle(seed=3)
    result = lk.dedup(dataset, id="id")
    gone = {row["id"] for row in result.clusters.to_pylist()}
    assert list(result.kept["id"]) == [name for name in dataset["id"] if name not in gone]


def test_a_dataset_is_read_without_its_transform():
    dataset = datasets.Dataset.from_dict({"raw": ["a rose is a rose", "a rose is a rose", "something else"]})
    upper = dataset.with_transform(lambda batch: {"text": [text.upper() for text in batch["raw"]]})
    with pytest.raises(ValueError, match="the columns are raw"):
        lk.dedup(upper, text="text")
    # The rows that come back keep it.
    assert lk.dedup(upper, text="raw").kept[:]["text"] == ["A ROSE IS A ROSE", "SOMETHING ELSE"]


def test_a_relation_of_duckdb_goes_in_and_arrow_comes_out():
    frame = pl.DataFrame(data())
    relation = duckdb.sql("select * from frame")
    result = lk.dedup(relation, id="id")
    assert pl.DataFrame(result.kept).equals(lk.dedup(frame, id="id").kept)
    assert isinstance(result.kept, lk.Table)
    kept = pa.table(result.kept)
    assert duckdb.sql("select count(*) from kept").fetchall() == [(kept.num_rows,)]


def test_fingerprints_go_in_and_out_of_every_library():
    values = [value for value in texts() if value]
    codes = lk.simhash(values)
    expected = codes.to_pylist()
    assert pa.array(codes).to_pylist() == pl.Series(codes).to_list() == np.asarray(codes).tolist() == expected
    for given in (np.asarray(codes), np.asarray(codes).view("int64"), pa.array(codes), pl.Series(codes), pd.Series(np.asarray(codes))):
        assert lk.join(given, distance=3).to_pylist() == lk.join(expected, distance=3).to_pylist()
    signatures = np.asarray(lk.minhash(values, 16))
    assert signatures.shape == (len(values), 16) and signatures.dtype == np.uint32
    assert signatures.tolist() == lk.minhash(values, 16).to_pylist()
    with pytest.raises(TypeError, match="float64"):
        lk.join(np.zeros(3))
    with pytest.raises(AttributeError, match="null"):
        lk.simhash([None]).__array_interface__


def test_numpy_keeps_the_numbers_alive():
    view = np.asarray(lk.simhash(["a b c"] * 1000))
    first = view[0]
    gc.collect()
    junk = [lk.simhash([f"{at}"] * 1000) for at in range(20)]
    assert (view == first).all() and junk


def test_sliced_arrays_of_numbers_are_read_at_their_place():
    numbers = pa.array([9, 9, 1, 2, None], pa.uint64())[2:]
    assert [row["a"] for row in lk.join(numbers, [2]).to_pylist() if row["distance"] == 0] == [1]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: pa.array([1]), "texts must be strings, not int64"),
        (lambda: pa.table({"text": [1]}), 'texts must be strings, not int64 .column "text".'),
        (lambda: pl.Series([1.5]), "texts must be strings, not double"),
        (lambda: pa.table({"a": ["x"], "b": ["y"]}), "one column, and the data has 2: a, b"),
        (lambda: pa.array([b"x"]), "not binary"),
        (lambda: pa.table({"text": [{"A": 1}]}), 'texts must be strings, not struct .column "text".$'),
        (lambda: pa.table({"text": [[{"A": 1}]]}), 'texts must be strings, not list of struct .column "text".$'),
        (lambda: pa.table({"text": pc.run_end_encode(pa.array([1]))}), 'texts must be strings, not int64 .column "text".$'),
    ],
)
def test_wrong_types_are_named_with_their_column(made, told):
    with pytest.raises(TypeError, match=told):
        lk.simhash(made())


def test_a_frame_without_columns_is_refused_with_a_whole_sentence():
    for frame in (pa.table({}), pl.DataFrame(), pd.DataFrame(), [{}]):
        with pytest.raises(ValueError, match="the columns are none$"):
            lk.dedup(frame)


def test_a_frame_with_a_column_of_numbers_as_text_is_refused():
    for frame in (pa.table({"text": [1]}), pl.DataFrame({"text": [1]}), pd.DataFrame({"text": [1]})):
        with pytest.raises(TypeError, match='texts must be strings, not int64 .column "text".'):
            lk.dedup(frame)


def test_dates_choose_survivors():
    import datetime

    dates = [datetime.date(2020, 1, 1), datetime.date(2024, 5, 5), datetime.date(1999, 1, 1)]
    times = [datetime.datetime(2020, 1, 1, 5), datetime.datetime(2024, 5, 5, 6), None]
    rows = {"text": ["same text"] * 3, "date": dates, "time": times}
    for frame in (pa.table(rows), pl.DataFrame(rows), [dict(zip(rows, row)) for row in zip(*rows.values())]):
        assert lk.dedup(frame, keep="newest:date").mask.to_pylist() == [False, True, False]
        assert lk.dedup(frame, keep="newest:time").mask.to_pylist() == [False, True, False]


def buffers(kind: str, length: int, *parts: bytes | None) -> object:
    """Returns an array whose buffers get these contents after pyarrow has validated it."""
    memory = [None if part is None else bytearray(len(part)) for part in parts]
    made = [None if part is None else pa.py_buffer(part) for part in memory]
    array = pa.Array.from_buffers(getattr(pa, kind)(), length, made)
    for room, part in zip(memory, parts):
        if room is not None:
            room[:] = part
    return array


def words(*numbers: int, width: int = 4) -> bytes:
    return b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)


def view(length: int, buffer: int, offset: int, prefix: bytes = b"aaaa") -> bytes:
    return length.to_bytes(4, "little", signed=True) + prefix + words(buffer, offset)


BROKEN = {
    "offsets that fall": lambda: buffers("string", 2, None, words(0, 5, 3), b"abcdef"),
    "a negative last offset": lambda: buffers("string", 1, None, words(0, -5), b"abc"),
    "a negative first offset": lambda: buffers("string", 1, None, words(-1, 3), b"abc"),
    "large offsets that fall": lambda: buffers("large_string", 2, None, words(0, 1 << 40, 3, width=8), b"abcdef"),
    "a large negative offset": lambda: buffers("large_string", 1, None, words(0, -(1 << 60), width=8), b"abc"),
    "bytes that are no UTF-8": lambda: buffers("string", 1, None, words(0, 3), b"a\xff\xfe"),
    "an end within a character": lambda: buffers("string", 2, None, words(0, 1, 2), "é".encode()),
    "a view beyond its buffer": lambda: buffers("string_view", 1, None, view(100, 0, 0), b"a" * 20),
    "a view of no buffer": lambda: buffers("string_view", 1, None, view(20, 3, 0), b"a" * 20),
    "a view at a negative place": lambda: buffers("string_view", 1, None, view(20, 0, -4), b"a" * 40),
    "a view of negative length": lambda: buffers("string_view", 1, None, view(-1, 0, 0), b"a" * 20),
    "a view with a wrong prefix": lambda: buffers("string_view", 1, None, view(20, 0, 0, b"zzzz"), b"a" * 20),
    "a key beyond its dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 7], pa.int8()), pa.array(["x"]), safe=False
    ),
    "a negative key": lambda: pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int8()), pa.array(["x"]), safe=False),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_producer_is_an_error_and_no_crash(fault):
    array = BROKEN[fault]()
    with pytest.raises(lk.BadInput, match="broken"):
        lk.simhash(array)
    with pytest.raises(lk.BadInput, match="broken"):
        lk.dedup(array)


def test_a_producer_that_fails_is_told_in_its_own_words():
    def batches():
        yield pa.record_batch({"text": ["a"]})
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches())
    with pytest.raises(lk.BadInput, match="the disk is gone"):
        lk.simhash(reader)


def test_capsules_of_something_else_are_refused():
    class Odd:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.array(["x"]).__arrow_c_array__()[0]

    class None_:
        def __arrow_c_array__(self, requested_schema=None):
            return None

    class Used:
        def __init__(self):
            self.capsule = pa.table({"text": ["x"]}).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    with pytest.raises((ValueError, TypeError)):
        lk.simhash(Odd())
    with pytest.raises(TypeError):
        lk.simhash(None_())
    used = Used()
    assert len(lk.simhash(used)) == 1
    with pytest.raises(lk.BadInput, match="before"):
        lk.simhash(used)


def test_rows_of_parquet_files_come_back(tmp_path):
    import pyarrow.parquet as pq

    table = pa.table(data())
    pq.write_table(table, tmp_path / "rows.parquet")
    result = lk.dedup(tmp_path / "rows.parquet")
    gone = {row["id"] for row in result.clusters.to_pylist()}
    assert gone == {row["id"] for row in lk.dedup(table, id="id").clusters.to_pylist()}
    assert [row for row in result.kept] == [row for row in table.to_pylist() if row["id"] not in gone]
    assert len(result.pairs) == len(gone)


def test_a_frame_of_no_rows_lost_its_columns():
    frame = pd.DataFrame({"text": pd.Series([], dtype=str), "score": pd.Series([], dtype="int64")})
    result = lk.dedup(frame)
    pd.testing.assert_frame_equal(result.kept, frame)
    pd.testing.assert_frame_equal(result.removed, frame)
    pd.testing.assert_series_equal(lk.dedup(frame["text"]).kept, frame["text"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow.Table", "datasets"])
def test_infinite_numbers_of_frames_cost_their_rows(library, tmp_path):
    frame = FRAMES[library]({"text": ["a b c", "x y z"], "score": [float("inf"), 1.0]})
    folder = lk.dedup(frame).save(tmp_path / "out")
    assert len((folder / "kept.jsonl").read_text().splitlines()) == 2


def test_a_column_called_self_may_have_no_values(tmp_path):
    frame = pd.DataFrame({"text": ["one text", "another one"], "self": [float("nan")] * 2})
    lk.dedup(frame, progress=False).save(tmp_path / "out")
    kept = (tmp_path / "out" / "kept.jsonl").read_text().splitlines()
    assert [json.loads(line).get("self") for line in kept] == [None, None]


def test_columns_whose_names_are_numbers_were_not_found(tmp_path):
    frame = pd.DataFrame([["a b c", 1], ["a b c", 2], ["x y z", 3]])
    result = lk.dedup(frame, text="0", keep="max:1")
    assert result.kept[1].tolist() == [2, 3]
    assert len((result.save(tmp_path / "out") / "kept.jsonl").read_text().splitlines()) == 2
    # A column has values of several types, for which Arrow has no type.
    mixed = pd.DataFrame([["a b c", 1], ["a b c", "x"]])
    assert len(lk.dedup(mixed, text="0", id="1").kept) == 1


def test_a_frame_of_a_class_of_ones_own_lost_its_type():
    class Own(pd.DataFrame):
        @property
        def _constructor(self):
            return Own

    assert type(lk.dedup(Own({"text": ["a b c", "a b c"], "n": [1, 2]})).kept) is Own


def test_values_of_an_earlier_result_are_those_of_its_files(tmp_path):
    """Regression test: converted to Python, times lost their nanoseconds, so equal categories became different."""
    import pyarrow.parquet as pq

    text, near = (" ".join(f"w{at}" for at in range(60)) + tail for tail in ("", " more"))
    when = pa.array([1577836800123456789], pa.timestamp("ns"))
    pq.write_table(pa.table({"text": [text], "when": when}), tmp_path / "in.parquet")
    earlier = lk.dedup(tmp_path / "in.parquet")
    saved = earlier.save(tmp_path / "saved")
    new = pa.table({"text": [near], "when": when})
    for against in (earlier, saved, tmp_path / "in.parquet"):
        assert lk.dedup(new, within="when", against=against).counts["removed"] == 1


def test_a_function_of_rows_with_columns_of_one_name_is_refused():
    frames = [pd.DataFrame([["x", "y"]], columns=["a", "a"]), pa.table([["x"], ["y"]], names=["a", "a"])]
    for frame in frames:
        with pytest.raises(ValueError, match="several columns are called 'a', and text is a function of rows"):
            lk.dedup(frame, text=str)


def test_decisions_were_applied_to_the_rows_of_data_changed_afterwards():
    import pandas as pd
    import polars as pl

    texts = ["a rose is a rose is a rose"] * 2 + ["something else is here", "zebra text that is new"]
    rows = [{"text": text, "number": number} for number, text in enumerate(texts)]
    frame, wide, series, column = pd.DataFrame(rows), pl.DataFrame(rows), pd.Series(texts), pl.Series(texts)
    changes = (
        (rows, list.reverse),
        (frame, lambda frame: frame.pop("number")),
        (wide, lambda wide: wide.drop_in_place("number")),
        (series, lambda series: series.pop(0)),
        (column, lambda column: column.sort(descending=True, in_place=True)),
    )
    for data, change in changes:
        result = lk.dedup(data, keep="first")
        decided = [str(values) for values in (result.kept, result.removed, result.annotated(), result.at(0.9).kept)]
        change(data)
        assert [str(values) for values in (result.kept, result.removed, result.annotated(), result.at(0.9).kept)] == decided, type(data)


@pytest.mark.filterwarnings("ignore:.*category of their own")
@pytest.mark.parametrize("kind", [list, pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("options", [{"across": "split"}, {"within": "split"}, {"keep": "max:score"}])
def test_a_field_that_only_against_has_was_refused_although_the_command_takes_it(tmp_path, kind, options):
    text = "the ferry left the harbour at nine with forty people on board and came back before noon"
    new = [{"id": "a", "text": text}, {"id": "b", "text": f"{text} indeed"}, {"id": "c", "text": "quite another text"}]
    old = [{"id": "o", "text": text, "split": "test", "score": 5}]
    files = [tmp_path / "new.jsonl", tmp_path / "old.jsonl"]
    for file, rows in zip(files, (new, old)):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    expected = lk.dedup(files[0], against=files[1], **options).clusters.to_pylist()
    assert expected
    for against in (kind(old), files[1]):
        result = lk.dedup(kind(new), against=against, id="id", **options)
        assert result.clusters.to_pylist() == expected
        result.save(tmp_path / "saved", overwrite=True)
    unknown = {name: value.replace("split", "nope").replace("score", "nope") for name, value in options.items()}
    with pytest.raises(ValueError, match="there is no column 'nope'"):
        lk.dedup(kind(new), against=kind(old), id="id", **unknown)
