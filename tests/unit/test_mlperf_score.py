"""MLPerf's olympic mean: best and worst left out, a run that did not converge is a worst one, more void the result."""

from __future__ import annotations

import pytest

from pipelines.analysis.mlperf_score import mlperf_score


def test_the_best_and_the_worst_are_left_out() -> None:
    # 1 and 100 fall away; 2 to 9 are 44 in eight runs.
    assert mlperf_score("llama2_70b_lora", [100, 2, 3, 4, 5, 6, 7, 8, 9, 1]) == 5.5


@pytest.mark.parametrize(("benchmark", "runs"), [("resnet", 5), ("ssd", 5), ("gpt3", 3), ("llama31_405b", 3)])
def test_benchmarks_of_few_runs(benchmark: str, runs: int) -> None:
    assert mlperf_score(benchmark, range(runs)) == (runs - 1) / 2


def test_unet3d_leaves_out_four_at_each_end_of_forty() -> None:
    # 4 to 35 are left: their mean is 19.5.
    assert mlperf_score("unet3d", [*range(36), 1000, 1000, None, None]) == 19.5
    assert mlperf_score("unet3d", [*range(36), None, None, None, None]) == 19.5
    assert mlperf_score("unet3d", [*range(35), None, None, None, None, None]) is None


def test_one_run_that_did_not_converge_is_the_worst() -> None:
    # It falls away as the worst, 2 as the best: 3 to 10 are left, 52 in eight runs.
    assert mlperf_score("bert", [2, 3, 4, 5, 6, 7, 8, 9, 10, None]) == 6.5


def test_two_void_the_result() -> None:
    assert mlperf_score("bert", [2, 3, 4, 5, 6, 7, 8, 9, None, None]) is None


def test_other_numbers_of_runs_are_no_result() -> None:
    with pytest.raises(ValueError, match="bert is scored over 10 runs, not 3"):
        mlperf_score("bert", [1, 2, 3])
