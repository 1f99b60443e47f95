"""Results of deduplication."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._errors import LookalikeError
from lookalike._explain import Explanation, explained
from lookalike._frames import Rows
from lookalike._lookalike import Array, Scheme, Table
from lookalike._report import summary_page
from lookalike._saved import copy_results

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DedupResult", "Records"]


class DedupResult:
    """What was kept, what was removed and for whom, as :func:`lookalike.dedup` decided.

    In a notebook it shows counts, the distribution of similarities and the largest clusters.
    """

    #: Repeats the job with another threshold.
    _again: Callable[[float], DedupResult]
    #: Options of the job that an explanation takes too.
    _explained_with: dict[str, Any]

    @property
    def kept(self) -> Any:
        """The documents that are kept, of the type of the data and in its order; for files :class:`Records`."""
        raise NotImplementedError

    @property
    def removed(self) -> Any:
        """The documents that are removed, in the same way."""
        raise NotImplementedError

    @property
    def mask(self) -> Array:
        """True for every document that is kept, in the order of the data."""
        raise NotImplementedError

    @property
    def clusters(self) -> Table:
        """A row for each removed document: ``survivor``, ``id``, ``similarity``, ``reason`` (``exact`` or ``near``)."""
        raise NotImplementedError

    @property
    def pairs(self) -> Table:
        """Pairs of similar documents: ``a``, ``b``, ``similarity``; with ``pairs="all"`` all of them."""
        raise NotImplementedError

    def annotated(self) -> Any:
        """The data with columns that say what became of each document.

        ``cluster_id`` (null if it is like no other), ``cluster_size``, ``survivor_id`` and ``representative_id`` (its own if it is
        kept), ``similarity``, ``reason``, ``is_duplicate``.
        """
        raise NotImplementedError

    @property
    def counts(self) -> dict[str, Any]:
        """Numbers of documents: ``documents``, ``kept``, ``removed``, ``exact``, ``near``, ``clusters``, and those of ``run.json``."""
        raise NotImplementedError

    @property
    def scheme(self) -> Scheme:
        """The scheme by which texts became features."""
        raise NotImplementedError

    @property
    def threshold(self) -> float:
        """Least resemblance of near-duplicates."""
        raise NotImplementedError

    def at(self, threshold: float) -> DedupResult:
        """The result with another threshold."""
        return self._again(threshold)

    def explain(self, a: Any, b: Any) -> Explanation:
        """Why the documents with these ids match or do not."""
        raise NotImplementedError

    def report(self) -> str:
        """The page ``report.html`` of the command."""
        raise NotImplementedError

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the folder of results that ``lookalike dedup`` writes, and return its path."""
        raise NotImplementedError

    def _largest_clusters(self, most: int) -> list[list[tuple[str, str | None]]]:
        """Ids and texts of the largest clusters, the survivor first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"<lookalike.DedupResult: {counts['documents']:,} documents, {counts['kept']:,} kept, "
            f"{counts['exact']:,} exact copies, {counts['near']:,} near-duplicates>"
        )

    def _repr_html_(self) -> str:
        similarities = self.clusters["similarity"].to_pylist()
        return summary_page(self.counts, self.threshold, similarities, self._largest_clusters(5))


def _counted(read: dict[str, Any], decided: dict[str, Any]) -> dict[str, Any]:
    exact, near = decided["removed_exact"], decided["removed_near"]
    counts = {
        "documents": read["documents"] - read["against"],
        "kept": decided["kept"],
        "removed": exact + near,
        "exact": exact,
        "near": near,
        "clusters": decided["clusters"],
    }
    return {**read, **decided, **counts}


class FrameResult(DedupResult):
    """Decisions about data in memory."""

    def __init__(
        self,
        rows: Rows,
        decisions: Any,
        *,
        texts: Callable[[], Iterable[str | None]],
        again: Callable[[float], DedupResult],
        save: Callable[[str, bool], None],
        explained_with: dict[str, Any],
    ) -> None:
        self._rows = rows
        self._decisions = decisions
        self._texts = texts
        self._again = again
        self._save = save
        self._explained_with = explained_with
        read, decided = json.loads(decisions.counts)
        self._counts = _counted(read, decided)

    @property
    def kept(self) -> Any:
        return self._rows.take(self.mask, True)

    @property
    def removed(self) -> Any:
        return self._rows.take(self.mask, False)

    @property
    def mask(self) -> Array:
        return self._decisions.mask

    @property
    def clusters(self) -> Table:
        return self._decisions.clusters

    @property
    def pairs(self) -> Table:
        return self._decisions.pairs

    def annotated(self) -> Any:
        return self._rows.with_columns(self._decisions.annotations)

    @property
    def counts(self) -> dict[str, Any]:
        return dict(self._counts)

    @property
    def scheme(self) -> Scheme:
        return Scheme(self._decisions.scheme)

    @property
    def threshold(self) -> float:
        return self._decisions.threshold

    def explain(self, a: Any, b: Any) -> Explanation:
        wanted = [str(a), str(b)]
        found: dict[str, str | None] = {}
        for name, text in zip(self._decisions.ids.to_pylist(), self._texts()):
            if name in wanted:
                found[name] = text
        for name in wanted:
            if name not in found:
                raise KeyError(f"no document has the id {name!r}")
        return explained(wanted, (found[wanted[0]] or "", found[wanted[1]] or ""), self._explained_with)

    def report(self) -> str:
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
            self.save(Path(folder, "results"))
            return Path(folder, "results", "report.html").read_text(encoding="utf-8")

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        from pathlib import Path

        self._save(os.fspath(folder), overwrite)
        return Path(folder)

    def _largest_clusters(self, most: int) -> list[list[tuple[str, str | None]]]:
        clusters = [cluster[:2] for cluster in self._decisions.largest_clusters(most)]
        wanted = {row for cluster in clusters for row in cluster if row is not None}
        ids = self._decisions.ids
        known = {row: (ids[row], text) for row, text in enumerate(self._texts()) if row in wanted}
        return [[known[row] for row in cluster if row is not None] for cluster in clusters]


class Records:
    """Records of files of results: an iterable of dicts, read anew each time, and a table for whatever takes Arrow data.

    Where the documents are files of their own, each is its ``id`` and the ``file`` in the folder of results that is its copy.
    """

    def __init__(self, paths: list[Path], folder: Any) -> None:
        #: The files, in the format of the results.
        self.paths = paths
        # The folder lives as long as somebody may read it.
        self._folder = folder

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for path in self.paths:
            if path.suffix == ".parquet":
                yield from _lookalike.read_parquet(os.fspath(path)).to_pylist()
                continue
            yield from (json.loads(line) for line in _lines(path) if line.strip())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table().__arrow_c_stream__(requested_schema)

    def _table(self) -> Table:
        tables = [path for path in self.paths if path.suffix == ".parquet"]
        if len(tables) == 1 == len(self.paths):
            return _lookalike.read_parquet(os.fspath(tables[0]))
        if tables:
            raise LookalikeError("the results are several tables, each with its own columns: read the files in paths one by one")
        import tempfile

        with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
            lines = (line for path in self.paths for line in _lines(path) if line.strip())
            return _lookalike.table_of_lines(lines, folder)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<lookalike.Records in {', '.join(map(str, self.paths))}>"


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file of results, whatever compressed it."""
    if path.suffix == ".zst":
        yield from _lookalike.ZstdLines(path)
        return
    if path.suffix == ".gz":
        import gzip

        with gzip.open(path, "rb") as unpacked:
            yield from unpacked
        return
    with open(path, "rb") as plain:
        yield from plain


class PathResult(DedupResult):
    """Results in a folder that the job wrote."""

    def __init__(
        self,
        folder: Any,
        summary: dict[str, Any],
        *,
        inputs: list[str],
        again: Callable[[float], DedupResult],
        explained_with: dict[str, Any],
    ) -> None:
        from pathlib import Path

        # A `TemporaryDirectory`, which vanishes with the result, or the path that the user gave.
        self._owner = folder
        self._folder = Path(getattr(folder, "name", folder), *(["results"] if hasattr(folder, "cleanup") else []))
        self._summary = summary
        self._inputs = inputs
        self._again = again
        self._explained_with = explained_with
        self._counts = _counted(summary["counts"], summary["decisions"])

    def _records(self, name: str) -> Records:
        found = sorted(self._folder.glob(f"{name}.*")) + sorted(
            # Beside tables there are documents that are files, of which the records tell.
            path for path in self._folder.joinpath(name).rglob("*.parquet")
        )
        return Records(found, self._owner)

    @property
    def kept(self) -> Records:
        return self._records("kept")

    @property
    def removed(self) -> Records:
        return self._records("removed")

    @property
    def mask(self) -> Array:
        raise LookalikeError("results of files have no mask: look at kept, removed and clusters")

    @property
    def clusters(self) -> Table:
        parquet = self._folder / "clusters.parquet"
        members: list[tuple[Any, ...]] = []
        for cluster in Records([parquet if parquet.exists() else self._folder / "clusters.jsonl"], None):
            for member in cluster["members"]:
                members.append((cluster["survivor"], member["id"], member["similarity"], member["reason"]))
        columns = [list(column) for column in zip(*members)] or [[], [], [], []]
        names = [("survivor", "string"), ("id", "string"), ("similarity", "double"), ("reason", "string")]
        return _lookalike.table([(name, kind, column) for (name, kind), column in zip(names, columns)])

    @property
    def pairs(self) -> Table:
        parquet = self._folder / "pairs.parquet"
        if parquet.exists():
            return _lookalike.read_parquet(os.fspath(parquet))
        rows = list(Records([self._folder / "pairs.jsonl"], None))
        names = [("a", "string"), ("b", "string"), ("similarity", "double")]
        return _lookalike.table([(name, kind, [row[name] for row in rows]) for name, kind in names])

    def annotated(self) -> Any:
        raise LookalikeError("results of files are not annotated: clusters says what became of every removed document")

    @property
    def counts(self) -> dict[str, Any]:
        return dict(self._counts)

    @property
    def scheme(self) -> Scheme:
        return Scheme(self._summary["scheme"])

    @property
    def threshold(self) -> float:
        return float(self._summary["threshold"])

    def explain(self, a: Any, b: Any) -> Explanation:
        return explained([str(a), str(b)], None, {"in_": self._inputs, **self._explained_with})

    def report(self) -> str:
        return (self._folder / "report.html").read_text(encoding="utf-8")

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        return copy_results(self._folder, folder, overwrite)

    def _largest_clusters(self, most: int) -> list[list[tuple[str, str | None]]]:
        table = self.clusters
        sizes: dict[str, int] = {}
        first: dict[str, str] = {}
        for survivor, member in zip(table["survivor"].to_pylist(), table["id"].to_pylist()):
            sizes[survivor] = sizes.get(survivor, 0) + 1
            first.setdefault(survivor, member)
        largest = sorted(sizes, key=lambda survivor: -sizes[survivor])[:most]
        return [[(survivor, None), (first[survivor], None)] for survivor in largest]
