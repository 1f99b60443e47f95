"""Chunks that documents and servers share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._documents import input_words
from lookalike._errors import damaged_files, warn, warn_of_losses
from lookalike._lookalike import Table
from lookalike._options import is_given, refuse_none
from lookalike._page import Page
from lookalike._progress import observer
from lookalike._saved import TemporaryFolder, copy_results

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Overlap", "overlap"]

#: Numbers of ``run.json`` beside those of documents.
_FINDINGS = (
    "shared_texts pages_again same_page servers without_server server_rows mirrored_sets mirrored_pages aliases apart_by_address pages skip "
    "chunkings levels"
).split()


class Overlap:
    """Documents and servers that share chunks, and how many, as :func:`lookalike.overlap` counted them."""

    def __init__(self, folder: TemporaryFolder, summary: dict[str, Any]) -> None:
        # The folder is removed with the result.
        self._owner = folder
        self._folder = os.path.join(folder.name, "results")
        self._summary = summary

    def _table(self, name: str) -> Table:
        self._owner.ensure()
        return _lookalike.read_parquet(os.path.join(self._folder, f"{name}.parquet"))

    @property
    def pairs(self) -> Table:
        """Pairs of documents, sorted: ``a``, ``b``, ``chunking``, ``shared``, ``chunks_a``, ``chunks_b``, ``containment_a``,
        ``containment_b``, ``resemblance``. With ``by="server"``, they are pairs of servers. Of documents with equal text, only the one in
        ``copies`` has pairs, unless ``copies="listed"``."""
        return self._table("pairs")

    @property
    def servers(self) -> Table:
        """Pairs of servers, with the columns of ``pairs``; each server is the union of its documents. Empty if no document has a server."""
        return self._table("servers")

    @property
    def copies(self) -> Table:
        """Sets of documents with equal text: ``id``, ``copies``, ``urls``, ``bytes``."""
        return self._table("copies")

    @property
    def mirrors(self) -> Table:
        """Sets of pages held by nearly the same servers: ``set``, ``pages``, ``bytes``, ``servers``, ``held``, ``core``, ``approximate``,
        ``examples``."""
        return self._table("mirrors")

    @property
    def mirror_pages(self) -> Table:
        """The pages of the sets in ``mirrors``: ``set``, ``url``, ``servers``, ``share``."""
        return self._table("mirror_pages")

    @property
    def aliases(self) -> Table:
        """Servers and URLs that are other names of the same pages: ``kind``, ``servers``, ``pages``, ``shared``, ``address``, ``server``, ``urls``."""
        return self._table("aliases")

    @property
    def skip(self) -> Table:
        """Pages that a crawler need not visit: ``url``, ``copy_of``, ``why``, ``chunking``, ``shared``, ``containment``."""
        return self._table("skip")

    @property
    def counts(self) -> dict[str, Any]:
        """Numbers of ``documents``, ``unreadable`` records, ``damaged`` files, servers, pages and findings, as in ``run.json``. ``chunkings`` has
        those of each chunking, ``levels`` the replicas and savings."""
        findings = {name: self._summary[name] for name in _FINDINGS}
        return {"damaged": damaged_files(self._summary["skipped"]), **self._summary["counts"], **findings}

    def report(self) -> Page:
        """The command's page ``atlas.html``; a notebook shows it."""
        with open(os.path.join(self._folder, "atlas.html"), encoding="utf-8") as page:
            return Page(page.read())

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the output directory of ``lookalike overlap --output-format parquet``, and return its path."""
        return copy_results(self._folder, folder, overwrite, "overlap")

    def __repr__(self) -> str:
        rows = sum(chunking["rows"] for chunking in self._summary["chunkings"])
        documents = self._summary["counts"]["documents"]
        return f"<lookalike.Overlap: {documents:,} documents, {rows:,} pairs that share chunks>"


def overlap(
    data: Any,
    *,
    text: str | Sequence[str] | Callable[[Any], str | None] | None = None,
    id: str | None = None,
    chunk: str = "lines:2",
    min_shared: int | str = 1,
    by: str = "document",
    memory: str | int | None = None,
    threads: int | None = None,
    progress: Any = "auto",
    **options: Any,
) -> Overlap:
    """Count the chunks that every two documents, or servers, share.

    ``data``, ``text`` and ``id`` are as in :func:`dedup`. ``chunk`` is ``doc``, ``sentences``, ``paragraphs``, ``lines:N``, ``words:N``,
    ``chars:N`` or ``fields:N``, the last four also with ``:sliding``; or several of these, separated by commas. All other
    options are those of ``lookalike overlap``: ``segment="languages"`` and ``case="keep"`` for words and characters, ``min_containment=0.5``,
    ``server="field:site"``, ``copies="listed"``, ``set_page_share=0.7``. Errors are as in :func:`dedup`. Chunks and their counts are
    those of Shivakumar and Garcia-Molina (WebDB 1998).

    >>> rows = [{"id": "a", "text": "One. Two. Three."}, {"id": "b", "text": "Two. Three. Four."}, {"id": "c", "text": "Five."}]
    >>> overlap(rows, id="id", chunk="sentences").pairs.to_pylist()[0]["shared"]
    2
    """
    refuse_none(chunk=chunk)
    said = {"chunk": chunk, "min_shared": min_shared, "by": by, "memory": memory, "threads": threads, **options}
    for name in ("output_format", "overwrite", "resume", "rerank", "copies_of"):
        if is_given(said.get(name)):
            raise TypeError(f"{name} is an option of the command only")
    folder = TemporaryFolder(options.get("tmp"))
    output = ["--output-format=parquet", f"--output={os.path.join(folder.name, 'results')}"]
    with input_words(data, text, id, said) as (inputs, _), observer(progress) as call:
        summary, told = _lookalike.run_job("overlap", [*inputs, *output], call)
    counted = json.loads(summary)
    warn(told)
    warn_of_losses(counted["skipped"], options.get("max_skipped"))
    return Overlap(folder, counted)
