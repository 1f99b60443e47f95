#!/usr/bin/env python3
"""Makes a file of 64-bit fingerprints (.lkfp) with families like those of a crawl; equal arguments give equal files.

    make_fingerprints.py FILE POWER [SHARE]

The file has 2^POWER fingerprints with the ids 0, 1, ... A share of 1 - SHARE of them (SHARE is 0.3 by default) are random; each of the others
differs in 0 to 3 bits from a random one. The order is random too. Takes 9 bytes of memory per fingerprint. The format is described in
src/file.rs of lookalike-hamming.
"""

import struct
import sys

import numpy
import xxhash

CHUNK = 1 << 16
PART = 1 << 22


def fingerprints(count, share):
    random = numpy.random.Generator(numpy.random.PCG64(7))
    originals = count - int(count * share)
    codes = numpy.empty(count, numpy.uint64)
    for start in range(0, count, PART):
        end = min(start + PART, count)
        codes[start:end] = random.integers(0, 2**64, end - start, numpy.uint64)
    one = numpy.uint64(1)
    for start in range(originals, count, PART):
        size = min(start + PART, count) - start
        part = codes[random.integers(0, originals, size)]
        flips = random.integers(0, 4, size)
        for flip in range(3):
            bit = one << random.integers(0, 64, size, numpy.uint64)
            part ^= numpy.where(flips > flip, bit, numpy.uint64(0))
        codes[start : start + size] = part
    random.shuffle(codes)
    return codes


def main(path, power, share="0.3"):
    codes = fingerprints(1 << int(power), float(share))
    with open(path, "wb") as out:
        header = b"LKFP" + struct.pack("<IQQ", 1, 0, 1)
        out.write(header + struct.pack("<Q", xxhash.xxh3_64_intdigest(header)))
        chunks = 0
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK]
            ids = numpy.arange(start, start + len(part), dtype=numpy.uint64)
            chunk = struct.pack("<Q", len(part)) + part.tobytes() + ids.tobytes()
            out.write(chunk + struct.pack("<Q", xxhash.xxh3_64_intdigest(chunk, seed=chunks)))
            chunks += 1
        end = struct.pack("<QQ", 0, len(codes))
        out.write(end + struct.pack("<Q", xxhash.xxh3_64_intdigest(end, seed=chunks)))


if __name__ == "__main__":
    main(*sys.argv[1:])
