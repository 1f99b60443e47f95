"""Web archives and other files as rows: tasks read them with the engine, not with Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any

from lookalike._options import words
from lookalike.spark._cluster import Cluster
from lookalike.spark._types import DataFrame, SparkSession

__all__ = ["read_archives"]

_SCHEMA = "id string, source string, record long, offset long, charset string, text string"


def read_archives(session: SparkSession, paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Any) -> DataFrame:
    """The texts of web archives (WARC, ARC, WET), and of all other files that the command ``lookalike extract`` reads, one per row:
    ``id`` (the URL), ``source``, ``record``, ``offset``, ``charset``, ``text``.

    One task reads one file. ``paths`` are files or addresses such as ``s3://bucket/name.warc.gz`` that all machines can open, with
    the credentials of their environment; with a local master also globs. ``options`` are those of ``lookalike extract``:
    ``html="main"``, ``format="warc"``. A file that cannot be opened ends the job; damaged records are left out.
    """
    cluster = Cluster(session)
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    names = [name for path in given for name in _files(os.fspath(path), cluster.is_local)]
    if not names:
        raise FileNotFoundError("there are no files: " + ", ".join(map(str, given)))
    return cluster.run(_one_in_each_partition(session, names), "read_archives", words(options), schema=_SCHEMA)


def _one_in_each_partition(session: SparkSession, names: list[str]) -> DataFrame:
    numbered = session.createDataFrame(list(enumerate(names)), "number long, path string")
    # By ranges of numbers. By hashes of names a third of the partitions would have none, and others several.
    return numbered.repartitionByRange(len(names), "number").select("path")


def _files(path: str, is_local: bool) -> list[str]:
    if not is_local or "://" in path:
        return [path]
    # Tasks run in folders of their own.
    # A name without wildcards is kept though no file has it: the task says what is wrong, with the reason.
    found = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else [path]
    return [os.path.abspath(name) for name in found]
