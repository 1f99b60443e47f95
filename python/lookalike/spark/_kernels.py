"""Functions that run in tasks: Arrow batches of a partition in, Arrow batches out.

Each is a function of the rows alone: not of their order, of how they are cut into batches, or of which attempt this is. pyspark brings
pyarrow along; nothing else is needed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import lookalike
from lookalike import _lookalike
from lookalike._errors import BadInput

__all__ = [
    "components",
    "fingerprints",
    "keys",
    "near_in_blocks",
    "near_queries",
    "numbered",
    "of_one",
    "probe",
    "promising",
    "read_archives",
    "scan",
    "settle",
    "sql_extract",
    "sql_minhash",
    "sql_resemblance",
    "sql_simhash",
    "verified_pairs",
    "work_edges",
]

#: Rows of a batch that goes back to Spark, at most.
_BATCH = 100_000

#: Documents of a task whose features are counted, at most, and tasks that count: a sample is enough.
_COUNTED, _COUNTING_TASKS = 4_096, 256

Batches = Iterator[pa.RecordBatch]

_NODES = {"long": pa.int64(), "string": pa.string()}


def probe(batches: Batches) -> Batches:
    """The version of the package, whatever comes in."""
    for _ in batches:
        yield pa.record_batch({"version": [lookalike.__version__]})


def _out(table: Any, schema: pa.Schema) -> Batches:
    """The columns of the schema, in its types."""
    table = pa.table(table)
    yield from table.select(schema.names).cast(schema).to_batches(max_chunksize=_BATCH)


_SCANNED = pa.schema(
    [
        ("id", pa.string()),
        ("text_hash", pa.binary()),
        ("order", pa.binary()),
        ("against", pa.bool_()),
        ("frequencies", pa.binary()),
    ]
)


def scan(batches: Batches, words: list[str], counts: bool) -> Batches:
    """What decides about each document but its text; and a row without an id for counts of features."""
    kernel = _lookalike.DedupKernel(words)
    left = _COUNTED if counts and _partition() < _COUNTING_TASKS else 0
    counted = left > 0
    for batch in batches:
        if batch.column("id").null_count:
            raise BadInput(f"{batch.column('id').null_count} rows of a batch have no id: give each document one, or leave these rows out")
        table = pa.table(kernel.scan(batch, left > 0))
        left -= batch.num_rows
        table = table.append_column("frequencies", pa.nulls(table.num_rows, pa.binary()))
        yield from _out(table, _SCANNED)
    if counted:
        row: dict[str, list[Any]] = {name: [None] for name in _SCANNED.names}
        row["frequencies"] = [kernel.frequencies()]
        yield pa.record_batch(row, schema=_SCANNED)


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def numbered(batches: Batches, keys: list[str], columns: list[str]) -> Batches:
    """The rows in the order of some columns, each with its number in the partition."""
    whole = list(batches)
    if not whole:
        return
    table = pa.Table.from_batches(whole).sort_by([(key, "ascending") for key in keys])
    table = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    yield from table.select(columns).to_batches(max_chunksize=_BATCH)


_PACKED = pa.schema(
    [
        ("id", pa.string()),
        ("against", pa.bool_()),
        ("size", pa.int32()),
        ("text_size", pa.int32()),
        ("fingerprint", pa.binary()),
        ("keys", pa.list_(pa.int64())),
        ("text_keys", pa.list_(pa.int64())),
    ]
)


def keys(batches: Batches, words: list[str], classes: int, levels: bytes | None) -> Batches:
    """The keys of each document in one row. They wait there for its rank: so the texts need not be moved to it."""
    kernel = _lookalike.DedupKernel(words)
    kernel.prepare_keys(classes, levels)
    for batch in batches:
        rows = pa.array(range(batch.num_rows), pa.int64())
        columns = {name: batch.column(name) for name in batch.schema.names if name in ("text", "category")}
        found = pa.table(kernel.keys(pa.record_batch({"rank": rows, **columns})))
        yield from _packed(batch, found)


def _packed(batch: pa.RecordBatch, found: pa.Table) -> Batches:
    import pyarrow.compute as pc

    if not found.num_rows:
        return
    if "fingerprint" not in found.column_names:
        found = found.append_column("fingerprint", pa.nulls(found.num_rows, pa.binary()))
    # A key of a whole text is marked by a negative size, which is handed on as it is.
    is_text = pc.less(found["size"], 0)
    key, size = found["key"], found["size"]
    none, no_size = pa.scalar(None, pa.int64()), pa.scalar(None, pa.int32())
    found = pa.table(
        {
            "rank": found["rank"],
            "size": pc.if_else(is_text, no_size, size),
            "text_size": pc.if_else(is_text, size, no_size),
            "fingerprint": found["fingerprint"],
            "keys": pc.if_else(is_text, none, key),
            "text_keys": pc.if_else(is_text, key, none),
        }
    )
    lists = found.group_by("rank", use_threads=False).aggregate(
        [("size", "max"), ("text_size", "max"), ("fingerprint", "one"), ("keys", "list"), ("text_keys", "list")]
    )
    rank = lists["rank"]
    columns = [
        batch.column("id").take(rank.combine_chunks()),
        batch.column("against").take(rank.combine_chunks()),
        lists["size_max"],
        lists["text_size_max"],
        lists["fingerprint_one"],
        lists["keys_list"],
        lists["text_keys_list"],
    ]
    yield from _out(pa.table(dict(zip(_PACKED.names, columns))), _PACKED)


_EDGES = pa.schema(
    [
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("size_x", pa.int32()),
        ("size_y", pa.int32()),
        ("shared", pa.int64()),
    ]
)


def work_edges(batches: Batches, words: list[str], group_limit: int | None) -> Batches:
    """Pairs of small groups and chains of large ones, from all rows of each key."""
    whole = list(batches)
    if whole:
        yield from _out(_lookalike.DedupKernel(words).work_edges(whole, group_limit), _EDGES)


_PAIRS = pa.schema([("x", pa.int64()), ("y", pa.int64())])


def promising(batches: Batches, words: list[str]) -> Batches:
    """The pairs that share enough to be compared."""
    kernel = _lookalike.DedupKernel(words)
    for batch in batches:
        yield from _out(kernel.promising(batch), _PAIRS)


def components(batches: Batches) -> Batches:
    """Each node of the edges with the least node that it is connected with."""
    from lookalike.spark._components import connected

    found = connected([edge for batch in batches for edge in zip(*(column.to_pylist() for column in batch.columns))])
    nodes = list(found)
    kind = pa.string() if nodes and isinstance(nodes[0], str) else pa.int64()
    table = pa.table({"node": pa.array(nodes, kind), "component": pa.array([found[node] for node in nodes], kind)})
    yield from table.to_batches(max_chunksize=_BATCH)


_SETTLED = pa.schema(
    [("rank", pa.int64()), ("survivor", pa.int64()), ("similarity", pa.float64()), ("reason", pa.string())]
)


def settle(batches: Batches, words: list[str], memory: int) -> Batches:
    """The classes of whole components that join others.

    What is larger than ``memory`` goes to the job of one machine, which spills to disk: components are units of work, and what is
    compared within them is what is compared in all of them together.
    """
    held, size = [], 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > memory:
            from lookalike.spark import _spilled

            yield from _out(_spilled.settle(held, batches, words, memory), _SETTLED)
            return
    if held:
        yield from _out(_lookalike.DedupKernel(words).settle(held), _SETTLED)


def verified_pairs(batches: Batches, words: list[str]) -> Batches:
    """All pairs of whole components that count."""
    whole = list(batches)
    if whole:
        schema = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("similarity", pa.float64())])
        yield from _out(_lookalike.DedupKernel(words).verify(whole), schema)


def fingerprints(batches: Batches, scheme: str) -> Batches:
    """The fingerprint of each text as the bits of a long; null for a text without features."""
    chosen = lookalike.Scheme(scheme)
    schema = pa.schema([("id", pa.string()), ("fingerprint", pa.int64())])
    for batch in batches:
        found = pa.array(lookalike.simhash(batch.column("text"), scheme=chosen, threads=1))
        yield from pa.table({"id": batch.column("id"), "fingerprint": found.view(pa.int64())}).cast(schema).to_batches()


_NEAR = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("distance", pa.int32())])


def _near(codes: pa.Array, queries: pa.Array, distance: int) -> pa.Table:
    """Pairs of positions, ``a`` of the codes and ``b`` of the queries."""
    found = lookalike.join(codes.view(pa.uint64()), queries.view(pa.uint64()), distance, threads=1)
    return pa.table(found)


def near_queries(batches: Batches, queries: list[int], distance: int) -> Batches:
    """Pairs of a code and one of all queries within the distance."""
    asked = pa.array(queries, pa.int64())
    whole = list(batches)
    if not whole or not queries:
        return
    codes = pa.Table.from_batches(whole)["code"].combine_chunks()
    pairs = _near(codes, asked, distance)
    found = pa.table({"x": codes.take(pairs["a"].combine_chunks()), "y": asked.take(pairs["b"].combine_chunks()), "distance": pairs["distance"]})
    yield from _out(found, _NEAR)


def near_in_blocks(batches: Batches, distance: int) -> Batches:
    """Pairs of a code and a query within the distance, from all rows of some values of some blocks.

    A pair may agree in several blocks: it belongs to the first.
    """
    import pyarrow.compute as pc

    whole = list(batches)
    if not whole:
        return
    table = pa.Table.from_batches(whole).combine_chunks()
    for number in range(distance + 1):
        own = table.filter(pc.equal(table["block"], number))
        codes, queries = own.filter(pc.invert(own["is_query"])), own.filter(own["is_query"])
        if not codes.num_rows or not queries.num_rows:
            continue
        x, y = codes["code"].combine_chunks(), queries["code"].combine_chunks()
        pairs = _near(x, y, distance)
        x, y = x.take(pairs["a"].combine_chunks()), y.take(pairs["b"].combine_chunks())
        found = pa.table({"x": x, "y": y, "distance": pairs["distance"]})
        yield from _out(found.filter(_first_agreement(x, y, number, distance)), _NEAR)


def _first_agreement(x: pa.Array, y: pa.Array, number: int, distance: int) -> pa.Array:
    """True where a block is the first in which two codes agree."""
    import pyarrow.compute as pc

    differing = pc.bit_wise_xor(x.view(pa.uint64()), y.view(pa.uint64()))
    chosen = pa.array([True] * len(x), pa.bool_())
    for at in range(number + 1):
        start, end = 64 * at // (distance + 1), 64 * (at + 1) // (distance + 1)
        mask = pa.scalar(((1 << (end - start)) - 1) << start, pa.uint64())
        agrees = pc.equal(pc.bit_wise_and(differing, mask), pa.scalar(0, pa.uint64()))
        chosen = pc.and_(chosen, agrees if at == number else pc.invert(agrees))
    return chosen


def sql_simhash(texts: pa.Array, scheme: str) -> pa.Array:
    """The fingerprint of each text."""
    return pa.array(lookalike.simhash(texts, scheme=lookalike.Scheme(scheme), threads=1)).view(pa.int64())


def sql_minhash(texts: pa.Array, scheme: str) -> pa.Array:
    """The signature of each text."""
    found = pa.array(lookalike.minhash(texts, scheme=lookalike.Scheme(scheme), threads=1))
    return found.cast(pa.list_(pa.int64()))


def sql_resemblance(a: pa.Array, b: pa.Array, scheme: str) -> pa.Array:
    """The resemblance of the texts of each row."""
    import pyarrow.compute as pc

    there = pc.and_(pc.is_valid(a), pc.is_valid(b))
    none = pa.scalar(None, pa.float64())
    found = lookalike.resemblance(pc.fill_null(a, ""), pc.fill_null(b, ""), scheme=lookalike.Scheme(scheme), threads=1)
    return pc.if_else(there, pa.array(found), none)


def sql_extract(pages: pa.Array) -> pa.Array:
    """The main text of each page."""
    return pa.array(lookalike.extract(pages, threads=1)).cast(pa.string())


def of_one(*given: Any) -> Any:
    """A function of columns, of one row: values, and last its name and arguments."""
    *values, name, arguments = given
    columns = [pa.array([value], pa.string()) for value in values]
    return globals()[name](*columns, *arguments).to_pylist()[0]


def read_archives(batches: Batches, words: list[str]) -> Batches:
    """The records of each file that a row names."""
    for batch in batches:
        for path in batch.column("path").to_pylist():
            yield from _records(path, words)


def _records(path: str, words: list[str]) -> Batches:
    """The records of a file, by the command in a process of its own: one that fails does not take this one with it."""
    import os
    import subprocess
    import sys
    import tempfile

    import pyarrow.parquet

    root = os.path.dirname(os.path.dirname(os.path.abspath(lookalike.__file__)))
    there = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": root if not there else f"{root}{os.pathsep}{there}"}
    with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
        out = os.path.join(folder, "records.parquet")
        call = [sys.executable, "-m", "lookalike", "extract", path, f"--output={out}", "--quiet", *words]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL)
        # 3 is done with losses.
        if done.returncode not in (0, 3):
            raise BadInput(f"{path}: {done.stderr.strip()}", source=path)
        with pyarrow.parquet.ParquetFile(out) as file:
            names = ["id", "source", "record", "offset", "charset", "text"]
            for batch in file.iter_batches(batch_size=1_000):
                columns = [
                    batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, kind)
                    for name, kind in zip(names, _RECORDS.types)
                ]
                yield from _out(pa.table(dict(zip(names, columns))), _RECORDS)


_RECORDS = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("record", pa.int64()),
        ("offset", pa.int64()),
        ("charset", pa.string()),
        ("text", pa.string()),
    ]
)
