"""Spark, for bills too large for one machine; runs the same SELECTs, translated by `spark_sql`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pipelines.base.errors import EngineError, SourceError, TrainledgerError, UsageError
from pipelines.engine.base import Engine, Item, Made
from pipelines.engine.spark_session import close_session, first_line, is_interrupted, open_session
from pipelines.engine.spark_sql import spark_sql, view_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pipelines.config.spark import Spark

# What Spark writes into `_metadata.file_path` is a URI; a plus sign in it is not a blank.
_FILENAME = "url_decode(replace(regexp_replace(_metadata.file_path, '^file:/+', '/'), '+', '%2B'))"

_NO_JARS = (
    "Spark has no jars that read S3; name those of its Hadoop version as `jars` under [warehouse.spark], or as "
    '"spark.jars.packages" = "org.apache.hadoop:hadoop-aws:…" under [warehouse.spark.conf].'
)
_NO_CODE = (
    "The Python of the executors has no trainledger; install it there, or name one that has it as "
    '"spark.pyspark.python" under [warehouse.spark.conf].'
)
_NO_MEMORY = (
    "The executors ran out of memory; raise `memory` under [warehouse.spark], or make smaller tasks by a higher "
    '"spark.sql.shuffle.partitions" under [warehouse.spark.conf], and run it again: it continues from here.'
)
_NO_ACCESS = (
    "Executors have no access to s3{0}; allow the role of their machines s3:ListBucket on the bucket, and "
    "s3:GetObject, s3:PutObject and s3:DeleteObject on its objects."
)
# By what an error of Spark, its executors or the cluster contains.
_KNOWN: dict[str, tuple[type[TrainledgerError], str]] = {
    r'No FileSystem for scheme "s3a"|S3AFileSystem not found': (EngineError, _NO_JARS),
    r"No module named": (EngineError, _NO_CODE),
    r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|with code 52\b|exit code 137|memory limits": (UsageError, _NO_MEMORY),
    r"AccessDeniedException: s3a(://[^\s:]+)": (SourceError, _NO_ACCESS),
}
# Files never change, and looking up their columns takes a job.
_columns: dict[tuple[str, ...], StructType] = {}


class SparkEngine(Engine):
    """Engine over one Spark application per process, started or joined by the first engine and kept until exit.

    Each engine has its own views. Raises EngineError when Spark does not start.
    """

    follows = False
    # Each JVM lists the encodings of a column in an order of its own.
    is_reproducible = False

    def __init__(self, options: Spark):
        self._session: SparkSession | None = open_session(options)

    def view(self, name: str, files: Sequence[Path | str]) -> None:
        with _sentence():
            self._name(name, files)

    def scan_files(self, name: str, files: Sequence[Path | str]) -> None:
        with _sentence():
            self._name(name, files, "_metadata.row_index as file_row_number", f"{_FILENAME} as filename")

    def view_sql(self, name: str, sql: str) -> None:
        with _sentence():
            self._select(sql).createOrReplaceTempView(view_name(name))

    def write(self, sql: str, out: Path | str) -> None:
        with _sentence():
            rows = self._select(sql, in_files=True).write.mode("overwrite").option("compression", "snappy")
            rows.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(_uri(out))

    def query(self, sql: str) -> pl.DataFrame:
        with _sentence():
            rows = self._select(sql).toArrow()
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def map(self, function: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
        import pyarrow as pa
        from pyspark import cloudpickle

        def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (number for batch in batches for number in batch.column("id").to_pylist()):
                try:
                    made = function(items[number])
                except TrainledgerError as error:
                    # Spark would repeat the task and report a trace.
                    made = error
                columns = [pa.array([number], pa.int64()), pa.array([cloudpickle.dumps(made)], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["id", "made"])

        if not items:
            return []
        with _sentence(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            tasks = self._spark.range(0, len(items), 1, len(items))
            rows = tasks.mapInArrow(of_batches, "id bigint, made binary").collect()
        made = [cloudpickle.loads(row["made"]) for row in sorted(rows, key=lambda row: row["id"])]
        if error := next((one for one in made if isinstance(one, TrainledgerError)), None):
            raise error
        return made

    def types(self, relation: str) -> dict[str, str]:
        with _sentence():
            found = self._spark.table(view_name(relation)).dtypes
        return {name: _duckdb_type(kind) for name, kind in found}

    def close(self) -> None:
        if self._session is not None:
            close_session(self._session)
        self._session = None

    @property
    def _spark(self) -> SparkSession:
        if self._session is None:
            raise EngineError("Spark: this engine is closed.")
        return self._session

    def _name(self, name: str, files: Sequence[Path | str], *more: str) -> None:
        if not files:
            raise ValueError("a view needs at least one file")
        paths = tuple(map(_pattern, files))
        if paths not in _columns:
            _columns[paths] = self._spark.read.parquet(*paths).schema
        rows = self._spark.read.schema(_columns[paths]).parquet(*paths)
        columns = [_naive(column, kind) for column, kind in rows.dtypes]
        rows.selectExpr(*columns, *more).createOrReplaceTempView(view_name(name))

    def _select(self, sql: str, *, in_files: bool = False) -> DataFrame:
        return self._spark.sql(spark_sql(sql, in_files=in_files))


def reaching(options: Spark, location: str, endpoint_url: str | None, region: str | None) -> Spark:
    """The options with what executors need to reach a bucket; their credentials they find as machines of AWS do."""
    if options.is_joined or not location.startswith("s3://"):
        return options
    bucket = f"spark.hadoop.fs.s3a.bucket.{location.removeprefix('s3://').partition('/')[0]}"
    conf = {f"{bucket}.endpoint.region": region} if region else {}
    if endpoint_url:
        conf |= {f"{bucket}.endpoint": endpoint_url, f"{bucket}.path.style.access": "true"}
        conf[f"{bucket}.connection.ssl.enabled"] = str(endpoint_url.startswith("https:")).lower()
    return options.model_copy(update={"conf": {**conf, **options.conf}})


def _naive(column: str, kind: str) -> str:
    """A column as it is; an instant, as AWS writes times, as a naive UTC time."""
    name = "`" + column.replace("`", "``") + "`"
    return f"cast({name} as timestamp_ntz) as {name}" if kind == "timestamp" else name


def _duckdb_type(kind: str) -> str:
    name = exp.DataType.build(kind, dialect="spark").sql("duckdb").replace(" ", "")
    return {"TEXT": "VARCHAR", "INT": "INTEGER"}.get(name, name)


def _uri(path: Path | str) -> str:
    """An object by the scheme of Hadoop's client, or a path that Spark looks for among the local files."""
    if str(path).startswith("s3://"):
        return f"s3a{str(path)[2:]}"
    return f"file:{Path(path).absolute()}"


def _pattern(path: Path | str) -> str:
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
        if is_interrupted():
            raise KeyboardInterrupt from error
        for sign, (kind, message) in _KNOWN.items():
            if found := re.search(sign, str(error)):
                raise kind(message.format(*found.groups())) from error
        raise EngineError(f"Spark: {first_line(error)}") from error
