"""Immutable min-hash signatures, and their bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from lookalike.compat.datasketch._minhash import MinHash, check_scheme, values_of

__all__ = ["LeanMinHash"]

#: Code of each scheme in the serialized bytes, followed by the letter of its numbers. `legacy`, which is older than schemes, has no code.
_CODES = {"affine32": 1, "affine64": 2}
_LETTERS = {"legacy": "I", "affine32": "I", "affine64": "Q"}


class LeanMinHash(MinHash):
    """A :class:`MinHash` without permutations that cannot be updated: datasketch's ``LeanMinHash``, with the same bytes.

    >>> lean = LeanMinHash(MinHash(num_perm=4))
    >>> buffer = bytearray(lean.bytesize())
    >>> lean.serialize(buffer)
    >>> LeanMinHash.deserialize(buffer) == lean
    True
    """

    __slots__ = ("hashvalues", "scheme", "seed")

    def __init__(
        self,
        minhash: MinHash | None = None,
        seed: int | None = None,
        hashvalues: Any = None,
        scheme: str | None = None,
    ) -> None:
        if minhash is not None:
            if scheme is not None and scheme != minhash.scheme:
                raise ValueError(f"scheme={scheme!r} is not that of the MinHash, which is {minhash.scheme!r}")
            self._set(minhash.seed, minhash.hashvalues, minhash.scheme)
            return
        if hashvalues is None or seed is None:
            raise ValueError("give a MinHash, or seed and hashvalues of one")
        scheme = scheme if scheme is not None else self.default_scheme
        if scheme is None:
            raise ValueError(
                "scheme must be named where hash values are given, since these do not tell it: name the scheme of the MinHash that "
                "they came from, 'legacy' for datasketch before 2.0.0"
            )
        self._set(seed, hashvalues, scheme)

    def _set(self, seed: int, hashvalues: Any, scheme: str) -> None:
        check_scheme(scheme)
        self.seed = seed
        self.scheme = scheme
        self.hashvalues = values_of(scheme, hashvalues)
        if scheme != "legacy" and len(self.hashvalues) == 0:
            # In the serialized bytes, a count of 0 would mean the scheme `legacy`.
            raise ValueError("hashvalues must not be empty")

    @classmethod
    def _made(cls, seed: int, hashvalues: Any, scheme: str) -> LeanMinHash:
        made = object.__new__(LeanMinHash)
        made._set(seed, hashvalues, scheme)
        return made

    def update(self, b: Any) -> None:
        """Raise an exception: a lean min-hash cannot change."""
        raise TypeError("Cannot update a LeanMinHash")

    def update_batch(self, b: Any) -> None:
        """Raise an exception: a lean min-hash cannot change."""
        raise TypeError("Cannot update a LeanMinHash")

    def copy(self) -> LeanMinHash:
        """A lean min-hash of the same set."""
        return self._made(self.seed, self.hashvalues, self.scheme)

    def _layout(self, byteorder: str) -> tuple[str, list[int]]:
        """Return the layout of the bytes, and the values before the hash values."""
        count, letter = len(self), _LETTERS[self.scheme]
        if self.scheme == "legacy":
            return f"{byteorder}qi{count}{letter}", [self.seed, count]
        # A negative count indicates that a scheme follows.
        return f"{byteorder}qiB{count}{letter}", [self.seed, -count, _CODES[self.scheme]]

    def bytesize(self, byteorder: str = "@") -> int:
        """Number of bytes that :meth:`serialize` writes."""
        return struct.calcsize(self._layout(byteorder)[0])

    def serialize(self, buf: Any, byteorder: str = "@") -> None:
        """Write seed, scheme and hash values into a buffer, as datasketch does; ``byteorder`` is as in :mod:`struct`."""
        if len(buf) < self.bytesize(byteorder):
            raise ValueError(f"the buffer has {len(buf)} bytes, and this MinHash needs {self.bytesize(byteorder)}")
        layout, head = self._layout(byteorder)
        struct.pack_into(layout, buf, 0, *head, *self.hashvalues.tolist())

    @classmethod
    def deserialize(cls, buf: Any, byteorder: str = "@") -> LeanMinHash:
        """Read bytes written by :meth:`serialize`, here or in datasketch."""
        return cls._made(*_deserialized(memoryview(buf), byteorder))

    def __getstate__(self) -> Any:
        buf = bytearray(self.bytesize())
        self.serialize(buf)
        return buf

    def __setstate__(self, state: Any) -> None:
        self._set(*_deserialized(memoryview(state), "@"))

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self.scheme, self.seed, self.hashvalues.tobytes()))

    @classmethod
    def union(cls, *lmhs: MinHash) -> LeanMinHash:
        """Make the lean min-hash of the union of two or more sets."""
        if len(lmhs) < 2:
            raise ValueError(f"a union is of 2 MinHash or more, not of {len(lmhs)}")
        first = lmhs[0]
        for other in lmhs[1:]:
            first._check_comparable(other, "unite")
        return cls._made(first.seed, np.minimum.reduce([minhash.hashvalues for minhash in lmhs]), first.scheme)


def _deserialized(buf: memoryview, byteorder: str) -> tuple[int, Any, str]:
    head = f"{byteorder}qi"
    seed, count = struct.unpack_from(head, buf, 0)
    scheme = "legacy"
    if count < 0:
        (code,) = struct.unpack_from(f"{byteorder}B", buf, struct.calcsize(head))
        known = {code: scheme for scheme, code in _CODES.items()}
        if code not in known:
            raise ValueError(f"there is no permutation scheme with the code {code}: the bytes are of a newer datasketch, or of none")
        scheme, head, count = known[code], f"{byteorder}qiB", -count
    # A count of 0 aligns what follows, if the byte order is native.
    start = struct.calcsize(f"{head}0{_LETTERS[scheme]}")
    return seed, struct.unpack_from(f"{byteorder}{count}{_LETTERS[scheme]}", buf, start), scheme
