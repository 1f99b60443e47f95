"""Fixtures and helpers shared by the tests."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A shell starts programs in the background with Ctrl-C ignored, as scripts/test does, and the interpreter then raises nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

WORDS = "the a river stone bird light under over moves quickly slowly bright dark house road north south winter summer green".split()


def pages(count: int, seed: int = 1) -> list[str]:
    """Returns texts, many of which are near-duplicates or copies of each other."""
    draw = random.Random(seed)
    originals = [" ".join(draw.choices(WORDS, k=draw.randint(20, 60))) for _ in range(max(1, count // 3))]
    texts = []
    for _ in range(count):
        words = draw.choice(originals).split()
        if draw.random() < 0.7:
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        texts.append(" ".join(words))
    return texts


@pytest.fixture
def rows() -> list[dict[str, object]]:
    """Returns rows with ids, texts, a score and a language; some texts are missing or empty."""
    draw = random.Random(7)
    texts: list[str | None] = [*pages(200)]
    for at in range(0, 200, 40):
        texts[at] = None
        texts[at + 1] = ""
    return [
        {"id": f"d{at}", "text": text, "score": draw.randint(0, 9), "language": draw.choice(["en", "de"])}
        for at, text in enumerate(texts)
    ]


@pytest.fixture
def command():
    """Runs the command of the wheel in a separate process."""

    def run(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lookalike", *map(str, words)], capture_output=True, text=True, check=False, **options
        )

    return run


@pytest.fixture
def command_clusters(command, tmp_path: Path):
    """Returns the command's decisions about rows written as JSON lines: (survivor, id, reason) by id."""

    def clusters(rows: list[dict[str, object]], *words: str) -> dict[str, tuple[str, float, str]]:
        file, out = tmp_path / "rows.jsonl", tmp_path / "out"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = command("dedup", file, "-o", out, "--overwrite", "--quiet", *words)
        assert done.returncode == 0, done.stderr
        found = {}
        for line in (out / "clusters.jsonl").read_text(encoding="utf-8").splitlines():
            cluster = json.loads(line)
            for member in cluster["members"]:
                found[member["id"]] = (cluster["survivor"], member["similarity"], member["reason"])
        return found

    return clusters
