#!/usr/bin/env python3
"""Precision and recall of fingerprints by features and radius, on public corpora.

    radius_table.py BINARY DATA [CORPUS...]

DATA has the corpora, each with documents and a list of true pairs: pairs with an exact resemblance of 0.8 or more, or judged by people. Of
documents with equal texts the first is kept, and the others are set aside. BINARY makes the fingerprints; distances are counted here. Prints
tables in Markdown. Standard library only.

Documents are halved by a hash of the id, which does not prefer right or wrong pairs: a half has only pairs of its own documents. Judged pairs
are halved by families instead, so that none is lost. The radius is chosen on one half and measured on the other, both ways, and the figures
are added; for a whole corpus it is chosen on the other corpora. Limits are at 95 %: the wider of Wilson's limits and of those by resampling
documents, which show no error if none was drawn.
"""

import argparse
import collections
import dataclasses
import gzip
import hashlib
import itertools
import json
import math
import operator
import pathlib
import random
import subprocess

LARGEST = 16  # the most bits that `lookalike join` takes
SHOWN = (3, 6, 9, 12)
PRECISION = 0.95
FEWEST = 40  # true pairs of a corpus that a radius is chosen on
DRAWS = 400
SETTINGS = {
    "words:1 tf": ("--shingle", "words:1", "--weight", "tf"),
    "words:1": ("--shingle", "words:1"),
    "words:2": ("--shingle", "words:2"),
    "words:3": ("--shingle", "words:3"),
    "words:5": ("--shingle", "words:5"),
    "words:3, 128 bits": ("--shingle", "words:3", "--sketch", "simhash:128"),
}


@dataclasses.dataclass
class Corpus:
    """Documents with different texts, and the pairs of them that are true."""

    path: pathlib.Path
    ids: list
    equal: int
    true: set
    judged: set  # empty if every pair that is not true is wrong


@dataclasses.dataclass
class Found:
    """Two documents within the largest radius of the table, and their distance."""

    pair: tuple
    distance: int


@dataclasses.dataclass
class Counts:
    """Pairs that are right, wrong or missed at a radius."""

    right: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    missed: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.right += other.right
        self.wrong += other.wrong
        self.missed += other.missed

    def precision(self):
        return share(len(self.right), len(self.wrong))

    def recall(self):
        return share(len(self.right), len(self.missed))


def share(some, others):
    return some / (some + others) if some + others else math.nan


def rows(path):
    """Returns the records of a JSON Lines file, which may be compressed."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def one_of(folder, *patterns):
    return next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)


def read_corpus(folder):
    """Returns the documents and the truth of a folder, or None if it lists no true pairs."""
    path, exact, labels = one_of(folder, "docs.jsonl*"), one_of(folder, "jaccard_*.jsonl*"), one_of(folder, "pairs.jsonl*")
    if not path or not (exact or labels):
        return None
    first, ids = set(), []
    documents = rows(path)
    for document in documents:
        if document["text"] not in first:
            first.add(document["text"])
            ids.append(document["id"])
    kept = set(ids)
    if exact:
        pairs = {pair_of(row["a"], row["b"]): row["j"] >= 0.8 for row in rows(exact)}
    else:
        # Clough's label 1 is a heavy revision: copied, but not a near-duplicate.
        least = 2 if folder.name.startswith("clough") else 1
        pairs = {pair_of(row["a"], row["b"]): row["label"] >= least for row in rows(labels)}
    pairs = {pair: true for pair, true in pairs.items() if kept.issuperset(pair)}
    judged = set() if exact else set(pairs)
    return Corpus(path, ids, len(documents) - len(ids), {pair for pair, true in pairs.items() if true}, judged)


def pair_of(a, b):
    return (a, b) if a < b else (b, a)


def fingerprints(binary, path, options, field="text"):
    """Returns the fingerprint of each document that has features, by id."""
    command = [binary, "fingerprint", path, "--text", field, "--threads", "1", "--quiet", *options]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    records = map(json.loads, printed.splitlines())
    return {row["id"]: int(row["fingerprint"], 16) for row in records if row["fingerprint"] is not None}


def near(ids, prints):
    """Returns all pairs of documents within the largest distance."""
    ids = [one for one in ids if one in prints]
    values = [prints[one] for one in ids]
    found = []
    for at, value in enumerate(values):
        distances = map(int.bit_count, map(value.__xor__, itertools.islice(values, at + 1, None)))
        for after, distance in enumerate(distances, at + 1):
            if distance <= LARGEST:
                found.append(Found(pair_of(ids[at], ids[after]), distance))
    return found


def count(found, true, radius):
    """Counts right, wrong and missed pairs at a radius; None finds nothing."""
    counts, reached = Counts(), set()
    for one in found:
        if radius is not None and one.distance <= radius:
            (counts.right if one.pair in true else counts.wrong).append(one.pair)
            reached.add(one.pair)
    counts.missed = [pair for pair in true if pair not in reached]
    return counts


def precisions(found, true):
    """Returns the precision at each radius."""
    right, wrong = collections.Counter(), collections.Counter()
    for one in found:
        (right if one.pair in true else wrong)[one.distance] += 1
    return [share(*(sum(c[d] for d in range(r + 1)) for c in (right, wrong))) for r in range(LARGEST + 1)]


def largest_radius(reached, precision=PRECISION):
    """Returns the largest radius with at least this precision, or None."""
    return max((radius for radius, one in enumerate(reached) if one >= precision), default=None)


def families(pairs):
    """Returns the smallest id that pairs connect with each document."""
    parent = {}

    def root(one):
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    for a, b in sorted(pairs):
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return {one: root(one) for one in parent}


def halves(corpus):
    """Returns the half of each document: 0 or 1."""
    family = families(corpus.judged)
    return {one: hashlib.sha256(str(family.get(one, one)).encode()).digest()[0] & 1 for one in corpus.ids}


def inside(pairs, half, which):
    return [pair for pair in pairs if half[pair[0]] == which == half[pair[1]]]


def crossed(found, true, half, precision=PRECISION):
    """Returns the radius that each half chooses, and the sum of the counts on the other halves."""
    parts = []
    for which in (0, 1):
        own = set(inside((one.pair for one in found), half, which))
        parts.append(([one for one in found if one.pair in own], set(inside(true, half, which))))
    chosen, counts = [], Counts()
    for mine, other in ((0, 1), (1, 0)):
        chosen.append(largest_radius(precisions(*parts[mine]), precision))
        counts.add(count(*parts[other], chosen[-1]))
    return chosen, counts


def wilson(some, others):
    total = some + others
    middle, z = some / total, 1.959964
    centre = middle + z * z / (2 * total)
    width = z * math.sqrt(middle * (1 - middle) / total + z * z / (4 * total * total))
    return (centre - width) / (1 + z * z / total), (centre + width) / (1 + z * z / total)


def drawn_sums(groups, draws=DRAWS):
    """Draws as many documents with replacement `draws` times. Yields how often the pairs of each group are drawn."""
    documents = sorted({one for group in groups for pair in group for one in pair})
    place = {one: at for at, one in enumerate(documents)}
    sides = [([place[a] for a, _ in group], [place[b] for _, b in group]) for group in groups]
    dice = random.Random(1)
    for _ in range(draws):
        often = [0] * len(documents)
        for at in dice.choices(range(len(documents)), k=len(documents)):
            often[at] += 1
        yield [sum(map(operator.mul, map(often.__getitem__, a), map(often.__getitem__, b))) for a, b in sides]


def limits(some, others):
    """Returns the 95 % limits of the share of `some` among both groups."""
    if not some and not others:
        return math.nan, math.nan
    drawn = sorted(s / (s + o) for s, o in drawn_sums((some, others)) if s + o)
    low, high = wilson(len(some), len(others))
    if drawn:
        low, high = min(low, drawn[int(0.025 * len(drawn))]), max(high, drawn[int(0.975 * len(drawn))])
    return max(low, 0), min(high, 1)


def figure(value):
    return "-" if math.isnan(value) else f"{value:.3f}".lstrip("0") if value < 1 else "1.00"


def with_limits(value, some, others):
    if math.isnan(value):
        return "-"
    low, high = limits(some, others)
    return f"{figure(value)} [{figure(low)}, {figure(high)}]"


def radius_cell(radius):
    return "none" if radius is None else str(radius)


def precision_cell(counts):
    return with_limits(counts.precision(), counts.right, counts.wrong)


def recall_cell(counts):
    return with_limits(counts.recall(), counts.right, counts.missed)


def measured(binary, corpus):
    """Returns the pairs within the largest distance, by setting."""
    result = {}
    for name, options in SETTINGS.items():
        found = near(corpus.ids, fingerprints(binary, corpus.path, options))
        result[name] = [one for one in found if not corpus.judged or one.pair in corpus.judged]
    return result


def table(heads, body):
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for cells in body:
        print(f"| {' | '.join(map(str, cells))} |")


def print_defaults(corpora, found):
    """Prints the figures of the defaults on whole corpora, for which nothing is chosen."""
    body = []
    for name, corpus in corpora.items():
        counts = count(found[name]["words:5"], corpus.true, 3)
        body.append((name, f"{len(corpus.ids):,}", f"{corpus.equal:,}", f"{len(corpus.true):,}",
                     f"{len(counts.right) + len(counts.wrong):,}", precision_cell(counts), recall_cell(counts)))
    table(("corpus", "documents", "equal texts set aside", "true pairs", "within 3 bits of `words:5`", "precision", "recall"), body)


def print_crossed(corpora, found):
    """Prints the figures of each half at the radius that the other half chose."""
    body = []
    for name, corpus in large(corpora).items():
        half = halves(corpus)
        for setting in SETTINGS:
            chosen, counts = crossed(found[name][setting], corpus.true, half)
            body.append((name, setting, " and ".join(map(radius_cell, chosen)),
                         f"{len(counts.right) + len(counts.missed):,}", precision_cell(counts), recall_cell(counts)))
    table(("corpus", "features", "radius chosen", "true pairs", "precision", "recall"), body)


def large(corpora):
    return {name: corpus for name, corpus in corpora.items() if len(corpus.true) >= FEWEST}


def print_left_out(corpora, found):
    """Prints the figures of each corpus at the largest radius whose mean precision over the other corpora is high enough."""
    reached = {(name, setting): precisions(found[name][setting], corpus.true)
               for name, corpus in large(corpora).items() for setting in SETTINGS}
    body = []
    for name, corpus in large(corpora).items():
        cells = []
        for setting in SETTINGS:
            others = [reached[other, setting] for other in large(corpora) if other != name]
            radius = largest_radius([mean(one for one in at if not math.isnan(one)) for at in zip(*others)])
            counts = count(found[name][setting], corpus.true, radius)
            cells.append(f"{radius_cell(radius)}: {figure(counts.precision())}/{figure(counts.recall())}")
        body.append((name, *cells))
    table(("corpus", *SETTINGS), body)


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def print_grid(corpora, found):
    """Prints the figures of whole corpora at some radii, and at the largest radius with the wanted precision."""
    body = []
    for name, corpus in corpora.items():
        for setting in SETTINGS:
            cells = []
            for radius in SHOWN:
                counts = count(found[name][setting], corpus.true, radius)
                cells.append(f"{len(counts.right) + len(counts.wrong)}/{figure(counts.precision())}/{figure(counts.recall())}")
            body.append((name, setting, *cells, radius_cell(largest_radius(precisions(found[name][setting], corpus.true)))))
    table(("corpus", "features", *(f"radius {r}" for r in SHOWN), f"largest of {PRECISION}"), body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the command lookalike")
    parser.add_argument("data", type=pathlib.Path, help="the folder of the corpora")
    parser.add_argument("corpus", nargs="*", help="corpora to measure [default: all with true pairs]")
    options = parser.parse_args()
    names = options.corpus or sorted(path.name for path in options.data.iterdir() if path.is_dir())
    corpora = {name: corpus for name in names if (corpus := read_corpus(options.data / name))}
    found = {name: measured(options.binary, corpus) for name, corpus in corpora.items()}
    print_defaults(corpora, found)
    print_crossed(corpora, found)
    print_left_out(corpora, found)
    print_grid(corpora, found)


if __name__ == "__main__":
    main()
