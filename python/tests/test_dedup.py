"""Deduplication of lists and dicts, without a frame library."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from functools import partial
from pathlib import Path

import pytest
from conftest import pages

import lookalike as lk
from lookalike import _documents


def decided(result: lk.DedupResult) -> dict[str, tuple[str, float, str]]:
    return {
        row["id"]: (row["survivor"], row["similarity"], row["reason"]) for row in result.clusters.to_pylist()
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"threshold": 0.6}, ["--threshold", "0.6"]),
        ({"keep": "max:score,longest"}, ["--keep", "max:score,longest"]),
        ({"within": "language"}, ["--within", "language"]),
        ({"across": "language", "threads": 2}, ["--across", "language"]),
        ({"method": "minhash", "functions": 64}, ["--method", "minhash", "--functions", "64"]),
        ({"method": "simhash", "distance": 6}, ["--method", "simhash", "--distance", "6"]),
        ({"stem": "en", "shingle": "words:3"}, ["--stem", "en", "--shingle", "words:3"]),
        ({"and_": ["containment:words:1:0.9"]}, ["--and", "containment:words:1:0.9"]),
    ],
)
def test_rows_get_the_clusters_that_the_command_finds_in_them_as_json_lines(rows, command_clusters, options, words):
    expected = command_clusters(rows, *words)
    result = lk.dedup(rows, id="id", **options)
    assert expected
    assert decided(result) == expected


@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_pairs_are_all_that_reach_the_threshold(threshold):
    texts = pages(60)
    expected = {
        tuple(sorted((str(a), str(b)))): similarity
        for a in range(len(texts))
        for b in range(a)
        if (similarity := lk.resemblance(texts[a], texts[b])) >= threshold
    }
    found = {(row["a"], row["b"]): row["similarity"] for row in lk.pairs(texts, threshold=threshold).to_pylist()}
    assert expected
    assert found == pytest.approx(expected)


def test_pairs_of_files_are_those_of_their_rows(rows, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert lk.pairs(file).to_pylist() == lk.pairs(rows, id="id").to_pylist()


def test_pairs_of_paragraphs_are_those_of_the_command(tmp_path):
    bridge = "The old bridge over the river was closed to traffic on Monday morning after an engineer found two cracks"
    rows = [
        {"id": "a", "text": f"Local news\n\nNobody knew anything about the weather.\n\n{bridge}"},
        {"id": "b", "text": bridge.replace("Monday", "Tuesday") + f"\n{bridge}\nLocal news"},
        {"id": "c", "text": None},
    ]
    options = {"unit": "paragraphs", "shingle": "words:2", "threshold": 0.6}
    found = lk.pairs(rows, id="id", **options)
    assert [(row["a_position"], row["b_position"]) for row in found.to_pylist()] == [(0, 2), (2, 0), (2, 1)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert lk.pairs(file, **options).to_pylist() == found.to_pylist()
    command = ["pairs", str(file), "--unit=paragraphs", "--shingle=words:2", "--threshold=0.6", "--quiet"]
    printed = subprocess.run([sys.executable, "-m", "lookalike", *command], capture_output=True, check=True, text=True)
    assert found.to_pylist() == [json.loads(line) for line in printed.stdout.splitlines()]
    # An empty result is a table as well, and a record that cannot be read causes a warning.
    assert lk.pairs(["one text"], **options).to_pylist() == []
    file.write_text(file.read_text(encoding="utf-8") + "broken\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="could not be read"):
        assert lk.pairs(file, **options).to_pylist() == found.to_pylist()
    with pytest.raises(ValueError, match="unit must be"):
        lk.pairs(rows, unit="lines")


def test_kept_and_removed_rows_are_the_rows_themselves_in_their_order(rows):
    result = lk.dedup(rows, id="id")
    gone = set(decided(result))
    assert all(a is b for a, b in zip(result.kept, (row for row in rows if row["id"] not in gone)))
    assert [row["id"] for row in result.removed] == [row["id"] for row in rows if row["id"] in gone]
    assert len(result.kept) + len(result.removed) == len(rows)
    assert result.counts["documents"] == len(rows)
    assert result.counts["removed"] == len(gone)


def test_rows_with_ids_or_without_have_the_same_mask(rows):
    # The id decides only between equal rows, and rows without an id are named by their numbers.
    numbered = [{**row, "id": str(at)} for at, row in enumerate(rows)]
    assert lk.dedup(numbered, id="id").mask.to_pylist() == lk.dedup([row["text"] for row in rows]).mask.to_pylist()


def test_an_iterator_is_read_once_and_its_kept_rows_are_a_list():
    result = lk.dedup(iter(["a b", "a b", "c d"]))
    assert result.kept == ["a b", "c d"]


def test_missing_texts_are_duplicates_of_nothing():
    result = lk.dedup([None, None, "", "", "a b c"])
    assert result.mask.to_pylist() == [True] * 5


def test_nothing_is_a_result_too():
    result = lk.dedup([])
    assert result.kept == []
    assert len(result.clusters) == 0
    assert "0 documents" in repr(result)


def test_texts_of_several_columns_and_of_a_function_are_compared():
    rows = [{"title": "a rose", "body": "is a rose is red"}, {"title": "A rose", "body": "is a rose is red"}]
    assert len(lk.dedup(rows, text=["title", "body"]).kept) == 1
    assert len(lk.dedup(rows, text=lambda row: row["title"] + " " + row["body"]).kept) == 1
    assert len(lk.dedup([{"t": str(at)} for at in range(3)], text=lambda row: "the same").kept) == 1


def test_texts_of_several_fields_of_files_were_refused(tmp_path):
    rows = [{"title": "a rose", "a, body": "is a rose is red"}, {"title": None, "a, body": "A rose\nis a rose is red"}]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = ["title", "a, body"]
    assert len(lk.dedup(path, text=fields).kept) == len(lk.dedup(rows, text=fields).kept) == 1
    assert lk.extract(path, text=fields)["text"].to_pylist() == ["a rose\nis a rose is red", "A rose\nis a rose is red"]
    for earlier in (rows[:1], ["a rose\nis a rose is red"], [{"text": "A rose\nis a rose is red"}], rows[1:]):
        assert lk.dedup(path, text=fields, against=earlier).clusters["survivor"].to_pylist() == ["against-0"] * 2
        assert lk.dedup(rows, text=fields, against=path).clusters["id"].to_pylist() == ["0", "1"]
    # A comma in the name of a column separates nothing.
    lk.dedup(rows, text="a, body").save(tmp_path / "out")
    assert (tmp_path / "out" / "kept.jsonl").read_text().count("\n") == 2


def test_data_to_compare_with_is_never_removed():
    earlier = ["a rose is a rose", "a rose is a rose"]
    result = lk.dedup(["A rose is a rose!", "new"], against=earlier)
    assert result.kept == ["new"]
    assert result.counts["documents"] == 2
    assert lk.dedup(["A rose is a rose!", "new"], against=lk.dedup(earlier)).kept == ["new"]
    # Rows on both sides have numbers as ids, which must not be confused.
    assert [(row["survivor"], row["id"]) for row in result.clusters.to_pylist()] == [("against-0", "0")]
    other = lk.dedup(["new", "a b c"], against=["else", "A B C"], threads=2)
    assert [(row["survivor"], row["id"]) for row in other.clusters.to_pylist()] == [("against-1", "1")]


def test_what_an_earlier_job_kept_in_a_folder_is_compared_with(tmp_path):
    lk.dedup(["a rose is a rose", "else"]).save(tmp_path / "earlier")
    assert lk.dedup(["A rose is a rose!", "new"], against=tmp_path / "earlier").kept == ["new"]


def test_a_collection_is_compared_with_and_gets_what_is_kept(tmp_path):
    rose, tale, more = "a rose is a rose", "this is quite another tale", "nobody wrote any of this"
    days = [[rose, tale], [rose.upper(), more], [more + "!", tale + "."]]
    seen, kept = tmp_path / "seen", []
    for number, texts in enumerate(days):
        file = tmp_path / f"{number}.jsonl"
        rows = [{"id": text, "text": text} for text in texts]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        result = lk.dedup(file, against=seen if number else None, into=seen)
        kept.append([row["text"] for row in result.kept])
    assert kept == [[rose, tale], [more], []]
    with pytest.raises(lk.LookalikeError, match="threshold of the collection: 0.8, of the job: 0.7"):
        lk.dedup(tmp_path / "0.jsonl", against=seen, threshold=0.7)


@pytest.mark.parametrize("options", [{}, {"keep": "max:score"}, {"within": "language"}, {"method": "simhash", "distance": 6}])
def test_rows_meet_a_collection_as_files_do(rows, tmp_path, options):
    days = [rows[:80], rows[80:150], rows[150:]]
    for number, day in enumerate(days):
        file = tmp_path / f"{number}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in day), encoding="utf-8")
        by_files = lk.dedup(file, against=tmp_path / "files" if number else None, into=tmp_path / "files", **options)
        by_rows = lk.dedup(day, id="id", against=tmp_path / "rows" if number else None, into=tmp_path / "rows", **options)
        assert decided(by_rows) == decided(by_files)
        assert sorted(row["id"] for row in by_rows.kept) == sorted(row["id"] for row in by_files.kept)
    again = lk.dedup(rows, id="id", against=tmp_path / "rows", **options)
    assert again.counts["documents"] == len(rows)
    assert {row["reason"] for row in again.clusters.to_pylist()} <= {"exact", "near"}
    assert [row["id"] for row in again.kept] == [row["id"] for row in lk.dedup(rows, id="id", against=tmp_path / "files", **options).kept]


def test_rows_were_added_although_the_call_failed(tmp_path):
    seen, earlier = tmp_path / "seen", tmp_path / "earlier.jsonl"
    earlier.write_text('{"id":"a","text":"quite another tale"}\n{"id":', encoding="utf-8")
    rows = [{"id": "m1", "text": "a rose is a rose is a rose"}, {"id": True, "text": "something else"}]
    for into in (None, seen):
        with pytest.raises(lk.BadInput, match="row 1 cannot be written") as raised:
            lk.dedup(rows, id="id", against=earlier, into=into)
        assert raised.value.row == 1
    with pytest.warns(lk.LookalikeWarning):
        assert lk.dedup(rows[:1], id="id", against=earlier, into=seen).kept == rows[:1]


def test_a_warning_that_was_an_error_lost_the_result_of_an_addition(tmp_path):
    today, rows = tmp_path / "today.jsonl", [{"id": "m1", "text": "a rose is a rose is a rose"}]
    today.write_text('{"id":"a","text":"quite another tale"}\n{"id":', encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error", lk.LookalikeWarning)
        with pytest.raises(lk.LookalikeWarning, match="could not be read") as raised:
            lk.dedup(today, into=tmp_path / "files")
        assert [row["id"] for row in raised.value.result.kept] == ["a"]
        with pytest.raises(lk.LookalikeWarning, match="could not be read") as raised:
            lk.dedup(rows, id="id", against=today, into=tmp_path / "rows")
        assert raised.value.result.kept == rows


@pytest.mark.parametrize("kind", ["rows", "files", "rows beside files"])
def test_ctrl_c_during_the_addition_to_a_collection_lost_what_was_kept(tmp_path, kind):
    import pyarrow

    texts = pages(20_000, seed=5)
    ids = [f"d{at}" for at in range(len(texts))]
    seen, today, other = tmp_path / "seen", tmp_path / "today.jsonl", tmp_path / "other.jsonl"
    today.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in zip(ids, texts)), encoding="utf-8")
    other.write_text('{"id":"x","text":"quite another tale"}\n', encoding="utf-8")
    # Arrow data is read without the interpreter, which the callback holds.
    data = today if kind == "files" else pyarrow.table({"id": ids, "text": texts})
    named = {"rows": {"id": "id"}, "files": {}, "rows beside files": {"id": "id", "against": other}}[kind]

    def interrupt_the_addition(stage, done, total):
        # Called while the job runs: it waits until the collection has the documents, which is too late to cancel.
        deadline = time.monotonic() + 120
        while not (seen / "lookalike.collection").exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as raised:
        lk.dedup(data, into=seen, progress=interrupt_the_addition, threads=1, **named)
    result = raised.value.result
    assert result.counts["kept"] == len(ids) - result.counts["removed"] > 0
    again = lk.dedup(data, against=seen, **({"id": "id"} if kind != "files" else {}))
    assert again.counts["kept"] == 0


def test_a_disk_that_failed_after_the_addition_lost_what_was_kept(tmp_path):
    today, seen = tmp_path / "today.jsonl", tmp_path / "seen"
    texts = pages(20_000, seed=5)
    today.write_text("".join(json.dumps({"id": f"d{at}", "text": text}) + "\n" for at, text in enumerate(texts)), encoding="utf-8")
    occupied = []

    def occupy(stage, done, total):
        # The folder that the results are renamed to before they get their names, as the last step that may fail.
        for results in tmp_path.glob("lookalike-*/results/.lookalike"):
            occupied.append(results / "ready" / "occupied")
            occupied[-1].mkdir(parents=True, exist_ok=True)

    with pytest.raises(lk.LookalikeError):
        lk.dedup(today, into=seen, tmp=tmp_path, progress=occupy, threads=1)
    assert occupied
    again = lk.dedup(today, into=seen)
    assert again.counts["kept"] == len(texts) - again.counts["removed"] > 0


def test_ctrl_c_before_the_addition_to_a_collection_adds_nothing(tmp_path):
    rows = [{"id": str(at), "text": text} for at, text in enumerate(pages(60_000, seed=3))]

    def interrupt(stage, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        lk.dedup(rows, id="id", into=tmp_path / "seen", progress=interrupt, threads=1)
    assert not hasattr(raised.value, "result")
    assert not [file for file in (tmp_path / "seen").iterdir() if file.suffix == ".bin"]


def test_a_collection_that_is_about_to_begin_was_refused_for_rows(tmp_path):
    seen, rows = tmp_path / "seen", [{"id": "m1", "text": "a rose is a rose is a rose"}]
    with pytest.warns(lk.LookalikeWarning, match="against names the new collection of into: nothing is in it yet"):
        assert lk.dedup(rows, id="id", against=seen, into=seen).kept == rows
    again = [{"id": "t1", "text": "A rose is a rose is a rose"}, {"id": "t2", "text": "new"}]
    assert lk.dedup(again, id="id", against=seen, into=seen).kept == again[1:]
    with pytest.raises(ValueError, match="neither a collection nor"):
        lk.dedup(rows, id="id", against=tmp_path / "nowhere", into=seen)


def test_what_rows_cannot_do_with_a_collection_is_refused(rows, tmp_path):
    seen = tmp_path / "seen"
    result = lk.dedup(rows, id="id", into=seen)
    for job in (lambda: lk.dedup(["a"], against=seen), lambda: lk.dedup(["a"], into=tmp_path / "other")):
        with pytest.raises(TypeError, match="names of their own.*id="):
            job()
    with pytest.raises(lk.LookalikeError, match="would find them again"):
        result.save(tmp_path / "out")
    with pytest.raises(ValueError, match="not compared with them"):
        lk.dedup(rows, id="id", into=seen)
    for named in ({"id": "id"}, {}):
        with pytest.raises(ValueError, match="neither a collection nor"):
            lk.dedup(rows, against=tmp_path / "nowhere", **named)


def test_records_of_files_are_tables_for_others(rows, tmp_path):
    import pyarrow

    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for options in ({}, {"output_format": "parquet"}):
        result = lk.dedup(file, **options)
        table = pyarrow.table(result.kept)
        assert table.to_pylist() == list(result.kept)
        assert table.schema.field("score").type == pyarrow.int64()


def test_records_of_documents_that_are_files_say_where_they_are(tmp_path):
    (tmp_path / "pages").mkdir()
    for name, text in {"a.txt": "a rose is a rose", "b.txt": "A rose is a rose!", "c.txt": "else"}.items():
        (tmp_path / "pages" / name).write_text(text, encoding="utf-8")
    result = lk.dedup(tmp_path / "pages")
    (gone,) = result.clusters.to_pylist()
    assert [row["id"] for row in result.removed] == [gone["id"]]
    assert sorted(Path(row["id"]).name for row in result.kept) == ["b.txt", "c.txt"]
    folder = result.save(tmp_path / "out")
    assert [(folder / row["file"]).read_text(encoding="utf-8") for row in result.removed] == ["a rose is a rose"]


def test_annotations_stand_beside_the_rows():
    rows = [{"id": "x", "text": "a rose is a rose"}, {"id": "y", "text": "A rose is a rose!"}, {"id": "z", "text": "else"}]
    x, y, z = lk.dedup(rows, id="id").annotated()
    assert (x["survivor_id"], x["is_duplicate"], x["reason"], x["cluster_size"]) == ("y", True, "near", 2)
    assert (y["survivor_id"], y["is_duplicate"], y["reason"]) == ("y", False, None)
    # As in clusters.jsonl, the first cluster is number 1.
    assert x["cluster_id"] == y["cluster_id"] == 1
    assert (z["cluster_id"], z["cluster_size"], z["representative_id"]) == (None, 1, "z")


@pytest.fixture
def shards(rows, tmp_path) -> list[Path]:
    """Writes the rows to two files whose names and ids are in no order."""
    files = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    for file, part in zip(files, (rows[:120], rows[120:])):
        lines = [json.dumps(row) for row in part]
        # A line that cannot be read is not a document.
        lines.insert(5, "broken")
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


@pytest.mark.parametrize(
    "options",
    [{}, {"order": "input"}, {"compress": "gz"}, {"output_format": "parquet"}, {"threads": 2, "keep": "max:score"}, {"against": True}],
)
def test_files_have_a_mask_and_annotations_in_the_order_of_their_records(rows, shards, tmp_path, options):
    import pyarrow

    earlier = [{**row, "id": f"old-{row['id']}"} for row in rows[::9]]
    by_rows = dict(options)
    for name in ("order", "compress", "output_format"):
        by_rows.pop(name, None)
    if options.get("against"):
        file = tmp_path / "earlier.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in earlier), encoding="utf-8")
        options, by_rows = {"against": file}, {"against": earlier}
    expected = lk.dedup(rows, id="id", **by_rows)
    result = lk.dedup(shards, **options)
    assert result.mask.to_pylist() == expected.mask.to_pylist()
    assert result.clusters.to_pylist() == expected.clusters.to_pylist()
    annotated = result.annotated()
    assert annotated.to_pylist() == expected.annotated()
    assert pyarrow.table(annotated).schema.field("score").type == pyarrow.int64()
    assert len(result.mask) == result.counts["documents"] == len(rows)


def test_typed_tables_of_several_files_have_annotations_with_their_types(rows, tmp_path):
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [("id", pyarrow.string()), ("text", pyarrow.string()), ("score", pyarrow.int8()), ("language", pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))]
    )
    # The order of paths is not that of their bytes, because "/" comes after "-".
    files = [tmp_path / "shards" / "b" / "x.parquet", tmp_path / "shards" / "b-a.parquet", tmp_path / "shards" / "c.parquet"]
    files[0].parent.mkdir(parents=True)
    parts = [rows[:70], rows[70:71], rows[71:]]
    for file, part in zip(files, parts):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part, schema), file)
    for data in (files, files[::-1], tmp_path / "shards"):
        result = lk.dedup(data)
        annotated = pyarrow.table(result.annotated())
        assert annotated.schema.field("score").type == pyarrow.int8()
        by_id = {row["id"]: row for row in lk.dedup(rows, id="id").annotated()}
        for row in annotated.to_pylist():
            number = row.pop("cluster_id")
            assert row == {name: value for name, value in by_id[row["id"]].items() if name != "cluster_id"}
            assert (number is None) == (by_id[row["id"]]["cluster_id"] is None)
        if data == files:
            assert [row["id"] for row in annotated.to_pylist()] == [row["id"] for row in rows]
        assert result.mask.to_pylist() == [not duplicate for duplicate in annotated["is_duplicate"].to_pylist()]
        # Shards with the same columns count as one table for other libraries.
        assert pyarrow.table(result.kept).num_rows == result.counts["kept"]
    (one,) = lk.dedup(files[2]).kept.paths
    assert one.name == "kept.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["else"]}), tmp_path / "shards" / "d.parquet")
    with pytest.raises(lk.LookalikeError, match="each with its own columns"):
        lk.dedup(tmp_path / "shards").annotated()


def test_documents_that_are_files_are_annotated_by_their_names(tmp_path):
    for name, text in {"a.txt": "a rose is a rose", "b.txt": "A rose is a rose!", "c.txt": "else"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = lk.dedup(tmp_path)
    assert [(Path(row["id"]).name, row["is_duplicate"]) for row in result.annotated().to_pylist()] == [
        ("a.txt", True), ("b.txt", False), ("c.txt", False)
    ]
    assert result.mask.to_pylist() == [False, True, True]
    # A notebook shows where the largest clusters differ, for files too.
    assert "<ins>A</ins>" in result._repr_html_() and "<del>a</del>" in result._repr_html_()


@pytest.mark.parametrize("as_file", [False, True])
def test_columns_of_the_names_of_annotations_are_not_lost(tmp_path, as_file):
    rows = [{"text": "x"}, {"text": "y", "similarity": 5}]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(ValueError, match="similarity; rename"):
        lk.dedup(file if as_file else rows).annotated()


def test_a_job_that_changed_a_collection_is_not_repeated(rows, shards, tmp_path):
    result = lk.dedup(shards, into=tmp_path / "seen")
    with pytest.raises(lk.LookalikeError, match="would find them again"):
        result.at(0.9)


def test_a_report_is_a_page_that_a_notebook_shows_and_a_browser_opens(monkeypatch):
    import webbrowser

    page = lk.dedup(["a rose is a rose", "A rose is a rose!"]).report()
    assert page.startswith("<!") and len(repr(page)) < 60
    assert page._repr_html_().startswith('<iframe sandbox="allow-scripts"') and "<html" not in page._repr_html_()
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page.open()
    assert Path(opened[0].removeprefix("file://")).read_text(encoding="utf-8") == page


def test_rows_of_a_table_are_taken_by_their_numbers():
    table = lk.join([0, 1, 3, 7], distance=1)
    all_rows = table.to_pylist()
    numbers = lk.Index.build([0, 2, 3], distance=0).search([2, 0, 2])["code"]
    assert table.take(numbers).to_pylist() == [all_rows[2], all_rows[0], all_rows[2]]
    with pytest.raises(IndexError, match="no row 3"):
        table.take(lk.Index.build([3], distance=0).search([3])["code"])
    with pytest.raises(TypeError, match="uint64"):
        table.take(table["distance"])


def test_all_pairs_are_listed_when_asked_for():
    texts = ["a b c d e f g", "a b c d e f h", "a b c d e f i"]
    result = lk.dedup(texts, threshold=0.4, pairs="all")
    assert [(pair["a"], pair["b"]) for pair in result.pairs.to_pylist()] == [("0", "1"), ("0", "2"), ("1", "2")]
    assert result.pairs["similarity"][0] == lk.resemblance(texts[0], texts[1])


def test_another_threshold_is_another_job(rows):
    loose = lk.dedup(rows, id="id", threshold=0.5)
    assert decided(loose.at(0.9)) == decided(lk.dedup(rows, id="id", threshold=0.9))
    with pytest.raises(TypeError, match="threshold must not be None"):
        loose.at(None)


def test_saved_results_are_those_of_the_command(rows, command_clusters, tmp_path):
    command_clusters(rows)
    lk.dedup(rows, id="id").save(tmp_path / "saved")
    for name in ("kept.jsonl", "removed.jsonl", "clusters.jsonl", "pairs.jsonl"):
        assert (tmp_path / "saved" / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name
    with pytest.raises(FileExistsError, match="overwrite"):
        lk.dedup(rows, id="id").save(tmp_path / "saved")


def test_files_give_the_bytes_of_the_command(rows, command_clusters, tmp_path):
    expected = command_clusters(rows)
    result = lk.dedup(tmp_path / "rows.jsonl")
    assert decided(result) == expected
    saved = result.save(tmp_path / "saved")
    for name in ("kept.jsonl", "removed.jsonl", "clusters.jsonl", "pairs.jsonl", "skipped.jsonl"):
        assert (saved / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name
    assert [row["id"] for row in result.removed] == sorted(expected)
    assert len(result.kept) == result.counts["kept"]
    assert result.scheme == lk.Scheme()
    assert "<html" in result.report()
    with pytest.raises(FileExistsError):
        result.save(tmp_path / "saved")
    result.save(tmp_path / "saved", overwrite=True)


def test_an_explanation_by_ids_is_that_of_the_texts(rows, tmp_path):
    result = lk.dedup(rows, id="id")
    gone = result.clusters.to_pylist()[0]
    texts = {row["id"]: row["text"] for row in rows}
    told = result.explain(gone["survivor"], gone["id"])
    for name in (gone["survivor"], gone["id"]):
        assert f'dir="auto">{name}</span>' in told.to_html()
    assert told.resemblance == pytest.approx(lk.resemblance(texts[gone["survivor"]], texts[gone["id"]]))
    assert told.found
    with pytest.raises(KeyError, match="nobody"):
        result.explain("nobody", gone["id"])


def test_the_summary_of_a_notebook_is_escaped():
    evil = "<script>alert(1)</script> a b c d e f g h"
    page = lk.dedup([evil, evil + " i"], threshold=0.1)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<svg" in page


NOT_A_NUMBER = {
    "a number": float("nan"),
    "infinite": float("-inf"),
    "inside": {"list": [1.5, float("nan")]},
    "half a character": "\ud800",
}


@pytest.mark.parametrize("kind", NOT_A_NUMBER)
def test_rows_with_values_that_json_has_not_were_left_out_of_saved_results(tmp_path, kind):
    rows = [{"text": "a b c", "score": NOT_A_NUMBER[kind]}, {"text": "x y z", "score": 1.0}]
    result = lk.dedup(rows)
    folder = result.save(tmp_path / "out")
    saved = [json.loads(line) for line in (folder / "kept.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in saved] == [row["text"] for row in result.kept]
    expected = {"inside": {"list": [1.5, None]}, "half a character": "\ud800"}.get(kind)
    assert [row["score"] for row in saved] == [expected, 1.0]


def test_a_row_that_cannot_be_saved_was_left_out_in_silence(tmp_path, monkeypatch):
    result = lk.dedup([{"text": "x y z", "score": 1}, {"text": "a b c", "score": 2}])
    # Imitate a line with a number that JSON does not have; no row that becomes one is known any more.
    def with_nan(value):
        is_second = isinstance(value, dict) and value["score"] == 2
        return json.dumps({**value, "score": float("nan")} if is_second else value)

    monkeypatch.setattr(_documents, "json_text", with_nan)
    with pytest.raises(lk.BadInput, match="row 1 cannot be written as a JSON line: ") as caught:
        result.save(tmp_path / "out")
    assert caught.value.row == 1
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([{"id": 7, "text": "title", "body": "a b c"}], {"text": "body"}),
        ([{"id": 7, "text": "title", "a.b": "x y", "key\\.": "k"}], {"text": "a.b", "id": "key\\."}),
        ([{"id": 7, "text": "x", "title": "y"}], {"text": ["title", "text"]}),
        ([{"id": 7, "text": "x", "text_": "z"}], {"text": lambda row: row["text"] + row["text_"]}),
        ([{"id": 7, "html": "<p>x", "text": "y"}], {"text": "html"}),
        ([{"url": "u", "html": "<p>x</p>"}], {"id": "url"}),
    ],
)
def test_columns_called_id_and_text_were_replaced_in_saved_results(tmp_path, rows, options):
    folder = lk.dedup(rows, **options).save(tmp_path / "out")
    saved = [json.loads(line) for line in (folder / "kept.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [{name: row[name] for name in rows[0]} for row in saved] == rows
    made = {name: value for row in saved for name, value in row.items() if name not in rows[0]}
    # Only additional names that are not columns are saved with them.
    assert set(made) <= {"id_", "text_", "text__"} and made.get("id_", "0") == "0"


def test_saved_results_decide_as_the_rows_did_whatever_their_columns_are_called(tmp_path):
    rows = [{"id": at, "text": "the same title", "html": text} for at, text in enumerate(pages(60))]
    earlier = [{"id": at, "text": "the same title", "html": text} for at, text in enumerate(pages(60)[::7])]
    for text, against in (("html", None), (["html"], earlier), (lambda row: row["html"], earlier)):
        result = lk.dedup(rows, text=text, against=against)
        folder = result.save(tmp_path / "out", overwrite=True)
        told = json.loads((folder / "run.json").read_text(encoding="utf-8"))["decisions"]
        assert told["kept"] == result.counts["kept"] and told["removed_near"] == result.counts["near"] > 0


def test_a_column_that_some_rows_lack_broke_saving(tmp_path):
    result = lk.dedup([{"text": "a b c", "id": "x"}, {"id": "y"}, {"id": "z", "text": "a b c"}], id="id")
    folder = result.save(tmp_path / "out")
    assert len((folder / "kept.jsonl").read_text(encoding="utf-8").splitlines()) == len(result.kept) == 2


def test_a_dict_among_texts_vanished():
    for rows in (["a b c", {"text": "x y z"}], [None, "a b c", {"text": "x y z"}]):
        with pytest.raises(TypeError, match=rf"dict \(row {len(rows) - 1}\)"):
            lk.dedup(rows)


def test_kept_documents_that_are_gone_were_compared_with_in_no_words(tmp_path):
    earlier = lk.dedup(["a rose is a rose", "else"]).save(tmp_path / "earlier")
    (earlier / "kept.jsonl").rename(earlier / "elsewhere.jsonl")
    with pytest.raises(lk.LookalikeError, match="kept.jsonl.* gone"):
        lk.dedup(["A rose is a rose!", "new"], against=earlier)


@pytest.mark.parametrize("name", ["../kept.jsonl", "/etc/passwd", "..", 5])
def test_a_summary_led_out_of_its_folder(tmp_path, name):
    (tmp_path / "kept.jsonl").write_text('{"text": "new"}\n')
    folder = tmp_path / "earlier"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"program": "lookalike", "kept_in": [name]}))
    with pytest.raises(lk.LookalikeError, match="no result in this folder"):
        lk.dedup(["new"], against=folder)


@pytest.mark.parametrize("summary", [{"program": "another"}, {"program": "lookalike"}, [], {"kept_in": ["kept.jsonl"]}])
def test_the_summary_of_another_program_was_taken_for_ours(tmp_path, summary):
    folder = tmp_path / "earlier"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(summary))
    with pytest.raises(ValueError, match="neither a collection nor"):
        lk.dedup([{"id": "a", "text": "new"}], id="id", against=folder)


def test_a_pipe_called_run_json_was_waited_for(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(ValueError, match="neither a collection nor"):
        lk.dedup([{"id": "a", "text": "new"}], id="id", against=tmp_path)


def test_folders_of_kept_documents_are_rows_only_where_they_are_tables(tmp_path):
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "tables").mkdir()
    for name, texts in (("a", ["a rose is a rose"]), ("b", ["else"])):
        table = pyarrow.table({"id": texts, "text": texts})
        pyarrow.parquet.write_table(table, tmp_path / "tables" / f"{name}.parquet")
    tables = lk.dedup(tmp_path / "tables").save(tmp_path / "of tables")
    assert (tables / "kept").is_dir()
    assert lk.dedup(["A rose is a rose!", "new"], against=tables).kept == ["new"]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a rose is a rose")
    files = lk.dedup(tmp_path / "files").save(tmp_path / "of files")
    with pytest.raises(lk.LookalikeError, match="a.txt: the kept documents are files"):
        lk.dedup(["A rose is a rose!"], against=files)


def test_results_of_another_format_stayed_beside_new_ones(rows, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    saved = lk.dedup(file, output_format="parquet").save(tmp_path / "out")
    (saved / "notes.txt").write_text("mine")
    result = lk.dedup(file)
    result.save(saved, overwrite=True)
    assert {path.name for path in saved.iterdir()} == {path.name for path in result._folder.iterdir()} | {"notes.txt"}


def test_older_results_were_gone_before_the_new_ones_were_complete(rows, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    saved = lk.dedup(file).save(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    broken = lk.dedup(file, threshold=0.5)
    # The summary is copied last.
    (broken._folder / "run.json").unlink()
    with pytest.raises(lk.LookalikeError):
        broken.save(saved, overwrite=True)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_files_of_the_user_with_names_of_results_were_removed(tmp_path):
    mine = tmp_path / "mine" / "removed" / "precious"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(lk.LookalikeError, match="it may be yours"):
        _files(tmp_path).save(tmp_path / "mine", overwrite=True)
    assert mine.read_text() == "mine"


def test_the_number_of_records_was_found_by_reading_all_of_them(rows, tmp_path, monkeypatch):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = lk.dedup(file)
    (path,) = result.kept.paths
    path.unlink()
    assert len(result.kept) == result.counts["kept"] and len(result.removed) == result.counts["removed"]


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: lk.dedup([1, 2]), TypeError, r"texts must be strings, not int \(row 0\)"),
        (lambda: lk.dedup([{"text": 5}]), TypeError, r'texts must be strings, not int \(row 0\) \(column "text"\)'),
        (lambda: lk.dedup([{"a": "x", "b": "y"}]), ValueError, "name the one of the texts with text="),
        (lambda: lk.dedup([{"text": "x"}], text="body"), ValueError, "there is no column 'body'"),
        (lambda: lk.dedup(["x"], id="id"), ValueError, "no column 'id'"),
        (lambda: lk.dedup(["x"], threshold=2), ValueError, "threshold 2 is not above 0"),
        (lambda: lk.dedup(["x"], methd="minhash"), ValueError, "unexpected argument"),
        (lambda: lk.dedup(["x"], output="out"), TypeError, r"use save\(\)"),
        (lambda: lk.dedup(["x"], format="csv"), TypeError, "format is for files"),
        (lambda: lk.dedup(5), TypeError, "data must be"),
        (lambda: lk.dedup(b"x"), TypeError, "not one bytes"),
        (lambda: lk.dedup(["\ud800"]), lk.BadInput, "row 0"),
        (lambda: lk.dedup("no/such/file.jsonl"), lk.BadInput, "no such file"),
        (lambda: lk.dedup(["x"], progress="loud"), TypeError, "progress"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, error, told):
    with pytest.raises(error, match=told) as caught:
        call()
    assert "--" not in str(caught.value)


def test_a_bad_row_is_named():
    with pytest.raises(lk.BadInput) as caught:
        lk.dedup(["fine", "\udc80"])
    assert caught.value.row == 1


def test_too_little_memory_says_how_much_is_needed():
    memory, refusals = 1 << 20, 0
    while refusals < 5:
        try:
            lk.dedup(pages(50), memory=memory)
            break
        except MemoryError as error:
            assert isinstance(error, lk.MemoryLimit) and error.needed > memory
            memory, refusals = error.needed, refusals + 1
    # Each step of the job may refuse once.
    assert 1 <= refusals < 5


def test_progress_is_told_and_nothing_is_printed(capfd, tmp_path):
    told = []
    lk.dedup(pages(3000), progress=lambda stage, done, total: told.append(stage))
    lk.dedup(pages(20))
    assert capfd.readouterr() == ("", "")
    assert set(told) <= {"read", "rank", "keys", "group", "compare", "write"}


@pytest.mark.parametrize("kind", ["none", "gz", "zst"])
def test_records_of_compressed_results_are_read_like_others(rows, tmp_path, kind):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = lk.dedup(file, compress=kind)
    by_id = sorted((row for row in rows if row["id"] not in decided(result)), key=lambda row: row["id"])
    assert list(result.kept) == by_id and len(result.removed) == len(decided(result)) > 0
    (kept,) = result.kept.paths
    if kind == "zst":
        cut = tmp_path / "cut.jsonl.zst"
        cut.write_bytes(kept.read_bytes()[:-20])
        with pytest.raises(lk.LookalikeError, match="cut.jsonl.zst"):
            list(type(result.kept)([cut], None))


def test_an_error_of_the_progress_callback_ends_the_job():
    class Enough(Exception):
        pass

    def stop(stage, done, total):
        raise Enough

    with pytest.raises(Enough):
        lk.dedup(pages(60_000, seed=3), progress=stop, threads=1)


@pytest.mark.parametrize("method", ["exact", "simhash", "minhash"])
def test_methods_have_the_defaults_of_the_command(rows, tmp_path, command, method):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = command("dedup", file, "-o", tmp_path / "out", "--method", method, "--json", "--quiet")
    expected = json.loads(done.stdout)
    for data, named in ((file, {}), (rows, {"id": "id"})):
        result = lk.dedup(data, method=method, **named)
        assert result.counts["kept"] == expected["decisions"]["kept"]
        assert result.threshold == expected["threshold"]


def test_ctrl_c_was_not_heard_while_an_explanation_read_files(tmp_path):
    file = tmp_path / "rows.jsonl"
    filling = "".join(json.dumps({"id": str(at), "text": text * 20}) + "\n" for at, text in enumerate(pages(500)))
    file.write_text('{"id": "a", "text": "a rose"}\n{"id": "b", "text": "a rose"}\n' + filling * 20)
    begin = time.monotonic()
    explanation = lk.explain("a", "b", in_=file)
    whole = time.monotonic() - begin
    assert explanation.resemblance == 1
    program = textwrap.dedent(f"""
        import os, signal, threading, time
        import lookalike as lk
        threading.Timer({whole / 10}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            lk.explain("a", "b", in_={str(file)!r})
        except KeyboardInterrupt:
            print(time.monotonic() - begin)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert float(done.stdout) < whole / 2, (whole, done.stdout, done.stderr)


def test_ctrl_c_ends_a_job_soon():
    program = textwrap.dedent("""
        import os, signal, sys, threading, time
        import lookalike as lk
        from conftest import pages
        texts = pages(2000) * 200
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            # Every pair of a million is compared: far more than a second of work.
            lk.dedup([f"{text} {at}" for at, text in enumerate(texts)], threshold=0.3, pairs="all", threads=1)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=False, timeout=120, cwd=Path(__file__).parent,
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_jobs_in_many_threads_do_not_disturb_each_other():
    from concurrent.futures import ThreadPoolExecutor

    batches = [pages(300, seed) for seed in range(8)]
    alone = [lk.dedup(batch, threads=1).mask.to_pylist() for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda batch: lk.dedup(batch, threads=1).mask.to_pylist(), batches))
    assert together == alone


def test_a_thousand_calls_leak_nothing():
    import resource

    def grown() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    texts = pages(40)
    for _ in range(100):
        lk.dedup(texts, threads=1)
        lk.simhash(texts, threads=1)
    before = grown()
    for _ in range(900):
        lk.dedup(texts, threads=1)
        lk.simhash(texts, threads=1)
    assert grown() - before < 8 << 10, "KiB more after 900 further calls"


@pytest.fixture
def damaged_files(tmp_path):
    """Returns two files, one that cannot be read and one that is truncated."""
    none, half = tmp_path / "none.parquet", tmp_path / "half.jsonl.gz"
    none.write_bytes(b"PAR1xxxxPAR1")
    texts = pages(2000)
    whole = gzip.compress("".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(texts)).encode())
    half.write_bytes(whole[: len(whole) // 2])
    return none, half


@pytest.mark.parametrize(
    "call", [lk.dedup, lk.pairs, partial(lk.pairs, unit="paragraphs"), lk.overlap, lk.extract], ids=["dedup", "pairs", "paragraphs", "overlap", "extract"]
)
def test_a_damaged_file_vanished_in_silence(call, damaged_files):
    for file in damaged_files:
        with pytest.warns(lk.LookalikeWarning, match=f"could not be read.*{file.name}") as told:
            call(file)
        # The warning is at the caller's line, where its filters apply.
        assert {warning.filename for warning in told} == {__file__}
        # With max_skipped there is no warning.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(file, max_skipped=2)


def test_counts_of_damaged_files_said_that_everything_was_read(damaged_files):
    none, half = damaged_files
    with pytest.warns(lk.LookalikeWarning):
        counts = lk.dedup(none).counts
        assert (counts["documents"], counts["unreadable"], counts["damaged"]) == (0, 0, 1)
        counts = lk.dedup(half).counts
    # The last record before the end of the data is a part of the same loss.
    assert 0 < counts["documents"] < 2000 and (counts["unreadable"], counts["damaged"]) == (0, 1)
    assert lk.dedup(["a", "b"]).counts["damaged"] == 0


def test_names_of_files_in_a_list_were_compared_as_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"id": "' + name + '", "text": "a rose is a rose"}\n')
    with pytest.warns(lk.LookalikeWarning, match="a.jsonl: to read files, pass pathlib.Path"):
        assert lk.dedup(["a.jsonl", "b.jsonl"]).counts["documents"] == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.dedup(["a.jsonl", "no file of that name"])


def test_paths_from_a_generator_were_no_data(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": f"One. Two. {name}."}) + "\n")
    files = partial(tmp_path.glob, "*.jsonl")
    assert lk.dedup(files()).counts["documents"] == 2
    assert len(lk.overlap(files(), chunk="sentences").pairs) == 1
    assert sorted(lk.extract(files())["id"]) == ["a", "b"]
    # Other iterators are read item by item.
    assert lk.extract(iter(["<p>a", "<p>b"])).to_pylist() == ["a", "b"]
    assert lk.dedup(iter([])).kept == []


def test_a_limit_for_data_in_memory_was_raised_by_a_little_at_each_try():
    texts = [f"{text} {at}" for at, text in enumerate(pages(300) * 200)]
    memory, refused = 10 << 20, 0
    while True:
        try:
            kept = lk.dedup(texts, memory=memory).counts["kept"]
            break
        except lk.MemoryLimit as error:
            assert error.needed > memory
            memory, refused = error.needed, refused + 1
    # One refusal is for reading and one for the next stage; without the fix there were ten.
    assert 1 <= refused <= 3
    assert kept == lk.dedup(texts).counts["kept"]


def _files(folder: Path) -> lk.DedupResult:
    """Returns a result of files, which is in a folder."""
    texts = ["a rose is a rose is a rose", "A rose is a rose is a rose!", "something else"]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "in.jsonl").write_text(lines)
    return lk.dedup(folder / "in.jsonl")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_removed_the_results_of_its_parent(tmp_path):
    result = _files(tmp_path)
    with warnings.catch_warnings():
        # Ignore the warning about threads, which the child does not use.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            # This is the last object in this process that refers to the folder.
            del result
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len(list(result.kept)) == 2 and len(list(result.removed)) == 1


def test_a_folder_of_results_that_is_gone_is_told(tmp_path):
    import shutil

    result = _files(tmp_path)
    shutil.rmtree(result.folder.parent)
    for use in (lambda: list(result.kept), lambda: result.pairs, lambda: result.clusters, result.report, lambda: lk.dedup(["x"], against=result)):
        with pytest.raises(lk.LookalikeError, match=r"the folder of the result is gone.*save\(\)"):
            use()


def test_a_result_that_was_saved_into_its_own_folder_was_lost(tmp_path):
    result = _files(tmp_path)
    for folder in (result.folder, result.folder / "within", result.folder.parent):
        with pytest.raises(ValueError, match="the result itself is there"):
            result.save(folder, overwrite=True)
    assert len(list(result.kept)) == 2


def test_a_comma_in_a_name_is_escaped_as_for_the_command():
    rows = [{"text": "a rose is a rose is a rose", "c,d": at, "e": 9 - at} for at in range(3)]
    kept = [lk.dedup(rows, keep=keep).mask.to_pylist() for keep in (r"max:c\,d", r"min:c\,d", r"longest,max:c\,d")]
    assert kept == [[False, False, True], [True, False, False], [False, False, True]]


def test_keys_that_are_no_strings_are_told():
    with pytest.raises(TypeError, match=r"the keys of rows must be strings, not int \(1\)"):
        lk.dedup([{"text": "a", 1: 2}], id=1)


def test_a_document_to_compare_with_could_not_be_told_from_a_new_one_of_its_id(tmp_path):
    new = [{"id": "1", "text": "a rose is a rose"}, {"id": "2", "text": "A rose is a rose"}, {"id": "0", "text": "a rose is a rose!"}]
    old = [{"id": "1", "text": "a rose is a rose"}]
    for name, rows in [("new", new), ("old", old)]:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # The command marks such documents in its lines, in JSON and in Parquet.
    for at, (data, against, more) in enumerate([
        (new, old, {}),
        (tmp_path / "new.jsonl", tmp_path / "old.jsonl", {}),
        (tmp_path / "new.jsonl", tmp_path / "old.jsonl", {"output_format": "parquet"}),
        (new, tmp_path / "old.jsonl", {}),
        (tmp_path / "new.jsonl", old, {}),
    ]):
        result = lk.dedup(data, id="id", against=against, pairs="all", **more)
        assert [(row["survivor"], row["id"], row["against"]) for row in result.clusters.to_pylist()] == [("1", at, True) for at in "012"]
        marks = {"type": result.pairs["against"].type, "rows": [(row["a"], row["b"], row["against"]) for row in result.pairs.to_pylist()]}
        both = [("0", "1", None), ("0", "1", "b"), ("0", "2", None), ("1", "1", "a"), ("1", "2", None), ("1", "2", "a")]
        assert (marks["type"].removeprefix("large_"), sorted(marks["rows"], key=str)) == ("string", sorted(both, key=str))
        folder = result.save(tmp_path / f"saved-{at}")
        if not more:
            lines = [json.loads(line) for line in (folder / "pairs.jsonl").read_text().splitlines()]
            # The sort is stable: of two pairs with the same ids, the one with the document from `against` comes first in the file.
            assert sorted(((pair["a"], pair["b"], pair.get("against")) for pair in lines), key=lambda pair: pair[:2]) == marks["rows"]
            assert [json.loads(line)["against"] for line in (folder / "clusters.jsonl").read_text().splitlines()] == [True]
    alone = lk.dedup(new, id="id")
    assert set(alone.clusters["against"].to_pylist()) == set(alone.pairs["against"].to_pylist()) == {None}


def test_names_that_the_package_imports_for_itself_were_listed_as_its_own():
    public = {name for name in dir(lk) if not name.startswith("__")}
    assert public == {*lk.__all__, "datasets"} - {"__version__"}
    assert all(hasattr(lk, name) for name in public)


def test_a_document_called_run_json_was_left_out_of_saved_results(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "run.json").write_text("a rose is a rose")
    (pages / "a.txt").write_text("else")
    result = lk.dedup(pages, format="text")
    folder = result.save(tmp_path / "out")
    assert {(folder / row["file"]).read_text() for row in result.kept} == {"a rose is a rose", "else"}


def test_a_value_that_contains_itself_ended_in_a_recursion(tmp_path):
    row = {"text": "a rose"}
    row["row"] = row
    deep = []
    for _ in range(100_000):
        deep = [deep]
    digits = 10**5000
    for value, told in [(row, "a value contains itself"), ({"text": "a", "x": deep}, "values within values"), ({"text": "a", "n": digits}, "4300 digits")]:
        with pytest.raises(lk.BadInput, match=f"row 0 cannot be written as a JSON line: .*{told}"):
            lk.dedup([value]).save(tmp_path / "out")
    with pytest.raises(lk.BadInput, match=r'row 1: .*4300 digits.*\(column "id"\)'):
        lk.dedup([{"text": "a", "id": 1}, {"text": "b", "id": digits}], id="id")


def test_a_folder_that_cannot_be_written_was_told_with_an_option_of_the_command(tmp_path):
    result = lk.dedup(["a rose"])
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="file") as caught:
        result.save(tmp_path / "file" / "out")
    assert str(caught.value).endswith("name a writable directory")


def test_the_name_of_a_collection_was_compared_as_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "a", "text": "a rose is a rose"}]
    lk.dedup(rows, id="id", into="seen")
    for against in (["seen"], ("seen", "seen")):
        with pytest.raises(TypeError, match="the strings of against name files or directories, for example seen: pass pathlib.Path"):
            lk.dedup(rows, id="id", against=against)
    with pytest.raises(TypeError, match="the strings of against"):
        lk.dedup(Path("rows.jsonl"), against=["seen"])
    assert len(lk.dedup(rows, id="id", against="seen").kept) == 0
    assert len(lk.dedup(rows, id="id", against=["seen", "words that are no file"]).kept) == 1
    with pytest.warns(lk.LookalikeWarning, match="taken for texts, and all of them name files, for example seen"):
        lk.dedup(["seen", "seen"])


@pytest.mark.parametrize("none", [list, tuple, lambda: iter([])])
def test_a_batch_without_documents_had_none_of_the_columns(none, tmp_path):
    seen = tmp_path / "seen"
    lk.dedup([{"id": "a", "text": "a rose is a rose"}], id="id", into=seen)
    assert list(lk.dedup(none(), id="id", against=seen, into=seen).kept) == []
    for options in (
        {"text": "text"},
        {"text": ["title", "body"]},
        {"text": lambda row: row["text"]},
        {"keep": "newest:date"},
        {"within": "language"},
        {"across": "site"},
        {"fields": "anchors:2"},
        {"against": none(), "id": "id"},
        {"against": ["a rose"], "text": "text"},
    ):
        result = lk.dedup(none(), **options)
        assert (result.counts["documents"], list(result.kept), len(result.annotated())) == (0, [], 0), options
    assert len(lk.pairs(none(), id="id", text="text")) == 0
    result = lk.dedup(none(), id="id", text="text")
    assert (result.save(tmp_path / "saved") / "run.json").exists()
    # As rows to compare with, too.
    assert len(lk.dedup([{"id": "a", "text": "a rose"}], id="id", against=none()).kept) == 1


def test_documents_with_the_id_of_another_got_new_names_without_a_warning(tmp_path):
    rows = [{"id": id, "text": "a rose is a rose"} for id in ("p", "p", "q")]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for data in (rows, file):
        with pytest.warns(lk.LookalikeWarning, match="documents with the id of another: 1, which have a number after the id"):
            result = lk.dedup(data, id="id")
        assert result.counts["ids_repeated"] == 1 and "p#2" in result.clusters["id"].to_pylist()
        with pytest.raises(lk.BadInput):
            lk.dedup(data, id="id", repeated_ids="refuse")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            lk.dedup(data, id="id", repeated_ids="number")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: lk.dedup(["a"], thresold=0.5), "unexpected argument 'thresold' found: did you mean 'threshold'\\?"),
        (lambda: lk.dedup(["a"], num_perm=128), "unexpected argument 'num_perm' found: did you mean 'functions'\\?"),
        (lambda: lk.dedup(["a"], shingle="wrds:5"), "for 'shingle'"),
        (lambda: lk.pairs(["a"], paragraphs="blank"), 'add unit="paragraphs"'),
    ],
)
def test_typing_errors_got_less_help_than_on_the_command_line(call, told):
    with pytest.raises((TypeError, ValueError), match=told):
        call()


def test_a_list_of_masks_was_the_same_option_twice():
    texts = ["on 3 May 2020 we had 17 guests", "on 4 June 2021 we had 18 guests"]
    assert lk.dedup(texts, mask=["numbers", "dates"]).scheme == lk.dedup(texts, mask="numbers,dates").scheme
