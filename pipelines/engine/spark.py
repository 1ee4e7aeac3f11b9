"""Spark, for bills too large for one machine; runs the same SELECTs, translated by `spark_sql`."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from sqlglot.errors import SqlglotError

from pipelines.base.errors import EngineError
from pipelines.engine.base import Engine
from pipelines.engine.spark_sql import spark_sql, view_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
# Deriving what must hold of a model of many CASEs takes minutes and the whole heap (SPARK-33152).
_PLANNING = {"spark.sql.constraintPropagation.enabled": "false"}
_QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# One machine gains nothing from Spark's 200 shuffle partitions.
_LOCAL = {**_LOOPBACK, "spark.sql.shuffle.partitions": "4", "spark.driver.memory": "2g"}

# What Spark writes into `_metadata.file_path` is a URI; a plus sign in it is not a blank.
_FILENAME = "url_decode(replace(regexp_replace(_metadata.file_path, '^file:/+', '/'), '+', '%2B'))"

_JVM_MESSAGE = re.compile(r"^(?:: |Caused by: )[\w.$]+: (\[.+)$", re.MULTILINE)
_LINE = re.compile(r"(.+)")

_lock = threading.Lock()
_running: dict[str, SparkSession] = {}


class SparkEngine(Engine):
    """Engine over one Spark application per process, started by the first engine and kept until exit.

    `master` is a Spark master URL: `local[2]`, or `spark://host:7077` of a cluster whose machines see the
    warehouse under the same paths. Each engine has its own views. Raises EngineError when Spark does not start.
    """

    follows = False

    def __init__(self, master: str = "local[2]"):
        with _lock:
            if master not in _running:
                if _running:
                    raise EngineError(
                        f"This process already runs Spark on {next(iter(_running))}; use {master} in another one."
                    )
                _running[master] = _start(master)
        self._session: SparkSession | None = _running[master].newSession()

    def view(self, name: str, files: Sequence[Path]) -> None:
        with _sentence():
            self._name(name, files)

    def scan_files(self, name: str, files: Sequence[Path]) -> None:
        with _sentence():
            self._name(name, files, "_metadata.row_index as file_row_number", f"{_FILENAME} as filename")

    def view_sql(self, name: str, sql: str) -> None:
        with _sentence():
            self._select(sql).createOrReplaceTempView(view_name(name))

    def write(self, sql: str, out: Path) -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            with _sentence():
                rows = self._select(sql, in_one_piece=True)
                rows.write.mode("overwrite").option("compression", "zstd").parquet(_uri(folder))
            (part,) = folder.glob("part-*.parquet")
            part.replace(out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def query(self, sql: str) -> pl.DataFrame:
        with _sentence():
            rows = self._select(sql).toArrow()
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def close(self) -> None:
        self._session = None

    @property
    def _spark(self) -> SparkSession:
        if self._session is None:
            raise EngineError("Spark: this engine is closed.")
        return self._session

    def _name(self, name: str, files: Sequence[Path], *more: str) -> None:
        if not files:
            raise ValueError("a view needs at least one file")
        rows = self._spark.read.parquet(*map(_pattern, files))
        columns = [_naive(column, kind) for column, kind in rows.dtypes]
        rows.selectExpr(*columns, *more).createOrReplaceTempView(view_name(name))

    def _select(self, sql: str, *, in_one_piece: bool = False) -> DataFrame:
        return self._spark.sql(spark_sql(sql, in_one_piece=in_one_piece))


def _start(master: str) -> SparkSession:
    """Start the application. The JVM logs to a file, whose last line is quoted when the start fails."""
    with warnings.catch_warnings():
        # Polars reads what Spark gives; the pandas Spark warns of is never used.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            from pyspark import SparkConf, SparkContext
            from pyspark.java_gateway import launch_gateway
            from pyspark.logger import PySparkLogger
            from pyspark.sql import SparkSession
        except ImportError:
            raise EngineError("Spark is not installed; install trainledger with its spark extra.") from None

        # Spark logs every refused SELECT on the console before it raises.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        home = Path(tempfile.mkdtemp(prefix="trainledger-spark-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        conf = SparkConf().setAppName("trainledger").setMaster(master)
        conf.setAll([*_MEANING.items(), *_PLANNING.items(), *_QUIET.items()])
        conf.set("spark.sql.warehouse.dir", str(home))
        if master.startswith("local"):
            conf.setAll(list(_LOCAL.items()))
        elif re.match(r"spark://(127\.0\.0\.1|localhost):", master):
            conf.setAll(list(_LOOPBACK.items()))
        log = home / "spark.log"
        try:
            with log.open("wb") as output:
                gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
            context = SparkContext(conf=conf, gateway=gateway)
            return SparkSession(context)
        except Exception as error:
            lines = [line for line in log.read_text(errors="replace").splitlines() if line[:1].strip()]
            reason = lines[-1] if lines else _first_line(error)
            raise EngineError(
                f"Spark did not start on {master} ({reason}); check the master and that Java 17 is on the path."
            ) from error


def _naive(column: str, kind: str) -> str:
    """A column as it is; an instant, as AWS writes times, as a naive UTC time."""
    name = "`" + column.replace("`", "``") + "`"
    return f"cast({name} as timestamp_ntz) as {name}" if kind == "timestamp" else name


def _uri(path: Path) -> str:
    """A path that Spark looks for among the local files, whatever file system a cluster prefers."""
    return f"file:{path.absolute()}"


def _pattern(path: Path) -> str:
    """A path to read: Spark takes brackets and their like for patterns."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", _uri(path))


@contextmanager
def _sentence() -> Iterator[None]:
    """Whatever Spark or the translation raises, as an EngineError of one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, SqlglotError, Py4JError) as error:
        raise EngineError(f"Spark: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """The message with Spark's error class, which follows a bare "an error occurred" of the bridge."""
    text = str(error).strip()
    found = _JVM_MESSAGE.search(text) or _LINE.search(text)
    return found[1] if found else type(error).__name__
