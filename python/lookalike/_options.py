"""Options of the command as keyword arguments: ``max_document="32M"`` is ``--max-document 32M``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from lookalike._errors import warn

#: Length from which a string is a text, so that the system is not asked for a file of that name.
_MAX_NAME = 4096

#: Options that the package sets itself, and what to use instead.
_OWN = {
    "output": "save() of the result",
    "json": "the result itself",
    "help": "help() of the function",
    "quiet": "progress=False",
}


def words(options: Mapping[str, Any]) -> list[str]:
    """Return the command-line arguments for these options; an option with None is left out."""
    said: list[str] = []
    for name, value in options.items():
        if name in _OWN:
            raise TypeError(f"{name} is no option here: use {_OWN[name]}")
        flag = "--" + name.rstrip("_").replace("_", "-")
        # A list repeats an option, except one that is a list of its own in the command.
        for single in value if _is_list(value) and name != "mask" else [value]:
            # With an equals sign: otherwise a value that begins with `-` would be read as another option.
            if is_given(single):
                said.append(flag if single is True else f"{flag}={_word(single)}")
    return said


def is_given(value: Any) -> bool:
    """Return true if an option has this value; None and False leave it out."""
    return value is not None and value is not False


def refuse_none(**settings: Any) -> None:
    """Refuse None where it does not stand for the default of the signature, because the command has another default, or none."""
    for name, value in settings.items():
        if value is None:
            raise TypeError(f"{name} must not be None")


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _word(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # type: ignore[no-any-return]
    return ",".join(value) if _is_list(value) else str(value)


def with_paths(data: Any) -> Any:
    """Return the data, as a list if it is an iterator of paths, such as ``Path.glob``."""
    # Readers of Arrow data are iterators too, but are read differently.
    if not isinstance(data, Iterator) or hasattr(data, "__arrow_c_stream__"):
        return data
    first = list(islice(data, 1))
    rest = chain(first, data)
    return list(rest) if first and isinstance(first[0], os.PathLike) else rest


def paths(data: Any, *, is_against: bool = False) -> list[str] | None:
    """Return the paths that ``data`` names; None if it is data itself. A list of strings that all name files is refused as ``against``, where
    nothing in the result would show that it was taken for texts."""
    if isinstance(data, (str, os.PathLike)):
        return [_word(data)]
    # A list of str is a list of texts. Paths in lists are recognized by their type only.
    if isinstance(data, (list, tuple)) and data:
        if all(isinstance(item, os.PathLike) for item in data):
            return [_word(item) for item in data]
        if all(isinstance(item, str) and len(item) < _MAX_NAME and os.path.exists(item) for item in data):
            if is_against:
                raise TypeError(
                    f"the strings of against name files or directories, for example {data[0]}: pass pathlib.Path to read them, or texts as dicts"
                )
            warn([f"these strings are taken for texts, and all of them name files, for example {data[0]}: to read files, pass pathlib.Path"])
    return None


def positional(names: Iterable[str]) -> list[str]:
    """Return arguments that are names, even if they begin with a dash."""
    return [f"./{name}" if name.startswith("-") else name for name in names]
