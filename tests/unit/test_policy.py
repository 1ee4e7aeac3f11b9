"""The policy: an argument of the models that need it, and part of the inputs that a publication records."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from support.bills import instance_hour, write_config, write_export
from support.ledgers import publish_tables_with

from pipelines.config.policy import Policy
from pipelines.config.settings import Settings, load_settings
from pipelines.config.teams import Teams
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.build import Builder
from pipelines.models.catalog import load_catalog
from pipelines.models.session import configured_select
from pipelines.models.warnings import warnings

MONTH = "2026-07"
BY_MONTH = [model.name for model in load_catalog().ordered if model.grain == "month"]


def settings(root: Path, **policy: object) -> Settings:
    made = load_settings(write_config(root, billing="export"))
    return made.model_copy(update={"policy": Policy.model_validate(policy)})


def made_at(builder: Builder) -> dict[str, tuple[str, ...]]:
    """What each table of July holds, by the content of its files."""
    lake = builder.lake
    return {
        m.key: tuple(lake.contents(m.key, MONTH)) for m in builder.catalog.ordered if m.stored and m.grain == "month"
    }


def test_an_argument_is_one_row_of_text_that_holds_all() -> None:
    policy = Policy(as_of=datetime(2026, 7, 14, 12, 30, tzinfo=UTC))
    assert "(values (cast('2026-07-14 12:30:00' as timestamp))) as" in configured_select(
        "as_of", Settings(policy=policy)
    )
    assert "(values (cast(null as timestamp))) as" in configured_select("as_of", Settings())
    gross = configured_select("policy", Settings(policy=Policy(savings_plan_unused="gross")))
    assert gross.startswith("select * from (values (cast('gross' as varchar), ")


def test_a_configured_list_is_one_step_of_a_plan() -> None:
    """10,000 accounts with a team were a union of 10,000 selects, for which 2 GB did not suffice."""
    teams = Teams.recorded([[f"{number:012d}", "2026-07-01", "2026-07-31", "vision"] for number in range(300)])
    with DuckDBEngine(threads=1) as engine:
        plan = engine.query(f"explain {configured_select('declared_team', Settings(teams=teams))}")["explain_value"][-1]
    assert len(plan.splitlines()) < 100


def test_a_publication_records_the_policy_it_was_made_under_and_a_new_one_makes_another(tmp_path: Path) -> None:
    write_export(
        tmp_path, {MONTH: [instance_hour(f"{MONTH}-14T10", "i-1", "p5.48xlarge", "55.04", bill_invoice_id="")]}
    )
    first = publish_tables_with(settings(tmp_path), BY_MONTH)
    before = made_at(first)
    second = publish_tables_with(settings(tmp_path, as_of="2026-07-14T12:00:00Z"), BY_MONTH)
    published = second.lake.publications.all()
    assert [p.inputs["policy"]["as_of"] for p in published] == [None, "2026-07-14T12:00:00Z"]
    # A later moment moves what is cut and nothing else.
    assert {key for key, content in made_at(second).items() if content != before[key]} == {"core/fct_invoice_monthly"}
    # The same moment again is the same publication.
    again = publish_tables_with(settings(tmp_path, as_of="2026-07-14T12:00:00Z"), BY_MONTH)
    assert len(again.lake.publications.all()) == 2


def test_a_cut_before_the_newest_use_is_reported_with_both_moments(tmp_path: Path) -> None:
    """Use is 10:00 to 11:00 on the 14th: with a cut requested at 10:30, the build reports that it cuts at 11:00."""
    lines = [instance_hour(f"{MONTH}-14T10", "i-1", "p5.48xlarge", "55.04", bill_invoice_id="")]
    write_export(tmp_path, {MONTH: lines})

    def warnings_of(as_of: str) -> list[str]:
        builder = publish_tables_with(settings(tmp_path, as_of=as_of), ["fct_invoice_monthly"])
        published = builder.lake.publications.newest()
        assert published
        missed = [check for check in published.checks if not check["passed"]]
        return [text for text in warnings(missed) if "cuts nothing" in text]

    assert warnings_of("2026-07-14T11:00:00Z") == []
    (warning,) = warnings_of("2026-07-14T12:30:00+02:00")
    assert warning.startswith("Warning: as of lies before the newest use and cuts nothing: 1 row")
    assert "as of at 2026-07-14 10:30 UTC" in warning and "newest use ended at 2026-07-14 11:00 UTC" in warning
