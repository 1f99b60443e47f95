#!/usr/bin/env python3
"""Scores the records that an engine kept against a list of similar pairs.

A pair at or above the threshold is *found* if at most one of the two records was kept, because that
is what a user of a deduplicated file sees, whatever the clusters are. A removed record without any
listed pair at or above the threshold is *unexplained*: mostly a false positive, sometimes a record
whose similar record is not in the list of pairs. Standard library only.
"""

import argparse
import json


def kept_ids(path):
    """Returns the ids in a kept.jsonl."""
    with open(path, "rb") as lines:
        return {json.loads(line)["id"] for line in lines}


def similar_pairs(path, threshold, known):
    """Yields pairs of known records at or above the threshold, each as (a, b)."""
    with open(path, "rb") as lines:
        for line in lines:
            pair = json.loads(line)
            alike = pair["resemblance"] >= threshold
            if alike and pair["a"] in known and pair["b"] in known:
                yield pair["a"], pair["b"]


def score(kept, pairs, ids):
    """Computes the recall of the pairs, and the number of removed records that no pair explains."""
    wanted = found = 0
    explained = set()
    for a, b in pairs:
        wanted += 1
        found += not (a in kept and b in kept)
        explained.update((a, b))
    return {
        "pairs": wanted,
        "found": found,
        "recall": round(found / wanted, 5) if wanted else None,
        "removed": len(ids) - len(kept),
        "unexplained": len(ids - kept - explained),
    }


def score_files(records, kept_path, pairs_path, threshold):
    """Scores the kept file of an engine that read the records."""
    ids = kept_ids(records)
    return score(kept_ids(kept_path), similar_pairs(pairs_path, threshold, ids), ids)


def main():
    """Reads the options and prints the score as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records", help="the input of the engine")
    parser.add_argument("kept", help="its kept.jsonl")
    parser.add_argument("pairs", help='JSON Lines with "a", "b" and "resemblance"')
    parser.add_argument("--threshold", type=float, default=0.8)
    options = parser.parse_args()
    print(json.dumps(score_files(options.records, options.kept, options.pairs, options.threshold)))


if __name__ == "__main__":
    main()
