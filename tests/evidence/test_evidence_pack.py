"""The evidence pack: what it holds, and what it does not."""

from __future__ import annotations

import hashlib
import io
import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from support.packs import RUNS, members, pack_of
from support.small_company import Company

from pipelines.base import resources
from pipelines.base.address import redacted
from pipelines.ingest.billing.columns import REVIEWED
from pipelines.models.catalog import load_catalog


def test_two_packs_of_one_publication_are_the_same_bytes(company: Company, pack: Path) -> None:
    assert pack_of(company, "again.zip", bundle=True).read_bytes() == pack.read_bytes()


def test_a_pack_holds_all_that_its_figures_rest_on(company: Company, pack: Path) -> None:
    held = members(pack)
    for model in load_catalog().ordered:
        ending = {"sql": "sql", "reference": "csv", "transform": "py"}[model.kind]
        assert f"models/{model.key}.{ending}" in held
        assert f"expectations/{model.key}.yml" in held
    for model in load_catalog().public:
        assert {f"{model.key}.parquet", f"{model.key}.csv"} <= set(held)
    assert held["models/reference/ref_region.csv"] == (resources.REFERENCE / "ref_region.csv").read_bytes()
    assert held["models/bill_columns.csv"] == REVIEWED.read_bytes()
    assert held["requirements.lock"] == (resources.ROOT / "requirements.lock").read_bytes()
    runs = pl.read_parquet(io.BytesIO(held[RUNS])).sort("run_id")
    assert runs["effective_cost_usd"].to_list() == [Decimal("110.08"), Decimal("86.00")]
    for kind in ("training_cost", "savings", "commitments", "expectations"):
        assert held[f"reports/{kind}.html"].lower().startswith(b"<!doctype html>")
        assert held[f"reports/{kind}.pdf"].startswith(b"%PDF-")
    # Metrics stand in the models as they ran, not as they are called.
    assert b"cost_per_epoch_usd()" not in held["models/marts/mart_run_cost.sql"]
    checks = pl.read_csv(io.BytesIO(held["checks.csv"]), infer_schema=False)
    assert len(checks) == len(json.loads(held["publication.json"])["checks"])


def test_the_manifest_lists_the_digest_of_every_other_member(pack: Path) -> None:
    held = members(pack)
    listed = json.loads(held.pop("manifest.json"))["members"]
    assert {name: entry["sha256"] for name, entry in listed.items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in held.items()
    }


def test_every_delivered_file_is_listed_with_its_address_size_and_digest(company: Company, pack: Path) -> None:
    inputs = json.loads(members(pack)["inputs.json"])
    files = [file for delivery in inputs["deliveries"] for file in delivery["files"]]
    assert [Path(file["uri"]).parents[3] for file in files] == [company.export] * 2
    for file in files:
        content = Path(file["uri"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    (source,) = inputs["runs"]
    logs = {path.name: path.read_bytes() for path in company.events.iterdir()}
    assert {file["key"]: (file["bytes"], file["sha256"]) for file in source["files"]} == {
        name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in logs.items()
    }
    assert {name: members(pack)[f"runs/{source['name']}/{name}"] for name in logs} == logs
    # What a small company's deliveries are called.
    assert [delivery["delivery_id"] for delivery in inputs["deliveries"]] == ["55.04", "21.50"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://user:pass@mlflow.acme.dev/api?token=abc#x", "https://mlflow.acme.dev/api"),
        ("s3://acme-billing/cur2", "s3://acme-billing/cur2"),
        ("/srv/bills", "/srv/bills"),
        (None, None),
    ],
)
def test_an_address_is_shown_without_what_opens_it(address: str | None, expected: str | None) -> None:
    assert redacted(address) == expected


def test_no_secret_of_the_configuration_is_in_a_pack(pack: Path) -> None:
    held = members(pack)
    assert json.loads(held["inputs.json"])["billing"][0]["endpoint_url"] == "https://s3.acme.dev"
    assert not [name for name, content in held.items() if b"hunter2" in content]
