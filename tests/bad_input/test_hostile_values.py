"""Names that are SQL, HTML, formulas, terminal codes or very long, in a folder with quotes and spaces in its name.

Each name is that of a run which used one node for an hour by its own word and another by the tag on the bill: at
7 and 5 dollars an hour it cost 12.
"""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_events, write_export
from support.mailboxes import smtp_server, webhook_server
from support.spoiled import MONTH, Ledger

HOSTILE = [
    "it's",
    'say "hello"',
    "x'; drop table mart_run_cost; --",
    "$$ || current_user || {batch} {{ 7 * 7 }} %s",
    "#panic() $x^2$ @here `raw` */ \\ #import",
    "<!channel> <http://evil|click> Bcc: a@evil.dev",
    '" onerror=alert(2) x="',
    "two\nlines\r\nand a\ttab",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "[bold red]not markup[/]",
    "\x1b[31mnot red\x1b[0m",
    "日本語 🚀 е́ \u202eright to left",
    " ",
    "r" * 10_000,
]
PATH = "/services/T0AAAA/B0BBBB/q7Xn2VbLw9RtYcKd"
# Those of our own and of the way; a name adds none.
HEADERS = {
    *("subject", "from", "to", "date", "message-id", "mime-version", "content-type", "content-transfer-encoding"),
    *("x-peer", "x-mailfrom", "x-rcptto"),
}
START, END = f"{MONTH}-01T00:00:00Z", f"{MONTH}-01T01:00:00Z"


def lines() -> list[dict[str, str]]:
    found = []
    for number, name in enumerate(HOSTILE):
        tags = json.dumps({"user_run_id": name, "user_owner": name, "user_team": name})
        for resource, rate, more in (
            (f"i-hostile-{number}", "7", {}),
            (f"i-tagged-{number}", "5", {"resource_tags": tags}),
        ):
            found.append(instance_hour(f"{MONTH}-01T00", resource, "p5.48xlarge", rate, **more))
        unknown = json.dumps({"user_run_id": f"{name} unrecorded", "user_owner": name})
        found.append(instance_hour(f"{MONTH}-01T00", f"i-lost-{number}", "p5.48xlarge", "3", resource_tags=unknown))
    return found


def events() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number, name in enumerate(HOSTILE):
        texts = dict.fromkeys(("model", "dataset", "precision", "team", "owner", "experiment"), name)
        common = {"run_id": name, "attempt": 1}
        node = {**common, "resource": f"i-hostile-{number}"}
        found += [
            {"event": "run_started", "run_id": name, "at": START, **texts},
            {"event": "attempt_started", **common, "at": START},
            {"event": "resource_joined", **node, "at": START, "instance_type": "p5.48xlarge"},
            {"event": "phase_started", **common, "at": START, "phase": name},
            {"event": "checkpoint_saved", **common, "at": END, "checkpoint_id": name, "uri": name, "step": 1},
            {"event": "evaluation", **common, "at": END, "metric": name, "split": name, "value": 1.0},
            {"event": "resource_left", **node, "at": END},
            {"event": "attempt_ended", **common, "at": END, "reason": name},
            {"event": "run_ended", "run_id": name, "at": END, "status": "completed"},
        ]
    return found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with its bill and events, not built yet."""
    root = tmp_path_factory.mktemp("hostile") / 'it\'s a "test" {of} 50% ünï;'
    root.mkdir()
    write_export(root, {MONTH: lines()})
    write_events(root / "runs", events())
    config = write_config(root, billing="export", runs="runs")
    with config.open("a") as more:
        more.write('\n[notify]\nreports = ["training_cost"]\n\n[notify.slack]\n')
        for team in (name for name in HOSTILE if name.strip() and name.isprintable()):
            more.write(f'\n[[decisions.budgets]]\nteam = {json.dumps(team, ensure_ascii=False)}\namount_usd = "1"\n')
    return root


@pytest.fixture(scope="module")
def built(hostile: Path) -> Path:
    """The folder, built."""
    from support.ledgers import build_warehouse

    build_warehouse(hostile / "trainledger.toml")
    return hostile


@pytest.fixture
def ledger(built: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ledger:
    return Ledger(built, built / "trainledger.toml", capsys, monkeypatch)


COSTS = "select run_id, effective_cost_usd from mart_run_cost"


def test_every_run_has_its_name_and_its_cost(ledger: Ledger) -> None:
    for form, read in (
        ("--csv", lambda text: list(csv.DictReader(io.StringIO(text, newline="")))),
        ("--json", json.loads),
    ):
        rows = read(ledger.run("query", COSTS, form).out)
        # A spreadsheet would take a name that begins so for a formula.
        names = [f"'{name}" if form == "--csv" and name[0] in "=+-@\t\r\n" else name for name in HOSTILE]
        assert {row["run_id"]: Decimal(row["effective_cost_usd"]) for row in rows} == dict.fromkeys(names, Decimal(12))


def test_tags_are_what_they_are(ledger: Ledger) -> None:
    sql = "select run_id, owner, effective_cost_usd from detail_provisional_run"
    rows = json.loads(ledger.run("query", sql, "--json").out)
    assert {row["run_id"]: row["owner"] for row in rows} == {f"{name} unrecorded": name for name in HOSTILE}
    assert {Decimal(row["effective_cost_usd"]) for row in rows} == {Decimal(3)}


def test_a_terminal_sees_no_control_characters(ledger: Ledger) -> None:
    shown = ledger.run("query", COSTS).out
    assert [c for c in shown if not c.isprintable() and c != "\n"] == []
    assert "\\x1b[31mnot red" in shown and "[bold red]not markup[/]" in shown
    # One line a run, and the four of the frame.
    assert len(shown.splitlines()) == len(HOSTILE) + 4


def test_the_report_escapes_what_it_shows(ledger: Ledger) -> None:
    out = ledger.root / "the report's <page>.html"
    assert ledger.run("report", "--out", str(out)).code == 0
    page = out.read_text(encoding="utf-8")
    assert "<script>alert(1)</script>" not in page
    assert "alert(1)" in page


class Scripts(HTMLParser):
    """What a browser would run of a page: the text of its scripts, and attributes that are code."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[str] = []
        self._is_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script = tag == "script"
        self.found += [
            f"{name}={value}" for name, value in attrs if name.startswith("on") or "script:" in (value or "")
        ]

    def handle_data(self, data: str) -> None:
        self.found += [data] if self._is_script else []


@pytest.mark.slow
def test_no_page_runs_what_it_shows(ledger: Ledger) -> None:
    out = ledger.root / "pages"
    assert ledger.run("dashboard", "--export", str(out)).code == 0
    pages = [path.read_text(encoding="utf-8") for path in out.rglob("*.html")]
    assert len(pages) > len(HOSTILE) and any("alert(1)" in page for page in pages)
    assert [code for page in pages for code in Scripts(page).found if "alert" in code or "evil" in code] == []
    # Every file lies in the folder, whatever a run is called.
    assert not (ledger.root.parent / "etc").exists()


def test_the_report_is_printed_with_every_name(ledger: Ledger) -> None:
    out = ledger.root / "report.pdf"
    printed = ledger.run("report", "--pdf", str(out))
    assert printed.code == 0, printed.err
    assert out.read_bytes().startswith(b"%PDF-")


def test_messages_carry_names_as_text(ledger: Ledger) -> None:
    """A budget of 1 USD for each team: every name is in a message, none is markup, a header or a recipient."""
    with webhook_server(PATH) as webhook, smtp_server() as mailbox:
        ledger.monkeypatch.setenv("TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL", webhook.url)
        mail = {"host": "127.0.0.1", "port": mailbox.port, "security": "none", "sender": "t@acme.dev"}
        ledger.monkeypatch.setenv("TRAINLEDGER_NOTIFY__MAIL", json.dumps(mail | {"recipients": ["a@acme.dev"]}))
        sent = ledger.run("notify")
    assert sent.code == 0, sent.err
    assert [c for c in sent.out + sent.err if not c.isprintable() and c != "\n"] == []
    slack = "".join(json.loads(body)["text"] for _, _, body in webhook.posts)
    assert "&lt;!channel&gt; &lt;http://evil|click&gt;" in slack and "&lt;script&gt;" in slack
    assert not {*"<>"} & {*slack}
    assert mailbox.mails and {mail["To"] for mail in mailbox.mails} == {"a@acme.dev"}
    assert all({*map(str.lower, mail.keys())} <= HEADERS for mail in mailbox.mails)
    assert any("<script>alert(1)</script>" in mail.get_body(("plain",)).get_content() for mail in mailbox.mails)


def test_building_again_is_no_work(ledger: Ledger) -> None:
    assert "Nothing changed since publication 1; nothing was done." in ledger.run("build").out
