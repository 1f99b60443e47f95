"""Sketches, schemes, indexes, joins and extraction."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest
from conftest import pages

import lookalike as lk


def test_fingerprints_are_those_of_the_command(command, tmp_path):
    texts = pages(300)
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(texts)))
    printed = [json.loads(line) for line in command("fingerprint", file, "--quiet").stdout.splitlines()]
    by_id = {int(line["id"]): int(line["fingerprint"], 16) for line in printed}
    assert lk.simhash(texts).to_pylist() == [by_id[at] for at in range(len(texts))]


def test_sketches_do_not_depend_on_threads_or_chunks():
    texts = [*pages(2000), None, ""] * 2
    for sketch in (lk.simhash, lk.minhash, lk.features):
        one = sketch(texts, threads=1).to_pylist()
        assert sketch(texts, threads=3).to_pylist() == one
        assert sketch(iter(texts)).to_pylist() == one
        assert sketch(texts[:1000]).to_pylist() + sketch(texts[1000:]).to_pylist() == one


def test_resemblance_is_the_share_of_common_features():
    texts = pages(60)
    sets = [set(features) for features in lk.features(texts).to_pylist()]
    expected = [len(a & b) / len(a | b) for a, b in zip(sets, sets[1:])]
    assert lk.resemblance(texts[:-1], texts[1:]).to_pylist() == pytest.approx(expected)
    assert lk.resemblance(texts[0], texts[1]) == pytest.approx(expected[0])


def test_signatures_agree_about_as_often_as_sets_do():
    a = " ".join(f"w{at}" for at in range(400))
    b = " ".join(f"w{at}" for at in range(100, 500))
    one, other = lk.minhash([a, b], 1024, scheme=lk.Scheme(shingle="words:1")).to_pylist()
    agreement = sum(x == y for x, y in zip(one, other)) / 1024
    # 300 of 500 words are common; four standard deviations are .061.
    assert agreement == pytest.approx(0.6, abs=0.062)


def test_texts_without_features_have_no_sketch():
    assert lk.simhash(["a", "", None]).to_pylist()[1:] == [None, None]
    assert lk.minhash(["a", "", None], 2).to_pylist()[1:] == [None, None]
    assert lk.features(["a", "", None]).to_pylist()[1:] == [[], None]
    assert lk.simhash([]).to_pylist() == []
    assert lk.minhash([], 4).type == "list of uint32"


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([1], r"texts must be strings, not int \(row 0\)"),
        ("one text", "not one str"),
        (5, "not int"),
        ({"a": 1}, "not one dict"),
    ],
)
def test_what_are_no_texts_is_said(texts, told):
    for sketch in (lk.simhash, lk.minhash, lk.features):
        with pytest.raises(TypeError, match=told):
            sketch(texts)


def test_arguments_out_of_range_are_refused():
    with pytest.raises(ValueError, match="functions=0"):
        lk.minhash(["a"], 0)
    with pytest.raises(ValueError, match="threads=0"):
        lk.simhash(["a"], threads=0)
    with pytest.raises(ValueError, match="2 and 1"):
        lk.resemblance(["a", "b"], ["a"])


def test_schemes_are_values():
    scheme = lk.Scheme(shingle="chars:9", case="keep")
    assert scheme == lk.Scheme(str(scheme)) == pickle.loads(pickle.dumps(scheme)) == copy.deepcopy(scheme)
    assert scheme != lk.Scheme() and len({scheme, lk.Scheme(str(scheme))}) == 1
    assert eval(repr(scheme), {"Scheme": lk.Scheme}) == scheme
    assert len(scheme.id) == 16
    assert lk.simhash(["Some Text here"], scheme=scheme).to_pylist() != lk.simhash(["Some Text here"]).to_pylist()
    with pytest.raises(TypeError, match='no "shingel"'):
        lk.Scheme(shingel="words:5")
    with pytest.raises(ValueError, match="shingle="):
        lk.Scheme(shingle="words")
    with pytest.raises(ValueError):
        lk.Scheme("lookalike/1 nonsense")


def close(codes: list[int], queries: list[int], distance: int) -> list[tuple[int, int, int]]:
    found = [
        (query, row, bin(a ^ b).count("1")) for query, a in enumerate(queries) for row, b in enumerate(codes)
    ]
    return sorted(triple for triple in found if triple[2] <= distance)


@pytest.fixture
def codes() -> list[int]:
    import random

    draw = random.Random(5)
    centres = [draw.getrandbits(64) for _ in range(20)]
    flipped = [centre ^ (1 << draw.randrange(64)) ^ (1 << draw.randrange(64)) for centre in centres for _ in range(10)]
    return [*centres, *flipped, *centres[:5]]


@pytest.mark.parametrize("distance", [0, 1, 3, 6])
def test_an_index_finds_what_comparing_all_finds(codes, distance, tmp_path):
    queries = codes[::3] + [0, 2**64 - 1]
    expected = close(codes, queries, distance)
    built = lk.Index.build(codes, distance)
    saved = lk.Index.build(codes, distance, path=tmp_path / "codes.lkix")
    for index in (built, saved, lk.Index.open(tmp_path / "codes.lkix"), lk.Index.open(tmp_path / "codes.lkix", in_memory=True)):
        found = index.search(queries, threads=2).to_pylist()
        assert sorted((row["query"], int(row["id"]), row["distance"]) for row in found) == expected
        assert len(index) == len(codes) and index.distance == distance
    with pytest.raises(ValueError, match="build it again"):
        built.search(queries, distance + 1)


def test_an_index_keeps_ids_and_knows_its_scheme(tmp_path):
    texts = ["a rose is a rose", "else"]
    scheme = lk.Scheme(shingle="words:2")
    index = lk.Index.build(lk.simhash(texts, scheme=scheme), ids=["x", "y"], scheme=scheme, path=tmp_path / "i")
    assert index.scheme_id == lk.Scheme(str(scheme), sketch="simhash:64").id
    found = lk.Index.open(tmp_path / "i").search(lk.simhash(texts[:1], scheme=scheme), scheme=scheme)
    assert [(row["id"], row["distance"]) for row in found.to_pylist()] == [("x", 0)]
    with pytest.raises(lk.SchemeMismatch):
        index.search([1], scheme=lk.Scheme())
    with pytest.raises(ValueError, match="2 fingerprints but 1 ids"):
        lk.Index.build([1, 2], ids=["x"])
    (tmp_path / "no").write_bytes(b"no index")
    with pytest.raises(lk.LookalikeError, match="no"):
        lk.Index.open(tmp_path / "no")


@pytest.mark.parametrize("distance", [0, 2, 4])
def test_a_join_finds_what_comparing_all_finds(codes, distance):
    left, right = codes[:120], [*codes[60:], None]
    expected = close(right[:-1], left, distance)
    found = lk.join(left, right, distance).to_pylist()
    assert sorted((row["a"], row["b"], row["distance"]) for row in found) == expected
    own = [(a, b, d) for a, b, d in close(codes, codes, distance) if a < b]
    found = lk.join(codes, distance=distance, threads=2).to_pylist()
    assert [(row["a"], row["b"], row["distance"]) for row in found] == own


@pytest.fixture
def topic(command, tmp_path):
    """Returns texts of one topic with their ids, and the file of their fingerprints that the command makes with the preset."""
    texts = list(dict.fromkeys(pages(200)))[:100]
    rows = [{"id": f"p{at:03}", "text": text} for at, text in enumerate(texts)]
    rows += [{"id": f"q{at:03}", "text": f"{text} more"} for at, text in enumerate(texts)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command("fingerprint", tmp_path / "texts.jsonl", "--preset", "one-topic", "-o", tmp_path / "topic.lkfp", "--quiet")
    return rows, tmp_path / "topic.lkfp"


def test_a_preset_is_that_of_the_command(command, topic, tmp_path):
    rows, file = topic
    ids, texts = ([row[name] for row in rows] for name in ("id", "text"))
    command("fingerprint", "--import", file, "-o", tmp_path / "topic.jsonl", "--quiet")
    printed = map(json.loads, (tmp_path / "topic.jsonl").read_text().splitlines())
    by_id = {line["id"]: line["fingerprint"] for line in printed}
    codes = lk.simhash(texts, preset="one-topic")
    assert codes.to_pylist() == [by_id[id] for id in ids]
    assert len(set(by_id.values())) == len(ids)
    scheme = lk.Scheme(preset="one-topic")
    assert scheme == lk.Scheme(shingle="words:3", sketch="simhash:128")
    assert lk.simhash(texts, scheme=scheme).to_pylist() == codes.to_pylist()

    pairs = map(json.loads, command("join", file, "--preset", "one-topic", "--quiet").stdout.splitlines())
    expected = sorted((pair["a"], pair["b"], pair["distance"]) for pair in pairs)
    assert len(expected) > 50
    found = lk.join(codes, preset="one-topic").to_pylist()
    assert sorted((ids[row["a"]], ids[row["b"]], row["distance"]) for row in found) == expected
    two = lk.join(codes[:100], codes[100:], preset="one-topic").to_pylist()
    across = [pair for pair in expected if pair[0] < "q" <= pair[1]]
    assert sorted((ids[row["a"]], ids[100 + row["b"]], row["distance"]) for row in two) == across

    command("index", "build", file, "--preset", "one-topic", "-o", tmp_path / "command.lkix", "--quiet")
    lk.Index.build(codes, ids=ids, preset="one-topic", scheme=lk.Scheme(), path=tmp_path / "package.lkix")
    assert (tmp_path / "package.lkix").read_bytes() == (tmp_path / "command.lkix").read_bytes()
    index = lk.Index.open(tmp_path / "command.lkix")
    assert (index.distance, index.scheme_id, len(index)) == (12, scheme.id, len(ids))
    near = index.search(codes[:100], scheme=scheme).to_pylist()
    assert sorted((ids[row["query"]], row["id"], row["distance"]) for row in near if row["id"] >= "q") == across
    assert {row["code"] for row in near} <= set(by_id.values())


def test_wide_fingerprints_are_found_as_comparing_all_finds_them():
    import random

    draw = random.Random(7)
    centres = [draw.getrandbits(128) for _ in range(30)]
    codes = [centre ^ (1 << draw.randrange(128)) ^ (1 << draw.randrange(128)) for centre in centres for _ in range(4)]
    # A join ignores bits that never vary.
    for known in (2**128 - 1, 2**60 - 1, 2**20 - 1):
        own = [code & known for code in codes]
        digits = [*(f"{code:032x}" for code in own), None]
        expected = close(own, own, 3)
        found = lk.join(digits, [None, *digits], 3).to_pylist()
        assert sorted((row["a"], row["b"] - 1, row["distance"]) for row in found) == expected
        found = lk.join(digits, distance=3).to_pylist()
        assert [(row["a"], row["b"], row["distance"]) for row in found] == [triple for triple in expected if triple[0] < triple[1]]
        found = lk.Index.build(digits).search(digits).to_pylist()
        assert sorted((row["query"], int(row["id"]), row["distance"]) for row in found) == expected
    with pytest.raises(ValueError, match="64 bits and of 128"):
        lk.join([1], ["0" * 32])
    with pytest.raises(ValueError, match="128 bits, the queries are of 64"):
        lk.Index.build(["0" * 32]).search([1])
    for mixed in ([1, "0" * 32], ["0" * 32, 1], ["0" * 16, "0" * 32], ["0" * 15], ["g" * 32], [True]):
        with pytest.raises(TypeError, match="16 hexadecimal digits, or all strings of 32"):
            lk.join(mixed)


def test_fingerprints_of_64_bits_in_the_digits_of_the_command_were_refused(tmp_path):
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    texts = ["a rose is a rose", "a rose is a rose is a rose", "something else", "a rose is a rose"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(texts)))
    assert lk._lookalike.command(["lookalike", "fingerprint", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "codes.jsonl"), "--quiet"]) == 0
    digits = [json.loads(line)["fingerprint"] for line in (tmp_path / "codes.jsonl").read_text().splitlines()]
    codes = lk.simhash(texts)
    assert [int(code, 16) for code in digits] == codes.to_pylist()
    for given in (digits, pa.array(digits), pl.Series(digits)):
        assert lk.join(given, codes, 3).to_pylist() == lk.join(codes, codes, 3).to_pylist()
        assert lk.Index.build(given).search(codes).to_pylist() == lk.Index.build(codes).search(given).to_pylist()


@pytest.mark.parametrize("call", [partial(lk.simhash, ["a"]), partial(lk.join, [1]), partial(lk.Index.build, [1]), partial(lk.extract, ["a"])])
def test_true_was_one_thread(call):
    with pytest.raises(TypeError, match="a whole number is wanted, not True"):
        call(threads=True)


def test_a_preset_is_refused_beside_what_it_decides():
    narrow, wide = lk.simhash(["a rose is a rose"]), lk.simhash(["a rose is a rose"], preset="one-topic")
    kept = lk.Scheme(preset="one-topic", case="keep")
    assert "case=keep" in str(kept)
    assert lk.simhash(["A Rose is a rose"], scheme=kept, preset="one-topic").to_pylist() != wide.to_pylist()
    assert lk.join([None], preset="one-topic").to_pylist() == lk.join(lk.simhash([None], preset="one-topic"), preset="one-topic").to_pylist() == []
    for scheme in ({"shingle": "words:2"}, {"sketch": "simhash:64"}):
        with pytest.raises(ValueError, match="leave one of the two out"):
            lk.Scheme(preset="one-topic", **scheme)
        with pytest.raises(ValueError, match="leave one of the two out"):
            lk.simhash(["a"], scheme=lk.Scheme(**scheme), preset="one-topic")
        with pytest.raises(ValueError, match="leave one of the two out"):
            lk.Index.build(wide, scheme=lk.Scheme(**scheme), preset="one-topic")
    for function in (lk.join, lk.Index.build):
        with pytest.raises(ValueError, match="distance=3 and preset"):
            function(wide, distance=3, preset="one-topic")
        with pytest.raises(ValueError, match=r"64 bits, and preset=\"one-topic\" is for 128: make them with simhash"):
            function(narrow, preset="one-topic")
        with pytest.raises(ValueError, match="use one-topic"):
            function(wide, preset="news")
    with pytest.raises(ValueError, match="use one-topic"):
        lk.simhash(["a"], preset="news")


def test_a_scheme_of_32_bits_made_fingerprints_of_64():
    narrow = lk.Scheme(sketch="simhash:32")
    with pytest.raises(ValueError, match=r'use sketch="simhash:64" or "simhash:128"'):
        lk.simhash(["a rose is a rose"], scheme=narrow)
    codes, wide = lk.simhash(["a rose is a rose"]), lk.simhash(["a rose is a rose"], preset="one-topic")
    for given, scheme in [(codes, lk.Scheme(sketch="simhash:128")), (wide, lk.Scheme(sketch="simhash:64"))]:
        with pytest.raises(ValueError, match="give the scheme that made them"):
            lk.Index.build(given, scheme=scheme)
    with pytest.raises(ValueError, match="leave it out"):
        lk.Index.build(codes, scheme=narrow)


def test_wrong_fingerprints_are_refused():
    with pytest.raises(TypeError, match=r"2\*\*64"):
        lk.join([2**64])
    with pytest.raises(TypeError, match="not 'x'"):
        lk.Index.build(["x"])
    with pytest.raises(ValueError, match="distance=17"):
        lk.join([1], distance=17)
    with pytest.raises(ValueError, match='layout="x"'):
        lk.Index.build([1], layout="x")


def test_pages_become_their_texts(tmp_path):
    page = "<title>t</title><h1>Café</h1><p>Open <b>all</b> day<script>1</script>"
    assert lk.extract(page, mode="visible") == "Café\n\nOpen all day"
    assert lk.extract(page, mode="visible", title=True).startswith("t")
    assert lk.extract(page.encode("latin-1"), mode="visible") == "Café\n\nOpen all day"
    (tmp_path / "p.html").write_bytes(page.encode())
    assert lk.extract(tmp_path / "p.html", mode="visible") == "Café\n\nOpen all day"
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "text": "one"}\n{"id": "b", "html": "<p>two"}\n')
    assert lk.extract(tmp_path / "rows.jsonl")["id"].to_pylist() == ["a", "b"]
    several = lk.extract([tmp_path / "p.html", tmp_path / "rows.jsonl"], mode="visible")
    assert sorted(text for text in several["text"].to_pylist() if text) == ["Café\n\nOpen all day", "one", "two"]
    with pytest.raises(ValueError, match="nonsense"):
        lk.extract(tmp_path / "p.html", nonsense=1)
    with pytest.raises(TypeError, match="for paths only"):
        lk.extract(page, language=True)
    assert lk.extract([page, None, b"<p>x"], mode="visible").to_pylist() == ["Café\n\nOpen all day", None, "x"]
    with pytest.raises(ValueError, match="no"):
        lk.extract(page, mode="no")


def test_a_warning_names_arguments_and_comes_only_for_what_was_said(tmp_path, recwarn):
    file = tmp_path / "a.txt"
    file.write_text("a rose is a rose", encoding="utf-8")
    assert lk.extract(file) == "a rose is a rose"
    assert not recwarn.list
    with pytest.warns(UserWarning, match="^html had no effect"):
        lk.extract(file, mode="fast")


def test_explanations_of_texts_and_files(tmp_path):
    told = lk.explain("a rose is a rose is a rose", "a rose is a rose", method="simhash", distance=6)
    assert told.resemblance == pytest.approx(1 / 3)
    assert "resemblance" in str(told)
    assert told.to_dict()["shared"] == 1
    assert "<html" in told.to_html() and "<html" not in told._repr_html_()
    (tmp_path / "a.txt").write_text("one text of six words here")
    (tmp_path / "b.txt").write_text("one text of six words here")
    assert lk.explain(tmp_path / "a.txt", tmp_path / "b.txt").resemblance == 1
    with pytest.raises(ValueError):
        lk.explain("a", "b", method="none")


def test_options_that_are_words_of_python_are_told_with_an_underscore(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "a", "text": "a rose"}\n', encoding="utf-8")
    with pytest.raises(lk.LookalikeError, match='no record of in_ has the id "b": check the id'):
        lk.explain("a", "b", in_=file)


def test_arrays_and_tables_are_read_as_sequences():
    array = lk.simhash(["a", None])
    assert len(array) == 2 and array[-1] is None and array[0] == array.to_pylist()[0] and array.null_count == 1
    with pytest.raises(IndexError):
        array[2]
    table = lk.join([1, 1])
    assert len(table) == 1 and table.column_names == ["a", "b", "distance"] and table["b"].to_pylist() == [1]
    with pytest.raises(KeyError, match="no column"):
        table["c"]


def test_exceptions_survive_pickling():
    for error in (lk.BadInput("m", 3, "f"), lk.MemoryLimit("m", 5), lk.SchemeMismatch("m")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), "m", vars(error))
        assert isinstance(again, lk.LookalikeError)


def test_pairs_of_equal_fingerprints_beyond_the_memory_ended_the_process():
    numpy = pytest.importorskip("numpy")
    # There are eight trillion pairs, more than a processor can address.
    with pytest.raises(lk.MemoryLimit, match="7999998000000 pairs of equal fingerprints") as caught:
        lk.join(numpy.zeros(4_000_000, numpy.uint64))
    assert caught.value.needed >= 7_999_998_000_000 * 24
    assert len(lk.join([5] * 100)) == 100 * 99 // 2


def test_ctrl_c_was_not_heard_by_a_join_of_one_side():
    pytest.importorskip("numpy")
    program = textwrap.dedent("""
        import os, signal, threading
        import numpy, lookalike as lk
        codes = numpy.random.default_rng(1).integers(0, 2**64, 6_000_000, dtype=numpy.uint64)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            # Minutes of work.
            lk.join(codes, distance=9, threads=1)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr


def test_ctrl_c_was_not_heard_while_the_pairs_of_equal_fingerprints_were_made():
    pytest.importorskip("numpy")
    program = textwrap.dedent("""
        import os, resource, signal, threading
        import numpy, lookalike as lk
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            # 200 million pairs of 24 bytes.
            lk.join(numpy.full(20_000, 7, dtype=numpy.uint64))
        except KeyboardInterrupt:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "True\n", done.stdout + done.stderr


def test_the_name_of_a_scheme_with_parts_that_are_no_options_was_refused():
    scheme = lk.Scheme(str(lk.Scheme(seed=3)).replace("terms=none", "terms=0123456789abcdef"))
    assert scheme != lk.Scheme(seed=3)
    assert eval(repr(scheme), {"Scheme": lk.Scheme}) == scheme
    assert repr(lk.Scheme(shingle="words:3")) == 'Scheme(shingle="words:3")'


def test_hyphens_in_names_were_taken_for_options(tmp_path):
    with pytest.raises(lk.BadInput, match="/no--such--file.jsonl"):
        lk.dedup(tmp_path / "no--such--file.jsonl")
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "a", "text": "a rose"}\n', encoding="utf-8")
    with pytest.raises(lk.LookalikeError, match='no record of in_ has the id "b--c": check the id'):
        lk.explain("a", "b--c", in_=file)


def test_an_index_replaced_a_file_without_asking(tmp_path):
    path = tmp_path / "codes.lkix"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        lk.Index.build([1, 2], path=path)
    assert path.read_text() == "mine"
    lk.Index.build([1, 2], path=path, overwrite=True)
    assert len(lk.Index.open(path)) == 2


def test_a_file_beside_an_index_was_taken_for_its_half(tmp_path):
    (tmp_path / "codes.index.part").write_text("mine")
    lk.Index.build([1, 2], path=tmp_path / "codes.index")
    assert (tmp_path / "codes.index.part").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"codes.index", "codes.index.part"}
    with pytest.raises(lk.LookalikeError, match="nowhere"):
        lk.Index.build([1, 2], path=tmp_path / "nowhere" / "codes.index")


def _available_memory() -> int:
    """Bytes that processes can have: free pages, and on Linux the page cache too."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def test_more_than_two_gigabytes_of_texts_did_not_fit_a_column():
    pyarrow = pytest.importorskip("pyarrow")
    if _available_memory() < 8 << 30:
        pytest.skip("less than 8 GiB of memory are available")
    table = lk.Table(pyarrow.table({"text": ["x" * (1 << 20)], "n": [5]}))
    rows = lk.Index.build([0] * 2100, distance=0).search([0])["code"]
    taken = table.take(rows)
    assert len(taken) == 2100 and taken["n"].to_pylist() == [5] * 2100
    column = taken["text"]
    assert (len(column), column.type, len(column[2099])) == (2100, "large_string", 1 << 20)


@pytest.mark.parametrize(("a", "b"), [(None, None), ({"text": "a"}, {"text": "a"}), (b"a", b"a"), (5, 5), ("a", 5)])
def test_what_is_no_text_was_explained_by_the_words_that_show_it(a, b):
    with pytest.raises(TypeError, match="a and b must be texts, or paths, not"):
        lk.explain(a, b)


@pytest.mark.parametrize("number", [-1, 2**70, -(2**70)])
@pytest.mark.parametrize(
    "call",
    [
        lambda number: lk.join([1], [2], number),
        lambda number: lk.join([1], threads=number),
        lambda number: lk.simhash(["a"], threads=number),
        lambda number: lk.minhash(["a"], functions=number),
        lambda number: lk.extract(["a"], threads=number),
        lambda number: lk.Index.build([1], number),
        lambda number: lk.Index.build([1], tables=number),
        lambda number: lk.Index.build([1]).search([1], number),
    ],
)
def test_numbers_that_no_setting_has_were_overflows(call, number):
    with pytest.raises(ValueError, match=f"{number}"):
        call(number)
    with pytest.raises(TypeError):
        call("3")


def test_ids_that_are_no_strings_were_called_texts():
    with pytest.raises(TypeError, match=r"^ids must be strings, not int \(row 0\)"):
        lk.Index.build([1, 2], ids=[5, 6])
    with pytest.raises(TypeError, match="^ids must be several"):
        lk.Index.build([1, 2], ids="ab")


def test_columns_could_not_go_to_other_processes():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        codes = pool.map(lk.simhash, [["a rose", None], ["something else"]])
    assert [code.to_pylist() for code in codes] == [lk.simhash(texts).to_pylist() for texts in (["a rose", None], ["something else"])]
    table = lk.join(lk.simhash(["a rose", "A rose!", "else"]), distance=3)
    for value in (table, lk.minhash(["a b", None], 4), lk.features(["a b c"]), table["a"][:1], lk.simhash([])):
        again = pickle.loads(pickle.dumps(value))
        assert type(again) is type(value) and repr(again) == repr(value)
        assert again.to_pylist() == value.to_pylist()


def test_columns_of_sketches_ended_at_2_gib():
    pa = pytest.importorskip("pyarrow")
    # Concatenating more than that panicked, or failed after all the work.
    assert pa.array(lk.features(["a rose is a rose", None])).type == pa.large_list(pa.uint64())
    assert pa.array(lk.simhash(["a rose"], preset="one-topic")).type == pa.large_string()


def test_pairs_of_two_sides_beyond_the_memory_ended_the_process():
    script = textwrap.dedent("""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        import lookalike as lk
        for call in (
            lambda: lk.join([7] * 30_000, [7] * 30_000),
            lambda: lk.join([7] * 30_000, [6] * 30_000),
            lambda: lk.Index.build([7] * 100_000).search([7] * 100_000),
            lambda: lk.Index.build([7] * 20_000).search([6] * 20_000),
            lambda: lk.minhash(["a b"] * 200_000, 65_535),
        ):
            try:
                call()
            except lk.MemoryLimit as error:
                print(str(error).split()[0])
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = [int(count) for count in done.stdout.split()]
    assert (counts[0], counts[2], counts[4]) == (900_000_000, 10_000_000_000, 200_000)
    # These are not counted first: the numbers are those at which the memory was used up.
    assert 0 < counts[1] < 900_000_000 and 0 < counts[3] < 400_000_000


@pytest.mark.parametrize("distance", [0, 1])
def test_repeated_fingerprints_of_two_sides_have_all_their_pairs(distance):
    a, b = [7, 7, 3, None, 1 << 40, 6], [3, 7, 6, 7, None, 3]
    expected = [
        {"a": row, "b": other, "distance": (one ^ two).bit_count()}
        for row, one in enumerate(a)
        for other, two in enumerate(b)
        if one is not None and two is not None and (one ^ two).bit_count() <= distance
    ]
    assert lk.join(a, b, distance).to_pylist() == expected


def test_the_sketch_of_a_scheme_was_passed_over():
    texts = ["a rose is a rose"]
    scheme = lk.Scheme(sketch="minhash:64")
    assert lk.minhash(texts, scheme=scheme).to_pylist() == lk.minhash(texts, 64).to_pylist()
    assert lk.minhash(texts, 64, scheme=scheme).to_pylist() == lk.minhash(texts, 64).to_pylist()
    assert len(lk.minhash(texts)[0]) == len(lk.minhash(texts, scheme=lk.Scheme())[0]) == 128
    with pytest.raises(ValueError, match='functions=128, and the scheme has sketch="minhash:64"'):
        lk.minhash(texts, 128, scheme=scheme)
    for sketch in ("simhash:64", "super-shingle:6x14", "b-bit:64x2", "oph:64"):
        with pytest.raises(ValueError, match=f'minhash makes signatures, and the scheme has sketch="{sketch}"'):
            lk.minhash(texts, scheme=lk.Scheme(sketch=sketch))
    for sketch in ("minhash:64", "super-shingle:6x14"):
        with pytest.raises(ValueError, match=f'simhash makes fingerprints, and the scheme has sketch="{sketch}"'):
            lk.simhash(texts, scheme=lk.Scheme(sketch=sketch))


def test_the_command_refused_its_own_fingerprints_for_an_index_of_the_package(command, tmp_path):
    texts = ["a rose is a rose is a rose", "something else, written down"]
    rows, codes, index = tmp_path / "rows.jsonl", tmp_path / "codes.lkfp", tmp_path / "index"
    rows.write_text("".join(json.dumps({"id": text[:2], "text": text}) + "\n" for text in texts))
    assert command("fingerprint", rows, "-o", codes, "--quiet").returncode == 0
    scheme = lk.Scheme()
    built = lk.Index.build(lk.simhash(texts), ids=["x", "y"], scheme=scheme, path=index)
    done = command("index", "search", index, codes)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["x", "y"]
    for same in (scheme, lk.Scheme(sketch="simhash:64")):
        assert len(built.search(lk.simhash(texts), scheme=same)) == 2
        assert built.scheme_id == lk.Index.build([1], scheme=same).scheme_id == lk.Scheme(sketch="simhash:64").id
    wide = lk.Index.build(lk.simhash(texts, preset="one-topic"), scheme=lk.Scheme(shingle="words:3"))
    assert wide.scheme_id == lk.Scheme(preset="one-topic").id
    with pytest.raises(lk.SchemeMismatch):
        built.search([1], scheme=lk.Scheme(shingle="words:3"))
    with pytest.raises(ValueError, match='an index holds fingerprints, and the scheme has sketch="minhash:128"'):
        lk.Index.build([1], scheme=lk.Scheme(sketch="minhash:128"))


def test_an_index_that_is_not_there_was_an_index_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such file"):
        lk.Index.open(tmp_path / "nowhere")


@pytest.mark.parametrize("away", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_index_said_only_that_it_cannot_be_pickled(away):
    with pytest.raises(TypeError, match="build it with path=, and open the file in each process"):
        away(lk.Index.build([1]))
