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
    """Drop the second word of a fence (`python duckdb`), which names the code for its test."""
    return re.sub(r"^```(\w+) \w+$", r"```\1", markdown, flags=re.MULTILINE)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """The page as it is. PluginError if it loads anything from elsewhere."""
    if elsewhere := re.search(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"https?:[^\"]*", output):
        raise PluginError(f"{page.file.src_path} loads {elsewhere[0]}; keep a copy in docs/.")
    return output


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
