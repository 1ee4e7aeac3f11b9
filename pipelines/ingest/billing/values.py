"""Texts of a csv bill into typed values, a column of a batch at a time; none passes through a float."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute

from pipelines.base.parse import parse_json

# Its functions are created at import, so a type checker does not know them.
pc: Any = pyarrow.compute

# AWS leaves a missing value empty; tools that rewrite bills write the others.
MISSING = ("", "None", "NULL", "null")
NUMBER = pa.decimal128(20, 10)
TIME = pa.timestamp("us")
# Seconds from 1970 to the first moment of year 1, and to the last of year 9999: no other time can be shown.
CALENDAR = -62_135_596_800, 253_402_300_800
_ZONED = pa.timestamp("us", "UTC")
MAP = pa.map_(pa.string(), pa.string())

# A double printed in full has 17 digits, so 27 places lose none of a number above 1e-10.
_EXACT = pl.Decimal(38, 27)
_PLACES = 10


def numbers(texts: pa.Array) -> pa.Array:
    """Decimal numbers of 10 places, halves rounded away from zero; null for invalid texts."""
    try:
        # All within 10 places, as AWS writes them: Arrow reads them as they stand or not at all.
        return texts.cast(NUMBER)
    except pa.ArrowInvalid:
        rounded = _exact(texts).round(_PLACES, mode="half_away_from_zero")
        return rounded.cast(pl.Decimal(20, _PLACES), strict=False).to_arrow().cast(NUMBER)


def total(texts: pa.Array) -> Decimal:
    """The sum of decimal numbers with every digit they have; other texts count as nothing."""
    exact = _exact(texts).to_arrow().cast(pa.decimal256(76, 27))
    return pc.sum(exact).as_py() or Decimal(0)


def times(texts: pa.Array) -> pa.Array:
    """Naive UTC timestamps from ISO texts with or without a zone; null for invalid texts."""
    try:
        # All with a zone, as AWS writes them.
        values = texts.cast(_ZONED).cast(TIME)
        first, last = (end * 1_000_000 for end in CALENDAR)
        found = pc.min_max(values.view(pa.int64())).as_py()
        if found["min"] is None or first <= found["min"] <= found["max"] < last:
            return values
    except pa.ArrowInvalid:
        pass
    return _by_distinct(texts, _time, TIME)


def maps(texts: pa.Array) -> pa.Array:
    """Maps of text to text from JSON objects, without entries that have no value; null for invalid texts.

    Of a key that an object has twice, the last value counts (`repeats_a_key`).
    """
    return _by_distinct(texts, _entries, MAP)


def repeats_a_key(texts: pa.Array) -> pa.Array:
    """A mask of JSON objects that have a key twice, with two values."""
    return _by_distinct(texts, _repeats_a_key, pa.bool_())


def _exact(texts: pa.Array) -> pl.Series:
    return pl.Series(values=texts, dtype=pl.String).cast(_EXACT, strict=False)


def _by_distinct(texts: pa.Array, read: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    """Reads each distinct text once: a batch has many lines and few hours or tag sets."""
    coded = texts.dictionary_encode()
    return pa.array([read(text) for text in coded.dictionary.to_pylist()], kind).take(coded.indices)


@lru_cache(maxsize=4096)
def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    except (ValueError, OverflowError):
        # Outside of the calendar in UTC.
        return None


def _repeats_a_key(text: str) -> bool:
    # Objects of tags are flat: those without a repeated word before a colon need no parsing.
    names = [part.rpartition('"')[2] for part in text.replace(" ", "").split('":')[:-1]]
    if len(set(names)) == len(names):
        return False
    try:
        pairs = parse_json(text, object_pairs_hook=list)
    except ValueError:
        return False
    return isinstance(pairs, list) and len({json.dumps(pair) for pair in pairs}) > len({pair[0] for pair in pairs})


def _entries(text: str) -> Sequence[tuple[str, str]] | None:
    try:
        content = parse_json(text)
        # Half of a surrogate pair may be escaped, which is not text.
        json.dumps(content, ensure_ascii=False).encode()
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    return [(key, str(value)) for key, value in content.items() if str(value) not in MISSING]
