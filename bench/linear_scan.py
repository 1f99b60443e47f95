#!/usr/bin/env python3
"""Asks a service for all neighbours of sampled fingerprints, and compares the answers with a linear scan of the loaded file.

    linear_scan.py ADDRESS FILE.u64 [SAMPLES] [RADIUS]

FILE is the file given to `lookalike client load` or `lookalike store load`: raw little-endian 64-bit numbers whose digits are the ids. Half of
the samples are up to four bits from a stored fingerprint, the others are random. Ends with status 1 if an answer differs.
"""

import json
import sys
import urllib.request

import numpy

address, path = sys.argv[1:3]
samples = int(sys.argv[3]) if len(sys.argv) > 3 else 200
radius = int(sys.argv[4]) if len(sys.argv) > 4 else 3

codes = numpy.fromfile(path, dtype="<u8")
dice = numpy.random.default_rng(20260101)


def sample(at):
    if at % 2:
        return int(dice.integers(0, 2**64, dtype=numpy.uint64))
    flips = dice.choice(64, size=at // 2 % 5, replace=False)
    return int(codes[dice.integers(len(codes))]) ^ sum(1 << int(bit) for bit in flips)


def asked(code):
    body = json.dumps({"fingerprint": f"{code:016x}"}).encode()
    url = f"http://{address}/v1/collections/pages/query?limit=100&radius={radius}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(request, timeout=60))
    assert not answer["more"], f"{code:016x} has more neighbours than an answer holds"
    return sorted((found["distance"], found["id"]) for found in answer["neighbours"])


def scanned(samples):
    """Returns the neighbours of each sample, in the order of `asked`. A block of fingerprints stays in the cache while all samples use it."""
    near = [set() for _ in samples]
    block = 1 << 15
    for begin in range(0, len(codes), block):
        part = codes[begin : begin + block]
        for at, code in enumerate(samples):
            distances = numpy.bitwise_count(part ^ numpy.uint64(code))
            if distances.min() <= radius:
                for place in numpy.flatnonzero(distances <= radius):
                    near[at].add((int(distances[place]), f"{int(part[place]):016x}"))
    return [sorted(each) for each in near]


drawn = [sample(at) for at in range(samples)]
found = wrong = 0
for code, truth in zip(drawn, scanned(drawn)):
    answer = asked(code)
    found += len(truth)
    if answer != truth:
        wrong += 1
        print(f"{code:016x}: answered {answer}, scanned {truth}", file=sys.stderr)
print(json.dumps({"stored": len(codes), "radius": radius, "samples": samples, "neighbours": found, "answers_that_differ": wrong}))
sys.exit(wrong > 0)
