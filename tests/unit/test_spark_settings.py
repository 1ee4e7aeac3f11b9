"""`[warehouse.spark]`: what it accepts, and what is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.base.errors import UsageError
from pipelines.config.settings import Settings, load_settings


def read(folder: Path, spark: str) -> Settings:
    config = folder / "trainledger.toml"
    config.write_text(f'[warehouse]\nengine = "spark"\n{spark}\n')
    return load_settings(config)


def test_settings_of_spark_are_text_with_or_without_quotes(tmp_path: Path) -> None:
    spark = read(
        tmp_path,
        """[warehouse.spark]
        master = "spark://10.0.0.7:7077"
        memory = "8g"
        [warehouse.spark.conf]
        "spark.executor.instances" = 12
        spark.dynamicAllocation.enabled = false
        """,
    ).warehouse.spark
    assert (spark.master, spark.memory) == ("spark://10.0.0.7:7077", "8g")
    assert spark.conf == {"spark.executor.instances": "12", "spark.dynamicAllocation.enabled": "false"}


def test_jars_are_looked_for_next_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "s3a.jar").touch()
    named = 'jars = ["s3a.jar", "s3://acme/jars/more.jar", "local:/opt/spark/one.jar"]'
    jars = read(tmp_path, f"[warehouse.spark]\n{named}").warehouse.spark.jars
    assert jars == (f"{tmp_path}/s3a.jar", "s3://acme/jars/more.jar", "local:/opt/spark/one.jar")
    (tmp_path / "s3a.jar").unlink()
    with pytest.raises(UsageError, match=r"'warehouse.spark.jars': .*s3a.jar is not a file"):
        read(tmp_path, f"[warehouse.spark]\n{named}")


@pytest.mark.parametrize(
    "written, refused",
    [
        ('spark_master = "local[4]"', "'warehouse.spark_master' is now called 'spark.master'"),
        ('[warehouse.spark]\nmaster = "10.0.0.7:7077"', "write local"),
        ('[warehouse.spark]\nmemory = "8 GB"', "write a size such as 4g"),
        ('[warehouse.spark]\nmaster = "sc://spark:15002"\nmemory = "8g"', "memory of a Spark that runs already"),
        ('[warehouse.spark]\nmaster = "sc://spark:15002/;use_ssl=true;token=abc"', "holds the secret token"),
        (
            '[warehouse.spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "abc"',
            "the secret spark.hadoop.fs.s3a.sec",
        ),
    ],
)
def test_a_mistake_is_named_before_spark_starts(tmp_path: Path, written: str, refused: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, written)
    assert refused in str(error.value)
    assert "abc" not in str(error.value)


def test_a_secret_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLEDGER_WAREHOUSE__SPARK__MASTER", "sc://spark:15002/;token=abc")
    spark = read(tmp_path, "").warehouse.spark
    assert spark.is_joined
    # What messages show.
    assert spark.address == "sc://spark:15002"
