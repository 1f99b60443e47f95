#!/usr/bin/env python3
"""text-dedup end to end: JSON Lines to kept.jsonl, one process.

Its module `text_dedup.minhash` with 128 functions over shingles of five words and xxh3, the faster of its hashes; the bands are those that
it chooses itself for the threshold. Clusters come of shared bands, no estimate is checked. The dataset that it saves is written as JSON Lines.
"""

import os

os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"

import contextlib
import io
import json
import runpy
import sys
import tempfile

import datasets
import pipeline


def main():
    """Run the module and print its figures."""
    options = pipeline.arguments(__doc__).parse_args()
    measure = pipeline.Measure("text-dedup", "text-dedup")
    lines = pipeline.read_lines(options.input)
    if not lines:
        # What starting costs: the module cannot read an empty file.
        pipeline.write_kept(options.output, [], [])
        measure.report([])
        return
    with tempfile.TemporaryDirectory() as cache:
        words = {
            "path": "json", "data_files": options.input, "split": "train", "cache_dir": cache, "output": f"{cache}/kept", "column": "text",
            "ngram": 5, "min_length": 1, "num_perm": options.functions, "threshold": options.threshold, "hash_func": "xxh3", "num_proc": 1,
        }
        sys.argv = ["text_dedup.minhash", *(str(part) for name, value in words.items() for part in (f"--{name}", value))]
        with measure.stage("text-dedup"), contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            runpy.run_module("text_dedup.minhash", run_name="__main__")
        kept_ids = set(datasets.load_from_disk(f"{cache}/kept")["id"])
    kept = [json.loads(line)["id"] in kept_ids for line in lines]
    pipeline.write_kept(options.output, lines, kept)
    measure.report(kept, functions=options.functions)


if __name__ == "__main__":
    main()
