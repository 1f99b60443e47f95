"""Starts a service of the wheel under test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_service(data: Path) -> Iterator[str]:
    """Yields the URL of a service with this folder, which ends with the context."""
    running = subprocess.Popen(
        [sys.executable, "-m", "lookalike", "serve", "--data", data, "--snapshots", f"{data}-snapshots", "--listen", "127.0.0.1:0", "--queue-timeout", "20"],
        stderr=subprocess.PIPE, text=True,
    )
    try:
        yield f"http://{_address(running)}"
    finally:
        running.terminate()
        running.communicate(timeout=120)
    assert running.returncode == 0


def _address(running: subprocess.Popen[str]) -> str:
    """Returns the address at which the service listens, as soon as its log says so."""
    assert running.stderr is not None
    told = []
    for line in running.stderr:
        told.append(line)
        event = json.loads(line)
        if event["event"] == "listening":
            return event["address"]
    raise AssertionError("".join(told))
