#!/usr/bin/env python3
"""Tests questions that papers leave open on public corpora: short texts, pages of one topic, unique pages, stop features, lengths.

    open_questions.py BINARY DATA [lengths|short|topic|single|stop...]

BINARY is the command lookalike, DATA the folder of the corpora. Only the first of several documents with equal texts counts, except where pages
without near-duplicates are looked for. Documents are halved by a hash of the id. Prints tables in Markdown. Standard library only.
"""

import argparse
import collections
import difflib
import json
import pathlib
import random
import re
import subprocess
import tempfile

from radius_table import (Corpus, Counts, count, crossed, figure, fingerprints, halves, near, pair_of, precision_cell, radius_cell, read_corpus,
                          recall_cell, rows, share, table, with_limits)

WORDS = ("--segment", "word-chars")  # the words of this script: \w+
SHORT = 49


def words_of(text):
    return re.findall(r"\w+", text.lower())


def pairs_of(binary, documents, *options):
    """Returns the pairs that the command finds among documents, as sets of two ids."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "documents.jsonl")
        path.write_text("".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in documents.items()), encoding="utf-8")
        command = [binary, "pairs", path, "--threads", "1", "--quiet", *options]
        printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return {pair_of(row["a"], row["b"]) for row in map(json.loads, printed.splitlines())}


def texts(folder):
    """Returns the first document of each text, by id."""
    by_text = {}
    for row in rows(read_corpus(folder).path):
        by_text.setdefault(row["text"], row["id"])
    return {one: text for text, one in by_text.items()}


def changed(words, others, dice):
    """Returns the text with one inner word replaced by another."""
    at = dice.randrange(1, len(words) - 1)
    return " ".join([*words[:at], dice.choice([one for one in others if one != words[at]]), *words[at + 1:]])


def differing(a, b):
    """Aligns two texts. Returns the runs of words in which they differ, as pairs."""
    match = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [(a[i:k], b[m:n]) for kind, i, k, m, n in match.get_opcodes() if kind != "equal"]


def short_rule(binary, data):
    """Tests rules for texts that are too short for their shingles."""
    documents = {}
    for corpus in ("reuters21578", "newsgroups20", "install-guide-html"):
        # Japanese has no spaces between words.
        documents |= {f"{corpus} {one}": text for one, text in texts(data / corpus).items()
                      if corpus != "install-guide-html" or one.startswith("en/")}
    parts = collections.defaultdict(dict)
    for one, which in halves_of(documents).items():
        parts[which][one] = documents[one]
    body = []
    for which, part in sorted(parts.items()):
        words = {one: words_of(text) for one, text in part.items()}
        short = [one for one, own in words.items() if 1 <= len(own) < SHORT]
        dice = random.Random(1)
        pool = sorted({word for one in short for word in words[one]})
        edits = {f"{one} edited": changed(words[one], pool, dice) for one in short if len(words[one]) >= 6}
        usual = None
        for rule in ((), ("--short", f"{SHORT}:3"), ("--short", f"{SHORT}:2"), ("--short", f"{SHORT}:1")):
            found = pairs_of(binary, part | edits, *WORDS, *rule)
            again = sum(pair_of(one, one.removesuffix(" edited")) in found for one in edits)
            plain = {pair for pair in found if not any(one.endswith(" edited") for one in pair)}
            usual = plain if usual is None else usual
            more = [differing(words[a], words[b]) for a, b in sorted(plain - usual)]
            large = sum(sum(max(len(x), len(y)) for x, y in runs) >= 3 for runs in more)
            numbers = sum(all(word.isdigit() for x, y in runs for word in x + y) for runs in more)
            across = sum(len({len(words[one]) < SHORT for one in pair}) == 2 for pair in plain)
            body.append(("choosing" if which == 0 else "other", f"{len(short)}", f"`words:{rule[1][-1] if rule else 5}`",
                         f"{figure(again / len(edits))} of {len(edits)}", len(more), large, numbers, across))
    table(("half", "texts under 49 words", "features of these", "found", "more", "by three words or more", "only in numbers",
           "pairs across 49 words"), body)


def halves_of(ids):
    """Returns the half of each id, 0 or 1, as `radius_table` does."""
    return halves(Corpus(pathlib.Path(), list(ids), 0, set(), set()))


TOPIC = {
    ("words:1", 3): ("--shingle", "words:1"),
    ("words:2", 6): ("--shingle", "words:2"),
    ("words:3, 128 bits", 12): ("--shingle", "words:3", "--sketch", "simhash:128"),
    ("words:5", 3): (),
}


def resemblance(a, b):
    """Returns the share of runs of five words that two texts have in common."""
    mine, other = ({tuple(words[at:at + 5]) for at in range(max(len(words) - 4, 1))} for words in map(words_of, (a, b)))
    return len(mine & other) / len(mine | other)


def topic(binary, data):
    """Measures how often fingerprints join different pages of one site."""
    fixed, chosen = [], []
    for name in ("java-api-html", "install-guide-html", "manual-versions-html"):
        corpus = read_corpus(data / name)
        records = {row["id"]: row for row in rows(corpus.path)}
        page = {one: row["page"] for one, row in records.items()}
        by_page = collections.defaultdict(list)
        for one in corpus.ids:
            by_page[page[one]].append(one)
        same = {pair_of(a, b) for group in by_page.values() for at, a in enumerate(group) for b in group[at + 1:]}
        for field in ("text", "html"):
            for (setting, radius), options in TOPIC.items():
                found = near(corpus.ids, fingerprints(binary, corpus.path, options, field))
                counts, alike = count(found, same, radius), count(found, corpus.true, radius)
                unlike = sum(resemblance(*(records[one]["text"] for one in pair)) < 0.8 for pair in counts.wrong)
                fixed.append((name, field, f"{setting} at {radius}", f"{len(counts.wrong):,} of {len(counts.wrong) + len(counts.right):,}",
                              with_limits(share(len(counts.wrong), len(counts.right)), counts.wrong, counts.right),
                              f"{unlike:,}", figure(alike.recall()) if field == "text" else ""))
                if field == "text":
                    radii, other = crossed(found, same, halves(corpus), 0.99)
                    chosen.append((name, setting, " and ".join(map(radius_cell, radii)),
                                   f"{len(other.wrong):,} of {len(other.wrong) + len(other.right):,}", precision_cell(other)))
    table(("corpus", "field", "features and radius", "different pages, of all pairs", "share",
           "of these, resemblance of `words:5` below 0.8", "found of the true pairs of 0.8"), fixed)
    table(("corpus", "features", "radius chosen", "different pages, of all pairs of the other half", "same page"), chosen)


def properties(text):
    """Returns the eight properties of a text."""
    words, marks = words_of(text), [one for one in text if not one.isspace()]
    total, signs = max(len(words), 1), max(len(marks), 1)
    return {
        "words": len(words),
        "different words": len(set(words)) / total,
        "numbers": sum(one.isdigit() for one in words) / total,
        "word length": sum(map(len, words)) / total,
        "lines": text.count("\n"),
        "commas": text.count(",") / signs,
        "capitals": sum(map(str.isupper, marks)) / signs,
        "punctuation": sum(not one.isalnum() and one != "," for one in marks) / signs,
    }


def beyond(values, cut, above):
    return {one for one, value in values.items() if (value > cut if above else value < cut)}


def cut_of(values, repeated, above):
    """Returns a cut that at most one in a hundred of the repeated documents exceeds."""
    ordered = sorted((values[one] for one in repeated), reverse=above)
    return ordered[len(ordered) // 100]


def single(binary, data):
    """Tests whether a property identifies pages that never have a near-duplicate."""
    body = []
    for name in ("reuters21578", "newsgroups20", "manual-versions-html", "install-guide-html", "de-laws-revisions"):
        documents = {row["id"]: properties(row["text"]) for row in rows(read_corpus(data / name).path)}
        truth = next(path for path in sorted((data / name).glob("jaccard_*")))
        twins = {one for row in rows(truth) if row["j"] >= 0.8 for one in (row["a"], row["b"])}
        half = halves_of(documents)
        mine, other = ([one for one in documents if half[one] == which] for which in (0, 1))
        best = None
        for kind in next(iter(documents.values())):
            for above in (False, True):
                chosen = {one: documents[one][kind] for one in mine}
                cut = cut_of(chosen, [one for one in mine if one in twins], above)
                left = len(beyond(chosen, cut, above)) / len(mine)
                best = max(best or (0,), (left, kind, above, cut))
        left, kind, above, cut = best
        out = beyond({one: documents[one][kind] for one in other}, cut, above)
        body.append((name, f"{kind} {'above' if above else 'below'} {cut:.3g}", f"{left:.1%}", f"{len(out) / len(other):.1%}",
                     f"{len(out & twins)} of {len(twins.intersection(other))}"))
    table(("corpus", "property chosen", "left out where chosen", "left out of the other half", "lost there"), body)


def stop(binary, data):
    """Measures how many comparisons of mod-p stop features save, and how many pairs they lose, for several fixed limits."""
    body = []
    for name in ("java-api-html", "manual-versions-html", "license-texts"):
        documents = texts(data / name)
        true = pairs_of(binary, documents)
        for limit in (None, 1000, 500, 100, 20):
            options = ("--method", "mod-p", *(("--stop-features", str(limit)) if limit else ()))
            found = len(pairs_of(binary, documents, *options) & true)
            body.append((name, limit or "no limit", compared(binary, documents, options), f"{found:,} of {len(true):,}",
                         figure(found / len(true))))
    table(("corpus", "`--stop-features`", "pairs of texts compared by dedup", "found by pairs", "share"), body)


def compared(binary, documents, options):
    """Returns the number of pairs of texts that a job compares."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "documents.jsonl")
        path.write_text("".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in documents.items()), encoding="utf-8")
        command = [binary, "dedup", path, "-o", pathlib.Path(folder, "out"), "--threads", "1", "--json", *options]
        summary = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return f"{json.loads(summary)['comparisons']['compared']:,}"


def lengths(binary, data):
    """Measures distance 9 with a second test on lengths, which was chosen on wire news, there and on other corpora."""
    body = []
    for name in ("reuters21578", "newsgroups20", "de-laws-revisions"):
        documents = texts(data / name)
        true = pairs_of(binary, documents)
        found = pairs_of(binary, documents, "--method", "simhash", "--distance", "9", "--threshold", "0", "--lengths", "0.81")
        counts = Counts(list(true & found), list(found - true), list(true - found))
        body.append((name, len(true), len(found), precision_cell(counts), recall_cell(counts)))
    table(("corpus", "true", "found", "precision", "recall"), body)


QUESTIONS = {"lengths": lengths, "short": short_rule, "topic": topic, "single": single, "stop": stop}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the command lookalike")
    parser.add_argument("data", type=pathlib.Path, help="the folder of the corpora")
    parser.add_argument("question", nargs="*", help="lengths, short, topic, single or stop [default: all]")
    options = parser.parse_args()
    for question in options.question or QUESTIONS:
        QUESTIONS[question](options.binary, options.data)


if __name__ == "__main__":
    main()
