"""A Spark session with the requirements of its tasks: a Python with pyarrow, and this package."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lookalike
from lookalike._errors import BadInput, LookalikeError
from lookalike.spark import _task
from lookalike.spark._schemas import SCHEMAS
from lookalike.spark._types import DataFrame, SparkSession

__all__ = ["Cluster", "data_error_of_task"]

#: Setting for the maximum number of rows in an Arrow batch.
_MAX_ROWS_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"

#: Minimum number of rows in a batch, because each batch has a cost of its own.
_MIN_ROWS = 100

#: Folder that contains the package.
_ROOT = Path(lookalike.__file__).resolve().parent.parent


class Cluster:
    """A session whose tasks can call the kernels.

    The first cluster of a session runs a trial task, so a cluster that cannot run any is reported at once. If executors run in other
    processes than the driver, the package is sent as an archive: only pyarrow must be installed on them.
    """

    _ready: dict[str, list[str]] = {}
    #: By session: the number of calls of `batches` in progress, and the setting before the first of them.
    _limited: dict[str, tuple[int, int | None]] = {}
    _lock = threading.Lock()

    def __init__(self, session: SparkSession) -> None:
        if not hasattr(session, "createDataFrame") or not hasattr(session, "conf"):
            raise TypeError(f"session must be a session of Spark, not {type(session).__name__}")
        self.session = session
        self.is_connect = type(session).__module__.startswith("pyspark.sql.connect")
        master = session.conf.get("spark.master", "") or ""
        #: True if tasks run on this machine as this user, so that they see the files of the driver.
        self.is_local = not self.is_connect and master.startswith("local") and not master.startswith("local-cluster")
        with self._lock:
            name = self._name()
            # Under the lock: otherwise two threads could ship the package twice.
            if name not in self._ready:
                self._ready[name] = self._prepared()
            self.roots = self._ready[name]

    def _name(self) -> str:
        # On a server the application is not known; each session there has its own archives.
        if self.is_connect:
            return f"connect-{getattr(self.session, 'session_id', id(self.session))}"
        return f"classic-{self.session.sparkContext.applicationId}"

    def _prepared(self) -> list[str]:
        from pyspark.cloudpickle import register_pickle_by_value

        register_pickle_by_value(_task)
        if self.is_local:
            if not os.environ.get("PYSPARK_PYTHON"):
                # Spark would use the system's first `python3`, which may lack the packages that this one has.
                self.session.sparkContext.pythonExec = sys.executable
            roots = [os.fspath(_ROOT)]
        else:
            roots = [self._ship()]
        self._try(roots)
        return roots

    def _ship(self) -> str:
        """Send the package to the executors, and return the name of its folder there."""
        archive = _archive()
        if not self.is_connect and self.session.version.startswith("3."):
            self.session.sparkContext.addArchive(os.fspath(archive))
            return archive.name
        from pyspark.errors import UnsupportedOperationException

        try:
            self.session.addArtifacts(os.fspath(archive), archive=True)
        except UnsupportedOperationException:
            # Sail does not accept archives: the package must be installed there, which the first task checks.
            return os.fspath(_ROOT)
        return archive.name

    def _try(self, roots: list[str]) -> None:
        frame = self.session.range(1, numPartitions=1)
        task = _task.in_task(roots, lookalike.__version__, "probe", ())
        try:
            rows = frame.mapInArrow(task, SCHEMAS["probe"]).collect()
        except Exception as error:  # In Spark 3.5 not all errors are of Spark's own types.
            told = str(error)
            for name, remedy in [
                ("No module named 'pyarrow'", "install pyarrow for it on every machine, or name one that has it with PYSPARK_PYTHON"),
                ("No module named 'lookalike'", "install the package on every machine: it could not be shipped there"),
                ("PYTHON_VERSION_MISMATCH", "name the same version of Python with PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON"),
                ("Cannot run program", "name a Python that is there with PYSPARK_PYTHON"),
            ]:
                if name in told:
                    raise LookalikeError(f"the Python of the executors cannot run the kernels ({name}): {remedy}") from error
            raise LookalikeError(f"the executors cannot run the kernels: {_last_line(told)}") from error
        if not rows:
            raise LookalikeError("the executors gave no answer to a first task")

    def shuffle_partitions(self) -> int:
        """Return the number of partitions of a shuffle in Spark's settings."""
        told = self.session.conf.get("spark.sql.shuffle.partitions", None) or ""
        # Databricks also allows `auto`; 200 is Spark's default.
        return int(told) if told.isdecimal() else 200

    @contextlib.contextmanager
    def batches(self, rows: int) -> Iterator[None]:
        """Limit Arrow batches in the session to at most this many rows in the meantime. A smaller setting of the session stays."""
        name, rows = self._name(), max(_MIN_ROWS, rows)
        with self._lock:
            calls, own = self._limited.get(name) or (0, self._max_rows_per_batch())
            self._limited[name] = (calls + 1, own)
            if own is not None and not 0 < own <= rows:
                self._limit_batches(rows)
        try:
            yield
        finally:
            with self._lock:
                calls, own = self._limited.pop(name)
                if calls > 1:
                    self._limited[name] = (calls - 1, own)
                elif own is not None:
                    self._limit_batches(own)

    def _max_rows_per_batch(self) -> int | None:
        """Return the session's setting: None if the engine has no such setting; 0 or less means no limit."""
        told = self.session.conf.get(_MAX_ROWS_SETTING, None) or ""
        return int(told) if told.removeprefix("-").isdecimal() else None

    def _limit_batches(self, rows: int) -> None:
        from pyspark.errors import PySparkException

        # Some services do not allow changes of settings: a job then takes longer, with the same result.
        with contextlib.suppress(PySparkException):
            self.session.conf.set(_MAX_ROWS_SETTING, str(rows))

    def run(self, frame: DataFrame, call: str, *arguments: Any, schema: str | None = None) -> DataFrame:
        """Return the result of a function of ``lookalike.spark._kernels`` on the Arrow batches of each partition of ``frame``. ``schema`` is
        for functions whose columns depend on the frame."""
        task = _task.in_task(self.roots, lookalike.__version__, call, (*arguments,))
        return frame.mapInArrow(task, schema or SCHEMAS[call])


def _archive() -> Path:
    """Return the package as a zip file, with a name that depends on its contents."""
    files = sorted(
        path for path in (_ROOT / "lookalike").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    # A new folder, so that nobody else can put a package there.
    folder = tempfile.mkdtemp(prefix="lookalike-")
    # Kept until the end, because executors that start later ask the driver for it.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder, f"lookalike-{digest.hexdigest()}.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.relative_to(_ROOT).as_posix())
    return target


def _last_line(told: str) -> str:
    lines = [line.strip().removeprefix(": ") for line in told.splitlines() if line.strip() and not line.lstrip().startswith(("at ", "File "))]
    return lines[-1] if lines else told


def data_error_of_task(error: Exception) -> BadInput | None:
    """Return the kernel's error inside the error of a failed task, if it is about the data."""
    for line in str(error).splitlines():
        for name in ("lookalike.BadInput: ", "lookalike._errors.BadInput: "):
            _, found, told = line.partition(name)
            if found:
                return BadInput(told.strip())
    return None
