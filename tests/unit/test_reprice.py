"""`trainledger reprice` and its arithmetic: what it refuses, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands import run_command

from pipelines.analysis.repricing import price_of_what, repriced_saving
from pipelines.prices.book import Price
from pipelines.prices.reprice import Repriced, Side

CLAIM = {
    "--claim": "46.3%",
    "--gpu": "p4d.24xlarge",
    "--trainium": "trn1.32xlarge",
    "--then": "2024-11-20",
    "--at": "2026-08-01",
}
Captured = pytest.CaptureFixture[str]
prices = st.decimals("0.01", "500", places=4)
savings = st.decimals("-5", "0.99", places=4)


@given(savings, prices, prices, prices, prices)
def test_pricing_there_and_back_is_no_change(saving: Decimal, a: Decimal, b: Decimal, c: Decimal, d: Decimal) -> None:
    there = repriced_saving(saving, a, b, c, d)
    assert abs(repriced_saving(there, b, a, d, c) - saving) < Decimal("1e-15")


@given(savings, prices, prices, prices)
def test_at_its_break_even_price_a_baseline_costs_as_much(
    saving: Decimal, gpu: Decimal, trn: Decimal, more: Decimal
) -> None:
    """The saving is of 1 - 1 = 0 there, and above it where the GPU costs more."""
    price = Price("p4d.24xlarge", "on_demand", gpu, None, "book", "a list")
    even = Repriced("a pair", date(2026, 8, 1), "us-east-1", (Side(price), Side(price)), saving, "", saving)
    assert abs(repriced_saving(saving, gpu, even.break_even_baseline_usd, trn, trn)) < Decimal("1e-20")
    assert repriced_saving(saving, gpu, even.break_even_baseline_usd + more, trn, trn) > 0


@pytest.mark.parametrize(
    ("given_usd", "of"),
    [
        ("21.50", "instance"),
        ("21.4", "instance"),
        # 21.50 / 16 chips, / 32 cores, x 16.
        ("1.34375", "accelerator"),
        ("0.671875", "core"),
        ("344", "instance times accelerators"),
        # A price of its own: far from any of these.
        ("15.49", "instance"),
    ],
)
def test_a_price_is_named_by_what_it_is_of(given_usd: str, of: str) -> None:
    assert price_of_what(Decimal(given_usd), Decimal("21.50"), 16, 2) == of


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"--claim": "46.3"}, "--claim 46.3 is not a ratio; write 46.3% if it is a percentage."),
        ({"--claim": "half"}, "--claim half is not a saving; expected 46.3% or 0.463."),
        ({"--claim": "100%"}, "--claim 100% would make Trainium free; a saving is below 100%."),
        ({"--gpu": None}, "--gpu is required: the instance type of the claim."),
        ({"--then": None}, "--then is required: the price date of the claim; or give --gpu-price."),
        ({"--at": "August"}, "--at August is not a date; expected YYYY-MM-DD, such as 2026-08-01."),
        ({"--offer": "spot"}, "--offer spot is not an offer; choose one of on_demand, capacity_block, reserved."),
        (
            {"--gpu": "H100"},
            "H100 is an accelerator, not an instance type; name one of p5.48xlarge, p5.4xlarge.",
        ),
        (
            {"--trainium": "NeuronCore-v2"},
            "NeuronCore-v2 is part of an accelerator, not an instance type; name one such as trn1.32xlarge.",
        ),
        ({"--gpu": "p4d"}, "The price book does not have p4d; it has p4d.24xlarge."),
        (
            {"--gpu": "ml.p4d.24xlarge"},
            "ml.p4d.24xlarge is SageMaker's, whose prices the book does not have; name the type of EC2, p4d.24xlarge.",
        ),
        (
            {"--gpu": "trn1.32xlarge", "--trainium": "p4d.24xlarge"},
            "--gpu trn1.32xlarge belongs to family trainium; swap the two or choose another type.",
        ),
        (
            {"--then": "2022-01-01"},
            "The price book has no on_demand price of p4d.24xlarge in us-east-1 before 2022-10-01; choose that day "
            "or a later one.",
        ),
        (
            {"--gpu": "p5e.48xlarge"},
            "The price book has no on_demand price of p5e.48xlarge in us-east-1; it has capacity_block.",
        ),
        (
            {"--gpu": "p5.48xlarge", "--region": "mars"},
            "The price book has no on_demand price of p5.48xlarge in mars; other regions are "
            "ap, ap-northeast-1, ap-northeast-2, ap-south-1, ap-southeast-2, ap-southeast-3, ca-central-1, eu, "
            "eu-north-1, eu-west-2, sa, us, us-east-1, us-east-2, us-west-1, us-west-2.",
        ),
        (
            {"--gpu": "g6.xlarge", "--region": "eu-west-1"},
            "The price book has no on_demand price of g6.xlarge in eu-west-1; other regions are us-east-1, us-west-2.",
        ),
        (
            {"--gpu-price": "4.0966"},
            "--gpu-price 4.0966 is the price of one accelerator of p4d.24xlarge (the book: 32.7726 an hour of the "
            "whole instance, 8 × A100); enter the price of the whole instance.",
        ),
        (
            {"--trainium-price": "0.67"},
            "--trainium-price 0.67 is the price of one core of trn1.32xlarge (the book: 21.5 an hour of the whole "
            "instance, 16 × Trainium); enter the price of the whole instance.",
        ),
        (
            {"--gpu-price": "free"},
            "--gpu-price free is not a price; expected USD per hour of the whole instance, such as 21.50.",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_priced_is_one_sentence(changed: dict[str, str | None], error: str, capsys: Captured) -> None:
    words = [word for pair in (CLAIM | changed).items() if pair[1] is not None for word in pair]
    result = run_command(capsys, "reprice", *words)
    assert (result.code, result.error) == (2, error)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--at", "2026-08-01"], "Give either a workload or --claim, such as 46.3%."),
        (["llama"], "--at is required: the price date, such as 2026-08-01."),
        (
            ["llama", "--at", "2026-08-01", "--gpu", "p5.48xlarge"],
            "--gpu requires --claim; the types and prices of llama come from its bill.",
        ),
    ],
)
def test_wrong_arguments(words: list[str], error: str, capsys: Captured) -> None:
    result = run_command(capsys, "reprice", *words)
    assert (result.code, result.error) == (2, error)


def test_a_workload_of_one_side_or_of_none(published_story: Callable[[str], Path], capsys: Captured) -> None:
    """`alone` of 8192 tokens has one run, on a GPU: there is nothing to compare it with."""
    config = published_story("wins_ties_and_losses") / "trainledger.toml"
    own = ("--at", "2026-08-01", "--config", str(config))
    result = run_command(capsys, "reprice", "alone / corp-v3 / seq 8192", *own)
    assert result.code == 1
    assert "is not compared: it has 1 completed run on GPU and 0 on Trainium" in result.error
    result = run_command(capsys, "reprice", "bert", *own)
    assert (result.code, result.error) == (
        2,
        "Workload 'bert' not found; `trainledger compare` lists the compared workloads.",
    )
