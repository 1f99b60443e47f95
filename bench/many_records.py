#!/usr/bin/env python3
"""Makes millions of documents from real text, with planted families, in parts that are made in parallel.

    many_records.py --records 10000000 --jobs 2 -o FOLDER TEXT…

TEXT: plain text files, or JSON Lines (.jsonl, .jsonl.gz) with a field `text` or `html`. Each document consists of about twelve of their
sentences from various places, in which every fourth word is replaced by a random word, drawn by frequency. Single words and short runs are
therefore as frequent as in prose, and runs of five words are rare unless they were planted. The text of a document depends only on the seed
and its number, so it can be a copy of any earlier document, in any part. The same options give the same bytes.

FOLDER/part-NNN.jsonl  100,000 documents each: {"id": "doc-<n>", "url": "...", "text": "..."}
FOLDER/counts.json     the number of each kind: original, copy (the same text), edit (one to six words of an earlier document
                       changed), template (the second half is that of a site, the same on all of its pages)
"""

import argparse
import collections
import gzip
import html
import json
import multiprocessing
import pathlib
import random
import re

PART = 100_000
COPIES, EDITS, TEMPLATES = 0.05, 0.20, 0.10
SITES = 20_000
PLAIN = re.compile(r"[A-Za-z0-9'.,;:!?()-]+")


def texts(path):
    """Yields the texts of a file."""
    name = str(path)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(name, "rt", encoding="utf-8", errors="replace") as file:
        if ".jsonl" not in name:
            yield file.read()
            return
        for line in file:
            row = json.loads(line)
            yield row.get("text") or re.sub(r"<[^>]*>", " ", html.unescape(row.get("html") or ""))


def sentences_of(paths):
    """Returns sentences as lists of 8 to 40 words, keeping only words of ASCII letters that JSON does not escape."""
    found = {}
    for path in paths:
        for text in texts(path):
            for sentence in re.split(r"(?<=[.!?])\s+", text):
                words = [word for word in sentence.split() if PLAIN.fullmatch(word)]
                if 8 <= len(words) <= 40:
                    found[" ".join(words)] = words
    return list(found.values())


class Maker:
    """Makes documents by number."""

    def __init__(self, sentences, seed):
        self.sentences = sentences
        self.seed = seed
        self.words = [word for sentence in sentences for word in sentence]

    def random(self, number, purpose):
        return random.Random((self.seed * 4 + purpose) << 40 | number)

    def sentences_by(self, rng, count):
        words = []
        for _ in range(count):
            words += rng.choice(self.sentences)
        start = rng.randrange(4)
        words[start::4] = rng.choices(self.words, k=len(words[start::4]))
        return words

    def kind(self, number):
        rng = self.random(number, 0)
        draw = rng.random()
        if number and draw < COPIES:
            return "copy", rng
        if number and draw < COPIES + EDITS:
            return "edit", rng
        if draw < COPIES + EDITS + TEMPLATES:
            return "template", rng
        return "original", rng

    def source(self, number, rng):
        """Returns the number of an earlier document that is not a copy, half of the time one of the 10,000 before it."""
        while True:
            reach = number if rng.random() < 0.5 else min(number, 10_000)
            source = number - 1 - rng.randrange(reach)
            if source == 0 or self.kind(source)[0] in ("original", "template"):
                return source

    def words_of(self, number):
        kind, rng = self.kind(number)
        if kind == "original":
            return kind, self.sentences_by(rng, rng.randint(6, 20))
        if kind == "template":
            own = self.sentences_by(rng, rng.randint(3, 9))
            return kind, own + self.sentences_by(self.random(rng.randrange(SITES), 1), 9)
        words = self.words_of(self.source(number, rng))[1]
        if kind == "edit":
            for _ in range(rng.randint(1, 6)):
                words[rng.randrange(len(words))] = rng.choice(self.words)
        return kind, words


def make_part(part):
    """Writes a part. Returns the number of documents of each kind."""
    folder, first, end = part
    counts = collections.Counter()
    with open(folder / f"part-{first // PART:03}.jsonl", "w", encoding="ascii", newline="\n") as out:
        for number in range(first, end):
            kind, words = MAKER.words_of(number)
            counts[kind] += 1
            site = number * 2654435761 % SITES
            out.write(f'{{"id": "doc-{number}", "url": "https://site-{site}.example/{number}", "text": "{" ".join(words)}"}}\n')
    return counts


def main():
    """Reads the options and makes the parts."""
    global MAKER
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("texts", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    MAKER = Maker(sentences_of(options.texts), options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    parts = [
        (options.output, first, min(first + PART, options.records)) for first in range(0, options.records, PART)
    ]
    counts = collections.Counter()
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for of_part in pool.imap(make_part, parts):
            counts += of_part
    (options.output / "counts.json").write_text(json.dumps(counts, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
