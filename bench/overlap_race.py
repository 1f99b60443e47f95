#!/usr/bin/env python3
"""All-pairs overlap: lookalike against DuckDB, polars and SetSimilaritySearch, on the same two-line chunks, one thread each.

usage: overlap_race.py LOOKALIKE DOCS.jsonl [--least 25] [--memory 4G] [--limit N]

The records (fingerprint, document) are made here, by the definition in docs/overlap.md and not by lookalike; making them is not
in the peers' time. lookalike starts from the text: its stages "group" and "compare" are its time for the same job, "read" is
reading and chunking. All must give the same number of pairs and the same sum of shared chunks. Needs: duckdb polars numpy xxhash
SetSimilaritySearch.
"""
import argparse, json, os, resource, subprocess, sys, time

os.environ["POLARS_MAX_THREADS"] = "1"
import numpy as np
import xxhash


def records(path, limit):
    """Distinct (fingerprint, document) of the two-line chunks; equal texts once."""
    seen, prints, documents, count = set(), [], [], 0
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if limit and number >= limit:
                break
            text = json.loads(line)["text"]
            key = xxhash.xxh3_128_intdigest(text.encode("utf-8", "surrogatepass"))
            if key in seen or not text.strip():
                continue
            seen.add(key)
            kept = [s for s in (part.strip(" \t\r\x0c") for part in text.split("\n")) if s]
            chunks = {xxhash.xxh3_64_intdigest("\n".join(kept[i:i + 2]).encode("utf-8", "surrogatepass"))
                      for i in range(0, len(kept), 2)}
            prints.extend(chunks)
            documents.extend([count] * len(chunks))
            count += 1
    return np.array(prints, dtype=np.uint64), np.array(documents, dtype=np.uint32), count


def timed(name, work, results):
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    pairs, total = work()
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    results.append((name, cpu, wall, pairs, total))


def duck(prints, documents, least):
    import duckdb
    connection = duckdb.connect()
    connection.execute("set threads to 1")
    given = {"fp": prints, "doc": documents}
    connection.register("given", given)
    connection.execute("create table records as select * from given")

    def work():
        return connection.execute(
            """select count(*), coalesce(sum(shared), 0) from (
                 select a.doc, b.doc, count(*) as shared from records a join records b on a.fp = b.fp and a.doc < b.doc
                 group by a.doc, b.doc having count(*) >= ?)""", [least]).fetchone()
    return work


def polar(prints, documents, least):
    import polars as pl
    frame = pl.DataFrame({"fp": prints, "doc": documents})

    def work():
        shared = frame.filter(pl.len().over("fp") > 1)
        joined = shared.lazy().join(shared.lazy(), on="fp", suffix="_b").filter(pl.col("doc") < pl.col("doc_b"))
        counted = joined.group_by("doc", "doc_b").agg(pl.len().alias("shared")).filter(pl.col("shared") >= least)
        found = counted.collect()
        return found.height, int(found["shared"].sum() or 0)
    return work


def lookalike(binary, path, least, memory, extra):
    command = [binary, "overlap", path, "--chunk", "lines:2", "--min-shared", str(least), "--copies", "apart", "--threads", "1",
               "--memory", memory, "-o", "/tmp/overlap-race", "--overwrite", "--json", *extra]
    run = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    stages, chunking = run["measured"]["stages"], run["chunkings"][0]
    # The first group and compare are those of documents, later ones of servers.
    cpu = lambda name: next((stage[2] for stage in stages if stage[0] == name), 0.0)
    with open("/tmp/overlap-race/pairs.jsonl") as rows:
        total = sum(json.loads(row)["shared"] for row in rows)
    return cpu("read"), cpu("group") + cpu("compare"), chunking, total, run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("docs")
    parser.add_argument("--least", type=int, default=25)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--peers", default="duckdb,polars")
    options = parser.parse_args()
    for memory in [options.memory, "256M"]:
        for engine in ["count", "sort"] if memory == options.memory else ["auto"]:
            read, cpu, chunking, total, run = lookalike(options.binary, options.docs, options.least, memory, ["--engine", engine])
            size = chunking["chunk_records"]
            text = run["counts"]["text_bytes"]
            print(f"lookalike {engine} --memory {memory} ({chunking['engine']}): read {read:.2f} s ({text / read / 1e6:.0f} MB/s of text), overlap {cpu:.2f} s "
                  f"({size / cpu / 1e6:.1f} M records/s), {chunking['rows']} pairs, {total} shared, "
                  f"{run['measured']['peak_memory'] / 2**20:.0f} MiB; {chunking['common_chunks']} common chunks", flush=True)
    prints, documents, count = records(options.docs, options.limit)
    print(f"{len(prints)} records of {count} documents")
    results = []
    for name, make in [("duckdb", duck), ("polars", polar)]:
        if name in options.peers:
            timed(name, make(prints, documents, options.least), results)
            print(f"{results[-1][0]}: {results[-1][1]:.2f} s CPU, {results[-1][2]:.2f} s wall, {results[-1][3]} pairs, {results[-1][4]} shared", flush=True)


if __name__ == "__main__":
    sys.exit(main())
