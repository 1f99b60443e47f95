"""Archives the Java classes that a small job loads, so that sessions that name the archive start in half the processor time.

    python archive_classes.py FILE

Java options of such a session: `-XX:SharedArchiveFile=FILE`. Java ignores an archive of another version of Java or Spark.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from conftest import settings
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(file: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Only the driver of this job writes an archive, and under another name until it is complete.
    partial = file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    builder = SparkSession.builder.config("spark.driver.extraJavaOptions", f"-XX:ArchiveClassesAtExit={partial} -Xlog:disable")
    for name, value in settings().items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        rows = session.createDataFrame([(str(n), f"text {n // 2}") for n in range(100)], "id string, text string")
        rows.write.json(f"{folder}/json")
        rows.write.csv(f"{folder}/csv", header=True)
        session.read.csv(f"{folder}/csv", header=True).collect()
        read = session.read.schema("id string, text string").json(f"{folder}/json")
        read.mapInArrow(lambda batches: batches, "id string, text string").write.parquet(f"{folder}/parquet")
        rows = session.read.parquet(f"{folder}/parquet")
        rows.groupBy("text").applyInArrow(lambda table: table, "id string, text string").collect()
        groups = rows.groupBy("text").agg(F.min("id").alias("first"), F.collect_list(F.struct("id", "text")).alias("members"))
        joined = rows.join(groups, "text").withColumn("hash", F.xxhash64("id"))
        joined.orderBy("id").write.parquet(f"{folder}/joined")
        joined.join(rows.hint("merge"), "id", "left_anti").select(F.explode("members")).distinct().collect()
        rows.union(rows.filter("id > 5")).cache().count()
    # The driver ends when its standard input is closed.
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(600)
    # Without an archive, sessions only start more slowly.
    if partial.exists():
        os.replace(partial, file)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
