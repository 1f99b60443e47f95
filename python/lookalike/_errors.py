"""Exceptions and warnings of the package."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "BadInput",
    "LookalikeError",
    "LookalikeWarning",
    "MemoryLimit",
    "SchemeMismatch",
    "damaged_files",
    "of_losses",
    "warn",
    "warn_of_losses",
    "warn_of_nulls",
]


class LookalikeError(Exception):
    """A call failed; the base class of the other exceptions of the package."""

    __module__ = "lookalike"


class LookalikeWarning(UserWarning):
    """Warning that a call succeeded, but perhaps not as its caller expects: records or files could not be read, or an option had no effect.

    ``dedup`` warns of the latter only if its data is files. If a warnings filter turns a warning of ``dedup`` into an exception,
    the exception has the ``result``. With ``into``, the collection may already contain its documents.
    """

    __module__ = "lookalike"

    result: Any = None


class SchemeMismatch(LookalikeError, ValueError):
    """Values of different schemes, or a collection with other settings, were given; they are never compared."""

    __module__ = "lookalike"


class MemoryLimit(LookalikeError, MemoryError):
    """A memory limit was too low. ``needed`` is a limit that should suffice, in bytes.

    It is estimated from the part of the data that was read so far, with a margin for later stages. A call with this limit may also be
    refused, by a stage that the first call did not reach; the new estimate is then better.
    """

    __module__ = "lookalike"

    def __init__(self, message: str = "", needed: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed

    def __reduce__(self):
        return type(self), (str(self), self.needed)


class BadInput(LookalikeError, ValueError):
    """Data could not be read. ``row`` and ``source`` (a column, or a file, glob or folder as it was named) say where, if known.

    Both are None for losses that ``strict`` or ``max_skipped`` does not accept: the message names the first.
    """

    __module__ = "lookalike"

    def __init__(self, message: str = "", row: int | None = None, source: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.source = source

    def __reduce__(self):
        return type(self), (str(self), self.row, self.source)


def warn(told: Iterable[str]) -> None:
    """Issue each warning at the line outside of the package that called it."""
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "lookalike":
        level, frame = level + 1, frame.f_back
    for warning in told:
        warnings.warn(warning, LookalikeWarning, stacklevel=level)


def warn_of_nulls(rows: int) -> None:
    """Warn of rows with values that became null because JSON cannot represent them."""
    if rows:
        warn([f"rows with a value that became null, because it is out of range, too long or nested too deeply: {rows:,}"])


def warn_of_losses(skipped: Iterable[Mapping[str, Any]], bearable: Any) -> None:
    """Warn of missing documents, given a summary's list of skipped records and files."""
    warn(of_losses(skipped, bearable))


def of_losses(skipped: Iterable[Mapping[str, Any]], bearable: Any) -> list[str]:
    """Return the warning of missing documents. There is none if the caller said how many are bearable."""
    lost = [row for row in skipped if row["loss"] != "none"]
    if not lost or bearable is not None:
        return []
    count = sum(row["count"] for row in lost)
    return [f"records or files that could not be read: {count:,}, for example {lost[0]['first']}"]


def damaged_files(skipped: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of places where it is unknown how many records are missing, given a summary's list of skipped records and files."""
    return sum(row["count"] for row in skipped if row["loss"] == "unknown")
