"""What people state that no table could hold, refused by its key before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.warehouse.storage import fresh_file

PERIOD = (
    '[[terms.agreements]]\nname = "EDP"\nperiods = [{first_month = "%s", last_month = "%s", commitment_usd = "1"}]\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PERIOD % ("2026-01", "9999-12"), "last_month': write a month such as 2026-07."),
        (PERIOD % ("0000-01", "2026-12"), "first_month': write a month such as 2026-07."),
        (
            '[[decisions.budgets]]\nteam = "vis\\u0000ion"\namount_usd = "1"\n',
            "team': write text without control characters, at least one letter.",
        ),
        (
            '[[decisions.budgets]]\nteam = ""\namount_usd = "1"\n',
            "team': write text without control characters, at least one letter.",
        ),
    ],
)
def test_what_no_table_holds_is_refused_by_its_key(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text(text)
    with pytest.raises(UsageError) as refused:
        load_settings(config)
    assert str(refused.value).endswith(message)


def test_a_key_that_is_too_short_is_refused_with_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text('[privacy]\npseudonyms = ["users"]\n')
    monkeypatch.setenv("TRAINLEDGER_PRIVACY__KEY", "short")
    with pytest.raises(UsageError, match="it is too short; give it 32 characters or more") as refused:
        load_settings(config)
    assert "'short'" not in str(refused.value)


def test_what_is_no_ordinary_file_is_not_replaced(tmp_path: Path) -> None:
    """A pipe stands for a device: it stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is not an ordinary file"), fresh_file(pipe) as fresh:
        fresh.write_bytes(b"lost")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
