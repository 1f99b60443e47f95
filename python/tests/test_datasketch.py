"""Lookalike's min-hashes and indexes compared with datasketch's: the same values, bytes and answers."""

from __future__ import annotations

import pickle
import random
import zlib

import pytest

datasketch = pytest.importorskip("datasketch")
np = pytest.importorskip("numpy")

from lookalike.compat import datasketch as ours  # noqa: E402

SCHEMES = ["affine32", "affine64", "legacy"]
BYTE_ORDERS = "@=<>!"


def items(draw: random.Random, most: int = 60) -> list[bytes]:
    return [draw.randbytes(draw.randint(0, 80)) for _ in range(draw.randint(0, most))]


def drawn_pair(number: int, **options):
    """Returns the same set as a min-hash of lookalike and of datasketch."""
    draw = random.Random(number)
    options = {"num_perm": draw.choice([1, 2, 7, 64, 128, 200]), "seed": draw.choice([1, 42, 2**32 - 1]), **options}
    own, other = ours.MinHash(**options), datasketch.MinHash(**options)
    for part in (items(draw), items(draw)):
        own.update_batch(part)
        other.update_batch(part)
    return own, other


def same(own, other) -> bool:
    return (
        own.hashvalues.dtype == other.hashvalues.dtype
        and own.hashvalues.tobytes() == other.hashvalues.tobytes()
        and np.array_equal(own.permutations, other.permutations)
    )


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(12))
def test_hash_values_and_permutations_are_those_of_datasketch(scheme, seed):
    own, other = drawn_pair(seed, scheme=scheme)
    assert same(own, other)
    for minhash in (own, other):
        minhash.update(b"one more")
    assert same(own, other)
    assert own.count() == other.count() and own.is_empty() == other.is_empty()
    copied = own.copy()
    copied.update(b"in the copy only")
    assert same(own, other)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_functions_of_the_user_and_what_is_not_bytes_are_hashed_as_in_datasketch(scheme):
    for hashfunc, values in ((zlib.crc32, [b"a", b"rose"]), (None, [np.int64(5), bytearray(b"x"), memoryview(b"yz")]), (lambda x: x, [0, 7, 2**31])):
        own, other = (library.MinHash(scheme=scheme, hashfunc=hashfunc) for library in (ours, datasketch))
        own.update_batch(iter(values))
        other.update_batch(iter(values))
        assert same(own, other)
    for library in (ours, datasketch):
        with pytest.raises(TypeError):
            library.MinHash(scheme=scheme).update("text")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bulk_makes_the_same_as_one_after_another(scheme):
    draw = random.Random(3)
    sets = [items(draw) for _ in range(300)]
    expected = datasketch.MinHash.bulk(sets, num_perm=64, scheme=scheme)
    made = ours.MinHash.bulk((iter(part) for part in sets), num_perm=64, scheme=scheme)
    assert len(made) == 300 and all(map(same, made, expected))
    assert all(map(same, ours.MinHash.generator(sets, num_perm=64, scheme=scheme), expected))
    mixed = [[b"a", np.int64(3)], [b"b"], []]
    assert all(map(same, ours.MinHash.bulk(mixed, scheme=scheme), datasketch.MinHash.bulk(mixed, scheme=scheme)))
    made[0].hashvalues[:] = 0
    assert same(made[1], expected[1])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(6))
def test_bytes_of_lean_minhashes_are_those_of_datasketch(scheme, seed):
    own, other = drawn_pair(seed, scheme=scheme)
    own, other = ours.LeanMinHash(own), datasketch.LeanMinHash(other)
    for order in BYTE_ORDERS:
        written = []
        for lean in (own, other):
            buffer = bytearray(lean.bytesize(order))
            lean.serialize(buffer, order)
            written.append(bytes(buffer))
        assert written[0] == written[1]
        read = ours.LeanMinHash.deserialize(written[1], order)
        assert read == own and hash(read) == hash(own) and read.scheme == scheme
    assert bytes(own.__getstate__()) == bytes(other.__getstate__())
    assert pickle.loads(pickle.dumps(own)) == own


@pytest.mark.parametrize("scheme", SCHEMES)
def test_estimates_and_unions_are_those_of_datasketch(scheme):
    pairs = [drawn_pair(number, scheme=scheme, num_perm=128, seed=5) for number in range(8)]
    for (own_a, a), (own_b, b) in zip(pairs, pairs[1:]):
        own_b.update_batch([b"shared"])
        b.update_batch([b"shared"])
        assert own_a.jaccard(own_b) == a.jaccard(b)
        assert same(ours.MinHash.union(own_a, own_b), datasketch.MinHash.union(a, b))
        assert ours.LeanMinHash.union(own_a, own_b).hashvalues.tobytes() == datasketch.MinHash.union(a, b).hashvalues.tobytes()
        own_a.merge(own_b)
        a.merge(b)
        assert same(own_a, a)
        again = pickle.loads(pickle.dumps(own_a))
        again.update(b"after pickling")
        a.update(b"after pickling")
        assert same(again, a)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.2, 0.8), (0.9, 0.1), (1.0, 0.0)])
def test_parameters_of_bands_are_those_of_datasketch(weights):
    for num_perm in (2, 16, 100, 128):
        for threshold in (0.0, 0.1, 0.35, 0.5, 0.7, 0.85, 0.99, 1.0):
            found = []
            for library in (ours, datasketch):
                try:
                    lsh = library.MinHashLSH(threshold=threshold, num_perm=num_perm, weights=weights)
                    found.append((lsh.b, lsh.r))
                except ValueError:
                    found.append("refused")
            assert found[0] == found[1], (threshold, num_perm)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("options", [{}, {"params": (8, 4)}, {"prepickle": True}, {"hashfunc": lambda band: band[:3]}])
def test_an_index_has_the_bands_and_answers_of_datasketchs(scheme, options):
    draw = random.Random(9)
    sets = [items(draw) for _ in range(30)]
    sets += [[*part, b"more"] for part in sets]
    own, other = (library.MinHashLSH(threshold=0.6, num_perm=64, **options) for library in (ours, datasketch))
    made = ours.MinHash.bulk(sets, num_perm=64, scheme=scheme)
    theirs = datasketch.MinHash.bulk(sets, num_perm=64, scheme=scheme)
    for lsh, minhashes in ((own, made), (other, theirs)):
        assert lsh.is_empty()
        with lsh.insertion_session() as session:
            for key, minhash in enumerate(minhashes):
                session.insert(key, minhash)
        with pytest.raises(ValueError):
            lsh.insert(0, minhashes[0])
        lsh.remove(3)
        with pytest.raises(ValueError):
            lsh.remove(3)
    assert [{band: set(table[band]) for band in table} for table in own.hashtables] == [
        {band: set(table[band]) for band in table} for table in other.hashtables
    ]
    assert own.get_counts() == other.get_counts() and own.get_subset_counts(1, 2) == other.get_subset_counts(1, 2)
    for mine, their in zip(made, theirs):
        assert set(own.query(mine)) == set(other.query(their))
        # Each accepts the min-hashes of the other, which have the same attributes.
        assert set(own.query(their)) == set(own.query(mine))
    assert (3 in own, 4 in own) == (3 in other, 4 in other) == (False, True)
    for lsh, minhashes in ((own, made), (other, theirs)):
        lsh.add_to_query_buffer(minhashes[5])
        lsh.add_to_query_buffer(minhashes[35])
    assert set(own.collect_query_buffer()) == set(other.collect_query_buffer())
    merged, theirs_merged = (library.MinHashLSH(threshold=0.6, num_perm=64, **options) for library in (ours, datasketch))
    merged.merge(own)
    theirs_merged.merge(other)
    assert merged.get_counts() == theirs_merged.get_counts()
    if "hashfunc" not in options:
        assert set(pickle.loads(pickle.dumps(own)).query(made[0])) == set(own.query(made[0]))


@pytest.mark.parametrize(
    "call",
    [
        lambda library: library.MinHash(num_perm=0),
        lambda library: library.MinHash(scheme="affine16"),
        lambda library: library.MinHash(hashvalues=[1, 2]),
        lambda library: library.MinHash(hashvalues=[1, 2**32], scheme="affine32"),
        lambda library: library.MinHash(hashvalues=np.array([-1, 2]), scheme="affine64"),
        lambda library: library.MinHash(num_perm=2, permutations=([2, 1], [0, 0]), scheme="affine32"),
        lambda library: library.MinHash(num_perm=3, permutations=([1, 1], [0, 0]), scheme="affine32"),
        lambda library: library.MinHash(hashfunc=5),
        lambda library: library.MinHash(hashfunc=lambda item: 2**32).update(b""),
        lambda library: library.MinHash(scheme="affine32").jaccard(library.MinHash(scheme="legacy")),
        lambda library: library.MinHash().jaccard(library.MinHash(seed=2)),
        lambda library: library.MinHash().merge(library.MinHash(num_perm=2)),
        lambda library: library.MinHash.union(library.MinHash()),
        lambda library: library.MinHash.union(library.MinHash(), library.MinHash(seed=2)),
        lambda library: library.LeanMinHash(),
        lambda library: library.LeanMinHash(seed=1, hashvalues=[1]),
        lambda library: library.LeanMinHash(library.MinHash(), scheme="legacy"),
        lambda library: library.LeanMinHash(library.MinHash()).serialize(bytearray(5)),
        lambda library: library.MinHashLSH(threshold=1.5),
        lambda library: library.MinHashLSH(weights=(0.5, 0.6)),
        lambda library: library.MinHashLSH(params=(64, 64)),
        lambda library: library.MinHashLSH(params=(1, 64)),
        lambda library: library.MinHashLSH(storage_config={"type": "none"}),
        lambda library: library.MinHashLSH().insert("a", library.MinHash(num_perm=2)),
        lambda library: library.MinHashLSH().merge(library.MinHashLSH(num_perm=64)),
    ],
)
def test_what_datasketch_refuses_is_refused(call):
    for library in (datasketch, ours):
        with pytest.raises(ValueError):
            call(library)


def test_min_hashes_of_two_schemes_are_not_put_into_one_index():
    lsh = ours.MinHashLSH()
    lsh.insert("a", ours.MinHash())
    for call in (lambda other: lsh.insert("b", other), lsh.query):
        with pytest.raises(ValueError, match="scheme"):
            call(ours.MinHash(scheme="legacy"))


def test_what_is_not_here_says_where_it_is():
    with pytest.raises(ImportError, match="import it from datasketch"):
        from lookalike.compat.datasketch import HyperLogLog  # noqa: F401
    with pytest.raises(NotImplementedError, match="redis"):
        ours.MinHashLSH(storage_config={"type": "redis", "redis": {}})
    with pytest.raises(RuntimeError, match="GPU"):
        ours.MinHash(gpu_mode="always")
    with pytest.raises(TypeError, match="Cannot update"):
        ours.LeanMinHash(ours.MinHash()).update_batch([b"a"])


def test_with_the_scheme_of_datasketch_1_values_need_none_named(monkeypatch):
    monkeypatch.setattr(ours.MinHash, "default_scheme", "legacy")
    minhash = ours.MinHash(num_perm=4)
    # These are the values of datasketch 1.
    minhash.update(b"Hello")
    assert minhash.hashvalues.tolist() == [734825475, 960773806, 359816889, 342714745]
    assert ours.LeanMinHash(seed=1, hashvalues=minhash.hashvalues) == ours.LeanMinHash(minhash)
    assert ours.MinHash(hashvalues=minhash.hashvalues) == minhash
