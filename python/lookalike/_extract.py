"""Texts of HTML pages and of files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from lookalike import _lookalike
from lookalike._documents import text_fields
from lookalike._errors import warn, warn_of_losses
from lookalike._lookalike import Table
from lookalike._options import paths, positional, refuse_none, with_paths, words

__all__ = ["extract"]


def extract(
    html: Any,
    *,
    mode: str = "main",
    title: bool = False,
    alt: bool = False,
    links: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """Extract the text of HTML and of files: the text of one page as ``str``, those of many as an :class:`Array` or :class:`Table`.

    ``html`` is a page (``str``, or ``bytes`` in any character set), Arrow data, or an iterable of pages. The result is then a text, or a column of texts
    as long as ``html``, with null for missing pages. ``html`` may also be a path (``pathlib.Path``), or a
    list or iterator of paths, of files in any format that the command reads. For a file that is one document, the result is its text; for anything
    else, such as folders, archives and tables, it is a table with ``id``, ``source``, ``record``, ``offset``, ``charset`` and ``text``.

    ``mode`` is ``visible`` (all visible text), ``fast`` (blocks of text, no menus), ``main`` (the main content), or, if the package was built with
    the Cargo feature ``quality``, ``quality`` (the main content, slower and more careful). For paths, other
    options are those of ``lookalike extract``: ``text="body"``, ``language=True``.

    Raises ``TypeError`` for pages of a wrong type, ``ValueError`` for another ``mode``, :class:`BadInput` for files that cannot be read.

    >>> extract("<title>t</title><h1>Caf&eacute;</h1><p>Open <b>all</b> day", mode="visible")
    'Café\\n\\nOpen all day'
    """
    refuse_none(mode=mode)
    html = with_paths(html)
    named = None if isinstance(html, str) else paths(html)
    if named is not None:
        # The default is left out: it would be an option without effect if no file is HTML.
        said = {"html": None if mode == "main" else mode, "html_title": title, "html_alt": alt, "html_links": links, "threads": threads, **options}
        said["text"] = text_fields(options.get("text"))
        table = _of_files(named, said)
        # The id of a record is the name of its file and its position; a file that is a single document has its own name as id. So a table
        # with a single record stays a table.
        is_document = isinstance(html, os.PathLike) and len(table) == 1 and table["id"][0] == table["source"][0]
        return table["text"][0] if is_document else table
    if options:
        raise TypeError(f"{next(iter(options))} is an option for paths only")
    is_one = isinstance(html, (str, bytes))
    # The engine decodes bytes in Arrow data. For an iterable, the character set is detected page by page, before the pages become one
    # column of strings.
    if not is_one and not hasattr(html, "__arrow_c_stream__") and not hasattr(html, "__arrow_c_array__"):
        html = _decoded(html)
    return _lookalike.extract(html, mode=mode, title=title, alt=alt, links=links, threads=threads)


def _decoded(pages: Any) -> Iterator[Any]:
    for page in pages:
        yield _lookalike.decode_html(page) if isinstance(page, bytes) else page


def _of_files(named: list[str], options: dict[str, Any]) -> Table:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=options.get("tmp")) as folder:
        file = os.path.join(folder, "texts.parquet")
        summary, told = _lookalike.run_job("extract", [*positional(named), f"--output={file}", *words(options)])
        texts = _lookalike.read_parquet(file)
    warn(told)
    warn_of_losses(json.loads(summary)["skipped"], options.get("max_skipped"))
    return texts
