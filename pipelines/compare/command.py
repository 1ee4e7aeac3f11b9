"""The `trainledger compare` command."""

from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.cost import BASES
from pipelines.base.errors import UsageError
from pipelines.config.options import AsOf, Config, Csv, Json, form_of, settings_of

Workload = Annotated[
    str | None, typer.Argument(help="A workload_id, or a unique part of one. Default: every compared workload.")
]
Basis = Annotated[str | None, typer.Option("--basis", help="effective, list or billed. Default: the registered basis.")]
Serving = Annotated[bool, typer.Option("--serving", help="Compare ways to serve models instead; name a model.")]


def compare(
    workload: Workload = None,
    basis: Basis = None,
    serving: Serving = False,
    config: Config = None,
    as_of: AsOf = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Compare the GPU and Trainium runs of a workload. With --serving, compare the ways to serve a model."""
    form = form_of(as_json, as_csv)
    if serving and basis is not None:
        raise UsageError("--basis cannot be combined with --serving, whose verdicts hold on effective and list cost.")
    if basis is not None and basis not in BASES:
        raise UsageError(f"--basis {basis} is not a basis; choose one of {', '.join(BASES)}.")
    settings = settings_of(config)
    from pipelines.compare.tables import TEMPLATE, recommendation_of, rows_of, show, ways_of
    from pipelines.models.marts import of_other_revisions, open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.csv_text import print_rows
    from pipelines.present.text import show_text

    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    with of_other_revisions(published), open_marts(warehouse, published) as marts:
        rows = ways_of(marts, workload) if serving else rows_of(marts, workload, basis)
        recommendations = {
            key: recommendation_of(marts, *key)
            for key in ([] if serving else rows.select("workload_id", "billing_currency").unique().rows())
        }
    if form != "table":
        print_rows(rows, form)
    elif serving:
        show_text(TEMPLATE, {"pairs": [], "ways": rows.to_dicts()}, Console())
    else:
        show(rows, basis, recommendations, Console())
