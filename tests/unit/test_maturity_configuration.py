"""What `[decisions]` may contain about workloads and available capacity, and how anything else is refused."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings

OFFER = """
[[decisions.offers]]
instance_type = "trn1.32xlarge"
region_id = "us-west-2"
purchase_option = "capacity_block"
lead_days = 3
reported_on = 2026-07-25
price_per_hour_usd = "9.532"
block_hours = 24
"""
WORKLOAD = """
[[decisions.workloads]]
workload_id = "w"
architecture = "mainstream"
need_within_days = 10
"""

SERVING = """
[[decisions.serving]]
model = "chat"
instance_type = "inf2.xlarge"
tokens_per_second = 650
source = "a benchmark of 2026-07"
"""


def _config(tmp_path: Path, section: str) -> Path:
    config = tmp_path / "trainledger.toml"
    config.write_text(f'[warehouse]\nlocation = "w"\n[[billing]]\nname = "a"\nlocation = "b"\n{section}')
    return config


def test_what_is_left_out_is_unknown(tmp_path: Path) -> None:
    decisions = load_settings(_config(tmp_path, WORKLOAD + OFFER)).decisions
    (workload,), (offer,) = decisions.workloads, decisions.offers
    assert (workload.architecture, workload.custom_cuda, workload.neuron_supported) == ("mainstream", None, "unknown")
    assert (offer.lead_days, offer.reported_on) == (3, date(2026, 7, 25))
    # Facts training-runs 8: months since the architecture changed.
    assert (decisions.maturity.settling_months, decisions.maturity.stable_months) == (2, 6)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (WORKLOAD.replace("mainstream", "weird"), ("workloads", "architecture", "novel")),
        (WORKLOAD + "custom_kuda = 'heavy'\n", ("custom_kuda", "unknown key")),
        (WORKLOAD.replace("10", "-1"), ("need_within_days", "greater than or equal to 0")),
        (WORKLOAD * 2, ("[[decisions.workloads]] contain w twice",)),
        (OFFER * 2, ("[[decisions.offers]] contain capacity_block trn1.32xlarge in us-west-2 twice",)),
        (OFFER.replace("trn1.32xlarge", "trn9.big"), ("[[decisions.offers]] number 1", "instance_type", "trn9.big")),
        # A machine without an accelerator trains nothing.
        (OFFER.replace("trn1.32xlarge", "m5.xlarge"), ("instance_type", "m5.xlarge")),
        (OFFER.replace("lead_days = 3\n", ""), ("lead_days", "missing")),
        (OFFER.replace("capacity_block", "block"), ("purchase_option", "capacity_block")),
        (OFFER.replace("block_hours = 24\n", ""), ("block_hours belongs to every offer of a capacity_block",)),
        (OFFER.replace('"capacity_block"', '"spot"'), ("block_hours", "no other")),
        (OFFER.replace('"9.532"', '"0"'), ("price_per_hour_usd", "greater than 0")),
        (OFFER.replace("2026-07-25", '"soon"'), ("reported_on",)),
        (SERVING.replace("inf2.xlarge", "m5.xlarge"), ("[[decisions.serving]] number 1", "instance_type", "m5.xlarge")),
        (SERVING.replace('source = "a benchmark of 2026-07"\n', ""), ("write the source of its figures",)),
        (SERVING + "input_usd = 1\n", ("capacity has no price of tokens",)),
        (SERVING.replace('instance_type = "inf2.xlarge"\n', ""), ("tokens_per_second belongs to an instance_type",)),
        ('[[decisions.serving]]\nmodel = "chat"\n', ("write instance_type, usd_per_hour, input_usd",)),
        (OFFER.replace("reported_on", "told_on"), ("told_on' is now called 'reported_on'; rename it",)),
        ("[decisions.leans]\nstable_months = 3\n", ("'decisions.leans' is now called 'maturity'",)),
    ],
)
def test_a_mistake_is_refused_by_its_key(tmp_path: Path, section: str, words: tuple[str, ...]) -> None:
    config = _config(tmp_path, section)
    with pytest.raises(UsageError) as refused:
        load_settings(config)
    text = str(refused.value)
    assert str(config) in text and "\n" not in text
    assert [word for word in words if word not in text] == []
