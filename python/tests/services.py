"""Starts a service of the wheel under test."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lookalike as lk


@contextmanager
def running_service(data: Path) -> Iterator[str]:
    """Yields the URL of a service with this folder, which ends with the context."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(
        [sys.executable, "-m", "lookalike", "serve", "--data", data, "--snapshots", f"{data}-snapshots", "--listen", f"127.0.0.1:{port}"],
        stderr=subprocess.PIPE, text=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(running, lk.Client(url))
        yield url
    finally:
        running.terminate()
        running.communicate(timeout=30)
    assert running.returncode == 0


def _wait_for(running: subprocess.Popen[str], client: lk.Client) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            client.collections()
            return
        except lk.LookalikeError:
            if running.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(running.communicate()[1]) from None
            time.sleep(0.05)
