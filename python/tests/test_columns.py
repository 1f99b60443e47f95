"""Columns exchanged with other libraries: regression tests."""

from __future__ import annotations

import copy
import ctypes
import pickle
import sys

import pytest

import lookalike as lk

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

TEXTS = ["a rose is a rose", "else", "a rose is a rose", "some other words"]


def test_a_column_of_a_pandas_frame_held_the_whole_array_in_each_cell():
    frame = pd.DataFrame({"text": TEXTS})
    codes = lk.simhash(frame["text"])
    frame["code"] = codes
    assert frame["code"].dtype == np.uint64 and frame["code"].tolist() == codes.to_pylist()
    assert frame.assign(code=codes)["code"].equals(frame["code"])
    assert pd.Series(codes).tolist() == codes.to_pylist()
    result = lk.dedup(frame, text="text")
    frame["kept"] = result.mask
    assert frame["kept"].dtype == bool and frame["kept"].tolist() == result.mask.to_pylist()
    assert frame[np.asarray(result.mask)]["text"].tolist() == result.kept["text"].tolist()
    frame["signature"] = lk.minhash(frame["text"], 4)
    assert frame["signature"].tolist() == lk.minhash(TEXTS, 4).to_pylist()
    with pytest.raises(ValueError, match="(?i)length"):
        frame["short"] = codes[:2]


def test_narrow_integers_in_arrow_were_refused_as_fingerprints():
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.int64()):
        pairs = lk.join(pa.array([5, 100, 5, None], kind), distance=0)
        assert pairs.to_pylist() == [{"a": 0, "b": 2, "distance": 0}], kind


def test_fingerprints_beside_missing_ones_were_rounded_by_pandas():
    codes = lk.simhash([None, *TEXTS])
    frame = pd.DataFrame({"text": [None, *TEXTS]})
    frame["code"] = codes
    assert frame["code"].tolist() == codes.to_pylist()
    assert max(codes.to_pylist()[1:]) > 2**53
    assert np.asarray(codes).tolist() == codes.to_pylist()
    assert np.array(codes[1:], dtype="float64").dtype == np.float64
    assert lk.join(frame["code"].dropna().astype("uint64"), distance=0).to_pylist() == [{"a": 0, "b": 2, "distance": 0}]


def test_numpy_told_of_a_shape_instead_of_nulls():
    with pytest.raises(ValueError, match="1 of the values are null"):
        np.asarray(lk.minhash(["a b", None]))
    assert np.asarray(lk.minhash(["a b", "c"], 8)).shape == (2, 8)
    assert lk.minhash(["a b", None], 8).to_pylist()[1] is None


def test_rows_of_a_table_and_slices_of_an_array_were_not_there():
    table = lk.join([1, 1, 0], distance=1)
    rows = [{"a": 0, "b": 1, "distance": 0}, {"a": 0, "b": 2, "distance": 1}, {"a": 1, "b": 2, "distance": 1}]
    assert list(table) == table.to_pylist() == rows
    assert [row["b"] for row in table] == [1, 2, 2]
    several = lk.Table(pa.Table.from_batches([pa.record_batch({"n": values}) for values in ([1, 2], pa.array([], pa.int64()), [3])]))
    assert [row["n"] for row in several] == [1, 2, 3]
    numbers = list(range(100, 107))
    array = several["n"]
    assert list(array) == [1, 2, 3] and 3 in array and list(reversed(array)) == [3, 2, 1]
    array = lk.Table(pa.table({"n": numbers}))["n"]
    for start in (None, 0, 2, -3, 9, -9):
        for stop in (None, 0, 3, -1, 9):
            for step in (None, 1, 2, -1, -3):
                assert array[start:stop:step].to_pylist() == numbers[start:stop:step]
    assert pa.array(array[2:4]).to_pylist() == [102, 103] and np.asarray(array[2:]).tolist() == numbers[2:]
    with pytest.raises(TypeError):
        array["n"]
    with pytest.raises(IndexError):
        array[7]
    iterator = iter(array)
    assert iter(iterator) is iterator and next(iterator) == 100


def test_polars_takes_what_is_a_sequence_as_arrow_data():
    codes = lk.simhash([None, *TEXTS])
    assert pl.Series(codes).dtype == pl.UInt64 and pl.Series(codes).to_list() == codes.to_pylist()
    assert pl.DataFrame(lk.join([1, 1])).schema["distance"] == pl.UInt32


def test_a_row_of_a_table_was_asked_for_with_an_error_about_instances():
    table = lk.Table(pa.table({"id": ["a"], "n": [1]}))
    for key in (0, slice(1), None):
        with pytest.raises(TypeError, match=r"is no name of a column: the columns are id, n; rows are in to_pylist\(\)"):
            table[key]


def test_a_notebook_showed_a_table_in_one_line():
    html = lk.Table(pa.table({"<id>": ["a & b"], "n": pa.array([None], pa.int8())}))._repr_html_()
    assert "<th>&lt;id&gt;</th><th>n</th>" in html and "<td>a &amp; b</td><td>None</td>" in html
    parts = pa.table({"n": pa.chunked_array([[*range(8)], [*range(8, 20)]]), "text": ["x" * 1000] * 20})
    html = lk.Table(parts)._repr_html_()
    assert [f"<td>{n}</td>" in html for n in (4, 5, 14, 15)] == [True, False, False, True]
    assert "<td colspan=2>...</td>" in html and html.endswith("<p>20 rows</p>") and len(html) < 4000


def test_a_column_of_nulls_of_polars_was_broken_arrow_data():
    assert lk.simhash(pl.Series([None, None])).to_pylist() == [None, None]
    assert lk.simhash(pl.Series([])).to_pylist() == []
    assert lk.dedup(pl.DataFrame({"text": []})).kept.shape == (0, 1)
    frame = pl.DataFrame({"text": ["a", "a", "b"], "id": [None] * 3, "score": [None] * 3, "site": [None] * 3})
    assert lk.dedup(frame).kept["text"].to_list() == ["a", "b"]
    with pytest.raises(lk.BadInput, match="row 0: the id is missing"):
        lk.dedup(frame, id="id")
    # The error is the same as for a list of rows whose values are None.
    with pytest.raises(lk.BadInput, match="none of the 3 records has a value in the field score"):
        lk.dedup(frame, keep="max:score")
    table = lk.Table(frame[1:])
    assert table["id"].type == "null" and table.to_pylist() == frame[1:].to_dicts()
    nested = pl.DataFrame({"pair": [{"a": None, "b": 1}, {"a": None, "b": 2}], "list": [[None, None], []]})
    assert lk.Table(nested).to_pylist() == nested.to_dicts()
    assert pl.DataFrame(lk.Table(nested)).to_dicts() == nested.to_dicts()


def test_a_null_row_was_read_as_the_text_below_it():
    texts = pa.array(["a rose is a rose", "hidden", "else", None])
    rows = pa.StructArray.from_arrays([texts], ["text"], mask=pa.array([False, True, False, False]))
    expected = lk.simhash(["a rose is a rose", None, "else", None]).to_pylist()
    assert lk.simhash(rows).to_pylist() == expected
    assert lk.simhash(rows[1:]).to_pylist() == expected[1:]
    categories = pa.StructArray.from_arrays([texts.dictionary_encode()], ["text"], mask=pa.array([False, True, False, False]))
    assert lk.simhash(categories).to_pylist() == expected
    assert lk.Table(rows)["text"].to_pylist() == ["a rose is a rose", None, "else", None]
    numbers = pa.StructArray.from_arrays([pa.array([1, 1, 1], pa.uint64())], ["code"], mask=pa.array([False, True, False]))
    assert lk.join(numbers).to_pylist() == [{"a": 0, "b": 2, "distance": 0}]


def test_pages_in_bytes_were_refused_in_a_column():
    pages = [b"<p>a", None, "<meta charset=latin-1><p>Caf\u00e9".encode("latin-1")]
    expected = lk.extract(pages, mode="visible").to_pylist()
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert lk.extract(pa.array(pages, kind), mode="visible").to_pylist() == expected
    assert lk.extract(pl.Series(pages), mode="visible").to_pylist() == expected
    with pytest.raises(TypeError, match="not binary"):
        lk.simhash(pa.array([b"a"]))


def test_ctrl_c_within_a_reader_in_python_was_bad_input():
    def batches(error):
        yield pa.record_batch({"text": ["a"]})
        raise error

    def reader(error):
        return pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches(error))

    for call in (lk.simhash, lk.Table, lk.dedup):
        with pytest.raises(KeyboardInterrupt):
            call(reader(KeyboardInterrupt()))
    for call in (lk.simhash, lk.Table):
        with pytest.raises(lk.BadInput, match="KeyboardInterrupt is but a word"):
            call(reader(ValueError("KeyboardInterrupt is but a word")))


@pytest.mark.parametrize(("levels", "is_read"), [(60, True), (70, False), (4_000, False)])
def test_types_in_types_ended_the_process(levels, is_read):
    # The producer is in C, so that only the type is deep; frame libraries fail at fewer levels.
    schemas = [Schema() for _ in range(levels)]
    arrays = [Array() for _ in range(levels)]
    for at in range(levels):
        is_last = at == levels - 1
        schemas[at].format, schemas[at].name, schemas[at].flags = (b"n" if is_last else b"+s"), b"x", 2
        schemas[at].release, arrays[at].release = DONE_SCHEMA, DONE_ARRAY
        arrays[at].length = arrays[at].null_count = 0
        arrays[at].n_buffers, arrays[at].buffers = (0, None) if is_last else (1, BUFFERS)
        if not is_last:
            schemas[at].n_children, schemas[at].children = 1, ctypes.pointer(ctypes.pointer(schemas[at + 1]))
            arrays[at].n_children, arrays[at].children = 1, ctypes.pointer(ctypes.pointer(arrays[at + 1]))
    producer = Producer(capsule(schemas[0], b"arrow_schema"), capsule(arrays[0], b"arrow_array"))
    if is_read:
        assert len(lk.Table(producer)) == 0
        return
    with pytest.raises(lk.BadInput, match="more than 64 levels"):
        lk.Table(producer)


@pytest.mark.parametrize("is_inside", [False, True])
def test_an_impossible_number_of_metadata_entries_ended_the_process(is_inside):
    outer, inner = Schema(format=b"+s", name=b""), Schema(format=b"n", name=b"x")
    (inner if is_inside else outer).metadata = (2**30).to_bytes(4, sys.byteorder)
    outer.n_children, outer.children = 1, ctypes.pointer(ctypes.pointer(inner))
    array, child = Array(n_buffers=1, buffers=BUFFERS, n_children=1), Array()
    array.children = ctypes.pointer(ctypes.pointer(child))
    for struct, done in ((outer, DONE_SCHEMA), (inner, DONE_SCHEMA), (array, DONE_ARRAY), (child, DONE_ARRAY)):
        struct.release = done
    with pytest.raises(lk.BadInput, match="has 1073741824 entries, and at most 65536 are read"):
        lk.Table(Producer(capsule(outer, b"arrow_schema"), capsule(array, b"arrow_array")))


class Schema(ctypes.Structure):
    """The struct ArrowSchema of the C data interface."""


class Array(ctypes.Structure):
    """The struct ArrowArray of the C data interface."""


SchemaEnd, ArrayEnd = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema)), ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", SchemaEnd),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ArrayEnd),
    ("private_data", ctypes.c_void_p),
]
BUFFERS = (ctypes.c_void_p * 1)(None)


@SchemaEnd
def DONE_SCHEMA(schema):
    schema[0].release = SchemaEnd(0)


@ArrayEnd
def DONE_ARRAY(array):
    array[0].release = ArrayEnd(0)


def capsule(struct, name: bytes):
    made = ctypes.pythonapi.PyCapsule_New
    made.restype, made.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return made(ctypes.addressof(struct), name, None)


class Producer:
    """An object that exports one array, as other libraries do."""

    def __init__(self, schema, array) -> None:
        self.both = schema, array

    def __arrow_c_array__(self, requested_schema=None):
        return self.both


def test_a_table_lost_the_metadata_of_its_data():
    field = pa.field("number", pa.int64(), metadata={b"unit": b"cm"})
    schema = pa.schema([field, pa.field("text", pa.string())], metadata={b"source": b"a crawl"})
    table = lk.Table(pa.table({"number": [1, 2, 3, 4], "text": TEXTS}, schema=schema))
    mask = lk.dedup(table).mask
    rows = lk.Table(pa.table({"row": pa.array([3, 0], pa.uint64())}))["row"]
    for part in (table, table.filter(mask), table.take(rows), pickle.loads(pickle.dumps(table))):
        assert pa.table(part).schema.equals(schema, check_metadata=True)
    found = pa.table(table.with_columns(lk.Table(pa.table({"more": TEXTS}))))
    assert found.schema.equals(schema.append(pa.field("more", pa.string())), check_metadata=True)


def test_columns_of_other_libraries_were_no_columns_of_a_table():
    table = lk.Table(pa.table({"number": [1, 2, 3, 4]}))
    mask, rows, more = pa.chunked_array([[True], [False, True, False]]), pa.array([3, 0], pa.uint64()), pa.table({"more": TEXTS})
    assert [row["number"] for row in table.filter(mask)] == [1, 3]
    assert [row["number"] for row in table.take(rows)] == [4, 1]
    assert pa.table(table.with_columns(more))["more"].to_pylist() == TEXTS
    assert len(table.filter(pa.chunked_array([[False] * 4]))) == len(table.take(pa.chunked_array([], pa.uint64()))) == 0
    with pytest.raises(TypeError, match="list hands out no Arrow data"):
        table.with_columns([1, 2, 3, 4])


def test_one_of_two_columns_of_a_name_was_lost():
    table = lk.Table(pa.table({"number": [1, 2]}))
    for other in (["number"], ["more", "more"]):
        with pytest.raises(ValueError, match=f"two columns would be called \"{other[-1]}\""):
            table.with_columns(lk.Table(pa.table([[3, 4]] * len(other), names=other)))
    twice = lk.Table(pa.table([[1, 2], [3, 4], [5, 6]], names=["x", "y", "x"]))
    for read in (twice.to_pylist, lambda: list(twice)):
        with pytest.raises(ValueError, match='several columns are called "x"'):
            read()
    with pytest.raises(KeyError, match="several columns are called"):
        twice["x"]
    assert twice["y"].to_pylist() == [3, 4]


def test_a_result_that_was_pickled_blamed_its_parts(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "text": "x"}\n')
    for result in (lk.dedup(TEXTS), lk.dedup(tmp_path)):
        for used in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="a result of dedup cannot be pickled.*pickle its clusters"):
                used(result)
        assert copy.copy(result) is result
        for part in (result.clusters, result.mask, result.scheme):
            assert repr(pickle.loads(pickle.dumps(part))) == repr(part)


def test_numpy_rounded_the_hashes_in_lists():
    lists = lk.features(["a rose is a rose is a rose", "a b c d e f", None, ""])
    expected = lists.to_pylist()
    arrays = np.asarray(lists)
    assert arrays.shape == (4,) and arrays.dtype == object
    assert arrays[0].dtype == np.uint64 and max(expected[0]) > 2**53
    assert [None if array is None else array.tolist() for array in arrays] == expected
    # Lists of equal length are no matrix, either, whose type and shape would depend on the texts.
    assert np.asarray(lists[1:2]).shape == (1,) and np.asarray(lists[:0]).shape == (0,)
    frame = pd.DataFrame({"text": TEXTS})
    frame["features"] = lk.features(frame["text"])
    assert [list(cell) for cell in frame["features"]] == lk.features(TEXTS).to_pylist()


@pytest.mark.parametrize("kind", ["int8", "int16", "int32"])
@pytest.mark.parametrize("column", [np.asarray, pa.array, pl.Series, pd.Series])
def test_negative_numbers_of_fewer_than_64_bits_were_far_from_all_others(kind, column):
    numbers = np.array([np.iinfo(kind).max, -1], kind)
    with pytest.raises(TypeError, match=rf"fingerprints of {kind} must not be negative, as -1 is \(row 1\).*view\(\"u{kind}\"\)"):
        lk.join(column(numbers))
    pairs = [{"a": 0, "b": 1, "distance": 1}]
    assert lk.join(column(numbers.view(f"u{kind}"))).to_pylist() == pairs
    assert lk.join(column(np.array([2**63 - 1, -1]))).to_pylist() == pairs


def test_masks_and_rows_of_a_table_had_to_be_arrow():
    table = lk.Table(pa.table({"n": [5, 6, 7]}))
    for mask in ([True, False, True], np.array([True, False, True]), pa.array([True, None, True])):
        assert table.filter(mask)["n"].to_pylist() == [5, 7]
    for rows in ([2, 0], np.array([2, 0]), pa.array([2, 0]), pa.array([2, 0], pa.uint64())):
        assert table.take(rows)["n"].to_pylist() == [7, 5]
    for rows in ([-1], np.array([-1]), pa.array([-1]), [None], pa.array([None], pa.int64()), [0.5], "0"):
        with pytest.raises(TypeError, match="rows must be numbers from 0"):
            table.take(rows)
    for mask in ([True], [1, 0, 1], "yes", 5):
        with pytest.raises(ValueError, match="a truth for each of the 3 rows"):
            table.filter(mask)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([{"html": b"<p>a"}], r'not bytes \(row 0\) \(column "html"\): decode them, or give pages to extract'),
        (pa.table({"html": [b"<p>a"]}), r'not binary \(column "html"\): decode them, or give pages to extract'),
        ([{"text": "a"}, {"text": float("nan")}], r'not float \(row 1\) \(column "text"\): use None where one is missing'),
        ([pa.record_batch({"text": ["a"]})], r"not RecordBatch \(row 0\): join batches with pyarrow.Table.from_batches"),
    ],
)
def test_what_was_meant_as_texts_was_refused_without_a_remedy(data, told):
    with pytest.raises(TypeError, match=told):
        lk.dedup(data)
