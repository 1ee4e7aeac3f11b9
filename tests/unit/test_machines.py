"""`[[machines]]`: an instance type that the reviewed list does not have yet."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
from support.bills import write_config
from support.ledgers import open_tables
from support.stories import build_story

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.models.built import Built

STORY = Path(__file__).parents[1] / "golden/an_accelerator_that_no_list_has"
P9 = """
[[machines]]
instance_type = "p9.48xlarge"
accelerator_family = "gpu"
accelerator_name = "R200"
accelerator_count = 8
"""
RUNS = "select effective_cost_usd, accelerator_family, accelerator_hours from fct_run where run_id = 'left'"


def warnings_of(built: list[Built]) -> list[tuple[str, list]]:
    name = "accelerator_type_missing_from_ref_instance_type"
    return [
        (made.table, check.sample)
        for made in built
        for check in made.checks
        if check.check == name and not check.passed
    ]


def test_a_configured_machine_is_known_from_the_next_build_on(tmp_path: Path) -> None:
    """Figures: README of the story."""
    plain = build_story(STORY, tmp_path, {"fct_run"})
    warned = warnings_of([*plain.build_months("fct_charge", ["2026-07"]), *plain.build_months("fct_run", [None])])
    assert {table for table, _ in warned} == {"core/fct_charge", "core/fct_run"}
    ((charge, (row,)), *_) = warned
    assert (charge, row["instance_type"], float(row["effective_cost_usd"])) == (
        "core/fct_charge",
        "p9.48xlarge",
        169.79,
    )

    story = copytree(STORY, tmp_path / "story")
    (story / "decisions.toml").write_text(P9)
    known = build_story(story, tmp_path, {"fct_run"})
    assert warnings_of([*known.build_months("fct_charge", ["2026-07"]), *known.build_months("fct_run", [None])]) == []
    with open_tables(known, {"fct_run"}) as tables:
        assert tables.query(RUNS).rows() == [(60, "gpu", 6)]


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        (P9 + P9.replace("= 8", "= 16"), "[[machines]] contain p9.48xlarge twice"),
        (P9.replace('"gpu"', '"GPU"'), "accelerator_family"),
        (P9.replace("= 8", "= 0"), "accelerator_count"),
        (P9.replace('"p9', '"ml.p9'), "instance_type"),
        (
            P9.replace('"R200"', '"H100"') + "peak_bf16_tflops = 1978\n",
            "of H100 with sparsity; write the dense one, 989",
        ),
    ],
)
def test_a_machine_that_is_wrong_is_refused(tmp_path: Path, machines: str, message: str) -> None:
    config = write_config(tmp_path, billing="export")
    config.write_text(config.read_text() + machines)
    with pytest.raises(UsageError) as refused:
        load_settings(config)
    assert message in str(refused.value)
