"""Near-duplicate detection for data frames, datasets and files of any size.

>>> import lookalike as lk
>>> result = lk.dedup(["a rose is a rose", "A rose is a rose!", "something else"])
>>> result.kept
['A rose is a rose!', 'something else']

The guide is the chapter *Python* of the documentation.
"""

from lookalike import evaluate
from lookalike._client import AsyncClient, Client, ServiceError
from lookalike._errors import BadInput, LookalikeError, MemoryLimit, SchemeMismatch
from lookalike._explain import Explanation, explain
from lookalike._extract import extract
from lookalike._lookalike import (
    Array,
    Index,
    Scheme,
    Table,
    __version__,
    features,
    join,
    minhash,
    resemblance,
    simhash,
)
from lookalike._overlap import Overlap, overlap
from lookalike._result import DedupResult
from lookalike._dedup import dedup, pairs

__all__ = [
    "Array",
    "AsyncClient",
    "BadInput",
    "Client",
    "DedupResult",
    "Explanation",
    "Index",
    "LookalikeError",
    "MemoryLimit",
    "Overlap",
    "Scheme",
    "SchemeMismatch",
    "ServiceError",
    "Table",
    "__version__",
    "dedup",
    "evaluate",
    "explain",
    "extract",
    "features",
    "join",
    "minhash",
    "overlap",
    "pairs",
    "resemblance",
    "simhash",
]
