"""The classes ``MinHash``, ``LeanMinHash`` and ``MinHashLSH`` of datasketch, with the same hash values, bytes and band parameters.

>>> from lookalike.compat.datasketch import MinHash, MinHashLSH
>>> sets = {"a": [b"a", b"rose", b"is", b"red"], "b": [b"a", b"rose", b"is", b"white"]}
>>> lsh = MinHashLSH(threshold=0.5, num_perm=128)
>>> for key, minhash in zip(sets, MinHash.bulk(sets.values())):
...     lsh.insert(key, minhash)
>>> sorted(lsh.query(minhash))
['a', 'b']

Hash values are those of datasketch 2, with the scheme ``affine32`` or the one that ``scheme=`` names. For the hash values of
datasketch 1, set ``MinHash.default_scheme = "legacy"`` once before the first min-hash. The engine hashes sets of ``bytes``;
:meth:`MinHash.bulk` uses all cores.

NumPy is required, as for datasketch. Indexes are in memory; Redis, Cassandra, the asynchronous classes and other sketches are
only in datasketch.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

if find_spec("numpy") is None:
    raise ImportError("lookalike.compat.datasketch needs NumPy, as datasketch does: pip install numpy")

from lookalike.compat.datasketch._lean_minhash import LeanMinHash
from lookalike.compat.datasketch._lsh import MinHashLSH, MinHashLSHDeletionSession, MinHashLSHInsertionSession
from lookalike.compat.datasketch._minhash import MinHash, sha1_hash32, sha1_hash64

__all__ = [
    "LeanMinHash",
    "MinHash",
    "MinHashLSH",
    "MinHashLSHDeletionSession",
    "MinHashLSHInsertionSession",
    "sha1_hash32",
    "sha1_hash64",
]

#: Names that only datasketch has.
_UNSUPPORTED = frozenset(
    (
        "AsyncMinHashLSH HNSW HyperLogLog HyperLogLogPlusPlus MinHashLSHBloom MinHashLSHEnsemble MinHashLSHForest WeightedMinHash "
        "WeightedMinHashGenerator WeightedMinHashLSH WeightedMinHashLSHForest bBitMinHash"
    ).split()
)


def __getattr__(name: str) -> Any:
    if name in _UNSUPPORTED:
        raise ImportError(f"lookalike.compat.datasketch has no {name}: import it from datasketch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
