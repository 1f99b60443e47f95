#!/usr/bin/env python3
"""Checks that with main-content extraction no page is removed for another that looks different.

Downloads documentation packages of Debian, deduplicates each with the default settings, and all crawl samples. Compares the visible text of
every removed page with that of its survivor: word 5-grams of `extract --html visible`, computed here. Fails if a removed page resembles its
survivor by less than the floor, or if pages with different visible texts are called `exact`.

    scripts/check_main_text.py --data DIR [--binary target/release/lookalike] [--crawl ../shared/data/warc-samples]

DIR keeps the packages between runs; it needs 1 GB. Needs a Debian system with apt-get and dpkg.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = [
    "cppreference-doc-en-html",
    "ghc-doc",
    "libboost1.81-doc",
    "openjdk-17-doc",
    "sqlite3-doc",
]
# Words as Unicode segments them (annex 29): an apostrophe, a full stop or a colon within a word does not end it.
WORD = re.compile(r"\w+(?:['\u2019.:]\w+)*")


def unpacked(package: str, data: Path) -> Path:
    """Returns the folder of an unpacked package, which is downloaded if it is missing."""
    place = data / package
    if not place.exists():
        data.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=data, check=True)
        archives = sorted(data.glob(f"{package}_*.deb"))
        place.mkdir()
        subprocess.run(["dpkg", "-x", archives[-1], place], check=True)
    return place


def run(binary: str, *arguments: object) -> None:
    done = subprocess.run([binary, *map(str, arguments)], stdout=subprocess.DEVNULL)
    # Status 3: something could not be read, which does not matter here.
    if done.returncode not in (0, 3):
        sys.exit(f"{binary} {arguments}: status {done.returncode}")


def lines(path: Path):
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def visible(binary: str, source: Path, folder: Path) -> dict[str, str]:
    """Returns the visible text of each document."""
    path = folder / "visible.jsonl"
    run(binary, "extract", source, "--html", "visible", "--quiet", "-o", path)
    texts: dict[str, str] = {}
    for record in lines(path):
        name, number = record["id"], 2
        while name in texts:
            name, number = f"{record['id']}#{number}", number + 1
        texts[name] = record["text"] or ""
    return texts


def grams(text: str) -> set[tuple[str, ...]]:
    words = WORD.findall(text.lower())
    return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))} if words else set()


def resemblance(a: str, b: str) -> float:
    first, second = grams(a), grams(b)
    return len(first & second) / len(first | second) if first | second else 1.0


def check(binary: str, name: str, source: Path, floor: float) -> bool:
    """Returns whether all removed pages of a collection look like their survivors."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run(binary, "dedup", source, "-o", folder / "out", "--quiet")
        texts = visible(binary, source, folder)
        removed, low, unequal = 0, [], []
        for cluster in lines(folder / "out" / "clusters.jsonl"):
            survivor = texts.get(cluster["survivor"])
            for member in cluster["members"]:
                removed += 1
                text = texts.get(member["id"])
                if survivor is None or text is None:
                    sys.exit(f"{name}: no text of {cluster['survivor']} or {member['id']}")
                pair = (member["id"], cluster["survivor"], member["reason"])
                alike = resemblance(text, survivor)
                if alike < floor:
                    low.append((round(alike, 3), *pair))
                if member["reason"] == "exact" and text != survivor:
                    unequal.append(pair)
        counts = json.loads((folder / "out" / "run.json").read_text())
    html, decisions = counts["counts"].get("html"), counts["decisions"]
    print(f"{name}: {len(texts)} documents, {removed} removed, {len(low)} below {floor}, {len(unequal)} not equal")
    print(f"  {html}\n  {decisions}")
    for pair in sorted(low)[:20] + unequal[:20]:
        print("  ", *pair)
    return not low and not unequal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder for the packages")
    parser.add_argument("--binary", default="target/release/lookalike")
    parser.add_argument("--crawl", type=Path, help="web archives, one collection")
    parser.add_argument("--floor", type=float, default=0.5)
    arguments = parser.parse_args()
    collections = [(package, unpacked(package, arguments.data)) for package in PACKAGES]
    if arguments.crawl:
        collections.append(("crawl", arguments.crawl))
    good = [check(arguments.binary, name, source, arguments.floor) for name, source in collections]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
