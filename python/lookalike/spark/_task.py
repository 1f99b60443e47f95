"""The function that Spark sends to its tasks. It is pickled with its code and finds the package itself, so executors need not have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def in_task(roots: list[str], version: str | None, call: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a function that calls ``call`` of :mod:`lookalike.spark._kernels` with its own arguments followed by ``arguments``.

    ``roots`` are folders that may contain the package; relative ones are archives that Spark unpacked. The function may only use what is
    passed to it: this module does not exist where it runs.
    """

    # Without annotations, from which Spark would infer the kind of the function.
    def run(*given):  # type: ignore[no-untyped-def]
        import gc
        import importlib
        import os
        import sys

        places = [os.getcwd()]
        try:
            from pyspark import SparkFiles

            places.insert(0, SparkFiles.getRootDirectory())
        except Exception:  # Outside of Spark there are no files of Spark.
            pass
        for root in roots:
            for place in [root] if os.path.isabs(root) else [os.path.join(place, root) for place in places]:
                if os.path.isdir(os.path.join(place, "lookalike")) and place not in sys.path:
                    sys.path.insert(0, place)
        package = importlib.import_module("lookalike")
        if version is not None and package.__version__ != version:
            raise RuntimeError(
                f"the executors have lookalike {package.__version__} and the driver {version}: install one version on all of them, or none"
            )
        is_first = "lookalike.spark._kernels" not in sys.modules
        kernels = importlib.import_module("lookalike.spark._kernels")
        if is_first:
            # Spark collects garbage after each task. Objects of modules live as long as the process, and scanning them takes as long as a
            # small task.
            gc.freeze()
        return getattr(kernels, call)(*given, *arguments)

    return run
