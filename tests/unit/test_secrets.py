"""No secret stands in anything the product writes or prints: pages, packs, exports, logs, Dagster's records."""

from __future__ import annotations

import base64
import json
import logging
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from botocore.exceptions import EndpointConnectionError
from support.commands import run_command
from support.lazily import Lazily
from support.mailboxes import smtp_server, webhook_server
from support.small_company import found

from pipelines.base.address import redacted
from pipelines.base.aws import sentence_of
from pipelines.config.settings import load_settings

dg, definitions = Lazily("dagster"), Lazily("pipelines.definitions")
jobs, steps = Lazily("pipelines.defs.jobs"), Lazily("pipelines.defs.steps")
Captured = pytest.CaptureFixture[str]
BUCKET = "example-billing"
# None is a part of another, and none could be met by chance.
WEBHOOK = "wh00k-5uVq1Zr8Lk"
MAIL_PASSWORD = "m4il-9TgBv3Xw2Q"
AWS_SECRET = "4ws-kE7YpNd6RfHj0aWc"
TRACKER_TOKEN = "tr4ck-Jm2Sx8Ue5I"
PRIVACY_KEY = "pr1v-" + "zO6Ci9Gn3D" * 3
SECRETS = (WEBHOOK, MAIL_PASSWORD, AWS_SECRET, TRACKER_TOKEN, PRIVACY_KEY)
BASIC = base64.b64encode(f"finops:{TRACKER_TOKEN}".encode()).decode()


class Tracker(BaseHTTPRequestHandler):
    """An MLflow server without a run that wants a token; broken once it is set to be."""

    broken: ClassVar[bool] = False
    request_count: ClassVar[int] = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        is_right = self.headers["Authorization"] == f"Basic {BASIC}"
        type(self).request_count += is_right
        self.send_response(404 if self.broken else 200 if is_right else 401)
        self.end_headers()
        self.wfile.write(b'{"experiments": []}')

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def tracker() -> Iterator[str]:
    Tracker.broken, Tracker.request_count = False, 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Tracker) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://finops:{TRACKER_TOKEN}@127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def config(s3_endpoint: str, tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A company whose bill is on S3 and that uses every secret there is."""
    import boto3

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS_SECRET)
    monkeypatch.setenv("TRAINLEDGER_NOTIFY__MAIL__PASSWORD", MAIL_PASSWORD)
    monkeypatch.setenv("TRAINLEDGER_PRIVACY__KEY", PRIVACY_KEY)
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    client.create_bucket(Bucket=BUCKET)
    company = found(tmp_path / "company")
    for path in sorted(company.export.rglob("*")):
        if path.is_file():
            client.upload_file(str(path), BUCKET, path.relative_to(company.root).as_posix())
    company.config.write_text(
        f'[warehouse]\nlocation = "warehouse"\n'
        f'[[billing]]\nname = "payer"\nlocation = "s3://{BUCKET}/export"\nendpoint_url = "{s3_endpoint}"\n'
        'region = "us-east-1"\n'
        f'[[runs]]\nname = "jobs"\nkind = "events"\nlocation = "{company.events}"\n'
        f'[[runs]]\nname = "lab"\nkind = "mlflow"\nlocation = "{tracker}"\n'
        '[privacy]\npseudonyms = ["accounts"]\n'
        '[notify]\nabout = ["report", "failure"]\n[notify.slack]\n[notify.mail]\nhost = "127.0.0.1"\n'
        'security = "none"\nusername = "trainledger"\nsender = "t@acme.dev"\nrecipients = ["a@acme.dev"]\n'
    )
    monkeypatch.setenv("TRAINLEDGER_CONFIG", str(company.config))
    return company.config


def assert_no_secret(content: str | bytes, where: object) -> None:
    raw = content.encode() if isinstance(content, str) else content
    for secret in SECRETS:
        assert secret.encode() not in raw, f"{secret} in {where}"
        assert base64.b64encode(secret.encode()) not in raw, f"{secret} in {where}"


def assert_no_secret_below(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            assert_no_secret(file.read_bytes(), file)


def texts_of_dagster(instance: dg.DagsterInstance) -> Iterator[str]:
    """Everything Dagster keeps of its runs: events, metadata, tags, configuration, errors with their causes."""
    for run in instance.get_runs():
        yield f"{run.tags} {run.run_config}"
        for entry in instance.all_logs(run.run_id):
            yield entry.to_json()


def refresh(config: Path, instance: dg.DagsterInstance) -> bool:
    settings = load_settings(config)
    ledger = dg.ResourceDefinition.hardcoded_resource(steps.Ledger(settings))
    job = definitions.assemble(settings, ledger).resolve_job_def("refresh")
    return job.execute_in_process(instance=instance, raise_on_error=False).success


@pytest.mark.slow
def test_no_secret_is_written_or_printed(
    config: Path, tmp_path: Path, capsys: Captured, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    # AWS's library writes what it signs, by the secret but without it.
    with dg.instance_for_test() as instance, webhook_server(f"/services/T0/B0/{WEBHOOK}") as webhook:
        monkeypatch.setenv("TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL", webhook.url)
        with smtp_server(password=MAIL_PASSWORD) as mailbox:
            config.write_text(
                config.read_text().replace('host = "127.0.0.1"', f'host = "127.0.0.1"\nport = {mailbox.port}\n')
            )
            assert refresh(config, instance)
            out = tmp_path / "out"
            commands: list[tuple[str, ...]] = [
                ("report", "--out", str(out / "r.html"), "--pdf", str(out / "r.pdf"), "--pack", str(out / "p.zip")),
                ("export", "focus", "--out", str(out)),
                ("query", "select * from mart_run_cost", "--json"),
                ("check",),
                ("notify", "--dry-run"),
                ("notify",),
                ("doctor",),
            ]
            for words in commands:
                result = run_command(capsys, *words, "--config", str(config))
                assert result.code == 0 or words == ("doctor",), result.err
                assert_no_secret(result.out + result.err, words)
            # Every secret was used, so every one could have been shown.
            assert webhook.posts and mailbox.mails and Tracker.request_count
            # What goes wrong quotes what it went wrong with.
            Tracker.broken = True
            assert not refresh(config, instance)
            failed = run_command(capsys, "build", "--config", str(config))
            assert (failed.code, "/api/2.0/mlflow/experiments/search answers 404" in failed.error) == (3, True)
            assert_no_secret(failed.out + failed.err, "build")
            webhook.answers = [404]
            with dg.build_sensor_context(instance=instance) as context, pytest.raises(Exception) as refused:
                jobs.notify_sensor(None).evaluate_tick(context)
            assert_no_secret(f"{refused.value!r} {refused.value}", "sensor")
        for text in texts_of_dagster(instance):
            assert_no_secret(text, "Dagster")
    assert_no_secret(caplog.text, "log")
    assert_no_secret_below(out)
    assert_no_secret_below(config.parent / "warehouse")
    with zipfile.ZipFile(out / "p.zip") as pack:
        for name in pack.namelist():
            assert_no_secret(pack.read(name), name)
    for _, headers, body in webhook.posts:
        assert_no_secret(json.dumps(headers), "headers")
        assert_no_secret(body, "Slack")
    assert_no_secret("".join(mail.as_string() for mail in mailbox.mails), "mail")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("https://u:p@mlflow.acme.dev/x?token=t#f", "https://mlflow.acme.dev/x"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://u:p@bucket/run #7?/a.jsonl", "s3://bucket/run #7?/a.jsonl"),
        ("/a/folder", "/a/folder"),
        (None, None),
    ],
)
def test_an_address_is_shown_without_what_opens_it(uri: Any, expected: Any) -> None:
    assert redacted(uri) == expected


def test_a_store_that_does_not_answer_is_named_without_what_opens_it() -> None:
    error = EndpointConnectionError(endpoint_url="http://u:p@s3.acme.dev:1/b?prefix=a@b")
    assert sentence_of(error) == 'Could not connect to the endpoint URL: "http://s3.acme.dev:1/b?prefix=a@b"'
