"""Computes the published vectors a second time: pip install xxhash; python check.py

Covers every line whose scheme has segment=word-chars; UAX #29 words need a Unicode library.
"""
import json, pathlib, re, unicodedata
from xxhash import xxh3_64_intdigest as xxh3

M = (1 << 64) - 1

def avalanche(x):
    x = (x ^ x >> 33) * 0xC2B2AE3D27D4EB4F & M
    x = (x ^ x >> 29) * 0x165667B19E3779F9 & M
    return x ^ x >> 32

def splitmix64(state):
    while True:
        state = state + 0x9E3779B97F4A7C15 & M
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M
        yield z ^ z >> 31

def rotl(x, r):
    return (x << r | x >> 64 - r) & M

def fold(piece, s):
    piece = piece if s["normalize"] == "none" else unicodedata.normalize(s["normalize"].upper(), piece)
    return piece.lower() if s["case"] == "lower" else piece

def features(text, s):
    pieces = [fold(piece, s) for piece in re.split("[ \t\n\r\x0b\x0c]+", text) if piece]
    kind, width = s["shingle"].split(":")
    width, seed = int(width), int(s["seed"])
    if kind == "chars":
        chars = "".join(re.findall(r"\w", "".join(pieces)))
        width = min(width, len(chars))
        return [xxh3(chars[i:i + width].encode(), seed) for i in range(len(chars) - width + 1) if chars]
    tokens = [xxh3(word.encode(), seed) for piece in pieces for word in re.findall(r"\w+", piece)]
    if width == 1 or not tokens:
        return tokens
    m, made = min(width, len(tokens)), []
    for i in range(len(tokens) - m + 1):
        mix = m * 0x9E3779B97F4A7C15 & M
        for j in range(m):
            mix ^= rotl(tokens[i + j], m - 1 - j)
        made.append(avalanche(mix))
    return made

def simhash(values):
    bits = (sum(1 if value >> bit & 1 else -1 for value in values) for bit in range(64))
    return "%016x" % sum(1 << bit for bit, total in enumerate(bits) if total > 0)

def signature(values, functions, seed):
    draws, folds = splitmix64(seed), [(value >> 32 ^ value) & 0xFFFFFFFF for value in values]
    family = [(draw >> 32 | 1, draw & 0xFFFFFFFF) for draw, _ in zip(draws, range(functions))]
    return [min((a * x + b) & 0xFFFFFFFF for x in folds) for a, b in family]

def sketch(values, s):
    kind, size = s["sketch"].split(":") if ":" in s["sketch"] else (s["sketch"], "")
    if kind == "none":
        return ["%016x" % value for value in values]
    values = values if s["weight"] == "tf" else set(values)
    if not values:
        return None
    if kind == "simhash":
        return simhash(values)
    if kind == "minhash":
        return ["%08x" % least for least in signature(values, int(size), int(s["seed"]))]
    groups, rows = map(int, size.split("x"))
    minima = signature(values, groups * rows, int(s["seed"]))
    cut = [b"".join(v.to_bytes(4, "little") for v in minima[g * rows:(g + 1) * rows]) for g in range(groups)]
    return ["%016x" % xxh3(part, g) for g, part in enumerate(cut)]

checked = 0
for name in ("features", "simhash", "minhash", "supershingle"):
    for line in (pathlib.Path(__file__).parent / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        s = dict(part.split("=") for part in row["scheme"].split()[1:])
        if s["segment"] == "word-chars":
            key = (set(row) - {"scheme", "text"}).pop()
            assert sketch(features(row["text"], s), s) == row[key], (name, row)
            checked += 1
print(checked, "vectors agree")
