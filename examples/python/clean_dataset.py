"""Removes the duplicates of a Hugging Face dataset.

    python clean_dataset.py articles.jsonl CLEANED

CLEANED is a folder that `datasets.load_from_disk` reads.
"""

import sys

import datasets

import lookalike as lk


def clean(dataset: datasets.Dataset) -> tuple[datasets.Dataset, lk.DedupResult]:
    result = lk.dedup(dataset, text="text", id="id", threshold=0.8, keep="longest")
    # Rows are selected by their numbers: nothing is copied, and types and order stay.
    return result.kept, result


def main(source: str, target: str) -> None:
    dataset = datasets.load_dataset("json", data_files=source, split="train")
    cleaned, result = clean(dataset)
    print(result)
    for row in result.clusters.to_pylist():
        print(f"{row['id']} went for {row['survivor']}: {row['reason']}, resemblance {row['similarity']:.2f}")
    cleaned.save_to_disk(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
