#!/usr/bin/env python3
"""Measures the use of anchors and links as features (Manku et al. 2007, section 5.3): are two pages versions of the same page?

    bench/links.py BINARY DATA

DATA has java-api-html, manual-versions-html and install-guide-html: the same pages in several versions, whose links point to pages of the same
version. Two ways of giving them addresses are compared:

- sites: each version is a site of its own, so no target of a link occurs in two versions;
- mirrors: the versions are copies within one site that others link to equally, so a link counts for the page of that name in every version, and
  comes from the same address in all of them. This is the best case for links.

A pair is right if both pages are versions of the same page. Prints, for each setting, precision and recall of simhash at radius 3, and the radius
with the best F1 with its precision, recall and F1.
"""

import gzip
import json
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

SETS = ["java-api-html", "manual-versions-html", "install-guide-html"]
FEATURES = [["--shingle", "words:1", "--weight", "tf"], ["--shingle", "words:5"]]
FIELDS = [
    None,
    "anchors:1",
    "anchors:3",
    "anchors:10",
    "anchors:3~5",
    "in-links:3",
    "out-links:3",
    "anchors:3~5,in-links:3,out-links:3",
]


def pages(folder):
    with gzip.open(folder / "docs.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def linked(binary, records, scratch):
    """Returns the records with their links as fields, in the same order."""
    plain, done = scratch / "plain.jsonl", scratch / "linked.jsonl"
    with open(plain, "w") as out:
        for page in records:
            out.write(json.dumps({"id": page["id"], "url": f"http://{page['version']}.example/{page['page']}.html", "html": page["html"]}) + "\n")
    run = subprocess.run([binary, "links", plain, "-o", done, "--window", "8", "--json"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in open(done)], json.loads(run.stdout)


def mirrored(records, pages):
    """Returns the records as if the versions were mirrors of one site."""
    def name(address):
        return address.split("/", 3)[-1]

    by_page = {}
    for record, page in zip(records, pages):
        fields = by_page.setdefault(page["page"], {"anchors": [], "in_links": [], "out_links": []})
        for field, values in fields.items():
            values += record[field]
    for fields in by_page.values():
        anchors = {json.dumps(anchor, sort_keys=True): anchor for anchor in fields["anchors"]}
        fields["anchors"] = [anchors[key] for key in sorted(anchors)]
        for field in ["in_links", "out_links"]:
            fields[field] = sorted({name(address) for address in fields[field]})
    copies = []
    for record, page in zip(records, pages):
        own = {"out_links": sorted({name(address) for address in record["out_links"]})}
        copies.append(record | by_page[page["page"]] | own)
    return copies


def fingerprints(binary, path, flags):
    run = subprocess.run([binary, "fingerprint", path, "-q", *flags], check=True, capture_output=True, text=True)
    codes = [json.loads(line)["fingerprint"] for line in run.stdout.splitlines()]
    return [int(code or "0", 16) for code in codes]


def measured(codes, names):
    """Returns the right and the found pairs within each radius, and the number of all right pairs."""
    at = [[0, 0] for _ in range(65)]
    for one, other in combinations(range(len(codes)), 2):
        at[(codes[one] ^ codes[other]).bit_count()][names[one] == names[other]] += 1
    true, found = [], []
    for radius in range(33):
        true.append(sum(right for _, right in at[: radius + 1]))
        found.append(sum(wrong + right for wrong, right in at[: radius + 1]))
    return true, found, sum(right for _, right in at)


def scores(true, found, all_right):
    precision = true / found if found else 1.0
    recall = true / all_right
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def main():
    binary, data = sys.argv[1], Path(sys.argv[2])
    for name in SETS:
        docs = pages(data / name)
        names = [page["page"] for page in docs]
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            records, summary = linked(binary, docs, scratch)
            told = ", ".join(f"{key} {summary[key]}" for key in ["pages", "links", "links_to_pages", "anchors", "in_links", "out_links"])
            print(f"\n{name}: {told}")
            for kind, rows in [("sites", records), ("mirrors", mirrored(records, docs))]:
                path = scratch / f"{kind}.jsonl"
                path.write_text("".join(json.dumps(row) + "\n" for row in rows))
                for features in FEATURES:
                    for fields in FIELDS:
                        if fields is None and kind == "mirrors":
                            continue
                        flags = features + (["--fields", fields] if fields else [])
                        true, found, right = measured(fingerprints(binary, path, flags), names)
                        at3 = scores(true[3], found[3], right)
                        best = max(range(33), key=lambda radius: scores(true[radius], found[radius], right)[2])
                        precision, recall, f1 = scores(true[best], found[best], right)
                        label = f"{features[1]} {fields or 'text alone'}"
                        print(f"  {kind:8}{label:46} radius 3: {at3[0]:.3f} {at3[1]:.3f}   best F1 at {best:2}: {precision:.3f} {recall:.3f} {f1:.3f}")


if __name__ == "__main__":
    main()
