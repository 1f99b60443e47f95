#!/usr/bin/env python3
"""Compares every engine of `lookalike overlap` with a product of sparse matrices, on whole collections.

usage: check_overlap.py LOOKALIKE DOCS.jsonl[.gz]... [--chunk doc,lines:4,...] [--least 1,2,5,10,25] [--most-pairs 40000000]

Chunks are made here by the definition in docs/how-to/overlap.md, except sentences, words and characters, for which the engines are compared
with each other. For each chunking and each T, the rows of all engines, with 32 MiB, 64 MiB and 1 GiB, with one and two threads, and with the
input in reverse order must be the same bytes; shared chunks and sizes must be those of the matrices. A T that would give more rows than
--most-pairs is named and left out. Needs numpy and scipy.
"""
import argparse, gzip, hashlib, json, os, subprocess, sys, tempfile, unicodedata

import numpy as np
from scipy.sparse import csr_matrix, triu

WAYS = [["--engine", "count", "--memory", "1G", "--threads", "1"], ["--engine", "count", "--memory", "44M", "--threads", "2"],
        ["--engine", "sort", "--memory", "36M", "--threads", "1"], ["--engine", "auto", "--memory", "64M", "--threads", "2"]]
# White_Space of Unicode. Python's own strip and split also take the separators U+001C to U+001F for white space.
SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200b))) + "\u2028\u2029\u202f\u205f\u3000"
TO_BLANKS = str.maketrans(dict.fromkeys(SPACE, " "))


def lines(text):
    stripped = (line.strip(SPACE) for line in text.split("\n"))
    return [line for line in stripped if line]


def fields(text):
    return [field for field in text.translate(TO_BLANKS).split(" ") if field]


def runs(parts, size, joint, sliding):
    if sliding:
        starts = range(max(1, len(parts) - size + 1)) if parts else []
    else:
        starts = range(0, len(parts), size)
    return {joint.join(parts[start:start + size]) for start in starts}


def paragraphs(text):
    found, current = set(), []
    for line in [*text.split("\n"), ""]:
        line = line.strip(SPACE)
        if line:
            current.append(line)
        elif current:
            found.add("\n".join(current))
            current = []
    return found


def is_ignorable(c):
    """Returns whether a character has Default_Ignorable_Code_Point, derived as in docs/vectors/check.py."""
    code, others = ord(c), (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0)
    if code in others or 0xFFF0 <= code <= 0xFFF8 or 0xE0000 <= code <= 0xE0FFF or 0x180B <= code <= 0x180F:
        return True
    prepended = (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)
    is_format = unicodedata.category(c) == "Cf" and code not in prepended
    return 0xFE00 <= code <= 0xFE0F or is_format and not (0xFFF9 <= code <= 0xFFFB or 0x13430 <= code <= 0x1345F)


def visible(text):
    if text.isascii():
        return text
    return "".join(c for c in text if c.isascii() or not is_ignorable(c))


def chunks(text, chunking):
    """Returns the distinct chunks of a text, or None for a chunking that is not defined here."""
    text = visible(text)
    kind, size, *rest = [*chunking.split(":"), "0"]
    if kind == "doc":
        return {text} if text.strip(SPACE) else set()
    if kind == "paragraphs":
        return paragraphs(text)
    if kind in ("sentences", "words", "chars"):
        return None
    parts, joint = (lines(text), "\n") if kind == "lines" else (fields(text), " ")
    return runs(parts, int(size), joint, "sliding" in rest)


def matrix(documents, chunking):
    numbers, rows, columns = {}, [], []
    for row, (_, text) in enumerate(documents):
        for chunk in chunks(text, chunking):
            rows.append(row)
            columns.append(numbers.setdefault(chunk, len(numbers)))
    ones = np.ones(len(rows), dtype=np.int32)
    return csr_matrix((ones, (rows, columns)), shape=(len(documents), max(1, len(numbers))))


def expected(shared, sizes, least):
    """Returns the rows as (a, b, shared, chunks of a, chunks of b), in order."""
    wanted = shared.data >= least
    a, b = shared.row[wanted], shared.col[wanted]
    order = np.lexsort((b, a))
    return np.stack([a[order], b[order], shared.data[wanted][order], sizes[a[order]], sizes[b[order]]], axis=1)


def answer(binary, path, chunking, least, way):
    command = [binary, "overlap", path, "--chunk", chunking, "--min-shared", str(least), "--quiet", *way]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def table(out, places):
    rows = (json.loads(line) for line in out.splitlines())
    found = [[places[row["a"]], places[row["b"]], row["shared"], row["chunks_a"], row["chunks_b"]] for row in rows]
    return np.array(found, dtype=np.int64).reshape(-1, 5)


def check(binary, paths, documents, chunking, leasts, most):
    shared = None
    if chunks("", chunking) is not None:
        product = matrix(documents, chunking)
        sizes = np.asarray(product.sum(axis=1)).ravel()
        shared = triu(product @ product.T, k=1).tocoo()
    places = {name: place for place, (name, _) in enumerate(documents)}
    for least in leasts:
        rows = "?"
        if shared is not None:
            rows = int((shared.data >= least).sum())
            if rows > most:
                print(f"  {chunking} T={least}: {rows} rows, left out", flush=True)
                continue
        outs = [answer(binary, path, chunking, least, way) for path in paths for way in WAYS]
        if len({hashlib.sha256(out).digest() for out in outs}) != 1:
            sys.exit(f"{chunking} T={least}: engines differ")
        if shared is not None and not np.array_equal(table(outs[0], places), expected(shared, sizes, least)):
            sys.exit(f"{chunking} T={least}: not the rows of the definition")
        print(f"  {chunking} T={least}: {rows} rows, {len(outs)} ways", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("docs", nargs="+")
    parser.add_argument("--chunk", default="doc,lines:4,lines:2,lines:2:sliding,sentences,paragraphs,fields:8,fields:8:sliding")
    parser.add_argument("--least", default="1,2,5,10,25")
    parser.add_argument("--most-pairs", type=int, default=40_000_000)
    options = parser.parse_args()
    for path in options.docs:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as given:
            records = [json.loads(line) for line in given]
        # Rows name the smaller id first, comparing bytes.
        documents = sorted(((record["id"], record["text"]) for record in records), key=lambda document: document[0].encode())
        print(f"{path}: {len(documents)} documents", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("given.jsonl", "reversed.jsonl")]
            for target, ordered in zip(paths, (records, records[::-1])):
                with open(target, "w", encoding="utf-8") as out:
                    out.writelines(json.dumps({"id": record["id"], "text": record["text"]}) + "\n" for record in ordered)
            for chunking in options.chunk.split(","):
                check(options.binary, paths, documents, chunking, [int(least) for least in options.least.split(",")], options.most_pairs)


if __name__ == "__main__":
    sys.exit(main())
