#!/usr/bin/env python3
"""fastdedup and duplodocus end to end: JSON Lines to kept.jsonl, by the program that the repository of each builds.

Both find near-duplicates over runs of five words by min-hash in 16 bands of 8, fastdedup's default. duplodocus keeps the first record of each
component of shared bands (`minhash-memory`); fastdedup checks an estimate of the resemblance and drops records that resemble an earlier one.
"""

import pathlib
import subprocess
import sys
import tempfile

import pipeline

BANDS, ROWS = 16, 8


def fastdedup(program, options, kept, _scratch):
    """Returns the command of fastdedup and the file that it writes."""
    return [program, "fuzzy-dedup", "--input", options.input, "--output", kept, "--field", "text", "--threshold", options.threshold,
            "--word-shingles", "--shingle-size", 5, "--num-hashes", BANDS * ROWS, "--bands", BANDS, "--rows-per-band", ROWS], kept


def duplodocus(program, options, _kept, scratch):
    """Returns the command of duplodocus, which takes a folder, and the file that it writes."""
    folder = scratch / "in"
    folder.mkdir()
    (folder / "in.jsonl").symlink_to(options.input.resolve())
    out = scratch / "out"
    return [program, "minhash-memory", "--input-dir", folder, "--storage-dir", scratch / "work", "--output-dir", out, "--text-key", "text",
            "--num-buckets", BANDS, "--bucket-size", ROWS, "--ngram-size", 5, "--tokenizer", "uniseg", "--remove-duplicates", "true"], out / "in.jsonl"


def main():
    """Runs the program and prints its figures."""
    parser = pipeline.arguments(__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the binary, named as its project is")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    kept = options.output / "kept.jsonl"
    with tempfile.TemporaryDirectory(dir=options.output) as scratch:
        command = {"fastdedup": fastdedup, "duplodocus": duplodocus}[options.program.name]
        command, written = command(options.program, options, kept, pathlib.Path(scratch))
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        written.replace(kept)


if __name__ == "__main__":
    main()
