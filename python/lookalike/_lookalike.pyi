"""The engine of the package ``lookalike``; use that."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, SupportsIndex, final, overload

__all__ = [
    "Array",
    "Decisions",
    "DedupKernel",
    "Index",
    "Permutations",
    "Scheme",
    "Table",
    "TextChunks",
    "ZstdLines",
    "__version__",
    "array_of_bytes",
    "command",
    "concat_tables",
    "copy_results",
    "decode_html",
    "dedup_documents",
    "dedup_paths",
    "explain",
    "explain_documents",
    "explain_paths",
    "extract",
    "features",
    "join",
    "minhash",
    "object_urls",
    "open_decisions",
    "preset_distance",
    "read_parquet",
    "resemblance",
    "run_job",
    "simhash",
    "table",
    "table_of_bytes",
    "table_of_lines",
    "write_lines",
]

__version__: str

@final
class Array:
    """Column of values: Arrow data, which every frame library takes without a copy."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def null_count(self) -> int: ...
    @property
    def type(self) -> str: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    @property
    def __array__(self) -> Callable[..., Any]: ...
    def __arrow_c_schema__(self) -> object: ...
    @overload
    def __getitem__(self, key: slice, /) -> Array: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[bytes], Array], tuple[bytes]]: ...
    def to_pylist(self) -> list[Any]: ...

@final
class Table:
    """Table of named columns: Arrow data, which every frame library takes without a copy."""

    def __new__(cls, data: object) -> Table: ...
    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __getitem__(self, key: str, /) -> Array: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[bytes], Table], tuple[bytes]]: ...
    def _repr_html_(self) -> str: ...
    def filter(self, mask: object, is_true: bool = True) -> Table: ...
    def take(self, rows: object) -> Table: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
    def with_columns(self, other: object) -> Table: ...

@final
class Scheme:
    """Everything that can change a feature or a sketch."""

    def __new__(cls, text: str | None = None, /, **options: object) -> Scheme: ...
    @property
    def id(self) -> str: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ge__(self, value: object, /) -> bool: ...
    def __gt__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __le__(self, value: object, /) -> bool: ...
    def __lt__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Scheme], tuple[str]]: ...

@final
class Index:
    """Index of 64-bit fingerprints that finds every one within a distance."""

    @classmethod
    def build(
        cls,
        codes: object,
        distance: int | None = None,
        *,
        ids: object | None = None,
        path: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        layout: str = "packed",
        tables: int | None = None,
        scheme: Scheme | None = None,
        preset: str | None = None,
        threads: int | None = None,
    ) -> Index: ...
    @classmethod
    def open(cls, path: str | os.PathLike[str], *, in_memory: bool = False, check: bool = True) -> Index: ...
    @property
    def distance(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def scheme_id(self) -> str | None: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...
    def search(
        self,
        codes: object,
        distance: int | None = None,
        *,
        scheme: Scheme | None = None,
        threads: int | None = None,
    ) -> Table: ...

@final
class Permutations:
    """Random permutations of hash values, of one of the schemes of datasketch."""

    def __new__(cls, scheme: str, a: bytes, b: bytes) -> Permutations: ...
    def bulk(self, hashvalues: bytes, sets: Sequence[list[bytes]], threads: int | None) -> bytearray | None: ...
    def update(self, hashvalues: bytes, items: list[Any]) -> bytearray | None: ...
    def update_hashed(self, hashvalues: bytes, hashes: bytes) -> bytearray: ...

@final
class Decisions:
    """Decisions about every document, without what they were made of."""

    @property
    def against(self) -> int: ...
    @property
    def annotations(self) -> Table: ...
    @property
    def clusters(self) -> Table: ...
    @property
    def ids(self) -> Array: ...
    @property
    def in_collection(self) -> int: ...
    @property
    def mask(self) -> Array: ...
    def largest_clusters(self, most: int) -> list[list[int | None]]: ...
    def pair(self, a: str, b: str, against: str | None = None) -> tuple[list[int | None], bool]: ...

@final
class ZstdLines:
    """Lines of a file that Zstandard compressed, one after another."""

    def __new__(cls, path: str | os.PathLike[str]) -> ZstdLines: ...
    def __iter__(self) -> ZstdLines: ...
    def __next__(self) -> bytes: ...

@final
class DedupKernel:
    """Steps of ``lookalike dedup`` for engines that spread a collection over many machines.

    ``words`` are those of the command, as :func:`dedup_documents` takes them; a kernel is pickled by them. Batches are Arrow data, or a list
    of it, with columns of these names; integers are ``int64`` unless said. No step looks at files, holds the interpreter's lock, or depends on
    how rows are spread, nor on their order.
    """

    def __new__(cls, words: Sequence[str]) -> DedupKernel: ...
    @property
    def category_field(self) -> str | None: ...
    @property
    def copies_are_pairs(self) -> bool:
        """False with ``across``: documents of one class are of one category then, and removed only if their class joins another."""
    @property
    def finds_near(self) -> bool: ...
    @property
    def keep_counts(self) -> tuple[int, int, str | None]:
        """Of the new documents packed so far: how many have no ``value``, how many have one that the rule for survivors cannot use, and one of
        the latter with the reason."""
    @property
    def needs_levels(self) -> bool: ...
    @property
    def needs_position(self) -> bool: ...
    @property
    def scheme(self) -> str: ...
    @property
    def threshold(self) -> float: ...
    @property
    def value_field(self) -> str | None: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def words(self) -> list[str]: ...
    @staticmethod
    def levels(frequencies: bytes) -> bytes:
        """Levels of merged counts. Any are exact, but all tasks must have the same."""
    @staticmethod
    def merge_frequencies(parts: Sequence[bytes]) -> bytes: ...
    def __reduce__(self) -> tuple[type[DedupKernel], tuple[list[str]]]: ...
    @staticmethod
    def connected(batches: object) -> Table:
        """``x, y`` to ``node, component``: each node with the least one that it is connected with."""
    def count(self, batch: object) -> int:
        """Count the features of a sample of documents, as ``pack`` takes them; their number."""
    def frequencies(self) -> bytes:
        """Counts of the features of all that this object counted."""
    def group(self, batches: object, buckets: int, group_limit: int | None = 32) -> tuple[Table, int, int, int, int]:
        """Packed documents of whole buckets to ``bucket int32, edges large_binary``, edges by buckets of their own; and numbers of edges,
        of documents, of different texts, and of ids that stand more than once. Groups of more than ``group_limit`` members have a chain of edges."""
    def members(self, batches: object) -> Table:
        """``bucket, classes, components`` of whole buckets, from ``pack`` and ``pack_components``, to ``component, order, id, against, copies,
        are_against``: a row for each class that is in a component or has copies, with its most wanted document, and rows with the ids of
        these copies, of one side each."""
    @staticmethod
    def pack_components(batches: object, buckets: int) -> Table:
        """``node, component`` to ``bucket int32, components large_binary``."""
    def pack(self, batch: object) -> Table:
        """``id, text[, value][, category][, against bool][, position]`` to ``bucket int32, classes, ids, keys``, packed; no row while little
        is held. Rows of one bucket belong together, whatever task they come from."""
    def packed(self) -> Table:
        """The rest of what was packed."""
    def prepare(self, documents: int, buckets: int, levels: bytes | None = None) -> None:
        """Before ``pack``: numbers of all documents, about, and of buckets, and levels where ``needs_levels``. All tasks have the same."""
    def promising(self, batches: object) -> Table:
        """``edges`` of whole buckets to ``x, y``, the edges of components."""
    def settle(self, batches: object) -> Table:
        """``component, rank, text[, category][, against bool]`` of whole components to ``rank, survivor, similarity, reason`` of the classes
        that join a survivor. Ranks are in the order of ``members``."""
    def verify(self, batches: object) -> Table:
        """The same to ``x, y, similarity``: all pairs of classes that resemble each other."""

@final
class TextChunks:
    """Chunks of texts by the options of ``lookalike overlap``, for engines that count which documents share them. It is pickled by these."""

    def __new__(cls, words: Sequence[str]) -> TextChunks: ...
    @property
    def chunkings(self) -> list[tuple[str, int]]:
        """Name of each chunking, and the least number of shared chunks."""
    @property
    def lists_copies(self) -> bool:
        """True if every pair of equal texts has its row."""
    @property
    def min_containment(self) -> float: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def words(self) -> list[str]: ...
    def __reduce__(self) -> tuple[type[TextChunks], tuple[list[str]]]: ...
    def chunk(self, batch: object) -> tuple[Table, Table]:
        """``id, text`` to ``id, unit``, the hash of the text, null where there is none; and, of texts that this object has not seen lately, to
        ``unit, chunking int32, chunks list<int64>``: a copy of a text that came a million texts before has its rows again."""

def array_of_bytes(bytes: bytes) -> Array: ...
def command(words: Sequence[str]) -> int: ...
def concat_tables(tables: Sequence[Table]) -> Table | None: ...
def copy_results(
    command: str, source: str | os.PathLike[str], folder: str | os.PathLike[str], overwrite: bool
) -> None: ...
def decode_html(bytes: bytes) -> str: ...
def dedup_documents(
    words: Sequence[str],
    documents: dict[str, Any],
    against: dict[str, Any] | None,
    folder: str | os.PathLike[str],
    progress: Callable[[str, int, int, bool], object] | None = None,
) -> tuple[Decisions, Table, str, list[str], BaseException | None]: ...
def dedup_paths(
    words: Sequence[str],
    decisions: str | os.PathLike[str] | None,
    progress: Callable[[str, int, int, bool], object] | None = None,
) -> tuple[str, list[list[tuple[str, str | None]]], list[list[Path] | None], list[str], BaseException | None]: ...
def explain(words: Sequence[str], texts: tuple[str, str] | None = None) -> tuple[str, str, str, list[str]]: ...
def explain_documents(
    words: Sequence[str], a: dict[str, Any], b: dict[str, Any]
) -> tuple[str, str, str, list[str]]: ...
def explain_paths(words: Sequence[str], a: dict[str, Any], b: dict[str, Any]) -> tuple[str, str, str, list[str]]: ...
def extract(
    html: object,
    *,
    mode: str = "main",
    title: bool = False,
    alt: bool = False,
    links: bool = False,
    threads: int | None = None,
) -> Any: ...
def features(texts: object, *, scheme: Scheme | None = None, threads: int | None = None) -> Array: ...
def join(
    a: object,
    b: object | None = None,
    distance: int | None = None,
    *,
    preset: str | None = None,
    threads: int | None = None,
) -> Table: ...
def minhash(
    texts: object, functions: int | None = None, *, scheme: Scheme | None = None, threads: int | None = None
) -> Array: ...
def object_urls(argument: str) -> list[str]: ...
def open_decisions(
    path: str | os.PathLike[str], in_order: bool, own_tables: Sequence[bool]
) -> tuple[Decisions, Array]: ...
def preset_distance(name: str) -> int: ...
def read_parquet(path: str | os.PathLike[str]) -> Table: ...
def resemblance(a: object, b: object, *, scheme: Scheme | None = None, threads: int | None = None) -> Any: ...
def run_job(
    command: str, words: Sequence[str], progress: Callable[[str, int, int, bool], object] | None = None
) -> tuple[str, list[str]]: ...
def simhash(
    texts: object, *, scheme: Scheme | None = None, preset: str | None = None, threads: int | None = None
) -> Array: ...
def table(columns: Sequence[tuple[str, str, list[Any]]]) -> Table: ...
def table_of_bytes(bytes: bytes) -> Table: ...
def table_of_lines(lines: Iterable[bytes], folder: str | os.PathLike[str]) -> Table: ...
def write_lines(rows: object, path: str | os.PathLike[str], id: str | None = None) -> int: ...
