"""Components that do not fit into the memory of a task: the job of one machine decides on them, using temporary files."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lookalike import _lookalike
from lookalike._errors import MemoryLimit
from lookalike._options import words as to_words
from lookalike.spark._kernels import with_ranks

__all__ = ["settle"]

#: Options of the job that are set here.
_OWN = ("--keep", "--within", "--across", "--memory", "--threads", "--pairs", "--tmp", "--output")


def settle(
    held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], words: list[str], memory: int
) -> tuple[pa.Table, pa.Table]:
    """Return the members in the order of survivors, and the classes that join others: ``rank``, ``survivor``, ``similarity``, ``reason``.

    The rows are written to disk once; those of ``against`` separately, because they come first. Everything except the texts stays in memory
    and gives the ranks once it is complete. Ranks are the order of survivors, so ``keep`` is the least rank.
    """
    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        files = _on_disk(itertools.chain(held, rest), folder)
        # The batches are on disk now. The list belongs to the caller, who would otherwise keep them in memory.
        held.clear()
        scope = next((word for word in words if word.startswith(("--within", "--across"))), None)
        # With this option, the category also determines how pages of one site are judged.
        by_site = "--distance-for=site" in words
        own = [word for word in words if not word.startswith(_OWN)]
        own += [scope] if scope is not None else []
        columns = {
            "text": ["text"],
            "id": "id",
            "order": "rank",
            "category": "category" if scope is not None or by_site else None,
            "site": by_site or (scope is not None and scope.endswith("=site")),
            "html": False,
            "page": None,
            "fields": [],
        }
        while True:
            limits = to_words({"keep": "min:rank", "memory": memory, "threads": 1})
            against = files.against()
            try:
                decisions, *_ = _lookalike.dedup_documents(
                    [*own, *limits, "--output=./-"],
                    {"rows": files.documents(), "columns": columns, "count": files.counts[1]},
                    None if against is None else {"rows": against, "columns": columns, "count": files.counts[0]},
                    folder,
                )
                break
            except MemoryLimit as error:
                # Each step requires a minimum of memory, so raise the limit; if there is too little, only the system can refuse it.
                if error.needed is None or error.needed <= memory:
                    raise
                memory = error.needed
        found = pa.table(decisions.clusters)
    joined = pa.table(
        {
            "rank": found["id"].cast(pa.int64()),
            "survivor": found["survivor"].cast(pa.int64()),
            "similarity": found["similarity"],
            "reason": found["reason"],
        }
    )
    return files.members, joined


class _Files:
    """Documents on disk, those to compare with and the others, with their ranks, which are known once all documents are there."""

    def __init__(self, names: list[str], ranks: list[pa.ChunkedArray], members: pa.Table) -> None:
        self._names = names
        self._ranks = ranks
        #: Number of documents to compare with, and of others.
        self.counts = [len(side) for side in ranks]
        #: Columns ``order``, ``id`` and ``against`` in the order of the ranks.
        self.members = members

    def against(self) -> pa.RecordBatchReader | None:
        return self._ranked(0) if self.counts[0] else None

    def documents(self) -> pa.RecordBatchReader:
        return self._ranked(1)

    def _ranked(self, side: int) -> pa.RecordBatchReader:
        stored = pa.ipc.open_stream(pa.memory_map(self._names[side]))
        schema = pa.schema([("id", pa.string()), ("rank", pa.int64()), *stored.schema])

        def batches() -> Iterator[pa.RecordBatch]:
            start = 0
            for batch in stored:
                ranks = self._ranks[side].slice(start, batch.num_rows).combine_chunks()
                start += batch.num_rows
                yield pa.RecordBatch.from_arrays([ranks.cast(pa.string()), ranks, *batch.columns], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


def _on_disk(batches: Iterator[pa.RecordBatch], folder: str) -> _Files:
    names = [f"{folder}/against.arrows", f"{folder}/documents.arrows"]
    first = next(batches)
    kept = [name for name in ("text", "category") if name in first.schema.names]
    schema = pa.schema([first.schema.field(name) for name in kept])
    in_memory = []
    writers = [pa.ipc.new_stream(name, schema) for name in names]
    for batch in itertools.chain([first], batches):
        in_memory.append(batch.select(["order", "id", "against"]))
        is_against = batch.column("against")
        for writer, mask in zip(writers, [is_against, pc.invert(is_against)]):
            writer.write_batch(batch.select(kept).filter(mask))
    for writer in writers:
        writer.close()
    ranked, members = with_ranks(in_memory)
    ranks = [ranked.filter(mask)["rank"] for mask in [ranked["against"], pc.invert(ranked["against"])]]
    return _Files(names, ranks, members)
