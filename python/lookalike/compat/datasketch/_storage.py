"""Keys and buckets of an index, in memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

__all__ = ["KeyBands", "KeyBuckets"]


class _Storage:
    """Collections of values by key, with the methods of datasketch's storages."""

    #: Type of the collection of values for a key.
    _collection: type

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self.buffer_size = 50000
        self._selected: list[Any] = []

    def keys(self) -> Any:
        """Return all keys."""
        return self._values.keys()

    def get(self, key: Hashable) -> Any:
        """Return the values of a key; an empty collection if the key does not exist."""
        found = self._values.get(key)
        return self._collection() if found is None else found

    def getmany(self, *keys: Hashable) -> list[Any]:
        """Return the values of each key."""
        return [self.get(key) for key in keys]

    def remove(self, *keys: Hashable, **_: Any) -> None:
        """Remove keys."""
        for key in keys:
            del self._values[key]

    def remove_val(self, key: Hashable, val: Any, **_: Any) -> None:
        """Remove a value of a key."""
        self._values[key].remove(val)

    def size(self) -> int:
        """Return the number of keys."""
        return len(self._values)

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        """Return the number of values of each key."""
        return {key: len(values) for key, values in self._values.items()}

    def has_key(self, key: Hashable) -> bool:
        """Return true if the key exists."""
        return key in self._values

    def status(self) -> dict[str, int]:
        """Return the number of keys, in the form in which datasketch reports it."""
        return {"keyspace_size": len(self)}

    def empty_buffer(self) -> None:
        """Do nothing: storage in memory has no buffer."""

    def add_to_select_buffer(self, keys: list[Hashable]) -> None:
        """Add the values of keys to the select buffer."""
        self._selected.extend(self.getmany(*keys))

    def collect_select_buffer(self) -> list[Any]:
        """Return the contents of the select buffer, and empty it."""
        collected, self._selected = self._selected, []
        return collected

    def __getitem__(self, key: Hashable) -> Any:
        return self.get(key)

    def __delitem__(self, key: Hashable) -> None:
        self.remove(key)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._values)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values


class KeyBands(_Storage):
    """The bands of each key, in their order."""

    _collection = list

    def insert(self, key: Hashable, *vals: Any, **_: Any) -> None:
        """Add values to those of a key."""
        self._values.setdefault(key, []).extend(vals)


class KeyBuckets(_Storage):
    """The keys in each bucket."""

    _collection = set

    def insert(self, key: Hashable, *vals: Any, **_: Any) -> None:
        """Add values to those of a key."""
        self._values.setdefault(key, set()).update(vals)
