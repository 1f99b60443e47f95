"""Counts the records of web archives with two independent readers, and compares with `lookalike extract`.

usage: check_archives.py LOOKALIKE FOLDER

Every file of the folder is read by warcio and FastWARC (both from PyPI) and by the binary. lookalike's documents are responses, resources and
conversions; a response may instead be counted as `http-status` or `not-text`, and a PDF that cannot be read as `conversion`. Prints a line per
file. Exits with 1 if the numbers differ for a file that at least one of the readers reads to its end.
"""

import collections
import json
import pathlib
import subprocess
import sys

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

OTHERS = ("warcinfo", "request", "metadata", "revisit")


def warcio_counts(path):
    """Returns the numbers of records by type, and the name of the error that stopped the reader, if any."""
    counts = collections.Counter()
    try:
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream, arc2warc=True):
                counts[record.rec_type] += 1
                record.content_stream().read()
    except Exception as error:  # a reader that fails does not count
        return counts, type(error).__name__
    return counts, None


def fastwarc_counts(path):
    counts = collections.Counter()
    try:
        for record in FastIterator(open(path, "rb"), strict_mode=False):
            counts[repr(record.record_type).rpartition(".")[2]] += 1
    except Exception as error:
        return counts, type(error).__name__
    return counts, None


def lookalike_counts(binary, path):
    command = [binary, "extract", path, "--json"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # Status 3: done, but some records could not be read, as in the samples.
    if done.returncode not in (0, 3):
        sys.exit(f"{command}: status {done.returncode}: {done.stderr.decode()}")
    summary = next(json.loads(line) for line in done.stderr.decode().splitlines() if line.startswith("{"))
    skipped = {row["kind"]: row["count"] for row in summary["skipped"]}
    counts = collections.Counter({kind: skipped[kind] for kind in OTHERS if kind in skipped})
    pages = summary["documents"] + skipped.get("http-status", 0) + skipped.get("not-text", 0)
    # The record within which a file breaks off is a part of the damage.
    counts["page"] = pages + sum(skipped.get(kind, 0) for kind in ("broken", "conversion", "damaged"))
    return counts


def as_pages(counts):
    """Adds up responses, resources and conversions."""
    counts = collections.Counter(counts)
    counts["page"] = sum(counts.pop(kind, 0) for kind in ("response", "resource", "conversion"))
    return +counts


def main(binary, folder):
    differ = 0
    for path in sorted(pathlib.Path(folder).iterdir()):
        if ".warc" not in path.name and ".arc" not in path.name:
            continue
        ours = +lookalike_counts(binary, path)
        readers = {"warcio": warcio_counts(path)}
        if ".warc" in path.name:
            readers["fastwarc"] = fastwarc_counts(path)
        judges = {name: as_pages(counts) for name, (counts, error) in readers.items() if error is None}
        agrees = not judges or ours in judges.values()
        differ += not agrees
        told = {name: error or dict(as_pages(counts)) for name, (counts, error) in readers.items()}
        print("ok    " if agrees else "DIFFER", path.name, dict(ours), told)
    return differ > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
