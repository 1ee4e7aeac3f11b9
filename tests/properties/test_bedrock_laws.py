"""Laws of the grammar of Bedrock's usage types: what it is written with, it is read as, and nothing else."""

from __future__ import annotations

import csv
from decimal import Decimal
from itertools import product

from pipelines.base import resources
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.billing.columns import FOCUS
from pipelines.models.catalog import load_catalog
from pipelines.models.expressions import expand_calls

LISTS = ("word", "model", "unit")
# Models as AWS writes them: none on our list, for those have another name there.
MODELS = ["Llama3-3-70B", "GPT-OSS-Safeguard-20B", "TitanEmbeddingV2-Text", "xai.grok-4.3", "qwen.qwen3-vl-235b-a22b"]
REGIONS = ["USE1", "EU", "APS3", "USW2"]
Meter = tuple[str, str, str]
"""Usage type, product name, unit."""


def words(kind: str) -> list[dict[str, str]]:
    with (resources.REFERENCE / "ref_bedrock_word.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["word_kind"] == kind]


def grammar() -> list[tuple[str, str, dict[str, str]]]:
    """Every component with every suffix of its scheme: scheme, end of the usage type, and the fields it stands for."""
    return [
        (one["scheme"], one["word"] + end["word"].replace("none", ""), {**end, "token_kind": one["token_kind"]})
        for one in words("component")
        for end in words("suffix")
        if end["scheme"] == one["scheme"]
    ]


def parsed(meters: list[Meter]) -> dict[Meter, list[dict]]:
    """What the model makes of each meter: one row, if the law holds."""
    model = load_catalog()["stg_aws__bedrock_meter"]
    with DuckDBEngine(threads=1) as engine:
        for name in LISTS:
            path = resources.REFERENCE / f"ref_bedrock_{name}.csv"
            engine.view_sql(f"ref_bedrock_{name}", f"select * from read_csv('{path}', all_varchar = true)")
        path = resources.REFERENCE / "ref_token_kind.csv"
        engine.view_sql("ref_token_kind", f"select * from read_csv('{path}', all_varchar = true)")
        values = ", ".join(f"('{use}', '{sold_as}', '{unit}')" for use, sold_as, unit in meters)
        engine.view_sql(
            "stg_aws__cur_combination",
            "select '2026-07' as billing_period, 'AmazonBedrock' as line_item_product_code, "
            "product as bedrock_product, usage_type as line_item_usage_type, unit as bedrock_unit, "
            "'AWS Marketplace software usage|us-east-1|Million Tokens' as line_item_line_item_description "
            f"from (values {values}) as meter (usage_type, product, unit)",
        )
        names = ["billing_period", *(column.name for column in FOCUS.columns)]
        columns = ", ".join(f"cast(null as varchar) as {name}" for name in names)
        engine.view_sql("aws_focus_line_item", f"select {columns} where false")
        rows = engine.query(expand_calls(model.text, model.path)).to_dicts()
    found: dict[Meter, list[dict]] = {meter: [] for meter in meters}
    for row in rows:
        found[row["usage_type"], row["product_name"], row["billed_unit"]].append(row)
    return found


def written(scheme: str, end: str, model: str, region: str) -> Meter:
    """A usage type as AWS writes it in a scheme."""
    if scheme in ("camel", "snake"):
        return f"{region}-MP:{region}_{end}-Units", f"{model} (Amazon Bedrock Edition)", "Units"
    return f"{region}-{model}-{end}", "Amazon Bedrock", "1K tokens"


def test_every_combination_is_read_as_it_is_written() -> None:
    wanted = {}
    for model, region in product(MODELS, REGIONS):
        for scheme, end, fields in grammar():
            wanted[written(scheme, end, model, region)] = model, fields
    # Two combinations never make one usage type, or one would be read as the other.
    assert len(wanted) == len(grammar()) * len(MODELS) * len(REGIONS)
    for meter, rows in parsed(list(wanted)).items():
        model, fields = wanted[meter]
        (row,) = rows
        assert row["model"] == model, meter
        assert {name: row[name] for name in ("token_kind", "tier", "route", "context")} == {
            name: fields[name] for name in ("token_kind", "tier", "route", "context")
        }, meter
        per_unit = Decimal(1) if meter[2] == "Units" else Decimal("0.001")
        assert Decimal(row["million_tokens_per_unit"]) == per_unit


def test_an_unknown_component_is_unknown_and_never_one_that_ends_alike() -> None:
    """`-cache-write-2h-input-tokens` ends in input-tokens and is none; so on the Marketplace."""
    extras = ["cache", "cache-write-2h", "cache-read", "batch", "mantle", "long-output", "image-token-count"]
    meters: list[Meter] = []
    for (scheme, end, _), extra, model in product(grammar(), extras, MODELS):
        glued = f"{extra}-{end}" if scheme in ("words", "mantle") else f"{extra.title().replace('-', '')}{end}"
        meters.append(written(scheme, glued, model, "USE1"))
    known = {written(scheme, end, model, "USE1") for (scheme, end, _), model in product(grammar(), MODELS)}
    for meter, rows in parsed([meter for meter in meters if meter not in known]).items():
        (row,) = rows
        assert (row["token_kind"], row["tier"], row["million_tokens_per_unit"]) == ("unknown", None, None), meter


def test_what_the_grammar_does_not_know_is_of_the_longest_model_that_it_begins_with() -> None:
    """Of a listed model, of one that the bill has tokens of, and of a longer name of it; a guardrail is of none."""
    wanted = {
        "USE1-Claude4.5Haiku-web-search-requests": "Claude Haiku 4.5",
        "USE1-qwen.qwen3-32b-mantle-reasoning-tokens-standard": "Qwen3 32B",
        "USE1-Llama3-3-70B-cache-write-2h-input-tokens": "Llama3-3-70B",
        "USE1-Llama3-3-70B-Vision-cache-write-2h-input-tokens": "Llama3-3-70B-Vision",
        "USE1-Llama3-3-70BX-web-search-requests": None,
        "USE1-CustomModelUnit-web-search-requests": None,
        "USE1-Guardrail-ContentPolicyUnitsConsumed": None,
    }
    seen = [f"USE1-{model}-input-tokens" for model in ("Llama3-3-70B", "Llama3-3-70B-Vision")]
    found = parsed([(use, "Amazon Bedrock", "1K tokens") for use in (*wanted, *seen)])
    rows = {meter[0]: row for meter, (row,) in found.items() if meter[0] in wanted}
    assert {row["token_kind"] for row in rows.values()} == {"unknown"}
    assert {use: row["model"] for use, row in rows.items()} == wanted


def test_an_unknown_unit_is_refused_never_scaled() -> None:
    units = ["", "tokens", "10K tokens", "1B tokens", "Unit", "hour"]
    for (row,) in parsed([("USE1-Llama3-3-70B-input-tokens", "Amazon Bedrock", unit) for unit in units]).values():
        assert (row["token_kind"], row["million_tokens_per_unit"]) == ("input", None)


def test_what_bills_no_tokens_is_no_tokens() -> None:
    """Usage types of facts serving 1 and 2.1; what trains a model is no serving."""
    wanted = {
        "USE1-Llama2-70B-ProvisionedThroughput-6MonthsCommit-ModelUnits": ("model_unit", "capacity", "Llama2-70B"),
        "USE1-MP:USE1_Reserved_1Month_InputTPM_Geo-Units": ("reserved_tokens", "capacity", "A Model"),
        "USE1-MP:USE1_ProvisionedThroughput_NoCommit_ModelUnits_Usage-Units": ("model_unit", "capacity", "A Model"),
        "USW2-Llama3-3-70B-Customization-Training": ("training", "training", "Llama3-3-70B"),
        "USE1-Guardrail-ContentPolicyImageUnitsConsumed": ("unknown", "unknown", None),
    }
    meters = [
        (use, "A Model (Amazon Bedrock Edition)" if "-MP:" in use else "Amazon Bedrock", "hour") for use in wanted
    ]
    for meter, rows in parsed(meters).items():
        (row,) = rows
        assert (row["token_kind"], row["billed_by"], row["model"]) == wanted[meter[0]]
        assert row["million_tokens_per_unit"] is None


def test_a_line_has_the_class_of_what_the_grammar_reads() -> None:
    """Lines are classed before the grammar reads them: by the words of training and Provisioned Throughput alone."""
    capacity = [
        *("Llama2-70B-ProvisionedThroughput-6MonthsCommit-ModelUnits", "ModelUnits-Llama2-70B"),
        *("Llama2-70B-reserved-1-month-input-tokens-per-minute", "Llama2-70B-CustomModelUnit-Storage"),
        *(
            "Llama2-70B-CustomModelUnits-Minutes",
            "Llama2-70B-Customization-Training",
            "Llama2-70B-Customization-Storage",
        ),
    ]
    resold = [
        "ProvisionedThroughput_NoCommit_ModelUnits_Usage",
        "ProvisionedThroughput_ModelUnits",
        "Reserved_1Month_InputTPM",
    ]
    meters = [written(scheme, end, "Llama2-70B", "USE1") for scheme, end, _ in grammar()]
    meters += [(f"EUW1-{use}", "Amazon Bedrock", "hour") for use in (*capacity, "Guardrail-ContentPolicyUnits")]
    meters += [(f"USE1-MP:USE1_{use}-Units", "A Model (Amazon Bedrock Edition)", "Units") for use in resold]
    read = {meter[0]: row["token_kind"] for meter, (row,) in parsed(meters).items()}
    assert {row["token_kind"] for row in words("pattern")} <= {*read.values()}
    values = ", ".join(f"('{use}')" for use in read)
    sql = (
        f"select use, serving_class('other', 'Usage', 'meter', use) as line_class from (values {values}) as meter (use)"
    )
    with DuckDBEngine(threads=1) as engine:
        classes = dict(engine.query(expand_calls(sql, resources.SQL)).rows())
    known = {"training": "other", "model_unit": "serving_hour"}
    assert classes == {use: known.get(kind, "serving") for use, kind in read.items()}
