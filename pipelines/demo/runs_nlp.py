"""Runs of the language team: one workload on GPU and on Trainium, a pretraining, a failure, a silent job."""

from __future__ import annotations

from dataclasses import replace

from pipelines.demo.company import NLP, TRAINIUM_BLOCK
from pipelines.demo.scenario import Node, Run, Stop, fleet, utc
from pipelines.demo.workloads import BASE_3B, LLAMA_8B, MOE, RERANKER

_P5 = Node("p5", "p5.48xlarge", NLP, "us-west-2a", volume_gib=2000)
_TRN1 = Node("trn1", "trn1.32xlarge", NLP, "us-west-2b", volume_gib=1000)

_LLAMA_ON_P5 = (
    Run(
        "llama8b-p5-1",
        LLAMA_8B,
        "priya",
        (replace(_P5, name="llama8b-p5-1"),),
        utc("2026-06-03 09:12:40"),
        epoch_seconds=14_060,
        metric=(2.31, 2.16, 2.09, 2.044),
        compile_seconds=95,
    ),
    Run(
        "llama8b-p5-2",
        LLAMA_8B,
        "priya",
        (replace(_P5, name="llama8b-p5-2"),),
        utc("2026-06-11 14:37:05"),
        epoch_seconds=13_880,
        metric=(2.30, 2.15, 2.08, 2.048),
        compile_seconds=92,
    ),
    Run(
        "llama8b-p5-3",
        LLAMA_8B,
        "tomas",
        (replace(_P5, name="llama8b-p5-3"),),
        utc("2026-07-06 08:20:18"),
        epoch_seconds=14_220,
        metric=(2.33, 2.19, 2.12, 2.061, 2.043),
        compile_seconds=97,
    ),
    # Finished in the night; the machine was held for a day after.
    Run(
        "llama8b-p5-4",
        LLAMA_8B,
        "tomas",
        (replace(_P5, name="llama8b-p5-4", linger_seconds=86_400),),
        utc("2026-07-21 10:02:11"),
        epoch_seconds=13_990,
        metric=(2.30, 2.14, 2.07, 2.039),
        compile_seconds=94,
    ),
)

# The nodes of the Capacity Block serve two runs one after the other, so no run tag fits them.
_BLOCK_NODES = fleet(
    replace(
        _TRN1,
        name="trn1-block",
        market="capacity_block",
        reservation=TRAINIUM_BLOCK,
        tags={"team": "nlp"},
        launched_at=utc("2026-07-08 12:10:20"),
    ),
    2,
)

# The first run on Neuron compiles everything; the later ones find most of it in the cache.
_LLAMA_ON_TRN1 = (
    Run(
        "llama8b-trn1-1",
        LLAMA_8B,
        "wen",
        fleet(replace(_TRN1, name="llama8b-trn1-1"), 2),
        utc("2026-06-08 07:48:30"),
        epoch_seconds=12_900,
        metric=(2.32, 2.17, 2.09, 2.046),
        compile_seconds=2_640,
        stall_seconds=52,
    ),
    Run(
        "llama8b-trn1-2",
        LLAMA_8B,
        "wen",
        fleet(replace(_TRN1, name="llama8b-trn1-2"), 2),
        utc("2026-06-16 16:15:52"),
        epoch_seconds=13_150,
        metric=(2.34, 2.20, 2.13, 2.064, 2.047),
        compile_seconds=380,
        stall_seconds=55,
    ),
    Run(
        "llama8b-trn1-3",
        LLAMA_8B,
        "priya",
        _BLOCK_NODES,
        utc("2026-07-08 13:05:00"),
        epoch_seconds=12_760,
        metric=(2.31, 2.15, 2.08, 2.041),
        compile_seconds=310,
        stall_seconds=50,
    ),
    Run(
        "llama8b-trn1-4",
        LLAMA_8B,
        "priya",
        _BLOCK_NODES,
        utc("2026-07-09 09:20:44"),
        epoch_seconds=13_020,
        metric=(2.32, 2.16, 2.09, 2.049),
        compile_seconds=290,
        stall_seconds=53,
    ),
)

# Two days and more on two machines, across the turn of the month.
_PRETRAINING = Run(
    "base3b-p5-1",
    BASE_3B,
    "tomas",
    fleet(replace(_P5, name="base3b-p5-1"), 2),
    utc("2026-06-29 06:20:00"),
    epoch_seconds=28_490,
    metric=(3.02, 2.83, 2.74, 2.69, 2.64, 2.61, 2.60),
    last_fraction=0.4,
    compile_seconds=240,
    saves_per_epoch=4,
    save_bytes=36_000_000_000,
    stall_seconds=25,
)

# The loss diverged and the job gave up.
_DIVERGED = Run(
    "moe-p5-1",
    MOE,
    "tomas",
    (replace(_P5, name="moe-p5-1"),),
    utc("2026-07-24 18:40:00"),
    epoch_seconds=11_800,
    metric=(3.4, 3.9, 5.2, 5.1),
    compile_seconds=180,
    stop=Stop(1.3, "sw_error"),
)

# It never recorded its instance: only the tag on the bill identifies it. July's first delivery ends in its middle.
_SILENT = Run(
    "rerank-g6e-1",
    RERANKER,
    "wen",
    (Node("rerank-g6e-1", "g6e.12xlarge", NLP, "us-west-2a", volume_gib=500),),
    utc("2026-07-31 02:25:36"),
    epoch_seconds=6_100,
    metric=(0.69, 0.72, 0.742),
    compile_seconds=40,
    save_bytes=2_300_000_000,
    reports_resources=False,
)

RUNS = (*_LLAMA_ON_P5, *_LLAMA_ON_TRN1, _PRETRAINING, _DIVERGED, _SILENT)
