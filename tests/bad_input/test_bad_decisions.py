"""Decisions in the configuration that contradict themselves, are edited after the fact, or name no one."""

from __future__ import annotations

import hashlib
import json
import time
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour
from support.spoiled import HOURS, MONTH, Ledger, run_events

from pipelines.base.errors import UsageError
from pipelines.config.decisions import Budget, overlapping
from pipelines.config.settings import load_settings

BASELINE = """name = "llama8b"
version = 1
frozen_on = 2026-06-30
workload_id = "llama-8b"
gpu_instance_type = "p5.48xlarge"
unit_measure = "cost_per_epoch"
hours_per_unit = 2.0
hours_low_per_unit = 1.8
hours_high_per_unit = 2.3
"""
ADJUSTMENT = '[[decisions.adjustments]]\nbaseline = "llama8b"\nmonth = "2026-07"\namount_usd = "-1"\nreason = "r"\n'
BUDGET = '[[decisions.budgets]]\nteam = "nlp"\namount_usd = "100"\n'


def seal(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def entry(file: str, sha256: str) -> str:
    return f'[[decisions.baselines]]\nfile = "{file}"\nsha256 = "{sha256}"\n'


def refused(root: Path, decisions: str, **files: str) -> str:
    for name, text in files.items():
        (root / f"{name}.toml").write_text(text)
    (root / "trainledger.toml").write_text(decisions)
    with pytest.raises(UsageError) as refusal:
        load_settings(root / "trainledger.toml")
    return str(refusal.value)


def test_a_baseline_edited_after_the_fact(tmp_path: Path) -> None:
    """Frozen at 2.0 hours, 3.0 now: half as much again would be saved."""
    edited = BASELINE.replace("hours_per_unit = 2.0", "hours_per_unit = 2.2")
    error = refused(tmp_path, entry("one.toml", seal(BASELINE)), one=edited)
    assert error == (
        f"{tmp_path}/one.toml is not the baseline that was frozen: its SHA-256 is {seal(edited)}, not "
        f"{seal(BASELINE)}; restore it, or freeze a new version in a file of its own."
    )


def test_a_baseline_that_is_gone(tmp_path: Path) -> None:
    error = refused(tmp_path, entry("one.toml", seal(BASELINE)))
    assert error == f"{tmp_path}/one.toml cannot be read: No such file or directory; put the frozen baseline back."


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "hours_low_per_unit = 1.8",
            "hours_low_per_unit = 2.1",
            "hours_per_unit must lie between hours_low_per_unit and ",
        ),
        ("hours_per_unit = 2.0", "hours_per_unit = 0", "key 'hours_per_unit': write a number greater than 0."),
        ("version = 1", "version = 1\nhours = 2", "unknown key 'hours'; remove it or check its spelling."),
        ('name = "llama8b"', "name = ", "is not valid TOML"),
        ("version = 1", f"version{'.a' * 5_000} = 1", "is nested more than 100 levels deep."),
        (
            "cost_per_epoch",
            "cost_per_step",
            "key 'unit_measure': write 'cost_to_target', 'cost_per_epoch' or ",
        ),
    ],
)
def test_a_baseline_that_holds_too_little(tmp_path: Path, old: str, new: str, error: str) -> None:
    text = BASELINE.replace(old, new)
    message = refused(tmp_path, entry("one.toml", seal(text)), one=text)
    assert message.startswith(f"{tmp_path}/one.toml") and error in message


def test_two_baselines_of_one_workload_and_day(tmp_path: Path) -> None:
    other = BASELINE.replace("version = 1", "version = 2")
    error = refused(
        tmp_path, entry("one.toml", seal(BASELINE)) + entry("two.toml", seal(other)), one=BASELINE, two=other
    )
    assert error == (
        f"{tmp_path}/trainledger.toml: [[decisions.baselines]] contain llama-8b frozen on 2026-06-30 twice; remove one."
    )


@pytest.mark.parametrize(
    ("decisions", "error"),
    [
        (ADJUSTMENT + "decided_on = 2026-08-01\n", "there is no baseline llama8b; name one of those you freeze first."),
        (ADJUSTMENT, "[[decisions.adjustments]] number 1: key 'decided_on': it is missing; add it."),
        (
            ADJUSTMENT.replace("2026-07", "July"),
            "number 1: key 'month': write a month such as 2026-07.",
        ),
        (
            ADJUSTMENT.replace('"-1"', '"NaN"'),
            "[[decisions.adjustments]] number 1: key 'amount_usd': write a finite number.",
        ),
        (
            BUDGET.replace("100", "0"),
            "[[decisions.budgets]] number 1: key 'amount_usd': write a number greater",
        ),
        (BUDGET + "thresholds = [1.0, 0.8]\n", "thresholds must rise, each once, such as [0.5, 0.8, 1.0]."),
        (BUDGET + "thresholds = []\n", "[[decisions.budgets]] number 1: key 'thresholds': write at least one value"),
        (
            BUDGET + 'currency = "dollars"\n',
            "number 1: key 'currency': write a currency as the bill does, such",
        ),
        (
            BUDGET + 'first_month = "2026-08"\nlast_month = "2026-07"\n',
            "first_month 2026-08 is after last_month 2026-07",
        ),
        (
            BUDGET + 'limit = "1"\n',
            "[[decisions.budgets]] number 1: unknown key 'limit'; write 'first_month', 'last_month', 'team', ",
        ),
        (BUDGET + BUDGET.replace("nlp", " NLP "), "[[decisions.budgets]] give nlp two budgets in USD for one month"),
        (
            BUDGET + 'last_month = "2026-07"\n' + BUDGET + 'first_month = "2026-07"\n',
            "[[decisions.budgets]] give nlp two budgets in USD for one month; end the first with last_month, or ",
        ),
        (entry("one.toml", "abc"), "write the 64 hex digits that `sha256sum` prints for the file."),
    ],
)
def test_decisions_that_are_none(tmp_path: Path, decisions: str, error: str) -> None:
    message = refused(tmp_path, decisions)
    assert message.startswith(f"{tmp_path}/trainledger.toml") and error in message


def test_a_budget_of_a_misspelt_team(ledger: Ledger) -> None:
    """It looks like an untouched one. Runs name research and mt, the bill platform; vision is new, or yet
    to spend, and ml may be too: two such short names are no misspelling of each other."""
    misspelt = {
        "platforms": "platform",  # a letter too many
        "reseacrh": "research",  # two letters changed places
        "reserch": "research",  # a letter is missing
    }
    ledger.record(*({**run_events(team)[0], "team": team} for team in ("research", "mt")))
    tagged = instance_hour(f"{MONTH}-02T00", "i-2", "p5.48xlarge", "55.04", resource_tags='{"user_team": "platform"}')
    ledger.restate(*HOURS, tagged)
    teams = ("research", "platform", "vision", "ml", *misspelt)
    budgets = "".join(BUDGET.replace("nlp", team) for team in teams)
    ledger.config.write_text(f"{ledger.config.read_text()}\n{budgets}")
    result = ledger.builds("detail_budget_monthly").run("build")
    assert result.code == 0, result.err
    words = "budget of a team that no run and no bill names so: 3 rows of detail_budget_monthly"
    assert (
        f"Warning: {words}, for example team platforms, key [[decisions.budgets]] team, nearest team platform. "
        "Correct the team under [[decisions.budgets]]. Owner: " in result.err
    )
    record = json.loads((ledger.root / "warehouse/publications/000002.json").read_text())
    (warning,) = (check for check in record["checks"] if check["title"] == words.partition(":")[0])
    assert {row["team"]: row["nearest_team"] for row in warning["sample"]} == misspelt


def test_a_budget_in_a_currency_that_no_bill_is_in(ledger: Ledger) -> None:
    """20 hours of vision in euros: against a budget without `currency`, in USD, what it spent is unknown, not 0. Of a
    budget in euros all 1,100.80 are spent, and a team without a line spent none."""
    tags = {"resource_tags": '{"user_team": "vision"}', "line_item_currency_code": "EUR"}
    hours = [f"{MONTH}-02T{hour:02d}" for hour in range(20)]
    ledger.restate(*(instance_hour(hour, "i-2", "p5.48xlarge", "55.04", **tags) for hour in hours))
    euros = 'currency = "EUR"\n'
    budgets = [BUDGET.replace("nlp", "vision"), BUDGET.replace("nlp", "vision") + euros, BUDGET + euros]
    ledger.config.write_text(f"{ledger.config.read_text()}\n{''.join(budgets)}")
    result = ledger.builds("detail_budget_monthly").run("build")
    assert result.code == 0, result.err
    assert (
        "Warning: budget in a currency that no bill is in: 1 row of detail_budget_monthly, for example team vision, "
        in result.err
    )
    assert "billing currency USD" in result.err and "bill currency EUR" in result.err
    spent = "select team, billing_currency, spent_cost_usd, remaining_cost_usd from detail_budget_monthly order by 1, 2"
    assert ledger.run("query", spent, "--csv").out.splitlines()[1:] == [
        "nlp,EUR,0.0000000000,100.0000000000",
        "vision,EUR,1100.8000000000,-1000.8000000000",
        "vision,USD,,",
    ]


def test_many_budgets_are_checked_in_one_pass() -> None:
    """Every command reads them: 4,000 teams took 5 processor seconds when each was compared with each of the others."""
    budgets = [Budget(team=f"team-{number}", amount_usd=Decimal(100)) for number in range(4000)]
    started = time.process_time()
    assert overlapping(budgets) is None
    assert time.process_time() - started < 1
    assert overlapping([*budgets, budgets[7]]) == "team-7 two budgets in USD"
