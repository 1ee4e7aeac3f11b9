"""The one SELECT that shows stored deliveries of any kind as lines of the normalized bill."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.base.groups import grouped
from pipelines.base.sql import identifier, quoted
from pipelines.ingest.billing.columns import CUR, MONEY, Column, ColumnList, Delivered, RawFile, Source, TagKey
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.tags import FALLBACKS, lookups, spellings, tag_json

# Arrow's floats of less than 64 bits: cast straight to a decimal, an engine rounds in their few digits.
_SHORT = ("float", "halffloat")
# What we call a delivered tag, in the order of the normalized columns.
TAG_NAMES = ("run_id", "owner", "team")


@dataclass(frozen=True)
class RawSelect:
    """A SELECT in DuckDB's dialect over `views`, each to be created by `engine.scan_files` first."""

    sql: str
    views: dict[str, tuple[Path, ...]]
    warnings: tuple[str, ...]


def raw_select(
    deliveries: Sequence[RawDelivery], tags: Mapping[str, Sequence[str]], listed: ColumnList = CUR
) -> RawSelect:
    """The lines of deliveries under the columns of the list all are of; a column a file lacks is a typed NULL.

    `tags` gives the accepted tag keys for each of run_id, owner and team. Costs are DECIMAL(20,10), times
    naive UTC; an empty text is NULL. `warnings` are values read as missing, and tags with several spellings.
    """
    parts: list[str] = []
    views: dict[str, tuple[Path, ...]] = {}
    warnings: dict[str, None] = {}
    for raw in deliveries:
        warnings.update(dict.fromkeys(raw.warnings))
        for number, group in enumerate(alike(raw.files), 1):
            first = group[0]
            tried = {name: lookups(first.tag_keys, tags.get(name, ()), FALLBACKS[name]) for name in TAG_NAMES}
            for file in group:
                for name, keys in tried.items():
                    warnings.update(dict.fromkeys(spellings(file, name, keys)))
            view = f"bill_{raw.delivery.fingerprint[:16]}_{number}"
            views[view] = tuple(map(raw.path, group))
            parts.append(f"select\n{_columns(raw, group, tried, listed)}\nfrom {view}{_delivered(group)}")
    return RawSelect("\nunion all\n".join(parts) or _nothing(listed), views, tuple(warnings))


def alike(files: Sequence[RawFile]) -> list[list[RawFile]]:
    """Files with the same columns and tags can be read as one."""
    return list(grouped(files, lambda file: (file.columns, file.tag_keys)).values())


def _columns(
    raw: RawDelivery, group: Sequence[RawFile], tried: Mapping[str, Sequence[TagKey]], listed: ColumnList
) -> str:
    delivery, first = raw.delivery, group[0]
    found = listed.layout(first.columns, first.key)
    named = {
        "source_name": quoted(delivery.source),
        "delivery_id": quoted(delivery.delivery_id),
        "billing_period": quoted(delivery.billing_period),
        "source_file": quoted(first.key) if len(group) == 1 else "delivered_key",
        "source_row": "cast(file_row_number as bigint)",
    }
    for column in listed.columns:
        named[column.name] = _value(column, found.sources[column.name], first.columns)
    for name in TAG_NAMES:
        filled = (_filled(tag.column, tag.key if tag.in_map else None) for tag in tried[name])
        # A team of spaces is none; a source may record such a run.
        if name == "team":
            filled = (f"case when trim({value}) <> '' then {value} end" for value in filled)
        named[f"tag_{name}"] = _first(filled)
    named["tag_json"] = tag_json(first.tag_keys)
    return ",\n".join(f"    {value} as {name}" for name, value in named.items())


def _value(column: Column, sources: Sequence[Source], columns: Sequence[Delivered]) -> str:
    found = [columns[source.position] for source in sources]
    if column.type == "VARCHAR":
        if column.takes_any_type:
            return _first(
                _filled(held.name, None)
                if held.form in ("text", "any")
                else f"cast(to_json({identifier(held.name)}) as varchar)"
                for held in found
            )
        return _first(_filled(held.name, source.key) for held, source in zip(found, sources, strict=True))
    kind = "decimal(20, 10)" if column.type == MONEY else column.type.lower()
    values = [
        f"cast({identifier(held.name)} as double)" if held.type in _SHORT else identifier(held.name) for held in found
    ]
    inner = f"coalesce({', '.join(values)})" if len(values) > 1 else next(iter(values), "null")
    # Values read as missing were reported when the file was converted.
    read = "cast" if column.refuses or column.type != MONEY else "try_cast"
    return f"{read}({inner} as {kind})"


def _filled(column: str, key: str | None) -> str:
    value = identifier(column) if key is None else f"{identifier(column)}[{quoted(key)}]"
    return f"nullif({value}, '')"


def _first(values: Iterator[str]) -> str:
    found = list(values) or ["cast(null as varchar)"]
    return f"coalesce({', '.join(found)})" if len(found) > 1 else found[0]


def _delivered(group: Sequence[RawFile]) -> str:
    """A join that gives a line its delivered key, by the end of the path: engines write its beginning differently."""
    if len(group) == 1:
        return ""
    names = ", ".join(f"({quoted(file.name)}, {quoted(file.key)})" for file in group)
    delivered = f"(values {names}) as delivered(stored_name, delivered_key)"
    return f"\nleft join {delivered} on stored_name = right(filename, {len(group[0].name)})"


def _nothing(listed: ColumnList) -> str:
    texts = ("source_name", "delivery_id", "billing_period", "source_file")
    columns = [(name, "varchar") for name in texts] + [("source_row", "bigint")]
    columns += [(column.name, column.type.lower()) for column in listed.columns]
    columns += [(f"tag_{name}", "varchar") for name in (*TAG_NAMES, "json")]
    typed = ",\n".join(f"    cast(null as {kind}) as {name}" for name, kind in columns)
    return f"select\n{typed}\nwhere 1 = 0"
