"""A change of code changes the key of just the tables it makes, and so the code revision (house rule 10)."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path

import pytest

from pipelines.base import code
from pipelines.base.code import code_digest, imports_of, modules_reached
from pipelines.ingest.billing.columns import LISTS
from pipelines.ingest.billing.exports import CONVERTER
from pipelines.ingest.runs.tracker import READERS
from pipelines.models.catalog import PROOF_TABLES, RAW_TABLES, SERVING_TABLES, load_catalog, module_of
from pipelines.models.records import RECORDS, RUN_CODE, run_code
from pipelines.models.revision import BUILD_CODE, INPUT_CODE

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "pipelines").rglob("*.py"))
NAMES = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES]
TRANSFORMS = [model for model in load_catalog().ordered if model.kind == "transform"]
# The modules that make each table, a source of runs of every kind apart.
TABLES = {
    **{model.key: BUILD_CODE for model in load_catalog().ordered if model.stored},
    **{model.key: (*BUILD_CODE, module_of(model.name)) for model in TRANSFORMS},
    **{f"raw/{listed.table}": (CONVERTER,) for listed in LISTS},
    **{f"raw/{name} of {kind}": run_code([kind]) for name in RAW_TABLES for kind in READERS},
    **dict.fromkeys((f"raw/{name}" for name in PROOF_TABLES), ("pipelines.ingest.inventory.registrations",)),
    **dict.fromkeys((f"raw/{name}" for name in SERVING_TABLES), ("pipelines.ingest.serving.sources",)),
    "raw/aws_capacity_reservation": ("pipelines.ingest.inventory.reservations",),
    "raw/aws_capacity_offer": ("pipelines.ingest.inventory.offers",),
    "raw/aws_commitment": ("pipelines.ingest.inventory.commitments",),
    "raw/aws_invoice": ("pipelines.ingest.inventory.invoices",),
}
ROOTS = sorted({root for roots in TABLES.values() for root in roots})
# Read off by hand, for Python's finder follows imports under TYPE_CHECKING too.
ENGINE = {"pipelines", "pipelines.engine", "pipelines.base", "pipelines.base.errors", "pipelines.base.sql"} | {
    f"pipelines.engine.{name}" for name in ("base", "duckdb", "spark", "spark_session", "spark_sql")
}
BUILDERS = {
    "pipelines.engine.duckdb": ENGINE,
    "pipelines.models.written": {"pipelines", "pipelines.models", "pipelines.models.written"},
    "pipelines.models.validate": ENGINE
    | {f"pipelines.models{name}" for name in ("", ".checks", ".validate", ".written")},
}
# Of each module in turn, in a process of its own: what is loaded once it is imported.
LOADED = """
import importlib, json, os, sys
import deltalake, duckdb, polars, pyarrow, pydantic, requests, yaml  # once for all
for root in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(root)
        print(json.dumps([root, [name for name in sys.modules if name.split(".")[0] == "pipelines"]]), flush=True)
        os._exit(0)
    os.wait()
"""


def found_by_python(root: str) -> set[str]:
    """The modules of ours that the bytecode of `root` imports, those inside functions too, by Python's own finder."""
    finder = ModuleFinder(path=[str(ROOT)])
    finder.import_hook(root)
    return {name for name, module in finder.modules.items() if name.startswith("pipelines") and module.__file__}


@pytest.fixture(scope="module")
def expected() -> dict[str, set[str]]:
    """The modules that each root reaches, independent of the code under test."""
    return {root: BUILDERS[root] if root in BUILDERS else found_by_python(root) for root in ROOTS}


def test_the_modules_reached_are_those_that_python_finds(expected: Mapping[str, set[str]]) -> None:
    assert {root: set(modules_reached(root)) for root in ROOTS} == expected


def test_everything_an_import_loads_is_reached() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED, *ROOTS], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = dict(map(json.loads, run.stdout.splitlines()))
    assert sorted(loaded) == ROOTS
    for root, names in loaded.items():
        assert set(names) <= set(modules_reached(root)), root


def test_an_edit_of_a_module_rebuilds_just_the_tables_it_makes(
    tmp_path: Path, expected: Mapping[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An edit moves no file and changes no import, so each is looked for once.
    monkeypatch.setattr(code, "modules_reached", cache(modules_reached))
    shutil.copytree(ROOT / "pipelines", tmp_path / "pipelines", ignore=shutil.ignore_patterns("__pycache__"))

    def keys() -> dict[str, str]:
        of_root = {root: code_digest(root, root=tmp_path) for root in ROOTS}
        return {table: " ".join(of_root[root] for root in roots) for table, roots in TABLES.items()}

    def revision() -> str:
        return code_digest(*INPUT_CODE, *(module_of(model.name) for model in TRANSFORMS), root=tmp_path)

    def edit(name: str) -> None:
        path = tmp_path.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        path.write_bytes(path.read_bytes() + b"\nEDITED = True\n")
        code_digest.cache_clear()

    used = set().union(*expected.values())
    before, revision_before = keys(), revision()
    for name in NAMES:
        if name not in used:
            edit(name)
    assert keys() == before
    revision_before = revision()
    for name in sorted(used):
        edit(name)
        after = keys()
        rebuilt = {table for table in TABLES if after[table] != before[table]}
        assert rebuilt == {table for table, roots in TABLES.items() if any(name in expected[root] for root in roots)}
        assert revision() != revision_before, name
        before, revision_before = after, revision()


@pytest.mark.parametrize(
    ("module", "tables"),
    [
        ("pipelines.analysis.commitment_baseline", {"marts/mart_commitment_recommendation"}),
        ("pipelines.ingest.billing.values", {"raw/aws_cur_line_item", "raw/aws_focus_line_item"}),
        ("pipelines.ingest.runs.wandb", {f"raw/{name} of wandb" for name in RAW_TABLES}),
        ("pipelines.ingest.inventory.commitments", {"raw/aws_commitment"}),
        ("pipelines.base.console", set()),
        ("pipelines.config.settings", set()),
        ("pipelines.base.version", set()),
    ],
)
def test_a_module_makes_these_tables(module: str, tables: set[str]) -> None:
    assert {table for table, roots in TABLES.items() if module in modules_reached(*roots)} == tables


def test_what_is_read_of_the_imports(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "root.py": """
            from typing import TYPE_CHECKING
            import typing
            import pipelines.plain
            from pipelines import named, VERSION
            from pipelines.folder import inner, a_function
            if TYPE_CHECKING:
                import pipelines.typed
            elif True:
                import pipelines.otherwise
            if typing.TYPE_CHECKING:
                import pipelines.typed
            def late():
                try:
                    from pipelines.lazy import something
                finally:
                    importlib.import_module(f"pipelines.folder.{late.__name__}")
        """,
        "plain.py": "import pipelines.root  # a ring",
        "named.py": "",
        "lazy.py": "from pipelines.far import thing",
        "far.py": "",
        "typed.py": "",
        "otherwise.py": "",
        "folder/__init__.py": "import pipelines.of_the_package",
        "folder/inner.py": "",
        "folder/late.py": "",
        "of_the_package.py": "",
        "bare/module.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "pipelines" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        path.write_text("\n".join(line.removeprefix("            ") for line in lines))
    reached = {
        name.removeprefix("pipelines").removeprefix(".") for name in modules_reached("pipelines.root", root=tmp_path)
    }
    assert reached == {
        "",
        "root",
        "plain",
        "named",
        "lazy",
        "far",
        "otherwise",
        "folder",
        "folder.inner",
        "of_the_package",
    }
    # A folder without an __init__ has no code of its own.
    assert set(modules_reached("pipelines.bare.module", root=tmp_path)) == {"pipelines", "pipelines.bare.module"}
    with pytest.raises(ModuleNotFoundError, match=r"pipelines\.none"):
        code_digest("pipelines.none", root=tmp_path)


def test_imports_are_written_so_that_they_can_be_read() -> None:
    dynamic, relative = [], []
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        typed = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
        skipped = {inner for block in typed for node in block.body for inner in ast.walk(node)}
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.ImportFrom) and node not in skipped:
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import) and node not in skipped:
                names = [alias.name for alias in node.names]
            ours = {name for name in names if name.split(".")[0] == "pipelines"}
            assert ours <= {*imports_of(text)}, f"{file} imports {ours} in a way that no digest finds"
            if isinstance(node, ast.ImportFrom) and node.level:
                relative.append(file.name)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
                dynamic.append(file.relative_to(ROOT / "pipelines").as_posix())
    assert relative == []
    # Both give the names of what they import to code_digest.
    assert sorted(set(dynamic)) == ["ingest/runs/tracker.py", "models/catalog.py"]
    assert {records.module for records in RECORDS.values()} <= set(INPUT_CODE)
    assert RUN_CODE in INPUT_CODE and set(READERS.values()) <= set(INPUT_CODE)
