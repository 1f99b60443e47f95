"""Web archives and other files as rows: tasks read them with the engine, not with Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any

from lookalike import _lookalike
from lookalike._options import words
from lookalike.spark._cluster import Cluster
from lookalike.spark._types import DataFrame, SparkSession

__all__ = ["read_archives"]

_SCHEMA = "id string, source string, record long, offset long, charset string, text string, reason string, count long"


def read_archives(
    session: SparkSession,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    losses: bool = False,
    **options: Any,
) -> DataFrame:
    """The texts of web archives (WARC, ARC, WET), and of all other files that the command ``lookalike extract`` reads, one per row:
    ``id`` (the URL), ``source``, ``record``, ``offset``, ``charset``, ``text``.

    One task reads one file. ``paths`` are files, folders, or addresses such as ``s3://bucket/name.warc.gz`` that all machines can open, with
    the credentials of their environment; with a local master also globs. The driver lists folders of the file system, and what
    ``s3://bucket/crawl/*.warc.gz`` stands for; one task reads all of ``s3://bucket/crawl/``. ``options`` are those of ``lookalike extract``:
    ``html="main"``, ``format="warc"``, ``memory="2G"`` (512 MB by default). A file that cannot be opened ends the job.
    Records that cannot be read are left out; with ``losses=True`` the columns ``reason`` and ``count`` are added, and a row for each kind of
    loss in a file, with its ``source`` and without a text.
    """
    cluster = Cluster(session)
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    names = [name for path in given for name in _files(os.fspath(path), cluster.is_local)]
    if not names:
        raise FileNotFoundError("there are no files: " + ", ".join(map(str, given)))
    # A task has one core, and shares the memory of its machine with others.
    told = words({"threads": 1, "memory": "512M", **options})
    found = cluster.run(_one_in_each_partition(session, names), "read_archives", told, schema=_SCHEMA)
    return found if losses else found.where("reason is null").drop("reason", "count")


def _one_in_each_partition(session: SparkSession, names: list[str]) -> DataFrame:
    numbered = session.createDataFrame(list(enumerate(names)), "number long, path string")
    # By ranges of numbers. By hashes of names a third of the partitions would have none, and others several.
    return numbered.repartitionByRange(len(names), "number").select("path")


def _files(path: str, is_local: bool) -> list[str]:
    if path.startswith("file:/"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        # A folder stays one task: the engine passes over what it cannot read there, and refuses it where it is named.
        return _lookalike.object_urls(path) if "*" in path else [path]
    # A name without wildcards is kept though no file has it: the task says what is wrong, with the reason.
    found = sorted(glob.glob(path, recursive=True)) if is_local and glob.has_magic(path) and not os.path.exists(path) else [path]
    # Tasks run in folders of their own.
    named = [os.path.abspath(name) for name in found] if is_local else found
    return [file for name in named for file in _listed(name)]


def _listed(path: str) -> list[str]:
    """The files of a folder and those below it, without hidden ones; another path is itself."""
    if not os.path.isdir(path):
        return [path]
    below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(file for file in below if not any(part.startswith(".") for part in os.path.relpath(file, path).split(os.sep)))
