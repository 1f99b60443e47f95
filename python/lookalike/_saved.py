"""Folders of results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["copy_results"]


def copy_results(source: str | os.PathLike[str], folder: str | os.PathLike[str], overwrite: bool) -> Path:
    """Copy a folder of results, and return the path of the copy."""
    import shutil
    from pathlib import Path

    target = Path(folder)
    if target.exists() and any(target.iterdir()) and not overwrite:
        raise FileExistsError(f"{target}: there is something in it: name another folder, or say overwrite=True")
    if target.exists() and overwrite:
        for name in os.listdir(source):
            old = target / name
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    # The summary comes last: a folder with it is whole.
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=lambda *_: ["run.json"])
    shutil.copy2(Path(source) / "run.json", target / "run.json")
    return target
