"""Indexes and joins of fingerprints that are numbers with few bits: regression tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import lookalike as lk

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")


def test_an_index_of_no_tables_was_a_panic():
    with pytest.raises(ValueError, match="tables=0"):
        lk.Index.build([1], tables=0)
    assert len(lk.Index.build([1], tables=1)) == 1


def test_an_index_of_numbers_in_a_row_took_quadratic_time_and_did_not_hear_ctrl_c(tmp_path):
    codes = np.arange(1_000_000, dtype=np.uint32)
    for layout in ("packed", "buckets", "dense"):
        index = lk.Index.build(pa.array(codes), 1, layout=layout)
        found = index.search([500_000], threads=1)
        # The number itself, and one number for each of its 20 bits.
        near = [500_000, *sorted(500_000 ^ 1 << bit for bit in range(20) if 500_000 ^ 1 << bit < len(codes))]
        assert found["code"].to_pylist() == near and found["id"].to_pylist() == [str(code) for code in near]
    program = textwrap.dedent("""
        import os, signal, sys, threading
        import numpy, lookalike as lk
        codes = numpy.arange(8_000_000, dtype=numpy.uint64)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            # Seconds of work for the first of its tables.
            lk.Index.build(codes, 3, path=sys.argv[1], threads=1)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "index"], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr
    assert os.listdir(tmp_path) == []


def close(left: list[int | None], right: list[int | None], distance: int) -> list[tuple[int, int, int]]:
    pairs = [(a, b, (x ^ y).bit_count()) for a, x in enumerate(left) for b, y in enumerate(right) if None not in (x, y)]
    return [pair for pair in pairs if pair[2] <= distance]


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_a_join_of_numbers_that_share_bits_finds_what_comparing_all_finds(distance):
    draw = np.random.default_rng(5)
    for bits in (0, 1, 9, 31, 32, 33, 50, 64):
        # Bits at these places vary, anywhere in the word; the others are constant in one column only.
        places = sorted(draw.choice(64, bits, replace=False).tolist())
        common = int(draw.integers(0, 2**63)) & ~sum(1 << place for place in places)

        def number() -> int:
            return common | sum(1 << place for place in places if draw.random() < 0.5)

        right = [number() for _ in range(60)]
        left = [*right[:30], *(code ^ 1 << int(draw.integers(64)) for code in right), *(code ^ 5 for code in right[:9]), 0, None]
        found = lk.join(left, [*right, None], distance, threads=2).to_pylist()
        assert [(row["a"], row["b"], row["distance"]) for row in found] == close(left, right, distance)
    assert lk.join([1, 2], [], distance).to_pylist() == lk.join([], [1, 2], distance).to_pylist() == []


def test_a_join_of_numbers_of_32_bits_took_quadratic_time():
    draw = np.random.default_rng(6)
    right = draw.integers(0, 2**32, 300_000, dtype=np.uint32)
    left = np.concatenate([right[:100_000] ^ np.uint32(1 << 31), draw.integers(0, 2**32, 200_000, dtype=np.uint32)])
    found = lk.join(pa.array(left), pa.array(right), distance=1)
    # The planted pairs, and pairs that are close by chance: some 30 times 300,000 * 300,000 / 2**32 = 21.
    assert 100_000 <= len(found) <= 102_000
    rows = found.take(lk.Table(pa.table({"n": pa.array(range(0, len(found), 997), pa.uint64())}))["n"])
    assert all((int(left[row["a"]]) ^ int(right[row["b"]])).bit_count() == row["distance"] <= 1 for row in rows)
    dense = np.arange(200_000, dtype=np.uint32)
    pairs = lk.join(pa.array(dense), pa.array(dense), distance=1)
    # A join of two columns has each pair twice, and each number with itself.
    assert len(pairs) == 2 * len(lk.join(pa.array(dense), distance=1)) + len(dense)
