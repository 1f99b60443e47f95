"""Documents per CPU second on Spark, in one process, and by the command: run it with the Python of `scripts/test-spark`.

    target/spark-venv/bin/python python/tests_spark/rates.py [DOCUMENTS [WORDS]]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conftest import found_lines, settings


def write(path: Path, count: int, words: int) -> None:
    """Writes documents of `words` words, a tenth of which are near-duplicates of an earlier one."""
    draw = random.Random(1)
    known = [f"{draw.getrandbits(40):x}"[: draw.randint(2, 9)] for _ in range(50_000)]
    earlier: list[list[str]] = []
    with open(path, "w") as lines:
        for at in range(count):
            if earlier and draw.random() < 0.1:
                text = list(draw.choice(earlier))
                text[draw.randrange(words)] = "changed"
            else:
                text = draw.choices(known, k=words)
                if len(earlier) < 10_000:
                    earlier.append(text)
            lines.write(json.dumps({"id": f"d{at:09}", "text": " ".join(text)}) + "\n")


def cpu_of_session(session: int | None = None) -> float:
    """Returns the CPU seconds of all processes of an operating system session (by default this one), including ended children."""
    session, ticks = session or os.getsid(0), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    count, words = (int(word) for word in [*sys.argv[1:], *["1000000", "40"][len(sys.argv) - 1 :]])
    if os.getsid(0) != os.getpid():
        # Restart in a session of its own, whose processes are counted.
        sys.exit(subprocess.run([sys.executable, *sys.argv], check=False, start_new_session=True).returncode)
    folder = Path(tempfile.mkdtemp(prefix="lookalike-rates-"))
    rows = folder / "rows.jsonl"
    write(rows, count, words)
    print(f"{count:,} documents of {words} words, {rows.stat().st_size / 1e6:,.0f} MB", flush=True)

    def told(name: str, start: float, before: float) -> float:
        seconds = cpu_of_session() - before
        print(f"{name}: {time.monotonic() - start:.1f} s, {seconds:.1f} CPU s, {count / seconds:,.0f} documents a CPU second", flush=True)
        return count / seconds

    before, start = cpu_of_session(), time.monotonic()
    call = [sys.executable, "-m", "lookalike", "dedup", rows, "-o", folder / "out", "--quiet"]
    subprocess.run(call, check=True)
    alone = told("the command", start, before)
    expected = (folder / "out" / "clusters.jsonl").read_bytes()

    from pyspark.sql import SparkSession

    import lookalike.spark as lks

    builder = SparkSession.builder
    for name, value in {**settings(), "spark.driver.memory": "2g"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.read.schema("id string, text string").json(str(rows)).write.parquet(str(folder / "rows.parquet"))
    data = session.read.parquet(str(folder / "rows.parquet"))
    # Warm up the session, so that its start does not count.
    lks.dedup(data.limit(1000), id="id")
    before, start = cpu_of_session(), time.monotonic()
    result = lks.dedup(data, id="id")
    on_spark = told("Spark, local[2]", start, before)
    print(f"ratio {alone / on_spark:.2f}; {result}")
    for cost in result.costs:
        print("   ", cost)
    assert found_lines(result) == expected
    session.stop()


if __name__ == "__main__":
    main()
