"""A thousand damaged inputs and more: each is read, left out by name, or refused in one sentence with its exit code."""

from __future__ import annotations

import hashlib
import json
import random
import re
import resource
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from support.bills import instance_hour, write_export
from support.campaign import Campaign
from support.commands import run_command
from support.inputs import Input, inputs
from support.mutations import mutated
from support.outcomes import is_one_sentence, outcome

from pipelines.base.console import printable, shortened
from pipelines.cli import _explained
from pipelines.config.settings import load_settings

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[2] / "docs"
PER_INPUT, CONFIGURATIONS, BUILDS = 32, 250, 8
BYTES = 4 << 30
BILL = '[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "payer"\nlocation = "export"\n\n'


@pytest.fixture
def bill(tmp_path: Path) -> Path:
    return write_export(tmp_path, {"2026-07": [instance_hour("2026-07-01T10", "i-1", "p5.48xlarge", "55.04")]})


def lay(root: Path, text: str, files: Mapping[str, bytes]) -> Path:
    """Put an input into its folder, with an empty warehouse; returns its configuration."""
    for name in ("in", "warehouse"):
        shutil.rmtree(root / name, ignore_errors=True)
    for name, data in files.items():
        path = root / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    config = root / "trainledger.toml"
    config.write_text(text)
    return config


def damaged(files: Mapping[str, bytes], chance: random.Random) -> dict[str, bytes]:
    """The files with one of them damaged, lost, or under another name."""
    found = dict(files)
    name = chance.choice(sorted(found))
    data = found.pop(name)
    if chance.random() < 0.05 and found:
        return found
    if chance.random() < 0.05:
        name = chance.choice(("x", " ", "a'b", "é", "%20")) + Path(name).name
    return {**found, name: mutated(name, data, chance)}


def test_every_kind_of_input_is_read_whole(tmp_path: Path, bill: Path) -> None:
    """Undamaged, no input is refused: what the others show is the damage."""
    for name, one in inputs().items():
        text = '[warehouse]\nlocation = "warehouse"\n' + one.entry if "[[billing]]" in one.entry else BILL + one.entry
        assert outcome(lay(tmp_path, text, one.files)) == (0, ""), name


@pytest.mark.parametrize("name", sorted(inputs()))
def test_a_damaged_input_is_read_or_refused(name: str, tmp_path: Path, bill: Path, campaign: Campaign) -> None:
    one = inputs()[name]
    text = '[warehouse]\nlocation = "warehouse"\n' + one.entry if "[[billing]]" in one.entry else BILL + one.entry
    for case in campaign.cases(PER_INPUT):
        config = lay(tmp_path, text, damaged(one.files, case.chance))
        with case:
            code, sentence = outcome(config)
            # Only a bill, and the configuration that units of an organization are part of, may stop all others.
            stops = (1, 2, 3) if "[[billing]]" in one.entry or name == "organization" else ()
            assert code == 0 or (code in stops and is_one_sentence(sentence)), sentence
            case.ended("read" if code == 0 else f"exit {code}")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < BYTES


def documented() -> list[str]:
    """Every part of a configuration, as the docs show it."""
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("configuration.md", "notifications.md")]
    return [text for page in pages for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]


def test_a_damaged_configuration_is_read_or_refused(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, baseline = tmp_path / "trainledger.toml", tmp_path / "baselines" / "llama8b-1.toml"
    baseline.parent.mkdir()
    monkeypatch.setenv("TRAINLEDGER_PRIVACY__KEY", "k" * 32)

    def write(frozen: bytes, damage: Callable[[bytes], bytes]) -> None:
        """The configuration of the docs, with the digest of the baseline."""
        baseline.write_bytes(frozen)
        text = re.sub(r'sha256 = "\w+"', f'sha256 = "{hashlib.sha256(frozen).hexdigest()}"', "\n".join(documented()))
        config.write_bytes(damage(text.encode()))

    (frozen,) = re.findall(r"```toml\n(name  .*?)```", (DOCS / "savings.md").read_text(encoding="utf-8"), re.DOTALL)
    units = [("1", "Research", "r-ab12"), ("2", "Models", "ou-ab12-11111111"), ("3", "Infra", "r-ab12")]
    answer = {
        "OrganizationalUnits": [
            {"Id": f"ou-ab12-{8 * n}", "Name": name, "ParentId": above} for n, name, above in units
        ],
        "Accounts": [],
    }
    (tmp_path / "organization").mkdir()
    (tmp_path / "organization/2026-07-01.json").write_text(json.dumps(answer))
    write(frozen.encode(), lambda text: text)
    load_settings(config)
    for case in campaign.cases(CONFIGURATIONS):
        if case.number % 5:
            write(frozen.encode(), partial(mutated, "a.toml", chance=case.chance))
        else:
            write(mutated("a.toml", frozen.encode(), case.chance), lambda text: text)
        with case:
            try:
                load_settings(config)
                case.ended("read")
            except Exception as error:
                sentence, code = _explained(error)
                assert code == 2 and is_one_sentence(printable(shortened(sentence))), sentence
                case.ended("exit 2")


def test_what_was_read_of_damaged_inputs_is_built_or_refused(
    tmp_path: Path, bill: Path, campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole build of everything that was read: the bill adds up, or the command ends as it promises."""
    bills = {name: one for name, one in inputs().items() if "[[billing]]" in one.entry}
    others = {name: one for name, one in inputs().items() if name not in bills}
    for number, case in enumerate(campaign.cases(BUILDS)):
        parts = [sorted(bills)[number % len(bills)], *sorted(others)]
        text, files = '[warehouse]\nlocation = "warehouse"\n', {}
        for part in parts:
            entry, read = readable(tmp_path / part, inputs()[part], case.chance)
            folder = part.replace(" ", "-")
            text += entry.replace('"mine"', f'"{folder}"').replace('"in"', f'"in/{folder}"') + "\n"
            files |= {f"{folder}/{name}": data for name, data in read.items()}
        config = lay(tmp_path, text, files)
        with case:
            built = run_command(capsys, "build", "--config", str(config))
            assert "Traceback" not in built.err and "Unexpected" not in built.err, built.err
            if built.code == 0:
                sql = (
                    "select sum(billed_cost_usd) = (select sum(billed_cost_usd) from mart_cost_ledger_daily) as ties "
                    "from mart_invoice_reconciliation_monthly"
                )
                result = run_command(capsys, "query", sql, "--json", "--config", str(config))
                assert json.loads(result.out)[0]["ties"] in (True, None), result.out
            else:
                assert built.code in (1, 2, 3) and is_one_sentence(built.error)
            case.ended("built" if built.code == 0 else f"exit {built.code}")


def readable(root: Path, one: Input, chance: random.Random) -> tuple[str, Mapping[str, bytes]]:
    """A damaged input that is read nevertheless."""
    root.mkdir(exist_ok=True)
    write_export(root, {"2026-07": [instance_hour("2026-07-01T10", "i-1", "p5.48xlarge", "55.04")]})
    text = '[warehouse]\nlocation = "warehouse"\n' + one.entry if "[[billing]]" in one.entry else BILL + one.entry
    for _ in range(20):
        files = damaged(one.files, chance)
        if files and outcome(lay(root, text, files))[0] == 0:
            return one.entry, files
    return one.entry, one.files
