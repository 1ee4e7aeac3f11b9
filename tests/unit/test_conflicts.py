"""Two sources that deliver the same month are refused by name before a table is built, as the contract would later."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cur_exports import CUR2_LINE, LEGACY_LINE, csv_text, cur2_export, legacy_export, packed, parquet
from support.focus_exports import write_focus_export
from support.ledgers import build_warehouse
from support.payers import write_month

from pipelines.base.errors import CheckError, SourceError, UsageError
from pipelines.config.settings import load_settings
from pipelines.ingest.billing import exports
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.ingest.billing.raw import RawBill
from pipelines.models.build import Builder
from pipelines.models.publish import plan
from pipelines.models.refresh import refuse_conflicts
from pipelines.models.warehouse import Warehouse

PAYER, ACCOUNT, OTHER = "000011112222", "000033334444", "000055556666"


def configure(root: Path, *entries: str, more: str = "") -> Path:
    """A configuration of these [[billing]] entries, each its keys."""
    path = root / "trainledger.toml"
    path.write_text(
        '[warehouse]\nlocation = "warehouse"\n' + "".join(f"\n[[billing]]\n{keys}\n" for keys in entries) + more
    )
    return path


def entry(name: str, location: Path, **more: str) -> str:
    keys = {"name": name, "location": str(location), **more}
    return "\n".join(f'{key} = "{value}"' for key, value in keys.items())


def look(config: Path) -> None:
    """What a build does before it makes a table."""
    builder = Builder(Warehouse(load_settings(config)))
    planned = plan(builder.warehouse)
    refuse_conflicts(builder, planned, planned.months)


def cur2(root: Path, account: str = ACCOUNT, *, payer: str = PAYER, as_parquet: bool = False) -> Path:
    line = CUR2_LINE | {"bill_payer_account_id": payer, "line_item_usage_account_id": account}
    content = {"b.snappy.parquet": parquet([line])} if as_parquet else {"b.csv.gz": packed(csv_text([line]))}
    return cur2_export(root / f"cur2-{account}-{payer}", content)


def legacy(root: Path, account: str = ACCOUNT) -> Path:
    line = LEGACY_LINE | {"lineItem/UsageAccountId": account}
    return legacy_export(root / f"cur-{account}", {"a.csv.gz": packed(csv_text([line]))})


def focus(root: Path, **line: str) -> Path:
    times = {"ChargePeriodStart": "2026-07-01T00:00:00Z", "ChargePeriodEnd": "2026-07-01T01:00:00Z"}
    line = {**times, "BillingAccountId": PAYER, "SubAccountId": ACCOUNT, **line}
    return write_focus_export(root / "focus", {"2026-07": [line]})


CONFLICTS = {
    "cur and cur2": lambda root: (legacy(root), cur2(root)),
    "cur2 in a csv and in Parquet": lambda root: (cur2(root / "1"), cur2(root / "2", as_parquet=True)),
    "cur2 and focus": lambda root: (cur2(root), focus(root)),
    "focus of the payer's own account": lambda root: (cur2(root, PAYER), focus(root, SubAccountId="")),
}
APART = {
    "another account": lambda root: (legacy(root), cur2(root, OTHER)),
    "an account that went to another payer": lambda root: (legacy(root), cur2(root, payer=OTHER)),
    "cur2 and focus of another account": lambda root: (cur2(root), focus(root, SubAccountId=OTHER)),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_an_account_that_two_sources_deliver_is_refused_by_both_names(tmp_path: Path, case: str) -> None:
    one, other = CONFLICTS[case](tmp_path)
    account = PAYER if "own" in case else ACCOUNT
    with pytest.raises(SourceError) as refused:
        look(configure(tmp_path, entry("one", one), entry("other", other)))
    assert str(refused.value) == (
        f"[[billing]] one and other both deliver 2026-07 of account {account} of payer {PAYER}, so its costs would "
        "count twice; remove one of the two entries, or name the months each is read for with first_month and "
        "last_month."
    )
    assert refused.value.exit_code == 3


@pytest.mark.parametrize("case", APART)
def test_accounts_apart_are_no_conflict(tmp_path: Path, case: str) -> None:
    one, other = APART[case](tmp_path)
    look(configure(tmp_path, entry("one", one), entry("other", other)))


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CONFLICTS, *APART])
def test_the_contract_comes_to_the_same(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It remains the last line of defense, where nothing looked before."""
    one, other = (CONFLICTS | APART)[case](tmp_path)
    monkeypatch.setattr("pipelines.models.refresh.refuse_conflicts", lambda *_: None)
    config = configure(tmp_path, entry("one", one), entry("other", other))
    if case in CONFLICTS:
        with pytest.raises(CheckError, match=r"delivered by two sources .*one source one, other source other"):
            build_warehouse(config, only=["fct_charge_sum_monthly"])
    else:
        build_warehouse(config, only=["fct_charge_sum_monthly"])


def overlapping(root: Path) -> dict[str, Path]:
    """A legacy report of June and July, and a CUR 2.0 export of July and August; three accounts in July."""
    for month in ("2026-06", "2026-07"):
        old = write_month(root / "old", 1, month, is_legacy=True)
    lines = [
        CUR2_LINE | {"bill_payer_account_id": f"{1:012d}", "line_item_usage_account_id": f"{account:012d}"}
        for account in (101, 102, 103)
    ]
    legacy_lines = [
        LEGACY_LINE | {"bill/PayerAccountId": f"{1:012d}", "lineItem/UsageAccountId": f"{account:012d}"}
        for account in (101, 102, 103)
    ]
    legacy_export(root / "old", {"a.csv.gz": packed(csv_text(legacy_lines))}, assembly="more")
    new = cur2_export(root / "new", {"b.csv.gz": packed(csv_text(lines))})
    write_month(root / "new", 1, "2026-08")
    return {"old": old, "new": new}


def test_the_sentence_has_the_months_to_write_and_the_months_end_the_conflict(tmp_path: Path) -> None:
    places = overlapping(tmp_path)
    with pytest.raises(SourceError) as refused:
        look(configure(tmp_path, *(entry(name, place) for name, place in places.items())))
    assert str(refused.value) == (
        "[[billing]] new and old both deliver 2026-07 of account 000000000101 of payer 000000000001 and 2 more "
        "accounts, so its costs would count twice; name the months each is read for, such as "
        'last_month = "2026-06" for old and first_month = "2026-07" for new, or remove one of the two entries.'
    )
    look(
        configure(
            tmp_path,
            entry("old", places["old"], last_month="2026-06"),
            entry("new", places["new"], first_month="2026-07"),
        )
    )


def test_a_month_that_only_the_raw_store_has_is_refused_too(tmp_path: Path) -> None:
    """The old export is deleted, its July stays as it was delivered; then the new one delivers July as well."""
    places = overlapping(tmp_path)
    old = Builder(Warehouse(load_settings(configure(tmp_path, entry("old", places["old"])))))
    old.warehouse.bill.ingest("2026-07")
    shutil.rmtree(places["old"] / "20260701-20260801")
    with pytest.raises(SourceError, match=r'both deliver 2026-07 .*last_month = "2026-06" for old'):
        look(configure(tmp_path, *(entry(name, place) for name, place in places.items())))


def test_account_ids_are_pseudonyms_where_they_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLEDGER_PRIVACY__KEY", "k" * 32)
    privacy = '\n[privacy]\npseudonyms = ["accounts"]\n'
    with pytest.raises(SourceError, match=r"of account acct-[a-p]{16} of payer acct-[a-p]{16}, so") as refused:
        look(configure(tmp_path, entry("one", legacy(tmp_path)), entry("other", cur2(tmp_path)), more=privacy))
    assert ACCOUNT not in str(refused.value) and PAYER not in str(refused.value)


def test_what_was_published_is_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three months of two payers, published, one is delivered anew: its files alone are read."""
    months = ("2026-05", "2026-06", "2026-07")
    places = [write_month(tmp_path / f"p{payer}", payer, month) for payer in (1, 2) for month in months]
    config = configure(tmp_path, entry("one", places[0]), entry("two", places[-1]))
    builder = Builder(Warehouse(load_settings(config)))
    builder.lake.publish({"code_revision": "", "inputs": plan(builder.warehouse).inputs, "tables": {}, "checks": []})
    seen: list[str] = []
    scan = RawBill.shared_accounts

    def seeing(bill: RawBill, stored: Sequence[RawDelivery], engine: Any) -> pl.DataFrame:
        seen.extend(raw.delivery.billing_period for raw in stored)
        return scan(bill, stored, engine)

    monkeypatch.setattr(RawBill, "shared_accounts", seeing)
    look(config)
    assert seen == []
    write_month(tmp_path / "p2", 2, "2026-06", account=7)
    look(config)
    assert seen == ["2026-06", "2026-06"]


def copied(root: Path) -> tuple[Path, Path]:
    """An export, and a copy of it elsewhere."""
    place = cur2(root)
    shutil.copytree(place, root / "backup" / place.name)
    return place, root / "backup" / place.name


@pytest.mark.parametrize(
    "places",
    [copied, lambda root: (cur2(root), root / f"cur2-{ACCOUNT}-{PAYER}")],
    ids=["a copy", "the folder above"],
)
def test_one_delivery_in_two_places_is_refused_before_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: Callable[[Path], tuple[Path, Path]]
) -> None:
    one, other = places(tmp_path)
    monkeypatch.setattr(exports, "_store_files", lambda *_: pytest.fail("a file of it was read"))
    with pytest.raises(SourceError) as refused:
        look(configure(tmp_path, entry("one", one), entry("other", other)))
    manifest = "metadata/BILLING_PERIOD=2026-07/ml-cur2-Manifest.json"
    assert "[[billing]] one and other read the same delivery of 2026-07 (" in str(refused.value)
    assert f"{one}/{manifest}" in str(refused.value) and "; remove one of the two entries" in str(refused.value)
    assert refused.value.exit_code == 3


def test_deliveries_of_one_id_with_other_files_are_two(tmp_path: Path) -> None:
    """Ids are AWS's and unique; where other tools write them, files of other sizes are another bill's."""
    one, other = cur2(tmp_path), cur2(tmp_path, OTHER, as_parquet=True)
    look(configure(tmp_path, entry("one", one), entry("other", other)))


def test_an_entry_without_an_export_reads_the_one_that_another_names(tmp_path: Path) -> None:
    place = cur2(tmp_path)
    config = configure(tmp_path, entry("one", place), entry("other", place, export="ml-cur2"))
    with pytest.raises(UsageError, match=r"\[\[billing\]\] one and other have the same location, so its bill would"):
        load_settings(config)
    both = configure(tmp_path, entry("one", place, export="ml-a"), entry("other", place, export="ml-b"))
    assert [source.export for source in load_settings(both).billing] == ["ml-a", "ml-b"]


def test_a_stored_file_that_is_overwritten_is_named(tmp_path: Path) -> None:
    """As many bytes as before, so it looks whole until it is read."""
    config = configure(tmp_path, entry("one", legacy(tmp_path)), entry("other", cur2(tmp_path, OTHER)))
    look(config)
    file = next((tmp_path / "warehouse/raw/one").rglob("*.parquet"))
    file.write_bytes(b"\x5a" * file.stat().st_size)
    with pytest.raises(SourceError, match=f"{file.parent} is damaged .*; remove it and run `trainledger build`"):
        look(config)
