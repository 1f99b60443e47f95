"""Executors in separate processes: the package is shipped to them, workers die, the driver dies, and the result is the same."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from conftest import found_lines, settings
from test_dedup import SCHEMA, pages

import lookalike.spark as lks

HERE = Path(__file__).parent

#: A program that deduplicates a file of JSON lines on a cluster and writes the bytes of `clusters.jsonl`.
PROGRAM = """
import json, os, sys
from conftest import found_lines
from pyspark.sql import SparkSession
rows, schema, out, work, options = sys.argv[1:6]
builder = SparkSession.builder
for name, value in json.loads(sys.argv[6]).items():
    builder = builder.config(name, value)
remote = os.environ.get("TEST_REMOTE")
session = builder.remote(remote).getOrCreate() if remote else builder.getOrCreate()
import lookalike.spark as lks
if "pause" in os.environ.get("TEST_MODE", ""):
    # Stays in the middle of a stage until it is killed.
    import time
    from lookalike.spark import _dedup
    def pause(*given, **named):
        open(out + ".paused", "w").close()
        time.sleep(600)
    _dedup._Stages._clusters = pause
if "hold" in os.environ.get("TEST_MODE", ""):
    # Tasks that group documents wait until the test says that a worker is lost. They hold all cores: other tasks of their stage begin after that.
    from lookalike.spark import _task
    in_task = _task.in_task
    def held(roots, version, call, arguments):
        inner = in_task(roots, version, call, arguments)
        if call != "group":
            return inner
        def run(*given):
            import os, time
            open(out + ".reading", "w").close()
            while not os.path.exists(out + ".lost"):
                time.sleep(0.05)
            return inner(*given)
        return run
    _task.in_task = held
result = lks.dedup(session.read.schema(schema).json(rows), id="id", work_dir=work, **json.loads(options))
with open(out, "wb") as file:
    file.write(found_lines(result))
session.stop()
"""


def run(rows: Path, out: Path, work: Path, options: dict, conf: dict[str, str], **environment: str):
    """Starts the program in a process group of its own, which can be killed."""
    call = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(rows), SCHEMA, str(out), str(work), json.dumps(options), json.dumps(conf)]
    known = {**os.environ, "PYTHONPATH": str(HERE), "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    return subprocess.Popen(call, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def finished(process: subprocess.Popen, seconds: float = 540) -> None:
    try:
        told, _ = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    told = "\n".join(line for line in told.splitlines() if not line.startswith(("\tat ", "\t...")))
    assert process.returncode == 0, told[-6000:]


def _wait_for(path: Path, process: subprocess.Popen) -> None:
    """Waits until the process has made a file."""
    deadline = time.monotonic() + 540
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if not path.exists():
        finished(process, 5)
        raise AssertionError(f"the process ended and made no {path.name}")


@pytest.fixture
def written(tmp_path):
    def write(rows: list[dict]) -> Path:
        path = tmp_path / "input.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def bare_python(tmp_path):
    """Returns a Python that has the dependencies of pyspark but not this package."""
    import pyspark

    there = Path(pyspark.__file__).parents[1]
    site = tmp_path / "site"
    site.mkdir()
    for entry in there.iterdir():
        if not entry.name.startswith(("lookalike", "__pycache__")) and not entry.name.endswith(".pth"):
            (site / entry.name).symlink_to(entry)
    python = tmp_path / "bare-python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {sys._base_executable} -S "$@"\n')  # type: ignore[attr-defined]
    python.chmod(0o755)
    missing = subprocess.run([python, "-c", "import lookalike"], capture_output=True, text=True, check=False, env={})
    assert "No module named 'lookalike'" in missing.stderr
    return python


OPTIONS = {"threshold": 0.6, "shingle": "words:2"}
WORDS = ["--threshold=0.6", "--shingle=words:2"]


def test_a_session_of_connect_gives_the_same(written, tmp_path, command_lines, bare_python):
    pytest.importorskip("grpc")
    rows = pages(200, seed=9)
    conf = settings()
    del conf["spark.master"]
    process = run(
        written(rows), tmp_path / "clusters", tmp_path / "work", OPTIONS, conf, TEST_REMOTE="local[2]", PYSPARK_PYTHON=str(bare_python)
    )
    finished(process)
    assert (tmp_path / "clusters").read_bytes() == command_lines(rows, *WORDS)


def test_another_driver_goes_on_where_one_was_killed(spark, written, tmp_path, command_lines):
    rows = pages(200, seed=10)
    path, out, work = written(rows), tmp_path / "clusters", tmp_path / "work"
    process = run(path, out, work, OPTIONS, settings(), TEST_MODE="pause")
    _wait_for(Path(f"{out}.paused"), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    result = lks.dedup(spark.read.schema(SCHEMA).json(str(path)), id="id", work_dir=work, **OPTIONS)
    assert found_lines(result) == command_lines(rows, *WORDS)
    assert [cost["stage"] for cost in result.costs if cost["is_new"]] == ["clusters"]


class Standalone:
    """A Spark master and two workers on this machine."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder = folder
        self.home = Path(pyspark.__file__).parent
        self.processes: list[subprocess.Popen] = []
        self.logs = folder / "logs"
        self.logs.mkdir()
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = self._wait("master", "Starting Spark master at ")
        self.workers = []
        for number in range(2):
            name = f"worker-{number}"
            work = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "768m", "--work-dir", str(folder / name)]
            self.workers.append(self._start(name, "org.apache.spark.deploy.worker.Worker", *work, self.url))
        for number in range(2):
            self._wait(f"worker-{number}", "Successfully registered with master")

    def _start(self, name: str, java_class: str, *words: str) -> subprocess.Popen:
        call = [str(self.home / "bin" / "spark-class"), java_class, *words]
        local = self.folder / f"local-{name}"
        local.mkdir()
        known = {
            **os.environ, "SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(local),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with open(self.logs / name, "w") as log:
            process = subprocess.Popen(call, env=known, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)
        return process

    def _wait(self, name: str, told: str) -> str:
        deadline = time.monotonic() + 540
        while time.monotonic() < deadline:
            for line in (self.logs / name).read_text().splitlines():
                if told in line:
                    return line.partition(told)[2].split()[0]
            time.sleep(0.2)
        raise AssertionError((self.logs / name).read_text()[-3000:])

    def with_last_shuffle(self) -> int:
        """Returns the number of a worker that has files of the last shuffle."""
        found = [
            (int(path.name.split("_")[1]), number)
            for number in range(len(self.workers))
            for path in (self.folder / f"local-worker-{number}").rglob("shuffle_*_*_*.data")
        ]
        return max(found)[1]

    def lose(self, number: int) -> None:
        """Kills a worker with its executors and deletes everything that they wrote for others, before it returns."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        while processes := self._processes(self.folder / f"worker-{number}"):
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)
        self.workers[number].wait()
        shutil.rmtree(self.folder / f"local-worker-{number}")

    @staticmethod
    def _processes(folder: Path) -> list[int]:
        """Returns the processes that work in a folder or have it in their arguments."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if str(folder) in (process / "cmdline").read_text() or os.readlink(process / "cwd").startswith(str(folder)):
                    found.append(int(process.name))
            except OSError:
                # The process has ended meanwhile, or belongs to another user.
                continue
        return found

    def stop(self) -> None:
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@pytest.fixture
def standalone(tmp_path):
    cluster = Standalone(tmp_path)
    yield cluster
    cluster.stop()


def test_executors_without_the_package_get_it_and_one_that_dies_with_its_shuffle_changes_nothing(
    standalone, written, tmp_path, command_lines, bare_python
):
    rows = pages(2_000, seed=8)
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        **settings(standalone.url),
        "spark.executor.memory": "768m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{events}",
        "spark.eventLog.compress": "false",
        # Without these settings the files of the dead worker are read from the shared disk, or requested again and again.
        "spark.shuffle.readHostLocalBlocks": "false",
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "1s",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    out = tmp_path / "clusters"
    process = run(
        written(rows), out, tmp_path / "work", {**OPTIONS, "partitions": 8}, conf, PYSPARK_PYTHON=str(bare_python), TEST_MODE="hold"
    )
    try:
        # Each executor has one core, so two of the eight tasks of the stage wait, and at least six miss the files of the worker.
        _wait_for(Path(f"{out}.reading"), process)
        standalone.lose(standalone.with_last_shuffle())
    finally:
        Path(f"{out}.lost").touch()
        finished(process)
    assert out.read_bytes() == command_lines(rows, *WORDS)
    told = "".join(path.read_text() for path in events.rglob("*") if path.is_file() and not path.name.startswith("."))
    assert "FetchFailed" in told, "no task missed the files of the dead worker: the test tested nothing"
    attempts = [json.loads(line) for line in told.splitlines() if '"SparkListenerStageSubmitted"' in line]
    assert any(event["Stage Info"]["Stage Attempt ID"] > 0 for event in attempts)
