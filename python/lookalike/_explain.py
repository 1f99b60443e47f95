"""Explanations of pairs of documents."""

from __future__ import annotations

import json
import os
from typing import Any

from lookalike import _lookalike
from lookalike._errors import warn
from lookalike._options import words
from lookalike._page import Page, framed

__all__ = ["Explanation", "explain"]


class Explanation:
    """Explanation why two documents match or do not: how similar they are, what a method finds, and where the texts differ.

    ``str()`` returns it as text, :meth:`to_dict` as data; a notebook shows it as a page.
    """

    @classmethod
    def _of(cls, told: tuple[str, str, str, list[str]]) -> Explanation:
        """The explanation that the engine gives: text, JSON, page and warnings."""
        text, data, page, warned = told
        warn(warned)
        return cls(text, data, page)

    def __init__(self, text: str, data: str, page: str) -> None:
        self._text = text
        self._data: dict[str, Any] = json.loads(data)
        self._page = page

    @property
    def resemblance(self) -> float:
        """Shared features divided by all features of both."""
        return float(self._data["resemblance"])

    @property
    def found(self) -> bool:
        """True if the method, with its settings, finds the pair."""
        return bool(self._data["found"]["found"])

    def to_dict(self) -> dict[str, Any]:
        """All facts about the pair, as ``lookalike explain --json`` prints them."""
        # A deep copy of data that came as JSON.
        return json.loads(json.dumps(self._data))  # type: ignore[no-any-return]

    def to_html(self) -> Page:
        """The page that ``lookalike explain --page`` writes."""
        return Page(self._page)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<lookalike.Explanation: resemblance {self.resemblance:.6f}, {'found' if self.found else 'not found'}>"

    def _repr_html_(self) -> str:
        return framed(self._page)


def explain(a: str | os.PathLike[str], b: str | os.PathLike[str], **options: Any) -> Explanation:
    """Explain why two documents match or do not.

    ``a`` and ``b`` are texts, or paths (``pathlib.Path``) of files with one document each; with ``in_=`` they are the ids of two
    records in that input. ``options`` are those of ``lookalike explain``: ``method="simhash", distance=6``. Raises
    ``TypeError`` for anything but texts, paths and ids, ``ValueError`` for invalid settings, :class:`LookalikeError` for files and ids that do not exist.

    >>> print(explain("a rose is a rose is a rose", "a rose is a rose").resemblance)
    0.3333333333333333
    """
    has_input, are_paths = options.get("in_") is not None, [isinstance(side, os.PathLike) for side in (a, b)]
    if not has_input and any(are_paths) and not all(are_paths):
        raise TypeError("a and b must both be texts, or both be paths: read the text of the file first")
    are_named = has_input or all(are_paths)
    names = [os.fspath(a), os.fspath(b)] if are_named else ["a", "b"]
    texts = None if are_named else (_text(a), _text(b))
    # After `--`, because an id may begin with a dash.
    return Explanation._of(_lookalike.explain(["explain", *words(options), "--", *names], texts))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a and b must be texts, or paths, not {type(value).__name__}")
    return value
