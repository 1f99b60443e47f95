"""Measures CPU seconds, shuffle, recall and precision for a collection of documents with Spark, the command and other engines on Spark.

    target/spark-venv/bin/python python/tests_spark/scale.py DOCUMENTS [WORDS] [--engines command,spark,minhashlsh,bands]
    target/spark-venv/bin/python python/tests_spark/scale.py --plot bench/results/spark-growth.jsonl docs/images/spark-growth.svg

The first prints a line of JSON for each engine, the second draws such lines. All engines read the same rows, Spark from Parquet. The exact list of
pairs at or above the threshold is the command's (`pairs=all`); pairs of other engines are compared with it. Each engine runs in a session of its own,
and the time for starting a session is not counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from conftest import found_lines, settings
from rates import cpu_of_session, write

THRESHOLD = 0.8


def session_of(events: Path, folder: Path):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    conf = {
        **settings(),
        "spark.driver.memory": "3g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{events}",
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(folder / "local"),
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def shuffled(events: Path) -> int:
    """Returns the bytes that tasks wrote for shuffles."""
    total = 0
    for path in events.rglob("*"):
        if path.is_file() and not path.name.startswith((".", "appstatus")):
            for line in path.read_text(errors="replace").splitlines():
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    metrics = json.loads(line).get("Task Metrics") or {}
                    total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return total


def minhashlsh(data) -> list[tuple[str, str]]:
    """Runs pyspark's MinHashLSH over sets of shingles as vectors, and its join, which verifies with the vectors.

    Five tables of one function each, as in its documentation, miss 0.03 % of the pairs at the threshold. With 2^30 features two shingles
    hardly ever collide, and unrelated documents do not become candidates.
    """
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, Tokenizer
    from pyspark.sql import functions as F

    words = Tokenizer(inputCol="text", outputCol="words").transform(data)
    runs = NGram(n=5, inputCol="words", outputCol="runs").transform(words)
    sets = HashingTF(inputCol="runs", outputCol="set", numFeatures=1 << 30, binary=True).transform(runs).select("id", "set")
    model = MinHashLSH(inputCol="set", outputCol="hashes", numHashTables=5, seed=1).fit(sets)
    # The join returns distances below the bound only.
    pairs = model.approxSimilarityJoin(sets, sets, 1 - THRESHOLD + 1e-9, distCol="distance")
    pairs = pairs.select(F.col("datasetA.id").alias("a"), F.col("datasetB.id").alias("b")).where("a < b")
    return [(row["a"], row["b"]) for row in pairs.collect()]


def bands(data) -> list[tuple[str, str]]:
    """Does what text-dedup's script for Spark does: 250 minima in 25 bands of 10 by NumPy, buckets by groupByKey, each document paired with
    the first of its bucket, no verification. These are its bands for its own threshold of 0.7; for 0.8 it would use 16 bands of 15, which
    find 44 % at 0.8."""
    import hashlib
    import re

    import numpy as np

    functions, prime = 250, (1 << 61) - 1
    rows_of_band, count = 10, 25
    draw = np.random.RandomState(42)
    a = draw.randint(1, prime, size=functions, dtype=np.uint64)
    b = draw.randint(0, prime, size=functions, dtype=np.uint64)

    def keys(row):
        words = re.split(r"\W", row["text"].lower())
        runs = {" ".join(words[at : at + 5]) for at in range(len(words) - 4)}
        values = np.array([int.from_bytes(hashlib.sha1(run.encode()).digest()[:4], "little") for run in runs], dtype=np.uint64)
        if not len(values):
            return
        minima = ((values[:, None] * a + b) % np.uint64(prime) & np.uint64(0xFFFFFFFF)).min(axis=0).astype(np.uint32)
        for band in range(count):
            yield (band, minima[band * rows_of_band : (band + 1) * rows_of_band].tobytes()), row["id"]

    def of_group(group):
        ids = sorted(group[1])
        return [(ids[0], id) for id in ids[1:]]

    found = data.rdd.flatMap(keys).groupByKey().flatMap(of_group).distinct()
    return found.collect()


def within_components(edges: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns all pairs of documents that edges connect, since such a script treats them as duplicates."""
    from lookalike.spark._components import connected

    members: dict[str, list[str]] = {}
    for node, component in connected(edges).items():
        members.setdefault(component, []).append(node)
    return {pair for ids in members.values() for pair in itertools.combinations(sorted(ids), 2)}


def spark(data) -> tuple[bytes, list]:
    import lookalike.spark as lks

    result = lks.dedup(data, id="id")
    return found_lines(result), result.costs


#: Kinds of JVM threads other than those of tasks, by the start of their names.
THREADS = {"C1 C": "compilers", "C2 C": "compilers", "GC T": "collectors", "G1 ": "collectors"}
#: Starts of the names of JVM threads that work for tasks. Threads that have ended are counted as tasks too, which most of them were.
OF_TASKS = ("Exec", "stdo", "Writ")


class Meter(threading.Thread):
    """Counts the CPU seconds of all processes in this operating system session. It looks every half second and keeps the last value of each,
    so processes that have ended count until the last look."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        #: Seconds by process, start and kind.
        self._seen: dict[tuple[str, str, str], float] = {}
        self._lock = threading.Lock()
        self.start()

    def run(self) -> None:
        while True:
            self._look()
            time.sleep(0.5)

    def _look(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(process.name)) != os.getsid(0):
                    continue
                name, whole, started = self._told(process)
                found = {"driver" if int(process.name) == os.getpid() else "workers": whole}
                if name == "java":
                    found = dict.fromkeys(["compilers", "collectors", "other threads"], 0.0)
                    for thread in (process / "task").iterdir():
                        name, seconds, _ = self._told(thread)
                        if not name.startswith(OF_TASKS):
                            found[next((THREADS[start] for start in THREADS if name.startswith(start)), "other threads")] += seconds
                    found["tasks"] = whole - sum(found.values())
            except OSError:
                continue
            with self._lock:
                self._seen |= {(process.name, started, kind): seconds for kind, seconds in found.items()}

    @staticmethod
    def _told(folder: Path) -> tuple[str, float, str]:
        """Returns name, CPU seconds and start time of a thread, or of a process including its ended threads."""
        name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        fields = rest.split()
        return name, sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"), fields[19]

    def by_kind(self) -> dict[str, float]:
        self._look()
        found = dict.fromkeys(["tasks", "compilers", "collectors", "other threads", "workers", "driver"], 0.0)
        with self._lock:
            for (*_, kind), seconds in self._seen.items():
                found[kind] += seconds
        return found

    def since(self, before: dict[str, float]) -> dict[str, float]:
        return {kind: round(seconds - before[kind], 2) for kind, seconds in self.by_kind().items()}


def measured(engine: str, folder: Path) -> dict:
    """Measures one engine in this process and its children."""
    if engine == "command":
        subprocess.run([sys.executable, "-m", "lookalike", "dedup", folder / "rows.jsonl", "-o", folder / "out", "--quiet", "--overwrite"], check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {"engine": engine, "cpu": round(used.ru_utime + used.ru_stime, 2)}
    events = Path(tempfile.mkdtemp(dir=folder))
    session = session_of(events, folder)
    data = session.read.schema("id string, text string").parquet(str(folder / "rows.parquet"))
    told: dict = {"engine": engine}
    if engine.startswith("spark"):
        import lookalike.spark as lks

        # Warm up the session, so that its start does not count.
        lks.dedup(data.limit(1000), id="id")
    else:
        data.limit(10).count()
    meter = Meter()
    before, at = meter.by_kind(), shuffled(events)
    if engine == "spark":
        found, costs = spark(data)
        told["cpu by"] = meter.since(before)
        told["same bytes"] = found == (folder / "out" / "clusters.jsonl").read_bytes()
        told["costs"] = costs
        told["edges"] = next(cost["edge_count"] for cost in costs if cost["stage"] == "groups")
    else:
        pairs = {"minhashlsh": minhashlsh, "bands": bands}[engine](data)
        told["cpu by"] = meter.since(before)
    told["cpu"] = round(sum(told["cpu by"].values()), 2)
    session.stop()
    told["shuffled"] = shuffled(events) - at
    if engine != "spark":
        found = within_components(pairs) if engine == "bands" else set(pairs)
        exact = {tuple(json.loads(line).values())[:2] for line in open(folder / "all" / "pairs.jsonl")}
        right = len(found & exact)
        told |= {"pairs": len(found), "exact": len(exact), "recall": right / max(1, len(exact)), "precision": right / max(1, len(found))}
    return told


def ended(call: list, limit: float) -> tuple[str, str]:
    """Runs a call in an operating system session of its own, with a limit on its CPU seconds. Returns its output, and why it failed if it
    did."""
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        while True:
            try:
                return running.communicate(timeout=5)[0], f"ended with {running.returncode}" if running.returncode else ""
            except subprocess.TimeoutExpired:
                if cpu_of_session(running.pid) > limit:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.communicate()
                    return "", f"not done after {limit:.0f} CPU seconds"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", type=int, nargs="?")
    parser.add_argument("words", type=int, nargs="?", default=40)
    parser.add_argument("--engines", default="command,spark")
    parser.add_argument("--limit", type=float, default=1800, help="CPU seconds of an engine, at most: 15 minutes of two cores")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--plot", nargs=2, type=Path, metavar=("LINES", "SVG"))
    known = parser.parse_args()
    if known.plot:
        lines, svg = known.plot
        svg.write_text(drawn([json.loads(line) for line in lines.read_text().splitlines()]))
        return
    if known.documents is None:
        parser.error("name a number of documents")
    if known.one:
        print(json.dumps(measured(known.one, known.folder)))
        return
    with tempfile.TemporaryDirectory(prefix="lookalike-scale-") as name:
        folder = Path(name)
        write(folder / "rows.jsonl", known.documents, known.words)
        as_parquet(folder)
        engines = known.engines.split(",")
        if {"minhashlsh", "bands"} & set(engines):
            call = [sys.executable, "-m", "lookalike", "dedup", folder / "rows.jsonl", "-o", folder / "all", "--pairs", "all", "--quiet"]
            subprocess.run(call, check=True)
        for engine in engines:
            call = [sys.executable, __file__, str(known.documents), str(known.words), "--folder", str(folder), "--one", engine]
            start = time.monotonic()
            lines, failed = ended(call, known.limit)
            told = {"engine": engine, "failed": failed} if failed else json.loads(lines.splitlines()[-1])
            costs = told.pop("costs", [])
            print(json.dumps({**told, "documents": known.documents, "words": known.words, "wall": round(time.monotonic() - start, 1)}), flush=True)
            for cost in costs:
                print("   ", json.dumps(cost), file=sys.stderr)


def drawn(told: list[dict]) -> str:
    """Returns an SVG of the cost of a document as collections grow: three panels side by side, each axis from 0."""
    spark, command = ([row for row in told if row["engine"] == engine and row["words"] == 40] for engine in ("spark", "command"))
    per = lambda rows, name, scale: [(row["documents"], row[name] * scale / row["documents"]) for row in rows]  # noqa: E731
    panels = [
        ("CPU, microseconds a document", [("Spark", per(spark, "cpu", 1e6)), ("command", per(command, "cpu", 1e6))]),
        ("shuffled, bytes a document", [("Spark", per(spark, "shuffled", 1))]),
        ("edges a document", [("Spark", per(spark, "edges", 1))]),
    ]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 260" font-family="sans-serif" font-size="12">', "<title>Growth on Spark</title>"]
    out.append('<rect width="900" height="260" fill="white"/>')
    low, high = (math.log10(edge(row["documents"] for row in spark)) for edge in (min, max))
    for number, (title, lines) in enumerate(panels):
        left, most = 50 + 300 * number, max(value for _, line in lines for _, value in line) * 1.1
        place = lambda n, value: (left + 210 * (math.log10(n) - low) / (high - low), 220 - 180 * value / most)  # noqa: B023, E731
        out.append(f'<text x="{left}" y="20">{title}</text>')
        out.append(f'<path d="M{left} 40V220H{left + 220}" fill="none" stroke="#666"/>')
        for share in (0.5, 1):
            value = most / 1.1 * share
            out.append(f'<text x="{left - 6}" y="{place(10**low, value)[1] + 4:.0f}" text-anchor="end">{value:.3g}</text>')
        for row in spark:
            out.append(f'<text x="{place(row["documents"], 0)[0]:.0f}" y="238" text-anchor="middle">{row["documents"] / 1e6:g}M</text>')
        for name, line in lines:
            colour = "#1f5fa8" if name == "Spark" else "#b5541c"
            points = [place(*point) for point in sorted(line)]
            out.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
            out.append(f'<text x="{points[-1][0]:.0f}" y="{points[-1][1] - 8:.0f}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


def as_parquet(folder: Path) -> None:
    """Writes the rows to files of some 60 MB of text each, as they are stored in a data lake."""
    import pyarrow as pa
    import pyarrow.json
    import pyarrow.parquet

    (folder / "rows.parquet").mkdir()
    reader = pyarrow.json.open_json(folder / "rows.jsonl", read_options=pa.json.ReadOptions(block_size=64 << 20))
    for number, batch in enumerate(reader):
        pyarrow.parquet.write_table(pa.table(batch), folder / "rows.parquet" / f"part-{number:05}.parquet")


if __name__ == "__main__":
    main()
