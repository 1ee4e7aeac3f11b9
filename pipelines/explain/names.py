"""What a name stands for: a metric, a function, a column, a table or a term, read from the files that define it."""

import re
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import sqlglot
from sqlglot import exp

from pipelines.base import resources
from pipelines.base.code import code_digest
from pipelines.base.console import Console
from pipelines.base.errors import UsageError, shown
from pipelines.base.parse_cache import digest_of, kept
from pipelines.explain.query import near
from pipelines.models.catalog import INPUT_TABLES, Model, load_catalog
from pipelines.models.contract import load_columns, load_contract
from pipelines.models.expressions import Expression, load_expressions
from pipelines.present.buckets import BUCKETS

_NOTE = re.compile(r"^--\s?(.*)$", re.MULTILINE)
_HEADER = re.compile(r"(unit|over|args|partition|stored):")


@dataclass(frozen=True)
class Named:
    """The definition of a name. `made` holds for each table the expression of the column."""

    name: str
    is_a: str
    meaning: str
    unit: str | None = None
    file: str | None = None
    formula: str | None = None
    facts: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    columns: list[dict[str, Any]] = field(default_factory=list)


def look_up(name: str) -> Named:
    """The definition of a name. UsageError, with similar names, for an unknown one."""
    word = name.strip().lower().rpartition(".")[2]
    expression, catalog = load_expressions().get(word), load_catalog()
    if expression:
        return _expression(word, expression)
    if word in catalog:
        return _table(catalog[word])
    if word in BUCKETS:
        return Named(word, is_a="a bucket of the ledger", meaning=f"It holds {BUCKETS[word]}.")
    terms, term = _terms(), _plain(word)
    # The columns of a FOCUS dataset are in capitals.
    columns = {column.name: column for model in catalog.ordered for column in load_contract(model.key).columns}
    for spelling in (name.strip().rpartition(".")[2], word):
        if spelling in columns:
            column = load_columns().get(spelling) or columns[spelling]
            facts = {"glossary": terms[term]} if term in terms else {}
            return Named(
                spelling, f"a column, {column.type}", column.meaning, column.unit, facts=facts, made=_made(spelling)
            )
    if term in terms:
        return Named(term, is_a="a term", meaning=f"{terms[term]}.", file="docs/glossary.md")
    known = [*load_expressions(), *(model.name for model in catalog.ordered), *columns, *BUCKETS, *terms]
    hint = near(word, known) or "`trainledger query` lists the marts, and `trainledger explain MART` their columns."
    raise UsageError(f"No metric, column, table or term is called {shown(name)}; {hint}")


@cache
def _terms() -> dict[str, str]:
    """The meaning of each term of the glossary; a row may define several, separated by commas."""
    rows = re.findall(r"^\| ([A-Za-z].*?) \| (.+) \|$", resources.GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    # The first row is the head of the table.
    return {_plain(term): meaning for terms, meaning in rows[1:] for term in terms.split(", ")}


def _plain(term: str) -> str:
    """A term as it is compared: in lower case, `back-test` as `back test`."""
    return re.sub(r"[\s_-]+", " ", term.lower())


def column_origins(model: Model) -> dict[str, str]:
    """For each column of a table what it comes from: the table it is taken over from, or the metric that makes it.

    A column the table works out itself, or takes from a step of its own, is left out.
    """
    found = {}
    for column, how in _selected().get(model.name, {}).items():
        called = re.match(r"(\w+)\(", how)
        taken = re.match(r"from (\w+)(?:,|$)", how)
        if called and called[1] in load_expressions():
            found[column] = called[1]
        elif taken:
            found[column] = taken[1]
    return found


def show_name(named: Named, console: Console) -> None:
    console.paragraph(f"{named.name}: {named.is_a}. {named.meaning}")
    facts = {"unit": named.unit, "file": named.file, **named.facts}
    for label, text in facts.items():
        if text:
            console.paragraph(f"{label}: {text}", indent="  ")
    if named.formula:
        console.say("")
        for line in named.formula.splitlines():
            console.say(f"  {line}")
    if named.made:
        console.say("")
        console.say("Tables with this column, and its expression")
    for table, how in named.made.items():
        console.paragraph(f"{table}: {how}", indent="  ")
    if named.columns:
        console.say("")
    for column in named.columns:
        head = " ".join(filter(None, (column["name"], column["type"], column["unit"] and f"in {column['unit']}")))
        console.paragraph(f"{head}: {column['meaning']}", indent="  ")


def as_frame(named: Named) -> pl.DataFrame:
    """A definition as a table of facts, one row each; a table has one more for each column."""
    facts: dict[str, str] = {}
    for key, value in asdict(named).items():
        if isinstance(value, dict):
            facts |= {f"{key} {name}": text for name, text in value.items()}
        elif isinstance(value, list):
            facts |= {f"column {column['name']}": column.get("meaning") or "" for column in value}
        elif value is not None:
            facts[key] = value
    return pl.DataFrame({"fact": list(facts), "value": list(facts.values())})


def _expression(name: str, expression: Expression) -> Named:
    text = expression.path.read_text(encoding="utf-8")
    notes = _NOTE.findall(text)
    header = " ".join(note for note in notes if _HEADER.match(note))
    found = dict(re.findall(r"(unit|over|args):\s*(.+?)(?=\s+(?:unit|over|args):|$)", header))
    is_metric = expression.path.parent.name == "metrics"
    inputs = sorted({column.name for column in expression.tree.find_all(exp.Column)} - set(expression.args))
    users = [model.key for model in _marts_first() if model.kind == "sql" and _calls(model.path, name)]
    users += [other.name for other in load_expressions().values() if _calls(other.path, name)]
    facts = {
        "made from": ", ".join((*expression.args, *inputs)),
        "read over": found.get("over", ""),
        "used by": ", ".join(users),
    }
    return Named(
        name,
        is_a="a metric" if is_metric else "a function",
        meaning=" ".join(note for note in notes if not _HEADER.match(note)),
        unit=found.get("unit"),
        file=str(expression.path.relative_to(resources.ROOT)),
        formula="\n".join(line for line in text.splitlines() if not line.startswith("--")),
        facts=facts,
        made=_made(name),
    )


_KEPT = {"source": "a month of each source at a time", "month": "a month at a time", "whole": "as a whole"}


def _table(model: Model) -> Named:
    contract, catalog = load_contract(model.key), load_catalog()
    facts = {
        "key": ", ".join(contract.key),
        "made from": ", ".join(model.inputs),
        "read by": ", ".join(other.key for other in catalog.ordered if model.name in other.inputs),
        "kept": _KEPT[model.grain],
        "checks": "; ".join(f"{check.title} ({check.severity})" for check in contract.checks),
    }
    if not model.stored:
        facts["kept"] = "as a view, computed where it is read"
    columns = [asdict(column) for column in contract.columns]
    file = str(model.path.relative_to(resources.ROOT)) if model.path.is_relative_to(resources.ROOT) else model.path.name
    return Named(model.key, "a table", contract.description, file=file, facts=facts, columns=columns)


def _made(name: str) -> dict[str, str]:
    """For each table that has a column of the name, or one made by a metric of the name: the expression for it."""
    found = {}
    for model in _marts_first():
        columns = [column.name for column in load_contract(model.key).columns]
        selected = _selected().get(model.name, {})
        made = [f"{how} as {column}" for column, how in selected.items() if f"{name}(" in how and column != name]
        if name in columns:
            made.insert(0, selected.get(name) or "as delivered")
        if made:
            found[model.key] = "; ".join(made)
    return found


@cache
def _selected() -> dict[str, dict[str, str]]:
    """`_parsed` of each table that a SELECT makes, once for each state of the files."""
    models = load_catalog().ordered
    names = sorted(model.name for model in models)
    parts = (digest_of(resources.SQL, "*.sql"), names, code_digest(__name__), version("sqlglot"))
    return kept("selected", parts, lambda: {model.name: _parsed(model) for model in models if model.kind == "sql"})


def _parsed(model: Model) -> dict[str, str]:
    """For each column its expression in the last SELECT of a table's file, or its first branch, calls unexpanded."""
    tree = sqlglot.parse_one(model.path.read_text(encoding="utf-8"), read="duckdb")
    select = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
    if select is None:
        return {}
    read = [table for table in select.find_all(exp.Table) if table.parent_select is select]
    found = {}
    for column in select.selects:
        plain = column.unalias()
        name = column.alias_or_name
        if not isinstance(plain, exp.Column):
            found[name] = plain.sql(dialect="duckdb", comments=False, normalize_functions=False)
            continue
        # Taken over from a table, or from a step of the same file.
        source = next((t.name for t in read if t.alias_or_name == plain.table), read[0].name if read else "its input")
        step = "" if source in load_catalog() or source in INPUT_TABLES else "the step "
        found[name] = f"from {step}{source}" + (f", where it is {plain.name}" if plain.name != name else "")
    return found


def _marts_first() -> list[Model]:
    return sorted(load_catalog().ordered, key=lambda model: model.layer != "marts")


def _calls(path: Path, name: str) -> bool:
    return f"{name}(" in path.read_text(encoding="utf-8")
