#!/usr/bin/env python3
"""faiss-cpu on the records and queries that the program `hamming` wrote: one thread, distance 3, exact.

usage: faiss_hamming.py FOLDER [QUERIES]
"""

import pathlib
import sys
import time

import faiss
import numpy

RADIUS = 3


def codes(path):
    return numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, 8)


def measure(name, index, records, queries):
    start = time.process_time()
    index.add(records)
    build = time.process_time() - start
    start = time.process_time()
    # The search returns distances below the given one.
    limits, _, _ = index.range_search(queries, RADIUS + 1)
    seconds = time.process_time() - start
    print(f"| {name} | {build:.2f} | - | {len(queries) / seconds / 1e3:.2f} | {limits[-1]} of {len(queries)} queries |", flush=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    faiss.omp_set_num_threads(1)
    records, queries = codes(folder / "records.u64"), codes(folder / "queries.u64")
    most = int(sys.argv[2]) if len(sys.argv) > 2 else len(queries)
    version = f"faiss-cpu {faiss.__version__}"
    measure(f"{version}, IndexBinaryFlat", faiss.IndexBinaryFlat(64), records, queries[: min(most, 1000)])
    multi = faiss.IndexBinaryMultiHash(64, 2, 32)
    multi.nflip = 1
    measure(f"{version}, IndexBinaryMultiHash 2 x 32, one flip", multi, records, queries[:most])


if __name__ == "__main__":
    main()
