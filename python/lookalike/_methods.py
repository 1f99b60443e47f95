"""Deduplication as methods of frames, for the namespaces of polars and pandas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lookalike._dedup import dedup

__all__ = ["FrameMethods"]


class FrameMethods:
    """The methods behind ``frame.lookalike``. Options are those of :func:`lookalike.dedup`."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def dedup(self, text: str | Sequence[str] | Callable[[Any], str | None] | None = None, **options: Any) -> Any:
        """Return the rows that are kept, as a frame."""
        return dedup(self._frame, text=text, **options).kept

    def annotated(self, text: str | Sequence[str] | Callable[[Any], str | None] | None = None, **options: Any) -> Any:
        """Return all rows, with columns for the decision on each: see :meth:`lookalike.DedupResult.annotated`."""
        return dedup(self._frame, text=text, **options).annotated()
