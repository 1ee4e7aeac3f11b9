"""The `trainledger migrate` command."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.base.console import Console
from pipelines.base.errors import CheckError, UsageError, counted
from pipelines.base.parse import ParseError, parse_toml
from pipelines.config.file import find_config, read_config
from pipelines.config.options import Config

if TYPE_CHECKING:
    from pipelines.config.settings import Settings
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.publication import Publication

# What must stay as it was: a check of the bill, and one of what was made of it.
_COMPARED = {
    "marts/mart_invoice_reconciliation_monthly": (
        ("payer_account_id", "billing_month", "invoice_id"),
        ("billed_cost_usd", "ledger_cost_usd"),
    ),
    "marts/mart_run_cost": (("run_id",), ("effective_cost_usd", "billed_cost_usd")),
}


def migrate(
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
) -> None:
    """Move a warehouse of an older version to this one.

    Old keys of the configuration are renamed, the warehouse is rebuilt, and its totals are compared with those before.
    """
    migrate_warehouse(find_config(config).resolve(), Console(), dry_run=dry_run)


def migrate_warehouse(path: Path, console: Console, *, dry_run: bool) -> None:
    """Migrate the configuration at `path` and its warehouse.

    Raises UsageError where the file cannot be rewritten safely or a newer version built the warehouse, CheckError where
    a total changed; the publication from before stays readable with `query --as-of` in all cases.
    """
    from pipelines.config.settings import settings_from
    from pipelines.models.warehouse import Warehouse

    text, content, changes = renamed_config(path)
    for sentence in changes:
        console.say(f"{path.name}: {sentence}.")
    settings = settings_from(path, content)
    warehouse = Warehouse(settings)
    before = warehouse.lake.publications.predecessor()
    if dry_run:
        _announce(warehouse, before, console)
        return
    if changes:
        backup = path.with_name(f"{path.name}.bak")
        # With its access rights: what others may not read stays closed to them.
        shutil.copy(path, backup)
        console.say(f"The configuration as it was is in {backup}.")
        path.write_bytes(text.encode())
    _rebuild(settings, console)


def _announce(warehouse: Warehouse, before: Publication | None, console: Console) -> None:
    from pipelines.models.catalog import SCHEMAS, load_catalog
    from pipelines.models.revision import code_revision

    if before is None:
        console.say("The warehouse holds no publication; `trainledger build` makes the first.")
        return
    if before.code_revision == code_revision():
        console.say(f"Publication {before.number} is of this version; nothing is to be done.")
        return
    public = {model.key for model in load_catalog().public}
    gone = [key for key in before.tables if key.partition("/")[0] in SCHEMAS and key not in public]
    console.say(
        f"Publication {before.number} is of version {before.version}. Every table would be built again and published "
        f"as number {before.number + 1}; {len(gone)} public tables have other names then "
        f"(CHANGELOG.md lists them). Publication {before.number} stays readable with `query --as-of`."
    )


def _rebuild(settings: Settings, console: Console) -> None:
    from pipelines.models.command import build_marts
    from pipelines.models.revision import code_revision
    from pipelines.models.warehouse import Warehouse

    # What is compared stays until a later build, whatever `retention` keeps.
    place = settings.warehouse.model_copy(update={"retention": None})
    build_marts(settings.model_copy(update={"warehouse": place}), console)
    warehouse = Warehouse(settings)
    pairs = [*pairwise(warehouse.lake.publications.all())]
    # The first one of this code, also where the command that built it was stopped before it compared.
    upgrades = [pair for pair in pairs if pair[0].code_revision != pair[1].code_revision == code_revision()]
    if not upgrades:
        return
    before, after = upgrades[-1]
    changed = [sentence for key in _COMPARED for sentence in _differences(warehouse, key, before, after)]
    if changed:
        raise CheckError(
            f"{counted(len(changed), 'total', 'differ')} from publication {before.number}, first: {changed[0]}. Look "
            "at mart_restatement: a bill that was delivered again changes them, an upgrade alone does not."
        )
    same = f"of publication {before.number} has the same totals in publication {after.number}"
    console.say(f"Every invoice and every run {same}.")


def _differences(warehouse: Warehouse, key: str, before: Publication, after: Publication) -> list[str]:
    """One sentence per row and amount of a mart that is not as in the publication before."""
    import polars as pl

    ids, amounts = _COMPARED[key]
    if not all(key in one.tables for one in (before, after)):
        return []

    def rows(published: Publication) -> pl.DataFrame:
        files = warehouse.lake.named_files(key, published.tables[key]["files"])
        frame = pl.concat([pl.read_parquet(file, columns=[*ids, *amounts]) for file in files])
        # With an unknown part, a total is unknown.
        return frame.group_by(ids).agg(pl.when(~pl.col(name).has_nulls()).then(pl.col(name).sum()) for name in amounts)

    joined = rows(before).join(rows(after), on=ids, how="full", suffix="_after", nulls_equal=True, coalesce=True)
    return [
        f"{key.partition('/')[2]} {' '.join(str(row[name]) for name in ids)}: {amount} was {_known(row[amount])} and "
        f"is {_known(row[amount + '_after'])}"
        for row in joined.sort(ids).iter_rows(named=True)
        for amount in amounts
        if row[amount] != row[amount + "_after"]
    ]


def _known(amount: Decimal | None) -> str:
    return "unknown" if amount is None else str(amount)


def renamed_config(path: Path) -> tuple[str, dict[str, Any], list[str]]:
    """The text and content of a configuration with the present names of its keys, and what was renamed, a phrase each.

    Comments and order stay. UsageError where renaming would change anything else.
    """
    from pipelines.config.mistakes import RENAMED_KEYS, current_keys

    _, content = read_config(path)
    text = path.read_bytes().decode()
    found = sorted({*_keys_of(content)} & {*RENAMED_KEYS})
    for old in found:
        # A key stands before its value, or in the heading of its table.
        text = re.sub(rf"(?<![\w'\"-]){old}(?=\s*=|[\].])", RENAMED_KEYS[old], text)
    wanted = current_keys(content)
    try:
        renamed = parse_toml(text.encode())
    except ParseError:
        renamed = None
    if renamed != wanted:
        names = ", ".join(f"{old!r} to {RENAMED_KEYS[old]!r}" for old in found)
        raise UsageError(f"{path}: its keys cannot be renamed without changing values; rename by hand: {names}.")
    return text, wanted, [f"key {old!r} is now {RENAMED_KEYS[old]!r}" for old in found]


def _keys_of(content: Any) -> Iterator[str]:
    """Every key of nested tables."""
    for one in content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ():
        yield from _keys_of(one)
    yield from content if isinstance(content, Mapping) else ()
