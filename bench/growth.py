#!/usr/bin/env python3
"""Measures the cost of a document as a collection grows, and plots it.

    bench/growth.py FOLDER -o OUT [--binary PATH] [--sizes 1,3,10,30,100] [--rows FILE] [-- OPTIONS OF dedup]
    bench/growth.py --plot FILE.svg --rows FILE

FOLDER has the parts that many_records.py makes; a size is the number of parts that are read. Each row added to FILE has the number of documents,
input bytes, wall and processor seconds, peak resident memory, spilled bytes, the largest size of the folder of results, the stages of run.json,
visits and candidates, and the numbers of planted and of found copies. Standard library only; Linux.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time


def size_of(folder):
    """Returns the bytes on disk below a folder; files that disappear meanwhile are ignored."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def measure(binary, parts, out, options):
    """Runs one job and returns its row."""
    shutil.rmtree(out, ignore_errors=True)
    command = [binary, "dedup", *map(str, parts), "-o", str(out), "--quiet", *options]
    most = [0]
    ended = threading.Event()

    def watch():
        while not ended.wait(1):
            most[0] = max(most[0], size_of(out))

    watcher = threading.Thread(target=watch)
    begun = time.monotonic()
    process = subprocess.Popen(command)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begun
    ended.set()
    watcher.join()
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        sys.exit(f"{' '.join(command)} failed")
    run = json.loads((out / "run.json").read_text())
    return {
        "documents": run["counts"]["documents"],
        "input_bytes": run["counts"]["input_bytes"],
        "options": options,
        "wall_s": round(wall, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_bytes": usage.ru_maxrss * 1024,
        "temporary_bytes": run["counts"]["temporary_bytes"],
        "disk_bytes": max(most[0], size_of(out)),
        "result_bytes": size_of(out),
        "stages": run["measured"]["stages"],
        "comparisons": run["comparisons"],
        "repeated_texts": run["counts"]["repeated_texts"],
        "decisions": run["decisions"],
        "load": os.getloadavg()[0],
    }


SERIES = (
    ("CPU, microseconds a document", lambda row: row["cpu_s"] / row["documents"] * 1e6),
    ("wall, microseconds a document", lambda row: row["wall_s"] / row["documents"] * 1e6),
    ("peak memory, bytes a document", lambda row: row["peak_bytes"] / row["documents"]),
)


def number(value):
    """Formats a number with three digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def panel(left, title, points):
    """Returns the lines of one plot: the logarithm of the number of documents, and the other axis from 0."""
    top = max(value for _, value in points) * 1.1
    low, high = (math.log(points[end][0]) for end in (0, -1))
    place = [(left + 210 * (math.log(count) - low) / (high - low), 220 - 180 * value / top) for count, value in points]
    lines = [
        f'<text x="{left}" y="20">{title}</text>',
        f'<path d="M{left} 40V220H{left + 220}" fill="none" stroke="#666"/>',
    ]
    for share in (0.5, 1):
        lines.append(f'<text x="{left - 6}" y="{224 - 180 * share / 1.1:.0f}" text-anchor="end">{number(top / 1.1 * share)}</text>')
    for (x, y), (count, value) in zip(place, points):
        lines.append(f'<text x="{x:.0f}" y="238" text-anchor="middle">{count / 1e6:g}M</text>')
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1f5fa8"><title>{number(value)}</title></circle>')
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    lines.append(f'<polyline points="{path}" fill="none" stroke="#1f5fa8" stroke-width="2"/>')
    return lines


def plot(rows, path):
    """Writes the plots of all rows to an SVG file."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 260" font-family="sans-serif" font-size="12">',
        "<title>Cost of a document by the size of the collection</title>",
        '<rect width="900" height="260" fill="white"/>',
    ]
    for at, (title, value) in enumerate(SERIES):
        lines += panel(60 + 295 * at, title, [(row["documents"], value(row)) for row in rows])
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")


def main():
    """Reads the options, and measures or plots."""
    own, _, passed = " ".join(sys.argv[1:]).partition(" -- ")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--binary", default="target/release/lookalike")
    parser.add_argument("--sizes", default="1,3,10,30,100")
    parser.add_argument("--rows", type=pathlib.Path, required=True)
    parser.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args(own.split())
    if options.plot:
        rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
        plot(sorted(rows, key=lambda row: row["documents"]), options.plot)
        return
    parts = sorted(options.folder.glob("part-*.jsonl"))
    for size in map(int, options.sizes.split(",")):
        row = measure(options.binary, parts[:size], options.output, passed.split())
        with open(options.rows, "a", encoding="ascii") as file:
            file.write(json.dumps(row) + "\n")
        print({key: row[key] for key in ("documents", "wall_s", "cpu_s", "peak_bytes", "disk_bytes")}, flush=True)


if __name__ == "__main__":
    main()
