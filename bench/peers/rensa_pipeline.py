#!/usr/bin/env python3
"""rensa end to end: JSON Lines to kept.jsonl; RAYON_NUM_THREADS sets the number of rensa's threads.

--mode clusters  RMinHash.from_token_sets, RMinHashLSH.insert_many and query_all, the estimate of
                 each candidate pair checked, clusters by union-find
--mode keep      RMinHashDeduplicator.add_pairs, as in rensa's README: no clusters
--mode flags     digest matrix and one-shot flags: finds the records that collide in a band and
                 drops all of them; no check, no clusters: the fastest path over a full set

The position-sampling `rho` sketches are left out, because they miss copies whose text is shifted.
"""

import array

import pipeline
from rensa import RMinHash, RMinHashDeduplicator, RMinHashLSH

SEED = 42


def similar_pairs(minhashes, start, candidates, options):
    """Yields candidate pairs (later, earlier) whose estimated resemblance reaches the threshold."""
    for at, others in enumerate(candidates, start):
        mine = minhashes[at]
        for other in others:
            if other < at and mine.jaccard(minhashes[other]) >= options.threshold:
                yield at, other


def clusters(lines, options, measure):
    """Returns the records that are first in their cluster."""
    index = RMinHashLSH(options.threshold, options.functions, options.bands)
    numbers, minhashes = [], []
    for found, tokens in pipeline.token_batches(lines, measure):
        with measure.stage("sketch"):
            batch = RMinHash.from_token_sets(tokens, options.functions, SEED)
        with measure.stage("index"):
            index.insert_many(batch, start_key=len(minhashes))
        numbers += found
        minhashes += batch
    joined = pipeline.Clusters(len(lines))
    with measure.stage("query"):
        for start, batch in pipeline.batches(minhashes):
            for at, other in similar_pairs(minhashes, start, index.query_all(batch), options):
                joined.join(numbers[at], numbers[other])
    return joined.kept()


def keep(lines, options, measure):
    """Returns the records that rensa's deduplicator keeps when it gets them in order."""
    dedup = RMinHashDeduplicator(
        threshold=options.threshold,
        num_perm=options.functions,
        use_lsh=True,
        num_bands=options.bands,
    )
    kept = [True] * len(lines)
    for numbers, tokens in pipeline.token_batches(lines, measure):
        with measure.stage("deduplicator"):
            flags = dedup.add_pairs(zip(map(str, numbers), tokens))
        for number, flag in zip(numbers, flags):
            kept[number] = flag
    return kept


def flags(lines, options, measure):
    """Returns the records that collide with no other."""
    found, hashes, rows = [], array.array("Q"), array.array("Q", [0])
    for numbers, tokens in pipeline.token_batches(lines, measure):
        with measure.stage("hash"):
            for record in RMinHash.hash_token_sets(tokens):
                hashes.extend(record)
                rows.append(len(hashes))
        found += numbers
    with measure.stage("sketch"):
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            hashes, rows, options.functions, SEED
        )
    index = RMinHashLSH(options.threshold, options.functions, options.bands)
    kept = [True] * len(lines)
    with measure.stage("flags"):
        for number, flag in zip(found, index.query_duplicate_flags_matrix_one_shot(matrix)):
            kept[number] = not flag
    return kept


def main():
    """Runs the chosen mode and prints its figures."""
    parser = pipeline.arguments(__doc__)
    parser.add_argument("--mode", choices=("clusters", "keep", "flags"), default="clusters")
    parser.add_argument("--bands", type=int, default=16)
    options = parser.parse_args()
    measure = pipeline.Measure(f"rensa {options.mode}", "rensa")
    with measure.stage("read"):
        lines = pipeline.read_lines(options.input, options.limit)
    mode = {"clusters": clusters, "keep": keep, "flags": flags}[options.mode]
    kept = mode(lines, options, measure)
    with measure.stage("write"):
        pipeline.write_kept(options.output, lines, kept)
    measure.report(kept, bands=options.bands, functions=options.functions)


if __name__ == "__main__":
    main()
