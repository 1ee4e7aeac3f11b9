"""Random damage to an input: bytes, words, JSON values, XML, cells and columns. The same seed gives the same damage."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable
from typing import Any

import polars as pl

# What a value may turn into: limits of types, spellings of nothing, and text that means something elsewhere.
WORDS = (
    "", "0", "-1", "-0", "1e308", "-1e400", "NaN", "Infinity", "1e-320", "9" * 40, "0x1f", "1,5", "1_000", "null",
    "true", "None", "٣", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-13-45", "2026-07-01",
    "2026-07-01T10:00:00",
    "2026-07-01T25:00:00+99:99", "1782900000000000", "it's", "$(id)", "../../x", "\x00", "\ufeff", "\u202e", "é" * 300,
    "=1+1", "<b>", "{", "[", '"', "\\", "x" * 70_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, -(2**63) - 1, 10**40, 1e308, float("nan"), float("-inf"), [], {}, [[]], {"": None},
    ["a"] * 3, "\ud800", *WORDS,
)  # fmt: skip
_WORD = re.compile(rb"[A-Za-z0-9_.:+/-]+")
_ELEMENT = re.compile(rb"<(\w+)[^>/]*>")
Mutation = Callable[[bytes, random.Random], bytes]


def mutated(name: str, data: bytes, chance: random.Random) -> bytes:
    """The content of the file `name`, damaged in one to three places."""
    if name.endswith(".gz") and chance.random() < 0.8:
        return gzip.compress(mutated(name.removesuffix(".gz"), gzip.decompress(data), chance), mtime=0)
    for _ in range(chance.choice((1, 1, 2, 3))):
        data = chance.choice(_fitting(name, data))(data, chance)
    return data


def _fitting(name: str, data: bytes) -> tuple[Mutation, ...]:
    if name.endswith(".parquet") and data[:4] == data[-4:] == b"PAR1":
        return (_bytes, _column, _column, _column)
    if name.endswith((".parquet", ".gz")):
        return (_bytes,)
    if data.lstrip()[:1] in (b"{", b"["):
        return (_bytes, _word, _json, _json, _json)
    if data.lstrip()[:1] == b"<":
        return (_bytes, _word, _element, _element, _element)
    return (_bytes, _word, _cells, _cells) if b"," in data[:200] or b"|" in data[:200] else (_bytes, _word, _word)


def _bytes(data: bytes, chance: random.Random) -> bytes:
    at, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
    match chance.randrange(9):
        case 0:
            return data[:at]
        case 1:
            return data[at:]
        case 2:
            return data[:at] + data[end:]
        case 3:
            return data[:end] + data[at:]
        case 4:
            return data[:at] + chance.randbytes(chance.choice((1, 4, 64))) + data[at:]
        case 5:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 6:
            return chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"\x00")) + data
        case 7:
            return data.replace(b"\n", b"\r\n")
    return data * 2


def _word(data: bytes, chance: random.Random) -> bytes:
    words = [*_WORD.finditer(data)]
    if not words:
        return _bytes(data, chance)
    word, other = chance.choice(words), chance.choice(words)
    new = other[0] if chance.random() < 0.3 else chance.choice(WORDS).encode()
    return data[: word.start()] + new + data[word.end() :]


def _json(data: bytes, chance: random.Random) -> bytes:
    """Of one value of JSON, or of one line of JSON lines."""
    try:
        return _dumped(_changed(json.loads(data), chance))
    except ValueError:
        lines = data.splitlines(keepends=True)
        at = chance.randrange(len(lines) or 1)
    try:
        lines[at] = _dumped(_changed(json.loads(lines[at]), chance)) + b"\n"
    except (ValueError, IndexError):
        return _word(data, chance)
    return b"".join(lines)


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()


def _changed(value: Any, chance: random.Random) -> Any:
    """The value with one of those in it replaced, removed, doubled, wrapped or under another name."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.15:
        return chance.choice((chance.choice(VALUES), [value], {"value": value}, str(value), None))
    held: list[tuple[Any, Any]] = list(value.items() if isinstance(value, dict) else enumerate(value))
    at = chance.randrange(len(held))
    key, inner = held[at]
    action = chance.randrange(8)
    if action == 0:
        del held[at]
    elif action == 1:
        held.append((chance.choice(WORDS), inner))
    elif action == 2:
        held[at] = (key, held[chance.randrange(len(held))][1])
    elif action == 3:
        held[at] = (chance.choice(WORDS), inner)
    else:
        held[at] = (key, _changed(inner, chance))
    return {str(name): one for name, one in held} if isinstance(value, dict) else [one for _, one in held]


def _element(data: bytes, chance: random.Random) -> bytes:
    """Of XML: an element lost, doubled, emptied, or with another text."""
    found = [*_ELEMENT.finditer(data)]
    if not found:
        return _word(data, chance)
    name = chance.choice(found)[1]
    start = chance.choice([one.start() for one in found if one[1] == name])
    end = data.find(b"</" + name + b">", start)
    if end < 0:
        return data[:start] + data[data.index(b">", start) + 1 :]
    inner, after = data.index(b">", start) + 1, end + len(name) + 3
    match chance.randrange(4):
        case 0:
            return data[:start] + data[after:]
        case 1:
            return data[:after] + data[start:]
        case 2:
            return data[:inner] + data[end:]
    return data[:inner] + chance.choice(WORDS).encode() + data[end:]


def _cells(data: bytes, chance: random.Random) -> bytes:
    """Of a table in text: a cell, a row, a column or its name."""
    mark = "|" if b"|" in data[:200] else ","
    try:
        rows = list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=mark))
    except (ValueError, csv.Error):
        return _word(data, chance)
    rows = [row for row in rows if row]
    if not rows:
        return _bytes(data, chance)
    column, line = chance.randrange(len(rows[0])), chance.randrange(len(rows))
    match chance.randrange(8):
        case 0:
            rows = [row[:column] + row[column + 1 :] for row in rows]
        case 1:
            rows[0][column] = chance.choice((*WORDS, rows[0][0]))
        case 2:
            rows[line].append(chance.choice(WORDS))
        case 3:
            rows.insert(line, rows[chance.randrange(len(rows))])
        case 4:
            rows = rows[:1]
        case _:
            row = rows[chance.randrange(1, len(rows))] if len(rows) > 1 else rows[0]
            if row:
                row[column % len(row)] = chance.choice(WORDS)
    out = io.StringIO()
    csv.writer(out, delimiter=mark, lineterminator="\n").writerows(rows)
    return out.getvalue().encode(errors="surrogatepass")


def _column(data: bytes, chance: random.Random) -> bytes:
    """Of a Parquet file: another type, name or value, nothing, or no row."""
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        # Damaged before.
        return _bytes(data, chance)
    name = chance.choice(frame.columns) if frame.columns else ""
    match chance.randrange(7):
        case 0:
            frame = frame.drop(name, strict=False)
        case 1:
            frame = frame.rename({name: chance.choice(WORDS)}, strict=False) if name else frame
        case 2:
            frame = frame.with_columns(pl.lit(None).alias(name))
        case 3:
            kind = chance.choice((pl.String, pl.Float64, pl.Int64, pl.Boolean, pl.Date, pl.Binary, pl.List(pl.Int8)))
            frame = frame.with_columns(pl.lit(None, dtype=kind).alias(name))
        case 4:
            value = chance.choice((float("nan"), 1e308, float("-inf"), 2**62, "x" * 70_000, "\x00", b"\xff"))
            frame = frame.with_columns(pl.lit(value).alias(name))
        case 5:
            frame = frame.clear()
        case 6:
            frame = pl.concat([frame, frame])
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()
