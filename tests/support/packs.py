"""Evidence packs of a small company, and how a test changes or refuses one."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipelines.base.console import Console
from pipelines.base.errors import TrainledgerError
from pipelines.config.settings import load_settings
from pipelines.evidence.pack import write_pack
from pipelines.evidence.verify import verify
from support.small_company import Company

RUNS = "marts/mart_run_cost.parquet"


def pack_of(company: Company, name: str, *, as_of: str | None = None, bundle: bool = False) -> Path:
    out = company.root / name
    write_pack(load_settings(company.config), out, Console(), as_of=as_of, bundle=bundle)
    return out


def members(pack: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(pack) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(pack: Path, change: Callable[[dict[str, bytes]], None], *, sealed: bool) -> Path:
    """The pack with members changed; `sealed` also has the manifest state that they were packed this way."""
    held = members(pack)
    change(held)
    if sealed:
        manifest = json.loads(held["manifest.json"])
        manifest["members"] = {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in held.items()
            if name != "manifest.json"
        }
        held["manifest.json"] = json.dumps(manifest).encode()
    out = pack.with_name("rewritten.zip")
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return out


def as_parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def refused(pack: Path) -> TrainledgerError:
    with pytest.raises(TrainledgerError) as caught:
        verify(pack, None, Console())
    return caught.value
