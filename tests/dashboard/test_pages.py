"""The pages as they are sent: what they show, what they refuse, what they never let through."""

from __future__ import annotations

import html
import re
import urllib.request
from collections.abc import Callable
from csv import DictReader
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.commands import run_command
from support.ledgers import EXPLAIN_TABLES, build_warehouse, publish_tables
from support.site import HOSTILE, HOSTILE_TEAM, Site, address_of, hour_of_gpu
from support.small_company import AUGUST, JULY, Company, found

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.dashboard.graph import drawn
from pipelines.dashboard.links import PAGES, command
from pipelines.dashboard.pages import KNOWN, csv_rows, render
from pipelines.dashboard.reader import Reader
from pipelines.dashboard.web import is_loopback
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.notify.news import news_of
from pipelines.present.render import report_page
from pipelines.present.text import show_key_figures

# What the pages of a run and their explanation show.
RUN_PAGES = {*EXPLAIN_TABLES, "detail_run_efficiency", "detail_run_phase_cost", "detail_run_timeline"}
RUN_PAGES |= {"mart_checkpoint_cost", "mart_epoch_cost", "mart_run_waste"}
# What an attacker would put where a word is expected.
ATTACKS = (
    "' or 1=1 --",
    "'; drop table mart_run_cost; --",
    "x' union select account_id from mart_cost_ledger_daily --",
    "<script>alert(1)</script>",
    "../../../../etc/passwd",
    "{{ 7 * 7 }}",
    "$team",
    "\x00",
    "ü" * 400,
)


def paths() -> list[str]:
    """The address of each page of the menu."""
    return ["/" if name == "overview" else f"/{name}" for name in PAGES]


def text_of(page: str) -> str:
    """The text of a page, without its markup."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


@pytest.mark.parametrize("path", paths())
def test_each_page_states_what_it_shows_and_of_when(site: Site, path: str) -> None:
    status, page = site.get(path)
    assert status == 200
    assert page.startswith("<!doctype html>") and '<html lang="en">' in page
    assert "Publication 2, 5 September 2026, 23:30 UTC" in text_of(page)
    assert page.count("<h1") == 1
    # Nothing is fetched from elsewhere.
    assert re.findall(r'(?:src|href|action)="(?:https?:)?//', page) == []
    assert " style=" not in page and "<style" not in page and "onclick" not in page


def test_costs_are_those_of_the_bill(site: Site) -> None:
    """2 hours at 55.04, 4 at 20.00, one at 60.00, each used whole: 110.08 + 80.00 + 60.00 = 250.08 USD."""
    text = text_of(site.get("/runs")[1])
    assert "$110.08" in text and "$80.00" in text and "$60.00" in text
    assert "3 runs: $250 effective" in text


def test_an_earlier_publication_is_read_as_it_was(site: Site) -> None:
    """Before the restatement the Trainium run was 4 x 21.50 = 86.00 USD; every link keeps the date."""
    page = site.get("/runs?as_of=2026-09-04")[1]
    text = text_of(page)
    assert "$86.00" in text and "$80.00" not in text
    assert "As known on 2026-09-04: publication 1, 3 September 2026, 10:00 UTC" in text
    links = re.findall(r'href="(/[^".]*)"', page)
    assert links and all("as_of=2026-09-04" in link for link in links)
    # The command has no --as-of.
    explained = text_of(site.get("/explain?kind=run&word=trn-1&as_of=2026-09-04")[1])
    assert "86.00" in explained and "The same of the newest publication in a terminal: trainledger explain" in explained


def test_what_aws_restated_is_shown(site: Site) -> None:
    """4 x 1.50 = 6.00 less."""
    text = text_of(site.get("/bill")[1])
    assert "No delivery of AWS has moved" not in text
    assert "$6.00" in text


def test_a_date_before_the_first_publication_is_reported(site: Site) -> None:
    status, page = site.get("/runs?as_of=2026-09-01")
    assert status == 400 and "held no publication yet on 2026-09-01" in text_of(page)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    "path",
    [
        *(f"/runs?{name}=" for name in ("q", "team", "workload", "status", "silicon", "month", "sort", "way", "page")),
        *("/run?id=", "/ledger?bucket=", "/ledger?month=", "/commitments?commitment=", "/commitments?silicon="),
        *("/dictionary?q=", "/explain?kind=", "/explain?kind=run&word=", "/explain?kind=name&word="),
        *("/explain?kind=day&word=", "/explain?kind=month&word=2026-08&bucket=", "/explain?kind=invoice&word="),
        *("/bill?as_of=", "/"),
    ],
)
def test_hostile_words_find_nothing_and_break_nothing(site: Site, path: str, attack: str) -> None:
    status, page = site.get(path + address_of(x=attack)[2:])
    assert status in (200, 400, 404)
    assert "Traceback" not in page and "Binder Error" not in page and "Parser Error" not in page
    assert "<script>alert" not in page
    if status == 200 and path.startswith("/runs?q="):
        # Nothing is called so but the run that is.
        assert ("1 run:" in page) is (attack == HOSTILE)
        assert page.count('<th scope="row">') == (attack == HOSTILE)


def test_a_hostile_run_and_team_are_text(site: Site) -> None:
    for path in ("/runs", f"/runs?{address_of(team=HOSTILE_TEAM)}", f"/run?{address_of(id=HOSTILE)}"):
        status, page = site.get(path)
        assert status == 200
        assert "<script>alert" not in page and "<img" not in page
        assert html.escape(HOSTILE) in page


def test_explain_shows_what_the_command_shows(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Amounts and notes of every line, in the same order."""
    page = text_of(site.get("/explain?kind=run&word=trn-1")[1])
    printed = run_command(capsys, "explain", "run", "trn-1", "--config", str(site.company.config)).out
    assert "The sums agree to the last digit at every level: mart_run_cost, the daily ledger and 4 lines" in page
    inside, shown = (
        re.findall(r"\d+\.\d\d\b", text[text.index("mart_run_cost, as published") :]) for text in (printed, page)
    )
    assert inside.count("20.00") >= 8
    assert inside == shown


def test_explain_of_what_is_not_there_is_not_found(site: Site) -> None:
    status, page = site.get("/explain?kind=run&word=trn-9")
    assert status == 404 and "'trn-9' is not a known run; did you mean trn-1?" in text_of(page)
    # There a currency can be chosen, where a run has several.
    assert 'href="/explain"' in page and 'name="currency"' in site.get("/explain")[1]


def test_a_month_of_the_ledger_is_explained(site: Site) -> None:
    """August's runs: 4 x 20.00 + 60.00 = 140.00 USD."""
    status, page = site.get("/explain?kind=month&word=2026-08&bucket=run&currency=USD")
    assert status == 200 and "140.00" in page and "The sums agree to the last digit" in page


def test_an_unknown_page_is_a_sentence(site: Site) -> None:
    status, page = site.get("/nix")
    assert status == 404 and "There is no page /nix." in text_of(page)


def test_a_page_may_load_nothing_from_elsewhere(site: Site) -> None:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(site.address + "/") as answer:
        policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy


def test_a_page_elsewhere_cannot_borrow_the_address(site: Site) -> None:
    """A name of somebody's own that points at this machine is not answered."""
    assert site.get("/", Host="evil.example")[0] == 400


def test_only_loopback_is_served_unasked(company: Company, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("0.0.0.0") and not is_loopback("10.0.0.7") and not is_loopback("example.com")
    result = run_command(capsys, "dashboard", "--host", "0.0.0.0", "--config", str(company.config))
    assert result.code == 2 and "--open-to-network" in result.err


def test_written_pages_lead_to_each_other_alone(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every page of the menu, both months of ledger and teams, the 2 most expensive of the 3 runs: gpu-1 and trn-1."""
    config = str(company.config)
    result = run_command(capsys, "dashboard", "--export", str(tmp_path), "--run-pages", "2", "--config", config)
    assert result.code == 0 and "--run-pages 3 writes all" in result.out
    files = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.html")}
    plain = {"index.html", "runs.html", "sides.html", "commitments.html", "bill.html", "explain.html"}
    plain |= {"dictionary.html", "lineage.html"}
    plain |= {f"{name}{month}.html" for name in ("ledger", "teams") for month in ("", "-2026-07")}
    assert plain <= set(files)
    titles = [re.findall(r"<h1.*?</h1>", page)[0] for name, page in files.items() if name.startswith("run-")]
    assert sorted(text_of(title).strip() for title in titles) == ["gpu-1", "trn-1"]
    for name, page in files.items():
        links = [link for link in re.findall(r'(?:href|src)="([^"#]*)', page) if link and not link.startswith("data:")]
        assert links and [link for link in links if not (tmp_path / link).is_file()] == [], name
        places = re.findall(r'href="([^"#]*)#([^"]+)', page)
        assert [id for file, id in places if f'id="{id}"' not in files[file or name]] == [], name
        assert "<script>alert" not in page
        assert (
            """http-equiv="content-security-policy" content="default-src 'none'; style-src 'self'; script-src 'self'"""
            in page
        )
    assert 'title="trainledger explain run gpu-1"' in files["runs.html"] and "$110.08" in files["runs.html"]


def test_runs_of_awkward_names_have_their_pages(
    tmp_path: Path, serving: Callable[[Company], Site], capsys: pytest.CaptureFixture[str]
) -> None:
    """Trackers allow any name: one that begins with spaces, one of 450 letters, one with a NUL."""
    names = ("  lead", "L" * 450, "nul\0run")
    company = found(tmp_path)
    for place, name in enumerate(names):
        write_events(company.events, hour_of_gpu(name, f"i-odd{place}", "team "), f"odd{place}.jsonl")
    publish_tables(company.config, RUN_PAGES)
    site = serving(company)
    for name in names:
        for address in (f"/run?{address_of(id=name)}", f"/explain?kind=run&{address_of(word=name)}"):
            status, page = site.get(address)
            assert status == 200 and name in html.unescape(page), (address, text_of(page))
    assert site.get("/run?id=lead")[0] == 404
    assert " 3 runs; 3 runs without a known cost." in text_of(site.get(f"/runs?{address_of(team='team')}")[1])
    status, page = site.get(f"/run?{address_of(id='M' * 450)}")
    assert status == 404 and f"There is no run '{'M' * 100}…' in this publication" in text_of(page)
    out = tmp_path / "site"
    result = run_command(capsys, "dashboard", "--export", str(out), "--config", str(company.config))
    assert result.code == 0
    assert len(list(out.glob("run-*.html"))) == 2 + len(names)


@pytest.mark.parametrize(
    ("story", "name", "query", "shown", "never"),
    [
        ("idle_reservation", "commitments", {}, "On-Demand Capacity Reservation", "odcr"),
        (
            "every_kind_of_commitment",
            "commitments",
            {},
            "Coverage by Compute Savings Plans for each hour",
            "compute savings plan",
        ),
        # Its lines covered: 22.00 + 21.50 + 26.00 + 0.192; on demand: 0.192 + 55.04 + 22.00 + 1.41 + 0.50 + 1.00.
        ("every_kind_of_commitment", "commitments", {}, "payer 000011112222 $150 $70 $80 46.5%", "covered_list"),
        # 17 + 365 days from 15 July 2026.
        ("every_kind_of_commitment", "commitments", {}, "382 after 14 Jul 2026", "days_to_expiry"),
        ("epochs_in_parts_and_blocks", "run", {"id": "blocks"}, "tokens in all, recorded by device", " device "),
    ],
)
def test_kinds_and_units_are_shown_in_words(
    published_story: Callable[[str], Path], story: str, name: str, query: dict[str, str], shown: str, never: str
) -> None:
    """As AWS calls what it sells; and a count of tokens is one of tokens, whoever recorded them."""
    reader = Reader(Warehouse(load_settings(published_story(story) / "trainledger.toml")))
    page = text_of(render(reader, name, query))
    assert shown in page
    assert never not in page.replace(shown, "")


def test_teams_have_their_costs_budgets_and_anomalies(published_story: Callable[[str], Path]) -> None:
    """The story's derivation: nlp spent 134.50 of 200, ocr its 21.50; nightly 10 cost 20.00 more than its median."""
    reader = Reader(
        Warehouse(load_settings(published_story("an_expensive_run_and_three_budgets") / "trainledger.toml"))
    )
    page = text_of(render(reader, "teams", {"month": JULY}))
    assert "nlp $134.50 $0.00 $0.00 $0.00 $0.00 $0.00 $0.00 $134.50" in page
    assert "nlp $200.00 $134.50 $65.50 67.3% all" in page
    assert "ocr $21.50 $21.50 $0.00 100.0% all" in page
    assert "$30.00 $10.00 $20.00" in page
    # The same in the report.
    with open_marts(reader.warehouse, published_of(reader.warehouse)) as marts:
        report = text_of(report_page(marts.query, published_of(reader.warehouse), "showback", JULY))
    assert "nlp $134.50 $0.00 $0.00 $0.00 $0.00 $0.00 $0.00 $134.50" in report
    assert "nlp $200.00 $134.50 $65.50 67.3% all" in report


@pytest.mark.parametrize(
    ("story", "name", "request_", "rows", "rest"),
    [
        ("epochs_in_parts_and_blocks", "run", {"id": "blocks"}, "epochs", "mart_epoch_cost"),
        ("an_expensive_run_and_three_budgets", "teams", {"month": JULY}, "showback", "mart_team_cost_monthly"),
    ],
)
def test_a_page_does_not_grow_with_its_rows(
    published_story: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    story: str,
    name: str,
    request_: dict[str, str],
    rows: str,
    rest: str,
) -> None:
    """Its csv has all of them: a run with 30,000 checkpoints had a page of 45 MB."""
    reader = Reader(Warehouse(load_settings(published_story(story) / "trainledger.toml")))
    context = KNOWN[name](reader.read(), request_)
    many = {**context, rows: context[rows] * 1000}
    monkeypatch.setitem(KNOWN, name, lambda volume, request: many)
    page = render(reader, name, request_)
    assert len(page) < 1_000_000
    assert re.search(rf"and [\d,]+ more rows in {rest}", text_of(page))
    assert csv_rows(reader, {**request_, "from": name, "list": rows})[1].count("\n") == len(many[rows]) + 1


def test_the_ledger_is_filtered_and_downloaded(published_story: Callable[[str], Path]) -> None:
    """The story's derivation: of July 134.50 are nlp's and 21.50 ocr's, each as runs on EC2."""
    reader = Reader(
        Warehouse(load_settings(published_story("an_expensive_run_and_three_budgets") / "trainledger.toml"))
    )
    query = {"month": JULY, "team": "ocr", "service": "AmazonEC2"}
    page = render(reader, "ledger", query)
    # An hour of 16 chips.
    assert "July 2026 16.0 $21.50" in text_of(page)
    assert "$134.50" not in page
    # Each link inside the page keeps the filters.
    assert f"/ledger?month={JULY}&amp;team=ocr&amp;service=AmazonEC2&amp;bucket=run" in page
    (run,) = DictReader(StringIO(csv_rows(reader, {**query, "from": "ledger", "list": "buckets"})[1]))
    assert (run["bucket"], Decimal(run["effective_cost_usd"])) == ("run", Decimal("21.50"))
    file, text = csv_rows(reader, {"from": "teams", "list": "showback", "month": JULY})
    assert file == f"teams-showback-{JULY}.csv"
    assert {row["team"]: Decimal(row["showback_cost_usd"]) for row in DictReader(StringIO(text))} == {
        "nlp": Decimal("134.50"),
        "ocr": Decimal("21.50"),
    }
    whole = list(DictReader(StringIO(csv_rows(reader, {"table": "mart_team_cost_monthly"})[1])))
    assert {row["team"] for row in whole} >= {"nlp", "ocr"}
    with pytest.raises(UsageError):
        csv_rows(reader, {"table": "fct_ledger"})


def test_a_bucket_that_no_line_is_in_is_an_empty_ledger(site: Site) -> None:
    """The overview links to each bucket; nothing of this company was served."""
    status, page = site.get(f"/ledger?month={AUGUST}&bucket=serving")
    assert status == 200 and "Nothing on the bill of August 2026 matches these filters" in page


def test_a_command_takes_a_run_whose_name_begins_with_a_dash() -> None:
    assert command("run", "-x", currency="USD") == "trainledger explain run --currency USD -- -x"


def test_a_graph_has_what_a_table_is_made_from_on_its_left() -> None:
    graph = drawn("fct_ledger")
    at = {box["name"]: box["x"] for box in graph["boxes"]}
    assert at["aws_cur_line_item"] < at["fct_charge"] < at["fct_ledger"] < at["mart_run_cost"]
    assert all(line["x"] < line["until_x"] for line in graph["lines"])


def test_an_empty_warehouse_states_it(tmp_path: Path, serving: Callable[[Company], Site]) -> None:
    company = Company(tmp_path, tmp_path / "events")
    company.deliver(JULY, "55.04")
    write_config(tmp_path, billing=company.export)
    site = serving(company)
    for path in paths():
        status, page = site.get(path)
        assert status == 400 and "holds no publication yet; run `trainledger build` first" in text_of(page)


def test_a_bill_without_runs_states_it_on_every_page(tmp_path: Path, serving: Callable[[Company], Site]) -> None:
    company = Company(tmp_path, tmp_path / "events")
    write_export(tmp_path, {JULY: [instance_hour(f"{JULY}-10T10", "i-gpu", "p5.48xlarge", "55.04")]})
    write_config(tmp_path, billing=company.export)
    build_warehouse(company.config)
    site = serving(company)
    answers = {path: site.get(path) for path in paths()}
    assert {status for status, _ in answers.values()} == {200}
    first = text_of(answers["/"][1])
    assert "What is the bill? $55 billed, July 2026" in first
    assert "What do accelerators cost? $55 effective, July 2026 GPU $55." in first
    assert "Which runs were they? Not known No accelerator on this bill has a run tag." in first
    # What runs used or left idle is unknown without runs; that no commitment is unused is on the bill.
    assert "July 2026 n/a $0 n/a $55 $0 $0 $0 $55" in first
    assert "No training run is recorded in this publication" in text_of(answers["/runs"][1])
    assert "there is nothing to compare" in text_of(answers["/sides"][1])
    # The hour that no run claimed.
    assert "$55.04" in text_of(answers["/bill"][1])


def test_a_bill_without_accelerators_explains_none(tmp_path: Path) -> None:
    """All of no accelerators, commitments and earlier days is as one wants it, and no reason to state so."""
    export = write_export(tmp_path, {JULY: [instance_hour(f"{JULY}-10T10", "i-web", "m5.large", "0.096")]})
    config = write_config(tmp_path, billing=export)
    bill = {"mart_cost_summary_monthly", "detail_unattributed_resource", "detail_billing_month"}
    commitments = {"detail_commitment_coverage_hourly", "detail_commitment_stranding"}
    publish_tables(config, bill | commitments | {"mart_cost_ledger_daily", "detail_cost_anomaly"})
    reader = Reader(Warehouse(load_settings(config)))
    assert "Spend without a run No accelerator is on the bill." in text_of(render(reader, "bill", {}))
    assert "The bill shows no use of a commitment by GPUs" in text_of(render(reader, "commitments", {}))
    teams = text_of(render(reader, "teams", {"month": JULY}))
    assert "as far as it has one: 8 earlier runs or months, or 14 earlier days." in teams


@pytest.fixture(scope="module")
def partial(once: Callable[[str, Callable[[Path], object]], Path]) -> Reader:
    """Team nlp's run has 2 hours at 50.00 and team blue's 2 hours of a reservation whose cost is not on the bill; of a
    third such hour nothing is used. The gateway that they share costs 40.00."""
    return Reader(Warehouse(load_settings(once("partial-costs", write_partial_costs) / "trainledger.toml")))


def write_partial_costs(root: Path) -> None:
    reserved = {"line_item_line_item_type": "DiscountedUsage"}
    gateway = {"line_item_usage_type": "USW2-NatGateway-Bytes", "line_item_operation": "NatGateway"}
    lines = [
        *(instance_hour(f"{JULY}-10T{hour}", "i-nlp", "p5.48xlarge", "50.00") for hour in (10, 11)),
        *(instance_hour(f"{JULY}-10T{hour}", "i-blue", "p5.48xlarge", "0", **reserved) for hour in (10, 11, 12)),
        instance_hour(f"{JULY}-10T10", "", "", "40.00") | gateway,
    ]
    events = [
        event
        for team in ("nlp", "blue")
        for event in one_attempt(
            f"{team}-1", [f"i-{team}"], "p5.48xlarge", datetime(2026, 7, 10, 10), timedelta(hours=2), team=team
        )
    ]
    runs = write_events(root / "events", events)
    config = write_config(root, billing=write_export(root, {JULY: lines}), runs=runs)
    budgets = (f'[[decisions.budgets]]\nteam = "{team}"\namount_usd = "150"\n' for team in ("nlp", "blue"))
    config.write_text(f'{config.read_text()}\n[policy]\nshared_cost = "pro_rata"\n\n{"".join(budgets)}')
    tables = {"mart_team_cost_monthly", "detail_budget_monthly", "detail_billing_month", "detail_run_summary"}
    publish_tables(config, tables | {"mart_cost_summary_monthly", "mart_cost_ledger_daily", "mart_portfolio"})


def test_a_chart_of_days_begins_with_its_month_and_a_spent_budget_stands_out(tmp_path: Path) -> None:
    """July bills 1.00 back for 2 March: its table has the day, its chart begins on 10 July. 150.00 of 100 are spent."""
    lines = [
        instance_hour(f"{JULY}-{day}T10", "i-nlp", "p5.48xlarge", "50.00", resource_tags='{"user_team": "nlp"}')
        for day in (10, 11, 12)
    ]
    refund = {"line_item_line_item_type": "Refund", "line_item_unblended_cost": "-1.00"}
    lines.append(instance_hour("2026-03-02T10", "i-nlp", "p5.48xlarge", "0") | refund)
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: lines}))
    config.write_text(f'{config.read_text()}\n[[decisions.budgets]]\nteam = "nlp"\namount_usd = "100"\n')
    publish_tables(config, {"mart_cost_ledger_daily", "detail_billing_month", "detail_budget_monthly"})
    reader = Reader(Warehouse(load_settings(config)))
    page = render(reader, "ledger", {"month": JULY})
    assert "2 Mar 2026" in text_of(page) and "Not drawn: days before the month" in page
    (drawn_days,) = re.findall(r"<figure>(?:(?!<figure>).)*?a day of.*?</figure>", page, re.DOTALL)
    assert "10 Jul" in drawn_days and "Mar" not in drawn_days
    assert '150.0%</a><svg class="bar over"' in render(reader, "teams", {"month": JULY})


def test_what_is_at_stake_is_partial_if_a_cost_is_unknown(tmp_path: Path) -> None:
    """No run claims an hour of p5 at 50.00 and one under a reservation whose cost is not on the bill."""
    hours = [
        instance_hour(f"{JULY}-10T10", "i-known", "p5.48xlarge", "50.00"),
        instance_hour(f"{JULY}-10T10", "i-r", "p5.48xlarge", "0", line_item_line_item_type="DiscountedUsage"),
    ]
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: hours}))
    publish_tables(config, {"detail_claim_gap_monthly"})
    page = text_of(render(Reader(Warehouse(load_settings(config))), "bill", {}))
    assert "July 2026 billed not claimed 2 16.0 $50.00 partial" in page


def test_a_comparison_names_its_currency(published_story: Callable[[str], Path]) -> None:
    reader = Reader(Warehouse(load_settings(published_story("two_currencies") / "trainledger.toml")))
    assert "of accelerator spend; in US dollars" in text_of(render(reader, "overview", {}))


def test_the_newest_month_is_that_of_each_currency(tmp_path: Path) -> None:
    """A run of June at 40.00 in EUR, whose bill has no July; that of USD has 50.00 in July."""
    euros = instance_hour("2026-06-10T10", "i-eur", "p5.48xlarge", "40.00", line_item_currency_code="EUR")
    dollars = instance_hour(f"{JULY}-10T10", "i-usd", "p5.48xlarge", "50.00")
    start = datetime(2026, 6, 10, 10)
    events = one_attempt("euro", ["i-eur"], "p5.48xlarge", start, timedelta(hours=1))
    export, runs = (
        write_export(tmp_path, {"2026-06": [euros], JULY: [dollars]}),
        write_events(tmp_path / "runs", events),
    )
    config = write_config(tmp_path, billing=export, runs=runs)
    tables = {"mart_cost_summary_monthly", "detail_billing_month", "detail_run_summary"}
    publish_tables(config, tables | {"detail_commitment_summary_monthly"})
    page = text_of(render(Reader(Warehouse(load_settings(config))), "overview", {}))
    assert "June 2026, EUR The bill EUR 40 billed; EUR 40 effective, of which EUR 40 in June 2026" in page
    assert "The bill $50 billed; $50 effective, of which $50 in July 2026" in page
    assert "All that commitments can cover June 2026 EUR 40 0.0%" in page
    assert "All that commitments can cover July 2026 $50 0.0%" in page


@pytest.mark.parametrize(
    ("invoice", "seen", "day"), [("", "10 of 31", ", on day 10 of 31."), ("INV-1", "all", ": past 50.0%.")]
)
def test_a_budget_counts_days_in_an_open_month_alone(tmp_path: Path, invoice: str, seen: str, day: str) -> None:
    """50.00 of 100, the last use on 10 July: in an open month more is to come, in a closed one nothing is."""
    line = {"resource_tags": '{"user_team": "nlp"}', "bill_invoice_id": invoice}
    hour = instance_hour(f"{JULY}-10T10", "i-nlp", "p5.48xlarge", "50.00", **line)
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: [hour]}))
    config.write_text(f'{config.read_text()}\n[[decisions.budgets]]\nteam = "nlp"\namount_usd = "100"\n')
    tables = {"mart_cost_summary_monthly", "mart_cost_ledger_daily", "detail_billing_month", "detail_budget_monthly"}
    publish_tables(config, tables)
    warehouse = Warehouse(load_settings(config))
    assert f"nlp $100.00 $50.00 $50.00 50.0% {seen}" in text_of(render(Reader(warehouse), "teams", {"month": JULY}))
    published = published_of(warehouse)
    with open_marts(warehouse, published) as marts:
        news = news_of(published, marts, warehouse.settings.notify)
    assert [one.line.endswith(day) for one in news if one.topic == "budget"] == [True]


def test_no_budget_and_no_share_rests_on_an_unknown_cost(partial: Reader) -> None:
    """Of 40.00 by cost of runs no part is known: all stays with no team. So nlp has spent 100.00 and a part."""
    page = text_of(render(partial, "teams", {"month": JULY}))
    assert "nlp $100.00 $0.00 n/a $0.00 $0.00 $0.00 $0.00 $100.00 partial" in page
    assert "blue n/a $0.00 n/a $0.00 $0.00 $0.00 $0.00 n/a" in page
    assert "no team $0.00 $0.00 $40.00 n/a $0.00 $0.00 $0.00 $40.00 partial" in page
    assert "blue $150.00 n/a n/a n/a all" in page
    assert "nlp $150.00 $100.00 partial n/a n/a all" in page


def test_a_partial_cost_is_labeled_everywhere(partial: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    """Effective cost is 2 x 50.00 + 40.00 and what three reserved hours cost; no run's cost a month is known."""
    overview = text_of(render(partial, "overview", {}))
    assert "The bill $140 billed; $140 partial effective, of which $140 partial in July 2026" in overview
    assert "July 2026 $100 partial $0 n/a $0 $0 $0 $40 $140 partial" in overview
    published = published_of(partial.warehouse)
    with open_marts(partial.warehouse, published) as marts:
        show_key_figures(marts, Console())
        line = " ".join(capsys.readouterr().out.partition("\n")[0].split())
        assert line == "The bill $140.00 billed; $140.00 effective, partial"
        at_stake = "select monthly_cost_usd, monthly_at_stake_usd, at_stake_evidence from mart_portfolio"
        assert marts.query(at_stake).rows() == [(None, None, None)]
        notify = partial.warehouse.settings.notify
        report, budget = (news.line for news in news_of(published, marts, notify) if news.topic != "check")
    assert "$140.00 effective cost, including $100.00 in runs and an unknown amount idle" in report
    assert "nlp spent at least $100.00 of $150.00 for July 2026, effective: past 50.0%; a part" in budget
