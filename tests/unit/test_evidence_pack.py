"""The evidence pack and `verify`: what the pack holds, that it is recomputed, and that what was changed is named."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from support.ledgers import build_warehouse, open_tables
from support.small_company import AUGUST, Company

from pipelines import house
from pipelines.address import redacted
from pipelines.console import Console
from pipelines.errors import CheckError, SourceError, TrainledgerError, UsageError
from pipelines.evidence.pack import write_pack
from pipelines.evidence.reports import unmeasured
from pipelines.evidence.verify import verify
from pipelines.models.catalog import load_catalog
from pipelines.reports.charts import figure
from pipelines.settings import load_settings

Captured = pytest.CaptureFixture[str]
RUNS = "marts/mart_run_cost.parquet"


def pack_of(company: Company, name: str, *, as_of: str | None = None, bundle: bool = False) -> Path:
    out = company.root / name
    write_pack(load_settings(company.config), out, Console(), as_of=as_of, bundle=bundle)
    return out


def members(pack: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(pack) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(pack: Path, change: Callable[[dict[str, bytes]], None], *, sealed: bool) -> Path:
    """The pack with members changed; `sealed` also has the manifest say that this is how they were packed."""
    held = members(pack)
    change(held)
    if sealed:
        manifest = json.loads(held["manifest.json"])
        manifest["members"] = {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in held.items()
            if name != "manifest.json"
        }
        held["manifest.json"] = json.dumps(manifest).encode()
    out = pack.with_name("rewritten.zip")
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return out


def as_parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def refused(pack: Path) -> TrainledgerError:
    with pytest.raises(TrainledgerError) as caught:
        verify(pack, None, Console())
    return caught.value


@pytest.fixture(scope="module")
def company(built_company: Company, tmp_path_factory: pytest.TempPathFactory) -> Company:
    """The GPU run costs 2 hours at 55.04 USD, 110.08; the Trainium run 4 hours at 21.50."""
    return built_company.copy(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module")
def pack(company: Company) -> Path:
    return pack_of(company, "bundle.zip", bundle=True)


def test_two_packs_of_one_publication_are_the_same_bytes(company: Company, pack: Path) -> None:
    assert pack_of(company, "again.zip", bundle=True).read_bytes() == pack.read_bytes()


def test_a_pack_holds_all_that_its_figures_rest_on(company: Company, pack: Path) -> None:
    held = members(pack)
    for model in load_catalog().ordered:
        ending = {"sql": "sql", "reference": "csv", "transform": "py"}[model.kind]
        assert f"models/{model.key}.{ending}" in held
        assert f"expectations/{model.key}.yml" in held
    for model in load_catalog().layer("marts"):
        assert {f"marts/{model.name}.parquet", f"marts/{model.name}.csv"} <= set(held)
    assert held["models/reference/ref_region.csv"] == (house.REFERENCE / "ref_region.csv").read_bytes()
    assert held["requirements.lock"] == (house.HOUSE / "requirements.lock").read_bytes()
    runs = pl.read_parquet(io.BytesIO(held[RUNS])).sort("run_id")
    assert runs["effective_cost_usd"].to_list() == [Decimal("110.08"), Decimal("86.00")]
    for kind in ("training_cost", "savings", "commitments"):
        assert held[f"reports/{kind}.html"].startswith(b"<!doctype html>")
        assert held[f"reports/{kind}.pdf"].startswith(b"%PDF-")
    # Metrics stand in the models as they ran, not as they are called.
    assert b"cost_per_epoch_usd()" not in held["models/marts/mart_run_cost.sql"]
    checks = pl.read_csv(io.BytesIO(held["checks.csv"]), infer_schema=False)
    assert len(checks) == len(json.loads(held["publication.json"])["checks"])


def test_the_manifest_tells_the_digest_of_every_other_member(pack: Path) -> None:
    held = members(pack)
    told = json.loads(held.pop("manifest.json"))["members"]
    assert {name: entry["sha256"] for name, entry in told.items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in held.items()
    }


def test_every_delivered_file_is_told_with_its_address_size_and_digest(company: Company, pack: Path) -> None:
    told = json.loads(members(pack)["inputs.json"])
    files = [file for delivery in told["deliveries"] for file in delivery["files"]]
    assert [Path(file["uri"]).parents[3] for file in files] == [company.export] * 2
    for file in files:
        content = Path(file["uri"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    (source,) = told["runs"]
    logs = {path.name: path.read_bytes() for path in company.events.iterdir()}
    assert {file["key"]: (file["bytes"], file["sha256"]) for file in source["files"]} == {
        name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in logs.items()
    }
    assert {name: members(pack)[f"runs/{source['name']}/{name}"] for name in logs} == logs
    # What a small company's deliveries are called.
    assert [delivery["delivery_id"] for delivery in told["deliveries"]] == ["55.04", "21.50"]


@pytest.mark.slow
def test_a_bundle_is_verified_though_its_sources_are_gone(company: Company, pack: Path, capsys: Captured) -> None:
    moved = company.root / "elsewhere"
    company.export.rename(moved)
    try:
        verify(pack, None, Console())
    finally:
        moved.rename(company.export)
    assert capsys.readouterr().out.startswith("VERIFIED: publication 1, ")


@pytest.mark.slow
def test_what_people_decided_and_agreed_is_rebuilt_from_the_record(built_company: Company, tmp_path: Path) -> None:
    """The configuration is not in the pack: what it stated is, with the publication."""
    company = built_company.copy(tmp_path)
    frozen = Path(__file__).parents[1] / "golden" / "a_plan_outlives_the_gpus_it_was_for"
    shutil.copy(frozen / "baseline_llama8b.toml", company.config.parent)
    adjustment = (
        'baseline = "llama8b"\nmonth = "2026-07"\namount_usd = "-1.5"\nreason = "told"\ndecided_on = 2026-08-01\n'
    )
    period = '{first_month = "2026-07", last_month = "2026-12", commitment_usd = "100"}'
    baseline = (frozen / "decisions.toml").read_text()
    company.config.write_text(
        f"{company.config.read_text()}\n{baseline}\n[[decisions.adjustments]]\n{adjustment}"
        f'\n[[terms.agreements]]\nname = "edp"\nperiods = [{period}]\n'
    )
    published = build_warehouse(company.config)
    out = pack_of(company, "decided.zip", bundle=True)
    company.config.unlink()
    verify(out, None, Console())
    with open_tables(published) as engine:
        for mart in ("mart_edp_burn_down_monthly", "mart_savings_monthly"):
            assert engine.query(f"select * from {mart}").height > 0


def test_a_file_that_was_changed_in_the_pack_is_named(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        held[RUNS] = held[RUNS][:-1] + b"?"
        held["models/core/dim_run.sql"] += b"-- more\n"
        del held["inputs.json"]
        held["extra.txt"] = b""

    error = refused(rewritten(pack, change, sealed=False))
    assert error.exit_code == 1
    assert "4 files in all" in str(error)


@pytest.mark.parametrize("name", [RUNS, "models/core/dim_run.sql", "bills", "records/tracker_epoch", "runs/"])
def test_each_kind_of_file_is_named_when_it_was_changed(pack: Path, name: str) -> None:
    """A figure, a model, an input of either side."""
    (first, *_) = [member for member in sorted(members(pack)) if member.startswith(name)]

    def change(held: dict[str, bytes]) -> None:
        held[first] += b" "

    assert f"{first} is not what was packed, 1 file in all" in str(refused(rewritten(pack, change, sealed=False)))


def test_a_forgery_under_a_manifest_that_fits_is_told_with_both_values(
    pack: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU run's cost is made 100.08 in the Parquet file, the Trainium run's 68.00 on the page, and the records of
    the runs, an input, tell of a second epoch of the GPU run."""

    def change(held: dict[str, bytes]) -> None:
        frame = pl.read_parquet(io.BytesIO(held[RUNS]))
        cost = pl.when(run_id="gpu-1").then(pl.lit(Decimal("100.08"))).otherwise("effective_cost_usd")
        typed = cost.cast(frame.schema["effective_cost_usd"]).alias("effective_cost_usd")
        held[RUNS] = as_parquet(frame.with_columns(typed))
        assert b"$86.00" in held["reports/training_cost.html"]
        held["reports/training_cost.html"] = held["reports/training_cost.html"].replace(b"$86.00", b"$68.00")
        (name,) = [name for name in held if name.startswith("records/tracker_epoch/")]
        epochs = pl.read_parquet(io.BytesIO(held[name]))
        second = epochs.filter(run_id="gpu-1").with_columns(pl.col("epoch_index") + 1)
        held[name] = as_parquet(pl.concat([epochs, second]))

    # The forged epoch moves figures in more marts than are shown.
    monkeypatch.setattr("pipelines.evidence.verify.SHOWN", 10_000)
    assert refused(rewritten(pack, change, sealed=True)).exit_code == 1
    told = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in told.splitlines()]
    assert ["mart_run_cost", "run_id=gpu-1", "effective_cost_usd", "100.08", "110.08"] in cells
    # It had one epoch, and the forged input gives two.
    assert ["mart_run_cost", "run_id=gpu-1", "epoch_completed_count", "1", "2"] in cells
    # The logs beside the forged records still tell of one epoch.
    assert [cell[-2:] for cell in cells if cell[0] == "records/tracker_epoch"] == [["1 row", "no row"]]
    # The CSV beside the forged Parquet still says what was.
    others = {cell[0] for cell in cells if cell[0].endswith((".csv", ".html", ".pdf"))}
    # Another epoch is another cost per epoch, in the report on paper and in the savings proof too; no commitment moved.
    assert others == {
        "marts/mart_run_cost.csv",
        "reports/training_cost.html",
        "reports/training_cost.pdf",
        "reports/savings.html",
    }


@pytest.mark.slow
def test_a_forged_report_is_named_with_both_readings(pack: Path, capsys: Captured) -> None:
    """A word of the savings proof, of which the paper beside it says the other; and a paper that is not its page's."""

    def change(held: dict[str, bytes]) -> None:
        assert held["reports/savings.html"].count(b"Nothing restated") == 1
        held["reports/savings.html"] = held["reports/savings.html"].replace(b"Nothing restated", b"Much restated")
        held["reports/commitments.pdf"] += b"% more"

    assert "3 differences" in str(refused(rewritten(pack, change, sealed=True)))
    told = capsys.readouterr().out
    assert "Much restated" in told and "Nothing restated" in told
    for member in ("reports/savings.html", "reports/savings.pdf", "reports/commitments.pdf"):
        assert member in told


@pytest.mark.parametrize(
    "inserted",
    [
        "<svg><text>Training runs cost $1.00</text></svg>",
        '<svg role="img" aria-label="" class="marks"><text>Training runs cost $1.00</text></svg>',
    ],
)
def test_a_drawing_that_was_added_to_a_report_is_named(pack: Path, capsys: Captured, inserted: str) -> None:
    """A reader takes what a picture says for what the report says."""

    def change(held: dict[str, bytes]) -> None:
        held["reports/savings.html"] = held["reports/savings.html"].replace(b"</h1>", b"</h1>" + inserted.encode(), 1)

    assert "is not what its inputs give" in str(refused(rewritten(pack, change, sealed=True)))
    assert "cost $1.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, None) for key in ("publication", "code_revision", "has_bills", "not_recomputed")),
        *(("month", value) for value in ("2026-13", 5, "2031-01", ["2026-07"])),
        *(("not_recomputed", value) for value in (5, [5], ["mart_of_nobody"])),
        ("has_bills", "yes"),
    ],
)
def test_a_manifest_that_no_pack_has_is_refused_by_its_key(pack: Path, key: str, value: object) -> None:
    """Before anything is built: no value stands for a key that is missing. July and August were delivered."""

    def change(held: dict[str, bytes]) -> None:
        manifest = json.loads(held["manifest.json"])
        del manifest[key]
        held["manifest.json"] = json.dumps({**manifest, **({} if value is None else {key: value})}).encode()

    error = refused(rewritten(pack, change, sealed=True))
    assert isinstance(error, CheckError)
    assert f"rewritten.zip: {key!r} of manifest.json is {'missing' if value is None else ascii(value)}" in str(error)


def test_a_report_that_is_no_text_is_refused_by_its_name(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        held["reports/savings.html"] = b"\xff" + held["reports/savings.html"]

    error = refused(rewritten(pack, change, sealed=True))
    assert isinstance(error, CheckError)
    assert "rewritten.zip: reports/savings.html is no UTF-8 text (byte 0)" in str(error)


def test_of_a_chart_only_what_fonts_decide_may_differ() -> None:
    """Other fonts move marks and rename what is made of their places; they say no other word, and add no mark."""
    rows = [{"a": "gpu", "b": 1}, {"a": "trainium", "b": 2}]
    chart = alt.Chart(alt.Data(values=rows)).mark_bar(clip=True).encode(x="b:Q", y="a:N")
    page = str(figure(lambda width: chart.properties(width=width), "Cost of 2"))
    assert 'd="M0,0h' in page and "translate(0.5,40.5)" in page and 'font-size="12px"' in page and ">gpu</text>" in page
    moved = page.replace("translate(0.5,40.5)", "translate(0.75,41)").replace('d="M0,0h', 'd="M1,0h')
    moved = re.sub(r"\bc[0-9a-f]{8}-", "c01234567-", moved.replace('font-size="12px"', 'font-size="11px"'))
    assert moved != page and unmeasured(moved) == unmeasured(page)
    for one, other in ((">gpu<", ">cpu<"), ("Cost of 2", "Cost of 3"), (">0.5<", ">0.6<"), ("</svg>", "<text/></svg>")):
        assert one in page
        assert unmeasured(page.replace(one, other)) != unmeasured(page)
    # What we draw ourselves depends on no font.
    bar = '<svg class="bar" aria-hidden="true"><rect width="50"/></svg>'
    assert unmeasured(bar) == bar


def test_a_forged_model_is_named_before_anything_is_built(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        held["models/core/dim_run.sql"] += b"-- more\n"

    error = refused(rewritten(pack, change, sealed=True))
    assert error.exit_code == 1
    assert "models/core/dim_run.sql is not what revision " in str(error)


@pytest.mark.slow
def test_a_pack_without_the_bill_is_verified_from_where_it_lies(company: Company, capsys: Captured) -> None:
    plain = pack_of(company, "plain.zip")
    assert not any(name.startswith("bills/") for name in members(plain))
    verify(plain, None, Console())
    assert "VERIFIED" in capsys.readouterr().out
    # A source that moved is found by its name in the configuration.
    moved = company.root / "elsewhere"
    company.export.rename(moved)
    before = company.config.read_text()
    try:
        assert refused(plain).exit_code == 3
        company.config.write_text(before.replace(str(company.export), str(moved)))
        verify(plain, load_settings(company.config), Console())
    finally:
        company.config.write_text(before)
        moved.rename(company.export)


@pytest.mark.parametrize("fate", ["changed", "gone"])
def test_an_input_that_is_changed_or_gone_is_named(company: Company, tmp_path: Path, fate: str) -> None:
    """One byte of a delivered file; its size and its manifest stay."""
    copied = company.copy(tmp_path)
    plain = pack_of(copied, "plain.zip")
    (file,) = (copied.export / "data" / f"BILLING_PERIOD={AUGUST}").rglob("*.gz")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    if fate == "gone":
        file.unlink()
    error = refused(plain)
    assert error.exit_code == 3
    assert str(error).startswith(str(file))


@pytest.mark.slow
def test_a_restated_month_is_recomputed_with_the_number_of_its_delivery(
    company: Company, tmp_path: Path, capsys: Captured
) -> None:
    """August is delivered again at 20.00, so its second delivery changed the cost by 4 x -1.50 = -6.00 USD."""
    copied = company.copy(tmp_path)
    copied.deliver(AUGUST, "20.00")
    build_warehouse(copied.config)
    plain = pack_of(copied, "restated.zip")
    restated = pl.read_parquet(io.BytesIO(members(plain)["marts/mart_restatement.parquet"]))
    moved = restated.filter(delivery_no=2).select("billing_month", "effective_change_usd").rows()
    assert [(str(month)[:7], change) for month, change in moved] == [(AUGUST, Decimal("-6.00"))]
    verify(plain, None, Console())
    assert "VERIFIED: publication 2, " in capsys.readouterr().out
    # What the first publication was made from was replaced since: it is told, by delivery, not made up.
    first = json.loads((copied.warehouse / "publications" / "000001.json").read_text())["published_at"]
    old = pack_of(copied, "old.zip", as_of=first)
    error = refused(old)
    assert (error.exit_code, str(error).startswith("Delivery 21.50 (payer, 2026-08)")) == (3, True)
    with pytest.raises(SourceError, match=r"kept no more, so they cannot be bundled"):
        pack_of(copied, "old.zip", as_of=first, bundle=True)
    # Without what was published before, the restatement and what rests on it are left out, and told.
    shutil.rmtree(copied.warehouse / "tables" / "core" / "fct_ledger_daily")
    del old
    lost = json.loads(members(pack_of(copied, "lost.zip"))["manifest.json"])["not_recomputed"]
    assert lost == ["mart_break_even", "mart_restated_figure", "mart_restatement", "mart_savings_monthly"]
    verify(copied.root / "lost.zip", None, Console())
    told = capsys.readouterr()
    assert "VERIFIED" in told.out
    assert f"not compared: {', '.join(lost)}" in told.err


def test_what_is_no_pack_is_refused_as_wrong_usage(pack: Path, tmp_path: Path) -> None:
    text, other, foreign = tmp_path / "a.zip", tmp_path / "b.zip", tmp_path / "c.zip"
    text.write_text("no zip")
    for path, manifest in ((other, None), (foreign, '{"format": "other", "members": {}}')):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json" if manifest else "x", manifest or "")
    for path in (text, other, foreign, tmp_path / "none.zip"):
        assert isinstance(refused(path), UsageError)


def test_a_pack_of_other_models_names_the_version_that_verifies_it(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        manifest = json.loads(held["manifest.json"])
        held["manifest.json"] = json.dumps({**manifest, "code_revision": "0.0.9+older"}).encode()

    error = refused(rewritten(pack, change, sealed=True))
    assert (error.exit_code, "was made by revision 0.0.9+older" in str(error)) == (2, True)


@pytest.mark.parametrize("source", ["../../escape", "/etc"])
def test_a_pack_that_would_write_elsewhere_is_refused(pack: Path, source: str) -> None:
    def change(held: dict[str, bytes]) -> None:
        record = json.loads(held["publication.json"])
        record["inputs"]["deliveries"][0]["source"] = source
        held["publication.json"] = json.dumps(record).encode()

    assert isinstance(refused(rewritten(pack, change, sealed=True)), CheckError)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://user:pass@mlflow.acme.dev/api?token=abc#x", "https://mlflow.acme.dev/api"),
        ("s3://acme-billing/cur2", "s3://acme-billing/cur2"),
        ("/srv/bills", "/srv/bills"),
        (None, None),
    ],
)
def test_an_address_is_told_without_what_opens_it(address: str | None, told: str | None) -> None:
    assert redacted(address) == told


def test_no_secret_of_the_configuration_is_in_a_pack(company: Company, tmp_path: Path) -> None:
    copied = company.copy(tmp_path)
    config = copied.config.read_text()
    secret = 'endpoint_url = "https://key:hunter2@s3.acme.dev"\nprofile = "hunter2"\n'
    copied.config.write_text(config.replace("[[billing]]\n", f"[[billing]]\n{secret}"))
    held = members(pack_of(copied, "secret.zip"))
    assert json.loads(held["inputs.json"])["billing"][0]["endpoint_url"] == "https://s3.acme.dev"
    assert not [name for name, content in held.items() if b"hunter2" in content]
