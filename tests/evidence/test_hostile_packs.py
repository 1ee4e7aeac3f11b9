"""A pack whose author is hostile: `verify` writes nothing outside its own folder, and never prints VERIFIED."""

from __future__ import annotations

import json
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from support.packs import as_parquet, members, refused, rewritten

from pipelines.base.errors import CheckError
from pipelines.evidence.archive import Pack
from pipelines.evidence.inputs import read_again
from pipelines.ingest.billing.delivery import load

Members = dict[str, bytes]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the auditor, empty, next to the one in which `verify` works."""
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "work"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def refused_as_forged(pack: Path, change: Callable[[Members], None], home: Path) -> str:
    """The error of `verify` for the forged pack, after which its work folder and the home are empty."""
    error = refused(rewritten(pack, change, sealed=True))
    assert isinstance(error, CheckError)
    assert [path for path in home.parent.rglob("*") if path.parent != home.parent] == []
    return str(error)


def delivery(held: Members) -> str:
    return next(name for name in sorted(held) if name.startswith("bills/") and name.endswith("/delivery.json"))


@pytest.mark.parametrize(
    "place",
    [
        "/{home}/.bashrc",
        "payer//{home}/.bashrc",
        "../../../{home}/.bashrc",
        "payer/./../../.bashrc",
        "payer/.. /.bashrc",
        "..\\.bashrc",
        "C:/.bashrc",
        "payer/",
        "payer/\u202e.bashrc",
        "payer/\x1b[2J.bashrc",
        f"payer/{'deep/' * 300}.bashrc",
    ],
    ids=lambda place: ascii(place)[:40],
)
def test_a_bill_that_would_lie_elsewhere_is_refused(pack: Path, home: Path, place: str) -> None:
    def change(held: Members) -> None:
        held[f"bills/{place.format(home=home)}"] = b"evil"

    assert "is not a name of a member, " in refused_as_forged(pack, change, home)


def test_a_log_that_would_lie_elsewhere_is_refused(pack: Path, home: Path) -> None:
    def change(held: Members) -> None:
        inputs = json.loads(held["inputs.json"])
        file = inputs["runs"][0]["files"][0]
        held[f"runs/jobs/{home}/.bashrc"] = held.pop(f"runs/jobs/{file['key']}")
        file["key"] = f"{home}/.bashrc"
        held["inputs.json"] = json.dumps(inputs).encode()

    message = refused_as_forged(pack, change, home)
    assert "'runs/jobs//" in message and "is not a name of a member, 1 file in all" in message


@pytest.mark.parametrize("name", ["..", "/etc", "jobs/../../x", 5, None])
def test_a_source_of_runs_that_is_no_folder_is_refused(pack: Path, tmp_path: Path, name: object) -> None:
    opened = Pack(pack)
    inputs = json.loads(opened.read("inputs.json"))
    inputs["runs"][0]["name"] = name
    with pytest.raises(CheckError, match="is not a path inside"):
        read_again(opened, inputs, tmp_path / "logs", date(2026, 8, 1))
    opened.close()
    assert not (tmp_path / "logs").exists()


def forged_delivery(held: Members, **changes: object) -> None:
    name = delivery(held)
    record = json.loads(held[name])
    record["delivery"] |= changes
    held[name] = json.dumps(record).encode()


@pytest.mark.parametrize(
    "changes",
    [
        # What a view of the lines is called is a part of SQL.
        {"fingerprint": "a_1; copy (select 1) to 'x' --"},
        {"fingerprint": "0" * 64},
        {"billing_period": "../../.."},
        {"source": "/etc"},
        {"source": None},
    ],
    ids=str,
)
def test_a_delivery_that_is_not_the_one_of_its_folder_is_refused(
    pack: Path, home: Path, changes: dict[str, object]
) -> None:
    message = refused_as_forged(pack, lambda held: forged_delivery(held, **changes), home)
    assert message.endswith("delivery.json does not have the form of such a record; have the pack sent again.")


@pytest.mark.parametrize("name", ["/{outside}", "../../../../{outside}", "link.parquet"])
def test_lines_are_read_from_the_folder_of_their_delivery_alone(pack: Path, tmp_path: Path, name: str) -> None:
    """Of a pack and of the raw store: the record of a delivery names its files."""
    held = members(pack)
    record = delivery(held)
    folder = tmp_path / "raw" / Path(record).parent.relative_to("bills")
    folder.mkdir(parents=True)
    content = json.loads(held[record])
    (file,) = content["files"]
    lines = held[f"{Path(record).parent}/{file['name']}"]
    (folder / file["name"]).write_bytes(lines)
    (folder / "delivery.json").write_bytes(held[record])
    assert load(folder) is not None
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(lines)
    (folder / "link.parquet").symlink_to(outside)
    file["name"] = name.format(outside=str(outside).lstrip("/"))
    (folder / "delivery.json").write_text(json.dumps(content))
    assert load(folder) is None


UNNAMED = [
    "extra.txt",
    "MANIFEST.JSON",
    "README.txt.exe",
    "bills/payer/manifests.json",
    "bills/payer/2026-07/{fingerprint}/part-00002.parquet",
    "bills/other/2026-07/{fingerprint}/delivery.json",
    "bills/payer/2026-07/0000000000000000/delivery.json",
    "runs/jobs/more.jsonl",
    "runs/more/a.jsonl",
    "records/tracker_epoch/more.parquet",
    "records/tracker_more/a.parquet",
    "marts/mart_unknown.parquet",
    "marts/mart_run_cost.xlsx",
    "reports/secret.html",
    # The first publication has none before it.
    "before/core/fct_figure_cost/0123456789abcdef-0123456789abcdef.parquet",
    "before/core/fct_figure_cost/_delta_log/0.json",
    "publications/000001.json",
]


@pytest.mark.parametrize("name", UNNAMED)
def test_a_file_that_no_record_of_the_pack_names_is_refused(pack: Path, home: Path, name: str) -> None:
    """The manifest lists it with its digest, and a reader would take it for verified."""

    def change(held: Members) -> None:
        held[name.format(fingerprint=Path(delivery(held)).parent.name)] = b"evil"

    message = refused_as_forged(pack, change, home)
    assert "no record of the pack names " in message and message.endswith("; have the pack sent again.")


@pytest.mark.parametrize("name", ["marts/mart_run_cost.parquet", "records/tracker_epoch/"])
def test_a_table_that_is_no_parquet_is_refused_by_its_name(pack: Path, home: Path, name: str) -> None:
    def change(held: Members) -> None:
        held[next(one for one in held if one.startswith(name))] = b"PAR1 evil PAR1"

    assert "is not a complete Parquet file; have the pack sent again." in refused_as_forged(pack, change, home)


def test_a_small_table_of_a_hundred_million_values_is_refused(pack: Path, home: Path) -> None:
    """5 million rows of 20 columns take some kilobytes; 64 MiB may always be unpacked."""
    rows = pl.DataFrame({f"c{number}": [None] for number in range(20)}).select(pl.all().repeat_by(5_000_000).explode())

    def change(held: Members) -> None:
        held["marts/mart_run_cost.parquet"] = as_parquet(rows)

    assert "mart_run_cost.parquet unpacks to more than 200 times its bytes" in refused_as_forged(pack, change, home)


def test_bills_in_a_pack_that_states_to_have_none_are_refused(pack: Path, home: Path) -> None:
    def change(held: Members) -> None:
        manifest = json.loads(held["manifest.json"])
        held["manifest.json"] = json.dumps({**manifest, "has_bills": False}).encode()

    assert "no record of the pack names 'bills/" in refused_as_forged(pack, change, home)


@pytest.mark.parametrize("inputs", ["[]", "{}", '{"deliveries": [5], "runs": []}', "[" * 100_000], ids=range(4))
def test_inputs_of_another_form_are_refused(pack: Path, home: Path, inputs: str) -> None:
    def change(held: Members) -> None:
        held["inputs.json"] = inputs.encode()

    assert "inputs.json" in refused_as_forged(pack, change, home)


def with_entry(pack: Path, info: zipfile.ZipInfo, content: bytes, *, without: str) -> Path:
    """The pack with another entry in the place of a member."""
    held = members(pack)
    out = pack.with_name("entry.zip")
    with zipfile.ZipFile(out, "w") as archive:
        for name, kept in held.items():
            if name != without:
                archive.writestr(name, kept)
        archive.writestr(info, content)
    return out


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_a_member_that_is_no_ordinary_file_is_refused(pack: Path, kind: int) -> None:
    info = zipfile.ZipInfo("README.txt")
    info.external_attr = (kind | 0o777) << 16
    error = refused(with_entry(pack, info, members(pack)["README.txt"], without="README.txt"))
    assert "'README.txt' is not an ordinary file, 1 file in all" in str(error)


def test_a_member_of_two_names_is_refused(pack: Path) -> None:
    """Python reads a name up to its NUL, other programs may not."""
    out = with_entry(pack, zipfile.ZipInfo("README.txt|.exe"), members(pack)["README.txt"], without="README.txt")
    out.write_bytes(out.read_bytes().replace(b"README.txt|.exe", b"README.txt\0.exe"))
    assert members(out).keys() == members(pack).keys()
    assert "'README.txt' is not an ordinary file, 1 file in all" in str(refused(out))


def test_a_member_with_another_unicode_name_is_refused(pack: Path) -> None:
    """`unzip` writes the file under this name: nothing proves the lock, so any text could become a report."""
    info = zipfile.ZipInfo("requirements.lock")
    other = b"reports/training_cost.html"
    field = struct.pack("<BL", 1, zlib.crc32(b"requirements.lock")) + other
    # After the times of the file, as Info-ZIP writes them.
    info.extra = struct.pack("<HHBL", 0x5455, 5, 1, 0) + struct.pack("<HH", 0x7075, len(field)) + field
    held = members(pack)["requirements.lock"]
    error = refused(with_entry(pack, info, held, without="requirements.lock"))
    assert "'requirements.lock' is not an ordinary file, 1 file in all" in str(error)


def test_a_member_never_takes_the_place_of_another(pack: Path, tmp_path: Path) -> None:
    """Nor that of a link, or of a hard link, to a file outside."""
    opened = Pack(pack)
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    root = tmp_path / "root"
    root.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "same").hardlink_to(outside)
    assert opened.extract("README.txt", root, "a").read_bytes() == members(pack)["README.txt"]
    for place in ("a", "a/b", "same"):
        with pytest.raises(CheckError, match=r"'inputs\.json' has the path of another member; have"):
            opened.extract("inputs.json", root, place)
    with pytest.raises(CheckError, match="is a link; have the pack sent again"):
        opened.extract("inputs.json", root, "linked")
    opened.close()
    assert outside.read_bytes() == b"mine"
