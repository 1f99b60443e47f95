#!/usr/bin/env python3
"""Text to sketch, one thread: the Python peers on the same texts as the Rust program `sketches`.

Prints one JSON object per (job, engine). `text to ...` includes splitting into words and shingling
in Python; `shingles to ...` starts with lists of strings and `hashes to ...` with 64-bit hashes, so
that only the peers' own code is measured. One pass each, because these take seconds.
"""

import os

os.environ["RAYON_NUM_THREADS"] = "1"

import argparse
import array
import itertools
import json

import pipeline
import xxhash
from datasketch import MinHash
from rensa import RMinHash
from simhash import Simhash

FUNCTIONS = 128
SEED = 42


class Course:
    """The texts of the race, and the width of their shingles."""

    def __init__(self, path, size, width):
        self.width = width
        self.texts = []
        self.bytes = 0
        step = max(os.path.getsize(path) // size, 1)
        for line in pipeline.read_lines(path)[::step]:
            self.texts.append(json.loads(line)["text"])
        self.bytes = sum(len(text.encode()) for text in self.texts)
        self.tokens = [self.shingles(text) for text in self.texts]
        self.count = sum(map(len, self.tokens))

    def shingles(self, text):
        """Returns the shingles of `width` words in the order of the text."""
        words = pipeline.WORD.findall(text.lower())
        if self.width == 1 or not words:
            return words
        width = min(self.width, len(words))
        return list(map(" ".join, zip(*(words[start:] for start in range(width)))))

    def time(self, job, engine, work):
        """Runs the work once and prints its figures."""
        before = pipeline.cpu_seconds()
        work()
        row = {
            "job": f"{job}, words:{self.width}",
            "engine": engine,
            "docs": len(self.texts),
            "bytes": self.bytes,
            "shingles": self.count,
            "cpu": pipeline.cpu_seconds() - before,
        }
        print(json.dumps(row), flush=True)


def datasketch_signatures(tokens):
    """Makes a MinHash of each list of strings, with xxh32 instead of SHA-1."""
    encoded = ([token.encode() for token in record] for record in tokens)
    made = MinHash.generator(encoded, num_perm=FUNCTIONS, hashfunc=xxhash.xxh32_intdigest)
    for _ in made:
        pass


def race_simhash(course):
    """Times text to 64-bit simhash."""

    def fingerprints(tokens):
        for record in tokens:
            Simhash(record)

    course.time(
        "text to simhash-64",
        "simhash (PyPI)",
        lambda: fingerprints(map(course.shingles, course.texts)),
    )
    course.time("shingles to simhash-64", "simhash (PyPI)", lambda: fingerprints(course.tokens))


def race_minhash(course):
    """Times text to min-hash signature."""
    job = "text to min-hash-128"
    course.time(
        job, "rensa", lambda: rensa_matrix([course.shingles(text) for text in course.texts])
    )
    course.time(
        job, "datasketch", lambda: datasketch_signatures(map(course.shingles, course.texts))
    )
    job = "shingles to min-hash-128"
    course.time(job, "rensa", lambda: rensa_matrix(course.tokens))
    course.time(job, "datasketch", lambda: datasketch_signatures(course.tokens))


def rensa_matrix(tokens):
    """Makes signatures from lists of strings by rensa's bulk path."""
    return RMinHash.digest_matrix_from_token_sets(tokens, FUNCTIONS, SEED)


def race_kernel(course):
    """Times given hashes to min-hash signature, by rensa's bulk path from flat buffers."""
    hashes = RMinHash.hash_token_sets(course.tokens)
    flat = array.array("Q", itertools.chain.from_iterable(hashes))
    rows = array.array("Q", itertools.accumulate(map(len, hashes), initial=0))
    course.time(
        "hashes to min-hash-128",
        "rensa",
        lambda: RMinHash.digest_matrix_from_flat_token_hashes(flat, rows, FUNCTIONS, SEED),
    )


def race_ours(course):
    """Times the same jobs with the Python package, on whole lists; does nothing if it is not installed."""
    try:
        import lookalike as lk
    except ModuleNotFoundError:
        return
    scheme = lk.Scheme(shingle=f"words:{course.width}")
    course.time(
        "text to simhash-64",
        "lookalike (Python)",
        lambda: lk.simhash(course.texts, scheme=scheme, threads=1),
    )
    course.time(
        f"text to min-hash-{FUNCTIONS}",
        "lookalike (Python)",
        lambda: lk.minhash(course.texts, FUNCTIONS, scheme=scheme, threads=1),
    )


def main():
    """Runs every job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records")
    parser.add_argument("megabytes", type=int, nargs="?", default=5)
    parser.add_argument("width", type=int, nargs="?", default=4)
    options = parser.parse_args()
    course = Course(options.records, options.megabytes * 1_000_000, options.width)
    race_kernel(course)
    race_minhash(course)
    race_simhash(course)
    race_ours(course)


if __name__ == "__main__":
    main()
