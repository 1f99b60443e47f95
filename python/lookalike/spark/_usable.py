"""Values of documents that a rule for survivors cannot use, counted in the same way as by the job of one machine."""

from __future__ import annotations

import json
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lookalike import _lookalike
from lookalike._errors import BadInput

__all__ = ["UsableValues"]


class UsableValues:
    """Counters of values that are missing or unusable for the rule in ``words``.

    The job of one machine judges each value, in documents with one text each: it has the only parser of dates and numbers.
    """

    def __init__(self, words: list[str]) -> None:
        rule = next((word for word in words if word.startswith("--keep=")), "")
        fields = [part for part in rule.removeprefix("--keep=").split(",") if ":" in part]
        #: The rule, with the name that the column has here.
        self._rule = fields[0].partition(":")[0] + ":value" if fields else None
        self._missing = 0
        self._unusable = 0
        self._first: str | None = None

    def count(self, batch: pa.RecordBatch) -> None:
        """Count the values of new documents in the column ``value``, if there is one."""
        if self._rule is None or "value" not in batch.schema.names:
            return
        values = batch.column("value").filter(pc.invert(batch.column("against")))
        missing = values.null_count
        if len(values) == missing:
            self._missing += missing
            return
        if pa.types.is_integer(values.type) and self._rule.startswith(("max:", "min:")):
            self._missing += missing
            return
        try:
            counts = self._check_values(values)
        except BadInput as error:
            # No value can be used, which is an error in that job; in other partitions some may be usable.
            counts = {"keep_missing": missing, "keep_unusable": len(values) - missing, "keep_unusable_first": _example(str(error))}
        self._missing += counts["keep_missing"]
        self._unusable += counts["keep_unusable"]
        first = _without_record_number(counts["keep_unusable_first"])
        # The smallest one, not the first, so that it does not depend on the order.
        self._first = min(filter(None, (self._first, first)), default=None)

    def counts(self) -> dict[str, list[Any]]:
        """Return the counts as columns of one row."""
        return {"keep_missing": [self._missing], "keep_unusable": [self._unusable], "keep_unusable_first": [self._first]}

    def _check_values(self, values: pa.Array) -> dict[str, Any]:
        number = len(values)
        rows = pa.record_batch({"id": pa.array(map(str, range(number)), pa.string()), "text": pa.array(["x"] * number), "value": values})
        columns = {"text": ["text"], "id": "id", "order": "value", "category": None, "site": False, "html": False, "page": None, "fields": []}
        call = ["dedup", "-", f"--keep={self._rule}", "--method=copies", "--threads=1", "--output=./-"]
        reader = pa.RecordBatchReader.from_batches(rows.schema, [rows])
        with tempfile.TemporaryDirectory(prefix="lookalike-") as folder:
            documents = {"rows": reader, "columns": columns, "count": number}
            _, _, told, _ = _lookalike.dedup_documents(call, documents, None, folder)
        return json.loads(told)[0]  # type: ignore[no-any-return]


def _example(told: str) -> str | None:
    """Return the value that an error names, and the reason why it cannot be used."""
    _, found, rest = told.partition("the first: ")
    return rest.split(": max: and min:")[0].split(": newest: needs")[0] if found else None


def _without_record_number(first: str | None) -> str | None:
    """Return the message without the number of the record, which only counts within a batch."""
    return first.partition(": ")[2] if first and first.startswith("documents, record") else first
