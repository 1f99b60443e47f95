#!/usr/bin/env python3
"""datasketch end to end: JSON Lines to kept.jsonl, one thread.

MinHash.generator (its batch path over update_batch) with xxh32 instead of the default SHA-1,
MinHashLSH with the bands that it chooses for the threshold (--bands and --rows override them),
the estimate of each candidate pair checked, clusters by union-find.

--library lookalike.compat.datasketch runs the same pipeline with lookalike's classes of these names: MinHash.bulk with SHA-1.

Run it on a part (--limit 50000), because its time and memory are proportional to the number of records.
"""

import importlib

import pipeline
import xxhash


def sketches(library, tokens, functions):
    """Returns a MinHash per record; tokens are lists of strings."""
    encoded = ([token.encode() for token in record] for record in tokens)
    MinHash = library.MinHash
    if library.__name__ != "datasketch":
        return MinHash.bulk(encoded, num_perm=functions)
    return list(MinHash.generator(encoded, num_perm=functions, hashfunc=xxhash.xxh32_intdigest))


def clusters(minhashes, numbers, size, index, threshold):
    """Inserts each record after querying for similar earlier ones. Returns the clusters."""
    joined = pipeline.Clusters(size)
    for at, minhash in enumerate(minhashes):
        for other in index.query(minhash):
            if minhash.jaccard(minhashes[other]) >= threshold:
                joined.join(numbers[at], numbers[other])
        index.insert(at, minhash, check_duplication=False)
    return joined


def main():
    """Runs the pipeline and prints its figures."""
    parser = pipeline.arguments(__doc__)
    parser.add_argument("--bands", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--library", default="datasketch")
    options = parser.parse_args()
    library = importlib.import_module(options.library)
    measure = pipeline.Measure(options.library, options.library.partition(".")[0])
    with measure.stage("read"):
        lines = pipeline.read_lines(options.input, options.limit)
    params = (options.bands, options.rows) if options.bands else None
    index = library.MinHashLSH(options.threshold, options.functions, params=params)
    numbers, minhashes = [], []
    for found, tokens in pipeline.token_batches(lines, measure):
        numbers += found
        with measure.stage("sketch"):
            minhashes += sketches(library, tokens, options.functions)
    with measure.stage("index"):
        joined = clusters(minhashes, numbers, len(lines), index, options.threshold)
    kept = joined.kept()
    with measure.stage("write"):
        pipeline.write_kept(options.output, lines, kept)
    measure.report(kept, bands=index.b, functions=options.functions)


if __name__ == "__main__":
    main()
