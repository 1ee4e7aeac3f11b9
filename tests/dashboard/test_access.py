"""Who sees which teams: two teams with a run each, a policy that shows ana one, and requests that try for more."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from support.bills import instance_hour, write_config, write_events, write_export
from support.commands import run_command
from support.ledgers import build_warehouse
from support.site import FIRST, SECOND
from support.small_company import AUGUST, Company, run

from pipelines.base.errors import EngineError
from pipelines.config.settings import load_settings
from pipelines.dashboard.pages import KNOWN, TEAM_PAGES
from pipelines.dashboard.reader import Reader
from pipelines.dashboard.web import serve
from pipelines.models.catalog import load_catalog
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of

Captured = pytest.CaptureFixture[str]
# Every name of the other team has this in it, and so has the machine that no run used.
HIDDEN = "zq7"
# The other team: 4 hours at 31.41 USD, restated to 27.18; no run: an hour at 48.49. Ours: 2 hours at 55.04, 110.08.
# Then the sums of the bill: 284.21, restated 267.29, and of the runs: 235.72, restated 218.80.
FIGURES = ("31.41", "27.18", "125.64", "108.72", "48.49", "284.21", "267.29", "235.72", "218.80", "218.8", "7.2718")
ROUNDED = ("$126", "$109", "$48", "$284", "$267", "$236", "$219")
TOKEN, OTHER_TOKEN = "t" * 64, "u" * 64


def found(root: Path) -> None:
    """The company, published on 3 September and restated on the 5th."""
    company = Company(root, root / "events")
    (root / "access.toml").write_text(
        '[readers]\n"fin@acme.dev" = "all"\n"ana@acme.dev" = ["Vision"]\n"eve@acme.dev" = []\n'
        f'[tokens]\n{hashlib.sha256(TOKEN.encode()).hexdigest()} = "ana@acme.dev"\n'
        f'{hashlib.sha256(OTHER_TOKEN.encode()).hexdigest()} = "fin@acme.dev"\n'
    )
    ours, *its = run("vis-1", "i-vis", "p5.48xlarge", 8, AUGUST, "10", "12")
    other, *others = run(f"{HIDDEN}-run", f"i-{HIDDEN}", "trn1.32xlarge", 16, AUGUST, "10", "14")
    hidden = {"team": f"{HIDDEN}-team", "owner": f"{HIDDEN}-owner", "model": f"{HIDDEN}-model"}
    write_events(company.events, [{**ours, "team": "vision", "owner": "ana"}, *its, {**other, **hidden}, *others])
    write_config(root, billing=company.export, runs=company.events)
    budgets = "".join(
        f'\n[[decisions.budgets]]\nteam = "{team}"\namount_usd = "100"\n' for team in ("vision", f"{HIDDEN}-team")
    )
    access = '\n[access]\npolicy = "access.toml"\nproxies = ["127.0.0.1"]\nhosts = ["costs.acme.dev"]\n'
    company.config.write_text(
        f"{company.config.read_text()}{budgets}{access}\n[notify.slack]\nreader = 'ana@acme.dev'\n"
    )
    for number, (rate, moment) in enumerate((("31.41", FIRST), ("27.18", SECOND)), start=1):
        lines = [instance_hour(f"{AUGUST}-10T{10 + hour}", "i-vis", "p5.48xlarge", "55.04") for hour in range(2)]
        lines += [instance_hour(f"{AUGUST}-10T{10 + hour}", f"i-{HIDDEN}", "trn1.32xlarge", rate) for hour in range(4)]
        lines.append(instance_hour(f"{AUGUST}-11T10", f"i-{HIDDEN}-idle", "p5.48xlarge", "48.49"))
        write_export(root, {AUGUST: lines}, execution=f"20260901T000000Z-{rate}")
        build_warehouse(company.config)
        record = company.warehouse / "publications" / f"{number:06d}.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "published_at": moment}))


@pytest.fixture(scope="session")
def company(once: Callable[[str, Callable[[Path], object]], Path]) -> Company:
    root = once("access", found)
    return Company(root, root / "events")


@dataclass(frozen=True)
class Door:
    """A dashboard that is served with a policy; requests to it carry exactly the headers that are given."""

    port: int

    def get(self, path: str, *headers: tuple[str, str]) -> tuple[int, str]:
        """The status, and headers and body as text."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.putrequest("GET", path)
        for name, value in headers:
            client.putheader(name, value)
        client.endheaders()
        answer = client.getresponse()
        text = f"{answer.headers}\n{answer.read().decode()}"
        client.close()
        return answer.status, text


def door(company: Company, proxies: str) -> Door:
    settings = load_settings(company.config)
    assert settings.access
    access = type(settings.access).model_validate({**settings.access.model_dump(), "proxies": [proxies]})
    ports, listened = [], threading.Event()

    def ready(address: str) -> None:
        ports.append(int(address.rstrip("/").rpartition(":")[2]))
        listened.set()

    reader = Reader(Warehouse(settings))
    threading.Thread(target=serve, args=(reader, "127.0.0.1", 0, ready, access), daemon=True).start()
    assert listened.wait(30)
    return Door(ports[0])


@pytest.fixture(scope="session")
def behind_proxy(company: Company) -> Door:
    """A dashboard whose proxy is on this machine: the requests here are its."""
    return door(company, "127.0.0.1")


@pytest.fixture(scope="session")
def exposed(company: Company) -> Door:
    """One whose proxy is elsewhere: the requests here go around it."""
    return door(company, "10.9.8.7")


def header(name: str) -> tuple[str, str]:
    return ("X-Forwarded-Email", name)


def basic(text: str) -> tuple[str, str]:
    return ("Authorization", f"Basic {base64.b64encode(text.encode()).decode()}")


ANA, FIN, EVE = header("ana@acme.dev"), header("fin@acme.dev"), header("eve@acme.dev")


def leaks(text: str) -> list[str]:
    """What an answer has of the other team, of no team, or of sums over teams."""
    numbers = [figure for figure in FIGURES if re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", text)]
    return [*re.findall(f".{{0,30}}{HIDDEN}.{{0,30}}", text), *numbers, *(one for one in ROUNDED if one in text)]


def pages() -> Iterator[str]:
    """Every page and table, of both publications, with every parameter at values of no team and of an attacker."""
    own = {
        "runs": ("q", "team", "workload", "status", "silicon", "month", "basis", "sort", "way", "page", "rows"),
        "run": ("id",),
        "ledger": ("month", "bucket", "family", "account", "team", "service", "region", "owner"),
        "teams": ("month",),
        "commitments": ("month", "commitment", "silicon"),
        "sides": ("pair",),
        "explain": ("word",),
        "lineage": ("table",),
        "dictionary": ("q",),
    }
    for name in KNOWN:
        path = "/" if name == "overview" else f"/{name}"
        yield from (path, f"{path}?as_of=2026-09-04", f"{path}?as_of=nix", f"/csv?from={name}")
        for parameter in own.get(name, ()):
            for value in ("' or 1=1 --", "no team"):
                yield f"{path}?{parameter}={quote(value)}"
            yield f"/csv?from={name}&list=runs&{parameter}={quote(chr(39))}"
    for kind in ("run", "day", "month", "invoice"):
        for word in ("vis-1", "2026-08-10", AUGUST, ""):
            yield f"/explain?kind={kind}&word={word}&month={AUGUST}"
    for name in (*TEAM_PAGES, "overview", "bill", "sides"):
        for rows in ("totals", "choices", "showback", "runs", "run", "days", "buckets", "trend", "volume", "warnings"):
            yield f"/csv?from={name}&list={rows}"
    for model in load_catalog().ordered:
        if model.layer in ("marts", "detail") or model.name in ("fct_ledger", "dim_run"):
            yield f"/csv?table={model.name}"
            yield f"/csv?table={model.name}&as_of=2026-09-04"
    yield from ("/nix", "/app.css", "/app.js", "/favicon.ico", "//runs", "/runs/", "/%2e%2e/csv", "/csv?table=../x")


def test_no_request_of_ana_shows_another_team(behind_proxy: Door) -> None:
    """Every page, table and parameter; what is shown of her own team is checked in the next test."""
    requested = list(dict.fromkeys(pages()))
    assert len(requested) > 300
    answers = {path: behind_proxy.get(path, ANA) for path in requested}
    assert {path: found for path, (_, text) in answers.items() if (found := leaks(text))} == {}
    assert {status for status, _ in answers.values()} <= {200, 204, 307, 400, 403, 404}
    # Finance asks the same and finds all of it: the names and figures searched for are those of the pages.
    seen = "".join(behind_proxy.get(path, FIN)[1] for path in ("/", "/runs", "/bill", "/runs?as_of=2026-09-04"))
    for found in (HIDDEN, "108.72", "125.64", "48.49"):
        assert found in seen


def test_ana_sees_her_team(behind_proxy: Door) -> None:
    """2 hours at 55.04 USD, 110.08."""
    for path in (
        "/runs",
        "/run?id=vis-1",
        "/teams",
        "/ledger?bucket=run",
        "/csv?table=mart_run_cost",
        "/runs?as_of=2026-09-04",
    ):
        status, text = behind_proxy.get(path, ANA)
        assert status == 200 and "110.08" in text, path
    assert "You see Vision." in behind_proxy.get("/runs", ANA)[1]
    # She has the pages of teams in her menu, and no link to bill lines.
    page = behind_proxy.get("/teams", ANA)[1]
    assert 'href="/bill"' not in page and 'href="/runs"' in page and "kind=month" not in page
    # What her run shares with runs of other teams is unknown to her.
    table = behind_proxy.get("/csv?table=mart_run_cost", ANA)[1].splitlines()
    names, values = table[-2].split(","), table[-1].split(",")
    shown = dict(zip(names, values, strict=True))
    assert shown["team"] == "vision" and shown["lineage_cost_usd"] == "" and shown["effective_cost_usd"] != ""


@pytest.mark.parametrize(
    "path",
    [
        "/run?id={}",
        "/runs?team={}",
        "/runs?workload={}",
        "/runs?q={}",
        "/ledger?team={}",
        "/ledger?owner={}",
        "/csv?from=runs&list=runs&team={}",
        "/explain?kind=name&word={}",
    ],
)
def test_a_name_of_another_team_is_answered_as_one_that_does_not_exist(behind_proxy: Door, path: str) -> None:
    """Otherwise the answers would show which names exist."""
    for kind in ("run", "team", "model", "owner"):
        there, nowhere = f"{HIDDEN}-{kind}", f"qx3-{kind}"
        (one, known), (other, unknown) = (behind_proxy.get(path.format(name), ANA) for name in (there, nowhere))
        assert one == other
        texts = [re.sub("date: .*", "", text) for text in (known.replace(there, nowhere), unknown)]
        assert texts[0] == texts[1]


REFUSED: dict[str, tuple[int, tuple[tuple[str, str], ...]]] = {
    "without identity": (401, ()),
    "a reader the policy does not name": (403, (header("mallory@acme.dev"),)),
    "a name in other letters": (403, (header("FIN@acme.dev"),)),
    "two names in one header": (403, (header("ana@acme.dev, fin@acme.dev"),)),
    "two headers": (403, (ANA, FIN)),
    "two headers in other letters": (403, (ANA, ("x-forwarded-EMAIL", "fin@acme.dev"))),
    "an empty name": (403, (header(""),)),
    "another header": (401, (("X-Forwarded-User", "fin@acme.dev"), ("X_Forwarded_Email", "fin@acme.dev"))),
    "a wrong token": (401, (("Authorization", f"Bearer {'x' * 64}"),)),
    "a part of a token": (401, (("Authorization", f"Bearer {OTHER_TOKEN[:-1]}"),)),
    "the digest of a token": (401, (("Authorization", f"Bearer {hashlib.sha256(OTHER_TOKEN.encode()).hexdigest()}"),)),
    "a token as the user's name": (401, (basic(f"{OTHER_TOKEN}:"),)),
    "no token": (401, (("Authorization", "Bearer "),)),
    "no base64": (401, (("Authorization", "Basic \xff\xfe"),)),
    "another scheme": (401, (("Authorization", f"Digest {OTHER_TOKEN}"),)),
    "a cookie": (401, (("Cookie", f"token={OTHER_TOKEN}; X-Forwarded-Email=fin@acme.dev"),)),
}
ROUTES = ("/", "/runs", "/run?id=vis-1", "/csv?table=mart_run_cost", "/explain?kind=run&word=vis-1", "/nix", "/app.css")


@pytest.mark.parametrize("who", REFUSED)
def test_who_is_not_identified_sees_nothing(behind_proxy: Door, who: str) -> None:
    code, headers = REFUSED[who]
    for path in ROUTES:
        status, text = behind_proxy.get(path, *headers)
        assert status == code
        assert leaks(text) == [] and "vis-1" not in text and "Publication" not in text and "110.08" not in text


def test_a_reader_without_teams_sees_none(behind_proxy: Door) -> None:
    for path in (
        "/runs",
        "/teams",
        "/ledger",
        "/csv?table=mart_cost_ledger_daily",
        "/csv?table=mart_run_cost",
        "/run?id=vis-1",
    ):
        status, text = behind_proxy.get(path, EVE)
        assert status in (200, 404) and leaks(text) == [] and "110.08" not in text
        # Not that no bill is delivered and no run recorded.
        assert ("Nothing of your teams is in this publication" in text) == (path in ("/runs", "/teams", "/ledger"))


def test_an_identity_is_believed_from_the_proxy_alone(exposed: Door) -> None:
    """Whatever a request claims of its own address."""
    claims = (
        (),
        (("X-Forwarded-For", "10.9.8.7"),),
        (("X-Real-IP", "10.9.8.7"), ("Forwarded", "for=10.9.8.7;by=10.9.8.7")),
        (("X-Forwarded-For", "10.9.8.7, 127.0.0.1"), ("X-Forwarded-Proto", "https")),
        (("Authorization", f"Bearer {OTHER_TOKEN}"),),
    )
    for path in ROUTES:
        for claim in claims:
            status, text = exposed.get(path, FIN, *claim)
            assert status == 403 and "Only the reverse proxy may send X-Forwarded-Email." in text
            assert leaks(text) == [] and "vis-1" not in text


def test_a_token_shows_the_teams_of_its_reader(exposed: Door) -> None:
    for authorization in (("Authorization", f"Bearer {TOKEN}"), basic(f"anything:{TOKEN}")):
        status, text = exposed.get("/runs", authorization)
        assert status == 200 and "vis-1" in text and leaks(text) == []
    assert f"{HIDDEN}-run" in exposed.get("/runs", ("Authorization", f"Bearer {OTHER_TOKEN}"))[1]
    status, text = exposed.get("/runs")
    assert status == 401 and 'Basic realm="trainledger"' in text


def test_a_page_elsewhere_cannot_borrow_the_address(behind_proxy: Door) -> None:
    client = http.client.HTTPConnection("127.0.0.1", behind_proxy.port)
    for host, status in (("costs.acme.dev", 200), ("evil.example", 400)):
        client.request("GET", "/runs", headers={"Host": host, "X-Forwarded-Email": "ana@acme.dev"})
        answer = client.getresponse()
        answer.read()
        assert answer.status == status


def test_a_change_of_the_policy_counts_at_once(company: Company, tmp_path: Path) -> None:
    """Without a restart; a policy that cannot be read shows nothing."""
    copied = company.copy(tmp_path)
    policy = tmp_path / "access.toml"
    policy.write_text('[readers]\n"ana@acme.dev" = ["vision"]\n')
    copied.config.write_text(
        f'{copied.config.read_text()}\n[access]\npolicy = "access.toml"\nproxies = ["127.0.0.1"]\n'
    )
    its = door(copied, "127.0.0.1")
    assert "vis-1" in its.get("/runs", ANA)[1]
    policy.write_text('[readers]\n"ana@acme.dev" = []\n')
    assert its.get("/run?id=vis-1", ANA)[0] == 404
    policy.write_text('[readers]\n"fin@acme.dev" = "all"\n')
    assert its.get("/runs", ANA)[0] == 403
    for broken in ("[readers", '[readers]\n"ana@acme.dev" = "vision"\n'):
        policy.write_text(broken)
        status, text = its.get("/runs", ANA)
        assert status == 503 and "vis-1" not in text


ESCAPES = (
    "from mart_cost_summary_monthly",
    "from mart.mart_portfolio",
    "from whole.mart_run_cost",
    "from detail.detail_restated_figure",
    "from fct_ledger",
    "from read_parquet('{file}')",
    "from '{file}'",
    "from glob('{folder}/**')",
    "select content from read_text('{config}')",
    "select * from read_csv('{config}')",
    "from parquet_metadata('{file}')",
    "from sniff_csv('{config}')",
    "select sql from duckdb_views()",
    "select * from duckdb_tables()",
    "select * from duckdb_columns()",
    "select * from duckdb_settings()",
    "select * from duckdb_external_file_cache()",
    "select * from information_schema.tables",
    "select * from pragma_storage_info('mart_run_cost')",
    "select stats('x')",
    "select getenv('HOME')",
    "select * from duckdb_temporary_files()",
    "explain from mart_run_cost where run_id > ''",
    "select max(team), min(run_id), sum(effective_cost_usd) from mart_run_cost",
    "select * from mart_cost_ledger_daily where team is null or team <> 'vision'",
    "select * from query('from mart_run_cost')",
    "select * from query_table('mart_cost_summary_monthly')",
    "select current_setting('allowed_paths')",
)


@pytest.mark.parametrize("sql", ESCAPES)
def test_no_query_of_a_reader_reaches_another_team(company: Company, sql: str) -> None:
    warehouse = Warehouse(load_settings(company.config))
    published = published_of(warehouse)
    (file, *_) = warehouse.lake.named_files("marts/mart_run_cost", published.tables["marts/mart_run_cost"]["files"])
    places = {"file": file, "folder": company.root, "config": company.config}
    with open_marts(warehouse, published, ("vision",)) as marts:
        try:
            text = str(marts.query(sql.format(**places)).to_dicts())
        except EngineError as error:
            text = str(error)
    assert leaks(text) == []


def test_a_query_is_of_a_reader(company: Company, capsys: Captured) -> None:
    config = ("--config", str(company.config))
    teams = "select team, sum(effective_cost_usd) as cost_usd from mart_run_cost group by team order by team"
    ana = run_command(capsys, "query", teams, "--csv", "--reader", "ana@acme.dev", *config)
    assert ana.out.splitlines()[1:] == ["vision,110.0800000000"]
    fin = run_command(capsys, "query", teams, "--csv", "--reader", "fin@acme.dev", *config)
    assert [line.split(",")[0] for line in fin.out.splitlines()[1:]] == ["vision", f"{HIDDEN}-team"]
    listed = run_command(capsys, "query", "--detail", "--reader", "ana@acme.dev", *config).out
    assert "mart_run_cost" in listed and "mart_cost_summary_monthly" not in listed
    refused = run_command(capsys, "query", teams, "--reader", "mallory@acme.dev", *config)
    assert refused.code == 2 and "has no reader 'mallory@acme.dev'; add it to [readers]" in refused.err


def test_a_channel_receives_what_its_reader_sees(company: Company, tmp_path: Path, capsys: Captured) -> None:
    """110.08 of a budget of 100 is past it; checks and closed months are of the whole company."""
    shown = run_command(capsys, "notify", "--dry-run", "--config", str(company.config))
    assert shown.code == 0 and "vision spent $110.08 of $100.00" in shown.out
    assert leaks(shown.out) == [] and "check" not in shown.out
    copied = company.copy(tmp_path)
    whole = company.config.read_text().replace("reader = 'ana@acme.dev'", "").replace("[access]", "[notify]\n[access]")
    copied.config.write_text(whole)
    everything = run_command(capsys, "notify", "--dry-run", "--config", str(copied.config))
    assert f"{HIDDEN}-team spent" in everything.out


def test_what_a_reader_of_teams_sees_is_chosen_table_by_table(company: Company) -> None:
    """A new table is not among them until its contract states its rows."""
    warehouse = Warehouse(load_settings(company.config))
    with open_marts(warehouse, published_of(warehouse), ("vision",)) as marts:
        tables = marts.query("select table_name from duckdb_tables() order by 1").to_series().to_list()
    assert tables == sorted(seen_by_teams())


def seen_by_teams() -> Iterable[str]:
    runs = "run_cost run_waste epoch_cost checkpoint_cost team_cost_monthly cost_ledger_daily inference_cost_daily"
    yield from (f"mart_{name}" for name in runs.split())
    details = "run_efficiency run_phase_cost run_timeline run_unit_cost budget_monthly cost_anomaly price_change_impact"
    yield from (f"detail_{name}" for name in (*details.split(), "serving_capacity_hourly", "bedrock_usage_daily"))
