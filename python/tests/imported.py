"""Checks that work where no other process can be started, as under emulation. The arguments are the folder of the wheel's packages, and one
of pages."""

import platform
import sys
import tempfile
from pathlib import Path

packages, pages = sys.argv[1:]
sys.path.insert(0, packages)

import lookalike as lk  # noqa: E402
from lookalike._command import main  # noqa: E402

assert Path(lk.__file__).is_relative_to(Path(packages).resolve()), lk.__file__
assert lk.dedup(["a b", "a b", "c"]).kept == ["a b", "c"]
assert len(lk.simhash(["a"])) == 1

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder, "out")
    sys.argv = ["lookalike", "dedup", pages, "-o", str(out)]
    assert main() == 0
    # These are the numbers in the tutorial.
    assert len((out / "kept.jsonl").read_bytes().splitlines()) == 18
    assert len((out / "removed.jsonl").read_bytes().splitlines()) == 11
print(f"Python {platform.python_version()} on {platform.machine()}: imported, a library and a command")
