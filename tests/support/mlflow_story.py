"""Logs runs to a live MLflow server the way training jobs do; run by the interpreter of the server's environment.

Prints the run ids by what happened to them. Times are given, not taken, so that a test can state what it expects.
"""

import json
import os
import sys
from datetime import UTC, datetime

import mlflow
from mlflow.tracking import MlflowClient


def ms(clock: str) -> int:
    return int(datetime.fromisoformat(f"2026-07-01T{clock}").replace(tzinfo=UTC).timestamp() * 1000)


def main(uri: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(uri)
    experiment = client.create_experiment("finetunes")
    place = {"aws.resource_ids": "i-01", "aws.account_id": "000033334444", "aws.region": "us-west-2"}

    done = client.create_run(experiment, start_time=ms("10:00:00"), run_name="done", tags=place)
    for key, value in {"model": "llama", "seq_len": "4096", "global_batch_size": "256", "dataset": "corp"}.items():
        client.log_param(done.info.run_id, key, value)
    for step, clock, epoch, loss in (
        (100, "10:30:00", 0.5, 3.0),
        (200, "11:00:00", 1.0, 2.5),
        (400, "12:00:00", 2.0, 2.0),
    ):
        client.log_metric(done.info.run_id, "epoch", epoch, ms(clock), step)
        client.log_metric(done.info.run_id, "eval_loss", loss, ms(clock), step)
    client.set_terminated(done.info.run_id, "FINISHED", ms("12:05:00"))

    resumed = client.create_run(experiment, start_time=ms("10:00:00"), tags=place)
    points = ((10, "10:10:00"), (20, "10:20:00"), (10, "13:00:00"), (20, "13:10:00"), (30, "13:20:00"))
    for step, clock in points:
        client.log_metric(resumed.info.run_id, "loss", 1.0, ms(clock), step)
    client.set_terminated(resumed.info.run_id, "FINISHED", ms("13:25:00"))

    deleted = client.create_run(experiment, start_time=ms("09:00:00"))
    client.set_terminated(deleted.info.run_id, "FAILED", ms("09:30:00"))
    client.delete_run(deleted.info.run_id)

    many = client.create_run(experiment, start_time=ms("08:00:00"))
    batch = [mlflow.entities.Metric("loss", 1.0, ms("08:00:00") + step, step) for step in range(300)]
    client.log_batch(many.info.run_id, metrics=batch)

    with mlflow.start_run(experiment_id=experiment) as parent, mlflow.start_run(nested=True) as child:
        pass

    killed = client.create_run(experiment, start_time=ms("10:00:00"))
    ids = {"done": done, "resumed": resumed, "deleted": deleted, "many": many, "parent": parent, "child": child}
    run_ids = {name: run.info.run_id for name, run in ids.items()} | {"killed": killed.info.run_id}
    sys.stdout.write(json.dumps(run_ids) + "\n")
    sys.stdout.flush()
    # As a spot interruption does it: nothing is closed.
    client.log_metric(killed.info.run_id, "loss", 1.0, ms("10:40:00"), 5)
    os.kill(os.getpid(), 9)


main(sys.argv[1])
