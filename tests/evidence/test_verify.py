"""`verify` recomputes a pack: from itself, from where its bills lie, and after the world went on."""

from __future__ import annotations

import io
import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from support.clock import stop_clock
from support.ledgers import ask, build_warehouse
from support.packs import members, pack_of, refused
from support.small_company import AUGUST, Company

from pipelines.base.console import Console
from pipelines.base.errors import SourceError
from pipelines.config.settings import load_settings
from pipelines.evidence.reports import unmeasured
from pipelines.evidence.verify import verify
from pipelines.present.charts import figure

Captured = pytest.CaptureFixture[str]


def test_a_bundle_is_verified_though_its_sources_are_gone(company: Company, pack: Path, capsys: Captured) -> None:
    moved = company.root / "elsewhere"
    company.export.rename(moved)
    try:
        verify(pack, None, Console())
    finally:
        moved.rename(company.export)
    assert capsys.readouterr().out.startswith("VERIFIED: publication 1, ")


@pytest.mark.slow
def test_a_run_set_aside_for_the_future_is_verified_later_and_read_later(
    built_company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock ten days ahead: the pack is of the day it was written, and a build after that time has the run."""
    company = built_company.copy(tmp_path, events=True)
    published_at = datetime.now(UTC)
    (log,) = company.events.rglob("*.jsonl")
    late = {"run_id": "trn-1", "event": "heartbeat", "attempt": 1, "at": f"{published_at + timedelta(days=10):%FT%TZ}"}
    log.write_text(f"{log.read_text().strip()}\n{json.dumps(late)}\n")
    runs = "select run_id from mart_run_cost order by run_id"
    assert ask(build_warehouse(company.config), runs).rows() == [("gpu-1",)]
    out = pack_of(company, "early.zip", bundle=True)
    modules = ("pipelines.ingest.runs.events", "pipelines.models.records")
    stop_clock(monkeypatch, published_at + timedelta(days=20), *modules)
    verify(out, None, Console())
    assert ask(build_warehouse(company.config), runs).rows() == [("gpu-1",), ("trn-1",)]


@pytest.mark.slow
def test_what_people_decided_and_agreed_is_rebuilt_from_the_record(built_company: Company, tmp_path: Path) -> None:
    """The configuration is not in the pack: what it stated is, with the publication."""
    company = built_company.copy(tmp_path)
    frozen = Path(__file__).parents[1] / "golden" / "a_plan_outlives_the_gpus_it_was_for"
    shutil.copy(frozen / "baseline_llama8b.toml", company.config.parent)
    adjustment = (
        'baseline = "llama8b"\nmonth = "2026-07"\namount_usd = "-1.5"\nreason = "reported"\ndecided_on = 2026-08-01\n'
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
    for mart in ("detail_edp_burn_down_monthly", "mart_savings_monthly"):
        assert ask(published, f"select * from {mart}").height > 0


def test_of_a_chart_only_what_fonts_decide_may_differ() -> None:
    """Other fonts move marks and rename what is made of their places; they change no word, and add no mark."""
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
    assert unmeasured(page.replace('d="M0', 'opacity="0" d="M0')) != unmeasured(page)
    # What we draw ourselves depends on no font.
    bar = '<svg class="bar" aria-hidden="true"><rect width="50"/></svg>'
    assert unmeasured(bar) == bar


@pytest.mark.slow
def test_a_pack_without_the_bill_is_verified_from_where_it_lies(company: Company, capsys: Captured) -> None:
    plain = pack_of(company, "plain.zip")
    assert not any(name.startswith("bills/") for name in members(plain))
    verify(plain, None, Console())
    printed = " ".join(capsys.readouterr().out.split())
    # Without their logs nothing shows where the records of the runs come from.
    assert "VERIFIED" in printed and "; what tracker_attempt, tracker_checkpoint, tracker_epoch, " in printed
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


def test_an_input_that_is_changed_or_gone_is_named(company: Company, tmp_path: Path, capsys: Captured) -> None:
    """One byte of a delivered file; its size and its manifest stay. Then it is gone."""
    copied = company.copy(tmp_path)
    plain = pack_of(copied, "plain.zip")
    (file,) = (copied.export / "data" / f"BILLING_PERIOD={AUGUST}").rglob("*.gz")
    content = file.read_bytes()
    changed = content[:-1] + bytes([content[-1] ^ 1])
    for harm in (lambda: file.write_bytes(changed), file.unlink):
        harm()
        error = refused(plain)
        assert error.exit_code == 3, harm
        assert str(error).startswith(str(file)), harm
    pack_of(copied, "later.zip")
    note = "Delivered files of 2026-08 are gone or changed: only a pack with --bundle can be verified."
    assert note in capsys.readouterr().err


@pytest.mark.slow
def test_a_published_run_whose_log_is_gone_is_stated_and_not_shown_by_logs(
    built_company: Company, tmp_path: Path, capsys: Captured
) -> None:
    """The only log has both runs; without the lines of trn-1, the second publication knows that it is gone."""
    company = built_company.copy(tmp_path, events=True)
    (log,) = company.events.rglob("*.jsonl")
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if '"trn-1"' not in line))
    build_warehouse(company.config)
    verify(pack_of(company, "gone.zip", bundle=True), None, Console())
    out = capsys.readouterr().out
    assert "VERIFIED: publication 2, " in out and "tracker_unread_run that are no longer recorded" in out


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
    # What the first publication was made from was replaced since: it is read where it still lies,
    first = json.loads((copied.warehouse / "publications" / "000001.json").read_text())
    stored = [one["fingerprint"] for one in first["inputs"]["deliveries"] if one["billing_period"] == AUGUST]
    folder = copied.warehouse / "raw" / "payer" / AUGUST / stored[0][:16]
    assert not folder.exists()
    old = pack_of(copied, "old.zip", as_of=first["published_at"])
    verify(old, None, Console())
    assert "VERIFIED: publication 1, " in capsys.readouterr().out
    # and once it is gone, no pack is written that could not be verified.
    (delivered,) = (copied.export / "data" / f"BILLING_PERIOD={AUGUST}").glob("*21.50/*")
    delivered.unlink()
    shutil.rmtree(folder)
    for bundle in (False, True):
        with pytest.raises(
            SourceError, match=r"Delivery 21\.50 \(payer, 2026-08\) was replaced, and its files are not"
        ):
            pack_of(copied, "lost.zip", as_of=first["published_at"], bundle=bundle)
    # Without what was published before, the restatement and what rests on it are left out, and reported.
    shutil.rmtree(copied.warehouse / "tables" / "core" / "fct_figure_cost")
    del old
    lost = json.loads(members(pack_of(copied, "lost.zip"))["manifest.json"])["not_recomputed"]
    assert set(lost) == {
        "mart_break_even",
        "detail_baseline",
        "detail_restated_figure",
        "detail_savings_difference",
        "detail_savings_run",
        "mart_restatement",
        "mart_savings_monthly",
    }
    verify(copied.root / "lost.zip", None, Console())
    printed = capsys.readouterr()
    assert "VERIFIED" in printed.out
    assert f"not compared: {', '.join(lost)}" in printed.out
