"""Types of pyspark for annotations. The library itself is imported where it is used, so this package can be imported without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
else:
    Column = DataFrame = SparkSession = Any

__all__ = ["Column", "DataFrame", "SparkSession"]
