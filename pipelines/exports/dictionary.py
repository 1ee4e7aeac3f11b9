"""The data dictionary and the lineage, as Markdown pages written from the models and their contracts."""

from functools import cache
from typing import Any

from pipelines.base import resources
from pipelines.explain.names import column_origins
from pipelines.models.catalog import INPUT_TABLES, SESSION_TABLES, Model, load_catalog
from pipelines.models.contract import load_contract
from pipelines.present.text import templates

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
    rows = {"made": _MADE, "marts": mart_pages(), "layers": lineage_layers()}
    return {name: templates().get_template(f"{name}.j2").render(rows) for name in ("dictionary.md", "lineage.md")}


@cache
def mart_pages() -> list[dict[str, Any]]:
    """Every mart's name, description, key and columns: their name, type, unit, meaning and home, empty where here."""
    found = []
    for model in load_catalog().public:
        contract, origins = load_contract(model.key), column_origins(model)
        columns = [
            (one.name, one.type, one.unit or "", one.meaning, origins.get(one.name, "")) for one in contract.columns
        ]
        found.append({"name": model.name, "description": contract.description, "key": contract.key, "columns": columns})
    return found


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
