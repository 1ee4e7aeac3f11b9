"""What operations report: a full disk as one, long names cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from errno import ENOSPC
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic_core import SchemaError
from support.commands import run_command
from support.small_company import AUGUST, Company
from support.spoiled import CommandResult

from pipelines.base.console import shortened
from pipelines.base.errors import SourceError, UsageError, is_full, shown_bytes
from pipelines.cli import _explained
from pipelines.config.settings import load_settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.warehouse import Warehouse, work_folder


def test_a_full_disk_is_found_behind_every_library() -> None:
    """Messages of DuckDB 1.5 and deltalake 1.6 on a full disk."""
    assert is_full(OSError(ENOSPC, "No space left on device"))
    assert is_full(ValueError('IO Error: Could not write file "/w/a": No space left on device'))
    assert is_full(ValueError("Generic LocalFileSystem error: No space left on device (os error 28)"))
    assert is_full(ValueError("failed to offload data block; set by the 'max_temp_directory_size' setting"))
    try:
        try:
            raise OSError(ENOSPC, "No space left on device")
        except OSError:
            raise SourceError("/w/a cannot be written.") from None
    except SourceError as error:
        assert is_full(error)
    assert not is_full(SourceError("/w/a: Permission denied."))
    assert [shown_bytes(count) for count in (4096, 34_000_000, 1_234_000_000_000)] == ["4.1 kB", "34 MB", "1,234 GB"]


def test_a_disk_without_room_for_names_of_files_is_named_as_that(
    built_company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(load_settings(built_company.config))
    room = {"f_frsize": 4096, "f_blocks": 1000, "f_bfree": 900, "f_bavail": 900, "f_files": 1000}
    monkeypatch.setattr(
        "os.statvfs", lambda place: SimpleNamespace(**room, f_favail=0 if place == warehouse.work else 1000)
    )
    with pytest.raises(UsageError, match=r"\(0 more files fit on it\)"), warehouse.disk_errors():
        raise OSError(ENOSPC, "No space left on device")


def test_a_full_disk_names_the_folder_and_what_the_bill_takes(built_company: Company) -> None:
    warehouse = Warehouse(load_settings(built_company.config))
    full = r": the disk is full \(.* free\); the warehouse of this bill takes about 34 MB; "
    with pytest.raises(UsageError, match=full), warehouse.disk_errors():
        raise OSError(ENOSPC, "No space left on device")
    with pytest.raises(SourceError, match="as it is"), warehouse.disk_errors():
        raise SourceError("as it is")


def test_a_prune_on_a_full_disk_names_the_folder(
    built_company: Company, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> str:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("pipelines.warehouse.lock._holder", full)
    failed = run_command(capsys, "prune", "--config", str(built_company.config))
    assert failed.code == 2 and ": the disk is full (" in failed.error


def test_a_warehouse_on_s3_without_a_home_names_the_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As of a container whose user is in no list."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert work_folder("s3://acme/w", None).parent == tmp_path / "trainledger"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pipelines.models.warehouse.cache_folder", lambda: None)
    with pytest.raises(UsageError, match=r"s3://acme/w needs a cache .*; set HOME or XDG_CACHE_HOME"):
        work_folder("s3://acme/w", None)


def test_a_signal_within_a_library_is_no_failed_check() -> None:
    """The documented exit code of Ctrl-C and SIGTERM is 130; 1 is a failed check."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(RuntimeError) as stopped:
            DuckDBEngine().rows("select sum(range) from range(1000000000000)")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert _explained(stopped.value) == ("Stopped; the next build continues from here.", 130)
    # As pydantic 2 raises it.
    schema = SchemaError('Error building "model" validator:\n  SchemaError: Field "security":\n  KeyboardInterrupt: ')
    assert _explained(schema) == ("Stopped; the next build continues from here.", 130)


@pytest.mark.parametrize("words", ["--help", "--version", "query --help"])
def test_a_reader_that_stops_is_no_failed_check(words: str) -> None:
    """141 is what a shell reports of a command that ends by a closed pipe; 1 is a failed check."""
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [sys.executable, "-m", "pipelines", *words.split()], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, b"")


@pytest.mark.slow
def test_a_publication_needs_no_room_for_its_copy(
    built_company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables of the small company take 3 MB, its copy 8 MB."""
    company = built_company.copy(tmp_path)
    place = tmp_path / "small"
    place.mkdir()
    config = tmp_path / "small.toml"
    config.write_text(company.config.read_text().replace('location = "warehouse"', f'location = "{place}"'))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=9m", "tmpfs", place], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small file system")
    try:
        built: CommandResult = run_command(capsys, "build", "--config", str(config))
        assert built.code == 0 and built.out.startswith("Published 1: ")
        assert f"{place}/marts.duckdb, the copy for BI tools, is not of publication 1 (the disk is full)" in built.err
        assert not [*place.glob("staging/marts.duckdb*")]
        with pytest.raises(OSError, match="No space"):
            (place / "rest").write_bytes(bytes(9 << 20))
        company.deliver(AUGUST, "20.00")
        failed = run_command(capsys, "build", "--config", str(config))
        assert failed.code == 2 and failed.error.startswith(f"{place}: the disk is full ("), failed.error
    finally:
        subprocess.run(["umount", place], check=True)


def test_long_names_are_cut_and_the_fix_stays() -> None:
    assert shortened("a.toml: key 'x': write text.") == "a.toml: key 'x': write text."
    cut = shortened(f"Run {'n' * 5_000} is set aside; rename it.")
    assert len(cut) < 300 and cut.startswith("Run nnn") and cut.endswith("is set aside; rename it.")
    cut = shortened(f"Team {'so long ' * 2_000} is unknown; rename it.")
    assert len(cut) < 2_000 and cut.endswith("is unknown; rename it.")
