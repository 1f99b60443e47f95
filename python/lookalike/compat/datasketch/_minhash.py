"""Min-hash signatures of sets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable
from typing import Any, ClassVar

import numpy as np

from lookalike._lookalike import Permutations

__all__ = ["MinHash", "check_scheme", "check_schemes", "sha1_hash32", "sha1_hash64", "values_of"]

_PRIME = (1 << 61) - 1
_MAX_PERMUTATIONS = 1 << 32
#: Permutations that were drawn, by scheme, seed and number; many min-hashes share them.
_DRAWN: dict[tuple[str, int, int], Any] = {}
_MAX_DRAWN = 64
#: Number of sets that :meth:`MinHash.bulk` passes to the engine at a time.
_BULK = 4096


class _Width:
    """The numbers of a scheme: the type of hash values, and the largest one, which stands for an empty set."""

    def __init__(self, dtype: Any, bits: int) -> None:
        self.dtype = dtype
        self.bits = bits
        self.largest = dtype((1 << bits) - 1)


_WIDTHS = {
    "affine32": _Width(np.uint32, 32),
    "affine64": _Width(np.uint64, 64),
    # 32 bits, stored in 64-bit numbers.
    "legacy": _Width(np.uint64, 32),
}


def sha1_hash32(data: Any) -> int:
    """Compute a 32-bit integer from the SHA-1 of ``data``."""
    return int.from_bytes(hashlib.sha1(data).digest()[:4], "little")


def sha1_hash64(data: Any) -> int:
    """Compute a 64-bit integer from the SHA-1 of ``data``."""
    return int.from_bytes(hashlib.sha1(data).digest()[:8], "little")


def check_scheme(scheme: str) -> None:
    """Refuse a value that is not a permutation scheme."""
    if scheme not in _WIDTHS:
        raise ValueError(f"scheme must be one of {', '.join(_WIDTHS)}, not {scheme!r}")


def check_schemes(known: str | None, minhash: Any) -> str | None:
    """Return the scheme of an index that has seen ``known`` and now ``minhash``; sketches without a scheme do not determine it."""
    scheme = getattr(minhash, "scheme", None)
    if scheme is None or known is None:
        return known if scheme is None else scheme
    if scheme != known:
        raise ValueError(f"the MinHash has the scheme {scheme!r}, and those that this index was given before have {known!r}")
    return known


def values_of(scheme: str, values: Any, what: str = "hash values") -> Any:
    """Return numbers as an array of the scheme's type."""
    width = _WIDTHS[scheme]
    if scheme == "legacy":
        return np.array(values, dtype=width.dtype)
    refused = f"{what} are out of range for the scheme {scheme!r}"
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu" and values.size and not 0 <= int(values.min()) <= int(values.max()) <= int(width.largest):
            raise ValueError(refused)
        return values.astype(width.dtype)
    try:
        # With an explicit type, because NumPy would turn a mixture of large and small numbers into floats.
        return np.array(values, dtype=width.dtype)
    except OverflowError as error:
        raise ValueError(f"{refused}: {error}") from error


def _drawn_permutations(scheme: str, seed: Any, count: int) -> Any:
    """Return factors and summands, as datasketch draws them; for an integer seed they are drawn only once."""
    key = scheme, seed, count
    # RandomState also accepts arrays, which cannot be keys.
    if not isinstance(seed, int):
        return _draw_permutations(*key)
    if key not in _DRAWN:
        # Cleared completely: a program has either a few settings, or a different one for each min-hash, for which no order of eviction
        # helps.
        if len(_DRAWN) == _MAX_DRAWN:
            _DRAWN.clear()
        _DRAWN[key] = _draw_permutations(*key)
    return _DRAWN[key]


def _draw_permutations(scheme: str, seed: Any, count: int) -> Any:
    draw, width = np.random.RandomState(seed), _WIDTHS[scheme]
    if scheme == "legacy":
        permutations = _drawn_below_prime(draw, count)
    else:
        half = draw.randint(0, 1 << (width.bits - 1), count, dtype=width.dtype)
        summands = draw.randint(0, 1 << width.bits, count, dtype=width.dtype)
        permutations = np.array([half * width.dtype(2) + width.dtype(1), summands])
    # All min-hashes with this seed share them.
    permutations.flags.writeable = False
    return permutations


def _drawn_below_prime(draw: Any, count: int) -> Any:
    """Return pairs of numbers below the prime, the first above 0, as ``randint`` draws them one after another."""
    state = draw.get_state()
    # `randint` takes the low bits of a 64-bit number, and draws another number if they are too large.
    low = draw.randint(0, 1 << 64, 2 * count, dtype=np.uint64).reshape(count, 2).T & np.uint64(_PRIME)
    factors, summands = low + np.array([[1], [0]], dtype=np.uint64)
    if np.all(factors < _PRIME) and np.all(summands < _PRIME):
        return np.array([factors, summands])
    # This happens once in 2^61 draws, but all numbers after it would then differ from those of datasketch.
    draw.set_state(state)
    drawn = [[draw.randint(least, _PRIME, dtype=np.uint64) for least in (1, 0)] for _ in range(count)]
    return np.array(drawn, dtype=np.uint64).T


class MinHash:
    """The minima of a set under random permutations, which estimate its resemblance to other sets: datasketch's ``MinHash``.

    ``hashfunc`` turns items into integers, by default ``bytes`` by SHA-1. ``scheme`` is ``"affine32"``, ``"affine64"`` or
    ``"legacy"``, whose hash values are those of datasketch 1; it is required with ``hashvalues`` or ``permutations``.

    >>> minhash = MinHash(num_perm=4)
    >>> minhash.update_batch([b"a", b"rose"])
    >>> minhash.hashvalues.tolist()
    [1702083091, 2126772942, 179868246, 598086913]
    """

    #: The scheme of min-hashes that name none. ``None`` means ``affine32``, and an error if values are given. With ``"legacy"`` everything
    #: is as in datasketch 1.
    default_scheme: ClassVar[str | None] = None

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: Callable[[Any], int] | None = None,
        hashobj: object | None = None,
        hashvalues: Any = None,
        permutations: Any = None,
        scheme: str | None = None,
    ) -> None:
        scheme = scheme if scheme is not None else self.default_scheme
        if scheme is None:
            if hashvalues is not None or permutations is not None:
                raise ValueError(
                    "scheme must be named where hash values or permutations are given, since these do not tell it: name the scheme "
                    "of the MinHash that they came from, 'legacy' for datasketch before 2.0.0"
                )
            scheme = "affine32"
        check_scheme(scheme)
        if hashvalues is not None:
            num_perm = len(hashvalues)
        if not 1 <= num_perm <= _MAX_PERMUTATIONS:
            raise ValueError(f"num_perm must be from 1 to {_MAX_PERMUTATIONS}, not {num_perm}")
        if gpu_mode == "always":
            raise RuntimeError("gpu_mode='always' needs datasketch itself: lookalike.compat.datasketch has no code for GPUs")
        if hashfunc is None:
            hashfunc = sha1_hash64 if scheme == "affine64" else sha1_hash32
        if not callable(hashfunc):
            raise ValueError("hashfunc must be callable")
        if hashobj is not None:
            import warnings

            warnings.warn("hashobj is deprecated, use hashfunc instead.", DeprecationWarning, stacklevel=2)
        self.scheme = scheme
        self.seed = seed
        self.num_perm = num_perm
        self.hashfunc = hashfunc
        self.hashvalues = self._empty_values(num_perm) if hashvalues is None else values_of(scheme, hashvalues)
        self.permutations = _parsed_permutations(scheme, seed, num_perm, permutations)
        if len(self) != len(self.permutations[0]):
            raise ValueError(f"there are {len(self)} hash values and {len(self.permutations[0])} permutations")
        self._gpu_mode = gpu_mode
        self._engine: tuple[Any, Permutations] | None = None

    def _empty_values(self, count: int) -> Any:
        width = _WIDTHS[self.scheme]
        return np.full(count, width.largest, dtype=width.dtype)

    def _permutations(self) -> Permutations:
        """Return the permutations in the engine's form."""
        if self._engine is None or self._engine[0] is not self.permutations:
            dtype = _WIDTHS[self.scheme].dtype
            a, b = (np.asarray(numbers, dtype=dtype).tobytes() for numbers in self.permutations)
            self._engine = self.permutations, Permutations(self.scheme, a, b)
        return self._engine[1]

    def _hash_values(self, raw: bytearray) -> Any:
        return np.frombuffer(raw, dtype=_WIDTHS[self.scheme].dtype)

    def _is_hashed_by_engine(self) -> bool:
        """Return true if items are passed to the engine unhashed."""
        return self.hashfunc is (sha1_hash64 if self.scheme == "affine64" else sha1_hash32)

    def update(self, b: Any) -> None:
        """Add an item to the set."""
        self.update_batch([b])

    def update_batch(self, b: Iterable[Any]) -> None:
        """Add many items to the set."""
        items = b if isinstance(b, list) else list(b)
        if not items:
            return
        permutations, current = self._permutations(), self.hashvalues.tobytes()
        raw = permutations.update(current, items) if self._is_hashed_by_engine() else None
        if raw is None:
            raw = permutations.update_hashed(current, self._hashes(items).tobytes())
        self.hashvalues = self._hash_values(raw)

    def _hashes(self, items: Iterable[Any]) -> Any:
        hashes = [self.hashfunc(item) for item in items]
        if self.scheme == "legacy":
            return np.array(hashes, dtype=np.uint64)
        try:
            return np.array(hashes, dtype=_WIDTHS[self.scheme].dtype)
        except OverflowError as error:
            raise ValueError(
                f"hashfunc returned a value that is out of range for the scheme {self.scheme!r}: {error}: use a function of so many "
                "bits, or scheme='affine64' for 64"
            ) from error

    def _check_comparable(self, other: MinHash, verb: str) -> None:
        for what, own, others in (
            ("permutation schemes", self.scheme, getattr(other, "scheme", None)),
            ("seeds", self.seed, other.seed),
            ("numbers of permutation functions", len(self), len(other)),
        ):
            if own != others:
                raise ValueError(f"cannot {verb} MinHash with different {what}: {own} and {others}")

    def jaccard(self, other: MinHash) -> float:
        """Estimate the resemblance of the two sets."""
        self._check_comparable(other, "compare")
        return float(np.count_nonzero(self.hashvalues == other.hashvalues)) / float(len(self))

    def count(self) -> float:
        """Estimate the number of items in the set."""
        shares = self.hashvalues / float(_WIDTHS[self.scheme].largest)
        return float(len(self)) / np.sum(shares) - 1.0  # type: ignore[no-any-return]

    def merge(self, other: MinHash) -> None:
        """Turn this into the min-hash of the union of both sets."""
        self._check_comparable(other, "merge")
        self.hashvalues = np.minimum(other.hashvalues, self.hashvalues)

    def digest(self) -> Any:
        """A copy of the hash values."""
        return self.hashvalues.copy()

    def is_empty(self) -> bool:
        """True if the set is empty."""
        return not np.any(self.hashvalues != _WIDTHS[self.scheme].largest)

    def clear(self) -> None:
        """Make the set empty."""
        self.hashvalues = self._empty_values(len(self))

    def copy(self) -> MinHash:
        """A min-hash of the same set."""
        return self._with(self.digest())

    def _with(self, hashvalues: Any) -> MinHash:
        made = object.__new__(MinHash)
        # Without `__init__`: permutations are shared, not drawn or checked again.
        made.__dict__.update(self.__dict__)
        made.hashvalues = hashvalues
        return made

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MinHash)
            and type(self) is type(other)
            and (self.scheme, self.seed) == (other.scheme, other.seed)
            and bool(np.array_equal(self.hashvalues, other.hashvalues))
        )

    # A min-hash is mutable, so it has no hash.
    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def union(cls, *mhs: MinHash) -> MinHash:
        """Make the min-hash of the union of two or more sets."""
        if len(mhs) < 2:
            raise ValueError(f"a union is of 2 MinHash or more, not of {len(mhs)}")
        first = mhs[0]
        for other in mhs[1:]:
            first._check_comparable(other, "unite")
        return cls(
            seed=first.seed,
            gpu_mode=first._gpu_mode,
            hashfunc=first.hashfunc,
            hashvalues=np.minimum.reduce([minhash.hashvalues for minhash in mhs]),
            permutations=first.permutations,
            scheme=first.scheme,
        )

    @classmethod
    def bulk(cls, b: Iterable[Any], **minhash_kwargs: Any) -> list[MinHash]:
        """Make the min-hashes of many sets, each an iterable of items, on all cores."""
        start = cls(**minhash_kwargs)
        made: list[MinHash] = []
        sets: list[list[Any]] = []
        for items in b:
            sets.append(items if isinstance(items, list) else list(items))
            if len(sets) == _BULK:
                made.extend(start._bulk(sets))
                sets = []
        return made + start._bulk(sets)

    def _bulk(self, sets: list[list[Any]]) -> list[MinHash]:
        raw = self._permutations().bulk(self.hashvalues.tobytes(), sets, None) if self._is_hashed_by_engine() else None
        if raw is not None:
            # Each min-hash gets a copy of its hash values, which would otherwise keep those of the others in memory.
            rows = self._hash_values(raw).reshape(len(sets), len(self))
            return [self._with(row.copy()) for row in rows]
        made = [self.copy() for _ in sets]
        for minhash, items in zip(made, sets):
            minhash.update_batch(items)
        return made

    @classmethod
    def generator(cls, b: Iterable[Any], **minhash_kwargs: Any) -> Generator[MinHash, None, None]:
        """Make the min-hashes of many sets lazily, one after another."""
        start = cls(**minhash_kwargs)
        for items in b:
            minhash = start.copy()
            minhash.update_batch(items)
            yield minhash

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_engine": None}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)


def _parsed_permutations(scheme: str, seed: int, count: int, permutations: Any) -> Any:
    if permutations is None:
        return _drawn_permutations(scheme, seed, count)
    if scheme == "legacy":
        return permutations
    dtype = _WIDTHS[scheme].dtype
    is_array = isinstance(permutations, np.ndarray) and permutations.dtype == dtype and permutations.ndim == 2
    if not (is_array and permutations.shape[0] == 2):
        permutations = np.array([values_of(scheme, numbers, "permutation parameters") for numbers in permutations[:2]])
    if np.any(permutations[0] % dtype(2) == 0):
        raise ValueError(f"all factors of permutations must be odd with the scheme {scheme!r}")
    return permutations
