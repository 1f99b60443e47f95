#!/usr/bin/env python3
"""Computes precision and recall of pairs with a truth file, as in docs/explanation/html.md and docs/how-to/languages.md.

    lookalike pairs docs.jsonl.gz --text html --threshold 0.8 --quiet > found.jsonl
    scripts/score_pairs.py --truth versions.jsonl.gz --least 0.8 --docs docs.jsonl.gz found.jsonl

Truth: lines with a, b and j. With --docs, two documents are the same page if their fields `page` are equal;
precision is then the share of found pairs that are the same page, and the other pairs are counted.
"""

import argparse
import gzip
import json


def lines(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def pair(row):
    return tuple(sorted((row["a"], row["b"])))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--truth", required=True)
parser.add_argument("--least", type=float, default=0.8)
parser.add_argument("--docs")
parser.add_argument("--only", default="", help="documents whose id begins so")
parser.add_argument("found")
arguments = parser.parse_args()

mine = lambda two: all(name.startswith(arguments.only) for name in two)
truth = {pair(row): row["j"] or 0 for row in lines(arguments.truth)}
wanted = {two for two, j in truth.items() if j >= arguments.least and mine(two)}
found = {two for two in map(pair, lines(arguments.found)) if mine(two)}
right = found & wanted
share = lambda part, of: f"{len(part) / len(of):.3f}" if of else "-"
report = [f"truth {len(wanted)}", f"found {len(found)}", f"recall {share(right, wanted)}"]
if arguments.docs:
    page = {row["id"]: row["page"] for row in lines(arguments.docs)}
    same = {two for two in found if page[two[0]] == page[two[1]]}
    report += [f"same page {share(same, found)}", f"other pages {len(found - same)}"]
else:
    near = {two for two in found if truth.get(two, 0) >= arguments.least / 2}
    report += [f"precision {share(right, found)}", f"of half that resemblance {share(near, found)}"]
print(", ".join(report))
