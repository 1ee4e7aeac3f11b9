"""MkDocs hook: pages of the site that are generated from the code, and never committed."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.explain.names import look_up
from pipelines.models.expressions import load_expressions


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the commands, the metrics and the list of decisions."""
    generated = {
        "commands.md": _commands(),
        "metrics.md": _metrics(),
        "decisions/index.md": _decisions(Path(config.docs_dir) / "decisions"),
    }
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Draw flowcharts, and drop the second word of a fence (`python duckdb`), which names the code for its test."""
    markdown = re.sub(
        r"^```mermaid\n(.*?)^```$", lambda found: _drawn(found[1]), markdown, flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"^```(\w+) \w+$", r"```\1", markdown, flags=re.MULTILINE)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """The page as it is. PluginError if it loads anything from elsewhere."""
    if elsewhere := re.search(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"https?:[^\"]*", output):
        raise PluginError(f"{page.file.src_path} loads {elsewhere[0]}; keep a copy in docs/.")
    return output


def _drawn(chart: str) -> str:
    """A flowchart of Mermaid as SVG, from top to bottom; Mermaid itself would be loaded from elsewhere."""
    labels: dict[str, list[str]] = {}
    edges = []
    for line in chart.splitlines()[1:]:
        ends = [re.match(r"(\w+)(?:\[(.+)\])?$", end.strip()) for end in re.split(r"-->(?:\|\w+\|)?", line)]
        names = [end[1] for end in ends if end]
        labels |= {end[1]: end[2].split("<br/>") for end in ends if end and end[2]}
        edges.append((names[0], names[1]))
    depth = dict.fromkeys(labels, 0)
    for _ in labels:
        depth |= {end: max(depth[end], depth[start] + 1) for start, end in edges}
    # What starts the flow stands right above its first reader.
    for root in set(labels) - {end for _, end in edges}:
        depth[root] = min(depth[end] for start, end in edges if start == root) - 1
    at, parts = {}, []
    for row in range(max(depth.values()) + 1):
        names = [name for name in labels if depth[name] == row]
        # A box alone steps aside for a line that passes its row.
        is_passed = len(names) == 1 and any(depth[start] < row < depth[end] for start, end in edges)
        for number, name in enumerate(names):
            width = max(map(len, labels[name])) * 6.6 + 20
            aside = min(250, 338 - width / 2) if is_passed else 0
            x, y = round(680 * (number + 0.5) / len(names) + aside), 84 * row + 30
            at[name] = (x, y)
            parts.append(f'<rect x="{x - width / 2:.0f}" y="{y - 28}" width="{width:.0f}" height="56" rx="4"/>')
            top = y + 4 - 8 * (len(labels[name]) - 1)
            parts += [f'<text x="{x}" y="{top + 16 * i}">{text}</text>' for i, text in enumerate(labels[name])]
    lines = [
        f'<line x1="{at[start][0]}" y1="{at[start][1] + 28}" x2="{at[end][0]}" y2="{at[end][1] - 28}"/>'
        for start, end in edges
    ]
    style = "font-size:12px;text-anchor:middle;fill:currentColor"
    boxes = "".join(parts).replace("<rect", '<rect fill="var(--md-default-bg-color)" stroke="currentColor"')
    return (
        f'<svg role="img" viewBox="0 0 680 {84 * max(depth.values()) + 62}" style="{style}">'
        f'<g stroke="currentColor" opacity="0.5">{"".join(lines)}</g>{boxes}</svg>'
    )


def _commands() -> str:
    parts = ["# Commands", "Exit codes are in [daily operation](operations.md#exit-codes)."]
    for name, command in get_command(app).commands.items():
        for words in ([name], *([name, one] for one in getattr(command, "commands", ()))):
            text = CliRunner().invoke(app, [*words, "--help"], terminal_width=100, prog_name="trainledger").stdout
            parts.append(f"{'#' * (len(words) + 1)} {' '.join(words)}\n\n```text\n{text.strip()}\n```")
    return "\n\n".join(parts)


def _metrics() -> str:
    parts = ["# Metrics", "Each metric has one file in `sql/metrics/`; `trainledger explain NAME` shows the same."]
    for name in sorted(load_expressions()):
        metric = look_up(name)
        if metric.is_a == "a metric":
            unit = f" Unit: {metric.unit}." if metric.unit else ""
            parts.append(f"## {name}\n\n{metric.meaning}{unit}\n\n```sql\n{(metric.formula or '').strip()}\n```")
    return "\n\n".join(parts)


def _decisions(folder: Path) -> str:
    rows = []
    for path in sorted(folder.glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        rows.append(f"- [{title}]({path.name})")
    return "# Decisions\n\nWhy things are as they are, one dated page each.\n\n" + "\n".join(rows) + "\n"
