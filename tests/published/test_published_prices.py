"""Published prices and break-evens: what follows from inputs (S5), what does not (S6, facts serving V5, V7, V8)."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from support.commands import run_command

from pipelines.analysis.published_price import PublishedPrice, reconcile


def rows(*prices: tuple[str, str, str, str]) -> list[PublishedPrice]:
    return [PublishedPrice(name, Decimal(speed), Decimal(rate), Decimal(usd)) for name, speed, rate, usd in prices]


# S5, Neuron's Inf2 page of September 2024: inferences a second on inf2.xlarge at its RI-effective rate.
INF2 = rows(
    ("albert-base-v2", "2999.88", "0.328", "0.030"),
    ("bert-base-cased", "2697.72", "0.328", "0.034"),
    ("bert-large-cased", "906.91", "0.328", "0.100"),
    ("distilbert-base-cased", "4756.25", "0.328", "0.019"),
)
# S6, a serving table of 2026, whose figures its page itself calls projections.
SERVING = rows(
    ("p5", "4200", "98.32", "0.85"),
    ("p4d", "1800", "21.96", "0.72"),
    ("g6e.48xlarge", "1400", "54.91", "0.52"),
    ("trn2", "3500", "45.00", "0.35"),
    ("inf2.48xlarge", "2800", "12.89", "0.28"),
)


def test_inferentia_prices_follow_from_their_inputs() -> None:
    assert reconcile(INF2) == []


def test_a_serving_table_is_flagged_not_reproduced() -> None:
    sentences = reconcile(SERVING)
    # As the facts recompute them, to a cent.
    for name, recomputed in (
        ("p5", 6.50),
        ("p4d", 3.39),
        ("g6e.48xlarge", 10.90),
        ("trn2", 3.57),
        ("inf2.48xlarge", 1.28),
    ):
        (sentence,) = (line for line in sentences if line.startswith(f"{name}: the inputs do not give the output: "))
        (found,) = re.findall(r"are \$([0-9.]+) per million", sentence)
        assert float(found) == pytest.approx(recomputed, abs=0.0101)
    factors = [float(found) for line in sentences for found in re.findall(r"\(([0-9.]+) times less\)", line)]
    # Off by 4.6 to 21 times.
    assert len(factors) == 5 and min(factors) == 4.6 and round(max(factors)) == 21
    assert (
        sentences[-1] == "The ranking differs too: by the inputs it is inf2.48xlarge < p4d < trn2 < p5 < g6e.48xlarge."
    )


def write_table(path: Path, rows: list[PublishedPrice]) -> str:
    head = "name,units_per_second,price_per_hour_usd,printed_usd_per_million"
    lines = [f"{row.name},{row.per_second},{row.rate_usd_per_hour},{row.printed_usd}" for row in rows]
    path.write_text("\n".join([head, *lines]) + "\n")
    return str(path)


def test_the_command_distinguishes_the_two_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S5 follows, exit 0; S6 is refused with a sentence a row, exit 1, and no price of it is printed as ours."""
    result = run_command(capsys, "reprice", "--table", write_table(tmp_path / "inf2.csv", INF2))
    assert (result.code, result.out) == (0, "inf2.csv: each price follows from its inputs (4 prices).\n")
    result = run_command(capsys, "reprice", "--table", write_table(tmp_path / "serving.csv", SERVING))
    assert (result.code, result.out) == (1, "")
    assert result.error.count("the inputs do not give the output") == 5
    assert result.error.endswith(
        "The ranking differs too: by the inputs it is inf2.48xlarge < p4d < trn2 < p5 < g6e.48xlarge."
    )


def test_a_price_per_total_token_is_normalized_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Facts serving V1 (KILN): ml.p5en.48xlarge at 72.795, 8192 tokens in, 256 out, so 33 in all for each one out."""
    head = "name,units_per_second,price_per_hour_usd,printed_usd_per_million,convention,input_tokens,output_tokens\n"
    lines = "16,311,72.795,65.02,output,,\n128,2359,72.795,8.57,,,\n", "128 total,2359,72.795,0.26,total,8192,256\n"
    (tmp_path / "v1.csv").write_text(head + "".join(lines))
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v1.csv"))
    assert (result.code, result.out) == (0, "v1.csv: each price follows from its inputs (3 prices).\n")
    (tmp_path / "v1.csv").write_text(head + lines[1].replace("total,8192", "output,8192"))
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v1.csv"))
    assert (result.code, "are $8.57 per million, printed $0.26 (33.0 times less)" in result.error) == (1, True)
    (tmp_path / "v1.csv").write_text(head + lines[1].replace(",256", ","))
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v1.csv"))
    assert (result.code, "line 2: output_tokens is empty and is not a positive number" in result.error) == (2, True)


def test_v7_a_rate_that_is_not_the_list_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Facts serving V7 (GPUA, May 2026): the arithmetic of each row follows, but p5.48xlarge costs 55.04 an hour on
    demand, not 33.86: 55.04e6 / (1000 x 3600) = 15.29 per million.
    """
    head = "name,units_per_second,price_per_hour_usd,printed_usd_per_million,instance_type\n"
    cloud = "H100,5500,2.49,0.13,\nA100,4200,1.40,0.09,\n2 H100,2200,4.98,0.63,\nH200,1800,2.49,0.38,\n"
    (tmp_path / "v7.csv").write_text(head + cloud + "AWS,1000,33.86,9.41,\n")
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v7.csv"))
    assert (result.code, result.out) == (0, "v7.csv: each price follows from its inputs (5 prices).\n")
    (tmp_path / "v7.csv").write_text(head + cloud + "AWS,1000,33.86,9.41,p5.48xlarge\n")
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v7.csv"), "--at", "2026-05-15")
    assert (result.code, result.out) == (1, "")
    flagged = "AWS: the rate is stale or unknown: $33.86 an hour, in the price book $55.04, at which it is $15.29 per"
    assert flagged in result.error and "inputs do not give" not in result.error
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v7.csv"))
    assert (result.code, "--at is required" in result.error) == (2, True)


def test_v8_a_break_even_in_tokens_does_not_depend_on_utilization(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts serving V8: 4,608 a month at 10 per million are 460.8 million tokens; printed 0.46, and 1.5 and 4.6 at 30
    and 10 % utilization: 460.8 / 0.46 = 1001.7, 460.8 / 1.5 = 307.2, 460.8 / 4.6 = 100.2.
    """
    head = "name,usd_per_month,usd_per_million,printed_million_tokens_per_month\n"
    rows = [f"{name},4608,10,{printed}\n" for name, printed in (("all", "0.46"), ("30%", "1.5"), ("10%", "4.6"))]
    (tmp_path / "v8.csv").write_text(head + "".join(rows))
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v8.csv"))
    factors = re.findall(r"are 460\.80 million tokens a month, printed [0-9.]+ \(([0-9.]+) times less\)", result.error)
    assert (result.code, factors) == (1, ["1001.7", "307.2", "100.2"])
    (tmp_path / "v8.csv").write_text(head + "right,4608,10,460.8\n")
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v8.csv"))
    assert (result.code, result.out) == (0, "v8.csv: each figure follows from its inputs (1 figure).\n")


def test_v5_an_active_window_is_five_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Facts serving V5: a window of two units at 0.1570 a minute for both is 0.785; the guide's formula divides it by
    60 instead: 0.1570 / 60 = 0.002617, 300 times too low.
    """
    head = "name,active_windows,model_units,usd_per_unit_minute,printed_usd\n"
    (tmp_path / "v5.csv").write_text(head + "guide,1,2,0.0785,0.002617\npricing page,1,2,0.0785,0.785\n")
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "v5.csv"))
    assert (result.code, "guide" in result.error, "pricing page" in result.error) == (1, True, False)
    assert "printed $0.002617 (300.0 times less)" in result.error


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (
            "name,price\na,1\n",
            "has no column units_per_second; a table has name, units_per_second, price_per_hour_usd, ",
        ),
        (
            "name,units_per_second,price_per_hour_usd,printed_usd_per_million\n",
            "has no row below its header; add one",
        ),
        (
            "name,units_per_second,price_per_hour_usd,printed_usd_per_million\na,0,1,1\n",
            "line 2: units_per_second 0 is not a positive number",
        ),
        (
            "name,units_per_second,price_per_hour_usd,printed_usd_per_million\na,1,,1\n",
            "price_per_hour_usd is empty and is no",
        ),
    ],
)
def test_what_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, error: str) -> None:
    (tmp_path / "stated.csv").write_text(content)
    result = run_command(capsys, "reprice", "--table", str(tmp_path / "stated.csv"))
    assert result.code == 2
    assert error in result.error
