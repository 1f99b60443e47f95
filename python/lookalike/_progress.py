"""Progress of jobs: a line on a terminal or in a notebook, or calls of a user's function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Callback = Callable[[str, int, int], Any]
Observer = Callable[[str, int, int, bool], None]


@contextmanager
def observer(progress: Any) -> Iterator[Observer | None]:
    """Return the function that a job calls while it runs."""
    if progress == "auto":
        progress = _is_watched()
    if callable(progress):
        yield lambda stage, done, total, counts_bytes: progress(stage, done, total)
    elif progress is True:
        line = _Line()
        try:
            yield line.show
        finally:
            line.clear()
    elif progress is False or progress is None:
        yield None
    else:
        raise TypeError(f'progress must be "auto", True, False or a function of stage, done and total, not {progress!r}')


def _is_watched() -> bool:
    """Return true if somebody sees standard error: on a terminal, or in a notebook."""
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _in_notebook() -> bool:
    # Not imported, because in a notebook it is already loaded.
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and "IPKernelApp" in running.config


class _Line:
    """A line that is overwritten."""

    def __init__(self) -> None:
        self._width = 0
        self._start = time.monotonic()

    def show(self, stage: str, done: int, total: int, counts_bytes: bool) -> None:
        share = f" {100 * min(done, total) // total:3d} %" if total else ""
        number = f"{done / 2**20:,.0f} MiB" if counts_bytes else f"{done:,}"
        self._draw(f"lookalike: {stage}{share}, {number}, {time.monotonic() - self._start:.0f} s")

    def clear(self) -> None:
        if self._width:
            self._draw("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _draw(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
