"""Pseudonyms: no account id or user name in any byte that leaves, the same ones everywhere, and what needs the key."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.commands import run_command
from support.ledgers import catalog_of
from support.small_company import Company
from support.spoiled import CommandResult
from support.stories import build_story

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.policy import Privacy
from pipelines.config.settings import load_settings
from pipelines.dashboard.pages import render
from pipelines.dashboard.reader import Reader
from pipelines.doctor.examine import examine_privacy
from pipelines.models.build import Builder
from pipelines.models.command import build_marts
from pipelines.models.marts import open_marts
from pipelines.models.publish import plan
from pipelines.models.warehouse import PRIVATE, Warehouse, published_of
from pipelines.warehouse.pseudonyms import Pseudonyms

Captured = pytest.CaptureFixture[str]
KEY, OTHER_KEY = "k" * 32, "another-key-of-thirty-two-characters"
VARIABLE = "TRAINLEDGER_PRIVACY__KEY"
PAYER, ACCOUNT = "000011112222", "000033334444"
USERS = ("ada.lovelace@acme.dev", "grace.hopper")
# An account has a team, and an agreement is of one payer.
DECLARED = f"""
[teams]
accounts = {{"{ACCOUNT}" = "search"}}
[[terms.agreements]]
name = "EDP"
payer_account_ids = ["{PAYER}"]
periods = [{{first_month = "2026-01", last_month = "2026-12", commitment_usd = 1000}}]
"""
SECTION = '\n[privacy]\npseudonyms = ["accounts", "users"]\n'


def company(root: Path) -> Path:
    """Two months: a run of ada's, a machine of grace's that no run explains, an ARN with the account in it."""
    months = {}
    for month in ("2026-07", "2026-08"):
        months[month] = [
            instance_hour(f"{month}-03T10", "i-0a", "p5.48xlarge", "55.04"),
            instance_hour(f"{month}-03T10", "i-0b", "p5.48xlarge", "55.04", resource_tags_user_owner=USERS[1]),
            instance_hour(
                f"{month}-03T11", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/j", "ml.p5.48xlarge", "63.30",
                line_item_product_code="AmazonSageMaker",
            ),
        ]  # fmt: skip
    events = one_attempt(
        "llama-1", ["i-0a"], "p5.48xlarge", datetime(2026, 7, 3, 10), timedelta(hours=1), owner=USERS[0], model="llama"
    )
    # A machine that no bill has: a warning shows its row.
    events += one_attempt(
        "llama-2", ["i-0zz"], "p5.48xlarge", datetime(2026, 8, 3, 10), timedelta(hours=1), owner=USERS[0]
    )
    # A run that is set aside, by an id that a warning quotes.
    events.append({"type": "run_started", "run_id": f"trial of {USERS[0]}", "at": "yesterday"})
    config = write_config(root, billing=write_export(root, months), runs=write_events(root / "runs", events))
    config.write_text(config.read_text() + DECLARED + SECTION + "\n[notify.slack]\n")
    return config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return company(tmp_path_factory.mktemp("private"))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def trainledger(capsys: Captured, config: Path, *words: str) -> CommandResult:
    return run_command(capsys, *words, "--config", str(config))


def frame_text(content: bytes | Path) -> str:
    rows = pl.read_parquet(content)
    return rows.cast(pl.String, strict=False).write_csv() if rows.width else ""


def assert_veiled(text: str | bytes) -> None:
    raw = text.encode() if isinstance(text, str) else text
    for word in (PAYER, ACCOUNT, *USERS):
        assert word.encode() not in raw, word


@pytest.mark.slow
def test_nothing_that_leaves_names_an_account_or_a_user(
    config: Path, tmp_path: Path, capsys: Captured, caplog: pytest.LogCaptureFixture
) -> None:
    """Built by the command, so that its log is that of a build."""
    built = trainledger(capsys, config, "build")
    assert built.code == 0, built.err
    page, pack, printed = tmp_path / "report.html", tmp_path / "pack.zip", tmp_path / "report.pdf"
    results = [
        built,
        trainledger(capsys, config, "report", "--out", str(page), "--pdf", str(printed), "--pack", str(pack)),
        trainledger(capsys, config, "report", "--kind", "savings", "--out", str(tmp_path / "savings.html")),
        trainledger(capsys, config, "export", "focus", "--out", str(tmp_path)),
        trainledger(capsys, config, "export", "focus", "--version", "1.4", "--out", str(tmp_path)),
        trainledger(capsys, config, "query", "select * from mart_cost_ledger_daily", "--csv"),
        trainledger(capsys, config, "query", "select * from mart_unattributed_cost_daily", "--json"),
        trainledger(capsys, config, "query", "select * from mart_run_cost"),
        trainledger(capsys, config, "notify", "--dry-run"),
        trainledger(capsys, config, "check"),
    ]
    for one in results:
        assert one.code == 0, one.err
        assert_veiled(one.out + one.err)
    assert_veiled(caplog.text)
    assert "acct-" in results[5].out and "user-" in results[6].out and "user-" in results[7].out
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert_veiled(file.read_bytes())
            if file.suffix == ".parquet":
                assert_veiled(frame_text(file))
    with zipfile.ZipFile(pack) as archive:
        for name in archive.namelist():
            assert_veiled(archive.read(name))
            if name.endswith(".parquet"):
                assert_veiled(frame_text(archive.read(name)))
        assert not [name for name in archive.namelist() if name.startswith(("records/", "before/", "bills/", "runs/"))]
    for schema in ("marts", "detail"):
        for table in (config.parent / "warehouse" / "tables" / schema).rglob("*.parquet"):
            assert_veiled(frame_text(table))


def rows(config: Path, sql: str) -> list[tuple]:
    warehouse = Warehouse(load_settings(config))
    with open_marts(warehouse, published_of(warehouse)) as marts:
        return marts.query(sql).rows()


@pytest.fixture(scope="module")
def built(config: Path) -> Path:
    """Built by the command, as if there were no other tables than those that these tests read."""
    catalog = catalog_of(
        ("mart_cost_ledger_daily", "mart_run_cost", "mart_unattributed_cost_daily", "detail_provisional_run")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, KEY)
        patch.setattr("pipelines.models.build.load_catalog", lambda: catalog)
        build_marts(load_settings(config), Console(), list_warnings=False)
    return config


@pytest.mark.slow
def test_an_id_is_the_same_pseudonym_in_every_table_and_month(built: Path) -> None:
    veil = Pseudonyms(Privacy.model_validate({"pseudonyms": ["accounts", "users"], "key": KEY}))
    account = veil.text(ACCOUNT)
    assert re.fullmatch(r"acct-[a-p]{16}", account)
    for table in ("mart_cost_ledger_daily", "mart_unattributed_cost_daily"):
        assert set(rows(built, f"select account_id from {table}")) == {(account,)}
    assert rows(built, "select distinct owner from mart_run_cost") == [(veil.user(USERS[0]),)]
    assert {(veil.user(USERS[1]),)} < {*rows(built, "select tagged_owner from mart_unattributed_cost_daily")}
    (machine,) = rows(
        built, "select distinct resource_id from mart_unattributed_cost_daily where resource_id like 'arn%'"
    )
    assert machine == (f"arn:aws:sagemaker:us-west-2:{account}:training-job/j",)


AS_ANOTHER_USER = """
import os, sys
warehouse = os.open(sys.argv[1], os.O_RDONLY)
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for name in sys.argv[2:]:
    try:
        os.close(os.open(name, os.O_RDONLY, dir_fd=warehouse))
        print("read")
    except PermissionError:
        print("refused")
"""


def test_what_holds_ids_is_closed_to_other_users(built: Path) -> None:
    """Files keep their usual mode: no other user can pass through the folder to them."""
    closed = [*examine_privacy(built.parent / "warehouse")]
    assert [finding.status for finding in closed] == ["ok"]
    warehouse = built.parent / "warehouse"
    names = [next((warehouse / name).rglob("*.parquet")) for name in ("raw", "tables/core", "tables/marts")]
    words = [warehouse, *(name.relative_to(warehouse) for name in names)]
    opened = subprocess.run([sys.executable, "-c", AS_ANOTHER_USER, *words], capture_output=True, text=True)
    # Only root can act as another user.
    assert opened.returncode or opened.stdout.split() == ["refused", "refused", "read"]
    core = built.parent / "warehouse" / "tables" / "core"
    assert core.stat().st_mode & 0o777 == 0o700
    core.chmod(0o755)
    (found,) = examine_privacy(built.parent / "warehouse")
    assert found.status == "warn" and found.message.startswith(f"{core} can be read by other users: run `chmod 700`")


def test_no_file_that_readers_open_holds_an_id(built: Path) -> None:
    """All outside of the closed folders, above all the record of the publication, with what was configured."""
    warehouse = built.parent / "warehouse"
    closed = [warehouse / name for name in PRIVATE]
    files = [file for file in warehouse.rglob("*") if file.is_file() and not {*closed} & {*file.parents}]
    assert warehouse / "publications" / "000001.json" in files
    for file in files:
        assert_veiled(file.read_bytes())
        if file.suffix == ".parquet":
            assert_veiled(frame_text(file))
    veil = Pseudonyms(Privacy.model_validate({"pseudonyms": ["accounts", "users"], "key": KEY}))
    inputs = published_of(Warehouse(load_settings(built))).inputs
    assert inputs["teams"] == [[veil.text(ACCOUNT), "0001-01-01", "9999-12-31", "search"]]
    assert inputs["terms"]["agreements"][0]["payer_account_ids"] == [veil.text(PAYER)]


def test_what_is_read_from_a_publication_knows_the_accounts_of_teams(built: Path) -> None:
    """The ledger is a view that joins accounts to their teams: 2 months x 2 hours at 55.04 and 1 hour at 63.30."""
    warehouse = Warehouse(load_settings(built))
    with Builder(warehouse.as_published(published_of(warehouse))).open(["fct_ledger"]) as tables:
        rows = tables.query("select team, sum(effective_cost_usd) from fct_ledger group by team").rows()
    assert [(team, str(cost)) for team, cost in rows] == [("search", "346.7600000000")]


def test_the_accounts_of_teams_go_with_the_last_publication_of_them(built: Path, capsys: Captured) -> None:
    folder = built.parent / "warehouse/tables/private/declared_team"
    kept = {*folder.iterdir()}
    (folder / f"{'0' * 16}.json").write_text("[]")
    assert trainledger(capsys, built, "prune").code == 0
    assert kept and {*folder.iterdir()} == kept


def test_nothing_new_is_nothing_to_build(built: Path) -> None:
    assert plan(Warehouse(load_settings(built))).is_known


def test_no_figure_changes(built: Path) -> None:
    """Twice two hours at 55.04 and one at 63.30; of them one hour is the run's."""
    assert str(rows(built, "select sum(effective_cost_usd) from mart_cost_ledger_daily")[0][0]) == "346.7600000000"
    assert float(rows(built, "select effective_cost_usd from mart_run_cost where run_id = 'llama-1'")[0][0]) == 55.04


def test_without_the_key_nothing_is_built_and_what_is_published_is_read(
    built: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    result = trainledger(capsys, built, "build")
    assert (result.code, result.error) == (
        2,
        "[privacy] asks for pseudonyms and TRAINLEDGER_PRIVACY__KEY is not set; set it to a secret of 32 "
        "characters or more. Keep it: another key makes other pseudonyms.",
    )
    assert trainledger(capsys, built, "report", "--out", str(tmp_path / "page.html")).code == 0


@pytest.mark.slow
def test_another_key_makes_other_pseudonyms_and_reports_it(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = company(tmp_path)
    assert trainledger(capsys, config, "build").code == 0
    before = rows(config, "select distinct account_id from mart_cost_ledger_daily")
    monkeypatch.setenv(VARIABLE, OTHER_KEY)
    result = trainledger(capsys, config, "build")
    assert result.code == 0
    assert "The pseudonym key differs from the one of publication 1: every pseudonym changes" in result.err
    after = rows(config, "select distinct account_id from mart_cost_ledger_daily")
    assert before != after and after[0][0].startswith("acct-")
    assert OTHER_KEY not in result.out + result.err


def test_a_publication_that_shows_what_is_to_be_hidden_is_not_read(
    built_company: Company, tmp_path: Path, capsys: Captured
) -> None:
    company = built_company.copy(tmp_path)
    company.config.write_text(company.config.read_text() + SECTION)
    assert trainledger(capsys, company.config, "query", "select 1").error == (
        "Publication 1 shows accounts and users as they are, for which [privacy] asks for pseudonyms; run `trainledger "
        "build`, or name a later publication."
    )


def test_the_dashboard_shows_no_bill_lines_as_delivered(built: Path) -> None:
    reader = Reader(Warehouse(load_settings(built)))
    with pytest.raises(UsageError, match="shows bill lines as delivered"):
        render(reader, "explain", {"kind": "month", "word": "2026-07"})
    # Nor does a figure lead there.
    ledger = render(reader, "ledger", {})
    assert "kind=month" not in ledger and "links to the bill lines" not in ledger


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", "run", "llama-1"], "`explain` shows bill lines as delivered, and [privacy] "),
        (["report", "--out", "{}/a.html", "--pack", "{}/a.zip", "--bundle"], "--bundle puts bill lines and logs into "),
        (
            ["verify", "{}/pack.zip"],
            "{}/pack.zip is intact and its models are those of this version, but it has",
        ),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_what_would_show_them_is_refused_in_words(
    built: Path, tmp_path: Path, capsys: Captured, words: list[str], message: str
) -> None:
    if words[0] == "verify":
        pack = ["report", "--out", str(tmp_path / "page.html"), "--pack", str(tmp_path / "pack.zip")]
        assert trainledger(capsys, built, *pack).code == 0
    refused = trainledger(capsys, built, *(word.format(tmp_path) for word in words))
    assert refused.code == 2 and refused.error.startswith(message.format(tmp_path))


def test_twice_is_once_and_digests_are_no_accounts() -> None:
    veil = Pseudonyms(Privacy.model_validate({"pseudonyms": ["accounts", "users"], "key": KEY}), ("Owner",))
    once = veil.text(f"bucket-{ACCOUNT}, account {ACCOUNT}.")
    assert veil.text(once) == once and ACCOUNT not in once
    assert veil.user(veil.user("ada")) == veil.user("ada")
    digest = "ab" * 20 + "a123456789012b" + "cd" * 5
    assert veil.text(digest) == digest
    assert veil.text("1234567890123 and 2026-07-14T10:00:00") == "1234567890123 and 2026-07-14T10:00:00"
    tags = veil.value("Tags", '{"Owner": "ada", "aws:createdBy": "IAMUser:AIDA:ada", "RunId": "ada-1"}')
    assert '"Owner": "user-' in tags and '"aws:createdBy": "user-' in tags and '"RunId": "ada-1"' in tags


def test_one_person_and_one_account_are_one_in_every_spelling() -> None:
    """Spellings of principals as in the IAM user guide, `aws:createdBy` as in the billing guide."""
    veil = Pseudonyms(Privacy.model_validate({"pseudonyms": ["accounts", "users"], "key": KEY}), ("Owner",))
    account, ada, mail = veil.text(ACCOUNT), veil.user("ada"), veil.user("ada@acme.dev")
    spellings = (
        " Ada ", f"arn:aws:iam::{ACCOUNT}:user/ada", f"arn:aws-us-gov:iam::{ACCOUNT}:user/ml/eu/ADA",
        f"arn:aws:sts::{ACCOUNT}:federated-user/ada", "IAMUser:AIDACKCEVSQ6C2EXAMPLE:ada",
        f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:user-profile/d-1a2b/ada",
    )  # fmt: skip
    assert {veil.user(one) for one in spellings} == {ada}
    session = "assumed-role/AWSReservedSSO_Admin_0a1b"
    texts = {
        f"arn:aws:sts::{ACCOUNT}:{session}/Ada@acme.dev": f"arn:aws:sts::{account}:{session}/{mail}",
        f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:app/d-1a2b/ada/jupyter": "arn:aws:sagemaker:us-west-2:"
        f"{account}:app/d-1a2b/{ada}/jupyter",
        f"arn:aws:iam::{ACCOUNT}:role/trainer": f"arn:aws:iam::{account}:role/trainer",
        '{"by": "<ADA@Acme.dev>, AssumedRole:AROAEXAMPLE:ada"}': '{"by": "<' + mail + ">, AssumedRole:AROAEXAMPLE:"
        f'{ada}"}}',
        "0000-3333-4444 (0000 3333 4444)/x000033334444y.": f"{account} ({account})/x{account}y.",
        "acme/image@sha256:0a 12345678-1234-1234-1234-123456789012": None,
    }
    for text, expected in texts.items():
        assert veil.text(text) == (expected or text)
        assert veil.text(veil.text(text)) == veil.text(text)


def test_what_only_looks_like_a_pseudonym_gets_its_own() -> None:
    veil = Pseudonyms(Privacy.model_validate({"pseudonyms": ["accounts", "users"], "key": KEY}), ("Owner",))
    ada, account = veil.user("ada"), veil.text(ACCOUNT)
    source = veil.of_sources()
    assert source.user("ada") == ada and source.text(ACCOUNT) == account
    tags = source.value("Tags", f'{{"Owner": "{ada}"}}')
    for spoofed in (source.user(ada), source.text(f"by {ada}"), source.text(account), tags):
        assert ada not in spoofed and account not in spoofed and re.search("(user|acct)-[a-p]{16}", spoofed)


def test_a_key_is_no_part_of_a_file_and_is_long_enough(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = company(tmp_path)
    monkeypatch.setenv(VARIABLE, "short-key")
    error = trainledger(capsys, config, "build").error
    assert error.startswith(f"environment variable {VARIABLE}: key 'privacy.key': ") and "short-key" not in error
    config.write_text(config.read_text().replace("[privacy]", f'[privacy]\nkey = "{KEY}"'))
    error = trainledger(capsys, config, "build").error
    assert error.endswith(
        f"'privacy.key' is a secret; take it out of the file and set the environment variable {VARIABLE}."
    )
    assert KEY not in error


def test_every_column_that_names_an_owner_is_a_user() -> None:
    """A new one must be added to pipelines/warehouse/pseudonyms.py."""
    from pipelines.models.contract import load_columns
    from pipelines.warehouse.pseudonyms import _USERS

    named = {name for name in load_columns() if re.search(r"(^|_)(owner|user)(_name)?$", name)}
    assert named == _USERS


STORY = Path(__file__).resolve().parents[1] / "golden" / "every_kind_of_commitment"
# Public tables that are made from other public tables and from what lies behind them.
JOINED = (
    "detail_commitment_family_monthly", "detail_commitment_stranding",
    "mart_commitment_utilization_monthly", "mart_commitment_coverage_daily", "mart_capacity_utilization_daily",
)  # fmt: skip


def test_no_figure_of_a_table_made_from_public_tables_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pseudonyms replace ids in what is shown; joins of the build still find every row."""
    figures = []
    for pseudonyms in ("[]", '["accounts", "users"]'):
        monkeypatch.setenv("TRAINLEDGER_PRIVACY__PSEUDONYMS", pseudonyms)
        builder = build_story(STORY, tmp_path / str(len(figures)), JOINED)
        found = {}
        for name in JOINED:
            table = pl.read_parquet(builder.lake.files(builder.catalog[name].key))
            found[name] = (table.height, table.select(pl.col(pl.Decimal).sum()).row(0))
            assert table.height or name != "detail_commitment_family_monthly"
        figures.append(found)
    assert figures[0] == figures[1]
