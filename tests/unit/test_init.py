"""`init` finds exports at any level, proposes tags and writes a configuration that a build reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import run_command
from support.cur_exports import CUR2_LINE, LEGACY_LINE, csv_text, cur2_export, legacy_export, packed, parquet, source

from pipelines.base.errors import SourceError
from pipelines.config.settings import load_settings
from pipelines.ingest.billing.exports import ingest, list_deliveries
from pipelines.ingest.billing.options import tag_costs

AUGUST = {key: value.replace("2026-07", "2026-08") for key, value in LEGACY_LINE.items()}


def test_an_export_is_found_at_any_level_and_its_tags_are_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of 55.04: two with a job, one of them with a department; so 110.08 and 55.04."""
    tags = ("resourceTags/user:JobName", "resourceTags/user:department", "resourceTags/user:color")
    lines = [
        dict.fromkeys(tags, "") | LEGACY_LINE | {tags[0]: "llama-1", tags[1]: "nlp"},
        dict.fromkeys(tags, "") | LEGACY_LINE | {tags[0]: "llama-2", "lineItem/UsageStartDate": "2026-07-02T00:00:00Z"},
    ]
    bucket, config = tmp_path / "bucket", tmp_path / "trainledger.toml"
    legacy_export(bucket / "billing" / "hourly", {"a.csv.gz": packed(csv_text(lines))})
    result = run_command(capsys, "init", str(bucket), "--config", str(config))
    assert result.code in (0, 1), result.err
    assert "legacy CUR, 2026-07" in result.out and str(bucket / "billing" / "hourly") in result.out
    rows = {row.split()[1]: row.split() for row in result.out.splitlines() if "USD" in row and row.startswith("│")}
    assert rows["JobName"][3:] == ["110.08", "USD", "│", "2", "│", "run_id", "│"]
    assert rows["department"][3:] == ["55.04", "USD", "│", "1", "│", "team", "│"]
    settings = load_settings(config)
    assert settings.tags == {"run_id": ("JobName",), "team": ("department",)}
    assert [delivery.billing_period for delivery in list_deliveries(settings.billing[0], tmp_path / "raw")] == [
        "2026-07"
    ]


def test_of_all_data_sets_of_focus_the_costs_are_the_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared_data: Path
) -> None:
    """The folder has the four data sets of FOCUS 1.4: costs, invoices, billing periods and contract commitments."""
    place, config = shared_data / "billing" / "focus14" / "fdt_aws_seed42", tmp_path / "trainledger.toml"
    done = run_command(capsys, "init", str(place), "--config", str(config))
    assert done.code in (0, 1), done.err
    settings = load_settings(config)
    assert [one.files for one in settings.billing] == [("focus_1_4_cost_and_usage.csv",)]
    assert [Path(str(one.location)).name for one in (*settings.invoices, *settings.commitments)] == [
        "focus_1_4_billing_period.csv",
        "focus_1_4_invoice_detail.csv",
        "focus_1_4_contract_commitment.csv",
    ]
    assert "Left out" not in done.out
    assert "usage lines are hourly (2026-05)" in done.out


def test_of_exports_side_by_side_the_hourly_one_is_read_and_one_of_another_payer_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One payer has a daily export with a newer month and an hourly one; each line costs 55.04."""
    bucket, config = tmp_path / "bucket", tmp_path / "trainledger.toml"
    named = LEGACY_LINE | {"lineItem/ResourceId": "i-01"}
    daily = AUGUST | {"lineItem/UsageEndDate": "2026-08-02T00:00:00Z"}
    legacy_export(bucket / "hourly", {"a.csv": csv_text([named, named])}, name="hourly-cur")
    legacy_export(bucket / "daily", {"a.csv": csv_text([daily])}, name="daily-cur", month="20260801-20260901")
    legacy_export(bucket / "other", {"a.csv": csv_text([named | {"bill/PayerAccountId": "000099990000"}])}, name="b")
    done = run_command(capsys, "init", str(bucket), "--config", str(config))
    assert done.code in (0, 1), done.err
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in done.out.splitlines() if "manifests of" in row]
    assert [row for row in rows if row] == [
        ["manifests of hourly-cur", "legacy CUR", "2026-07", "2", "110.08 USD", "hourly", "100%", "yes"],
        ["manifests of b", "legacy CUR", "2026-07", "1", "55.04 USD", "hourly", "100%", "yes"],
        ["manifests of daily-cur", "legacy CUR", "2026-08", "1", "55.04 USD", "daily", "0%", "no"],
    ]
    assert "Not read: manifests of daily-cur. hourly-cur is of the same payer and has hourly lines" in done.out
    assert [one.name for one in load_settings(config).billing] == ["hourly-cur", "b"]


def test_a_configuration_is_replaced_only_when_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cur2_export(tmp_path / "export", {"a.csv.gz": packed(csv_text([CUR2_LINE]))})
    config = tmp_path / "trainledger.toml"
    config.write_text("# mine\n")
    words = ("init", str(tmp_path / "export"), "--config", str(config))
    result = run_command(capsys, *words)
    assert result.code == 2 and "exists; use --force to replace it" in result.err and config.read_text() == "# mine\n"
    run_command(capsys, *words, "--force")
    assert "[[billing]]" in config.read_text()


@pytest.mark.parametrize(
    ("place", "code", "sentence"),
    [("nowhere", 2, "nowhere is not a folder"), ("empty", 3, "no billing manifest and no Parquet or csv file")],
)
def test_a_place_without_a_bill_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, code: int, sentence: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = run_command(capsys, "init", str(tmp_path / place), "--config", str(tmp_path / "trainledger.toml"))
    assert result.code == code and sentence in result.err and result.err.count("\n") <= 2
    assert not (tmp_path / "trainledger.toml").exists()


def test_bare_files_are_deliveries_of_the_months_of_their_lines(tmp_path: Path) -> None:
    """A csv of July and a Parquet file of August; a third lies in the folder of its month."""
    folder = tmp_path / "files"
    (folder / "BILLING_PERIOD=2026-09").mkdir(parents=True)
    (folder / "july.csv.gz").write_bytes(packed(csv_text([LEGACY_LINE])))
    (folder / "august.csv").write_bytes(csv_text([AUGUST]))
    (folder / "BILLING_PERIOD=2026-09" / "part-1.parquet").write_bytes(parquet([CUR2_LINE]))
    (folder / "notes.txt").write_text("not a bill")
    bare = source(folder).model_copy(update={"files": ("*.csv*",)})
    july, august = list_deliveries(bare, tmp_path / "raw")
    assert (july.billing_period, august.billing_period, july.kind) == ("2026-07", "2026-08", "cur")
    assert ingest(july, bare, tmp_path / "raw").line_count == 1
    (september,) = list_deliveries(bare.model_copy(update={"files": ("*.parquet",)}), tmp_path / "raw2")
    assert september.billing_period == "2026-09"


@pytest.mark.parametrize("month", ["BILLING_PERIOD=2026-07", "year=2026/month=7", "20260701-20260801"])
def test_the_folder_of_the_only_month_is_not_the_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], month: str
) -> None:
    """August arrives later, in the folder of its own month: the entry that July alone wrote reads it too."""
    bill, config = tmp_path / "bill", tmp_path / "trainledger.toml"
    (bill / "data" / month).mkdir(parents=True)
    (bill / "data" / month / "a.csv").write_bytes(csv_text([LEGACY_LINE]))
    done = run_command(capsys, "init", str(bill), "--config", str(config))
    assert done.code in (0, 1), done.err
    later = bill / "data" / month.replace("08", "09").replace("07", "08").replace("=7", "=8")
    later.mkdir(parents=True)
    (later / "a.csv").write_bytes(csv_text([AUGUST]))
    (entry,) = load_settings(config).billing
    assert Path(str(entry.location)) == bill / "data"
    assert [one.billing_period for one in list_deliveries(entry, tmp_path / "raw")] == ["2026-07", "2026-08"]


def test_a_bare_file_that_changes_is_another_delivery(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "july.csv"
    file.write_bytes(csv_text([LEGACY_LINE]))
    bare = source(tmp_path / "files").model_copy(update={"files": ("*.csv",)})
    (before,) = list_deliveries(bare, tmp_path / "raw")
    assert list_deliveries(bare, tmp_path / "raw") == [before]
    file.write_bytes(csv_text([LEGACY_LINE, LEGACY_LINE]))
    (after,) = list_deliveries(bare, tmp_path / "raw")
    assert after.fingerprint != before.fingerprint


def test_a_bare_file_that_is_there_twice_is_to_be_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bill").mkdir()
    for name in ("july.csv", "july (1).csv"):
        (tmp_path / "bill" / name).write_bytes(csv_text([LEGACY_LINE]))
    result = run_command(capsys, "init", str(tmp_path / "bill"), "--config", str(tmp_path / "trainledger.toml"))
    assert result.code == 3
    assert result.error.endswith("july (1).csv; their lines would count double, so remove one of them.")


def test_a_bare_file_that_is_no_bill_is_refused_by_name(tmp_path: Path) -> None:
    """FOCUS's contract commitments lie next to its costs where somebody downloaded all data sets."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "contract.csv").write_text("ContractCommitmentId,ContractCommitmentCost\nc-1,10\n")
    bare = source(tmp_path / "files").model_copy(update={"files": ("*.csv",)})
    with pytest.raises(SourceError, match=r"contract\.csv is FOCUS ContractCommitment, not its costs"):
        list_deliveries(bare, tmp_path / "raw")


@pytest.mark.parametrize(
    ("names", "holds", "fix"),
    [
        (("a.csv", "b.csv", "c.CSV.GZ"), "2 .csv files, 1 .CSV.GZ file", 'write "*.csv"'),
        (("notes.txt",), "no bill file", "check `location` of [[billing]] payer"),
    ],
)
def test_files_that_no_pattern_matches(tmp_path: Path, names: tuple[str, ...], holds: str, fix: str) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(SourceError) as refused:
        list_deliveries(source(tmp_path, files=("*.parquet",)), tmp_path / "raw")
    listed = f"{len(names)} file{'s' * (len(names) > 1)} listed"
    assert str(refused.value) == (
        f"{tmp_path} holds {holds} and none that matches files = '*.parquet' ({listed}); {fix}."
    )


def test_lines_that_do_not_fit_their_header_are_named(tmp_path: Path) -> None:
    (tmp_path / "july.csv").write_text("LineItemUsageStartDate,LineItemUnblendedCost\n2026-07-01T00:00:00Z\n")
    bare = source(tmp_path).model_copy(update={"files": ("*.csv",)})
    with pytest.raises(SourceError, match="its header has 2 columns, its lines have 1; have it delivered again"):
        list_deliveries(bare, tmp_path / "raw")


def test_files_below_a_manifest_are_refused_as_bare_ones(tmp_path: Path) -> None:
    """Each month has the files of every delivery next to each other: all of them would count twice."""
    root = legacy_export(tmp_path / "export", {"a.csv.gz": packed(csv_text([LEGACY_LINE]))})
    bare = source(root.parent).model_copy(update={"files": ("*.csv.gz",)})
    with pytest.raises(SourceError, match="remove `files` from the"):
        list_deliveries(bare, tmp_path / "raw")


def test_a_location_above_the_export_is_refused_with_its_root(tmp_path: Path) -> None:
    root = legacy_export(tmp_path / "a" / "b" / "c", {"a.csv.gz": packed(csv_text([LEGACY_LINE]))})
    with pytest.raises(SourceError) as raised:
        list_deliveries(source(tmp_path / "a"), tmp_path / "raw")
    assert f"point location at {root}" in str(raised.value)


def test_spellings_of_a_tag_key_keep_their_own_dollars(tmp_path: Path) -> None:
    """Two lines of 55.04 with `Run_ID`, one of 55.04 with `run_id`."""
    upper, lower = "resourceTags/user:Run_ID", "resourceTags/user:run_id"
    lines = [{**LEGACY_LINE, upper: "a", lower: ""}, {**LEGACY_LINE, upper: "b", lower: "c"}]
    root = legacy_export(tmp_path / "export", {"a.csv.gz": packed(csv_text(lines))})
    (delivery,) = list_deliveries(source(root), tmp_path / "raw")
    found = {one.key: one for one in tag_costs(ingest(delivery, source(root), tmp_path / "raw"))}
    assert {key: (one.value_count, str(one.cost["USD"])) for key, one in found.items()} == {
        "Run_ID": (2, "110.0800000000"),
        "run_id": (1, "55.0400000000"),
    }
