"""The dashboard in a real browser: what a person sees, types and reaches by keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.site import HOSTILE, Site, address_of, marts

from pipelines.base.console import Console
from pipelines.config.settings import load_settings
from pipelines.dashboard.export import export_pages
from pipelines.dashboard.links import PAGES
from pipelines.dashboard.reader import Reader
from pipelines.models.warehouse import Warehouse

CHROMIUM = shutil.which("chromium")
WIDE = {"width": 1280, "height": 900}
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian's package chromium)")

ADDRESSES = {
    **{called: "/" if name == "overview" else f"/{name}" for name, called in PAGES.items()},
    "One run": "/run?id=gpu-1",
    "A hostile run": f"/run?{address_of(id=HOSTILE)}",
    "Filtered ledger": "/ledger?bucket=run&service=AmazonEC2",
    "Graph of a table": "/lineage?table=mart_run_cost",
    "Explained run": "/explain?kind=run&word=trn-1",
    "Explained name": "/explain?kind=name&word=cost_per_epoch_usd",
}
# What assistive technology needs of every page; each entry is something amiss.
AMISS = """() => {
  const found = [], seen = new Set();
  const named = element => (element.getAttribute("aria-label") || element.textContent || "").trim();
  for (const element of document.querySelectorAll("[id]")) {
    if (seen.has(element.id)) found.push("id twice: " + element.id);
    seen.add(element.id);
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select"))
    if (!field.labels.length) found.push("no label: " + field.name);
  for (const link of document.querySelectorAll("a, button"))
    if (!named(link)) found.push("no name: " + link.outerHTML.slice(0, 80));
  for (const picture of document.querySelectorAll("svg:not([aria-hidden]), img"))
    if (!picture.getAttribute("aria-label") && !picture.alt) found.push("no text: " + picture.outerHTML.slice(0, 80));
  for (const table of document.querySelectorAll("table")) {
    const label = document.getElementById(table.getAttribute("aria-labelledby") || "-");
    if (!table.caption && !label) found.push("table without caption");
    for (const head of table.querySelectorAll("th")) if (!head.scope) found.push("th without scope: " + named(head));
  }
  for (const id of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(id.getAttribute("aria-labelledby"))) found.push("labeled by nothing");
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) found.push("heading skips a level: " + named(heading));
    level = own;
  }
  if (document.querySelectorAll("h1").length !== 1 || document.querySelectorAll("main").length !== 1)
    found.push("not one h1 and one main");
  return found;
}"""
# Contrast of text against what lies behind it (WCAG 2): large text 3, other text 4.5.
PALE = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = color => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const color = rgb(getComputedStyle(element).backgroundColor);
      if (color[3] > 250) return color;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    const hasText = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !element.checkVisibility()) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const fill = element.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(rgb(fill)), light(behind(element))].sort((x, y) => y - x);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if ((a + .05) / (b + .05) < least) found.add(element.tagName + " " + element.className + ": " + element.textContent.slice(0, 30));
  }
  return [...found];
}"""  # noqa: E501


@dataclass
class Visit:
    """A page open in the browser, and everything it complained of or requested."""

    page: Any
    site: Site
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.site.address + path)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright's Python package is absent")
    with sync_api.sync_playwright() as playwright:
        # Where tests run as root Chromium has no sandbox; it visits nothing but our own pages.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def visit(browser: Any, site: Site, **options: Any) -> Visit:
    page = browser.new_context(**options).new_page()
    # Longer than any page takes, even where the processors have much else to do.
    page.set_default_timeout(60_000)
    made = Visit(page, site)
    page.on("console", lambda console_message: made.complaints.append(console_message.text))
    page.on("pageerror", lambda error: made.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (made.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("requestfailed", lambda request: made.complaints.append(f"failed {request.url}"))
    page.on("request", lambda request: made.requests.append(request.url))
    return made


@pytest.fixture(scope="module")
def seen(browser: Any, site: Site) -> Visit:
    return visit(browser, site, viewport=WIDE)


@pytest.mark.parametrize("path", ADDRESSES.values(), ids=ADDRESSES)
def test_each_page_loads_clean_and_is_fit_for_a_screen_reader_both_themes_and_a_phone(seen: Visit, path: str) -> None:
    seen.complaints.clear()
    seen.requests.clear()
    seen.open(path)
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith((seen.site.address, "data:"))] == []
    assert seen.page.evaluate(AMISS) == []
    for scheme in ("light", "dark"):
        seen.page.emulate_media(color_scheme=scheme)
        assert (scheme, seen.page.evaluate(PALE)) == (scheme, [])
    seen.page.set_viewport_size({"width": 390, "height": 844})
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 390
    # Names are of any length.
    named = "main h1, .known > p, .asof, .agreed, .big"
    seen.page.evaluate(f"document.querySelectorAll('{named}').forEach(one => one.append('x'.repeat(300)))")
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 390
    # A page is opened as wide as it was.
    seen.page.set_viewport_size(WIDE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_edge_of_a_table_is_shaded_while_there_is_more_beyond_it(browser: Any, site: Site, scheme: str) -> None:
    seen = visit(browser, site, viewport={"width": 390, "height": 844}, color_scheme=scheme)
    seen.open("/runs")
    table = seen.page.locator(".scroll")
    table.scroll_into_view_if_needed()
    box = table.bounding_box()

    def dot(x: float) -> bytes:
        """The picture of one pixel above the words of the table's head."""
        return seen.page.screenshot(clip={"x": x, "y": box["y"] + 5, "width": 1, "height": 1})

    def shaded() -> tuple[bool, bool]:
        middle = dot(box["x"] + box["width"] / 2)
        return dot(box["x"] + 1) != middle, dot(box["x"] + box["width"] - 3) != middle

    assert shaded() == (False, True)
    table.evaluate("e => e.scrollLeft = 60")
    assert shaded() == (True, True)
    table.evaluate("e => e.scrollLeft = e.scrollWidth")
    assert shaded() == (True, False)


def test_a_hostile_name_is_text(seen: Visit) -> None:
    seen.complaints.clear()
    seen.open("/runs")
    assert seen.page.get_by_role("link", name=HOSTILE, exact=True).count() == 1
    seen.page.get_by_role("link", name=HOSTILE, exact=True).click()
    assert seen.page.locator("h1").inner_text() == HOSTILE
    assert seen.complaints == []


def test_filters_and_sorting_ask_the_marts(seen: Visit) -> None:
    """What the browser shows equals the same marts read by another client."""
    shown = "SELECT run_id, printf('$%.2f', effective_cost_usd) FROM mart.mart_run_cost "
    with duckdb.connect(str(marts(seen.site.company)), read_only=True) as client:
        ordered = client.execute(shown + "ORDER BY effective_cost_usd DESC").fetchall()
        trainium = client.execute(shown + "WHERE accelerator_family = 'trainium'").fetchall()
        named = client.execute(shown + "ORDER BY run_id").fetchall()
    seen.open("/runs")
    assert rows(seen.page) == ordered and len(ordered) == 3
    seen.page.get_by_label("Accelerator", exact=True).select_option("trainium")
    seen.page.wait_for_url("**silicon=trainium**")
    assert rows(seen.page) == trainium and len(trainium) == 1
    seen.open("/runs")
    seen.page.get_by_role("link", name="Run", exact=True).click()
    assert rows(seen.page) == named
    assert seen.page.locator("th[aria-sort]").inner_text().split() == ["Run", "▲"]
    seen.page.get_by_role("link", name="Run", exact=True).click()
    assert rows(seen.page) == named[::-1]


def test_a_filter_is_reached_and_applied_by_keyboard_alone(browser: Any, site: Site) -> None:
    """Without any script either."""
    seen = visit(browser, site, java_script_enabled=False)
    seen.open("/runs")
    seen.page.keyboard.press("Tab")
    assert seen.page.locator(":focus").inner_text() == "Skip to the content"
    assert seen.page.locator(":focus").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    for _ in range(30):
        if seen.page.locator("#q:focus").count():
            break
        seen.page.keyboard.press("Tab")
    seen.page.keyboard.type("TRN")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**q=TRN**")
    assert [name for name, _ in rows(seen.page)] == ["trn-1"]


def test_a_figure_leads_to_the_lines_behind_it(seen: Visit) -> None:
    seen.open("/runs")
    seen.page.get_by_role("link", name="$80.00, trn-1: its bill lines").click()
    assert "The sums agree to the last digit at every level" in seen.page.locator("main").inner_text()
    assert seen.page.locator("h1").inner_text() == "What trn-1 rests on"


def test_a_large_figure_of_a_tile_is_on_one_line(seen: Visit) -> None:
    seen.open("/")
    seen.page.evaluate("document.querySelector('.tile .big').textContent = '\u2212EUR\u00a012,345,678'")
    # Its type is 25 pixels high.
    assert seen.page.evaluate("document.querySelector('.tile .big').clientHeight") < 50


def test_a_run_shows_its_time_and_dollars(seen: Visit) -> None:
    """An hour at 60.00 USD with a checkpoint half-way: 30.00 until it, 30.00 until the last."""
    seen.open(f"/run?{address_of(id=HOSTILE)}")
    assert seen.page.get_by_role("img", name="Timeline of").count() == 1
    stretches = seen.page.get_by_role("table", name="Every stretch").locator("tbody tr")
    with duckdb.connect(str(marts(seen.site.company)), read_only=True) as client:
        sql = "SELECT count(*), sum(effective_cost_usd) FROM detail.detail_run_timeline WHERE run_id = ?"
        assert client.execute(sql, [HOSTILE]).fetchall() == [(stretches.count(), 60)]
    saved = seen.page.get_by_role("table", name="2 durable checkpoints").locator("tbody td.strong")
    assert saved.all_inner_texts() == ["$30.00", "$30.00"]


def test_written_pages_sort_and_filter_by_themselves(browser: Any, site: Site, tmp_path: Path) -> None:
    volume = Reader(Warehouse(load_settings(site.company.config))).read()
    export_pages(volume, tmp_path, 0, Console())
    seen = visit(browser, site)
    seen.page.goto((tmp_path / "runs.html").as_uri())
    found = seen.page.get_by_role("table", name="Runs").locator("tbody tr")
    assert [text.split()[0] for text in found.locator("th").all_inner_texts()] == ["gpu-1", "trn-1", HOSTILE]
    seen.page.get_by_role("button", name="Effective cost").click()
    assert found.locator("td.strong").all_inner_texts() == ["$60.00", "$80.00", "$110.08"]
    seen.page.get_by_label("Anything in a row contains").fill("trainium")
    assert seen.page.get_by_role("table", name="Runs").locator("tbody tr:visible th").all_inner_texts() == ["trn-1"]
    assert seen.page.locator("output").inner_text() == "1 of 3 runs of this page"
    assert seen.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in seen.requests)


def rows(page: Any) -> list[tuple[str, str]]:
    """Each run of the list with its cost."""
    found = page.get_by_role("table", name="Runs").locator("tbody tr")
    names, costs = found.locator("th a").all_inner_texts(), found.locator("td.strong").all_inner_texts()
    return list(zip(names, costs, strict=True))
