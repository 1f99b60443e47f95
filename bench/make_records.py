#!/usr/bin/env python3
"""Makes short records with planted copies: a JSON Lines file and its truth.

The texts resemble English as far as sketches are concerned: some forty words, word frequencies by
Zipf's law over a vocabulary of 40,000, stock phrases that many texts share, sentences with capitals
and commas. The same options give the same bytes. Standard library only.

FILE              one record per line: {"id": "doc-<n>", "text": "..."}
FILE.truth.jsonl  one planted copy per line: {"a": original, "b": copy, "edits": [...],
                  "resemblance": exact resemblance of the sets of five-word shingles}
"""

import argparse
import itertools
import random
import re

VOCABULARY = 40_000
PHRASES = 30_000
POOL_BITS = 20
NEAR_SHARE = 0.25
EXACT_SHARE = 0.05
LEAST_RESEMBLANCE = 0.5
SHINGLE = 5

WORD = re.compile(r"\w+")

FREQUENT = (
    "the of and to in a is that for it was on as with be by he at from his this have are or an "
    "they which one you had not but were her all she there would their we him been has when who "
    "will more no if out so what up said its about into than them can only other new some could "
    "time these two may then do first any my now such like our over man me even most made after "
    "also did many before must through back years where much your way well down should because "
    "each just those people how too little state good very make world still own see men work long "
    "get here between both life being under never day same another know while last might us great "
    "old year off come since against go came right used take three"
).split()

ONSETS = ("b c d f g h j k l m n p r s t v w " * 2 + "br ch cl cr dr fl gr pl pr sh sl st tr").split()
VOWELS = "a e i o u a e i o a e ea ou".split()
CODAS = ["", "", "", "", "n", "r", "s", "t", "l", "m", "d", "ck", "nd", "st", "ng"]


def make_word(rng, syllables):
    """Returns a pronounceable word of `syllables` syllables."""
    parts = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(syllables)]
    return "".join(parts) + rng.choice(CODAS)


def make_vocabulary(rng):
    """Returns distinct words by rank: real function words first, then longer and longer invented ones."""
    words = dict.fromkeys(FREQUENT)
    while len(words) < VOCABULARY:
        syllables = 1 if len(words) < 500 else rng.choice((1, 2, 2, 3))
        words[make_word(rng, syllables)] = None
    return list(words)


def zipf_pool(items, bits, exponent=1.05):
    """Returns a list of about 2^bits entries in which item k occurs in proportion to 1/k^exponent.

    A uniform draw from the list is a Zipf draw from the items, at a fraction of the cost.
    """
    weights = [1.0 / (rank + 2.7) ** exponent for rank in range(1, len(items) + 1)]
    scale = (1 << bits) / sum(weights)
    counts = (max(1, round(weight * scale)) for weight in weights)
    return list(itertools.chain.from_iterable([item] * n for item, n in zip(items, counts)))


class Author:
    """Writes texts and edits copies of them; one random generator drives all of it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        vocabulary = make_vocabulary(self.rng)
        self.words = zipf_pool(vocabulary, POOL_BITS)
        phrases = [self.draw(self.rng.randint(2, 6)) for _ in range(PHRASES)]
        self.phrases = zipf_pool(phrases, POOL_BITS - 3, 0.6)

    def draw(self, count):
        """Returns `count` independent random words."""
        return self.rng.choices(self.words, k=count)

    def body(self):
        """Returns 35 to 45 words: runs of random words with stock phrases between them."""
        wanted = self.rng.randint(35, 45)
        words = []
        while len(words) < wanted:
            words += self.draw(self.rng.randint(6, 24))
            words += self.rng.choice(self.phrases)
        return words[:wanted]

    def text(self):
        """Returns the words of a text, with capitals, commas and full stops."""
        words = self.body()
        start = 0
        while start < len(words):
            end = min(start + self.rng.randint(7, 18), len(words))
            self.sentence(words, start, end)
            start = end
        return words

    def sentence(self, words, start, end):
        """Turns words[start:end] into a sentence."""
        words[start] = words[start].capitalize()
        if end - start > 9:
            words[start + 4] += ","
        words[end - 1] += "."

    def place(self, length):
        """Returns the position of an edit: half of them are near an end, where they change fewer shingles."""
        if self.rng.random() < 0.5:
            return self.rng.randrange(length)
        near = self.rng.randrange(3)
        return near if self.rng.random() < 0.5 else length - 1 - near

    def edited(self, words):
        """Returns an edited copy of the words, and a list of the edits."""
        words = list(words)
        edits = []
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3))):
            at = self.place(len(words))
            kind = self.rng.choice(("replace", "insert", "delete"))
            edits.append(f"{kind} {at}")
            words[at : at + (kind != "insert")] = [] if kind == "delete" else self.draw(1)
        return words, edits

    def near_copy(self, text):
        """Returns a different text with a resemblance of at least LEAST_RESEMBLANCE, its edits, and the resemblance."""
        words = text.split(" ")
        original = shingles(text)
        while True:
            changed, edits = self.edited(words)
            copy = " ".join(changed)
            alike = resemblance(original, shingles(copy))
            if alike >= LEAST_RESEMBLANCE and copy != text:
                return copy, edits, alike


def shingles(text):
    """Returns the set of five-word shingles; words are `\\w+` of the lower-cased text."""
    words = WORD.findall(text.lower())
    return set(zip(*(words[j:] for j in range(SHINGLE))))


def resemblance(a, b):
    """Returns the number of shared shingles divided by that of all shingles."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def write_files(author, records, out, truth):
    """Writes the records and the truth; every copy comes after its original."""
    originals = []
    rng = author.rng
    for number in range(records):
        draw = rng.random()
        if not originals or draw >= NEAR_SHARE + EXACT_SHARE:
            text = " ".join(author.text())
            originals.append((number, text))
        else:
            source, text = rng.choice(originals)
            edits, alike = [], 1.0
            if draw < NEAR_SHARE:
                text, edits, alike = author.near_copy(text)
            listed = ", ".join(f'"{edit}"' for edit in edits)
            truth.write(
                f'{{"a": "doc-{source}", "b": "doc-{number}", '
                f'"edits": [{listed}], "resemblance": {alike:.6f}}}\n'
            )
        out.write(f'{{"id": "doc-{number}", "text": "{text}"}}\n')


def main():
    """Reads the options and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    with (
        open(options.output, "w", encoding="ascii", newline="\n") as out,
        open(options.output + ".truth.jsonl", "w", encoding="ascii", newline="\n") as truth,
    ):
        write_files(Author(options.seed), options.records, out, truth)


if __name__ == "__main__":
    main()
