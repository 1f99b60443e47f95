"""Deduplication of Hugging Face datasets: ``lookalike.datasets.dedup`` is ``lookalike.dedup``, but returns the kept rows.

>>> import datasets
>>> import lookalike.datasets
>>> dataset = datasets.Dataset.from_dict({"text": ["a rose is a rose", "A rose is a rose!", "something else"]})
>>> lookalike.datasets.dedup(dataset)["text"][:]
['A rose is a rose!', 'something else']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import datasets

from lookalike._dedup import dedup as dedup_rows

__all__ = ["dedup"]


def dedup(
    dataset: datasets.Dataset,
    text: str | Sequence[str] | Callable[[Any], str | None] | None = None,
    **options: Any,
) -> datasets.Dataset:
    """Keep one document of each family of near-duplicates in a ``datasets.Dataset``.

    Rows are chosen by their numbers (``Dataset.select``): they are not copied, and features, format and order are preserved. Options and
    errors are those of ``lookalike.dedup``. For a ``DatasetDict``, pass one split.
    ``dedup(splits["train"], "text", against=splits["test"])`` also removes training rows that resemble a test row as a whole; the guide "Clean a
    training set" finds test items inside longer texts.
    """
    if not isinstance(dataset, datasets.Dataset):
        raise TypeError(f"data must be a datasets.Dataset, not {type(dataset).__name__}")
    return dedup_rows(dataset, text=text, **options).kept
