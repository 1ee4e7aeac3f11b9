"""The recorder of a server: a real HTTP server under load, read by the pipeline as it was recorded."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.imds import metadata_service

from pipelines.config.sources import ServingSource
from pipelines.ingest.serving.records import SERVER, TRAFFIC, ServingRecords
from pipelines.ingest.serving.sources import read_serving

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "recorder"))

from trainledger_recorder import ServingRecorder

NOWHERE = "http://127.0.0.1:9"
REQUESTS, INPUT, CACHED, OUTPUT = 200, 12, 5, 7


def read(folder: Path) -> ServingRecords:
    return read_serving([ServingSource(name="servers", location=str(folder))])


class Quick(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def model_server(recorder: ServingRecorder) -> Quick:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with recorder.request() as request:
                request.input_tokens, request.cached_input_tokens = INPUT, CACHED
                request.first_token()
                time.sleep(0.002)
                request.output_tokens = OUTPUT
            body = b"answer"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Quick(("127.0.0.1", 0), Handler)


def test_a_server_under_load_is_read_to_the_token(tmp_path: Path) -> None:
    """200 requests over 8 clients, and a quiet time after them: every token counts once, and no warning."""
    with metadata_service() as imds, ServingRecorder("chat", tmp_path, model="m", every_seconds=0.1, imds=imds) as kept:
        server = model_server(kept)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        with ThreadPoolExecutor(8) as clients:
            assert {*clients.map(lambda _: urlopen(address).read(), range(REQUESTS))} == {b"answer"}
        server.shutdown()
        server.server_close()
        time.sleep(0.35)
    found = read(tmp_path)
    counted = found.tables[TRAFFIC].select("request_count", "input_tokens", "cache_read_tokens", "output_tokens")
    assert counted.sum().rows() == [(REQUESTS, REQUESTS * INPUT, REQUESTS * CACHED, REQUESTS * OUTPUT)]
    assert found.tables[TRAFFIC]["error_count"].sum() == 0
    assert found.tables[TRAFFIC]["itl_p90_seconds"].max() >= 0.002 / (OUTPUT - 1)
    assert found.tables[TRAFFIC]["is_quiet"].to_list()[-1]
    assert found.tables[SERVER]["resource_id"].str.starts_with("i-").to_list() == [True]
    assert found.tables[SERVER]["is_end_inferred"].to_list() == [False]
    assert found.warnings == []


def test_a_handler_that_fails_is_an_error(tmp_path: Path) -> None:
    with ServingRecorder("chat", tmp_path, model="m", resource="i-1") as kept:
        with pytest.raises(ZeroDivisionError), kept.request():
            _ = 1 / 0
        time.sleep(0.01)
    assert read(tmp_path).tables[TRAFFIC].select("request_count", "error_count").sum().rows() == [(1, 1)]


def test_an_unknown_instance_stops_no_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), ServingRecorder("chat", tmp_path, model="m", imds=NOWHERE) as kept:
        with kept.request() as request:
            request.output_tokens = 3
        time.sleep(0.05)
    assert "set `resource`" in caplog.text
    found = read(tmp_path)
    assert found.tables[TRAFFIC]["output_tokens"].sum() == 3
    assert any("no start" in warning for warning in found.warnings)


def test_texts_of_requests_are_never_recorded(tmp_path: Path) -> None:
    with ServingRecorder("chat", tmp_path, model="m", resource="i-1"):
        time.sleep(0.01)
    lines = [json.loads(line) for file in tmp_path.rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["server_started", "traffic", "server_stopped"]


@pytest.mark.parametrize("ending", ["recorder.close(); recorder.close()", "pass"], ids=["close", "exit"])
@pytest.mark.parametrize("requests", [1, 0])
def test_a_server_records_without_a_with_block(tmp_path: Path, ending: str, requests: int) -> None:
    """The first request starts it; its end, or that of the process, ends it once."""
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).resolve().parents[2] / "recorder")!r})
from trainledger_recorder import ServingRecorder
recorder = ServingRecorder("chat", {str(tmp_path)!r}, model="m", resource="i-1")
for _ in range({requests}):
    with recorder.request() as request:
        request.output_tokens = 3
time.sleep(0.01)
{ending}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    lines = [json.loads(line) for file in tmp_path.rglob("*.jsonl") for line in file.read_text().splitlines()]
    # Nothing was started that never served and was never closed.
    is_recorded = requests > 0 or ending != "pass"
    assert sorted(line["event"] for line in lines) == is_recorded * ["server_started", "server_stopped", "traffic"]
    assert sum(line.get("output_tokens", 0) for line in lines) == 3 * requests
