"""`verify` names what was changed in a pack, and refuses what is no pack of ours."""

from __future__ import annotations

import io
import json
import zipfile
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from support.packs import RUNS, as_parquet, members, refused, rewritten

from pipelines.base.console import Console
from pipelines.base.errors import CheckError, UsageError
from pipelines.evidence.archive import Pack
from pipelines.evidence.pack import restated_marts
from pipelines.evidence.rebuild import published_in
from pipelines.evidence.verify import verify
from pipelines.present.pdf import paper

Captured = pytest.CaptureFixture[str]


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


def test_a_forgery_under_a_manifest_that_fits_is_reported_with_both_values(
    pack: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU run's cost is made 100.08 in the Parquet file, the Trainium run's 68.00 on the page, and the records of
    the runs, an input, record a second epoch of the GPU run. A reader takes what a picture shows for what the report
    states. An auditor compares digests with the bucket: a genuine one may not stand next to invented lines."""
    drawing = b'<svg role="img" aria-label="" class="marks"><text>Training runs cost $1.00</text></svg>'

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
        held["reports/commitments.html"] = held["reports/commitments.html"].replace(b"</h1>", b"</h1>" + drawing, 1)
        inputs = json.loads(held["inputs.json"])
        inputs["deliveries"][0]["files"][0]["kept_sha256"] = "0" * 64
        held["inputs.json"] = json.dumps(inputs).encode()

    # The forged epoch moves figures in more marts than are shown.
    monkeypatch.setattr("pipelines.evidence.verify.SHOWN", 10_000)
    assert refused(rewritten(pack, change, sealed=True)).exit_code == 1
    output = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in output.splitlines()]
    assert ["mart_run_cost", "run_id=gpu-1", "effective_cost_usd", "100.08", "110.08"] in cells
    # It had one epoch, and the forged input gives two.
    assert ["mart_run_cost", "run_id=gpu-1", "epoch_completed_count", "1", "2"] in cells
    # The logs next to the forged records still record one epoch.
    assert [cell[-2:] for cell in cells if cell[0] == "records/tracker_epoch"] == [["1 row", "no row"]]
    # The CSV next to the forged Parquet still holds the old values.
    others = {cell[0] for cell in cells if cell[0].endswith((".csv", ".html", ".pdf"))}
    # Another epoch is another cost per epoch, in the report on paper and in the savings proof too. No commitment moved:
    # on their page is the drawing, which the paper lacks.
    assert others == {
        "marts/mart_run_cost.csv",
        "reports/training_cost.html",
        "reports/training_cost.pdf",
        "reports/savings.html",
        "reports/commitments.html",
        "reports/commitments.pdf",
    }
    assert "cost $1.00" in output
    assert "kept_sha256" in output


@pytest.mark.slow
def test_what_a_reader_opens_first_is_compared_and_what_nothing_proves_is_named(pack: Path, capsys: Captured) -> None:
    """Results of checks and the note on the pack follow from its record; its libraries, addresses and what was warned
    of on reading do not. A warning of fewer dollars is named too, and the page that was written before it."""

    def state(held: dict[str, bytes]) -> None:
        record = json.loads(held["publication.json"])
        (warned,) = [one for one in record["checks"] if one["check"] == "usage_without_a_known_rate"]
        # 2 hours at 55.04 and 4 at 21.50.
        assert warned["totals"] == {"USD": "196.0800000000"}
        warned["totals"] = {"USD": "1.0000000000"}
        warned["sample"][0]["unrated_list_cost_usd"] = "1.0000000000"
        held["publication.json"] = json.dumps(record).encode()
        held["checks.csv"] = held["checks.csv"].replace(b",true,", b",false,", 1)
        held["README.txt"] = b"Audited; no further check is needed.\n"

    assert "5 differences" in str(refused(rewritten(pack, state, sealed=True)))
    shown = capsys.readouterr().out
    for named in ("checks.csv", "README.txt", "{'USD': '1.0000000000'}", "sample", "training_cost.html"):
        assert named in shown

    def place(held: dict[str, bytes]) -> None:
        held["requirements.lock"] = b"other==1.0\n"
        held["inputs.json"] = held["inputs.json"].replace(b'"version": "', b'"version": "1')

    verify(rewritten(pack, place, sealed=True), None, Console())
    unproven = capsys.readouterr().out.partition("Not verified, because the pack contains no proof: ")[2]
    for named in (
        "the publication time and the configuration",
        "everything in inputs.json except the sha256",
        "the warnings of reading",
        # A sealed baseline of twice the hours would double a saving.
        "what was published before (before), on which ",
        "requirements.lock",
    ):
        assert named in " ".join(unproven.split())


@pytest.mark.slow
def test_a_chart_that_was_drawn_anew_is_named_as_unproven(pack: Path, capsys: Captured) -> None:
    """Other fonts move marks, so a bar twice as long is no difference; it is not verified either."""
    published = published_in(Pack(pack))
    page = members(pack)["reports/training_cost.html"].decode()
    chart = page.index('class="marks"')
    place = page.index('d="M', chart)
    forged = f'{page[:place]}d="M9{page[place + 4 :]}'

    def change(held: dict[str, bytes]) -> None:
        held["reports/training_cost.html"] = forged.encode()
        held["reports/training_cost.pdf"] = paper(forged, "training_cost", published)

    verify(rewritten(pack, change, sealed=True), None, Console())
    shown = " ".join(capsys.readouterr().out.split())
    assert "Not verified" in shown and "lengths and places in the charts of training_cost, which" in shown


def test_a_date_that_is_not_that_of_the_publication_is_refused(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        manifest = json.loads(held["manifest.json"])
        held["manifest.json"] = json.dumps({**manifest, "published_at": "2020-01-01 00:00:00+00:00"}).encode()

    assert "'published_at' of manifest.json" in str(refused(rewritten(pack, change, sealed=True)))


@pytest.mark.slow
def test_a_forged_report_is_named_with_both_readings(pack: Path, capsys: Captured) -> None:
    """A word of the savings proof, whose paper next to it states the opposite; and a paper that is not its page's."""

    def change(held: dict[str, bytes]) -> None:
        assert held["reports/savings.html"].count(b"Nothing restated") == 1
        held["reports/savings.html"] = held["reports/savings.html"].replace(b"Nothing restated", b"Much restated")
        held["reports/commitments.pdf"] += b"% more"

    assert "3 differences" in str(refused(rewritten(pack, change, sealed=True)))
    output = capsys.readouterr().out
    assert "Much restated" in output and "Nothing restated" in output
    for member in ("reports/savings.html", "reports/savings.pdf", "reports/commitments.pdf"):
        assert member in output


@pytest.mark.slow
def test_an_added_drawing_and_a_digest_of_other_bills_are_each_named(pack: Path, capsys: Captured) -> None:
    """The third difference is the paper, which lacks the drawing."""
    inserted = b"<svg><text>Training runs cost $1.00</text></svg>"

    def change(held: dict[str, bytes]) -> None:
        held["reports/savings.html"] = held["reports/savings.html"].replace(b"</h1>", b"</h1>" + inserted, 1)
        inputs = json.loads(held["inputs.json"])
        inputs["deliveries"][0]["files"][0]["kept_sha256"] = "0" * 64
        held["inputs.json"] = json.dumps(inputs).encode()

    assert "differs from what its inputs give: 3 differences" in str(refused(rewritten(pack, change, sealed=True)))
    output = capsys.readouterr().out
    assert "cost $1.00" in output
    assert "kept_sha256" in output
    assert "reports/savings.pdf" in output


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, None) for key in ("publication", "code_revision", "has_bills", "not_recomputed")),
        *(("month", value) for value in ("2026-13", 5, "2031-01", ["2026-07"])),
        *(("not_recomputed", value) for value in (5, [5], ["mart_unknown"], ["mart_run_cost"])),
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


def test_no_mart_of_the_first_publication_is_exempt(pack: Path) -> None:
    """Publication 1 rests on no earlier one, so every mart and report can be compared."""

    def change(held: dict[str, bytes]) -> None:
        manifest = json.loads(held["manifest.json"])
        held["manifest.json"] = json.dumps({**manifest, "not_recomputed": restated_marts()}).encode()

    assert "'not_recomputed' of manifest.json" in str(refused(rewritten(pack, change, sealed=True)))


@pytest.mark.slow
def test_a_report_that_is_no_text_is_refused_by_its_name(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        held["reports/savings.html"] = b"\xff" + held["reports/savings.html"]

    error = refused(rewritten(pack, change, sealed=True))
    assert isinstance(error, CheckError)
    assert "rewritten.zip: reports/savings.html is not UTF-8 text (byte 0)" in str(error)


def test_a_forged_model_is_named_before_anything_is_built(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        held["models/core/dim_run.sql"] += b"-- more\n"

    error = refused(rewritten(pack, change, sealed=True))
    assert error.exit_code == 1
    assert "models/core/dim_run.sql is not what revision " in str(error)


def test_what_is_no_pack_is_refused_as_wrong_usage(pack: Path, tmp_path: Path) -> None:
    text, other, foreign = tmp_path / "a.zip", tmp_path / "b.zip", tmp_path / "c.zip"
    text.write_text("no zip")
    for path, manifest in ((other, None), (foreign, '{"format": "other", "members": {}}')):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json" if manifest else "x", manifest or "")
    for path in (text, other, foreign, tmp_path / "none.zip"):
        assert isinstance(refused(path), UsageError)


def test_a_folder_is_refused_as_no_pack_not_as_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not an evidence pack; expected the zip file"):
        Pack(tmp_path)


def test_a_pack_of_another_form_names_the_version_that_verifies_it(tmp_path: Path) -> None:
    about = {"format": "trainledger evidence pack", "form": 2, "members": {}, "code_revision": "9.1.0+01234567"}
    with zipfile.ZipFile(tmp_path / "newer.zip", "w") as archive:
        archive.writestr("manifest.json", json.dumps(about))
    error = refused(tmp_path / "newer.zip")
    assert error.exit_code == 2
    assert "form 2, made by revision '9.1.0+01234567'; verify it with that version." in str(error)


def test_a_small_pack_that_unpacks_to_more_than_any_is_refused_by_the_member(tmp_path: Path) -> None:
    """65 MiB of zeros in some 70 KB, under a manifest that fits; nothing of it is unpacked."""
    zeros = {"sha256": "0" * 64, "bytes": 65 << 20}
    about = {"format": "trainledger evidence pack", "form": 1, "members": {"inputs.json": zeros}}
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(about))
        archive.writestr("inputs.json", bytes(65 << 20))
    error = refused(bomb)
    assert error.exit_code == 1
    assert "inputs.json unpacks to more than 200 times its bytes, 1 file in all" in str(error)


def test_json_of_a_pack_that_is_too_deep_is_refused_by_its_name(pack: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        held["publication.json"] = b"[" * 100_000

    error = refused(rewritten(pack, change, sealed=True))
    assert error.exit_code == 1
    assert "publication.json is nested more than 100 levels deep; have the pack sent again." in str(error)


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
