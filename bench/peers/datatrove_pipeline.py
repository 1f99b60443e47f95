#!/usr/bin/env python3
"""datatrove end to end: JSON Lines to kept.jsonl.

The four steps of its min-hash example, `minhash_deduplication.py`, with its defaults: 14 bands of 8, shingles of five words as segmented by
spaCy's English tokenizer, one task per thread. Clusters are made from shared bands, and no estimate is checked.
"""

import glob
import json
import logging
import os
import tempfile

import pipeline

# Its log goes to standard error, and the logs of its tasks to a folder.
os.environ["DATATROVE_COLORIZE_LOGS"] = "0"
logging.disable(logging.CRITICAL)


def steps(source, folder, threads):
    """Returns the executors of the four steps, each of which waits for the one before."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    config = MinhashConfig()
    reader = JsonlReader(source)
    last = None
    for name, tasks, parts in [
        ("signatures", threads, [reader, MinhashDedupSignature(output_folder=f"{folder}/signatures", config=config, language="eng")]),
        ("buckets", config.num_buckets, [MinhashDedupBuckets(input_folder=f"{folder}/signatures", output_folder=f"{folder}/buckets", config=config)]),
        ("clusters", 1, [MinhashDedupCluster(input_folder=f"{folder}/buckets", output_folder=f"{folder}/clusters", config=config)]),
        ("filter", threads, [reader, MinhashDedupFilter(input_folder=f"{folder}/clusters"), JsonlWriter(f"{folder}/kept", compression=None)]),
    ]:
        last = LocalPipelineExecutor(pipeline=parts, tasks=tasks, workers=threads, logging_dir=f"{folder}/logs/{name}", depends=last)
    return last


def split(lines, folder, parts):
    """Writes the lines as one file per task, because datatrove gives whole files to its tasks."""
    os.mkdir(folder)
    for part in range(parts):
        with open(f"{folder}/{part}.jsonl", "wb") as out:
            out.writelines(lines[part::parts])


def main():
    """Runs the steps and prints the figures."""
    options = pipeline.arguments(__doc__).parse_args()
    measure = pipeline.Measure("datatrove", "datatrove")
    lines = pipeline.read_lines(options.input)
    with tempfile.TemporaryDirectory() as folder:
        split(lines, f"{folder}/in", options.threads)
        last = steps(f"{folder}/in", folder, options.threads)
        last.run()
        kept_ids = set()
        for name in glob.glob(f"{folder}/kept/*"):
            with open(name, "rb") as part:
                kept_ids.update(json.loads(line)["id"] for line in part)
    kept = [json.loads(line)["id"] in kept_ids for line in lines]
    pipeline.write_kept(options.output, lines, kept)
    measure.report(kept)


if __name__ == "__main__":
    main()
