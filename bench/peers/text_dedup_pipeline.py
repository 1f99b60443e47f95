#!/usr/bin/env python3
"""text-dedup end to end: JSON Lines to kept.jsonl.

Its module `text_dedup.minhash` with 128 functions over shingles of five words and xxh3, the faster of its hashes, with the bands that it chooses
for the threshold. Clusters are made from shared bands, and no estimate is checked. The dataset that it saves is written as JSON Lines.
"""

import os

os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"

import json
import subprocess
import sys
import tempfile

import datasets
import pipeline


def main():
    """Runs the module and prints its figures."""
    options = pipeline.arguments(__doc__).parse_args()
    measure = pipeline.Measure("text-dedup", "text-dedup")
    lines = pipeline.read_lines(options.input)
    if not lines:
        # Measure only the start, because the module cannot read an empty file.
        subprocess.run([sys.executable, "-c", "import text_dedup.minhash"], check=True)
        pipeline.write_kept(options.output, [], [])
        measure.report([])
        return
    with tempfile.TemporaryDirectory() as cache:
        words = {
            "path": "json", "data_files": options.input, "split": "train", "cache_dir": cache, "output": f"{cache}/kept", "column": "text",
            "ngram": 5, "min_length": 1, "num_perm": options.functions, "threshold": options.threshold, "hash_func": "xxh3", "num_proc": options.threads,
        }
        command = [str(part) for name, value in words.items() for part in (f"--{name}", value)]
        # Use a process of its own: with several processes, the module cannot pickle itself when it runs inside another program.
        subprocess.run([sys.executable, "-m", "text_dedup.minhash", *command], check=True, stdout=subprocess.DEVNULL)
        kept_ids = set(datasets.load_from_disk(f"{cache}/kept")["id"])
    kept = [json.loads(line)["id"] in kept_ids for line in lines]
    pipeline.write_kept(options.output, lines, kept)
    measure.report(kept, functions=options.functions)


if __name__ == "__main__":
    main()
