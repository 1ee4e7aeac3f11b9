"""What Larkfield trains. Runs of one workload, on whatever silicon, may be compared."""

from __future__ import annotations

from pipelines.demo.scenario import Workload

LLAMA_8B = Workload(
    model="llama-3.1-8b",
    dataset="corp-v3",
    purpose="finetune",
    team="nlp",
    experiment="assistant-refresh",
    seq_len=8192,
    global_batch_samples=256,
    target_metric="eval_loss",
    target_value=2.05,
    target_direction="min",
    dataset_samples=36_621,
    dataset_tokens=3.0e8,
)

VIT_H = Workload(
    model="vit-h-14",
    dataset="inspection-v7",
    purpose="finetune",
    team="vision",
    experiment="surface-defects",
    seq_len=None,
    global_batch_samples=4096,
    target_metric="eval_top1",
    target_value=0.842,
    target_direction="max",
    dataset_samples=4.8e6,
)

# Pretraining never finishes a pass over its data: its epochs are declared blocks of tokens.
BASE_3B = Workload(
    model="larkfield-3b",
    dataset="corp-web-v5",
    purpose="pretrain",
    team="nlp",
    experiment="base-3b",
    seq_len=4096,
    global_batch_samples=1024,
    target_metric="eval_loss",
    target_value=2.62,
    target_direction="min",
    dataset_samples=1.465e8,
    dataset_tokens=6.0e11,
    epoch_tokens=1.0e10,
)

MOE = Workload(
    model="moe-4x3b",
    dataset="corp-web-v5",
    purpose="pretrain",
    team="nlp",
    experiment="moe-study",
    seq_len=4096,
    global_batch_samples=512,
    target_metric="eval_loss",
    target_value=2.55,
    target_direction="min",
    dataset_samples=1.465e8,
    dataset_tokens=6.0e11,
    epoch_tokens=2.0e9,
)

RERANKER = Workload(
    model="rerank-m3",
    dataset="support-pairs-v9",
    purpose="finetune",
    team="nlp",
    seq_len=512,
    global_batch_samples=2048,
    target_metric="eval_ndcg",
    target_value=0.74,
    target_direction="max",
    dataset_samples=1.6e6,
    dataset_tokens=8.2e8,
)

DETECTOR = Workload(
    model="detr-x",
    dataset="dockyard-v2",
    purpose="finetune",
    team="vision",
    seq_len=None,
    global_batch_samples=512,
    target_metric="eval_map",
    target_value=0.61,
    target_direction="max",
    dataset_samples=9.2e5,
)

SEGMENTER = Workload(
    model="mask2former-l",
    dataset="dockyard-v2",
    purpose="finetune",
    team="vision",
    seq_len=None,
    global_batch_samples=256,
    target_metric="eval_miou",
    target_value=0.70,
    target_direction="max",
    dataset_samples=9.2e5,
)

OCR = Workload(
    model="doc-ocr-base",
    dataset="forms-v4",
    purpose="finetune",
    team="vision",
    seq_len=None,
    global_batch_samples=1024,
    target_metric="eval_cer",
    target_value=0.031,
    target_direction="min",
    dataset_samples=2.1e6,
)

EMBEDDER = Workload(
    model="embed-e5",
    dataset="support-pairs-v9",
    purpose="finetune",
    team="vision",
    seq_len=512,
    global_batch_samples=1024,
    target_metric="eval_recall",
    target_value=0.91,
    target_direction="max",
    dataset_samples=1.6e6,
    dataset_tokens=8.2e8,
)

SPEECH = Workload(
    model="speech-ctc-s",
    dataset="dock-calls-v2",
    purpose="finetune",
    team="vision",
    seq_len=None,
    global_batch_samples=256,
    target_metric="eval_wer",
    target_value=0.12,
    target_direction="min",
    dataset_samples=3.1e5,
)
