"""Mistakes in the configuration, places that cannot be reached or written, and questions that are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.spoiled import Ledger

from pipelines.base.errors import UsageError
from pipelines.cli import main
from pipelines.config.file import find_config, read_config
from pipelines.config.settings import Schedule, load_settings

ANOTHER_BILL = '\n[[billing]]\nname = "{name}"\nlocation = "{location}"\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('location = "warehouse"', 'locaton = "warehouse"', r"unknown key 'warehouse\.locaton'"),
        ("[warehouse]", "[werehouse]", r"unknown key 'werehouse'"),
        ("[warehouse]", "[warehouse", r"is not valid TOML: .*line 1"),
        ("[warehouse]", f"a{'.a' * 5_000} = 1\n[warehouse]", r" is nested more than 100 levels deep"),
        ("[warehouse]", f"a = {'[' * 5_000}\n[warehouse]", r" is nested more than 100 levels deep"),
        ('name = "payer"', "name.a = 1", r", \[\[billing\]\] number 1: key 'name': write text in quotes"),
        ('name = "payer"', "", r", \[\[billing\]\] number 1: key 'name': it is missing"),
        ('name = "payer"', 'name = "pay/er"', r", \[\[billing\]\] pay/er: key 'name': use letters, digits"),
        ('name = "payer"', 'name = "payer"\nkind = "cur3"', r", \[\[billing\]\] payer: key 'kind': .*'cur2'"),
        ('"export"', '""', r", \[\[billing\]\] payer: key 'location': write a folder or s3://"),
        ('"export"', "5", r", \[\[billing\]\] payer: key 'location': write text in quotes"),
        ('"warehouse"', '"warehouse"\nengine = "oracle"', r"key 'warehouse\.engine': .*'duckdb' or 'spark'"),
        (
            '"warehouse"',
            '"warehouse"\nmemory_limit = "lots"',
            r"key 'warehouse\.memory_limit': write a size such as 2GB",
        ),
        (
            '"warehouse"',
            '"warehouse"\nmemory_limit = "64MB"',
            r"key 'warehouse\.memory_limit': no bill can be built in that; write 256MB or more",
        ),
        ('"warehouse"', '"warehouse"\nthreads = 0', r"key 'warehouse\.threads'"),
        ('"warehouse"', '"warehouse"\nthreads = 99999999999999999999', r"key 'warehouse\.threads'"),
        ("[[billing]]", "[billing]", r"billing is not a list; write its heading in double brackets"),
        ("[warehouse]", '[tags]\nrunid = ["x"]\n\n[warehouse]', r"unknown key 'tags\.runid'"),
        ("[warehouse]", '[tags]\nrun_id = "x"\n\n[warehouse]', r"key 'tags\.run_id': write a list in brackets"),
        ("[warehouse]", '[policy]\nunused = "net"\n\n[warehouse]', r"unknown key 'policy\.unused'"),
        (
            "[warehouse]",
            '[policy]\nsavings_plan_unused = "net"\n\n[warehouse]',
            r"key 'policy\.savings_plan_unused': .*'scaled' or 'gross'",
        ),
        (
            "[warehouse]",
            "[policy]\nidentity_tolerance_usd = -1\n\n[warehouse]",
            r"key 'policy\.identity_tolerance_usd': .*greater than or equal to 0",
        ),
        (
            "[warehouse]",
            "[policy]\nas_of = 2026-07-14T12:00:00\n\n[warehouse]",
            r"key 'policy\.as_of': .*a time with its zone",
        ),
        *(
            ("[warehouse]", f"[policy]\nas_of = {moment}\n\n[warehouse]", rf"key 'policy\.as_of': {message}")
            for moment, message in (
                ("1690000000", "write a time with its zone"),
                ("1.5e9", "write a time with its zone"),
                ("0001-01-01T00:00:00+14:00", "write a time of the years 1 to 9999"),
            )
        ),
        *(
            ("[warehouse]", f'[schedule]\ncron = "{line}"\n\n[warehouse]', r"key 'schedule\.cron': write a cron line")
            for line in ("daily", "60 5 * * *", "30 24 * * *", "30 5 0 * *", "30 5 * 13 *", "30 5 * * 8", "*/0 5 * * *")
        ),
        *(
            (
                "[warehouse]",
                f'[schedule]\ncron = "0 5 {days} *"\n\n[warehouse]',
                r"key 'schedule\.cron': no month of it",
            )
            for days in ("30 2", "31 FEB,4", "31 nov", "30/1 2")
        ),
        (
            'location = "warehouse"',
            'location = "export/here"',
            r"export/here is inside the bill of \[\[billing\]\] payer",
        ),
        ('location = "warehouse"', 'location = "."', r" contains the bill of \[\[billing\]\] payer"),
    ],
)
def test_a_mistake_names_file_and_key(ledger: Ledger, old: str, new: str, message: str) -> None:
    # The environment of the tests would override it.
    ledger.monkeypatch.delenv("TRAINLEDGER_WAREHOUSE__THREADS", raising=False)
    ledger.configure(old, new)
    assert re.search(rf"{re.escape(str(ledger.config))}.*{message}", ledger.refused(2))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('location = "export"', 'path = "export"', "[[billing]] payer: unknown key 'path'; write 'location'."),
        ('location = "export"', 'bucket = "acme"', "[[billing]] payer: unknown key 'bucket'; write 'location'."),
        ('name = "payer"', 'name = "payer"\ntype = "cur"', "[[billing]] payer: unknown key 'type'; write 'kind'."),
        ('name = "payer"', 'name = "payer"\nregoin = "x"', "[[billing]] payer: unknown key 'regoin'; write 'region'."),
        ('name = "payer"', 'name = "payer"\nfiles = "*"\nexport = "x"', "`files` have none; remove one of the two."),
        ('name = "payer"', 'name = "payer"\naws_access_key_id = "A"', "take credentials out of the file and name a"),
        ('"export"', '"arn:aws:s3:::acme/cur"', "key 'location': write an address of S3 as s3://bucket/prefix."),
        ('"export"', '"s3a://acme/cur"', "key 'location': write an address of S3 as s3://bucket/prefix."),
        ('"export"', '"s3:/acme/cur"', "key 'location': write an address of S3 as s3://bucket/prefix."),
        ('"export"', r'"C:\data"', "; write / in place of the backslash."),
        ('"export"', r'"C:\Users\me"', "; write / in place of the backslash."),
        ('"export"', '"S3://acme/cur"', "key 'location': write an address of S3 as s3://bucket/prefix."),
        ('"export"', '"export', "; close the text with a double quote."),
        ('"export"', '"export"\nempty_months = ["2026-05"', "; close the list with a bracket."),
        ("[[billing]]", "[[billing]", "; close the heading with as many brackets as it begins with."),
        ('"export"', '"export"\nfiles = ""', "key 'files.0': write text that is not empty."),
        ("[[billing]]", "[policy]\nprovisional_runs = True\n[[billing]]", "true and false in lower case."),
        ('"warehouse"', '"warehouse"\nthreads = "two"', "'warehouse.threads': write a whole number, without quotes."),
        ("[[billing]]", "[policy]\nidentity_tolerance_usd = []\n[[billing]]", "_usd': write a number such as 1.5."),
        (
            "[[billing]]",
            '[policy]\nequal_quality_ratio = "1%"\n[[billing]]',
            "_ratio': write a number such as 1.5.",
        ),
        ("[[billing]]", '[policy]\nprovisional_runs = "x"\n[[billing]]', "': write true or false, without quotes."),
        ("[[billing]]", "[policy]\nas_of = 2026-07-14T00:00:00\n[[billing]]", "': write a time with its zone, such as"),
        ("[[billing]]", '[teams]\nroles = "x"\n[[billing]]', "'teams.roles': write a table of keys and values."),
        (
            "[[billing]]",
            '[[serving]]\nname = "a"\nkind = "cloudwatch"\n[[billing]]',
            "write either `location`, or `first_month`",
        ),
        ("[warehouse]", 'engine = "spark"\n[warehouse]', "below the heading it belongs to, such as [warehouse]."),
        ("[[billing]]", "[[budgets]]\n[[billing]]", "below the heading it belongs to, such as [decisions]."),
        (
            "[[billing]]",
            "[[notify]]\n[[billing]]",
            "notify is no list; write its heading in single brackets, [notify].",
        ),
        ("[[billing]]", "[privacy]\nenabled = true\n[[billing]]", "unknown key 'privacy.enabled'; write 'pseudonyms'"),
        ('"export"', "export", "Invalid value (at line 6, column 12); write text in straight double quotes"),
        ('"export"', "“export”", "Invalid value (at line 6, column 12); write text in straight double quotes"),
        ("location = ", "location: ", 'after a key in a key/value pair (at line 2, column 9); write key = "value"'),
        ('name = "payer"', 'name = "payer"\nname = "b"', "the key is there twice; remove one."),
        ("[[billing]]", "[warehouse]\n[[billing]]", "the heading is there twice; put its keys below one"),
        ("[[billing]]", "[[bills]]", "unknown key 'bills'; write 'billing'."),
        ("[[billing]]", "[tag]\n[[billing]]", "unknown key 'tag'; write 'tags'."),
        ("[[billing]]", '[tags]\nproject = ["x"]\n[[billing]]', "'tags.project'; write 'run_id', 'owner' or 'team'."),
        ("[warehouse]", 'profile = "x"\n[warehouse]', "put it below the heading it belongs to, such as [[billing]]."),
        (
            'name = "payer"',
            'name = "payer"\nfirst_month = 2026-07',
            "write text, months and times with a zone in double",
        ),
    ],
)
def test_a_likely_mistake_shows_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    monkeypatch.delenv("TRAINLEDGER_WAREHOUSE__THREADS", raising=False)
    config = tmp_path / "trainledger.toml"
    written = '[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "payer"\nlocation = "export"\n'
    config.write_text(written.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        load_settings(config)
    assert str(raised.value).startswith(str(config)) and message in str(raised.value)


@pytest.mark.parametrize(
    ("instance_type", "price", "message"),
    [
        # facts training-runs 6: trn1.32xlarge has 16 chips and costs 21.50 an hour: 1.34375 a chip.
        (
            "trn1.32xlarge",
            "1.34375",
            "one of the 16 accelerators of trn1.32xlarge; write that of the whole instance, such as 21.5",
        ),
        (
            "trn1.32xlage",
            "21.50",
            "[[prices]] have trn1.32xlage, which is no known machine; correct it, such as to trn1.32xlarge",
        ),
    ],
)
def test_a_price_of_something_else(tmp_path: Path, instance_type: str, price: str, message: str) -> None:
    config = tmp_path / "trainledger.toml"
    entry = f'instance_type = "{instance_type}"\nregion_id = "us-east-1"\noffer = "on_demand"\n'
    entry += f'from_date = 2026-07-01\nprice_per_hour_usd = "{price}"\n'
    config.write_text(f"[[prices]]\n{entry}", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        load_settings(config)
    assert message in str(raised.value)


def test_cores_are_no_accelerators(tmp_path: Path) -> None:
    """trn1.32xlarge: 16 chips of 2 cores (facts training-runs 3)."""
    config = tmp_path / "trainledger.toml"
    machine = 'instance_type = "trn1.32xlarge"\naccelerator_family = "trainium"\naccelerator_name = "Trainium"\n'
    config.write_text(f"[[machines]]\n{machine}accelerator_count = 32\n", encoding="utf-8")
    with pytest.raises(UsageError, match="accelerator_count 32 counts its cores; write its chips, 16"):
        load_settings(config)


def test_variables_that_kubernetes_sets_are_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a service `trainledger`, `trainledger-runs` or `trainledger-serving`."""
    for name in ("PORT", "SERVICE_HOST", "PORT_8080_TCP_ADDR", "RUNS_PORT", "SERVING_SERVICE_PORT_HTTP"):
        monkeypatch.setenv(f"TRAINLEDGER_{name}", "x")
    (tmp_path / "trainledger.toml").touch()
    load_settings(tmp_path / "trainledger.toml")


@pytest.mark.parametrize(
    ("name", "location", "message"),
    [
        ("payer", "elsewhere", r"\[\[billing\]\] name 'payer' is used twice"),
        ("again", "./export", r"\[\[billing\]\] payer and again have the same location, so its bill would count twice"),
    ],
)
def test_two_bills_that_are_one(ledger: Ledger, name: str, location: str, message: str) -> None:
    ledger.config.write_text(ledger.config.read_text() + ANOTHER_BILL.format(name=name, location=location))
    assert re.search(rf"{re.escape(str(ledger.config))}: {message}", ledger.refused(2))


def test_no_bill_at_all(ledger: Ledger) -> None:
    ledger.config.write_text('[warehouse]\nlocation = "warehouse"\n')
    assert "No bill is configured; add a [[billing]] source" in ledger.refused(2)


def test_a_file_that_is_not_there(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.config.unlink()
    assert f"{ledger.config} does not exist; give --config the path" in ledger.refused(2)
    monkeypatch.setenv("TRAINLEDGER_CONFIG", "/nope.toml")
    with pytest.raises(UsageError, match=r"/nope\.toml, named by TRAINLEDGER_CONFIG, does not exist"):
        find_config()


def test_a_file_that_is_not_text(ledger: Ledger) -> None:
    ledger.config.write_bytes(b"\xff\xfe\x00")
    assert f"{ledger.config} is not valid TOML" in ledger.refused(2)


def test_a_kind_of_runs_that_is_not_read(ledger: Ledger) -> None:
    ledger.configure('kind = "events"', 'kind = "notebook"')
    assert ledger.refused(2) == (
        "[[runs]] jobs: kind 'notebook' is not supported; write one of "
        "batch, checkpoints, events, kubernetes, lightning, mlflow, mllog, ray, sagemaker, slurm, trainer_state, wandb."
    )


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TRAINLEDGER_WAREHOUSE__ENGINE", "oracle", r"environment variable TRAINLEDGER_WAREHOUSE__ENGINE: key"),
        (
            "TRAINLEDGER_WAREHOSE__LOCATION",
            "x",
            "it is no key of the configuration; write TRAINLEDGER_WAREHOUSE__LOCATION",
        ),
        ("TRAINLEDGER_PRIVACY_PSEUDONYMS", "[]", "TRAINLEDGER_PRIVACY_PSEUDONYMS: .*; write TRAINLEDGER_PRIVACY__PSEU"),
        ("TRAINLEDGER_STORE__PLACE", "x", "TRAINLEDGER_STORE__PLACE: .*; unset it or check its spelling"),
        ("TRAINLEDGER_BILLING", "payer", r"The environment overrides .* a value that is not JSON .*\"billing\""),
        ("TRAINLEDGER_BILLING", "[" * 100_000, r"a value that is nested more than 100 levels deep: .*\"billing\""),
    ],
)
def test_the_environment_is_named_when_it_is_at_fault(ledger: Ledger, variable: str, value: str, message: str) -> None:
    ledger.monkeypatch.setenv(variable, value)
    failed = ledger.run("build")
    assert failed.code == 2
    assert re.search(message, failed.error)
    ledger.monkeypatch.delenv(variable)
    ledger.still_answers()


@pytest.mark.parametrize(("location", "held"), [("runs [1]", "["), ("a%20b", "%20"), ("a|b", "|"), ("a^b", "^")])
def test_a_folder_whose_name_no_table_can_have(ledger: Ledger, location: str, held: str) -> None:
    ledger.configure('"warehouse"', f'"{location}"')
    assert f"key 'warehouse.location': {ledger.root / location} contains '{held}', which the address" in ledger.refused(
        2
    )


@pytest.mark.parametrize(
    ("prefix", "held"),
    [("ml#1/w", "#"), ("a?b", "?"), ("a//b", "//"), ("a/../b", "/.."), ("a/..", "/.."), ("a/./b", "/.")],
)
def test_a_prefix_that_a_table_would_leave(ledger: Ledger, prefix: str, held: str) -> None:
    ledger.configure('"warehouse"', f'"s3://acme-ml/{prefix}"')
    assert f"key 'warehouse.location': s3://acme-ml/{prefix} contains '{held}', which the address" in ledger.refused(2)


@pytest.mark.parametrize("location", ["taken", "taken/below", "loop"])
def test_a_warehouse_that_cannot_be_made(ledger: Ledger, location: str) -> None:
    (ledger.root / "taken").write_text("a file")
    (ledger.root / "loop").symlink_to("loop")
    ledger.configure('"warehouse"', f'"{location}"')
    assert re.search(
        rf"{location} cannot be made \(.*\); choose another location under \[warehouse\]", ledger.refused(2)
    )


def test_a_warehouse_that_cannot_be_written(ledger: Ledger) -> None:
    """The folder of raw bills is a file: the same to the system as a folder that may not be written."""
    (ledger.root / "other").mkdir()
    (ledger.root / "other/raw").write_text("a file")
    ledger.configure('"warehouse"', '"other"')
    assert re.search(r"other/raw.*; check its permissions and the disk", ledger.refused(2))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("gs://bucket/export", "gs://bucket/export is neither a folder nor s3://bucket/prefix; change `location`."),
        ("s3://", "s3:// names no bucket; write s3://bucket/prefix."),
        (
            "~unknown-user/x",
            "location ~unknown-user/x: the home folder of that user is unknown; write the whole path.",
        ),
    ],
)
def test_a_location_of_another_kind(ledger: Ledger, location: str, message: str) -> None:
    ledger.configure('"export"', f'"{location}"')
    assert message == ledger.refused(2)


@pytest.mark.parametrize("place", ["export", "runs", "warehouse"])
def test_a_bucket_that_is_not_there(ledger: Ledger, s3_endpoint: str, place: str) -> None:
    ledger.configure(f'"{place}"', f'"s3://bucket-of-no-one/{place}"\nendpoint_url = "{s3_endpoint}"')
    assert re.search(r"s3://bucket-of-no-one/.*: there is no such bucket; check `location`", ledger.refused(3))


def test_a_store_that_does_not_answer(ledger: Ledger, s3_endpoint: str) -> None:
    # Port 9 discards what it gets, where anything listens at all.
    ledger.configure('"export"', '"s3://somewhere/export"\nendpoint_url = "http://127.0.0.1:9"')
    fix = "check the network, the region and `endpoint_url`"
    assert re.search(rf"s3://somewhere/export.* did not answer .*; {fix}", ledger.refused(3))


def test_an_endpoint_that_is_no_address(ledger: Ledger, s3_endpoint: str) -> None:
    ledger.configure('"export"', '"s3://somewhere/export"\nendpoint_url = "127.0.0.1:9"')
    assert re.search(
        r"s3://somewhere/export: Invalid endpoint: .*; check profile, region and endpoint_url", ledger.refused(2)
    )


def test_a_build_next_to_another(ledger: Ledger) -> None:
    from pipelines.config.settings import load_settings
    from pipelines.models.warehouse import Warehouse

    with Warehouse(load_settings(ledger.config)).lake.lock():
        assert re.search(r"warehouse is being built by process \d+ on .*; wait for it to end", ledger.refused(4))


def test_nothing_published_yet(ledger: Ledger) -> None:
    ledger.configure('"warehouse"', '"fresh"')
    for command in (["query", "select 1"], ["report"], ["check"]):
        result = ledger.run(*command)
        assert (result.code, result.error) == (
            2,
            f"{ledger.root / 'fresh'} holds no publication yet; run `trainledger build` first.",
        )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", 'syntax error at or near "selec"'),
        ("select nothing from mart_run_cost", 'Referenced column "nothing" not found'),
        ("select * from mart_run_costs", "Table with name mart_run_costs does not exist"),
        ("drop view mart_run_cost", "That is not one SELECT; write one SELECT"),
        ("", "That is not one SELECT; write one SELECT"),
        ("select interval 1 day", "cast it to varchar"),
        ("select '-infinity'::date as day", "day contains a day outside the years 1 to 9999; cast it to varchar"),
    ],
)
def test_a_question_that_is_none(ledger: Ledger, sql: str, message: str) -> None:
    result = ledger.run("query", sql)
    assert result.code == 2
    assert message in result.error
    ledger.still_answers()


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{there}/new'",
        "copy mart_run_cost to '{there}/new' (format parquet)",
        "attach '{there}/new'",
        "export database '{there}/new'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "create table mine as select 1 as n",
        "select 1; copy (select 1) to '{there}/new'",
        "copy (select 1) to '{there}/new'; select 1",
        "explain analyze copy (select 1) to '{there}/new'",
        # A file of a mart, which a SELECT may read, without the new file next to it that no one may write.
        "explain analyze copy (select 1) to '{mart}' (use_tmp_file false)",
        "explain (analyze) copy (select 1) to '{mart}' (use_tmp_file false)",
        "explain (analyze /* ) select 1 -- */ ) copy (select 1) to '{mart}' (use_tmp_file false)",
        "explain analyze create table mine as select 1",
        "select * from read_csv('{there}/trainledger.toml')",
        "select * from read_text('{there}/trainledger.toml')",
        "select * from glob('{there}/*')",
        "from '{there}/runs/events.jsonl'",
    ],
)
def test_a_question_reads_the_marts_and_writes_nothing(ledger: Ledger, sql: str) -> None:
    def state() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in ledger.root.rglob("*")}

    before = state()
    (mart, *_) = ledger.root.glob("warehouse/tables/marts/mart_run_cost/*.parquet")
    result = ledger.run("query", sql.format(there=ledger.root, mart=mart))
    assert (result.code, result.out) == (2, "")
    assert result.error.endswith("; `trainledger query` without a query lists the marts.")
    assert state() == before


@pytest.mark.parametrize(
    "sql",
    [
        "with run as (select * from mart_run_cost) select count(*) as n from run",
        "from mart.mart_run_cost select count(*) as n",
        "pivot (select 1 as n, 1 as one) on one using sum(n)",
        "describe mart_run_cost",
        "explain select 1",
        "explain (analyze, format json) from mart_run_cost",
        "show tables",
        "values (1);",
    ],
)
def test_what_is_like_a_select_is_answered(ledger: Ledger, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ledger.root)
    # By a relative path too the marts are what may be read.
    answered = ledger.run("query", sql, config=Path("trainledger.toml"))
    assert (answered.code, answered.err) == (0, "")


def test_a_question_whose_answer_fits_no_csv(ledger: Ledger) -> None:
    result = ledger.run("query", "select [1, 2] as pair", "--csv")
    assert (result.code, "--csv cannot hold a column" in result.error) == (2, True)


def test_a_report_that_cannot_be_written(ledger: Ledger) -> None:
    (ledger.root / "taken").write_text("a file")
    result = ledger.run("report", "--out", str(ledger.root / "taken/report.html"))
    assert result.code == 2
    assert re.search(r"taken/report\.html cannot be written \(.*\); choose another file with --out", result.error)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["query", "--nothing"],
        ["query", "--csv", "--json", "select 1"],
        ["explain", "run", "good", "--lines", "-1"],
        ["explain", "run", "good", "--lines", "99999999999999999999"],
        ["explain", "run", "\udcff"],
        ["query", "select date '99999-01-01' as day"],
    ],
)
def test_wrong_usage(ledger: Ledger, arguments: list[str]) -> None:
    result = ledger.run(*arguments)
    assert (result.code, "Traceback" in result.err, "Unexpected" in result.err) == (2, False, False)


def test_a_name_is_explained_whatever_the_configuration(ledger: Ledger) -> None:
    """Every other command takes --config, so this one does."""
    result = ledger.run("explain", "cost_per_epoch_usd")
    assert result.code == 0, result.err
    assert result.out.startswith("cost_per_epoch_usd")


@pytest.mark.parametrize(
    "moment", ["yesterday", "5", "-1", "1690000000", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_a_moment_that_is_none(ledger: Ledger, moment: str) -> None:
    """A number is no moment, nor is one that UTC's calendar lacks."""
    result = ledger.run("build", f"--as-of={moment}")
    assert result.code == 2
    assert result.error == f"--as-of {moment} is not a time with its zone; write one such as 2026-07-14T12:00:00Z."


def test_debug_shows_the_traceback_wherever_it_stands(ledger: Ledger) -> None:
    from pipelines.base.errors import UsageError

    for arguments in (["--debug", "query", "selec 1"], ["query", "selec 1", "--debug"]):
        with pytest.raises(UsageError):
            ledger.run(*arguments)


def test_a_folder_without_configuration_shows_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAINLEDGER_CONFIG", raising=False)
    monkeypatch.setattr("sys.argv", ["trainledger", "build"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "No trainledger.toml here; run `trainledger init`" in capsys.readouterr().err


def test_cron_lines_as_people_write_them() -> None:
    for line in (
        "* * * * *",
        "30 5 * * *",
        "*/15 0,12 1-7 JAN-mar,6 Mon-Fri",
        "5 04 31 12 7",
        "0 5 29 2 *",
        "0 5 31 11-1 *",
    ):
        assert Schedule(cron=line).cron == line


def test_a_file_of_any_size_is_refused_before_it_is_read(tmp_path: Path) -> None:
    config = tmp_path / "trainledger.toml"
    with config.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageError, match="has more than 1,048,576 bytes, which is not read"):
        read_config(config)


def test_a_table_alone_is_no_query(ledger: Ledger) -> None:
    result = ledger.run("query", "mart_run_cost")
    assert (result.code, result.out) == (2, "")
    assert '; `trainledger query "from mart_run_cost"` shows a table, ' in result.error
