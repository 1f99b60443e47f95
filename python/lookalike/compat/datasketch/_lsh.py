"""An index of min-hashes by bands."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from lookalike.compat.datasketch._minhash import check_schemes
from lookalike.compat.datasketch._storage import KeyBands, KeyBuckets

__all__ = ["MinHashLSH", "MinHashLSHDeletionSession", "MinHashLSHInsertionSession"]


def _integration_rule() -> tuple[Any, Any]:
    """Return points and weights for integration on [0, 1]. Probabilities of bands are polynomials whose degree is at most the number of
    permutations."""
    # 64 nodes are exact for polynomials up to degree 127. With 8 panels, the remaining error is far below the difference between two
    # settings.
    nodes, weights = np.polynomial.legendre.leggauss(64)
    panels = 8
    nodes = (np.arange(panels)[:, None] + (nodes + 1) / 2).ravel() / panels
    return nodes, np.tile(weights / 2 / panels, panels)


_NODES = _integration_rule()


def _optimal_bands(threshold: float, num_perm: int, for_false_positive: float, for_false_negative: float) -> tuple[int, int]:
    """Return the numbers of bands and of rows per band that minimise the weighted errors: Mining of Massive Datasets, section 3.4."""
    nodes, weights = _NODES
    below, above = nodes * threshold, threshold + nodes * (1 - threshold)
    least, best = float("inf"), (0, 0)
    for bands in range(1, num_perm + 1):
        # All numbers of rows at once. Ties go to fewer bands and fewer rows, as in the loops of datasketch.
        rows = np.arange(1, num_perm // bands + 1)[:, None]
        false_positive = threshold * ((1 - (1 - below**rows) ** bands) @ weights)
        false_negative = (1 - threshold) * (((1 - above**rows) ** bands) @ weights)
        errors = false_positive * for_false_positive + false_negative * for_false_negative
        at = int(np.argmin(errors))
        if errors[at] < least:
            least, best = float(errors[at]), (bands, at + 1)
    return best


class MinHashLSH:
    """An index that finds keys whose sets resemble that of a query: datasketch's ``MinHashLSH``, in memory.

    Bands are chosen for ``threshold`` with ``weights`` of false positives and false negatives, unless ``params`` gives bands and rows.
    The keys found are candidates: compare them with :meth:`MinHash.jaccard`.

    >>> lsh = MinHashLSH(threshold=0.9, num_perm=128)
    >>> lsh.b, lsh.r
    (5, 25)
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        _check_storage(storage_config or {"type": "dict"})
        if not 0.0 <= threshold <= 1.0:
            raise ValueError("threshold must be in [0.0, 1.0]")
        if num_perm < 2:
            raise ValueError("num_perm must be 2 or more")
        if any(not 0.0 <= weight <= 1.0 for weight in weights):
            raise ValueError("weights must be in [0.0, 1.0]")
        if sum(weights) != 1.0:
            raise ValueError("weights must sum to 1.0")
        self.h = num_perm
        self.b, self.r = params if params is not None else _optimal_bands(threshold, num_perm, *weights)
        if self.b * self.r > num_perm:
            raise ValueError(f"params={params} are {self.b * self.r} hash values, more than num_perm={num_perm}")
        if self.b < 2:
            raise ValueError("there must be 2 bands or more")
        self.prepickle = bool(prepickle)
        self.hashfunc = hashfunc
        self.hashtables = [KeyBuckets() for _ in range(self.b)]
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]
        self.keys = KeyBands()
        self._buffer_size = 50000
        self._minhash_scheme: str | None = None

    @property
    def buffer_size(self) -> int:
        """Buffer size; it has no effect in memory."""
        return self._buffer_size

    @buffer_size.setter
    def buffer_size(self, value: int) -> None:
        self._buffer_size = value

    def _bands(self, minhash: Any) -> list[bytes]:
        """Return the bytes of each band, big-endian as in datasketch, or the result of ``hashfunc`` for them."""
        if len(minhash) != self.h:
            raise ValueError(f"the MinHash must have {self.h} hash values, not {len(minhash)}")
        # Byte-swapped, because numbers are little-endian in memory: a user's `hashfunc` must see the same bytes as in datasketch.
        raw = minhash.hashvalues.byteswap().tobytes()
        width = len(raw) // self.h
        bands = [raw[start * width : end * width] for start, end in self.hashranges]
        return bands if self.hashfunc is None else [self.hashfunc(band) for band in bands]

    def _stored(self, key: Hashable) -> Hashable:
        return pickle.dumps(key) if self.prepickle else key

    def _loaded(self, keys: set[Any]) -> list[Any]:
        return [pickle.loads(key) for key in keys] if self.prepickle else list(keys)

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Add a key with the min-hash of its set."""
        bands = self._bands(minhash)
        self._minhash_scheme = check_schemes(self._minhash_scheme, minhash)
        key = self._stored(key)
        if check_duplication and key in self.keys:
            raise ValueError(f"the key {key!r} is in the index already")
        self._add(key, bands)

    def _add(self, key: Hashable, bands: list[bytes]) -> None:
        self.keys.insert(key, *bands)
        for band, table in zip(bands, self.hashtables):
            table.insert(band, key)

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Add all keys of another index with the same bands."""
        if type(self) is not type(other):
            raise ValueError(f"cannot merge a MinHashLSH with {type(other).__name__}")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("cannot merge MinHashLSH with different numbers of permutation functions, bands or rows")
        known, others = self._minhash_scheme, other._minhash_scheme
        if known is not None and others is not None and known != others:
            raise ValueError(f"cannot merge a MinHashLSH of the scheme {others!r} into one of {known!r}")
        if check_overlap and self.keys.keys() & other.keys.keys():
            raise ValueError("some keys are in both indexes")
        self._minhash_scheme = known if known is not None else others
        for key in list(other.keys):
            self._add(key, list(other.keys.get(key)))

    def query(self, minhash: Any) -> list[Any]:
        """Keys whose sets probably resemble that of the min-hash."""
        return self._loaded(self._candidates(minhash, self.b))

    def _candidates(self, minhash: Any, tables: int) -> set[Any]:
        bands = self._bands(minhash)
        check_schemes(self._minhash_scheme, minhash)
        return set().union(*(table.get(band) for band, table in zip(bands[:tables], self.hashtables)))

    def _query_b(self, minhash: Any, b: int) -> set[Any]:
        if b > self.b:
            raise ValueError(f"there are {self.b} tables, and {b} are asked for")
        return set(self._loaded(self._candidates(minhash, b)))

    def add_to_query_buffer(self, minhash: Any) -> None:
        """Add a query to the query buffer: see :meth:`collect_query_buffer`."""
        bands = self._bands(minhash)
        check_schemes(self._minhash_scheme, minhash)
        for band, table in zip(bands, self.hashtables):
            table.add_to_select_buffer([band])

    def collect_query_buffer(self) -> list[Any]:
        """Keys that every min-hash in the query buffer finds; the buffer is emptied."""
        of_tables = [table.collect_select_buffer() for table in self.hashtables]
        of_queries = [set().union(*found) for found in zip(*of_tables)]
        return self._loaded(set.intersection(*of_queries)) if of_queries else []

    def __contains__(self, key: Hashable) -> bool:
        return self._stored(key) in self.keys

    def remove(self, key: Hashable) -> None:
        """Remove a key from the index."""
        key = self._stored(key)
        if key not in self.keys:
            raise ValueError(f"the key {key!r} is not in the index")
        for band, table in zip(self.keys[key], self.hashtables):
            table.remove_val(band, key)
            # Empty buckets are removed, as in datasketch, because users may read the numbers of buckets.
            if not table.get(band):
                table.remove(band)
        self.keys.remove(key)

    def is_empty(self) -> bool:
        """True if no key is in the index."""
        return len(self.keys) == 0

    def get_counts(self) -> list[dict[Hashable, int]]:
        """Number of keys in each bucket, table by table."""
        return [table.itemcounts() for table in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[Hashable, int]]:
        """The same as :meth:`get_counts`, for these keys only."""
        tables = [KeyBuckets() for _ in range(self.b)]
        for key in {self._stored(key) for key in keys}:
            for band, table in zip(self.keys.get(key), tables):
                table.insert(band, key)
        return [table.itemcounts() for table in tables]

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """A context for inserting many keys; in memory it is the same as :meth:`insert`."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """A context for removing many keys; in memory it is the same as :meth:`remove`."""
        return MinHashLSHDeletionSession(self, buffer_size)


def _check_storage(config: dict[str, Any]) -> None:
    kind = config["type"]
    if kind in ("redis", "cassandra"):
        raise NotImplementedError(
            f"lookalike.compat.datasketch has no storage {kind!r}: use datasketch itself, or the service of lookalike, which keeps "
            "documents on disk"
        )
    if kind != "dict":
        raise ValueError(f"unknown storage type {kind!r}: only 'dict' is supported")


class _Session:
    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.lsh.buffer_size = buffer_size

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: all changes are already made."""


class MinHashLSHInsertionSession(_Session):
    """Insertions of many keys."""

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """See :meth:`MinHashLSH.insert`."""
        self.lsh.insert(key, minhash, check_duplication=check_duplication)


class MinHashLSHDeletionSession(_Session):
    """Removals of many keys."""

    def remove(self, key: Hashable) -> None:
        """See :meth:`MinHashLSH.remove`."""
        self.lsh.remove(key)
