"""The Spark session that models run in: of an application of our own, of the platform, or of a Spark Connect server."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pipelines.base.errors import EngineError, UsageError, installing

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from pipelines.config.spark import Spark

# Settings that decide figures, so that no cluster's defaults change one.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    # Products of money keep every place; a result too wide for 38 digits is an error.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    # A folder called billing_period=2026-01 is a name, not a column.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
}
_COST = {
    # Deriving what must hold of a model of many CASEs takes minutes and the whole heap (SPARK-33152).
    "spark.sql.constraintPropagation.enabled": "false",
    # Rows on their way to the driver; Spark before 4.1 leaves them as they are.
    "spark.sql.execution.arrow.compression.codec": "zstd",
}
# Hadoop's default writes a checksum file next to each file.
_FILES = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
_QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# One machine gains nothing from Spark's 200 shuffle partitions.
_LOCAL = {**_LOOPBACK, "spark.sql.shuffle.partitions": "4", "spark.driver.memory": "2g"}
# The client of Spark Connect retries for ten minutes, so its address is tried first; the port is the default one.
_ANSWER_SECONDS, _CONNECT_PORT = 10.0, 15002
# How often a cluster is looked at, and how long its executors may be away before a line states it.
_LOOK_SECONDS, _AWAY_SECONDS = 5.0, 60.0
# Libraries that the client of Spark Connect imports; where one is missing, it ends the process instead of raising.
_CONNECT_PACKAGES = ("grpc", "grpc_status", "zstandard")

_JVM_MESSAGE = re.compile(r"^(?:: |Caused by: )[\w.$]+: (\[.+)$", re.MULTILINE)
_PYTHON_MESSAGE = re.compile(r"^(?:\w+\.)*(\w+Error: .+)$", re.MULTILINE)
_LINE = re.compile(r"(.+)")


_lock = threading.Lock()
_running: list[tuple[Spark, SparkSession]] = []
_opened: WeakSet[SparkSession] = WeakSet()
_interrupted = threading.Event()


def open_session(options: Spark) -> SparkSession:
    """A session with views of its own in the one application of this process, which the first call starts or joins.

    Raises EngineError where Spark does not start or answer, UsageError for a setting that is not the user's to choose.
    """
    if fixed := sorted(_MEANING.keys() & options.conf.keys()):
        raise UsageError(f"[warehouse.spark] sets {fixed[0]}, which would change figures; remove it.")
    if not find_spec("pyspark"):
        raise EngineError(f"Spark is not installed; {installing('spark')}.")
    with warnings.catch_warnings(), _lock:
        # Polars reads what Spark gives; the pandas Spark warns of is never used.
        warnings.simplefilter("ignore", FutureWarning)
        if not _running:
            handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            _running.append((options, _first_session(options)))
            _interrupt_on(handlers)
        known, first = _running[0]
        if known != options:
            raise EngineError(
                f"This process already runs Spark on {known.address}; use {options.address} in another one."
            )
        session = first.newSession()
    if options.is_joined:
        _configure(session, options)
    _opened.add(session)
    return session


def close_session(session: SparkSession) -> None:
    """Release a session; a Spark Connect server keeps its views until then."""
    _opened.discard(session)
    # Any other session's stop() would end the whole application.
    if "connect" in type(session).__module__:
        session.stop()


def is_interrupted() -> bool:
    """Whether a signal stopped the jobs of this process, so that their errors are not failures."""
    return _interrupted.is_set()


def _cancel(session: SparkSession) -> None:
    """End the jobs of a session; all jobs where the application is our own."""
    options, _ = _running[0]
    if options.is_joined:
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()


def _interrupt_on(handlers: Mapping[signal.Signals, Any]) -> None:
    """Have Ctrl-C and SIGTERM end our jobs before `handlers` do what they do.

    The main thread waits for its job even while an exception passes through it. Jobs of others on the cluster go on.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        _interrupted.set()
        # Each by a connection of its own: the main thread's waits for an answer.
        threads = [threading.Thread(target=_cancel, args=(session,), daemon=True) for session in list(_opened)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_ANSWER_SECONDS)
        handlers[signal.Signals(number)](number, frame)

    for number, handler in handlers.items():
        # Python allows handlers in the main thread alone; by default SIGTERM ends the process and its application.
        if callable(handler) and threading.current_thread() is threading.main_thread():
            signal.signal(number, interrupt)


def _configure(session: SparkSession, options: Spark) -> None:
    """Set in a session what the application it belongs to was not started with."""
    from pyspark.errors import PySparkException

    for name, value in {**options.conf, **_COST, **_MEANING}.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise EngineError(
                f"{name} cannot be set on a running Spark ({first_line(error)}); set it where {options.address} is "
                "started, and remove it from [warehouse.spark]."
            ) from error


def _first_session(options: Spark) -> SparkSession:
    from pyspark.logger import PySparkLogger

    # Spark logs every refused SELECT on the console before it raises.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # The bridge logs the interrupt that it passes on, with a trace.
    logging.getLogger().addFilter(lambda record: not str(record.msg).startswith("KeyboardInterrupt while sending"))
    if not options.is_joined:
        return _started(options)
    return _connected(options) if "://" in options.master else _of_the_platform(options)


def _connected(options: Spark) -> SparkSession:
    """A session of a Spark Connect server."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if missing := [name for name in _CONNECT_PACKAGES if not find_spec(name)]:
        raise EngineError(f"Spark Connect needs {', '.join(missing)}, not installed; {installing('spark')}.")
    host, _, port = options.address.removeprefix("sc://").rstrip("/").rpartition(":")
    try:
        socket.create_connection((host or port, int(port) if host else _CONNECT_PORT), _ANSWER_SECONDS).close()
        session = SparkSession.builder.remote(options.master).create()
    except (OSError, ValueError, PySparkException) as error:
        raise EngineError(
            f"Spark Connect does not answer at {options.address} ({first_line(error)}); check `master` under "
            "[warehouse.spark] and that its server runs."
        ) from error
    atexit.register(session.stop)
    return session


def _of_the_platform(options: Spark) -> SparkSession:
    """The session that this process has, or the one of spark-submit."""
    from pyspark.sql import SparkSession

    if session := SparkSession.getActiveSession():
        return session
    if not options.is_submitted:
        # Spark would start one of its own on this machine.
        raise EngineError(
            "This process has no Spark session; start it by spark-submit or in the platform's notebook, or name a "
            "`master` under [warehouse.spark]."
        )
    return SparkSession.builder.getOrCreate()


def _started(options: Spark) -> SparkSession:
    """Start an application. The JVM logs to a file, whose last line is quoted when the start fails."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    home = Path(tempfile.mkdtemp(prefix="trainledger-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    conf = SparkConf().setAppName("trainledger").setMaster(options.master)
    conf.setAll([*_QUIET.items(), *_FILES.items(), ("spark.sql.warehouse.dir", str(home))])
    is_local = options.master.startswith("local")
    is_here = is_local or bool(re.match(r"spark://(127\.0\.0\.1|localhost):", options.master))
    if is_here:
        conf.setAll(list((_LOCAL if is_local else _LOOPBACK).items()))
    if options.memory:
        conf.set("spark.driver.memory" if is_local else "spark.executor.memory", options.memory)
    if options.jars:
        conf.set("spark.jars", ",".join(options.jars))
    conf.setAll([*options.conf.items(), *_COST.items(), *_MEANING.items()])
    log = home / "spark.log"
    try:
        with log.open("wb") as output:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
        context = SparkContext(conf=conf, gateway=gateway)
        # Where no master answers, the context ends a minute after it started.
        session = SparkSession(context)
    except Exception as error:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line[:1].strip()]
        reason = lines[-1] if lines else first_line(error)
        raise EngineError(
            f"Spark did not start on {options.master} ({reason}); check [warehouse.spark] and that Java 17 is on the "
            "path."
        ) from error
    if not is_local:
        threading.Thread(target=_watch, args=(context, options), daemon=True).start()
    # Executors on this machine run this Python; those of a cluster their own.
    if python := options.conf.get("spark.pyspark.python", sys.executable if is_here else ""):
        context.pythonExec = python
    return session


def _watch(context: SparkContext, options: Spark) -> None:
    """State once that no executor has answered for a minute: Spark itself waits for workers without a word."""
    java: Any = context._jsc
    away = 0.0
    while away < _AWAY_SECONDS:
        time.sleep(_LOOK_SECONDS)
        try:
            # The driver is listed among its executors; one without work needs no others.
            has_others = java.sc().getExecutorMemoryStatus().size() > 1
            is_working = bool(context.statusTracker().getActiveJobsIds())
        except Exception:  # The application has ended, by whatever error the bridge has for it.
            return
        away = away + _LOOK_SECONDS if is_working and not has_others else 0.0
    sys.stderr.write(
        f"No executor of {options.address} has answered for {_AWAY_SECONDS:.0f} seconds; start workers or free some. "
        "The build waits and then continues.\n"
    )


def first_line(error: Exception) -> str:
    """The message with Spark's error class, which follows a bare "an error occurred" of the bridge."""
    text = str(error).strip()
    found = _JVM_MESSAGE.search(text) or _PYTHON_MESSAGE.search(text) or _LINE.search(text)
    return found[1] if found else type(error).__name__
