"""Texts of HTML pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from lookalike import _lookalike

__all__ = ["extract"]


def extract(
    html: Any,
    *,
    mode: str = "main",
    title: bool = False,
    alt: bool = False,
    links: bool = False,
    threads: int | None = None,
) -> Any:
    """Extract the text of HTML: of one page as ``str``, of many as an :class:`Array`.

    ``html`` is a page (``str``, or ``bytes`` in any character set), a path (``pathlib.Path``) of one, Arrow data, or an iterable of
    pages. ``mode`` is ``visible`` (all that a reader sees), ``fast`` (blocks of text, no menus) or ``main`` (the main content).

    >>> extract("<title>t</title><h1>Caf&eacute;</h1><p>Open <b>all</b> day", mode="visible")
    'Café\\n\\nOpen all day'
    """
    if isinstance(html, os.PathLike):
        with open(html, "rb") as file:
            html = file.read()
    is_one = isinstance(html, (str, bytes))
    if not is_one and not hasattr(html, "__arrow_c_stream__") and not hasattr(html, "__arrow_c_array__"):
        html = _decoded(html)
    return _lookalike.extract(html, mode=mode, title=title, alt=alt, links=links, threads=threads)


def _decoded(pages: Any) -> Iterator[Any]:
    for page in pages:
        yield _lookalike.decode_html(page) if isinstance(page, bytes) else page
