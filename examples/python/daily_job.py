"""Compares what came today with all that was kept before. Run it once a day:

    python daily_job.py ARCHIVE today.jsonl 2026-11-23

ARCHIVE gets a folder of results for each day: kept.jsonl has what was new, clusters.jsonl for whom the rest was removed, report.html is
for people. A day that is run again replaces its own results.
"""

import sys
from pathlib import Path

import lookalike as lk


def run_day(archive: Path, today: Path, day: str) -> lk.DedupResult:
    # Folders of results stand for the documents that were kept in them. These are compared with, and never removed.
    earlier = sorted(folder for folder in archive.iterdir() if folder.name < day) if archive.exists() else []
    # In bounded memory, however large the files are.
    result = lk.dedup(today, text="text", id="id", against=earlier or None, memory="1G")
    archive.mkdir(parents=True, exist_ok=True)
    result.save(archive / day, overwrite=True)
    return result


def main(archive: str, today: str, day: str) -> None:
    result = run_day(Path(archive), Path(today), day)
    counts = result.counts
    print(f"{day}: {counts['documents']} documents, {counts['kept']} new, {counts['exact']} copies, {counts['near']} near-duplicates")


if __name__ == "__main__":
    main(*sys.argv[1:])
