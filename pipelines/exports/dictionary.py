"""The data dictionary and the lineage, as Markdown pages written from the models and their contracts."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pipelines.base import resources
from pipelines.explain.names import column_origins
from pipelines.models.catalog import INPUT_TABLES, SESSION_TABLES, Model, load_catalog
from pipelines.models.contract import load_contract

_MADE = "<!-- Written by `trainledger export dictionary`; change the models or their contracts instead. -->"
# Nearest to the reader first.
_LAYERS = {
    "marts": "The public tables, one for each question.",
    "detail": "Public drill-downs of the marts.",
    "core": "Facts and dimensions.",
    "staging": "One table for each source: renamed, typed, classified.",
    "reference": "Lists maintained by people, each row with its source and date.",
}


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    parts = {"dictionary.md": _dictionary(), "lineage.md": _lineage()}
    return {name: "\n\n".join(page) + "\n" for name, page in parts.items()}


def _dictionary() -> list[str]:
    marts = load_catalog().public
    contents = [f"[{model.name}](#{model.name})" for model in marts]
    return [
        f"# Data dictionary\n\n{_MADE}",
        "Every column of every mart: its type, its unit, what it means and where it is made. Amounts are in the\n"
        "`billing_currency` of their row, whatever a name ends in. Null means not measurable, zero means zero.\n"
        "[lineage.md](lineage.md) shows what a mart is made from; `trainledger explain NAME` defines one name.",
        "\n".join(f"- {entry}" for entry in contents),
        *map(_mart, marts),
    ]


def _mart(model: Model) -> str:
    page = mart_page(model)
    rows = [
        (f"`{name}`", kind, unit, meaning, f"`{home}`" if home else "here")
        for name, kind, unit, meaning, home in page["columns"]
    ]
    key = ", ".join(f"`{name}`" for name in page["key"]) or "none"
    return (
        f"## {model.name}\n\n{page['description']} Key: {key}.\n\n"
        f"{_table(('column', 'type', 'unit', 'meaning', 'home'), rows)}"
    )


def mart_page(model: Model) -> dict[str, Any]:
    """A table's name, description, key and columns: each its name, type, unit, meaning and home, empty where here."""
    contract, origins = load_contract(model.key), column_origins(model)
    columns = [
        (column.name, column.type, column.unit or "", column.meaning, origins.get(column.name, ""))
        for column in contract.columns
    ]
    return {"name": model.name, "description": contract.description, "key": contract.key, "columns": columns}


@cache
def mart_pages() -> list[dict[str, Any]]:
    """Every mart, as `mart_page`."""
    return [mart_page(model) for model in load_catalog().public]


@cache
def lineage_layers() -> list[dict[str, Any]]:
    """Each layer, its meaning and its tables: what each is made by, reads, and rests on in the end."""
    return [
        {"layer": layer, "meaning": meaning, "tables": [_table_page(model) for model in load_catalog().layer(layer)]}
        for layer, meaning in _LAYERS.items()
    ]


def _table_page(model: Model) -> dict[str, Any]:
    path = model.path.relative_to(resources.ROOT) if model.path.is_relative_to(resources.ROOT) else model.path.name
    return {
        "name": model.name,
        "is_stored": model.stored,
        "grain": load_contract(model.key).grain.removeprefix("one row per "),
        "made_by": str(path),
        "reads": sorted({*model.inputs} - SESSION_TABLES),
        "rests_on": sorted(load_catalog().behind(model.name) & (INPUT_TABLES - SESSION_TABLES)),
    }


def _lineage() -> list[str]:
    return [
        f"# Lineage\n\n{_MADE}",
        "The inputs, the file and the source deliveries of each table. Tables in italics are views: computed on read,\n"
        "not stored. The asset graph of Dagster shows the same graph live.",
        *(
            f"## {layer['layer'].capitalize()}\n\n{layer['meaning']}\n\n"
            f"{_table(_LINEAGE, map(_made_from, layer['tables']))}"
            for layer in lineage_layers()
        ),
    ]


_LINEAGE = ("table", "one row per", "made by", "reads", "rests on, in the end")


def _made_from(table: dict[str, Any]) -> tuple[str, ...]:
    name = f"`{table['name']}`" if table["is_stored"] else f"*`{table['name']}`*"
    return name, table["grain"], f"`{table['made_by']}`", _names(table["reads"]), _names(table["rests_on"])


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(header: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
