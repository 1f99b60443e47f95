"""Near-duplicate detection for data frames, datasets and files of any size.

>>> import lookalike as lk
>>> result = lk.dedup(["a rose is a rose", "A rose is a rose!", "something else"])
>>> result.kept
['A rose is a rose!', 'something else']

For a guide see the chapter *Python* of the documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lookalike._client import AsyncClient, Client, ServiceError
from lookalike._errors import BadInput, LookalikeError, LookalikeWarning, MemoryLimit, SchemeMismatch
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
from lookalike._page import Page
from lookalike._result import DedupResult, Records
from lookalike._dedup import dedup, pairs

if TYPE_CHECKING:
    from lookalike import evaluate

__all__ = [
    "Array",
    "AsyncClient",
    "BadInput",
    "Client",
    "DedupResult",
    "Explanation",
    "Index",
    "LookalikeError",
    "LookalikeWarning",
    "MemoryLimit",
    "Overlap",
    "Page",
    "Records",
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


def __getattr__(name: str) -> Any:
    # ``datasets`` has data classes, which take longer to import than everything else, and the modules for certain libraries have few users.
    if name in ("datasets", "evaluate"):
        import importlib

        return importlib.import_module(f"lookalike.{name}")
    raise AttributeError(f"module 'lookalike' has no attribute {name!r}")


def __dir__() -> list[str]:
    # Without names that are only imported for use in this file.
    return sorted({*__all__, "datasets", *(name for name in globals() if name.startswith("__"))})
