"""Components that do not fit the memory of a task: the job of one machine decides about them, with its temporary files."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lookalike import _lookalike
from lookalike._errors import MemoryLimit
from lookalike._options import words as to_words

__all__ = ["settle"]

#: Options of the job that are the front's own here.
_OWN = ("--keep", "--within", "--across", "--memory", "--threads", "--pairs", "--tmp", "--output")


def settle(held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], words: list[str], memory: int) -> pa.Table:
    """The classes that join others, as the kernel gives them: ``rank``, ``survivor``, ``similarity``, ``reason``.

    Ranks are the order of survivors, so ``keep`` is the least one. The rows are put on disk once, for those of ``against`` come first.
    """
    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        files = _on_disk(itertools.chain(held, rest), folder)
        held.clear()
        scope = next((word for word in words if word.startswith(("--within", "--across"))), None)
        own = [word for word in words if not word.startswith(_OWN)]
        own += [scope] if scope is not None else []
        columns = {
            "text": ["text"],
            "id": "id",
            "order": "rank",
            "category": "category" if scope is not None else None,
            "site": scope is not None and scope.endswith("=site"),
            "html": False,
        }
        while True:
            limits = to_words({"keep": "min:rank", "memory": memory, "threads": 1})
            try:
                decisions, *_ = _lookalike.dedup_documents(
                    [*own, *limits, "--output=-"], files.documents(), files.against(), columns, folder, None
                )
                break
            except MemoryLimit as error:
                # Each step asks for what it needs at least; there is nobody to ask for more but the system.
                if error.needed is None or error.needed <= memory:
                    raise
                memory = error.needed
        found = pa.table(decisions.clusters)
    return pa.table(
        {
            "rank": found["id"].cast(pa.int64()),
            "survivor": found["survivor"].cast(pa.int64()),
            "similarity": found["similarity"],
            "reason": found["reason"],
        }
    )


class _Files:
    """Documents on disk: those to compare with, and the others."""

    def __init__(self, names: tuple[str, str], rows: list[int]) -> None:
        self._names = names
        self._rows = rows

    def against(self) -> pa.RecordBatchReader | None:
        return pa.ipc.open_stream(pa.memory_map(self._names[0])) if self._rows[0] else None

    def documents(self) -> pa.RecordBatchReader:
        return pa.ipc.open_stream(pa.memory_map(self._names[1]))


def _on_disk(batches: Iterator[pa.RecordBatch], folder: str) -> _Files:
    names = (f"{folder}/against.arrows", f"{folder}/documents.arrows")
    first = next(batches)
    kept = [name for name in ("rank", "text", "category") if name in first.schema.names]
    schema = pa.schema([pa.field("id", pa.string()), *(first.schema.field(name) for name in kept)])
    writers = [pa.ipc.new_stream(name, schema) for name in names]
    rows = [0, 0]
    for batch in itertools.chain([first], batches):
        ids = batch.column("rank").cast(pa.string())
        table = pa.RecordBatch.from_arrays([ids, *(batch.column(name) for name in kept)], schema=schema)
        is_against = batch.column("against")
        for at, mask in enumerate([is_against, pc.invert(is_against)]):
            chosen = table.filter(mask)
            rows[at] += chosen.num_rows
            writers[at].write_batch(chosen)
    for writer in writers:
        writer.close()
    return _Files(names, rows)
