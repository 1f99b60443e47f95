"""Overlap and evaluation: the same results as the command on the same documents."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import warnings
from functools import partial
from pathlib import Path

import pytest
from conftest import pages

import lookalike as lk
from lookalike import _documents


@pytest.fixture
def spread_rows() -> list[dict[str, object]]:
    """Returns documents of a few sentences on three sites, many of which share sentences."""
    texts = [". ".join(" ".join(text.split()[at : at + 8]).capitalize() for at in range(0, 40, 8)) for text in pages(60, seed=4)]
    return [{"id": f"d{at}", "url": f"http://s{at % 3}.example/{at}", "text": text} for at, text in enumerate(texts)]


@pytest.fixture
def spread_file(spread_rows, tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in spread_rows), encoding="utf-8")
    return file


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_pairs_share_the_sentences_that_sets_of_them_share(spread_rows):
    found = lk.overlap(spread_rows, id="id", chunk="sentences", copies="listed").pairs.to_pylist()
    sets = {row["id"]: {part for part in row["text"].split(". ") if part} for row in spread_rows}
    ids = sorted(sets)
    expected = {(a, b): len(sets[a] & sets[b]) for at, a in enumerate(ids) for b in ids[at + 1 :] if sets[a] & sets[b]}
    assert expected
    assert {(row["a"], row["b"]): row["shared"] for row in found} == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunk": "sentences"}, ["--chunk", "sentences"]),
        ({"chunk": "words:3:sliding", "min_shared": 5}, ["--chunk", "words:3:sliding", "--min-shared", "5"]),
        ({"chunk": "words:2", "case": "keep", "segment": "word-chars"}, ["--chunk", "words:2", "--case", "keep", "--segment", "word-chars"]),
        ({"chunk": "chars:20:sliding", "normalize": "nfkc"}, ["--chunk", "chars:20:sliding", "--normalize", "nfkc"]),
        ({"chunk": "fields:3"}, ["--chunk", "fields:3"]),
        ({"chunk": "sentences", "by": "server"}, ["--chunk", "sentences", "--by", "server"]),
        ({"chunk": "sentences", "min_containment": 0.5}, ["--chunk", "sentences", "--min-containment", "0.5"]),
    ],
)
def test_frames_and_files_have_the_overlap_that_the_command_prints(spread_rows, spread_file, command, options, said):
    expected = lines(command("overlap", spread_file, *said, "--copies", "listed", "--quiet"))
    assert expected
    for data, named in ((spread_file, {}), (spread_rows, {"id": "id"})):
        result = lk.overlap(data, copies="listed", **named, **options)
        assert result.pairs.to_pylist() == expected
        assert result.counts["documents"] == len(spread_rows)


def test_chinese_words_are_found_where_fields_are_whole_lines():
    rows = [{"id": name, "text": text} for name, text in [("a", "为了维护正常的教育教学秩序，制定本条例。"), ("b", "根据国家规定，为了维护正常的教育教学秩序！")]]
    shared = {chunk: [row["shared"] for row in lk.overlap(rows, id="id", chunk=chunk).pairs.to_pylist()] for chunk in ("words:8:sliding", "fields:1")}
    assert shared == {"words:8:sliding": [6], "fields:1": []}


def test_ctrl_c_ends_the_count_soon():
    program = textwrap.dedent("""
        import os, signal, threading, time
        import lookalike as lk
        from conftest import WORDS
        # Every two of forty thousand documents share chunks: 800 million pairs, far more than some seconds of work.
        rows = [f"{WORDS[at % len(WORDS)]} {WORDS[at % 19]} {WORDS[at % 17]} {at}" for at in range(40_000)]
        def interrupt_the_count(stage, done, total):
            global told
            if stage == "compare" and not told:
                told = True
                threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        told = False
        try:
            lk.overlap(rows, chunk="words:1", progress=interrupt_the_count, threads=1)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=False, timeout=120, cwd=Path(__file__).parent,
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_a_sweep_is_ended_by_its_callback(spread_rows):
    class Enough(Exception):
        pass

    seen = []

    def stop(stage, done, total):
        if stage == "measure" and done:
            seen.append(done)
            raise Enough

    # Make the texts different: copies would be set aside, and the rest measured before the callback is called.
    rows = [{**row, "text": f"{row['text']} {edition}"} for edition in range(20) for row in spread_rows]
    with pytest.raises(Enough):
        lk.evaluate.sweep(rows, text="text", progress=stop, threads=1)
    assert seen


def test_an_atlas_has_servers_copies_and_a_page(spread_rows, spread_file, command, tmp_path):
    result = lk.overlap([*spread_rows, {**spread_rows[0], "id": "again"}], id="id", chunk="sentences")
    assert any("again" in [row["id"], *row["copies"]] for row in result.copies.to_pylist())
    assert {row["a"] for row in result.servers.to_pylist()} <= {"s0.example", "s1.example", "s2.example"} and len(result.servers)
    for table in (result.mirrors, result.mirror_pages, result.aliases, result.skip):
        assert table.column_names
    assert "<html" in result.report() and "pairs that share chunks" in repr(result)
    folder = result.save(tmp_path / "atlas")
    assert (folder / "run.json").exists() and (folder / "pairs.parquet").exists()
    with pytest.raises(FileExistsError):
        result.save(folder)
    result.save(folder, overwrite=True)


def test_page_sets_have_core_and_approximate_servers():
    texts = [f"{text} page {at}" for at, text in enumerate(pages(20, seed=9))]
    rows = [
        {"id": f"{server}-{at}", "url": f"http://s{server}.example/{at}", "ip": f"192.0.2.{server}", "text": text}
        for server in range(10)
        for at, text in enumerate(texts)
        if (server, at) != (3, 5)
    ]
    result = lk.overlap(rows, id="id", chunk="words:5:sliding", min_shared=3)
    (found,) = result.mirrors.to_pylist()
    assert (found["pages"], found["servers"], found["held"]) == (20, 10, 199)
    assert found["core"] == [f"s{server}.example" for server in range(10) if server != 3]
    assert found["approximate"] == [{"server": "s3.example", "share": 0.95}]
    assert {row["share"] for row in result.mirror_pages.to_pylist()} == {1.0, 0.9}
    # The same paths at ten addresses are mirrors; without addresses they could be one server.
    assert len(result.aliases) == 0 and result.counts["apart_by_address"] == 9
    nowhere = [{name: value for name, value in row.items() if name != "ip"} for row in rows]
    (alias,) = lk.overlap(nowhere, id="id", chunk="words:5:sliding", min_shared=3).aliases.to_pylist()
    assert (len(alias["servers"]), min(alias["shared"]), alias["address"]) == (10, 19, "unknown")


def test_options_of_the_command_only_and_wrong_ones_are_refused(spread_rows):
    with pytest.raises(TypeError, match="command only"):
        lk.overlap(spread_rows, resume=True)
    with pytest.raises(ValueError, match="chunk"):
        lk.overlap(spread_rows, chunk="pages:2")
    with pytest.raises(ValueError, match="words:N"):
        lk.overlap(spread_rows, chunk="fields:2", case="keep")
    with pytest.raises(ValueError, match="no column"):
        lk.overlap(spread_rows, text="body")
    with pytest.raises(ValueError, match='no document has a server.* server="field:NAME" or server="path:N"'):
        lk.overlap(["one two three", "two three four"], by="server")
    with pytest.raises(ValueError, match="min_containment 1.5 is not a share from 0 to 1"):
        lk.overlap(spread_rows, min_containment=1.5)


def test_an_audit_counts_what_the_command_counts(spread_rows, spread_file, command):
    said = ["--method", "simhash", "--distance", "6", "--threshold", "0.5", "--sample", "60", "--json"]
    (expected,) = lines(command("evaluate", "audit", spread_file, *said))
    for data, named in ((spread_file, {}), (spread_rows, {"id": "id"})):
        audit = lk.evaluate.audit(data, method="simhash", distance=6, threshold=0.5, sample=60, **named)
        assert (audit.found, audit.true_pairs, audit.proposed) == (expected["found"], expected["true_pairs"], expected["proposed"])
        assert audit.recall.value == expected["recall"]["value"] and audit.true_pairs > 0
    # The sample is all different texts, so each pair is counted from both sides. Copies are set aside.
    different = list({row["text"]: row for row in spread_rows}.values())
    assert (audit.documents, audit.copies) == (len(different), len(spread_rows) - len(different))
    assert audit.true_pairs == len(lk.pairs(different, id="id", threshold=0.5))
    with pytest.raises(ValueError, match="exact"):
        lk.evaluate.audit(spread_rows, method="allpairs")


def test_labels_are_read_from_rows_and_files(spread_rows, spread_file, command, tmp_path):
    ids = [row["id"] for row in spread_rows]
    texts = {row["id"]: row["text"] for row in spread_rows}
    judged = [
        {"a": a, "b": b, "label": lk.resemblance(texts[a], texts[b]) >= 0.3} for at, a in enumerate(ids[:30]) for b in ids[at + 1 : 30]
    ]
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in judged))
    (expected,) = lines(command("evaluate", "labels", spread_file, "--labels", file, "--json"))
    for labels in (judged, file):
        found = lk.evaluate.labels(spread_rows, labels, id="id")
        # Labels that follow from the measure itself are reproduced without errors.
        assert found.best.f1 == 1.0 and found.labelled == len(judged)
        assert found.average_precision == expected["row"]["curve"]["average_precision"]
        assert found.curve["f1"].to_pylist() == [point["f1"] for point in expected["row"]["curve"]["points"]]
    clusters = [{"id": id, "cluster": at % 7} for at, id in enumerate(ids)]
    assert -1 <= lk.evaluate.labels(spread_rows, clusters, id="id", cut=0.5).adjusted_rand_index <= 1
    with pytest.raises(lk.LookalikeError, match="label"):
        lk.evaluate.labels(spread_rows, [{"a": "nobody", "b": ids[0], "label": True}], id="id")


def test_a_sweep_advises_what_the_command_advises(spread_rows, spread_file, command):
    said = {"threshold": 0.5, "shingles": "words:2,words:5", "sketches": "simhash:64,none", "weights": "set", "masks": "none"}
    words = [part for name, value in said.items() for part in (f"--{name}", value)]
    (expected,) = lines(command("evaluate", "sweep", spread_file, *words, "--json"))
    swept = lk.evaluate.sweep(spread_rows, id="id", **said)
    assert len(swept.settings) == 4 == len(expected["rows"])
    assert swept.settings["best_f1"].to_pylist() == [row["curve"]["best"]["f1"] for row in expected["rows"]]
    assert [advice.setting for advice in swept.advice] == [advice["setting"] for advice in expected["advice"]]
    assert swept.best.point.f1 == 1.0 and "documents.jsonl" in swept.best.command and "lookalike-" not in swept.best.command
    assert swept.curve(0)["recall"].to_pylist() == [point["recall"]["value"] for point in expected["rows"][0]["curve"]["points"]]


def test_records_that_cannot_be_read_are_a_warning(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 1, "text": "a rose is a rose"}\n{"id": 2, "text": "a rose is a flower"}\nno record\n')
    audit = partial(lk.evaluate.audit, file, method="simhash", distance=3, sample=2)
    # The message has no exit status, and names the option as the function does.
    with pytest.warns(UserWarning, match=r"1 record or file could not be read: \S*rows.jsonl, line 3: .*; see max_skipped$"):
        assert audit().documents == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert audit(max_skipped=1).documents == 2


@pytest.mark.parametrize("rows", [[b"a. b.", b"b. c."], [5, 6], [{"text": b"a. b."}], [{"text": 5}]])
def test_what_is_no_text_was_compared_in_the_words_that_show_it(rows):
    with pytest.raises(TypeError, match=r"texts must be strings, not (bytes|int) \(row 0\)"):
        lk.overlap(rows, chunk="sentences")
    with pytest.raises(TypeError, match="texts must be strings"):
        lk.evaluate.audit(rows, method="simhash", distance=3, sample=2)


def test_rows_with_numbers_that_json_has_not_were_left_out_of_the_overlap():
    rows = [{"text": "One. Two.", "score": float("nan")}, {"text": "Two. Three.", "score": 1.0}, {"text": "Four."}]
    assert [row["shared"] for row in lk.overlap(rows, chunk="sentences").pairs.to_pylist()] == [1]
    assert lk.evaluate.audit(rows, method="simhash", distance=3, sample=3).documents == 3
    labels = [{"a": "0", "b": "1", "label": False}, {"a": "1", "b": "2", "label": float("nan")}, {"a": "0", "b": "2", "label": True}]
    found = lk.evaluate.labels(rows, labels)
    assert (found.labelled, found.unknown) == (2, 1)


def test_a_row_that_cannot_be_read_again_was_left_out_of_the_overlap(monkeypatch):
    rows = [{"text": "One. Two."}, {"text": "Two. Three."}]
    monkeypatch.setattr(_documents, "json_text", lambda value: json.dumps(value).replace("Three", "\t"))
    with pytest.raises(lk.BadInput, match="row 1 cannot be written"):
        lk.overlap(rows, chunk="sentences")
    assert lk.overlap(rows, chunk="sentences", max_skipped=1).counts["documents"] == 1


def test_labels_of_a_frame_with_floats_as_ids_named_no_document():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    texts = ["a rose is a rose", "A rose is a rose!", "something else"]
    labels = pd.DataFrame({"a": [1, 1, 2], "b": [2, 3, 3], "label": [1, 0, 0]})
    # A merge with a missing row leaves such columns: whole numbers, or floats for want of a missing integer.
    floats = labels.astype({"a": float, "b": float})
    for ids in ([1, 2, 3], [1.0, 2.0, 3.0]):
        rows = pd.DataFrame({"id": ids, "text": texts})
        for given in (labels, floats, pa.table(floats)):
            found = lk.evaluate.labels(rows, given, id="id")
            assert (found.labelled, found.unknown, found.best.f1) == (3, 0, 1)
    clusters = pd.DataFrame({"id": [1.0, 2.0, 3.0], "cluster": [7.0, 7.0, 8.0]})
    assert lk.evaluate.labels(rows, clusters, id="id", cut=0.5).adjusted_rand_index == 1


def test_none_meant_another_method_chunk_or_mode():
    for call, name in [
        (lambda: lk.evaluate.audit(["a"], method=None), "method"),
        (lambda: lk.evaluate.labels(["a"], None), "labels"),
        (lambda: lk.overlap(["a"], chunk=None), "chunk"),
        (lambda: lk.extract("a", mode=None), "mode"),
    ]:
        with pytest.raises(TypeError, match=f"{name} must not be None"):
            call()


def test_the_counts_of_overlap_were_a_whole_summary_with_temporary_paths(tmp_path):
    file = tmp_path / "pages.jsonl"
    rows = [{"id": "http://a.example/", "text": "One. Two. Three."}, {"id": "http://b.example/", "text": "One. Two."}]
    file.write_text("\n".join([*map(json.dumps, rows), "no JSON"]))
    with pytest.warns(lk.LookalikeWarning):
        result = lk.overlap(file, chunk="sentences")
    counts = result.counts
    assert (counts["documents"], counts["unreadable"], counts["damaged"], counts["servers"], counts["skip"]) == (2, 1, 0, 2, 1)
    assert [(chunking["chunking"], chunking["rows"]) for chunking in counts["chunkings"]] == [("sentences", 1)]
    run = json.loads((result.save(tmp_path / "saved") / "run.json").read_text())
    assert {name: counts[name] for name in ("levels", "mirrored_pages", "aliases")} == {name: run[name] for name in ("levels", "mirrored_pages", "aliases")}
    assert "lookalike-" not in str(counts)
