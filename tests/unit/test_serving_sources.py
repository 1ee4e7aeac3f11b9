"""Servers and traffic as the kinds of [[serving]] record them; expected counts are added up by hand in each test."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.bills import write_events

from pipelines.base.aws import aws_session
from pipelines.base.errors import SourceError
from pipelines.config.settings import Settings, load_settings
from pipelines.config.sources import ServingServer, ServingSource
from pipelines.doctor.examine import examine_serving
from pipelines.ingest.serving import bedrock_log
from pipelines.ingest.serving.records import SERVER, TRAFFIC, ServingRecords
from pipelines.ingest.serving.sources import read_serving, serving_fingerprint
from pipelines.models.records import RECORDS
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.storage import Object
from pipelines.warehouse.storage_local import LocalStore

SHARED = Path(__file__).parents[3] / "shared" / "data" / "serving"
COUNTS = ("request_count", "input_tokens", "cache_read_tokens", "output_tokens")


def at(clock: str) -> str:
    return f"2026-07-01T{clock}:00Z"


def moment(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-07-01T{clock}:00")


def started(clock: str, **fields: Any) -> dict[str, Any]:
    machine = {"model": "m", "resource": "i-1"}
    return {"event": "server_started", "server_id": "s", "at": at(clock), **machine, **fields}


def traffic(begun: str, ended: str, requests: int, output: int = 0, **fields: Any) -> dict[str, Any]:
    counts = {"requests": requests, "input_tokens": 0, "output_tokens": output}
    return {"event": "traffic", "server_id": "s", "from": at(begun), "to": at(ended), **counts, **fields}


def stopped(clock: str) -> dict[str, Any]:
    return {"event": "server_stopped", "server_id": "s", "at": at(clock)}


def read(folder: Path, *lines: dict[str, Any] | str) -> ServingRecords:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "servers.jsonl").write_text(text)
    return read_serving([ServingSource(name="servers", location=str(folder))])


def spans(found: ServingRecords, *columns: str) -> list[tuple[Any, ...]]:
    return found.tables[TRAFFIC].select("started_at", "ended_at", *columns).rows()


def test_traffic_covers_the_uptime_and_shows_where_nothing_is_recorded(tmp_path: Path) -> None:
    found = read(
        tmp_path, started("10:00"), traffic("10:10", "10:20", 5, 70), traffic("10:20", "10:30", 0), stopped("10:40")
    )
    assert spans(found, "is_quiet", "output_tokens") == [
        (moment("10:00"), moment("10:10"), None, None),
        (moment("10:10"), moment("10:20"), False, 70),
        (moment("10:20"), moment("10:30"), True, 0),
        (moment("10:30"), moment("10:40"), None, None),
    ]
    assert found.warnings == []


def test_a_record_over_the_hour_keeps_its_sum(tmp_path: Path) -> None:
    """10 tokens over 3 hours, 3.33 an hour: the cuts are at 3 and 6."""
    found = read(tmp_path, started("10:00"), traffic("10:00", "13:00", 1, 10), stopped("13:00"))
    assert [row[2] for row in spans(found, "output_tokens")] == [3, 3, 4]
    assert [row[2] for row in spans(found, "request_count")] == [0, 0, 1]


def test_neighbors_of_one_hour_and_state_are_one_row(tmp_path: Path) -> None:
    """Means by time: (1 x 10 + 4 x 20) / 30 = 3 requests at a time; of percentiles the worse."""
    found = read(
        tmp_path,
        started("10:00"),
        traffic("10:00", "10:10", 2, 20, running=1, ttft_p90=0.5),
        traffic("10:10", "10:30", 3, 30, running=4, ttft_p90=0.25),
        stopped("10:30"),
    )
    assert spans(found, *COUNTS, "running_count", "ttft_p90_seconds") == [
        (moment("10:00"), moment("10:30"), 5, 0, 0, 50, 3.0, 0.5)
    ]


def test_a_server_that_restarts_has_two_uptimes(tmp_path: Path) -> None:
    """The first stop is not recorded, so it ends with its last traffic; the stop is of the second start."""
    found = read(tmp_path, started("10:00"), traffic("10:00", "10:20", 1, 5), started("11:00"), stopped("11:30"))
    ups = found.tables[SERVER].select("started_at", "ended_at", "is_end_inferred").rows()
    assert ups == [(moment("10:00"), moment("10:20"), True), (moment("11:00"), moment("11:30"), False)]


def test_the_same_file_delivered_twice_counts_once(tmp_path: Path) -> None:
    lines = (started("10:00"), traffic("10:00", "10:30", 4, 40), stopped("10:30"))
    once = read(tmp_path, *lines)
    (tmp_path / "again.jsonl.gz").write_bytes(gzip.compress((tmp_path / "servers.jsonl").read_bytes()))
    twice = read(tmp_path, *lines)
    assert twice.tables[TRAFFIC].equals(once.tables[TRAFFIC])
    assert twice.tables[SERVER].equals(once.tables[SERVER])


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        (
            traffic("10:00", "10:30", 1, -5),
            "key 'output_tokens': write a number greater than or equal to 0. Until then it is skipped.",
        ),
        (
            traffic("10:00", "10:30", 1, 1 << 62),
            "key 'output_tokens': write a number less than or equal to 1000000000000000.",
        ),
        (traffic("10:30", "10:00", 1, 5), "write a `to` that is after `from`"),
        ('{"event": "prompt", "server_id": "s", "text": "secret words"}', "key 'event': write 'server_started', "),
        ('{"event": "traffic", "server_id": "s"', "it is not JSON; write it whole"),
        (
            traffic("10:00", "10:30", 1, 5) | {"from": "2026-07-01T10:00:00"},
            "key 'from': write a time with its zone, such as ",
        ),
        (
            traffic("10:00", "10:30", 1, 5) | {"from": "1970-01-01T00:00:05Z"},
            "the time is 1970-01-01 00:00:05+00:00, before 2006",
        ),
        (
            traffic("10:00", "10:30", 1, 5) | {"to": "9999-12-31T10:00:00Z"},
            "the time is 9999-12-31 10:00:00+00:00, which is in the future",
        ),
    ],
    ids=[
        "negative tokens",
        "many tokens",
        "backwards",
        "a prompt",
        "cut short",
        "no zone",
        "a clock never set",
        "a clock far ahead",
    ],
)
def test_a_wrong_line_is_skipped_with_a_warning(tmp_path: Path, line: Any, warning: str) -> None:
    found = read(tmp_path, started("10:00"), line, stopped("11:00"))
    assert len(found.warnings) == 1
    assert warning in found.warnings[0] and "line 2" in found.warnings[0]
    assert "secret" not in found.warnings[0]
    assert spans(found, "output_tokens") == [(moment("10:00"), moment("11:00"), None)]


def test_a_file_that_is_cut_takes_no_other_along(tmp_path: Path) -> None:
    """The packed log of a second server is cut; the first has its hour, and what was read of the second counts."""
    packed = gzip.compress(
        "".join(json.dumps(line | {"server_id": "t"}) + "\n" for line in (started("10:00"),)).encode()
    )
    (tmp_path / "other.jsonl.gz").write_bytes(packed[:-9])
    found = read(tmp_path, started("10:00"), traffic("10:00", "11:00", 4, 40), stopped("11:00"))
    (warning,) = (one for one in found.warnings if "other.jsonl.gz" in one)
    assert "is not a complete gzip file" in warning and warning.endswith("What follows in the file is not counted.")
    assert found.tables[TRAFFIC]["output_tokens"].sum() == 40


@pytest.mark.parametrize("kind", ["events", "bedrock_log", "vllm", "cloudwatch"])
def test_a_file_that_storage_does_not_give_stops_the_reading(
    tmp_path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder takes the place of the file once it was listed: the next build would not know that it was left out."""
    name = {"cloudwatch": "000033334444/us-east-1/a.json", "vllm": "s/20260701T100000Z.txt"}.get(kind, "a.jsonl")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("")
    listed = LocalStore.list

    def list_and_replace(store: LocalStore, prefix: str = "") -> list[Object]:
        found = listed(store, prefix)
        (tmp_path / name).unlink()
        (tmp_path / name).mkdir()
        return found

    monkeypatch.setattr(LocalStore, "list", list_and_replace)
    with pytest.raises(SourceError, match="Is a directory; check the name"):
        read_serving([ServingSource(name="mine", kind=kind, location=str(tmp_path))])


def test_counters_that_are_exported_twice_count_once(tmp_path: Path) -> None:
    found = read(
        tmp_path, started("10:00"), traffic("10:00", "10:30", 4, 40), traffic("10:10", "10:40", 4, 40), stopped("10:40")
    )
    assert found.tables[TRAFFIC]["output_tokens"].sum() == 40
    assert "overlaps" in found.warnings[0]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert "no start" in read(tmp_path, traffic("10:00", "10:30", 4, 40)).warnings[0]
    assert "neither traffic nor a stop" in read(tmp_path, started("10:00")).warnings[0]
    late = read(tmp_path, started("10:00"), stopped("10:30"), traffic("10:40", "10:50", 4, 40))
    assert "while it was not up" in late.warnings[0]


def scrape(folder: Path, clock: str, start: float | None, output: int, prompt: int = 0, more: str = "") -> None:
    text = f'vllm:generation_tokens_total{{model_name="m"}} {output}.0\n'
    text += f'vllm:prompt_tokens_total{{model_name="m"}} {prompt}\n'
    text += f'vllm:request_success_total{{finished_reason="stop",model_name="m"}} {output // 10}\n'
    text += f"process_start_time_seconds {start}\n" if start else ""
    (folder / "s").mkdir(exist_ok=True)
    (folder / "s" / f"20260701T{clock}00Z.txt").write_text(f"# HELP x\n{text}{more}")


def scraped(folder: Path, kind: str = "vllm", **server: Any) -> ServingRecords:
    declared = (ServingServer(server_id="s", resource="i-1", **server),)
    return read_serving(
        [ServingSource.model_validate(dict(name="v", kind=kind, location=str(folder), servers=declared))]
    )


def epoch(clock: str) -> float:
    return datetime.fromisoformat(at(clock)).timestamp()


def test_a_process_that_restarts_counts_from_its_own_start(tmp_path: Path) -> None:
    """100 before the first scrape, 50 to the second; 30 of a new process since 10:25: 180. What the first one served
    between 10:20 and 10:25 is unknown."""
    scrape(tmp_path, "1010", epoch("10:00"), 100)
    scrape(tmp_path, "1020", epoch("10:00"), 150)
    scrape(tmp_path, "1030", epoch("10:25"), 30)
    found = scraped(tmp_path)
    assert spans(found, "output_tokens") == [
        (moment("10:00"), moment("10:20"), 150),
        (moment("10:20"), moment("10:25"), None),
        (moment("10:25"), moment("10:30"), 30),
    ]


def test_a_counter_that_falls_shows_a_restart(tmp_path: Path) -> None:
    """Without a start time the first sample is only a start: 50, then 30 since the restart."""
    scrape(tmp_path, "1010", None, 100)
    scrape(tmp_path, "1020", None, 150)
    scrape(tmp_path, "1030", None, 30)
    found = scraped(tmp_path).tables[TRAFFIC]
    assert found["output_tokens"].sum() == 80
    assert found["started_at"].min() == moment("10:10")


def test_a_counter_that_falls_without_a_restart_is_unknown(tmp_path: Path) -> None:
    """100 before the first scrape; 70 of the same process cannot follow 150, and 90 follow it by 20."""
    for clock, output in (("1010", 100), ("1020", 150), ("1030", 70), ("1040", 90)):
        scrape(tmp_path, clock, epoch("10:00"), output)
    found = scraped(tmp_path)
    assert spans(found, "output_tokens")[1:] == [
        (moment("10:20"), moment("10:30"), None),
        (moment("10:30"), moment("10:40"), 20),
    ]
    assert "go backwards from 2026-07-01 10:20:00" in found.warnings[0]


def test_a_clock_that_is_ahead_has_a_warning_and_no_tokens_are_made_up(tmp_path: Path) -> None:
    """The server starts at 10:30 by its clock and is scraped at 10:10: its first 100 are of an unknown time."""
    scrape(tmp_path, "1010", epoch("10:30"), 100)
    scrape(tmp_path, "1020", epoch("10:30"), 150)
    found = scraped(tmp_path)
    assert spans(found, "output_tokens") == [(moment("10:10"), moment("10:20"), 50)]
    assert len(found.warnings) == 1 and "correct one of the clocks" in found.warnings[0]


def test_a_server_that_serves_another_model_is_another_start(tmp_path: Path) -> None:
    scrape(tmp_path, "1010", epoch("10:00"), 100)
    scrape(tmp_path, "1020", epoch("10:12"), 30)
    path = tmp_path / "s" / "20260701T102000Z.txt"
    path.write_text(path.read_text().replace('"m"', '"m-2"'))
    found = scraped(tmp_path)
    assert found.tables[SERVER].select("model", "started_at").rows() == [
        ("m", moment("10:00")),
        ("m-2", moment("10:12")),
    ]
    assert sorted(found.tables[TRAFFIC].select("model", "output_tokens").rows()) == [("m", 100), ("m-2", 30)]


def test_tokens_of_tgi_are_sums_of_its_histograms(tmp_path: Path) -> None:
    """Names as in the reference of Text Generation Inference; no recorded scrape is at hand. 18,000 - 8,000 tokens in,
    12,500 - 2,500 out. The 9th of 10 requests lies at 0.05 + 0.05 x 4/5 a token."""
    for clock, requests, given, written in (("1000", 0, 8000, 2500), ("1010", 10, 18000, 12500)):
        (tmp_path / "s").mkdir(exist_ok=True)
        (tmp_path / "s" / f"20260701T{clock}00Z.txt").write_text(
            f"tgi_request_success {requests}\ntgi_queue_size 3\ntgi_batch_current_size 5\n"
            f"tgi_request_input_length_sum {given}\ntgi_request_generated_tokens_sum {written}\n"
            f'tgi_request_mean_time_per_token_duration_bucket{{le="0.05"}} {requests // 2}\n'
            f'tgi_request_mean_time_per_token_duration_bucket{{le="0.1"}} {requests}\n'
        )
    found = scraped(tmp_path, "tgi", model="llama")
    columns = ("model", *COUNTS, "waiting_count", "itl_p90_seconds")
    assert spans(found, *columns) == [
        (moment("10:00"), moment("10:10"), "llama", 10, 10000, 0, 10000, 3.0, pytest.approx(0.09))
    ]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded files of other projects are not here")
def test_neuron_monitor_shows_the_machine_and_when_it_was_idle(tmp_path: Path) -> None:
    """Of the file: core 0 of a trn1n.32xlarge is at work by 0.1 and has completed nothing, since 1708338939.5. Ten
    minutes later no core is at work, twenty minutes later too: only the last ten minutes are idle."""
    busy = (SHARED / "neuron_monitor_prometheus_trn1n.txt").read_text()
    idle = "".join(line + "\n" for line in busy.splitlines() if "neuroncore_utilization_ratio{" not in line)
    (tmp_path / "s").mkdir()
    for clock, text in (("1100", busy), ("1110", idle), ("1120", idle)):
        (tmp_path / "s" / f"20240219T{clock}00Z.prom").write_text(text)
    found = read_serving([ServingSource(name="n", kind="neuron_monitor", location=str(tmp_path))])
    machine = ("resource_id", "instance_type", "region_id", "evidence", "engine")
    assert found.tables[SERVER].select(machine).rows() == [
        ("i-09db9b55e0095612f", "trn1n.32xlarge", "us-east-1", "imds", None)
    ]
    rows = found.tables[TRAFFIC].select("ended_at", "is_quiet", "output_tokens").rows()
    assert [(ended_at.strftime("%H:%M"), *rest) for ended_at, *rest in rows] == [
        ("11:00", False, None),
        ("11:10", False, None),
        ("11:20", True, None),
    ]
    assert found.warnings == []


def test_a_monitor_of_cores_takes_no_part_of_a_machine_that_a_server_holds(tmp_path: Path) -> None:
    """Two servers that hold all of i-0a have half each: its model would cost half."""
    busy = 'neuroncore_utilization_ratio{instance_id="i-0a",instance_type="inf2.xlarge",neuroncore="0"} 0.5\n'
    for clock in ("1000", "1010"):
        (tmp_path / "n" / "cores-1").mkdir(exist_ok=True, parents=True)
        (tmp_path / "n" / "cores-1" / f"20260701T{clock}00Z.txt").write_text(busy)
    started = {"event": "server_started", "server_id": "s", "at": "2026-07-01T10:00:00Z", "model": "m"}
    write_events(tmp_path / "e", [{**started, "resource": "i-0a"}])
    cores = ServingSource(name="cores", kind="neuron_monitor", location=str(tmp_path / "n"))
    found = read_serving([cores, ServingSource(name="servers", location=str(tmp_path / "e"))])
    assert found.tables[SERVER]["server_id"].to_list() == ["s"]
    assert found.tables[TRAFFIC]["server_id"].to_list() == []
    assert found.warnings[-1] == (
        "Server cores-1 monitors a machine that a server of another [[serving]] source holds; only the other counts. "
        "Remove it from cores."
    )


def test_cached_tokens_are_apart_and_percentiles_are_interpolated(tmp_path: Path) -> None:
    """Of 100 prompt tokens 64 were cached. 10 requests: 5 below 1 s, 5 from 1 to 2 s; the 9th lies at 1 + 4/5."""
    buckets = "".join(
        f'vllm:time_to_first_token_seconds_bucket{{le="{le}",model_name="m"}} {count}\n'
        for le, count in (("1.0", 5), ("2.0", 10), ("+Inf", 10))
    )
    scrape(tmp_path, "1010", epoch("10:00"), 100, 100, buckets + 'vllm:prefix_cache_hits_total{model_name="m"} 64\n')
    ((*_, uncached, cached, ttft),) = spans(scraped(tmp_path), "input_tokens", "cache_read_tokens", "ttft_p90_seconds")
    assert (uncached, cached, ttft) == (36, 64, pytest.approx(1.8))


def test_a_scrape_that_is_delivered_twice_counts_once(tmp_path: Path) -> None:
    scrape(tmp_path, "1010", epoch("10:00"), 100)
    scrape(tmp_path, "1020", epoch("10:00"), 150)
    packed = tmp_path / "copy" / "s" / "20260701T101000Z.txt.gz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(gzip.compress((tmp_path / "s" / "20260701T101000Z.txt").read_bytes()))
    found = scraped(tmp_path)
    assert found.tables[TRAFFIC]["output_tokens"].sum() == 150 and found.warnings == []


@pytest.mark.parametrize("content", ["<html>503 Service Unavailable</html>", "vllm:generation_tokens_total NaN"])
def test_a_scrape_without_counts_is_covered_by_the_next(tmp_path: Path, content: str) -> None:
    """Counters of 100 at 10:10 and 150 at 10:30: 50 were served in between, whatever the scrape at 10:20 has."""
    scrape(tmp_path, "1010", epoch("10:00"), 100)
    (tmp_path / "s" / "20260701T102000Z.txt").write_text(content)
    scrape(tmp_path, "1030", epoch("10:00"), 150)
    found = scraped(tmp_path)
    assert found.tables[TRAFFIC]["output_tokens"].sum() == 150
    assert [("no metric" in one and "skipped" in one) for one in found.warnings] == [True] * ("<" in content)


def test_a_process_whose_clock_was_never_set_has_no_known_start(tmp_path: Path) -> None:
    """It started 5 s after 1970 by its clock: what it served before its first scrape is unknown."""
    scrape(tmp_path, "1010", 5.0, 100)
    scrape(tmp_path, "1020", 5.0, 150)
    assert spans(scraped(tmp_path), "output_tokens") == [(moment("10:10"), moment("10:20"), 50)]


def test_a_process_that_is_exported_under_two_names_counts_once(tmp_path: Path) -> None:
    """Two API servers in front of one engine show its counters: 100 tokens, not 200."""
    for name in ("api-1", "api-2"):
        (tmp_path / name).mkdir()
        scrape(tmp_path, "1010", epoch("10:00"), 100)
        (tmp_path / "s" / "20260701T101000Z.txt").rename(tmp_path / name / "20260701T101000Z.txt")
    servers = tuple(ServingServer(server_id=name, resource="i-1") for name in ("api-1", "api-2"))
    found = read_serving([ServingSource(name="v", kind="vllm", location=str(tmp_path), servers=servers)])
    assert found.tables[TRAFFIC]["output_tokens"].sum() == 100 and "api-1 counts" in found.warnings[0]


def test_prometheus_answers_are_read_like_scrapes(tmp_path: Path) -> None:
    times = [epoch("10:00"), epoch("10:10")]
    series = [
        {
            "metric": {"__name__": name, "instance": "s", "model_name": "m"},
            "values": [[times[0], "5"], [times[1], last]],
        }
        for name, last in (("vllm:generation_tokens_total", "65"), ("vllm:prompt_tokens_total", "25"))
    ]
    (tmp_path / "range.json").write_text(json.dumps({"status": "success", "data": {"result": series}}))
    wrong = {"list": series[0] | {"metric": series[0]["metric"] | {"instance": []}}}
    wrong["later"] = series[0] | {"values": [[times[0], "5"], [253402300000, "9"]]}
    for name, one in wrong.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"status": "success", "data": {"result": [one]}}))
    found = scraped(tmp_path)
    assert spans(found, "input_tokens", "output_tokens") == [(moment("10:00"), moment("10:10"), 20, 60)]
    for name, fault in (("later", "the time 9999-12-31 23:46:40, which is in the future"), ("list", "a label that is")):
        assert any(f"{name}.json has {fault}" in warning for warning in found.warnings), found.warnings


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded files of other projects are not here")
def test_a_real_scrape_of_vllm(tmp_path: Path) -> None:
    """Of the file: started 1718140558.3, 1 request, 5 prompt and 7 generated tokens; the cache section is of another
    server, so no prompt token is left that was not cached."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "20240611T220000Z.txt").write_bytes((SHARED / "vllm_metrics_opt125m.txt").read_bytes())
    found = scraped(tmp_path)
    assert found.tables[TRAFFIC].select("request_count", "output_tokens").sum().rows() == [(1, 7)]
    assert found.tables[SERVER]["model"].to_list() == ["facebook/opt-125m"]


def call(clock: str, request: str, **fields: Any) -> dict[str, Any]:
    return {
        "schemaType": "ModelInvocationLog",
        "timestamp": at(clock),
        "accountId": "111122223333",
        "region": "us-east-1",
        "requestId": request,
        "modelId": "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "identity": {"arn": "arn:aws:sts::111122223333:assumed-role/chat/ann"},
        "input": {"inputTokenCount": 12400, "cacheReadInputTokenCount": 40000, "inputBodyJson": {"prompt": "secret"}},
        "output": {"outputTokenCount": 850, "outputBodyJson": {"text": "secret"}},
        **fields,
    }


def logged(folder: Path, *calls: dict[str, Any], **options: Any) -> ServingRecords:
    (folder / "log.json.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, calls)).encode()))
    return read_serving([ServingSource(name="b", kind="bedrock_log", location=str(folder), **options)])


@pytest.mark.parametrize(("count", "counted"), [("85", 85), ("many", 0), (8.5, 0), (-1, 0), (1 << 62, 0), (None, 0)])
def test_a_call_whose_tokens_are_no_count_is_skipped_with_a_warning(tmp_path: Path, count: Any, counted: int) -> None:
    """The 12,400 input tokens of such a call do not count next to unknown output. What is absent is none: 0."""
    found = logged(tmp_path, call("10:05", "a", output={"outputTokenCount": count}))
    is_call = bool(counted or count is None)
    assert found.tables[TRAFFIC]["output_tokens"].to_list() == ([counted] if is_call else [])
    assert any("calls with tokens that are no count" in one for one in found.warnings) is not is_call


def test_calls_are_summed_by_hour_model_and_caller_without_their_texts(tmp_path: Path) -> None:
    """Facts serving V4: calls of 12,400 input, 40,000 cached and 850 output tokens."""
    found = logged(tmp_path, call("10:05", "a"), call("10:55", "b"), call("11:00", "c"))
    rows = found.tables[TRAFFIC].select("started_at", "model", "caller", *COUNTS).rows()
    model, caller = "anthropic.claude-haiku-4-5-20251001-v1:0", "arn:aws:sts::111122223333:assumed-role/chat"
    assert rows == [
        (moment("10:00"), model, caller, 2, 24800, 80000, 1700),
        (moment("11:00"), model, caller, 1, 12400, 40000, 850),
    ]
    assert "secret" not in str(found)


def test_a_call_that_is_delivered_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "first.jsonl").write_text(json.dumps(call("10:05", "a")))
    found = logged(tmp_path, call("10:05", "a"), call("10:06", "b"), call("10:06", "b"))
    assert found.tables[TRAFFIC]["request_count"].to_list() == [2]
    assert "calls that were delivered twice count once (2)." in found.warnings[0]


def test_two_sources_with_the_same_logs_count_a_call_once(tmp_path: Path) -> None:
    """Of a's calls 1 to 3, b has 2 and 3 again, and 4 of its own."""
    for folder, requests in (("a", "123"), ("b", "234")):
        (tmp_path / folder).mkdir()
        calls = [call("10:05", request) for request in requests]
        (tmp_path / folder / "log.jsonl").write_text("\n".join(map(json.dumps, calls)))
    sources = [ServingSource(name=name, kind="bedrock_log", location=str(tmp_path / name)) for name in "ab"]
    found = read_serving(sources)
    assert found.tables[TRAFFIC]["request_count"].sum() == 4
    assert "calls that were delivered twice count once (2)." in found.warnings[0]


def test_a_broken_log_quotes_no_prompt(tmp_path: Path) -> None:
    broken = '{"schemaType": "ModelInvocationLog", "input": "secret words'
    (tmp_path / "log.jsonl").write_text(f"{json.dumps(call('10:05', 'a'))}\n{broken}")
    found = read_serving([ServingSource(name="b", kind="bedrock_log", location=str(tmp_path))])
    assert found.tables[TRAFFIC]["request_count"].to_list() == [1]
    assert "lines that are no invocation are skipped (1); " in found.warnings[0] and "secret" not in str(found)
    (tmp_path / "log.json.gz").write_bytes(gzip.compress(b"secret " * 9)[:-9])
    found = read_serving([ServingSource(name="b", kind="bedrock_log", location=str(tmp_path))])
    assert found.tables[TRAFFIC]["request_count"].to_list() == [1]
    assert "not a complete gzip file" in found.warnings[0] and "secret" not in str(found)


def test_a_log_is_read_in_blocks_of_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bedrock_log, "_BLOCK_BYTES", 700)
    found = logged(tmp_path, *(call("10:05", str(number)) for number in range(9)))
    assert found.tables[TRAFFIC]["request_count"].to_list() == [9]


def metric(name: str, values: dict[str, float], model: str = "us.anthropic.claude-haiku-4-5-20251001-v1:0") -> Any:
    """A result of GetMetricData as AWS documents it; no recorded answer is at hand."""
    return {"Id": "m0", "Label": f"{name} {model}", "Timestamps": [*values], "Values": [*values.values()]}


def answered(folder: Path, *results: Any) -> ServingSource:
    home = folder / "AWSLogs" / "111122223333" / "us-east-1"
    home.mkdir(parents=True)
    (home / "july.json").write_text(json.dumps({"MetricDataResults": results}))
    (home / "again.json").write_text(json.dumps({"MetricDataResults": results}))
    return ServingSource(name="metrics", kind="cloudwatch", location=str(folder))


def test_answers_of_cloudwatch_are_calls_by_hour(tmp_path: Path) -> None:
    """Two periods of 30 minutes are one hour; the answer that is saved twice counts once."""
    source = answered(
        tmp_path,
        metric("Invocations", {at("10:00"): 3.0, at("10:30"): 2.0}),
        metric("InputTokenCount", {at("10:00"): 100.0, at("10:30"): 20.0}),
        metric("OutputTokenCount", {at("10:30"): 7.0}),
        metric("InvocationLatency", {at("10:30"): 812.5}),
        metric("Invocations", {at("11:00"): 1.0}, "arn:aws:bedrock:us-east-1:111122223333:provisioned-model/p1"),
    )
    found = read_serving([source])
    rows = found.tables[TRAFFIC].select("started_at", "region_id", "model", "resource_id", *COUNTS).rows()
    assert rows == [
        (moment("10:00"), "us-east-1", "anthropic.claude-haiku-4-5-20251001-v1:0", None, 5, 120, 0, 7),
        (moment("11:00"), "us-east-1", "p1", "p1", 1, 0, 0, 0),
    ]


def test_an_hour_that_was_still_open_in_an_answer_counts_as_a_later_one_has_it(tmp_path: Path) -> None:
    """The answers are read by name: `july` before `open`, which was saved when the hour had 3 of its 5 calls."""
    source = answered(tmp_path, metric("Invocations", {at("10:00"): 5.0}))
    (folder,) = tmp_path.glob("**/us-east-1")
    (folder / "open.json").write_text(json.dumps({"MetricDataResults": [metric("Invocations", {at("10:00"): 3.0})]}))
    assert read_serving([source]).tables[TRAFFIC]["request_count"].to_list() == [5]


def test_a_cloudwatch_answer_of_another_form_is_skipped_by_name(tmp_path: Path) -> None:
    """The good answer has 4 calls; one is of another form, one is cut within a result, one label has no model."""
    source = answered(tmp_path, metric("Invocations", {at("10:00"): 4.0}))
    (folder,) = tmp_path.glob("**/us-east-1")
    cut = {**metric("Invocations", {at("11:00"): 5.0}), "Values": []}
    unlabeled = {**metric("Invocations", {at("11:00"): 6.0}), "Label": "Invocations"}
    times = {"none": [None], "never": ["9999-12-31T23:00:00Z"]}
    undated = {name: metric("Invocations", {at("11:00"): 7.0}) | {"Timestamps": when} for name, when in times.items()}
    wrong = {"list": [1], "cut": {"MetricDataResults": [cut]}, "label": {"MetricDataResults": [unlabeled]}}
    wrong |= {name: {"MetricDataResults": [one]} for name, one in undated.items()}
    for name, answer in wrong.items():
        (folder / f"{name}.json").write_text(json.dumps(answer))
    found = read_serving([source])
    assert found.tables[TRAFFIC]["request_count"].to_list() == [4]
    skipped = sorted(warning for warning in found.warnings if warning.endswith("It is skipped."))
    assert [Path(warning.split()[0].rstrip(":")).name for warning in skipped] == [
        f"{name}.json" for name in sorted(wrong)
    ]


def test_the_warning_of_a_long_model_id_is_a_sentence(tmp_path: Path) -> None:
    """The id of 70,000 letters is that of a profile, whose model is not declared."""
    source = answered(tmp_path / "cw", metric("Invocations", {at("10:00"): 4.0}, "x" * 70_000))
    (tmp_path / "trainledger.toml").write_text(
        '[warehouse]\nlocation = "warehouse"\n[[billing]]\nname = "payer"\nlocation = "bill"\n'
        f'[[serving]]\nname = "metrics"\nkind = "cloudwatch"\nlocation = "{source.location}"\n'
    )
    warehouse = Warehouse(load_settings(tmp_path / "trainledger.toml"))
    with warehouse.lake.lock():
        RECORDS["serving"](warehouse)
        (warning,) = RECORDS["serving"].warnings(warehouse)
    assert len(warning) < 500 and warning.endswith("add its model to `models` of [[serving]] metrics.")


def test_an_hour_with_a_log_counts_by_its_log(tmp_path: Path) -> None:
    """The log has a call at 10:05, CloudWatch two hours; the second has no log."""
    source = answered(tmp_path / "cw", metric("Invocations", {at("10:00"): 1.0, at("11:00"): 4.0}))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "log.jsonl").write_text(json.dumps(call("10:05", "a")))
    log = ServingSource(name="b", kind="bedrock_log", location=str(tmp_path / "logs"))
    rows = read_serving([source, log]).tables[TRAFFIC].select("started_at", "source_name", "request_count").rows()
    assert rows == [(moment("10:00"), "b", 1), (moment("11:00"), "metrics", 4)]


def test_cloudwatch_is_queried_by_model_and_hour(s3_endpoint: str) -> None:
    client = aws_session().client("cloudwatch", endpoint_url=s3_endpoint)
    since = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for name, minute, value in (("InputTokenCount", 5, 30), ("InputTokenCount", 50, 12), ("Invocations", 5, 2)):
        dimensions = [{"Name": "ModelId", "Value": "amazon.nova-lite-v1:0"}]
        datum = {"MetricName": name, "Dimensions": dimensions, "Timestamp": since + timedelta(minutes=minute)}
        client.put_metric_data(Namespace="AWS/Bedrock", MetricData=[datum | {"Value": value}])
    source = ServingSource(
        name="metrics",
        kind="cloudwatch",
        regions=("us-east-1",),
        first_month=f"{since:%Y-%m}",
        endpoint_url=s3_endpoint,
    )
    found = read_serving([source])
    rows = found.tables[TRAFFIC].select("started_at", "account_id", "model", *COUNTS).rows()
    assert rows == [(since.replace(tzinfo=None), "123456789012", "amazon.nova-lite-v1:0", 2, 42, 0, 0)]
    assert serving_fingerprint(source) == serving_fingerprint(source)
    # What a build read for its plan is not read again.
    answered: dict[str, Any] = {}
    serving_fingerprint(source, answered)
    client.put_metric_data(Namespace="AWS/Bedrock", MetricData=[datum | {"Value": 5}])
    kept = read_serving([source], answered).tables[TRAFFIC]
    assert kept.equals(found.tables[TRAFFIC]) and not kept.equals(read_serving([source]).tables[TRAFFIC])
    assert [finding.status for finding in examine_serving(source)] == ["ok"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"kind": "vllm"}, "`location` is missing"),
        ({"kind": "cloudwatch"}, "`first_month` with `regions`"),
        ({"kind": "cloudwatch", "location": "x", "regions": ["us-east-1"]}, "`first_month` with `regions`"),
    ],
)
def test_a_source_has_what_its_kind_needs(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ServingSource.model_validate({"name": "x", **source})


def test_a_profile_of_two_models_is_refused() -> None:
    kinds = {"kind": "bedrock_log", "location": "x"}
    sources = [{"name": model, "models": {"p": model}, **kinds} for model in ("haiku", "nova")]
    with pytest.raises(ValidationError, match="profile p to two models"):
        Settings.model_validate({"serving": sources})


def test_a_profile_is_its_model(tmp_path: Path) -> None:
    profile = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/a1b2"
    unknown = logged(tmp_path, call("10:05", "a", modelId=profile))
    assert "a1b2 is the id of an inference profile" in unknown.warnings[0]
    known = logged(tmp_path, call("10:05", "a", modelId=profile), models={profile: "haiku"})
    assert known.tables[TRAFFIC]["model"].to_list() == ["haiku"]


def test_lines_that_are_no_call_are_counted(tmp_path: Path) -> None:
    negative, many = (call("10:05", str(count), output={"outputTokenCount": count}) for count in (-1, 1 << 62))
    later = call("10:05", "d", timestamp="9999-12-31T23:00:00Z")
    (tmp_path / "other.jsonl").write_bytes(b"\x1f\x8b\x08\x00cut")
    found = logged(tmp_path, negative, many, {"schemaType": "other"}, later, call("10:05", "c"))
    assert found.tables[TRAFFIC]["request_count"].to_list() == [1]
    assert [re.findall(r"skipped \((\d+)\)", sentence) for sentence in found.warnings] == [["2"], ["3"]]


@pytest.mark.parametrize("label", ['{le="null"}', ""])
def test_a_latency_bucket_without_a_bound_is_no_bucket(tmp_path: Path, label: str) -> None:
    """The tokens of the scrapes still count: 150 - 100."""
    for clock, output in (("1010", 100), ("1020", 150)):
        scrape(tmp_path, clock, epoch("10:10"), output)
        path = tmp_path / "s" / f"20260701T{clock}00Z.txt"
        path.write_text(path.read_text() + f"\nvllm:time_to_first_token_seconds_bucket{label} 3\n")
    assert scraped(tmp_path).tables[TRAFFIC]["output_tokens"].sum() == 50
