"""The results of Great Expectations in a pack: recorded as returned, and verified like every other figure."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from support.ledgers import build_warehouse
from support.packs import members, pack_of, refused, rewritten
from support.report_marts import part, words
from support.small_company import AUGUST, JULY, Company, found

from pipelines.base.console import Console
from pipelines.evidence.pack import checks_csv
from pipelines.evidence.verify import verify
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.warehouse.publication import Publication

PAGE, PAPER = "reports/expectations.html", "reports/expectations.pdf"
Captured = pytest.CaptureFixture[str]
Members = dict[str, bytes]


def test_a_pack_has_the_page_and_does_not_claim_what_was_not_validated(pack: Path) -> None:
    """The gate is off in these tests."""
    held = members(pack)
    page = held[PAGE].decode()
    assert "Great Expectations validated none of these marts." in words(page)
    assert held[PAPER].startswith(b"%PDF-")
    assert b"expectations.html" in held["README.txt"]


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of the small company, built with Great Expectations as the gate of its marts."""
    company: Company = found(tmp_path_factory.mktemp("gated"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINLEDGER_WAREHOUSE__GATE", "great_expectations")
        build_warehouse(company.config)
    return pack_of(company, "gated.zip", bundle=True)


def change_record(change: Callable[[list[dict]], None]) -> Callable[[Members], None]:
    """How to change the checks of a pack's publication, and the list of them that goes with it."""

    def changed(held: Members) -> None:
        record = json.loads(held["publication.json"])
        change(record["checks"])
        held["publication.json"] = json.dumps(record).encode()
        at = datetime.fromisoformat(record["published_at"])
        held["checks.csv"] = checks_csv(Publication(**record | {"published_at": at}))

    return changed


@pytest.mark.slow
def test_every_check_of_every_mart_is_recorded_with_its_expectation(gated: Path, capsys: Captured) -> None:
    checks = json.loads(members(gated)["publication.json"])["checks"]
    # Columns and types are compared before Great Expectations runs; the company has two months.
    promised = {
        (model.key, month, check.name)
        for model in load_catalog().ordered
        if model.layer == "marts"
        for month in ((JULY, AUGUST) if model.grain == "month" else (None,))
        for check in load_contract(model.key).checks
        if check.kind != "columns"
    }
    validated = {(check["table"], check["period"], check["check"]) for check in checks if check["expectation"]}
    assert validated == promised
    page = members(gated)[PAGE].decode()
    assert "not validated" not in part(page, "expectations")
    run_cost = words(page[page.index('<div id="mart_run_cost">') :])
    assert "Failing rows run_id identifies one row counted_rows_expectation error passed 0" in run_cost[:150]
    verify(gated, None, Console())
    assert "VERIFIED: publication 1, " in capsys.readouterr().out


@pytest.mark.slow
def test_a_forged_page_is_named_and_so_are_forged_records(gated: Path, capsys: Captured) -> None:
    """A page with another result; a record of another expectation; and one that was taken out."""

    def change(held: Members) -> None:
        held[PAGE] = held[PAGE].replace(b'reconciled">passed', b'open">failed', 1)
        change_record(forge)(held)

    def forge(checks: list[dict]) -> None:
        (unique,) = [c for c in checks if (c["table"], c["check"]) == ("marts/mart_run_cost", "key_unique")]
        unique["expectation"] = "expect_column_values_to_be_unique"
        checks[:] = [c for c in checks if (c["table"], c["check"]) != ("marts/mart_run_cost", "status_not_null")]

    assert "differs from what its inputs give" in str(refused(rewritten(gated, change, sealed=True)))
    shown = " ".join(capsys.readouterr().out.split())
    for part_ in (PAGE, PAPER, "key_unique", "expect_column_values_to_be_unique", "status_not_null", "no result"):
        assert part_ in shown
