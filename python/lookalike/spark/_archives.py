"""Web archives and other files as rows: tasks read them with the engine, not with Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from lookalike import _lookalike
from lookalike._options import words
from lookalike.spark._cluster import Cluster
from lookalike.spark._types import DataFrame, SparkSession

__all__ = ["read_archives"]


def read_archives(
    session: SparkSession,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    losses: bool = False,
    **options: Any,
) -> DataFrame:
    """The texts of web archives (WARC, ARC, WET), and of all other files that the command ``lookalike extract`` reads, one per row:
    ``id`` (the URL), ``source``, ``record``, ``offset``, ``charset``, ``text``. Records that cannot be read are left out without a warning:
    ask for them with ``losses=True``.

    One task reads one file. ``paths`` are files, folders, or addresses such as ``s3://bucket/name.warc.gz`` that all machines can open, with
    the credentials of their environment; with a local master also globs. The driver lists folders of the file system, and what
    ``s3://bucket/crawl/`` and ``s3://bucket/crawl/*.warc.gz`` stand for. ``options`` are those of ``lookalike extract``: ``html="main"``,
    ``format="warc"``, ``memory="2G"`` (512 MB by default). A file that is named and cannot be read ends the job; one that was found in a
    folder or by a pattern is left out, as are records that cannot be read. With ``losses=True`` the columns ``reason`` and ``count`` are
    added, and a row for each kind of loss in a file, with its ``source`` and without a text. The files are read again at each use of the frame:
    write it as a table first for :func:`dedup`, which reads its data up to five times.
    """
    cluster = Cluster(session)
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [file for path in given for file in _files(os.fspath(path), cluster.is_local)]
    if not files:
        raise FileNotFoundError("there are no files: " + ", ".join(map(str, given)))
    # A task has one core, and shares the memory of its machine with others.
    told = words({"threads": 1, "memory": "512M", **options})
    found = cluster.run(_one_per_partition(session, files), "read_archives", told)
    return found if losses else found.where("reason is null").drop("reason", "count")


class _File(NamedTuple):
    """A file, and whether it was found in a folder or by a pattern instead of being named."""

    path: str
    is_found: bool


def _one_per_partition(session: SparkSession, files: list[_File]) -> DataFrame:
    rows = [(number, *file) for number, file in enumerate(files)]
    numbered = session.createDataFrame(rows, "number long, path string, is_found boolean")
    # By ranges of numbers: by hashes of names, a third of the partitions would have no file and others several.
    return numbered.repartitionByRange(len(files), "number").select("path", "is_found")


def _files(path: str, is_local: bool) -> list[_File]:
    if path.startswith("file:/"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        is_found = "*" in path or path.endswith("/")
        return [_File(url, is_found) for url in (_lookalike.object_urls(path) if is_found else [path])]
    is_pattern = is_local and glob.has_magic(path) and not os.path.exists(path)
    # A name without wildcards is kept even if there is no such file: the task then reports the error and its reason.
    named = sorted(glob.glob(path, recursive=True)) if is_pattern else [path]
    # Tasks run in other folders.
    absolute = [os.path.abspath(name) for name in named] if is_local else named
    return [file for name in absolute for file in _listed(name, is_pattern)]


def _listed(path: str, is_found: bool) -> list[_File]:
    """Return the files in a folder and its subfolders, without hidden ones; any other path is returned unchanged."""
    if not os.path.isdir(path):
        return [_File(path, is_found)]
    below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    shown = (file for file in below if not any(part.startswith(".") for part in os.path.relpath(file, path).split(os.sep)))
    return [_File(file, True) for file in sorted(shown)]
