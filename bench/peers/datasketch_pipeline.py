#!/usr/bin/env python3
"""datasketch end to end: JSON Lines to kept.jsonl, one thread.

MinHash.generator (its batch path over update_batch) with xxh32 in place of the default SHA-1,
MinHashLSH with the bands it chooses itself for the threshold (--bands and --rows override),
the estimate of each candidate pair checked, clusters by union-find.

Run it on a part (--limit 50000): its time grows in proportion to the records, its memory too.
"""

import pipeline
import xxhash
from datasketch import MinHash, MinHashLSH


def sketches(tokens, functions):
    """A MinHash a record; tokens are lists of strings."""
    encoded = ([token.encode() for token in record] for record in tokens)
    return list(MinHash.generator(encoded, num_perm=functions, hashfunc=xxhash.xxh32_intdigest))


def clusters(minhashes, numbers, size, index, threshold):
    """Insert each record after asking for its likes among the earlier ones."""
    joined = pipeline.Clusters(size)
    for at, minhash in enumerate(minhashes):
        for other in index.query(minhash):
            if minhash.jaccard(minhashes[other]) >= threshold:
                joined.join(numbers[at], numbers[other])
        index.insert(at, minhash, check_duplication=False)
    return joined


def main():
    """Run the pipeline and print its figures."""
    parser = pipeline.arguments(__doc__)
    parser.add_argument("--bands", type=int)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    measure = pipeline.Measure("datasketch", "datasketch")
    with measure.stage("read"):
        lines = pipeline.read_lines(options.input, options.limit)
    params = (options.bands, options.rows) if options.bands else None
    index = MinHashLSH(options.threshold, options.functions, params=params)
    numbers, minhashes = [], []
    for found, tokens in pipeline.token_batches(lines, measure):
        numbers += found
        with measure.stage("sketch"):
            minhashes += sketches(tokens, options.functions)
    with measure.stage("index"):
        joined = clusters(minhashes, numbers, len(lines), index, options.threshold)
    kept = joined.kept()
    with measure.stage("write"):
        pipeline.write_kept(options.output, lines, kept)
    measure.report(kept, bands=index.b, functions=options.functions)


if __name__ == "__main__":
    main()
