"""Python values as JSON, in the forms that the command gives to the same values in tables."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

__all__ = ["json_text"]

#: Types that pandas uses for missing values.
_MISSING = ("NaTType", "NAType")


def json_text(value: Any) -> str:
    """Return a value as JSON. Numbers that JSON lacks, such as NaN, become null. Raises ``TypeError`` for a value without a form."""
    try:
        try:
            return _ENCODER.encode(value)
        except ValueError:
            return _ENCODER.encode(_finite(value))
    except ValueError as error:
        # Python does not print integers of thousands of digits.
        raise TypeError(str(error)) from None
    except RecursionError:
        raise TypeError("a value contains itself, or has values within values at too many levels") from None


def _finite(value: Any) -> Any:
    """Return the value with None for numbers that JSON lacks, and with all its parts in forms that JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int)) else _finite(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value as one that JSON can represent, or that consists of such values."""
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    if isinstance(value, time):
        return _shortest(value.isoformat())
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, Decimal):
        return f"{value:f}" if value.is_finite() else None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="replace")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        # Arrays and numbers of NumPy and similar libraries. Times in nanoseconds would become integers, so convert them to microseconds.
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        return (value.astype(f"{kind}8[us]") if kind in ("m", "M") else value).tolist()
    raise TypeError(f"values of the type {type(value).__name__} have no form as JSON")


def _moment(value: datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return _shortest(value.isoformat()) + "Z"


def _shortest(text: str) -> str:
    """Return a time without trailing zeros in its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _duration(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    seconds, fraction = divmod(abs(micros), 1_000_000)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    if seconds or fraction or not (hours or minutes):
        parts.append(_shortest(f"{seconds}.{fraction:06}") + "S")
    return ("-" if micros < 0 else "") + "PT" + "".join(parts)


#: A single encoder for all values: `json.dumps` creates one for each.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
