#!/usr/bin/env python3
"""Measures how far fingerprints move when the collection behind their weights grows, and how rounding the weights reduces that.

    bench/term_weights.py DOCS.jsonl[.gz]          # needs numpy

The fingerprints are 64-bit simhashes over the distinct words of each text, weighted by idf. They are made with the table of one half of the
documents (in a random order), and with that of the half and 1 %, 10 % or 100 % more. Weights are exact, or rounded to a step. Prints the number
of bits by which the fingerprints of 1,500 documents of the first half move, how many of them stay equal, the share of words whose weight
changes, and the number of bits predicted by the angle between the two weight vectors: 64 / pi * arccos. Independent of the code of lookalike:
hash, words and sums are implemented here.
"""

import gzip
import hashlib
import json
import random
import re
import sys
from collections import Counter

import numpy as np

PROBES = 1500
STEPS = [0, 0.25, 0.5, 1, 2, 4]


def documents(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as lines:
        texts = [json.loads(line)["text"].lower() for line in lines]
    sets = [sorted(set(re.findall(r"\w+", text))) for text in texts]
    sets = [words for words in sets if words]
    random.Random(1).shuffle(sets)
    return sets


def table(sets):
    counts = Counter()
    for words in sets:
        counts.update(words)
    return len(sets), counts


def weights(table, step):
    documents, counts = table

    def weight(word):
        idf = np.log2((documents + 1) / counts.get(word, 1))
        return max(round(idf / step) * step, step / 2) if step else max(idf, 1 / 256)

    return weight


def planes(words, known={}):
    for word in words:
        if word not in known:
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            known[word] = np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.float32) * 2 - 1
    return np.stack([known[word] for word in words])


def fingerprints(sets, weight):
    return np.array([np.array([weight(word) for word in words]) @ planes(words) > 0 for words in sets])


def foretold(table, old, new):
    dot = old_square = new_square = 0.0
    for word, often in table[1].items():
        before, after = old(word), new(word)
        dot += often * before * after
        old_square += often * before * before
        new_square += often * after * after
    return 64 / np.pi * np.arccos(min(1.0, dot / np.sqrt(old_square * new_square)))


def main():
    sets = documents(sys.argv[1])
    half = len(sets) // 2
    probes, first = sets[:PROBES], table(sets[:half])
    print("| grown by | step | bits moved | foretold | equal | weights that change |")
    print("|---|---|---|---|---|---|")
    for name, share in [("1 %", 0.01), ("10 %", 0.1), ("100 %", 1)]:
        grown = table(sets[: half + int(half * share)])
        for step in STEPS:
            old, new = weights(first, step), weights(grown, step)
            moved = (fingerprints(probes, old) != fingerprints(probes, new)).sum(axis=1)
            changed = sum(abs(old(word) - new(word)) > 1e-9 for word in grown[1]) / len(grown[1])
            bits = foretold(grown, old, new)
            equal = (moved == 0).mean()
            print(f"| {name} | {step or 'none'} | {moved.mean():.2f} | {bits:.2f} | {equal:.0%} | {changed:.1%} |", flush=True)


main()
