#!/usr/bin/env python3
"""Compares all-pairs overlap of lookalike with DuckDB, polars, SetSimilaritySearch and find-simdoc, on the same two-line chunks, one thread each.

usage: overlap_race.py LOOKALIKE DOCS.jsonl [--least 25] [--memory 4G] [--limit N] [--cap N] [--containment 0.8]
                       [--resemblance 0.8] [--peers duckdb,polars,setsimilarity,findsimdoc]

The records (fingerprint, document) are made here, by the definition in docs/how-to/overlap.md and not by lookalike, and making them does not count
in the peers' time. lookalike starts from the text: its stages "group" and "compare" are its time for the same job, "read" is reading and
chunking, and "write" is making and writing the lines of the rows, which no peer does. All must give the same number of pairs and the same sum of
shared chunks. --cap leaves out chunks that more documents share, so that mostly rare chunks are counted; polars holds every pair of every
chunk in memory at once, some ten gigabytes without it. SetSimilaritySearch does not count: it finds the pairs of sets that each contain the given
share of the other. find-simdoc (a crate, built by `race.py setup`) estimates resemblance from sketches, so its number of pairs is printed beside
the exact one. Needs: duckdb polars numpy xxhash SetSimilaritySearch.
"""
import argparse, collections, importlib.metadata, json, os, resource, subprocess, sys, tempfile, time

os.environ["POLARS_MAX_THREADS"] = "1"
import numpy as np
import xxhash


def records(path, limit):
    """Returns the distinct (fingerprint, document) of the two-line chunks; equal texts count once."""
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


def set_similarity(prints, documents, share):
    from SetSimilaritySearch import all_pairs
    sets = collections.defaultdict(list)
    for print_, document in zip(prints.tolist(), documents.tolist()):
        sets[document].append(print_)
    sets = list(sets.values())

    def work():
        found = list(all_pairs(sets, similarity_func_name="containment_min", similarity_threshold=share))
        return len(found), 0
    return work


def find_simdoc(prints, documents, resemblance, folder):
    """Runs the bench's program `find_simdoc` on the sets of fingerprints, and prints its figures."""
    path = os.path.join(folder, "sets.txt")
    starts = np.flatnonzero(np.diff(documents.astype(np.int64), prepend=-1))
    with open(path, "w") as out:
        for start, end in zip(starts, [*starts[1:], len(documents)]):
            out.write(" ".join("%x" % value for value in prints[start:end]) + "\n")
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "target/release/find_simdoc")
    said = subprocess.run([program, path, str(resemblance)], check=True, stdout=subprocess.PIPE,
                          env={**os.environ, "RAYON_NUM_THREADS": "1"}).stdout
    cpu, wall, pairs = said.decode().split()
    print(f"find-simdoc 0.1.1, resemblance {resemblance} by 1,280 bits: {cpu} s CPU, {wall} s wall, {pairs} pairs", flush=True)


def capped(prints, documents, cap):
    """Returns the records without chunks that more than `cap` documents share."""
    _, places, counts = np.unique(prints, return_inverse=True, return_counts=True)
    kept = counts[places] <= cap
    return prints[kept], documents[kept]


def write_records(prints, documents, path):
    """Writes a document per line. Its lines are its chunks, and one of its own so that no two texts are equal; --chunk lines:1 makes the same
    records of it."""
    with open(path, "w") as out:
        starts = np.flatnonzero(np.diff(documents.astype(np.int64), prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(documents)]):
            text = "\n".join(["document %d" % documents[start], *("%016x" % value for value in prints[start:end])])
            out.write(json.dumps({"id": "%08d" % documents[start], "text": text}) + "\n")


def lookalike(binary, path, chunk, least, memory, extra):
    folder = tempfile.mkdtemp(prefix="overlap-race-")
    command = [binary, "overlap", path, "--chunk", chunk, "--min-shared", str(least), "--copies", "apart", "--threads", "1",
               "--memory", memory, "-o", folder, "--overwrite", "--json", *extra]
    run = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    # The first stages with a name are those of documents, later ones those of servers.
    stages = {}
    for name, _, cpu in run["measured"]["stages"]:
        stages.setdefault(name, cpu)
    with open(os.path.join(folder, "pairs.jsonl")) as rows:
        rows = [json.loads(row) for row in rows]
    subprocess.run(["rm", "-r", folder], check=True)
    return stages, run["chunkings"][0], sum(row["shared"] for row in rows), run, rows


def by_share(rows, options, own):
    """Returns the numbers of pairs that reach the wanted containment and resemblance, ignoring `own` chunks of each document."""
    both = alike = 0
    for row in rows:
        a, b, shared = row["chunks_a"] - own, row["chunks_b"] - own, row["shared"]
        both += shared >= options.containment * max(a, b)
        alike += shared >= options.resemblance * (a + b - shared)
    return both, alike


def show(name, result):
    stages, chunking, total, run, _ = result
    records, text = chunking["chunk_records"], run["counts"]["text_bytes"]
    counting = stages["group"] + stages["compare"]
    print(f"lookalike {name} ({chunking['engine']}): read {stages['read']:.2f} s ({text / stages['read'] / 1e6:.0f} MB/s of text), "
          f"group {stages['group']:.2f} s, count {stages['compare']:.2f} s ({records / counting / 1e6:.1f} M records/s), rows written "
          f"{stages.get('write', 0):.2f} s ({records / (counting + stages.get('write', 0)) / 1e6:.1f} M records/s with them), "
          f"{chunking['rows']} pairs, {total} shared, {run['measured']['peak_memory'] / 2**20:.0f} MiB; "
          f"{chunking['pairs_counted']} pairs counted, {chunking['pairs_spared']} spared", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("docs")
    parser.add_argument("--least", type=int, default=25)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--cap", type=int, default=0)
    parser.add_argument("--containment", type=float, default=0.8)
    parser.add_argument("--resemblance", type=float, default=0.8)
    parser.add_argument("--peers", default="duckdb")
    options = parser.parse_args()
    peers = options.peers.split(",")
    prints, documents, count = records(options.docs, options.limit)
    docs, chunk = options.docs, "lines:2"
    with tempfile.TemporaryDirectory() as folder:
        if options.cap or options.limit:
            if options.cap:
                prints, documents = capped(prints, documents, options.cap)
            docs, chunk = os.path.join(folder, "records.jsonl"), "lines:1"
            write_records(prints, documents, docs)
        print(f"{len(prints)} records of {count} documents")
        for engine, memory in [("count", options.memory), ("sort", options.memory), ("auto", "256M"), ("sort", "256M")]:
            result = lookalike(options.binary, docs, chunk, options.least, memory, ["--engine", engine])
            show(f"--engine {engine} --memory {memory}", result)
        if "setsimilarity" in peers or "findsimdoc" in peers:
            result = lookalike(options.binary, docs, chunk, 1, options.memory, ["--min-containment", "0.5"])
            show("--min-shared 1 --min-containment 0.5", result)
            both, alike = by_share(result[4], options, own=int(docs != options.docs))
            print(f"of these {both} pairs hold {options.containment} of each other, {alike} resemble each other by "
                  f"{options.resemblance}", flush=True)
        if "findsimdoc" in peers:
            find_simdoc(prints, documents, options.resemblance, folder)
    results = []
    for name, package, make in [("duckdb", "duckdb", duck), ("polars", "polars", polar),
                                ("setsimilarity", "SetSimilaritySearch", set_similarity)]:
        if name in peers:
            wanted = options.containment if name == "setsimilarity" else options.least
            timed(name, make(prints, documents, wanted), results)
            _, cpu, wall, pairs, total = results[-1]
            print(f"{package} {importlib.metadata.version(package)}: {cpu:.2f} s CPU, {wall:.2f} s wall, {pairs} pairs, "
                  f"{total} shared", flush=True)


if __name__ == "__main__":
    sys.exit(main())
