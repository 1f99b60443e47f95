"""SQL functions."""

from __future__ import annotations


import lookalike
from lookalike._lookalike import Scheme
from lookalike.spark import _task
from lookalike.spark._cluster import Cluster
from lookalike.spark._fingerprints import narrow_scheme
from lookalike.spark._types import SparkSession

__all__ = ["register"]

#: Functions by name: the kernel, its type in Spark, and whether it takes a scheme.
_FUNCTIONS = {
    "lookalike_simhash": ("sql_simhash", "bigint", True),
    "lookalike_minhash": ("sql_minhash", "array<bigint>", True),
    "lookalike_resemblance": ("sql_resemblance", "double", True),
    "lookalike_extract": ("sql_extract", "string", False),
}


def register(session: SparkSession, *, scheme: Scheme | None = None) -> list[str]:
    """Register the SQL functions in a session, and return their names.

    ``lookalike_simhash(text)`` is a fingerprint as returned by :func:`fingerprint`: ``bit_count(a ^ b)`` is the distance of two.
    ``lookalike_minhash(text)`` is a signature of 128 numbers, ``lookalike_resemblance(a, b)`` the resemblance of two texts, and
    ``lookalike_extract(html)`` the main text of a page. All are null if an argument is null.
    """
    from pyspark.sql import functions as F

    cluster = Cluster(session)
    chosen = str(narrow_scheme(scheme))
    by_column = getattr(F, "arrow_udf", None)
    for name, (kernel, kind, takes_scheme) in _FUNCTIONS.items():
        arguments = (chosen,) if takes_scheme else ()
        if by_column is not None:
            function = by_column(_task.in_task(cluster.roots, lookalike.__version__, kernel, arguments), kind)
        else:
            # Spark before 4.1 has no functions on Arrow columns, so this one processes a row at a time.
            function = F.udf(_task.in_task(cluster.roots, lookalike.__version__, "on_one_row", (kernel, arguments)), kind)
        session.udf.register(name, function)
    return list(_FUNCTIONS)
