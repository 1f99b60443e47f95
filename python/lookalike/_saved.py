"""Output directories of jobs."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._errors import LookalikeError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TemporaryFolder", "copy_results", "kept_files", "refuse_full"]

_SUMMARY = "run.json"
#: A larger file is not a summary of a job, as in the command.
_MAX_BYTES = 64 << 20


class TemporaryFolder:
    """A folder that is removed with the last object that uses it, but only in the process that created it, because a forked process has
    copies of all objects."""

    def __init__(self, parent: str | os.PathLike[str] | None) -> None:
        import shutil
        import tempfile
        from multiprocessing import util

        self.name = tempfile.mkdtemp(prefix="lookalike-", dir=parent)
        # Not `TemporaryDirectory`, which warns if nobody closes it, and results need not be closed. Not `weakref.finalize`, which would
        # also remove the folder in a forked process, and does nothing at the end of a pool's worker.
        util.Finalize(self, shutil.rmtree, (self.name,), {"ignore_errors": True}, exitpriority=0)

    def ensure(self) -> str:
        """Return its path, or raise an error if it is gone."""
        if not os.path.isdir(self.name):
            raise LookalikeError(f"{self.name}: the folder of the result is gone: run the job again, and save() what has to last")
        return self.name


def refuse_full(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that contains anything, unless it may be overwritten."""
    if not overwrite and folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder}: there is something in it: name another folder, or say overwrite=True")


def copy_results(source: str | os.PathLike[str], folder: str | os.PathLike[str], overwrite: bool, command: str) -> Path:
    """Copy the output directory of a command, by its rules for older results and files of others, and return the path of the copy."""
    from pathlib import Path

    target = Path(folder)
    refuse_full(target, overwrite)
    real, own = target.resolve(), Path(source).resolve()
    if real == own or own in real.parents or real in own.parents:
        raise ValueError(f"{folder}: the result itself is there: name another folder")
    _lookalike.copy_results(command, source, target, overwrite)
    return target


def kept_files(folder: Path) -> list[Path] | None:
    """The files of the documents that an earlier job kept; None for a folder without results of ``dedup``.

    Raises:
        LookalikeError: a file that the summary names is missing, or was not written as records.
    """
    summary = _summary(folder / _SUMMARY)
    if summary is None:
        return None
    found = []
    for name in summary["kept_in"]:
        # Only plain names within the folder, as jobs write them; anything else was put there by somebody else.
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise LookalikeError(f"{folder / _SUMMARY}: kept_in names {name!r}, which is no result in this folder")
        path = folder / name
        if path.is_dir():
            found += _tables(path)
        elif path.exists():
            found.append(path)
        elif name != "kept":
            raise LookalikeError(f"{path}: the kept documents that {_SUMMARY} names are gone: bring the file back, or name another result")
        # If the documents are files, there is only a folder if one of them was kept.
    return found


def _summary(path: Path) -> dict[str, Any] | None:
    """Return the summary of a ``dedup`` job, or None if the file is not one."""
    try:
        # Opening a pipe of that name would block.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            summary = json.loads(file.read(_MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(summary, dict) or summary.get("program") != "lookalike" or not isinstance(summary.get("kept_in"), list):
        return None
    return summary


def _tables(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        if path.suffix != ".parquet":
            raise LookalikeError(f"{path}: the kept documents are files: compare them with files, dedup(paths, against=folder)")
    return files
