"""Checks that need nothing but the wheel. The argument is the command."""

import doctest
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lookalike as lk

assert not {"numpy", "pandas", "pyarrow", "polars"} & set(sys.modules), "imported without need"

for module in pkgutil.walk_packages(lk.__path__, "lookalike."):
    # These modules need the library in their name, or NumPy.
    if module.name.startswith(("lookalike.datasets", "lookalike.pandas", "lookalike.polars", "lookalike.compat.datasketch", "lookalike.spark")):
        continue
    failed, _ = doctest.testmod(importlib.import_module(module.name))
    assert not failed, module.name
assert not doctest.testmod(lk).failed

assert lk.dedup(["a b", "a b", "c"]).kept == ["a b", "c"]
assert lk.dedup([{"t": "a b"}, {"t": "a b"}], text="t").annotated()[1]["is_duplicate"] in (True, False)
assert len(lk.simhash(["a"])) == 1

command = sys.argv[1]


def run(*words, **options):
    return subprocess.run([command, *words], capture_output=True, text=True, check=False, **options)


assert run("--version").stdout == f"lookalike {lk.__version__}\n"
assert run("--nonsense").returncode == 2
with tempfile.TemporaryDirectory() as folder:
    pages = Path(folder, "pages.jsonl")
    pages.write_text("".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate("abca")))
    done = run("dedup", pages, "-o", Path(folder, "out"))
    assert done.returncode == 0, done.stderr
    assert "lookalike dedup" in json.loads(Path(folder, "out", "run.json").read_text())["command"]
    assert len(Path(folder, "out", "removed.jsonl").read_text().splitlines()) == 1
    assert run("dedup", Path(folder, "none"), "-o", Path(folder, "no")).returncode == 1

    # A command ignores what its caller ignores, as this one does if it runs in the background of a shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Ctrl-C: the command says what is left and exits with 130, like the program.
    waiting = subprocess.Popen(
        [command, "dedup", "-", "--format", "jsonl", "-o", Path(folder, "out2")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    # Signals are handled as soon as the folder of temporary files has an entry.
    deadline = time.monotonic() + 300
    while not list(Path(folder).glob("out2/*/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    waiting.send_signal(signal.SIGINT)
    try:
        _, told = waiting.communicate(timeout=300)
    finally:
        waiting.kill()
    assert waiting.returncode == 130, (waiting.returncode, told)
    assert "interrupted" in told, told

times = []
for _ in range(5):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "import lookalike"], check=True)
    middle = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    times.append((middle - start) - (time.perf_counter() - middle))
print(f"Python {sys.version.split()[0]}: import lookalike takes {min(times) * 1000:.0f} ms")
