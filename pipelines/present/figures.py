"""The figures that a build prints last: the first screen of the report and the dashboard in a terminal."""

import jinja2
import yaml

from pipelines.base import resources
from pipelines.base.console import Console
from pipelines.engine import Engine
from pipelines.present.formats import formats

# Where the basis of a figure stands in its line.
_BASIS_AT = 41


def show_key_figures(engine: Engine, console: Console) -> None:
    """Print the bill and key figures with their basis, in each currency of the bills."""
    queries = yaml.safe_load((resources.DASHBOARDS / "figures.yml").read_text(encoding="utf-8"))
    # An environment of its own: that of pages brings the library of charts.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.DASHBOARDS), trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= formats()
    rows = {name: engine.query(sql).to_dicts() for name, sql in queries.items()}
    for line in environment.get_template("figures.txt.j2").render(rows).splitlines():
        console.say(line, hang=_BASIS_AT)
