"""What made the tables: every model as run, every list and every contract, as members of a pack."""

from __future__ import annotations

import hashlib
from functools import cache

from pipelines.base import resources
from pipelines.base.code import modules_reached
from pipelines.models.catalog import load_catalog, module_of
from pipelines.models.contract import contract_paths

LOCK = "requirements.lock"
_SUFFIX = {"sql": "sql", "reference": "csv", "transform": "py"}


@cache
def model_members() -> dict[str, bytes]:
    """Each model's text (SQL with metrics and functions in place of their calls), each list and each contract.

    Modules that transforms import are below `models/code/`.
    """
    ordered = load_catalog().ordered
    models = {f"models/{m.key}.{_SUFFIX[m.kind]}": m.text.rstrip().encode() + b"\n" for m in ordered}
    reached = modules_reached(*(module_of(model.name) for model in ordered if model.kind == "transform"))
    own = {model.path for model in ordered}
    models |= {f"models/code/{name}.py": path.read_bytes() for name, path in reached.items() if path not in own}
    contracts = {f"expectations/{table}.yml": path.read_bytes() for table, path in contract_paths().items()}
    columns = {f"expectations/{path.name}": path.read_bytes() for path in resources.EXPECTATIONS.glob("*.yml")}
    return models | contracts | columns


def lock_members() -> dict[str, bytes]:
    """The versions of all libraries this code is held to."""
    path = resources.ROOT / LOCK
    return {LOCK: path.read_bytes()} if path.is_file() else {}


@cache
def code_digest() -> str:
    """The sha256 of all Python that runs."""
    package = resources.PACKAGE
    seal = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        seal.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return seal.hexdigest()
