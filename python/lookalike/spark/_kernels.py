"""Functions that run in tasks: Arrow batches of a partition in, Arrow batches out.

The result of each depends on the rows alone: not on their order, their division into batches, or the number of the attempt. pyspark
comes with pyarrow; nothing else is needed here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import lookalike
from lookalike import _lookalike
from lookalike._errors import BadInput
from lookalike.spark._schemas import SCHEMAS

__all__ = [
    "ARROW_SCHEMAS",
    "chunks",
    "components",
    "fingerprints",
    "group",
    "members",
    "near_in_blocks",
    "near_queries",
    "numbered",
    "on_one_row",
    "pack",
    "pack_components",
    "probe",
    "promising",
    "read_archives",
    "sample",
    "settle",
    "sql_extract",
    "sql_minhash",
    "sql_resemblance",
    "sql_simhash",
    "verified_pairs",
    "with_ranks",
]

#: Maximum number of rows in a batch that is returned to Spark.
_BATCH = 100_000

#: Approximate size in bytes of the copies that a task has in memory.
_COPIES_BYTES = 64 << 20

#: Approximate size in bytes of the documents in which a task counts features.
_COUNTED_BYTES = 256 << 20

#: What to do about strings with other bytes.
_UTF8_REMEDY = "leave out such rows with is_valid_utf8, or repair them with make_valid_utf8 (functions of Spark 4)"

#: Arrow's types by Spark's names.
_TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "array<long>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
}

#: Columns of the rows that a function returns, by its name.
ARROW_SCHEMAS = {
    name: pa.schema([(column, _TYPES[kind]) for column, kind in map(str.split, columns.split(", "))]) for name, columns in SCHEMAS.items()
}

Batches = Iterator[pa.RecordBatch]


def probe(batches: Batches) -> Batches:
    """Return the version of the package, for any input."""
    for _ in batches:
        yield pa.record_batch({"version": [lookalike.__version__]})


def _out(table: Any, name: str) -> Batches:
    """Return the columns that a function returns, in their types."""
    schema = ARROW_SCHEMAS[name]
    yield from pa.table(table).select(schema.names).cast(schema).to_batches(max_chunksize=_BATCH)


def _out_packed(table: Any, name: str) -> Batches:
    """Return packed rows in the columns that a function returns, few at a time, because each may be long. Missing columns are null."""
    for batch in pa.table(table).to_batches(max_chunksize=8):
        yield from _completed(pa.Table.from_batches([batch]), name).to_batches()


def _completed(table: Any, name: str) -> pa.Table:
    """Return the columns that a function returns, null where they are missing."""
    table, schema = pa.table(table), ARROW_SCHEMAS[name]
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type) for field in schema
    ]
    return pa.table(columns, schema=schema)


def _in_utf8(batches: Batches) -> Batches:
    """Return batches of documents. Refuse a string that is not UTF-8: Spark does not check strings."""
    for batch in batches:
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            _refuse_other_bytes(batch)
            raise
        yield batch


def _refuse_other_bytes(batch: pa.RecordBatch) -> None:
    names = [name for name in batch.schema.names if _has_strings(batch.column(name))]
    # Ids first: they name the row of other columns.
    for name in sorted(names, key=lambda name: name != "id"):
        column = batch.column(name)
        row = next((row for row in range(len(column)) if not _is_utf8(column.slice(row, 1))), None)
        if row is not None:
            which = "an id" if name == "id" else f"the {name} of the document {batch.column('id')[row].as_py()!r}" if "id" in names else f"a {name}"
            raise BadInput(f"{which} is not UTF-8: {_UTF8_REMEDY}")


def _has_strings(column: pa.Array) -> bool:
    return pa.types.is_string(column.type) or pa.types.is_large_string(column.type)


def _is_utf8(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def sample(batches: Batches, words: list[str]) -> Batches:
    """Count the features of the documents in a partition. Documents beyond the sample are read but not counted."""
    kernel = _lookalike.DedupKernel(words)
    documents = features = size = 0
    for batch in _in_utf8(batches):
        # Everything is read in any case: a task that leaves rows unread costs its process.
        if size < _COUNTED_BYTES:
            features += kernel.count(batch)
            documents += batch.num_rows
            size += batch.nbytes
    if documents:
        counts = kernel.frequencies()
        told = {"frequencies": [counts], "documents": [documents], "features": [features], "bytes": [size]}
        yield pa.record_batch(told, schema=ARROW_SCHEMAS["sample"])


def pack(batches: Batches, words: list[str], documents: int, buckets: int, levels: bytes | None) -> Batches:
    """Return classes, ids and keys of the documents, packed by bucket; and the number of new documents, of those without a text, of rows
    without an id, the checksum of all rows, and the values that the rule for survivors cannot use."""
    kernel = _lookalike.DedupKernel(words)
    kernel.prepare(documents, buckets, levels)
    new = missing = missing_text = checksum = 0
    for batch in _in_utf8(batches):
        checksum += pc.sum(batch.column("checksum")).as_py() or 0
        ids = batch.column("id")
        if ids.null_count:
            missing += ids.null_count
            batch = batch.filter(pc.is_valid(ids))
        is_new = pc.invert(batch.column("against"))
        new += pc.sum(is_new).as_py() or 0
        missing_text += pc.sum(pc.and_(is_new, pc.is_null(batch.column("text")))).as_py() or 0
        yield from _out_packed(kernel.pack(batch), "pack")
    yield from _out_packed(kernel.packed(), "pack")
    counts = dict(zip(("keep_missing", "keep_unusable", "keep_unusable_first"), kernel.keep_counts))
    counts = {"bucket": 0, "new": new, "missing": missing, "missing_text": missing_text, "checksum": checksum, **counts}
    yield from _out_packed({name: [count] for name, count in counts.items()}, "pack")


def group(batches: Batches, words: list[str], buckets: int, group_limit: int | None) -> Batches:
    """Return the edges of complete buckets, packed by bucket, and the classes unchanged."""
    whole = list(batches)
    if not whole:
        return
    table = pa.Table.from_batches(whole)
    edges, edge_count, documents, texts, repeated = _lookalike.DedupKernel(words).group(whole, buckets, group_limit)
    yield from _out_packed(table.select(["bucket", "classes"]).filter(pc.is_valid(table["classes"])), "group")
    yield from _out_packed(edges, "group")
    counts = {"edge_count": edge_count, "documents": documents, "texts": texts, "repeated": repeated}
    # These counts are in separate rows, in bucket 0, and are passed through.
    for name in ("new", "missing", "missing_text", "checksum", "keep_missing", "keep_unusable"):
        counts[name] = pc.sum(table[name]).as_py() or 0
    counts["keep_unusable_first"] = pc.min(table["keep_unusable_first"]).as_py()
    yield from _out_packed({"bucket": [0], **{name: [count] for name, count in counts.items()}}, "group")


def numbered(batches: Batches, keys: list[str], columns: list[str]) -> Batches:
    """Return the rows sorted by some columns, each with its number in the partition."""
    whole = list(batches)
    if not whole:
        return
    table = pa.Table.from_batches(whole).sort_by([(key, "ascending") for key in keys])
    table = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    yield from table.select(columns).to_batches(max_chunksize=_BATCH)


def promising(batches: Batches, words: list[str]) -> Batches:
    """Return those pairs in complete buckets that are worth comparing, reduced to a star for each component, which connects the same
    classes."""
    whole = list(batches)
    if whole:
        pairs = pa.table(_lookalike.DedupKernel(words).promising(whole))
        found = pa.table(_lookalike.DedupKernel.connected(pairs.to_batches()))
        # The number of pairs in a family is quadratic, but only their components are needed.
        stars = found.filter(pc.not_equal(found["node"], found["component"]))
        yield from _out(stars.rename_columns(["x", "y"]), "promising")


def components(batches: Batches) -> Batches:
    """Return each node of the edges with the smallest node that it is connected with."""
    whole = list(batches)
    if not whole:
        return
    if whole[0].schema.field("x").type == pa.int64():
        yield from pa.table(_lookalike.DedupKernel.connected(whole)).to_batches(max_chunksize=_BATCH)
        return
    from lookalike.spark._components import connected

    found = connected([edge for batch in whole for edge in zip(*(column.to_pylist() for column in batch.columns))])
    table = pa.table({"node": pa.array(list(found), pa.string()), "component": pa.array(list(found.values()), pa.string())})
    yield from table.to_batches(max_chunksize=_BATCH)


def pack_components(batches: Batches, buckets: int) -> Batches:
    """Return components, packed by the buckets of their nodes."""
    whole = list(batches)
    if whole:
        yield from _out_packed(_lookalike.DedupKernel.pack_components(whole, buckets), "pack_components")


def members(batches: Batches, words: list[str]) -> Batches:
    """Return the classes of complete buckets that are in a component or have copies, and rows of these copies."""
    whole = list(batches)
    if whole:
        yield from _out(_lookalike.DedupKernel(words).members(whole), "members")


def settle(batches: Batches, words: list[str], memory: int) -> Batches:
    """Return the documents of complete components that are removed.

    Components larger than ``memory`` are passed to the job of one machine, which uses temporary files: components are independent units of
    work, so comparing within each of them makes all comparisons.
    """
    kernel = _lookalike.DedupKernel(words)
    copies = _Copies()
    held, size = [], 0
    classes = _classes(batches, copies)
    for batch in classes:
        held.append(batch)
        size += batch.nbytes
        if size > memory:
            from lookalike.spark import _spilled

            members, joined = _spilled.settle(held, classes, words, memory)
            break
    else:
        if not held:
            return
        ranked, members = with_ranks(held)
        joined = pa.table(kernel.settle(ranked.to_batches()))
    yield from _out(_joined(members, joined), "settle")
    for part in copies.parts():
        yield from _out(_joined_copies(members, joined, part, kernel.copies_are_pairs), "settle")


class _Copies:
    """Rows of copies, which are on disk if there are many: a text may have any number."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_COPIES_BYTES)
        self._writer: Any = None

    def append(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
        self._writer.write_batch(batch)

    def parts(self) -> Iterator[pa.Table]:
        """Return the rows in tables of a limited size, so that their ids fit into columns of strings."""
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in pa.ipc.open_stream(pa.PythonFile(self._file, "r")):
            rows = max(1, batch.num_rows * _COPIES_BYTES // batch.nbytes)
            for start in range(0, batch.num_rows, rows):
                held.append(batch.slice(start, rows))
                size += held[-1].nbytes
                if size >= _COPIES_BYTES:
                    yield pa.Table.from_batches(held)
                    held, size = [], 0
        if held:
            yield pa.Table.from_batches(held)


def _classes(batches: Batches, copies: _Copies) -> Batches:
    """Return the classes among the rows, and set rows of copies aside."""
    for batch in batches:
        of_copies = pc.greater(pc.list_value_length(batch.column("copies")), 0)
        classes = batch.select([name for name in batch.schema.names if name not in ("copies", "are_against")])
        if pc.any(of_copies).as_py():
            copies.append(batch.select(["order", "copies", "are_against"]).filter(of_copies))
            classes = classes.filter(pc.invert(of_copies))
        if classes.num_rows:
            yield classes


def with_ranks(held: list[pa.RecordBatch]) -> tuple[pa.Table, pa.Table]:
    """Return the rows with their ranks; and ``order``, ``id``, ``against`` in the order of the ranks."""
    table = pa.Table.from_batches(held)
    # The order is unique, because ids are part of it, so ranks depend only on the documents. The argsort of an argsort is the rank of each
    # row.
    by_rank = pc.sort_indices(table["order"])
    rank = pc.sort_indices(by_rank).cast(pa.int64())
    return table.append_column("rank", rank), table.select(["order", "id", "against"]).take(by_rank)


def _joined(members: pa.Table, joined: pa.Table) -> pa.Table:
    """Return the preferred document of each class that joins a survivor."""
    survivors = members.take(joined["survivor"])
    return pa.table(
        {
            "survivor": survivors["id"],
            "is_new": pc.invert(survivors["against"]),
            "id": members["id"].take(joined["rank"]),
            "similarity": joined["similarity"],
            "reason": joined["reason"],
        }
    )


def _joined_copies(members: pa.Table, joined: pa.Table, copies: pa.Table, are_pairs: bool) -> pa.Table:
    """Return the other documents of classes: removed with their class, or for its preferred document."""
    table = copies.filter(pc.invert(copies["are_against"])).combine_chunks()
    # Copies have the order of their class, by which it is found.
    rank = pc.index_in(table["order"], value_set=members["order"].combine_chunks())
    at = pc.index_in(rank.cast(pa.int64()), value_set=joined["rank"].combine_chunks())
    own = members.take(rank)
    others = joined.take(at)
    survivors = members.take(others["survivor"])
    removed = pa.table(
        {
            "copies": table["copies"],
            "survivor": pc.coalesce(survivors["id"], own["id"]),
            "is_new": pc.invert(pc.coalesce(survivors["against"], own["against"])),
            "similarity": pc.coalesce(others["similarity"], pa.scalar(1.0)),
            "reason": pc.coalesce(others["reason"], pa.scalar("exact")),
        }
    )
    if not are_pairs:
        removed = removed.filter(pc.is_valid(at))
    lists = removed["copies"].combine_chunks()
    found = removed.drop(["copies"]).take(pc.list_parent_indices(lists))
    return found.append_column("id", pc.list_flatten(lists))


def verified_pairs(batches: Batches, words: list[str]) -> Batches:
    """Return all pairs of classes in complete components that count, by their preferred documents."""
    whole = list(batches)
    if not whole:
        return
    ranked, members = with_ranks(whole)
    # A class with a document to compare with may also have others, so no class is fixed here.
    found = pa.table(_lookalike.DedupKernel(words).verify(ranked.drop(["against"]).to_batches()))
    x, y = members.take(found["x"]), members.take(found["y"])
    columns = [x["id"], x["against"], y["id"], y["against"], found["similarity"]]
    yield from _out(pa.table(columns, names=ARROW_SCHEMAS["verified_pairs"].names), "verified_pairs")


def chunks(batches: Batches, words: list[str]) -> Batches:
    """Return a row for each document with the hash of its text, and rows with the chunks of each text, for each chunking."""
    texts = _lookalike.TextChunks(words)
    for batch in _in_utf8(batches):
        missing = batch.column("id").null_count
        if missing:
            raise BadInput(f"{missing} rows of a batch have no id: give each document one, or leave these rows out")
        for found in texts.chunk(batch):
            yield from _out(_completed(found, "chunks"), "chunks")


def fingerprints(batches: Batches, scheme: str) -> Batches:
    """Return the fingerprint of each text as the bits of a long; null for a text without features."""
    chosen = lookalike.Scheme(scheme)
    for batch in _in_utf8(batches):
        found = pa.array(lookalike.simhash(batch.column("text"), scheme=chosen, threads=1))
        yield from _out({"id": batch.column("id"), "fingerprint": found.view(pa.int64())}, "fingerprints")


def _near(codes: pa.Array, queries: pa.Array, distance: int) -> pa.Table:
    """Return pairs of positions, ``a`` among the codes and ``b`` among the queries."""
    found = lookalike.join(codes.view(pa.uint64()), queries.view(pa.uint64()), distance, threads=1)
    return pa.table(found)


def near_queries(batches: Batches, queries: list[int], distance: int) -> Batches:
    """Return pairs of a code and any query within the distance."""
    asked = pa.array(queries, pa.int64())
    whole = list(batches)
    if not whole or not queries:
        return
    codes = pa.Table.from_batches(whole)["code"].combine_chunks()
    pairs = _near(codes, asked, distance)
    found = pa.table({"x": codes.take(pairs["a"].combine_chunks()), "y": asked.take(pairs["b"].combine_chunks()), "distance": pairs["distance"]})
    yield from _out(found, "near_queries")


def near_in_blocks(batches: Batches, distance: int) -> Batches:
    """Return pairs of a code and a query within the distance, from all rows of some values of some blocks.

    A pair may agree in several blocks: it is returned for the first.
    """
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
        yield from _out(found.filter(_first_agreement(x, y, number, distance)), "near_in_blocks")


def _first_agreement(x: pa.Array, y: pa.Array, number: int, distance: int) -> pa.Array:
    """Return true if a block is the first in which two codes agree."""
    differing = pc.bit_wise_xor(x.view(pa.uint64()), y.view(pa.uint64()))
    chosen = pa.array([True] * len(x), pa.bool_())
    for at in range(number + 1):
        start, end = 64 * at // (distance + 1), 64 * (at + 1) // (distance + 1)
        mask = pa.scalar(((1 << (end - start)) - 1) << start, pa.uint64())
        agrees = pc.equal(pc.bit_wise_and(differing, mask), pa.scalar(0, pa.uint64()))
        chosen = pc.and_(chosen, agrees if at == number else pc.invert(agrees))
    return chosen


def _strings(texts: pa.Array) -> pa.Array:
    """Return the texts as strings: if all are a literal null, Spark gives them no type."""
    if _has_strings(texts) and not _is_utf8(texts):
        raise BadInput(f"a text is not UTF-8: {_UTF8_REMEDY}")
    return texts.cast(pa.string()) if pa.types.is_null(texts.type) else texts


def sql_simhash(texts: pa.Array, scheme: str) -> pa.Array:
    """Return the fingerprint of each text."""
    return pa.array(lookalike.simhash(_strings(texts), scheme=lookalike.Scheme(scheme), threads=1)).view(pa.int64())


def sql_minhash(texts: pa.Array, scheme: str) -> pa.Array:
    """Return the signature of each text."""
    # The scheme is also that of the fingerprints, and may name them.
    found = pa.array(lookalike.minhash(_strings(texts), scheme=lookalike.Scheme(scheme, sketch="none"), threads=1))
    return found.cast(pa.list_(pa.int64()))


def sql_resemblance(a: pa.Array, b: pa.Array, scheme: str) -> pa.Array:
    """Return the resemblance of the texts in each row."""
    a, b = _strings(a), _strings(b)
    there = pc.and_(pc.is_valid(a), pc.is_valid(b))
    none = pa.scalar(None, pa.float64())
    found = lookalike.resemblance(pc.fill_null(a, ""), pc.fill_null(b, ""), scheme=lookalike.Scheme(scheme), threads=1)
    return pc.if_else(there, pa.array(found), none)


def sql_extract(pages: pa.Array) -> pa.Array:
    """Return the main text of each page."""
    return pa.array(lookalike.extract(_strings(pages), threads=1)).cast(pa.string())


def on_one_row(*given: Any) -> Any:
    """Apply a function of columns to a single row, given its values, and last its name and arguments."""
    *values, name, arguments = given
    # With an explicit `pa.string()`, because a column of one null would have the type null.
    columns = [pa.array([value], pa.string()) for value in values]
    return globals()[name](*columns, *arguments).to_pylist()[0]


def read_archives(batches: Batches, words: list[str]) -> Batches:
    """Return the records of each file that a row names."""
    for batch in batches:
        for file in batch.to_pylist():
            path, is_found = file["path"], file["is_found"]
            # A file that was found may have been removed since.
            own = [*words, "--skip-unreadable"] if is_found and "--skip-unreadable" not in words else words
            yield from _records(path, own)


def _records(path: str, words: list[str]) -> Batches:
    """Return the records of a file and its losses, read by the command in a separate process: if that crashes, this one survives."""
    import json
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
        call = [sys.executable, "-m", "lookalike", "extract", path, f"--output={out}", "--json", *words]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL)
        # Status 3 means done with losses.
        if done.returncode not in (0, 3):
            raise BadInput(f"{path}: {done.stderr.strip()}", source=path)
        with pyarrow.parquet.ParquetFile(out) as file:
            for batch in file.iter_batches(batch_size=1_000):
                yield from _out(_completed(pa.Table.from_batches([batch]), "read_archives"), "read_archives")
        lost = [
            {"source": path, "reason": f"{loss['kind']}: {loss['first']}", "count": loss["count"]}
            for loss in json.loads(done.stdout)["skipped"]
            # Other records, such as requests, are not documents.
            if loss["loss"] != "none"
        ]
        yield from _out(_completed(pa.Table.from_pylist(lost), "read_archives"), "read_archives")
