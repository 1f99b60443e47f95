"""Exceptions of the package."""

from __future__ import annotations

__all__ = ["BadInput", "LookalikeError", "MemoryLimit", "SchemeMismatch"]


class LookalikeError(Exception):
    """A call that failed; the base class of the other exceptions of the package."""

    __module__ = "lookalike"


class SchemeMismatch(LookalikeError, ValueError):
    """Values of different schemes, which are never compared."""

    __module__ = "lookalike"


class MemoryLimit(LookalikeError, MemoryError):
    """A memory limit that is too low. ``needed`` is the lowest sufficient limit, in bytes."""

    __module__ = "lookalike"

    def __init__(self, message: str = "", needed: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed

    def __reduce__(self):
        return type(self), (str(self), self.needed)


class BadInput(LookalikeError, ValueError):
    """Data that cannot be read. ``row`` and ``source`` say where, if known."""

    __module__ = "lookalike"

    def __init__(self, message: str = "", row: int | None = None, source: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.source = source

    def __reduce__(self):
        return type(self), (str(self), self.row, self.source)
