"""Compares results as Parquet with the same results as JSON lines, read by pyarrow; and results of tables that pyarrow wrote with their rows.

usage: check_tables.py LOOKALIKE

Writes Parquet, Arrow IPC and JSONL files of the same records with pyarrow (dictionaries, large strings, views, times, decimals, lists, structs,
nulls, several row groups and codecs), has the binary deduplicate each, and compares every table with the JSON lines. Prints a line for each
difference, and exits with 1 if there are any.
"""

import datetime
import decimal
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

TABLES = ("kept", "removed", "clusters", "pairs", "skipped")
differences = []


def check(name, left, right):
    if left != right:
        differences.append(name)
        print(f"DIFFERS: {name}\n  {str(left)[:300]}\n  {str(right)[:300]}")


def without_nulls(value):
    """Removes null fields, which JSON lines leave out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def dedup(binary, source, out, *flags):
    subprocess.run([binary, "dedup", source, "-o", out, "--quiet", "--max-skipped", "1", *flags], check=True)


def lines(path):
    return [without_nulls(json.loads(line)) for line in path.read_text().splitlines()]


def rows(path):
    return [without_nulls(row) for row in pq.read_table(path).to_pylist()]


def records():
    pick = random.Random(1)
    words = [f"w{number}" for number in range(5000)]
    texts = []
    for number in range(2000):
        if number % 4 == 3:
            text = pick.choice(texts) + " and more"
        else:
            text = " ".join(pick.choices(words, k=50))
        texts.append(text)
        yield {
            "id": f"r{number:05}",
            "text": text,
            "count": number - 1000,
            "score": number / 8,
            "good": number % 2 == 0 if number % 5 else None,
            "tags": [str(tag) for tag in range(number % 3)],
            "at": {"page": number % 9, "note": None if number % 2 else "é"},
        }


def arrow_table():
    """Returns the records, with columns of types that JSON does not have."""
    table = pa.Table.from_pylist(list(records()))
    day = [datetime.date(2000, 1, 1) + datetime.timedelta(days=row % 400) for row in range(len(table))]
    table = table.append_column("day", pa.array(day, pa.date32()))
    table = table.append_column("price", pa.array([decimal.Decimal(f"{row}.25") for row in range(len(table))]))
    kind = pa.array(["even", "odd"] * (len(table) // 2)).dictionary_encode()
    return table.append_column("kind", kind)


def typed_table():
    """Returns the records with columns that would not survive a conversion to JSON."""
    table = arrow_table()
    rows = range(len(table))
    some = lambda make: [make(row) if row % 7 else None for row in rows]
    columns = {
        "int32": pa.array(some(lambda row: row), pa.int32()),
        "float32": pa.array(some(lambda row: row / 3), pa.float32()),
        "binary": pa.array(some(lambda row: bytes([255, row % 256, 0])), pa.binary()),
        "when": pa.array(some(lambda row: row), pa.timestamp("us", "Europe/Berlin")),
        "second": pa.array(some(lambda row: row), pa.timestamp("s", "UTC")),
        "noon": pa.array(some(lambda row: row), pa.time32("s")),
        "day64": pa.array(some(lambda row: row * 86_400_000), pa.date64()),
        "map": pa.array(some(lambda row: [("a", row)]), pa.map_(pa.string(), pa.int16())),
        "nothing": pa.nulls(len(table)),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table.replace_schema_metadata({"pandas": "{}", "mine": "kept"})


def in_parquet(table):
    """Returns the table with the types that Parquet has."""
    nearest = {pa.timestamp("s", "UTC"): pa.timestamp("ms", "UTC"), pa.time32("s"): pa.time32("ms"), pa.date64(): pa.timestamp("ms")}
    if table.schema.field("second").type == pa.timestamp("s", "UTC"):
        fields = [field.with_type(nearest.get(field.type, field.type)) for field in table.schema]
        return table.cast(pa.schema(fields, table.schema.metadata))
    return table


def check_types(binary, folder):
    table = typed_table()
    kept = {row["id"] for row in lines(folder / "lines" / "kept.jsonl")}
    written = {
        "types.parquet": lambda path: pq.write_table(table, path, row_group_size=300),
        "types96.parquet": lambda path: pq.write_table(table, path, store_schema=False, use_deprecated_int96_timestamps=True),
        "plain.parquet": lambda path: pq.write_table(table, path, store_schema=False),
        "sorted.parquet": lambda path: pq.write_table(table, path, sorting_columns=[pq.SortingColumn(0)]),
        "types.arrow": lambda path: write_ipc(pa.ipc.new_file, path, table),
    }
    for name, write in written.items():
        write(folder / name)
        out = folder / f"out-{name}"
        dedup(binary, folder / name, out)
        check_typed(name, out, in_parquet(read_table(folder / name)), kept)
        # lookalike does not write 96-bit timestamps.
        if name.endswith("parquet") and name != "types96.parquet":
            original, found = (pq.ParquetFile(path) for path in (folder / name, out / "kept.parquet"))
            # The first line contains the address of an object.
            check(f"Parquet schema of {name}", *(str(file.schema).split("\n", 1)[1] for file in (found, original)))
            sorting = [file.metadata.row_group(0).sorting_columns for file in (found, original)]
            check(f"order of {name}", *sorting)
        print(f"{name}: types")


def check_results(binary, folder):
    source = folder / "in.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records()) + "no json\n")
    dedup(binary, source, folder / "lines")
    dedup(binary, source, folder / "tables", "--output-format", "parquet")
    for name in TABLES:
        left, right = lines(folder / "lines" / f"{name}.jsonl"), rows(folder / "tables" / f"{name}.parquet")
        print(f"{name}: {len(left)} lines, {len(right)} rows")
        check(name, left, right)
    schema = pq.read_schema(folder / "tables" / "kept.parquet")
    types = {field.name: str(field.type) for field in schema}
    check("types", types, {
        "id": "string", "text": "string", "count": "int64", "score": "double", "good": "bool",
        "tags": "list<item: string>", "at": "struct<page: int64, note: string>",
    })


def check_inputs(binary, folder):
    table = arrow_table()
    large = table.set_column(1, "text", table["text"].cast(pa.large_string()))
    written = {
        "snappy.parquet": lambda path: pq.write_table(table, path, row_group_size=300),
        "zstd.parquet": lambda path: pq.write_table(large, path, compression="zstd", data_page_version="2.0"),
        "gzip.parquet": lambda path: pq.write_table(table, path, compression="gzip", use_dictionary=False),
        "brotli.parquet": lambda path: pq.write_table(table, path, compression="brotli"),
        "lz4.parquet": lambda path: pq.write_table(table, path, compression="lz4", version="1.0"),
        "file.arrow": lambda path: write_ipc(pa.ipc.new_file, path, table),
        "stream.arrows": lambda path: write_ipc(pa.ipc.new_stream, path, table),
        # Regression test: a stream without a telling extension was skipped as a binary file.
        "stream.arrow-00000-of-00001": lambda path: write_ipc(pa.ipc.new_stream, path, table),
    }
    decided = lines(folder / "lines" / "clusters.jsonl")
    kept = {row["id"] for row in lines(folder / "lines" / "kept.jsonl")}
    for name, write in written.items():
        write(folder / name)
        out = folder / f"out-{name}"
        dedup(binary, folder / name, out, "--output-format", "jsonl")
        check(name, lines(out / "clusters.jsonl"), decided)
        found = lines(out / "kept.jsonl")
        expected = [row for row in table.to_pylist() if row["id"] in kept]
        for row in expected:
            row["day"] = f"{row['day']}T00:00:00Z"
            row["price"] = str(row["price"])
        check(f"rows of {name}", found, [without_nulls(row) for row in expected])
        print(f"{name}: {len(found)} rows kept")
        typed = folder / f"typed-{name}"
        dedup(binary, folder / name, typed)
        check_typed(name, typed, read_table(folder / name), kept)


def read_table(path):
    """Returns the table of a file, with the schema and metadata that pyarrow gives it."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.OSFile(str(path)) as file:
        opened = pa.ipc.open_file(file) if path.suffix == ".arrow" else pa.ipc.open_stream(file)
        return opened.read_all()


def check_typed(name, out, table, kept):
    """Checks that rows keep their types, order and metadata."""
    ids = table["id"].to_pylist()
    for result, wanted in (("kept", True), ("removed", False)):
        found = pq.read_table(out / f"{result}.parquet")
        check(f"schema of {result} of {name}", found.schema, table.schema)
        check(f"metadata of {result} of {name}", found.schema.metadata, table.schema.metadata)
        mask = pa.array([(row in kept) == wanted for row in ids])
        check(f"rows of {result} of {name}", found.to_pylist(), table.filter(mask).to_pylist())


def write_ipc(kind, path, table):
    with kind(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=256)


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        check_results(binary, pathlib.Path(folder))
        check_inputs(binary, pathlib.Path(folder))
        check_types(binary, pathlib.Path(folder))
    print(f"{len(differences)} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
