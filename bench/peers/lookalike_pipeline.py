#!/usr/bin/env python3
"""The Python package end to end: JSON Lines to kept.jsonl, the rows as a list of dicts in memory.

Every pair at or above the threshold is found and verified, as with the command.
"""

import json

import lookalike as lk
import pipeline


def main():
    """Runs lk.dedup and prints its figures."""
    options = pipeline.arguments(__doc__).parse_args()
    measure = pipeline.Measure("lookalike (Python)", "lookalike")
    with measure.stage("read"):
        lines = pipeline.read_lines(options.input, options.limit)
    with measure.stage("parse"):
        rows = [json.loads(line) for line in lines]
    with measure.stage("dedup"):
        result = lk.dedup(
            rows, id="id", threshold=options.threshold, threads=options.threads, progress=False
        )
    with measure.stage("write"):
        kept = result.mask.to_pylist()
        pipeline.write_kept(options.output, lines, kept)
    measure.report(kept)


if __name__ == "__main__":
    main()
