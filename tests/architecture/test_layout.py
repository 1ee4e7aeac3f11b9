"""The rules of the house, held by reading the files (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import csv
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import sqlglot

from pipelines.base import resources
from pipelines.ingest.billing.columns import REVIEWED
from pipelines.models.catalog import BILLS, INPUT_TABLES, LAYERS, SCHEMAS, SESSION_TABLES, load_catalog
from pipelines.models.contract import contract_paths, load_columns, load_contract
from pipelines.models.expressions import load_expressions
from pipelines.models.written import CURRENCIES

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "pipelines").rglob("*.py"))
MODELS = load_catalog().ordered
SQL_MODELS = [model for model in MODELS if model.kind == "sql"]


@cache
def imports(path: Path, *, top_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    skipped = {inner for node in typed for inner in ast.walk(node)}
    nodes = tree.body if top_only else [node for node in ast.walk(tree) if node not in skipped]
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def uses(path: Path, package: str, *, top_only: bool = False) -> bool:
    return any(name == package or name.startswith(package + ".") for name in imports(path, top_only=top_only))


@pytest.mark.parametrize(
    ("package", "home"),
    [
        ("duckdb", ("pipelines/engine/",)),
        ("pyspark", ("pipelines/engine/",)),
        ("dagster", ("pipelines/defs/", "pipelines/definitions.py")),
        ("starlette", ("pipelines/dashboard/web.py",)),
        ("uvicorn", ("pipelines/dashboard/web.py",)),
    ],
)
def test_each_engine_and_framework_has_one_home(package: str, home: tuple[str, ...]) -> None:
    strays = [path.relative_to(ROOT).as_posix() for path in MODULES if uses(path, package)]
    assert [path for path in strays if not path.startswith(home)] == []


@pytest.mark.parametrize("package", ["great_expectations", "boto3", "pyspark", "deltalake"])
def test_heavy_libraries_are_imported_where_they_are_used(package: str) -> None:
    assert [path.name for path in MODULES if uses(path, package, top_only=True)] == []


def test_texts_of_others_are_parsed_in_one_place() -> None:
    """It bounds them first (pipelines/base/parse.py); the benchmark and the cache of parsed models read their own."""
    parsers = [path for path in MODULES if re.search(r"\bjson\.loads?\(|\btomllib\b", path.read_text())]
    names = [path.relative_to(ROOT).as_posix() for path in parsers]
    ours = ("pipelines/bench/", "pipelines/base/parse_cache.py")
    assert [name for name in names if not name.startswith(ours)] == ["pipelines/base/parse.py"]


def test_only_settings_reads_the_environment() -> None:
    readers = [path.name for path in MODULES if re.search(r"os\.(environ|getenv)", path.read_text())]
    # __init__ switches telemetry off, which is writing.
    assert sorted(readers) == ["__init__.py", "file.py", "parse_cache.py", "settings.py"]


def test_models_stay_small() -> None:
    files = [*(path for path in MODULES if path.parent.name == "transforms"), *resources.SQL.rglob("*.sql")]
    too_long = {}
    for path in files:
        limit = {"metrics": 10, "transforms": 250}.get(path.parent.name, 120)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > limit:
            too_long[path.name] = lines
    assert too_long == {}


def test_no_import_cycle() -> None:
    """Imports inside functions count; those for types alone are Python's business, which never runs them."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    # A package's __init__ re-exporting its own modules is no cycle.
    graph = {
        name: {found for found in imports(path) if found in names and not name.startswith(f"{found}.")}
        for name, path in names.items()
    }
    packages: dict[str, set[str]] = {}
    for name, wanted in graph.items():
        packages.setdefault(package_of(name), set()).update(map(package_of, wanted))
    for one in (graph, packages):
        # prepare() raises CycleError with the names.
        TopologicalSorter({name: wanted - {name} for name, wanted in one.items()}).prepare()


def package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.key)
def test_every_table_has_its_twin_and_keeps_to_it(model) -> None:
    contract = load_contract(model.key)
    if model.kind == "sql":
        made = sqlglot.parse_one(model.text, read="duckdb").named_selects
        assert sorted(made) == sorted(column.name for column in contract.columns)
    elif model.kind == "reference":
        with model.path.open(encoding="utf-8", newline="") as file:
            assert next(csv.reader(file)) == [column.name for column in contract.columns]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.key)
def test_checks_read_only_what_is_built_before(model) -> None:
    catalog = load_catalog()
    below: set[str] = set()

    def collect(name: str) -> None:
        for wanted in catalog[name].inputs if name in catalog else ():
            below.add(wanted)
            collect(wanted)

    collect(model.name)
    views = {view.name for view in MODELS if not view.stored and below.issuperset(catalog.resting_on(view))}
    assert set(load_contract(model.key).reads) <= below | views


@pytest.mark.parametrize("model", [m for m in MODELS if m.stored and m.grain == "month"], ids=lambda model: model.key)
def test_a_month_is_made_without_the_other_months(model) -> None:
    """Only then is it enough to build the months that were delivered again.

    The end of an open run may move with any month: while there is one, a change of one month changes all (`plan`).
    """
    catalog = load_catalog()

    def rests_on_the_bill(name: str) -> bool:
        if name == "stg_tracker__attempt":
            return False
        return name in BILLS or (name in catalog and any(map(rests_on_the_bill, catalog[name].inputs)))

    above = [catalog[name] for name in catalog.resting_on(model) if name in catalog]
    assert [m.name for m in above if m.stored and m.grain == "whole" and rests_on_the_bill(m.name)] == []


def test_the_models_are_as_many_and_as_deep_as_the_page_shows() -> None:
    """docs/architecture.md, "In numbers"."""
    deep: dict[str, int] = {}
    for model in MODELS:
        deep[model.name] = 1 + max((deep.get(name, 0) for name in model.inputs), default=0)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for row, number in (
        ("models, reviewed lists included", len(MODELS)),
        ("longest chain of models", max(deep.values())),
    ):
        assert re.search(rf"^\| {row}.*\| {number} \|$", page, re.MULTILINE), (row, number)
    drill_downs, marts = (len(load_catalog().layer(layer)) for layer in ("detail", "marts"))
    assert f"| {marts}, and {drill_downs} drill-downs in `detail` |" in page


def test_every_contract_has_its_table() -> None:
    assert set(contract_paths()) == {model.key for model in MODELS}
    for model in MODELS:
        if model.kind == "sql":
            twin = contract_paths()[model.key].relative_to(resources.EXPECTATIONS)
            assert twin.with_suffix("") == model.path.relative_to(resources.SQL).with_suffix("")


def test_every_column_is_typed_once_and_used() -> None:
    used = {column.name for model in MODELS for column in load_contract(model.key).columns}
    assert set(load_columns()) - used == set()


@pytest.mark.parametrize("model", SQL_MODELS, ids=lambda model: model.key)
def test_models_open_with_their_row_and_read_down_only(model) -> None:
    assert model.path.read_text(encoding="utf-8").startswith("-- One row per ")
    # A mart may sum up its drill-down, and a drill-down may take a mart apart.
    rank = {layer: number for number, layer in enumerate(LAYERS)} | dict.fromkeys(SCHEMAS, len(LAYERS))
    for name in model.inputs:
        if name in INPUT_TABLES:
            assert model.layer == "staging" or name in SESSION_TABLES, f"{model.key} reads raw {name}"
        else:
            below = load_catalog()[name]
            assert rank[below.layer] <= rank[model.layer], f"{model.key} looks up to {below.key}"


def test_aws_names_live_in_staging_reference_and_sources() -> None:
    with REVIEWED.open(encoding="utf-8", newline="") as file:
        columns = {row["column_name"] for row in csv.DictReader(file) if row["raw_table"] == "aws_cur_line_item"}
    with (resources.REFERENCE / "ref_line_item_type.csv").open(encoding="utf-8", newline="") as file:
        types = {row["line_item_type"] for row in csv.DictReader(file)} - {
            "Usage",
            "Fee",
            "Tax",
            "Credit",
            "Refund",
            "Discount",
        }
    aws = re.compile(rf"\b({'|'.join(sorted(n for n in columns | types if '_' in n or n in types))})\b")
    # Tags and the identity of a line are our own words.
    ours = {
        "tag_run_id",
        "tag_owner",
        "tag_team",
        "source_name",
        "source_file",
        "source_row",
        "delivery_id",
        "billing_period",
    }
    strays = {}
    for path in [path for layer in ("core", "detail", "marts") for path in (resources.SQL / layer).rglob("*.sql")]:
        found = set(aws.findall(path.read_text(encoding="utf-8"))) - ours
        if found:
            strays[path.name] = sorted(found)
    assert strays == {}


def test_money_is_decimal_and_numbers_end_in_their_unit() -> None:
    for name, column in load_columns().items():
        if name.endswith("_usd"):
            assert column.type.startswith("DECIMAL"), name
            assert (column.unit or "").startswith("usd"), name
        if name.startswith(("is_", "has_")):
            assert column.type == "BOOLEAN", name
        if name.endswith("_at"):
            assert column.type == "TIMESTAMP", name


@pytest.mark.parametrize("model", [model for model in MODELS if model.layer in SCHEMAS], ids=lambda model: model.key)
def test_money_that_is_public_has_ten_places(model) -> None:
    """Only a report rounds. An estimate may be exact to fewer digits, but its column is a decimal of ten places too."""
    places = {
        column.name: re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", column.type)
        for column in load_contract(model.key).columns
        if column.name.endswith("_usd")
    }
    assert [name for name, found in places.items() if not found or int(found[1]) < 10] == []


def test_every_metric_and_function_states_what_it_is_and_is_used() -> None:
    text = "\n".join(path.read_text(encoding="utf-8").lower() for path in resources.SQL.rglob("*.sql"))
    for name, expression in load_expressions().items():
        first = expression.path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("-- ") and len(first) > 30, name
        assert f"{name}(" in text, f"{name} is used by nothing"
        # A name that the dialect knows is never replaced.
        assert isinstance(sqlglot.parse_one(f"{name}()", read="duckdb"), sqlglot.exp.Anonymous), name


def test_a_function_reads_its_arguments_alone() -> None:
    for name, expression in load_expressions().items():
        if expression.path.parent.name == "functions":
            read = {column.table or column.name for column in expression.tree.find_all(sqlglot.exp.Column)}
            assert read <= {*expression.args}, name


def test_every_warning_states_what_to_do() -> None:
    missing = [
        f"{table}: {check.name}"
        for table in contract_paths()
        for check in load_contract(table).checks
        if check.severity == "warn" and not check.fix
    ]
    assert missing == []


def test_a_check_that_shows_an_amount_shows_its_currency() -> None:
    without = []
    for table in contract_paths():
        contract = load_contract(table)
        columns = [column.name for column in contract.columns]
        for check in (check for check in contract.checks if check.query and {*CURRENCIES} & {*columns}):
            names = sqlglot.parse_one(check.query.format(batch="batch"), read="duckdb").named_selects
            shown = {*names, *(columns if "*" in names else ())}
            if any(name.endswith("_usd") for name in shown) and not shown & {*CURRENCIES}:
                without.append(f"{table}: {check.name}")
    assert without == []
