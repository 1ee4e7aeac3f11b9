"""Files that unpack to more than any bill: refused by name while they are read, with memory and disk to spare."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cur_exports import (
    CUR2_LINE,
    LEGACY_LINE,
    csv_text,
    cur2_export,
    legacy_export,
    packed,
    parquet,
    source,
    stored,
    zipped,
)
from support.spoiled import Ledger

from pipelines.base.errors import SourceError
from pipelines.ingest.billing import exports

MIB = 1 << 20
HEADER, LINE = csv_text([LEGACY_LINE]).splitlines(keepends=True)
# A bill line whose account is 100 KB of one letter: gzip packs it some 1000 times.
LONG = LINE.replace(b"000033334444", b"a" * 100_000)


@cache
def member(content: bytes, mib: int) -> bytes:
    """A gzip member of so many MiB of the content, again and again."""
    return gzip.compress(content * (mib * MIB // len(content)), mtime=0)


def long_bill(mib: int) -> bytes:
    return packed(HEADER) + member(LONG, 16) * (mib // 16)


def refusal(root: Path, raw_root: Path) -> str:
    with pytest.raises(SourceError) as raised:
        stored(root, raw_root)
    # Nothing of a refused delivery stays.
    assert [path for path in raw_root.rglob("*") if path.is_file() and path.suffix != ".json"] == []
    return str(raised.value).replace(str(root), "ROOT")


# What it takes to store a delivery, in MiB, after the error that it ends with.
MEASURED = (
    "import resource, sys; from pathlib import Path; from pipelines.config.sources import BillingSource; "
    "from pipelines.ingest.billing import exports; given = BillingSource(name='payer', location=sys.argv[1]); "
    "raw = Path(sys.argv[2]); (found,) = exports.list_deliveries(given, raw)\n"
    "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    "try: exports.ingest(found, given, raw)\n"
    "except Exception as error: print(type(error).__name__, error)\n"
    "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
)


def test_a_gibibyte_in_a_megabyte_is_refused_in_little_memory(tmp_path: Path) -> None:
    """Refused by its name when 200 times its size are read; the process never holds half of what it hides."""
    content = long_bill(1024)
    assert len(content) < 2 * MIB
    root = legacy_export(tmp_path, {"a-1.csv.gz": content})
    place = [str(root), str(tmp_path / "raw")]
    done = subprocess.run([sys.executable, "-c", MEASURED, *place], capture_output=True, text=True, check=True)
    message, grown = done.stdout.splitlines()
    assert message == (
        f"SourceError {root}/20260701-20260801/asm-1/a-1.csv.gz unpacks to more than 200 times its {len(content):,} "
        "bytes; have it delivered again, or raise unpack_ratio of its [[billing]] entry if the bill is that "
        "large."
    )
    # A file's conversion takes some 400 MB, whatever its size.
    assert int(grown) < 512
    assert not list((tmp_path / "raw").rglob("*.parquet"))


def test_the_ratio_is_the_readers_to_choose(tmp_path: Path) -> None:
    """80 MiB that pack some 1000 times: refused at 200, read at 2000."""
    root = legacy_export(tmp_path, {"a-1.csv.gz": long_bill(80)})
    assert "unpacks to more than 200 times its" in refusal(root, tmp_path / "raw")
    given = source(root).model_copy(update={"unpack_ratio": 2000})
    (found,) = exports.list_deliveries(given, tmp_path / "raw")
    raw = exports.ingest(found, given, tmp_path / "raw")
    assert raw.line_count == 5 * (16 * MIB // len(LONG))


def test_a_small_bill_of_equal_lines_is_none(tmp_path: Path) -> None:
    """20 MiB of one line pack better than any real bill, and do no harm."""
    count = 20 * MIB // len(LINE)
    root = legacy_export(tmp_path, {"a-1.csv.gz": packed(HEADER + LINE * count)})
    (raw,) = stored(root, tmp_path / "raw")
    assert raw.line_count == count


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(lambda: member(b"\0", 128), "is not a CSV", id="zeros"),
        pytest.param(lambda: packed(HEADER) + member(b"\n", 128), "unpacks to more than", id="empty lines"),
        pytest.param(lambda: packed(HEADER + b'"') + member(b"a", 128), "is not a CSV", id="a quote without an end"),
        pytest.param(lambda: packed(HEADER) + member(b"a", 128), "is not a CSV", id="a line without an end"),
        pytest.param(lambda: packed(HEADER * 2) + b"and more", "is cut short or damaged", id="trailing garbage"),
        pytest.param(lambda: packed(packed(HEADER)), "holds another packed file", id="gzip in gzip"),
        pytest.param(lambda: packed(zipped({"a.csv": HEADER})), "holds another packed file", id="zip in gzip"),
        pytest.param(lambda: packed(parquet([CUR2_LINE])), "holds another packed file", id="parquet in gzip"),
    ],
)
def test_gzip_files_that_are_no_bill(tmp_path: Path, content, message: str) -> None:
    error = refusal(legacy_export(tmp_path, {"a-1.csv.gz": content()}), tmp_path / "raw")
    assert error.startswith("ROOT/20260701-20260801/asm-1/a-1.csv.gz") and message in error


def zip_of(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return target.getvalue()


def with_declared_size(content: bytes, size: int) -> bytes:
    """The ZIP with another unpacked size in its directory than its member has."""
    at = content.index(b"PK\x01\x02") + 24
    return content[:at] + size.to_bytes(4, "little") + content[at + 4 :]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(lambda: zip_of(("a.csv", HEADER + LONG * 1000)), "unpacks to more than 200 times", id="bomb"),
        pytest.param(
            lambda: with_declared_size(zip_of(("a.csv", HEADER + LONG * 1000)), len(HEADER)),
            "is cut short or damaged",
            id="bomb that calls itself small",
        ),
        pytest.param(lambda: zip_of(("../a.csv", HEADER)), "holds ../a.csv, a path that leads out of it", id="up"),
        pytest.param(lambda: zip_of(("b\\..\\a.csv", HEADER)), "a path that leads out of it", id="up by backslash"),
        pytest.param(lambda: zip_of(("/etc/a.csv", HEADER)), "holds /etc/a.csv, a path that", id="absolute"),
        pytest.param(lambda: zip_of(("a.zip", zipped({"a.csv": HEADER}))), "holds another packed file", id="nested"),
        pytest.param(lambda: zip_of(("a.csv", HEADER), ("b.csv", HEADER)), "holds 2 files (a.csv, b.csv)", id="two"),
        pytest.param(lambda: zip_of(("a.csv", HEADER), method=zipfile.ZIP_LZMA), "a way AWS does not use", id="lzma"),
    ],
)
def test_zip_files_that_are_no_bill(tmp_path: Path, content, message: str) -> None:
    error = refusal(legacy_export(tmp_path, {"a-1.zip": content()}), tmp_path / "raw")
    assert error.startswith("ROOT/20260701-20260801/asm-1/a-1.zip") and message in error


def repeated_often(count: int) -> bytes:
    """One line so many times: Parquet writes a value once, and how often."""
    often = pa.repeat(pa.scalar(0, pa.int32()), count)
    line = {name: pa.DictionaryArray.from_arrays(often, pa.array([value])) for name, value in CUR2_LINE.items()}
    target = pa.BufferOutputStream()
    pq.write_table(pa.table(line), target)
    return target.getvalue().to_pybytes()


def pages_of_one_letter(mib: int) -> bytes:
    """Texts of a MiB, each its own, that zstd packs some thousand times."""
    lines = [{**CUR2_LINE, "line_item_resource_id": "a" * MIB + str(number)} for number in range(mib)]
    target = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(lines), target, compression="zstd")
    return target.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "content",
    [
        # Twelve columns of ten million values: 120 MB at a byte a value, in a few KB.
        pytest.param(lambda: repeated_often(10_000_000), id="a line repeated ten million times"),
        pytest.param(lambda: pages_of_one_letter(100), id="pages of one letter"),
    ],
)
def test_parquet_files_that_are_no_bill(tmp_path: Path, content) -> None:
    error = refusal(cur2_export(tmp_path, {"a-1.snappy.parquet": content()}), tmp_path / "raw")
    where = "ROOT/data/BILLING_PERIOD=2026-07/20260801T000000Z-exec-1/a-1.snappy.parquet"
    assert error.startswith(f"{where} unpacks to more than ")


def test_a_bomb_leaves_the_last_publication_as_it_was(ledger: Ledger) -> None:
    ledger.respoil(long_bill(80))
    assert "export-00001.csv.gz unpacks to more than 200 times" in ledger.refused(3)


def test_a_ratio_below_one_is_no_ratio(ledger: Ledger) -> None:
    ledger.configure('name = "payer"', 'name = "payer"\nunpack_ratio = 0.5')
    assert "[[billing]] payer: key 'unpack_ratio': write a number greater than or equal to 1" in ledger.refused(2)


@pytest.mark.slow
def test_a_file_four_times_as_large_takes_no_more_memory(tmp_path: Path) -> None:
    """Parquet of 0.5 and 2 million lines, in row groups as AWS writes them."""
    # The other measure begins with what this process takes.
    own = "int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    program, grown = MEASURED.replace("resource.getrusage(resource.RUSAGE_SELF).ru_maxrss", own), []
    for millions in (0.5, 2):
        rows = [CUR2_LINE | {"identity_line_item_id": f"line-{number}"} for number in range(50_000)]
        table = pq.read_table(io.BytesIO(parquet(rows)))
        place = tmp_path / str(millions)
        root = cur2_export(place, {"large.parquet": b""})
        (file,) = root.rglob("large.parquet")
        ids = table.schema.get_field_index("identity_line_item_id")
        with pq.ParquetWriter(file, table.schema) as writer:
            for group in range(round(millions * 20)):
                lines = pa.array([f"line-{group}-{number}" for number in range(table.num_rows)])
                writer.write_table(table.set_column(ids, table.schema.field(ids), lines))
        # A busy machine takes more at times, never less.
        words = [[sys.executable, "-c", program, str(root), str(place / raw)] for raw in ("raw", "again")]
        done = [subprocess.run(each, capture_output=True, text=True, check=True) for each in words]
        grown.append(min(int(each.stdout) for each in done))
    assert 0 < grown[1] < grown[0] * 1.25, grown
