"""The templates of deploy/ are what AWS accepts, and what the code asks for."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from pipelines.doctor.finding import ACTIONS
from pipelines.ingest.billing.columns import REVIEWED
from pipelines.ingest.billing.options import ADDED

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
TEMPLATE = (DEPLOY / "billing-export.yml").read_text(encoding="utf-8")


class _Cfn(yaml.SafeLoader):
    """Reads !Ref, !Sub and !GetAtt as the text behind them."""


_Cfn.add_multi_constructor("!", lambda loader, _, node: loader.construct_scalar(node))
EXPORT = yaml.load(TEMPLATE, Loader=_Cfn)["Resources"]["Export"]["Properties"]["Export"]


def test_the_container_copies_what_the_package_is_made_of() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    sources = {name for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE) for name in line.split()[:-1]}
    assert [name for name in sources if not (DEPLOY.parent / name).exists()] == []
    wheel = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"]} <= sources
    # The user of the image cannot write there, so each command would compile what it imports (tests/test_image.py).
    assert "trainledger demo" in text
    # A base image without its version is another one tomorrow.
    assert re.findall(r"^(?:ARG PYTHON=|FROM (?!\$|scratch$))(.+)$", text, re.MULTILINE) == [
        "docker.io/library/python:3.11.14-slim-bookworm"
    ]


def test_the_container_keeps_the_aws_services_that_are_called() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    listed = re.search(r"botocore/data .*?\(([\w|-]+)\)", text)
    assert listed
    kept = set(listed[1].split("|"))
    code = "".join(path.read_text(encoding="utf-8") for path in (DEPLOY.parent / "pipelines").rglob("*.py"))
    called = set(re.findall(r"""client\((?:\w+, )?"([\w-]+)\"""", code)) | {
        action.partition(":")[0] for action in ACTIONS
    }
    assert called - kept == set()
    # Where the usual chain of credentials asks.
    assert kept - called == {"sso", "sso-oidc", "signin"}


def test_the_container_runs_commands_of_trainledger_and_of_dagster(tmp_path: Path) -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    entrypoint, command = (
        json.loads(re.search(f"^{word} (.+)$", text, re.MULTILINE)[1]) for word in ("ENTRYPOINT", "CMD")
    )
    for name in ("trainledger", "dagster", "dagster-daemon"):
        (tmp_path / name).write_text(f'#!/bin/sh\nprintf "%s|" {name} "$@"')
        (tmp_path / name).chmod(0o755)

    def runs(*words: str) -> str:
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run([*entrypoint, *words], env={"PATH": path}, capture_output=True, text=True).stdout

    assert runs(*command) == "trainledger|--help|"
    assert runs("query", "select 1 as one") == "trainledger|query|select 1 as one|"
    assert runs("dagster", "api", "execute_run", '{"a": "b c"}') == 'dagster|api|execute_run|{"a": "b c"}|'
    assert runs("dagster-daemon", "run") == "dagster-daemon|run|"


def load(name: str) -> dict:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def test_compose_names_what_is_here() -> None:
    compose = load("compose.yaml")
    services = compose["services"]
    assert all(re.search(r":[\w.-]*\d", service["image"]) for service in services.values())
    named = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert {name for name in named if name.isalpha()} == set(compose["volumes"])
    wanted = {name for service in services.values() for name in service.get("depends_on", ())}
    assert wanted < services.keys()
    # The variables that dagster.yaml reads, and folders that the image has.
    environment = services["daemon"]["environment"]
    database = load("dagster-postgres.yaml")["storage"]["postgres"]["postgres_db"]
    assert {value["env"] for value in database.values() if isinstance(value, dict)} < environment.keys()
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert all(folder in text for folder in (environment["DAGSTER_HOME"], "/home/trainledger/.cache"))


def test_kubernetes_runs_what_the_other_ways_run(tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    of_kind = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    dagster = yaml.safe_load(of_kind["ConfigMap", "trainledger-dagster"]["data"]["dagster.yaml"])
    launcher = dagster.pop("run_launcher")
    # A cluster has room for months side by side, one machine may not.
    assert dagster["concurrency"]["runs"].pop("max_concurrent_runs") > 1
    one_machine = load("dagster.yaml") | load("dagster-postgres.yaml")
    assert one_machine["concurrency"]["runs"].pop("max_concurrent_runs") == 1
    assert dagster == one_machine
    services = load("compose.yaml")["services"]
    for name in ("daemon", "webserver"):
        (container,) = of_kind["Deployment", f"trainledger-{name}"]["spec"]["template"]["spec"]["containers"]
        assert container["command"] == services[name]["entrypoint"]

    k8s = pytest.importorskip("dagster_k8s", reason="needs the kubernetes extra")
    from dagster import DagsterRun
    from dagster._serdes import ConfigurableClassData
    from dagster_k8s.job import construct_dagster_k8s_job

    # A cluster that never gets a request.
    cluster = {"name": "none", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "none", "context": {"cluster": "none", "user": "none"}}
    kubeconfig = {"clusters": [cluster], "contexts": [context], "current-context": "none"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig | {"users": [{"name": "none", "user": {}}]}))
    config = launcher["config"] | {"load_incluster_config": False, "kubeconfig_file": str(tmp_path / "kubeconfig")}
    loaded = ConfigurableClassData(launcher["module"], launcher["class"], yaml.safe_dump(config)).rehydrate(
        as_type=k8s.K8sRunLauncher
    )
    context = loaded.get_container_context_for_run(DagsterRun(job_name="refresh"))
    job_config = context.get_k8s_job_config(None, loaded)
    words = ["dagster", "api", "execute_run"]
    job = construct_dagster_k8s_job(job_config, words, "run", user_defined_k8s_config=context.run_k8s_config).to_dict()
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["service_account_name"] == "trainledger"
    # The image's entrypoint runs them.
    assert (container["command"], container["args"]) == (None, words)
    mounted = {mount["mount_path"] for mount in container["volume_mounts"]}
    assert mounted == {"/dagster/dagster.yaml", "/config", "/home/trainledger/.cache"}
    secrets = {
        one["name"]: one["value_from"]["secret_key_ref"]["name"] for one in container["env"] if one["value_from"]
    }
    assert secrets == {"DAGSTER_PG_PASSWORD": "trainledger-postgres"}


def test_helm_runs_what_the_kubernetes_example_runs() -> None:
    values = load("helm-values.yaml")
    example = {
        (one["kind"], one["metadata"]["name"]): one
        for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    }
    dagster = yaml.safe_load(example["ConfigMap", "trainledger-dagster"]["data"]["dagster.yaml"])
    launcher, wanted = values["runLauncher"]["config"]["k8sRunLauncher"], dagster["run_launcher"]["config"]
    # The chart mounts dagster.yaml by itself.
    for ours, theirs in (("volumes", "volumes"), ("volumeMounts", "volume_mounts")):
        assert launcher[ours] == [one for one in wanted[theirs] if one["name"] != "dagster"]
    assert (launcher["resources"], launcher["securityContext"]) == (wanted["resources"], wanted["security_context"])
    runs, pools = values["concurrency"]["runs"], values["concurrency"]["pools"]
    assert dagster["concurrency"] == {
        "runs": {"max_concurrent_runs": runs["maxConcurrentRuns"]},
        "pools": {"default_limit": pools["defaultLimit"], "granularity": pools["granularity"]},
    }
    assert values["retention"]["schedule"]["purgeAfterDays"] == dagster["retention"]["schedule"]["purge_after_days"]
    monitoring = values["dagsterDaemon"]["runMonitoring"]
    assert dagster["run_monitoring"] == {
        "enabled": monitoring["enabled"],
        "start_timeout_seconds": monitoring["startTimeoutSeconds"],
        "cancel_timeout_seconds": monitoring["cancelTimeoutSeconds"],
    }
    environment = example["ConfigMap", "trainledger-environment"]["data"]
    assert values["extraManifests"][0]["data"].items() <= environment.items()
    database = values["postgresql"]
    assert database["postgresqlHost"] == environment["DAGSTER_PG_HOST"]
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    images = [deployment["image"], values["dagsterWebserver"]["image"], values["dagsterDaemon"]["image"]]
    assert {f"{image['repository']}:{image['tag']}" for image in images} == {wanted["job_image"]}


def test_cloudformation_accepts_the_template() -> None:
    from cfnlint.api import ManualArgs, lint

    found = lint(TEMPLATE, config=ManualArgs(regions=["us-east-1"]))
    assert [f"line {match.linenumber}: {match.rule.id} {match.message}" for match in found] == []


def test_the_export_selects_every_column_we_read() -> None:
    selected = columns()
    assert len(selected) == len(set(selected))
    with REVIEWED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["raw_table"] == "aws_cur_line_item"]
    missing = []
    for row in rows:
        # A column may also come under another name, or in a map.
        names = [row["column_name"], *(alias.partition("[")[0] for alias in row["aliases"].split("|"))]
        if not set(names) & set(selected):
            missing.append(row["column_name"])
    assert missing == []
    # Distinguishes a CUR 2.0 export from the others (facts aws-billing 1).
    assert "bill_payer_account_name" in selected
    for start in ADDED.values():
        assert any(name.startswith(start) for name in selected), start


def columns() -> list[str]:
    found = re.fullmatch(r"SELECT (.+) FROM COST_AND_USAGE_REPORT", EXPORT["DataQuery"]["QueryStatement"])
    assert found
    return [name.strip() for name in found[1].split(",")]


def test_the_export_is_set_up_as_the_doctor_wants_it() -> None:
    from pipelines.doctor.aws import NEEDED

    settings = EXPORT["DataQuery"]["TableConfigurations"]["COST_AND_USAGE_REPORT"]
    assert NEEDED.items() <= settings.items()
    # AWS takes the values as text (facts aws-billing 1.2).
    assert all(isinstance(value, str) for value in settings.values())


def test_the_policy_grants_what_the_doctor_may_miss_and_no_more() -> None:
    granted: set[str] = set()
    for statement in json.loads((DEPLOY / "iam-policy.json").read_text(encoding="utf-8"))["Statement"]:
        actions = statement["Action"]
        granted |= {actions} if isinstance(actions, str) else set(actions)
    # A large file that is given up half-way is taken back.
    assert granted == {*ACTIONS, "s3:AbortMultipartUpload"}
    assert not any("*" in action for action in granted)
