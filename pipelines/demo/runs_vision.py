"""Runs of the vision team: one workload on GPU and on Trainium, spot, a shared machine, a killed job."""

from __future__ import annotations

from dataclasses import replace

from pipelines.demo.company import P4D_RESERVATION, VISION
from pipelines.demo.scenario import Node, Run, Stop, utc
from pipelines.demo.workloads import DETECTOR, OCR, SEGMENTER, VIT_H

_P4D = Node("p4d", "p4d.24xlarge", VISION, "us-west-2a", volume_gib=1000)
_TRN1 = Node("trn1", "trn1.32xlarge", VISION, "us-west-2b", volume_gib=1000)
_SPOT = Node("g6e", "g6e.48xlarge", VISION, "us-east-1b", market="spot", volume_gib=500)
_VIT_BYTES = 7_600_000_000

_VIT_ON_P4D = (
    Run(
        "vit-p4d-1",
        VIT_H,
        "amara",
        (replace(_P4D, name="vit-p4d-1"),),
        utc("2026-06-05 06:31:09"),
        epoch_seconds=4_860,
        metric=(0.71, 0.77, 0.80, 0.818, 0.829, 0.836, 0.8402, 0.8431),
        compile_seconds=70,
        save_bytes=_VIT_BYTES,
    ),
    Run(
        "vit-p4d-2",
        VIT_H,
        "amara",
        (replace(_P4D, name="vit-p4d-2"),),
        utc("2026-06-19 12:04:33"),
        epoch_seconds=4_940,
        metric=(0.70, 0.76, 0.80, 0.815, 0.826, 0.833, 0.838, 0.8409, 0.8424),
        compile_seconds=72,
        save_bytes=_VIT_BYTES,
    ),
    # Inside an On-Demand Capacity Reservation that stood empty before and after.
    Run(
        "vit-p4d-3",
        VIT_H,
        "jonas",
        (replace(_P4D, name="vit-p4d-3", reservation=P4D_RESERVATION),),
        utc("2026-07-03 08:10:27"),
        epoch_seconds=4_900,
        metric=(0.71, 0.77, 0.80, 0.817, 0.828, 0.835, 0.8396, 0.8427),
        compile_seconds=69,
        save_bytes=_VIT_BYTES,
    ),
)

_VIT_ON_TRN1 = (
    Run(
        "vit-trn1-1",
        VIT_H,
        "amara",
        (replace(_TRN1, name="vit-trn1-1"),),
        utc("2026-06-12 05:55:14"),
        epoch_seconds=6_420,
        metric=(0.70, 0.76, 0.80, 0.816, 0.828, 0.835, 0.8399, 0.8428),
        compile_seconds=3_050,
        save_bytes=_VIT_BYTES,
    ),
    Run(
        "vit-trn1-2",
        VIT_H,
        "jonas",
        (replace(_TRN1, name="vit-trn1-2"),),
        utc("2026-06-24 09:26:40"),
        epoch_seconds=6_510,
        metric=(0.70, 0.76, 0.79, 0.814, 0.825, 0.832, 0.837, 0.8404, 0.8422),
        compile_seconds=420,
        save_bytes=_VIT_BYTES,
    ),
    Run(
        "vit-trn1-3",
        VIT_H,
        "jonas",
        (replace(_TRN1, name="vit-trn1-3"),),
        utc("2026-07-13 07:17:58"),
        epoch_seconds=6_380,
        metric=(0.71, 0.77, 0.80, 0.817, 0.829, 0.836, 0.8403, 0.8433),
        compile_seconds=405,
        save_bytes=_VIT_BYTES,
    ),
)

# The save after epoch 3 held weights only, so the interruption soon after cost more than half an epoch.
_INTERRUPTED = Run(
    "detector-spot-1",
    DETECTOR,
    "jonas",
    (replace(_SPOT, name="detector-spot-1a"),),
    utc("2026-06-22 20:11:30"),
    epoch_seconds=9_000,
    metric=(0.52, 0.56, 0.585, 0.602, 0.612),
    compile_seconds=60,
    saves_per_epoch=2,
    save_bytes=2_400_000_000,
    stall_seconds=12,
    weights_only=(3.0,),
    stop=Stop(
        3.1,
        "spot_interruption",
        resumed_at=utc("2026-06-23 06:02:10"),
        resumed_on=(replace(_SPOT, name="detector-spot-1b"),),
    ),
)

# One p4d in the training cluster serves two runs at once, four GPUs each.
SHARED_NODE = replace(_P4D, name="ocr-shared", tags={"team": "vision", "environment": "train"})
_SHARING = (
    Run(
        "ocr-a",
        OCR,
        "lena",
        (SHARED_NODE,),
        utc("2026-07-20 09:14:20"),
        epoch_seconds=9_300,
        metric=(0.048, 0.036, 0.0305),
        compile_seconds=45,
        accelerators=4,
        save_bytes=1_100_000_000,
        stall_seconds=8,
    ),
    Run(
        "ocr-b",
        OCR,
        "lena",
        (SHARED_NODE,),
        utc("2026-07-20 11:02:05"),
        epoch_seconds=9_420,
        metric=(0.049, 0.037, 0.0318),
        compile_seconds=45,
        accelerators=4,
        save_bytes=1_100_000_000,
        stall_seconds=8,
    ),
)

# Killed with its machine: it never wrote that it ended.
_KILLED = Run(
    "seg-p4d-1",
    SEGMENTER,
    "amara",
    (replace(_P4D, name="seg-p4d-1", linger_seconds=1_400),),
    utc("2026-06-26 15:45:12"),
    epoch_seconds=7_700,
    metric=(0.61, 0.66, 0.70),
    compile_seconds=65,
    save_bytes=3_100_000_000,
    stop=Stop(1.6, "hw_failure", is_recorded=False),
)

RUNS = (*_VIT_ON_P4D, *_VIT_ON_TRN1, _INTERRUPTED, *_SHARING, _KILLED)
