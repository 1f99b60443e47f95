#!/usr/bin/env python3
"""Measures the gain from more cores: the same job with more and more threads.

    bench/cores.py FILE... -o OUT [--binary PATH] [--threads 1,2,4,8,16] [--runs 3] [-- OPTIONS OF dedup]

Runs `lookalike dedup` into OUT with each number of threads in turn, and repeats that. Prints medians: wall seconds of the job and of each of
its stages, processor seconds, and the speed relative to the first number of threads. Meant for a machine with that many idle cores. Standard
library only; Linux.
"""

import argparse
import os
import pathlib
import statistics
import sys

from growth import measure


def median(rows, value):
    return statistics.median(value(row) for row in rows)


def main():
    """Reads the options, measures, and prints a table."""
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--binary", default="target/release/lookalike")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(own)
    threads = [int(number) for number in given.threads.split(",")]
    measured = {number: [] for number in threads}
    for _ in range(given.runs):
        for number in threads:
            measured[number].append(measure(given.binary, given.files, given.output, ["--threads", str(number), *options]))
    row = measured[threads[0]][0]
    names = [name for name, _, _ in row["stages"]]
    print(f"{row['documents']:,} documents, {row['input_bytes'] / 1e6:,.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {given.runs} runs")
    print(f"| threads | wall, s | times as fast | CPU, s | {' | '.join(names)} |")
    print("|---" * (4 + len(names)) + "|")
    first = None
    for number, rows in measured.items():
        wall = median(rows, lambda row: row["wall_s"])
        first = first or wall
        stages = [f"{median(rows, lambda row: row['stages'][at][1]):.2f}" for at in range(len(names))]
        cpu = median(rows, lambda row: row["cpu_s"])
        print(f"| {number} | {wall:.2f} | {first / wall:.2f} | {cpu:.2f} | {' | '.join(stages)} |", flush=True)


if __name__ == "__main__":
    main()
