"""Code shared by the Python peers: from JSON Lines to shingles, and from pairs to kept records.

The definitions are the same for every engine in the race: words are `\\w+` of the lower-cased
text, a shingle is five words joined by one space, a shorter text has one shingle of all its
words, and a text without words never matches anything.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import itertools
import json
import pathlib
import re
import resource
import time

BATCH = 2_000

WORD = re.compile(r"\w+")


def arguments(description):
    """Returns a parser of the options that every peer takes."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("input", type=pathlib.Path, help="JSON Lines with id and text")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--functions", type=int, default=128, help="size of a signature")
    parser.add_argument("--limit", type=int, help="only the first so many records")
    parser.add_argument("--threads", type=int, default=1, help="of engines that have them")
    return parser


def read_lines(path, limit=None):
    """Reads at most `limit` lines, as bytes with their terminators."""
    with open(path, "rb") as source:
        return list(itertools.islice(source, limit))


def shingles(line):
    """Returns the five-word shingles of a record, in order of the text, with repetitions."""
    words = WORD.findall(json.loads(line)["text"].lower())
    if len(words) < 5:
        return [" ".join(words)] if words else []
    return list(map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:])))


def batches(items, size=BATCH):
    """Yields slices of the list, each with the number of its first item."""
    for start in range(0, len(items), size):
        yield start, items[start : start + size]


def token_batches(lines, measure):
    """Yields batches of (numbers of the records that have shingles, their shingles)."""
    for start, batch in batches(lines):
        with measure.stage("shingles"):
            tokens = [shingles(line) for line in batch]
            numbers = [start + at for at, found in enumerate(tokens) if found]
            tokens = [found for found in tokens if found]
        yield numbers, tokens


class Clusters:
    """Union-find over records; the root of a cluster is its first record, which is kept."""

    def __init__(self, size):
        self.parents = list(range(size))

    def root(self, item):
        """Returns the first record of the cluster."""
        parents = self.parents
        while parents[item] != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    def join(self, a, b):
        """Puts both records into one cluster."""
        a, b = self.root(a), self.root(b)
        if a != b:
            self.parents[max(a, b)] = min(a, b)

    def kept(self):
        """Returns a flag per record: whether it is the root of its cluster."""
        return [parent == item for item, parent in enumerate(self.parents)]


def write_kept(folder, lines, kept):
    """Writes kept.jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "kept.jsonl", "wb") as out:
        out.writelines(itertools.compress(lines, kept))


def cpu_seconds():
    """Returns the CPU seconds of this process so far, for all threads, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def version_of(distribution):
    """Returns the version of an installed package; lookalike may also be used from the checkout."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return importlib.import_module(distribution).__version__


class Measure:
    """CPU seconds by stage and the figures of the whole run."""

    def __init__(self, engine, distribution):
        self.started = time.perf_counter()
        self.stages = {}
        self.engine = engine
        self.version = version_of(distribution)

    @contextlib.contextmanager
    def stage(self, name):
        """Counts the CPU seconds of the block under the name."""
        before = cpu_seconds()
        yield
        self.stages[name] = round(self.stages.get(name, 0.0) + cpu_seconds() - before, 3)

    def report(self, kept, **more):
        """Prints the figures as one JSON object."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        figures = {
            "engine": self.engine,
            "version": self.version,
            "docs": len(kept),
            "kept": sum(kept),
            "seconds_wall": round(time.perf_counter() - self.started, 3),
            "seconds_cpu": round(cpu_seconds(), 3),
            "peak_rss_bytes": peak,
            "stages_cpu": self.stages,
        }
        print(json.dumps(figures | more))
