"""``python -m lookalike.spark``, and files that tasks read with the engine."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
import urllib.parse

import pyarrow
import pyarrow.parquet
import pytest
from conftest import CORPORA
from pyspark.sql import functions
from test_dedup import SCHEMA, pages

import lookalike as lk
import lookalike.spark as lks
from lookalike.spark._archives import _File, _files, _one_per_partition
from lookalike.spark._command import _parser, _parted, main
from lookalike.spark._documents import DocumentColumns
from lookalike.spark._inputs import read_files
from lookalike.spark._result import SparkDedupResult


def test_the_command_writes_the_results_of_the_other_command_as_parquet(spark, tmp_path, command_lines, capsys):
    rows = pages(150, seed=11)
    expected = command_lines(rows, "--threshold=0.6", "--shingle=words:2", "--keep=max:score")
    source = tmp_path / "rows.jsonl"
    out = tmp_path / "results"
    words = [str(source), "-o", str(out), "--threshold", "0.6", "--shingle=words:2", "--keep", "max:score"]
    assert main(words) == 0
    assert "150 documents" in capsys.readouterr().err
    lines = []
    for row in spark.read.parquet(str(out / "clusters.parquet")).orderBy("cluster").collect():
        told = {"cluster": row["cluster"], "survivor": row["survivor"], "members": [member.asDict() for member in row["members"]]}
        lines.append(json.dumps(told, separators=(",", ":"), ensure_ascii=False) + "\n")
    assert "".join(lines).encode() == expected
    kept, removed = (spark.read.parquet(str(out / f"{name}.parquet")) for name in ("kept", "removed"))
    assert sorted(row["id"] for row in kept.unionByName(removed).collect()) == sorted(row["id"] for row in rows)
    told = json.loads(spark.read.text(str(out / "run.json")).collect()[0]["value"])
    assert told["counts"]["kept"] == kept.count()
    # Existing results are not replaced without --overwrite.
    assert main(words) == 1
    assert "has results already: name another --output" in capsys.readouterr().err


def test_wrong_words_say_what_is_wrong(spark, tmp_path, capsys):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "a", "text": "x"}\n')
    out = ["-o", str(tmp_path / "out")]
    for words, told in [
        ([str(tmp_path / "rows")], "name it with --format"),
        ([str(file), str(tmp_path / "rows.csv")], "several formats"),
        ([str(tmp_path / "rows.csv"), str(tmp_path / "rows.tsv")], "have tabs"),
        ([str(file), "--id", "name"], "no column 'name'"),
    ]:
        assert main([*words, *out]) == 1
        assert told in capsys.readouterr().err
    for words, told in [
        (["--quiet"], "--quiet is no option here: Spark shows the progress"),
        (["--threads", "4"], "--threads is no option here: Spark decides"),
        (["--max-skipped", "4"], "--max-skipped is no option here: Spark reads"),
        (["--threshold", "2"], "threshold 2"),
        (["--nosuch", "2"], "--nosuch"),
        (["--bogus", "2"], "did you mean '--nouns'?"),
        (["--annotate"], "--annotate is no option here: annotated() of the result"),
        (["--keep", "first"], "name a column that has it with --position"),
        (["--position", "n"], "leave it out"),
        (["--method", "simhash", "--distance-for", "site"], "--distance-for has no effect here"),
        (["--memory", "much"], "memory 'much' is no number"),
        (["--partitions", "0"], "partitions 0"),
        (["--work-dir", "job{1}"], "--work-dir job{1} has { } in its name"),
        (["--work-dir", "/"], "--work-dir '/' names no folder of its own"),
    ]:
        # Before the inputs, an option without a value took the first of them.
        assert main([*words, str(file), *out]) == 2
        assert told in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main([str(file)])
    assert caught.value.code == 2


def test_a_file_that_spark_cannot_read_is_an_error_without_a_stack(spark, tmp_path, capsys):
    broken = tmp_path / "rows.parquet"
    broken.write_bytes(b"PAR1 and no more")
    assert main([str(broken), "-o", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert "Traceback" not in told
    assert "\n\tat " not in told


def test_archives_give_the_records_that_the_engine_reads_in_one_process(spark, tmp_path):
    folder = CORPORA / "warc-samples"
    if not folder.is_dir():
        pytest.skip(f"the archives are not in {folder}")
    names = sorted(folder.glob("cc-2024-*.warc*.gz"))
    found = lks.read_archives(spark, [str(folder / "cc-2024-a.warc.gz"), str(folder / "*whirlwind*.w*t.gz")]).collect()
    assert {row["source"].rpartition("/")[2] for row in found} <= {name.name for name in names}
    by_id = {row["id"]: row["text"] for row in found if row["source"].endswith("cc-2024-a.warc.gz")}
    expected = lk.dedup(folder / "cc-2024-a.warc.gz", progress=False)
    assert len(by_id) == expected.counts["documents"] > 10
    assert all(text is None or isinstance(text, str) for text in by_id.values())
    assert any(row["source"].endswith(".wet.gz") and row["text"] for row in found)


def test_a_file_that_cannot_be_read_is_named(spark, tmp_path):
    with pytest.raises(FileNotFoundError, match="there are no files"):
        lks.read_archives(spark, str(tmp_path / "*.warc"))
    broken = tmp_path / "none.warc.gz"
    with pytest.raises(Exception, match="none.warc.gz"):
        lks.read_archives(spark, broken).collect()


def test_tasks_got_several_archives_and_others_none(spark):
    names = [f"/crawl/{at}.warc.gz" for at in range(100)]
    frame = _one_per_partition(spark, [_File(name, False) for name in names])
    files = frame.groupBy(functions.spark_partition_id().alias("task")).agg(functions.collect_list("path").alias("paths"))
    assert sorted(path for row in files.collect() for path in row["paths"]) == sorted(names)
    assert files.count() == len(names)


def test_results_that_broke_off_could_not_be_continued_and_other_rows_not_replace_older_ones(spark, tmp_path, monkeypatch, capsys):
    source, out = tmp_path / "rows.jsonl", tmp_path / "results"
    source.write_text('{"id": "a", "text": "x"}\n')
    words = [str(source), "-o", str(out)]
    assert main(words) == 0

    def broken_off(_):
        raise OSError("no space left")

    # The failure comes after all folders, when the summary is written.
    with monkeypatch.context() as patched:
        patched.setattr(SparkDedupResult, "costs", property(broken_off))
        # The rows are different, so the earlier stages are discarded.
        source.write_text('{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n')
        assert main([*words, "--overwrite"]) == 1
    assert "no space left" in capsys.readouterr().err
    assert spark.read.text(str(out / "run.json")).count() == 0
    # Incomplete results are written again.
    assert main(words) == 0
    assert spark.read.parquet(str(out / "kept.parquet")).count() == 2


def test_files_without_a_row_that_can_be_read_ended_the_job(spark, tmp_path):
    source, table, out = tmp_path / "in.jsonl", tmp_path / "in.csv", tmp_path / "out"
    source.write_text("\nno JSON\n")
    assert main([str(source), "-o", str(out), "--text", "title,body", "--keep", "max:score"]) == 3
    assert spark.read.parquet(str(out / "kept.parquet")).columns == ["id", "title", "body", "score"]
    counts = json.loads(spark.read.text(str(out / "run.json")).collect()[0]["value"])["counts"]
    assert (counts["documents"], counts["unreadable"]) == (0, 1)
    # Nothing is lost of a file that is empty.
    source.write_text("\n")
    table.write_text("")
    for file in (source, table):
        columns = DocumentColumns(text=None, id="id", value=None, category=None, position="at")
        rows = read_files(spark, [str(file)], None, str(out), columns=columns, check=list, discards_others=False)
        assert dict(rows.data.dtypes) == {"id": "string", "text": "string", "at": "bigint"}
        assert rows.data.isEmpty() and (rows.skipped is None or rows.skipped.isEmpty())


@pytest.mark.parametrize("is_against", [False, True])
def test_a_file_without_rows_made_numbers_and_strings_differ(spark, tmp_path, is_against):
    empty, rows, out = tmp_path / "empty.jsonl", tmp_path / "rows.jsonl", tmp_path / "out"
    empty.write_text("")
    rows.write_text("".join(json.dumps({"id": name, "text": "a rose", "score": score}) + "\n" for name, score in [("a", 9), ("b", 10)]))
    today, against = (rows, empty) if is_against else (empty, rows)
    assert main([str(today), "--against", str(against), "-o", str(out), "--method", "exact", "--keep", "max:score"]) == 0
    # As a string, 9 would be the larger.
    assert [row["id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()] == (["b"] if is_against else [])


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_empty_files_in_partitions_had_a_column_twice_or_none(spark, tmp_path, ending):
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "lang=en").mkdir(parents=True)
    (source / "lang=en" / f"rows.{ending}").write_text("")
    words = [str(source), "-o", str(out), "--format", "json" if ending == "jsonl" else ending, "--within", "lang"]
    assert main(words) == 0
    kept = spark.read.parquet(str(out / "kept.parquet"))
    assert kept.isEmpty() and sorted(kept.columns) == ["id", "lang", "text"]
    (source / "lang=de").mkdir()
    (source / "lang=de" / f"rows.{ending}").write_text('{"id": "a", "text": "x"}\n' if ending == "jsonl" else "id,text\na,x\nb\n")
    assert main([*words, "--overwrite"]) == (0 if ending == "jsonl" else 3)
    assert [row.asDict() for row in spark.read.parquet(str(out / "kept.parquet")).collect()] == [{"id": "a", "text": "x", "lang": "de"}]
    if ending == "csv":
        # The partition is no field of the header.
        assert "does not have the 2 fields of the header" in spark.read.parquet(str(out / "skipped.parquet")).collect()[0]["reason"]


def test_ids_with_fractions_are_refused_because_spark_writes_other_digits(spark, tmp_path, capsys):
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"page": {{"id": {id}}}, "text": "x"}}\n' for id in ("1.5", "12345678.5")))
    assert main([str(source), "--id", "page.id", "-o", str(tmp_path / "out")]) == 1
    assert 'not double (column "page.id"): make them strings where they are written' in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--work-dir"])
def test_a_folder_that_is_a_file_ended_in_words_of_spark(spark, tmp_path, capsys, option):
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"id": "a", "text": "x"}\n')
    for place in [lines, lines / "below"]:
        assert main([str(lines), "-o", str(tmp_path / "out"), option, str(place)]) == 1
        assert f"error: {option} {place}: {lines} is a file: name a folder" in capsys.readouterr().err
    assert lines.read_text() == '{"id": "a", "text": "x"}\n'


@pytest.mark.parametrize("place", [0, 1, 3])
def test_the_value_of_an_option_before_the_inputs_was_taken_for_an_input(place):
    words = ["rows.jsonl", "-o", "out"]
    words[place:place] = ["--threshold", "0.6", "--keep=max:score", "--and", "a", "--and", "b"]
    own, options = _parted(_parser(), [*words, "--", "--odd.jsonl"])
    asked = _parser().parse_intermixed_args(own)
    assert (asked.inputs, asked.output) == (["rows.jsonl", "--odd.jsonl"], "out")
    assert options == {"threshold": "0.6", "keep": "max:score", "and_": ["a", "b"]}


def test_several_texts_were_named_in_another_way_than_for_the_other_command():
    words = ["rows.jsonl", "-o", "out", "--text", r"q,a\,b", "--text", "page.body"]
    assert _parser().parse_args(words).text == ["q", "a,b", "page.body"]


def test_rows_that_could_not_be_read_were_left_out_untold(spark, tmp_path, capsys):
    table, lines = tmp_path / "rows.csv", tmp_path / "rows.jsonl"
    table.write_text('id,text,n\nr1,"alpha ""quick""\nfox",1\nr2,beta,2\nr3,hello, world,3\nr4\nr5,"never closed,5\n')
    lines.write_text('{"id": "a", "text": "x y"}\n{"id": "b", "text": "broken\n[1]\n{"id": "c", "text": "z"}\n')
    for source, kept, rows in [
        (table, {"r1", "r2"}, ["r3,hello, world,3", "r4", 'r5,"never closed,5']),
        (lines, {"a", "c"}, ['[1]', '{"id": "b", "text": "broken']),
    ]:
        out = tmp_path / f"of-{source.name}"
        assert main([str(source), "-o", str(out), "--method", "exact"]) == 3
        assert f"skipped: {len(rows)} in " in capsys.readouterr().err
        assert {row["id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()} == kept
        skipped = spark.read.parquet(str(out / "skipped.parquet")).collect()
        assert sorted(row["row"] for row in skipped) == sorted(rows)
        assert all(row["source"].endswith(source.name) for row in skipped)
        told = json.loads(spark.read.text(str(out / "run.json")).collect()[0]["value"])
        assert told["counts"]["unreadable"] == len(rows)
    assert main([str(lines), "-o", str(tmp_path / "strict"), "--strict"]) == 1
    assert "run without --strict" in capsys.readouterr().err


def test_texts_and_ids_of_other_types_became_documents(spark, tmp_path, capsys):
    values = ['"a rose"', "5", "-0.5", "true", '["a"]', "[]", '{"a": "b"}', "null", '"5"', '"-"', '"true"', '"[\\"a\\"]"', '"{}"']
    rows = [f'{{"id": "{at}", "text": {value}}}' for at, value in enumerate(values)]
    rows += [f'{{"id": {value}, "text": "x"}}' for value in ("7000", "[1]", '{"a": 1}', "false", '"[1]"')]
    nested = [f'{{"id": "{at}", "page": {{"body": {value}}}}}' for at, value in enumerate(values)]
    for lines, words in [(rows, []), (nested, ["--text", "page.body"])]:
        source, out, other = tmp_path / "rows.jsonl", tmp_path / "out", tmp_path / "other"
        source.write_text("".join(f"{line}\n" for line in lines))
        assert main([str(source), "-o", str(out), "--method", "exact", "--overwrite", *words]) == 3
        told = capsys.readouterr().err
        command = [sys.executable, "-m", "lookalike", "dedup", str(source), "-o", str(other), "--method", "exact", "--overwrite", "--quiet"]
        assert subprocess.run([*command, *words], check=False, capture_output=True).returncode == 3
        expected = [json.loads(line) for line in (other / "skipped.jsonl").read_text().splitlines()]
        assert len(expected) == (9 if lines is rows else 6)
        found = {(row["row"], row["reason"]) for row in spark.read.parquet(str(out / "skipped.parquet")).collect()}
        assert found == {(lines[row["line"] - 1], f"{row['kind']}: {row['reason']}") for row in expected}
        assert f"skipped: 2 in {source.as_uri()}: wrong-type: the text field holds a number, not a string" in told
        kept = [json.loads(line)["id"] for line in (other / "kept.jsonl").read_text().splitlines()]
        assert sorted(row["id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()) == sorted(map(str, kept))


def test_empty_cells_of_tables_were_missing_values(spark, tmp_path, capsys):
    source, out, other = tmp_path / "rows.csv", tmp_path / "out", tmp_path / "other"
    source.write_text('id,text,a.b\n1,a rose is a rose,""\n2,a rose is a rose,\n3,a rose is a rose,x\n,"",x\n')
    assert main([str(source), "-o", str(out), "--within", "a.b"]) == 0, capsys.readouterr().err
    command = [sys.executable, "-m", "lookalike", "dedup", str(source), "-o", str(other), "--within", "a\\.b", "--quiet"]
    subprocess.run(command, check=True)
    kept = [json.loads(line) for line in (other / "kept.jsonl").read_text().splitlines()]
    assert sorted((row.asDict() for row in spark.read.parquet(str(out / "kept.parquet")).collect()), key=str) == sorted(kept, key=str)
    assert [row["id"] for row in kept] == ["", "1", "3"]


def test_quotes_in_tables_without_quoting_swallowed_rows(spark, tmp_path, capsys):
    source, lines = tmp_path / "rows.tsv", tmp_path / "rows.jsonl"
    source.write_text('id\ttext\n1\t"never closed\n2\tb\\\n3\t"c" d\n4\t"e\tf"\n5\t"g"\n')
    lines.write_text('{"id": "a", "text": "x"}\n')
    out, other = tmp_path / "out", tmp_path / "other"
    assert main([str(source), "-o", str(out), "--method", "exact", "--no-quotes"]) == 3
    assert "skipped: 1 in " in capsys.readouterr().err
    command = [sys.executable, "-m", "lookalike", "dedup", str(source), "-o", str(other), "--method", "exact", "--no-quotes", "--quiet"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 3
    kept = [json.loads(line) for line in (other / "kept.jsonl").read_text().splitlines()]
    assert sorted((row.asDict() for row in spark.read.parquet(str(out / "kept.parquet")).collect()), key=str) == sorted(kept, key=str)
    assert [row["text"] for row in kept] == ['"never closed', "b\\", '"c" d', '"g"']
    assert main([str(lines), "-o", str(tmp_path / "no"), "--no-quotes"]) == 2
    assert "--no-quotes is about CSV and TSV" in capsys.readouterr().err


def test_wrong_columns_were_told_after_the_rows_were_written(spark, tmp_path, capsys):
    lines, page = tmp_path / "rows.jsonl", tmp_path / "page.html"
    lines.write_text('{"id": "a", "text": "x", "rank": 1}\n{"id": "a", "text": "y", "rank": 2}\n')
    page.write_text("<p>x</p>")
    for source, words, told in [
        (lines, ["--repeated-ids", "number", "--text", "body"], "no column 'body'"),
        (lines, ["--repeated-ids", "number", "--within", "site"], "no column 'url'"),
        (lines, ["--repeated-ids", "number", "--text", "rank"], "texts must be strings"),
        (page, ["--format", "warc", "--text", "body"], "no column 'body'"),
    ]:
        out = tmp_path / "out"
        assert main([str(source), "-o", str(out), *words]) == 1
        assert told in capsys.readouterr().err
        assert not list(out.rglob("*.parquet"))


def test_numbers_of_repeated_ids_met_other_ids(tmp_path, capsys):
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(f'{{"id": "{id}", "text": "x"}}\n' for id in ("a", "a", "a#2")))
    assert main([str(lines), "-o", str(tmp_path / "out"), "--repeated-ids", "number"]) == 1
    assert "for example 'a#2' (column \"numbered_id\")" in (told := capsys.readouterr().err)
    assert "some have a number, and other rows already had that name" in told


def test_damage_of_an_archive_was_untold_and_a_folder_was_one_task(spark, tmp_path, capsys):
    folder = CORPORA / "warc-samples"
    if not folder.is_dir():
        pytest.skip(f"the archives are not in {folder}")
    crawl, out = tmp_path / "crawl", tmp_path / "out"
    crawl.mkdir()
    for name in ("quirk-clipped.warc.gz", "cc-2024-whirlwind.warc.gz"):
        (crawl / name).write_bytes((folder / name).read_bytes())
    assert [file.path for file in _files(f"file://{crawl}", True)] == [
        str(crawl / "cc-2024-whirlwind.warc.gz"),
        str(crawl / "quirk-clipped.warc.gz"),
    ]
    assert main([f"file://{crawl}", "-o", str(out), "--format", "warc", "--method", "exact"]) == 3
    assert "quirk-clipped.warc.gz: damaged" in capsys.readouterr().err
    skipped = spark.read.parquet(str(out / "skipped.parquet")).collect()
    assert sorted((row["reason"].partition(":")[0], row["count"]) for row in skipped) == [("damaged", 1)]
    assert spark.read.parquet(str(out / "kept.parquet")).count() > 0


def test_pages_of_archives_had_no_site(spark, tmp_path):
    def record(url):
        page = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nthe same words on every page"
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\nContent-Length: {len(page)}"
        return head.encode() + b"\r\n\r\n" + page + b"\r\n\r\n"

    archive, out = tmp_path / "pages.warc", tmp_path / "out"
    urls = ["http://a.example/1", "http://a.example/2", "http://b.example/1"]
    archive.write_bytes(b"".join(map(record, urls)))
    assert main([str(archive), "-o", str(out), "--within", "site"]) == 0
    expected = lk.dedup(archive, within="site", progress=False)
    assert [row["url"] for row in expected.removed] == ["http://a.example/2"]
    removed = spark.read.parquet(str(out / "removed.parquet")).collect()
    assert [row["id"] for row in removed] == ["http://a.example/2"]


def test_a_picture_in_a_folder_ended_the_job(spark, tmp_path):
    pages = tmp_path / "pages"
    (pages / "deep").mkdir(parents=True)
    (pages / "deep" / "a.txt").write_text("a text of some words")
    picture = pages / "logo.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    for given in (pages, f"{pages}/*"):
        found = lks.read_archives(spark, given, losses=True).collect()
        # A file that is not a document is no loss.
        assert [(row["text"], row["reason"]) for row in found] == [("a text of some words", None)]
        # The caller asks for all files.
        assert lks.read_archives(spark, given, skip_unreadable=True).count() == 1
    assert lks.read_archives(spark, picture, skip_unreadable=True).count() == 0
    # A file that is named must be readable.
    with pytest.raises(Exception, match="logo.png"):
        lks.read_archives(spark, picture).collect()


def test_a_file_that_went_after_its_folder_was_listed_ended_the_job(spark, tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("a.txt", "b.txt"):
        (pages / name).write_text(f"a text of some words in {name}")
    listed, named = (lks.read_archives(spark, given, losses=True) for given in (pages, [pages / "a.txt", pages / "b.txt"]))
    (pages / "b.txt").unlink()
    rows = {row["source"]: row for row in listed.collect()}
    assert rows[str(pages / "a.txt")]["text"] == "a text of some words in a.txt"
    lost = rows[str(pages / "b.txt")]
    assert (lost["text"], lost["count"]) == (None, 1) and lost["reason"].startswith("unreadable: ")
    with pytest.raises(Exception, match="b.txt"):
        named.collect()


class _Bucket(http.server.BaseHTTPRequestHandler):
    """Answers requests for a list of objects (ListObjectsV2) as S3 does, for one bucket."""

    NAMES = ["crawl/b.warc.gz", "crawl/a.warc.gz", "crawl/deep/c.warc.gz", "crawl/list.txt", "other/d.warc.gz"]

    def do_GET(self):
        bucket, _, query = self.path.partition("?")
        told = dict(urllib.parse.parse_qsl(query))
        if bucket != "/pages" or told.get("list-type") != "2":
            self.send_error(404)
            return
        found = [name for name in self.NAMES if name.startswith(told.get("prefix", ""))]
        entry = "<Contents><Key>{}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        listed = "".join(map(entry.format, found))
        body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def bucket(monkeypatch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Bucket) as server:
        threading.Thread(target=server.serve_forever).start()
        settings = {"ENDPOINT": f"http://127.0.0.1:{server.server_port}", "ALLOW_HTTP": "true", "SKIP_SIGNATURE": "true", "REGION": "nowhere"}
        for name, value in settings.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield "s3://pages"
        server.shutdown()


def test_all_objects_of_a_folder_or_a_pattern_were_one_task(spark, bucket):
    assert _files(f"{bucket}/crawl/*.warc.gz", False) == [(f"{bucket}/crawl/{name}.warc.gz", True) for name in "ab"]
    folder = [f"{bucket}/crawl/{name}" for name in ("a.warc.gz", "b.warc.gz", "deep/c.warc.gz", "list.txt")]
    assert _files(f"{bucket}/crawl/", False) == [(name, True) for name in folder]
    # A single object is not looked up, nor a store that the engine does not know.
    for name in (f"{bucket}/crawl/none.warc.gz", "hdfs://pages/a.warc"):
        assert _files(name, False) == [(name, False)]
    with pytest.raises(lk.BadInput, match="crawl-of-2025"):
        lks.read_archives(spark, f"{bucket}/crawl-of-2025/*")
    with pytest.raises(lk.LookalikeError, match="s3://others/crawl/"):
        lks.read_archives(spark, "s3://others/crawl/*.gz")


def test_ids_of_two_crawls_ended_the_job_and_results_were_no_input(spark, tmp_path, capsys):
    sources = [tmp_path / f"crawl-{at}.jsonl" for at in range(2)]
    for at, source in enumerate(sources):
        source.write_text("".join(json.dumps({"page": {"url": f"u{n}"}, "text": f"text {n} of crawl {at}"}) + "\n" for n in range(2)))
    out = tmp_path / "out"
    words = ["--id", "page.url", "--method", "exact"]
    assert main([*map(str, sources), *words, "-o", str(out)]) == 1
    assert "--repeated-ids number" in capsys.readouterr().err
    numbered = [*map(str, sources), *words, "-o", str(out), "--repeated-ids", "number"]
    # There are stages without numbered ids.
    assert main(numbered) == 1
    assert "--overwrite discards them" in capsys.readouterr().err
    assert main([*numbered, "--overwrite"]) == 0
    kept = spark.read.parquet(str(out / "kept.parquet")).collect()
    assert {(row["numbered_id"], row["text"][-1]) for row in kept} == {("u0", "0"), ("u1", "0"), ("u0#2", "1"), ("u1#2", "1")}
    # The results can be given as --against.
    capsys.readouterr()
    assert main([str(sources[0]), *words, "-o", str(tmp_path / "new"), "--against", str(out), "--format", "json"]) == 1
    assert "ids belong to several rows" in capsys.readouterr().err


def test_a_second_object_on_a_line_was_lost_untold(spark, tmp_path, capsys):
    lines = tmp_path / "rows.jsonl"
    bad = ['{"id":"a","text":"x {y}"}{"id":"b","text":"z"}', '{"id":"e","text":"x"} trailing', '[{"id":"q","text":"x"}]', "[]"]
    lines.write_text("\n".join([*bad, "", '{"id":"g","text":"good } \\" x","more":{"k":1}}']))
    out = tmp_path / "out"
    assert main([str(lines), "-o", str(out)]) == 3
    assert [row["id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()] == ["g"]
    assert sorted(row["row"] for row in spark.read.parquet(str(out / "skipped.parquet")).collect()) == sorted(bad)
    lines.write_text('{"id":"f","text":"x","text":"y"}\n')
    assert main([str(lines), "-o", str(tmp_path / "repeated")]) == 1
    assert "a line repeats a name" in capsys.readouterr().err


def test_numbered_ids_of_older_files_were_taken_for_those_of_newer_ones(spark, tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "1.jsonl").write_text('{"url":"u1","key":"k1","text":"one two three four five six"}\n')
    words = [f"{source}/*.jsonl", "-o", str(out), "--repeated-ids", "number", "--method", "exact"]

    def kept(*more):
        assert main([*words, *more, "--overwrite"]) == 0
        return {row["numbered_id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()}

    assert kept("--id", "url") == {"u1"}
    (source / "2.jsonl").write_text('{"url":"u2","key":"k2","text":"a second file with other words"}\n')
    assert kept("--id", "url") == {"u1", "u2"}
    assert kept("--id", "key") == {"k1", "k2"}


def test_documents_to_compare_with_were_replaced_by_the_results(spark, tmp_path, capsys):
    first, second, day = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "day"
    first.write_text('{"id":"a","text":"one two three four five six"}\n')
    second.write_text('{"id":"b","text":"completely new text of the second day"}\n')
    words = ["-o", str(day), "--method", "exact"]
    assert main([str(first), *words]) == 0
    for against in [str(day), f"file:{day}", str(day / "kept.parquet")]:
        assert main([str(second), *words, "--against", against, "--overwrite"]) == 1
        assert "would replace" in capsys.readouterr().err
    assert spark.read.parquet(str(day / "kept.parquet")).count() == 1


def test_inputs_were_replaced_before_they_were_read(spark, tmp_path, capsys):
    file, out = tmp_path / "in.jsonl", tmp_path / "out"
    file.write_text('{"id":"a","text":"one two three four five six"}\n')
    words = ["-o", str(out), "--method", "exact", "--overwrite"]
    assert main([str(file), *words]) == 0
    for path in [str(out), str(out / "kept.parquet"), f"file:{out}/kept.parquet", f"{out}/k*.parquet"]:
        assert main([path, "--format", "parquet", *words]) == 1
        assert "would replace" in capsys.readouterr().err
    assert spark.read.parquet(str(out / "kept.parquet")).count() == 1
    assert main([str(tmp_path), "--format", "json", *words]) == 1
    assert "is within the input" in capsys.readouterr().err


def test_files_in_folders_within_a_folder_were_lost_untold(spark, tmp_path, capsys):
    line = '{"id":"%s","text":"%s has words of its own"}\n'
    folder = tmp_path / "in"
    (folder / "sub" / "deeper").mkdir(parents=True)
    for name in ["a", "sub/b", "sub/deeper/c"]:
        (folder / f"{name}.jsonl").write_text(line % (name[-1], name))
    out = tmp_path / "out"
    words = ["--format", "json", "-o", str(out), "--method", "exact"]
    assert main([str(folder), *words]) == 0
    assert {row["id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()} == {"a", "b", "c"}
    # Partition folders can be read, but not beside other folders.
    (folder / "day=1").mkdir()
    (folder / "day=1" / "d.jsonl").write_text(line % ("d", "d"))
    assert main([str(folder / "day=1"), *words, "--overwrite"]) == 0
    assert main([str(folder), *words, "--overwrite"]) == 1
    assert "NAME=VALUE" in capsys.readouterr().err


def test_names_that_spark_leaves_out_or_reads_as_patterns_are_refused(spark, tmp_path, capsys):
    for name, told in [("_b.jsonl", "leaves out files whose names begin with _"), ("data[1].jsonl", "reads as a pattern")]:
        (tmp_path / name).write_text('{"id":"a","text":"one two three"}\n')
        assert main([str(tmp_path / name), "-o", str(tmp_path / "out")]) == 1
        assert told in capsys.readouterr().err


def test_json_in_single_quotes_and_values_that_are_no_json_were_read(spark, tmp_path):
    file, out = tmp_path / "in.jsonl", tmp_path / "out"
    file.write_text('{"id":"a","text":"one two three"}\n{\'id\':\'b\',\'text\':\'four five\'}\n{"id":"c","text":"six","score":NaN}\n')
    assert main([str(file), "-o", str(out), "--method", "exact"]) == 3
    assert [row["id"] for row in spark.read.parquet(str(out / "kept.parquet")).collect()] == ["a"]
    assert spark.read.parquet(str(out / "skipped.parquet")).count() == 2


def test_archives_in_folders_within_a_folder_were_not_read_again(spark, tmp_path):
    samples = sorted((CORPORA / "warc-samples").glob("*.warc*"))[:2]
    if len(samples) < 2:
        pytest.skip(f"no web archives in {CORPORA}")
    below, words = tmp_path / "in" / "sub", ["--format", "warc", "--work-dir", str(tmp_path / "work"), "--method", "exact", "--repeated-ids", "number"]
    below.mkdir(parents=True)
    counts = []
    for sample in samples:
        (below / sample.name).write_bytes(sample.read_bytes())
        assert main([str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--overwrite", *words]) in (0, 3)
        counts.append(json.loads(spark.read.text(str(tmp_path / "out" / "run.json")).collect()[0]["value"])["counts"]["documents"])
    assert counts[1] > counts[0] > 0


def test_columns_that_only_some_tables_have_were_dropped(spark, tmp_path):
    spark.createDataFrame([("a", "one two three")], "id string, text string").write.parquet(str(tmp_path / "in" / "1.parquet"))
    rows = spark.createDataFrame([("b", "four five six", "MIT")], "id string, text string, license string")
    rows.write.mode("append").parquet(str(tmp_path / "in" / "1.parquet"))
    assert main([str(tmp_path / "in" / "1.parquet"), "-o", str(tmp_path / "out"), "--method", "exact"]) == 0
    kept = spark.read.parquet(str(tmp_path / "out" / "kept.parquet"))
    assert {(row["id"], row["license"]) for row in kept.collect()} == {("a", None), ("b", "MIT")}


def lines_of(path, rows):
    """Writes rows as a file of JSON lines, and returns its name."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def clusters_of(spark, folder):
    """Returns the survivor of each removed document."""
    rows = spark.read.parquet(f"{folder}/clusters.parquet").collect()
    return {member["id"]: row["survivor"] for row in rows for member in row["members"]}


def test_results_of_one_front_were_none_for_the_other(spark, tmp_path, capsys):
    words = [f"w{at}" for at in range(100)]
    kept, removed = " ".join([*words, "tail"]), " ".join([*words[:92], *(f"x{at}" for at in range(8))])
    new = " ".join([*(f"y{at}" for at in range(8)), *removed.split()[8:]])
    monday = lines_of(tmp_path / "mon.jsonl", [{"id": "K", "text": kept}, {"id": "R", "text": removed}])
    # X resembles R, which was removed on Monday, and not K.
    tuesday = lines_of(tmp_path / "tue.jsonl", [{"id": "X", "text": new}, {"id": "Y", "text": kept}])
    of_spark, of_command = tmp_path / "spark", tmp_path / "command"
    command = [sys.executable, "-m", "lookalike", "dedup"]
    assert main([monday, "-o", str(of_spark)]) == 0
    subprocess.run([*command, monday, "-o", of_command], check=True)
    for earlier in (of_spark, of_command):
        out = tmp_path / f"after-{earlier.name}"
        assert main([tuesday, "-o", str(out), "--against", str(earlier)]) == 0
        assert clusters_of(spark, out) == {"Y": "K"}
        out = tmp_path / f"command-after-{earlier.name}"
        subprocess.run([*command, tuesday, "-o", out, "--against", earlier], check=True)
        told = json.loads((out / "clusters.jsonl").read_text())
        assert (told["survivor"], [member["id"] for member in told["members"]]) == ("K", ["Y"])
    spark.range(0).selectExpr("'' as value").write.mode("overwrite").text(str(of_spark / "run.json"))
    capsys.readouterr()
    assert main([tuesday, "-o", str(tmp_path / "none"), "--against", str(of_spark)]) == 1
    assert "not finished" in capsys.readouterr().err


def table_of_bytes(path):
    """Writes a table whose second row has a text that is not UTF-8, as Spark and others may."""
    offsets = pyarrow.array([0, 6, 12, 18], pyarrow.int32()).buffers()[1]
    texts = pyarrow.StringArray.from_buffers(3, offsets, pyarrow.py_buffer(b"ab cde" b"ab\xffcde" b"ab cde"))
    pyarrow.parquet.write_table(pyarrow.table({"id": ["x", "y", "z"], "text": texts}), path)
    return str(path)


def test_a_text_that_is_not_utf8_ended_the_job_without_its_row(spark, tmp_path, capsys):
    table, out = table_of_bytes(tmp_path / "rows.parquet"), str(tmp_path / "out")
    assert main([table, "-o", out]) == 3
    told = capsys.readouterr().err
    assert "2 documents" in told
    assert "skipped: 1 in" in told and "rows.parquet: not-utf8: column text" in told
    skipped = spark.read.parquet(f"{out}/skipped.parquet").collect()
    assert [(row["row"], row["count"]) for row in skipped] == [("y", 1)]
    assert {row["id"] for row in spark.read.parquet(f"{out}/kept.parquet", f"{out}/removed.parquet").collect()} == {"x", "z"}
    data = spark.read.parquet(table)
    with pytest.raises(lk.BadInput, match="the text of the document 'y' is not UTF-8.*make_valid_utf8"):
        lks.dedup(data, id="id", work_dir=str(tmp_path / "work"))
    with pytest.raises(lk.BadInput, match="an id is not UTF-8"):
        lks.dedup(data.select(functions.col("text").alias("id"), functions.col("id").alias("text")), id="id", work_dir=str(tmp_path / "ids"))
    for call in [lambda: lks.fingerprint(data, id="id").collect(), lambda: lks.overlap(data, id="id", work_dir=str(tmp_path / "chunks"))]:
        with pytest.raises(Exception, match="the text of the document 'y' is not UTF-8"):
            call()
    # Before Spark 4.1, functions get strings of Python, in which Spark has replaced such bytes.
    if hasattr(functions, "arrow_udf"):
        lks.register(spark)
        with pytest.raises(Exception, match="a text is not UTF-8"):
            spark.sql("select lookalike_simhash(cast(X'61ff62' as string))").collect()


def test_numbers_among_ids_of_strings_got_other_digits(spark, tmp_path, capsys):
    ids = ['"doc-1"', "1.50", "1.5", "1e2", "7", "-8", "123456789012345678901234567890", '"2.50"', '"1e2"']
    source, out = tmp_path / "rows.jsonl", str(tmp_path / "out")
    source.write_text("".join(f'{{"id":{id},"text":"text number {at}"}}\n' for at, id in enumerate(ids)))
    assert main([str(source), "-o", out, "--method", "exact"]) == 3
    assert "skipped: 3 in" in capsys.readouterr().err
    kept = {row["id"] for row in spark.read.parquet(f"{out}/kept.parquet").collect()}
    assert kept == {"doc-1", "7", "-8", "123456789012345678901234567890", "2.50", "1e2"}
    skipped = [json.loads(row["row"])["text"] for row in spark.read.parquet(f"{out}/skipped.parquet").collect()]
    assert sorted(skipped) == ["text number 1", "text number 2", "text number 3"]


def test_lines_that_are_not_utf8_lost_their_bytes_and_blank_ones_were_losses(spark, tmp_path, capsys):
    source, out = tmp_path / "rows.jsonl", str(tmp_path / "out")
    lines = [b'{"id":"a","text":"caf\xe9 au lait"}', b"\t", b" \r", b'\t{"id":"b",\r"text":"caf\xc3\xa9 \xef\xbf\xbd"}\r', b"\r", b'{"id":"c","text":"x"}']
    source.write_bytes(b"\n".join(lines))
    assert main([str(source), "-o", out, "--method", "exact"]) == 3
    assert "skipped: 1 in" in (told := capsys.readouterr().err) and "not-utf8: Spark replaces bytes" in told
    kept = {row["id"]: row["text"] for row in spark.read.parquet(f"{out}/kept.parquet").collect()}
    assert kept == {"b": "caf\u00e9 \ufffd", "c": "x"}
    assert [row["row"] for row in spark.read.parquet(f"{out}/skipped.parquet").collect()] == ['{"id":"a","text":"caf\ufffd au lait"}']
    assert main([str(source), "-o", str(tmp_path / "none"), "--strict"]) == 1
    assert "not-utf8" in capsys.readouterr().err
    source.write_bytes(b"\n".join(lines[1:]))
    assert main([str(source), "-o", str(tmp_path / "whole"), "--strict"]) == 0


def test_rows_that_a_quote_swallowed_in_the_last_column_were_lost_untold(spark, tmp_path, capsys):
    table, out = tmp_path / "rows.tsv", str(tmp_path / "out")
    table.write_text('id\ttext\n1\t"I went home.\n2\tAnd then I slept."\n3\tNothing.\n4\t"Two lines\nof prose"\n5\tx\t y\n')
    assert main([str(table), "-o", out, "--method", "exact"]) == 3
    told = capsys.readouterr().err
    assert "note: 1 in" in told and "swallowed-rows" in told and "--no-quotes" in told
    assert "skipped: 1 in" in told and "3 documents" in told
    run = json.loads(spark.read.text(f"{out}/run.json").collect()[0]["value"])
    assert ([row["count"] for row in run["notes"]], run["counts"]["unreadable"]) == ([1], 1)
    noted = spark.read.parquet(f"{out}/skipped.parquet").where("reason like 'swallowed-rows%'").collect()
    assert [row["row"] for row in noted] == ["1\tI went home.\n2\tAnd then I slept."]
    table.write_text(table.read_text().replace("5\tx\t y\n", ""))
    assert main([str(table), "-o", str(tmp_path / "strict"), "--strict", "--method", "exact"]) == 0
    comma = tmp_path / "rows.csv"
    comma.write_text('id,text,lang\n1,"I went.,en\n2,Then I slept.",en\n3,"Dear Sir,\nHello, you",en\n4,a,b\n')
    capsys.readouterr()
    assert main([str(comma), "-o", str(tmp_path / "comma"), "--method", "exact"]) == 0
    assert "note: 1 in" in capsys.readouterr().err


def test_bytes_of_tables_that_are_not_utf8_were_replaced_untold(spark, tmp_path, capsys):
    table, out = tmp_path / "rows.csv", str(tmp_path / "out")
    table.write_bytes(b'id,text\n1,caf\xe9\n2,"caf\xc3\xa9\n\xe9"\n3,\xef\xbf\xbd\n4,plain\n5,\n')
    assert main([str(table), "-o", out, "--method", "exact"]) == 3
    assert "skipped: 3 in" in (told := capsys.readouterr().err) and "not-utf8" in told
    kept = {row["id"]: row["text"] for row in spark.read.parquet(f"{out}/kept.parquet").collect()}
    assert kept == {"4": "plain", "5": ""}
    table.write_bytes(b"id,text\n3,\xef\xbf\xbd\n4,plain\n")
    assert main([str(table), "-o", str(tmp_path / "whole"), "--method", "exact"]) == 0


def test_documents_without_a_text_were_untold(spark, tmp_path, capsys):
    source = lines_of(tmp_path / "rows.jsonl", [{"id": "a", "text": "one two"}, {"id": "b", "text": None}, {"id": "c"}, {"id": "d", "text": ""}])
    assert main([source, "-o", str(tmp_path / "out"), "--method", "exact"]) == 0
    assert "4 documents" in (told := capsys.readouterr().err) and "note: 2 without a text" in told
    none = lines_of(tmp_path / "none.jsonl", [{"id": "a", "text": None}, {"id": "b"}])
    assert main([none, "-o", str(tmp_path / "no text"), "--against", source]) == 1
    assert "none of the 2 rows has a text: name the column of the texts with --text" in capsys.readouterr().err
