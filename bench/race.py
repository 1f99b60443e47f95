#!/usr/bin/env python3
"""Races lookalike against its peers: the same file, the same number of threads, in turn, medians.

    bench/race.py setup                                  install the peers, build everything
    bench/race.py dedup --records FILE [--pairs FILE]    JSON Lines to kept set
    bench/race.py sketches --records FILE [--width N]      text to sketch

Every engine runs as a process of its own. CPU seconds (all threads, user and system) and the peak
resident size are those that the kernel reports for it, so reading, writing and the start of an
interpreter count for every engine. Standard library only.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import score

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON = HERE / ".venv" / "bin" / "python"
# These need other versions of libraries than the other peers: see README.md.
TEXT_DEDUP = HERE / ".venv-text-dedup" / "bin" / "python"
DATATROVE = HERE / ".venv-datatrove" / "bin" / "python"
# Programs that are not on crates.io and are built from their repositories.
FASTDEDUP = HERE / ".peers" / "fastdedup" / "target" / "release" / "fastdedup"
DUPLODOCUS = HERE / ".peers" / "duplodocus" / "target" / "release" / "duplodocus"
OURS = ROOT / "target" / "release" / "lookalike"
# Variables that set the number of threads of the underlying libraries.
THREADS = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclasses.dataclass
class Engine:
    """A runner of the dedup race."""

    command: list
    program: pathlib.Path
    sampled: bool = False
    note: str = ""


@dataclasses.dataclass
class Run:
    """The cost of one run of an engine, and the last line that it printed."""

    cpu: float
    wall: float
    rss: int
    printed: str


def peer(script, *options):
    """Returns the command of a Python peer."""
    return [PYTHON, HERE / "peers" / script, "{input}", "-o", "{output}", "--threshold",
            "{threshold}", "--threads", "{threads}", *options]


def ours(*options):
    """Returns the command of lookalike's binary."""
    return [OURS, "dedup", "{input}", "-o", "{output}", "--threads", "{threads}",
            "--threshold", "{threshold}", "--shingle", "words:5", "--quiet", *options]


ENGINES = {
    "lookalike": Engine(ours(), OURS, note="every pair, verified, clusters, pairs, report"),
    "lookalike-minhash": Engine(
        ours("--method", "minhash"), OURS, note="bands, verified, clusters, pairs, report"
    ),
    "lookalike-python": Engine(
        peer("lookalike_pipeline.py"), PYTHON, note="every pair, verified, clusters; rows in memory"
    ),
    "gaoya": Engine(
        [HERE / "target" / "release" / "gaoya_pipeline", "{input}", "{output}", "{threshold}"],
        HERE / "target" / "release" / "gaoya_pipeline",
        note="estimate checked, clusters",
    ),
    "rensa": Engine(peer("rensa_pipeline.py"), PYTHON, note="estimate checked, clusters"),
    "rensa-keep": Engine(
        peer("rensa_pipeline.py", "--mode", "keep"), PYTHON, note="estimate checked, no clusters"
    ),
    "rensa-flags": Engine(
        peer("rensa_pipeline.py", "--mode", "flags"),
        PYTHON,
        note="unchecked band collisions, no clusters",
    ),
    "datasketch": Engine(
        peer("datasketch_pipeline.py"), PYTHON, sampled=True, note="estimate checked, clusters"
    ),
    "compat": Engine(
        peer("datasketch_pipeline.py", "--library", "lookalike.compat.datasketch"),
        PYTHON,
        sampled=True,
        note="datasketch's pipeline over our classes",
    ),
    "text-dedup": Engine(
        [TEXT_DEDUP, *peer("text_dedup_pipeline.py")[1:]],
        TEXT_DEDUP,
        sampled=True,
        note="unchecked band collisions, clusters",
    ),
    "datatrove": Engine(
        [DATATROVE, *peer("datatrove_pipeline.py")[1:]],
        DATATROVE,
        sampled=True,
        note="unchecked band collisions, clusters",
    ),
    "duplodocus": Engine(
        peer("program_pipeline.py", "--program", DUPLODOCUS),
        DUPLODOCUS,
        note="unchecked band collisions, components",
    ),
    "fastdedup": Engine(
        peer("program_pipeline.py", "--program", FASTDEDUP),
        FASTDEDUP,
        note="estimate checked, no clusters",
    ),
}


def run_process(command, threads=1):
    """Runs a command with that many threads and returns its Run; a failure ends the race."""
    with tempfile.TemporaryFile() as printed:
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=printed,
            env=os.environ | dict.fromkeys(THREADS, str(threads)),
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"failed with status {process.returncode}: {' '.join(map(str, command))}")
        printed.seek(0)
        text = printed.read().decode()
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024, text)


def fill(command, **places):
    """Returns the command with its placeholders filled in."""
    return [str(part).format(**places) for part in command]


def sample_of(records, count, folder):
    """Writes the first lines of the file to a file of their own. Returns (path, lines, all lines)."""
    path = folder / "sample.jsonl"
    total = taken = 0
    with open(records, "rb") as source, open(path, "wb") as out:
        for total, line in enumerate(source, 1):
            if total <= count:
                out.write(line)
                taken = total
    return path, taken, total


def available(names):
    """Yields the engines of these names that are installed, and prints which are missing."""
    for name in names:
        if ENGINES[name].program.exists():
            yield name
        else:
            print(f"left out: {name} ({ENGINES[name].program} is missing)", file=sys.stderr)


def race(names, inputs, options, folder):
    """Runs every engine options.runs times, in turn. Returns name -> runs."""
    runs = {name: [] for name in names}
    for _ in range(options.runs):
        for name in names:
            output = folder / name
            shutil.rmtree(output, ignore_errors=True)
            command = fill(
                ENGINES[name].command,
                input=inputs[name],
                output=output,
                threshold=options.threshold,
                threads=options.threads,
            )
            runs[name].append(run_process(command, options.threads))
            print(f"{name}: {runs[name][-1].cpu:.2f} s", file=sys.stderr)
    return runs


def start_costs(names, folder, options):
    """Returns the Run of each sampled engine on an empty file, whose seconds are not scaled."""
    empty = folder / "empty.jsonl"
    empty.touch()
    costs = dict.fromkeys(names, Run(0.0, 0.0, 0, ""))
    for name in names:
        if ENGINES[name].sampled:
            output = folder / "empty"
            command = fill(
                ENGINES[name].command,
                input=empty,
                output=output,
                threshold=options.threshold,
                threads=options.threads,
            )
            costs[name] = run_process(command, options.threads)
    return costs


def scaled(seconds, start, factor):
    """Scales the seconds on a sample to the whole file."""
    return start + max(seconds - start, 0.0) * factor


def shingling(printed):
    """Returns the CPU seconds that a Python peer says it spent on parsing and shingling."""
    lines = printed.strip().splitlines()
    if not lines or not lines[-1].startswith("{") or not lines[-1].endswith("}"):
        return 0.0
    return json.loads(lines[-1]).get("stages_cpu", {}).get("shingles", 0.0)


def figures(name, runs, records, start, options, folder):
    """Returns the medians and the score of one engine; records is (its input, lines, all lines)."""
    path, lines, total = records
    factor = total / lines
    kept = folder / name / "kept.jsonl"
    result = {
        "engine": name,
        "note": ENGINES[name].note,
        "records": lines,
        "all_records": total,
        "bytes": path.stat().st_size * factor,
        "cpu": scaled(statistics.median(run.cpu for run in runs), start.cpu, factor),
        "wall": scaled(statistics.median(run.wall for run in runs), start.wall, factor),
        "shingling": factor * statistics.median(shingling(run.printed) for run in runs),
        "rss": max(run.rss for run in runs),
        "kept": len(score.kept_ids(kept)),
    }
    if options.pairs:
        result |= score.score_files(path, kept, options.pairs, options.threshold)
    return result


def dedup_table(results):
    """Returns the results as a Markdown table; times of sampled engines are scaled to all records."""
    base = results[0]["cpu"]
    heads = ["engine", "CPU s", "of it Python's shingling", "wall s",
             f"times {results[0]['engine']}", "records/CPU s", "MB/CPU s", "peak RSS MB", "kept",
             "recall", "unexplained", "does"]
    rows = [heads, ["---"] * len(heads), *(dedup_row(found, base) for found in results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def dedup_row(found, base):
    """Returns the cells of one engine."""
    cpu = found["cpu"]
    part = found["records"] < found["all_records"]
    mark = f" (from {found['records']:,} records)" if part else ""
    return [
        found["engine"],
        f"{cpu:.2f}{mark}",
        f"{found['shingling']:.2f}" if found["shingling"] else "-",
        f"{found['wall']:.2f}",
        f"{cpu / base:.1f}",
        f"{found['all_records'] / cpu:,.0f}",
        f"{found['bytes'] / cpu / 1e6:.1f}",
        f"{found['rss'] / 1e6:,.0f}",
        f"{found['kept']:,}",
        str(found.get("recall", "-")),
        str(found.get("unexplained", "-")),
        found["note"],
    ]


def versions():
    """Returns the names and versions of the peers."""
    pins = (HERE / "requirements.txt").read_text().splitlines()
    pins = [pin.replace("==", " ") for pin in pins if "==" in pin]
    lock = (HERE / "Cargo.lock").read_text()
    crates = [block.split("\n") for block in lock.split("[[package]]\n")[1:]]
    pinned = [f"{name[8:-1]} {version[11:-1]}" for name, version, *_ in crates
              if name[8:-1] in ("gaoya", "simhash")]
    return ", ".join([f"Python {platform.python_version()}", *pinned, *pins])


def machine():
    """Returns the processor, its number of cores and the load of the machine."""
    models = [line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
              if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def setup(_options):
    """Installs the Python peers, and builds the Rust peers and lookalike's binary."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", HERE / ".venv"], check=True)
    subprocess.run(
        [PYTHON, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True
    )
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=HERE, check=True)
    subprocess.run(["cargo", "build", "--release", "-p", "lookalike-cli"], cwd=ROOT, check=True)


def dedup(options):
    """Runs the race from JSON Lines to the kept set."""
    names = list(available(options.engines.split(",")))
    if not names:
        sys.exit("no engine is installed: run `bench/race.py setup` first")
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = pathlib.Path(scratch)
        sample, taken, total = sample_of(options.records, options.sample, folder)
        whole = (options.records, total, total)
        records = {n: (sample, taken, total) if ENGINES[n].sampled else whole for n in names}
        inputs = {name: records[name][0] for name in names}
        runs = race(names, inputs, options, folder)
        starts = start_costs(names, folder, options)
        results = [figures(n, runs[n], records[n], starts[n], options, folder) for n in names]
    print(f"{machine()}\n{versions()}\n")
    megabytes = options.records.stat().st_size / 1e6
    print(f"{options.records.name}: {total:,} records, {megabytes:.1f} MB, "
          f"threshold {options.threshold}, threads {options.threads}, medians of {options.runs}\n")
    print(dedup_table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def sketches(options):
    """Runs the race from text to sketch, with the Rust and Python programs in turn."""
    course = [str(options.megabytes), str(options.width)]
    programs = [
        [HERE / "target" / "release" / "sketches", options.records, *course],
        [PYTHON, HERE / "peers" / "sketches.py", options.records, *course],
    ]
    found = {}
    for _ in range(options.runs):
        for command in programs:
            for line in run_process(command).printed.splitlines():
                row = json.loads(line)
                found.setdefault((row["engine"], row["job"]), []).append(row)
    print(f"{machine()}\n{versions()}\n\n{options.records.name}, medians of {options.runs}\n")
    print(sketch_table(found))


def sketch_table(found):
    """Returns the rates of each (engine, job) as a Markdown table."""
    rows = ["| job | engine | documents/s | MB/s | M shingles/s |", "|---|---|---|---|---|"]
    for (engine, job), runs in sorted(found.items(), key=lambda item: item[0][1]):
        megabytes = statistics.median(run["bytes"] / run["cpu"] / 1e6 for run in runs)
        shingles = statistics.median(run["shingles"] / run["cpu"] / 1e6 for run in runs)
        documents = statistics.median(run["docs"] / run["cpu"] for run in runs)
        rows.append(f"| {job} | {engine} | {documents:,.0f} | {megabytes:.1f} | {shingles:.2f} |")
    return "\n".join(rows)


def parse():
    """Reads the options of the three commands and runs one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    commands.add_parser("setup").set_defaults(run=setup)
    for name, function in (("dedup", dedup), ("sketches", sketches)):
        command = commands.add_parser(name)
        command.set_defaults(run=function)
        command.add_argument("--records", type=pathlib.Path, required=True)
        command.add_argument("--runs", type=int, default=3)
        if function is dedup:
            command.add_argument("--pairs", type=pathlib.Path, help="pairs to measure recall by")
            command.add_argument("--threshold", type=float, default=0.8)
            command.add_argument("--threads", type=int, default=1, help="of engines that have them")
            command.add_argument("--engines", default=",".join(ENGINES))
            command.add_argument("--sample", type=int, default=50_000, help="for slow engines")
            command.add_argument("--scratch", type=pathlib.Path, help="folder for outputs")
            command.add_argument("--json", type=pathlib.Path, help="write the figures here too")
        else:
            command.add_argument("--megabytes", type=int, default=20, help="text to sketch")
            command.add_argument("--width", type=int, default=4, help="words a shingle")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = parse()
    OPTIONS.run(OPTIONS)
