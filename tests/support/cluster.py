"""A standalone Spark cluster on loopback, and an S3 server that records who reads what."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

# Where the processes of a cluster log.
LOG = "cluster.log"
_OWNER = re.compile(r"Credential=([^/]+)/")
# Hides a folder of this machine from a process, as if it ran on another one.
_ELSEWHERE = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


class Request(NamedTuple):
    """A request to the S3 server: the key id it was signed with, and the bytes of the answer."""

    owner: str
    method: str
    path: str
    size: int


@contextmanager
def cluster(
    logs: Path, workers: int = 1, hidden: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The URL of a cluster whose workers, of one core and 1 GB each, do not see the folder `hidden`."""
    variables = {**os.environ, "SPARK_DAEMON_MEMORY": "128m", **(environment or {})}
    with _processes(logs, variables) as start:
        start("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = "spark://" + _logged(logs / LOG, "Starting Spark master at spark://")
        for number in range(workers):
            start(*_worker(url, logs / f"work-{number}"), prefix=(*_ELSEWHERE, str(hidden)) if hidden else ())
        _logged(logs / LOG, "Registering worker", workers)
        yield url


@contextmanager
def another_worker(url: str, logs: Path) -> Iterator[None]:
    """One worker more of a cluster."""
    with _processes(logs, {**os.environ, "SPARK_DAEMON_MEMORY": "128m"}) as start:
        start(*_worker(url, logs / "work-more"))
        yield


@contextmanager
def _processes(logs: Path, variables: Mapping[str, str]) -> Iterator[Callable[..., None]]:
    """Starts Spark's own processes, which write into one log and end with the block."""
    import pyspark

    command = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    started: list[subprocess.Popen[bytes]] = []
    with (logs / LOG).open("ab") as output:

        def start(*arguments: str, prefix: Iterable[str] = ()) -> None:
            line = [*prefix, command, *arguments]
            started.append(subprocess.Popen(line, stdout=output, stderr=output, env=dict(variables), cwd=logs))

        try:
            yield start
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(timeout=30)


def _worker(url: str, folder: Path) -> list[str]:
    place = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(folder)]
    return ["org.apache.spark.deploy.worker.Worker", url, *place, "--cores", "1", "--memory", "1g"]


@contextmanager
def recorded_store(denied: Collection[Callable[[Request], bool]] = ()) -> Iterator[tuple[str, list[Request]]]:
    """The URL of an empty S3 server on loopback and the requests it gets; those that a rule denies it refuses."""
    from moto.backends import get_backend
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    for backend in get_backend("s3").values():
        backend["aws"].reset()
    requests: list[Request] = []
    application = DomainDispatcherApplication(create_backend_app)

    def recording(environ: dict[str, Any], answer: Callable[..., Any]) -> Iterable[bytes]:
        owner = _OWNER.search(environ.get("HTTP_AUTHORIZATION", ""))
        name, method, path = owner[1] if owner else "", environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if any(rule(Request(name, method, path, 0)) for rule in denied):
            answer("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        body = b"".join(application(environ, answer))
        requests.append(Request(name, method, path, len(body)))
        return [body]

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, recording, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()


def s3a_jar(folder: Path) -> Path:
    """A jar that reads and writes `s3a://` on such a server; the wheel of pyspark has none."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    source = Path(__file__).with_name("ObjectStore.java")
    subprocess.run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(folder / "classes"), str(source)], check=True)
    jar = folder / "s3a.jar"
    subprocess.run(["jar", "--create", "--file", str(jar), "-C", str(folder / "classes"), "."], check=True)
    return jar


def workers_of(process: int) -> list[int]:
    """The processes of the cluster's workers that a process started and that are alive."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(child) for file in children for child in file.read_text().split()]
    return [child for child in found if b"worker.Worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _logged(log: Path, words: str, times: int = 1) -> str:
    """What follows the words in the log, as soon as they are there so often."""
    for _ in range(1000):
        text = log.read_text(errors="replace")
        if text.count(words) >= times:
            return text.partition(words)[2].partition("\n")[0].strip()
        time.sleep(0.2)
    raise TimeoutError(f"no {words!r} in {log}: {log.read_text(errors='replace')[-500:]}")
