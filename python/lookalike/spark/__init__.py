"""Deduplication, joins and fingerprints of Apache Spark DataFrames, with the same answers as on one machine.

    import lookalike.spark as lks

    result = lks.dedup(pages, id="url", text="text", work_dir="s3a://bucket/job")
    result.survivors.write.parquet("s3a://bucket/kept")

Needs Spark 3.5 or 4, classic or Connect; executors need pyarrow and no other Python package. For a guide see the chapter *When one
machine is enough, and when not* of the documentation.
"""

from lookalike.spark._archives import read_archives
from lookalike.spark._components import components
from lookalike.spark._dedup import dedup
from lookalike.spark._fingerprints import fingerprint, join
from lookalike.spark._functions import register
from lookalike.spark._overlap import overlap
from lookalike.spark._result import SparkDedupResult

__all__ = ["SparkDedupResult", "components", "dedup", "fingerprint", "join", "overlap", "read_archives", "register"]
