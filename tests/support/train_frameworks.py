"""Small trainings by the frameworks themselves, each with its callback; run by an interpreter that has them.

`train_frameworks.py FOLDER` trains every story, on a GPU where there is one, and records into FOLDER/runs. The scores
that each framework itself shows are written to FOLDER/scores.json.
"""

import json
import sys
from pathlib import Path

import torch
from trainledger_recorder import HuggingFaceCallback, LightningCallback, Recorder


def hugging_face(run: Recorder, folder: Path, **arguments: object) -> list[float]:
    """GPT-2 of a few thousand weights over 40 sequences of 16 tokens in batches of 4: ten steps an epoch."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    rows = [{"input_ids": torch.arange(16), "labels": torch.arange(16)} for _ in range(40)]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=16, n_embd=8, n_layer=1, n_head=1))
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            str(folder),
            per_device_train_batch_size=4,
            save_strategy="epoch",
            eval_strategy="epoch",
            report_to=[],
            disable_tqdm=True,
            include_num_input_tokens_seen="all",
            **arguments,
        ),
        train_dataset=rows,
        eval_dataset=rows[:4],
        callbacks=[HuggingFaceCallback(run)],
    )
    trainer.train()
    return [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]


def lightning(run: Recorder, folder: Path, savers: list, **arguments: object) -> list[float]:
    """A linear model over 40 rows in batches of 4: ten steps an epoch."""
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch: list, number: int) -> torch.Tensor:
            return self.layer(batch[0]).pow(2).mean()

        def validation_step(self, batch: list, number: int) -> None:
            self.log("val_loss", self.layer(batch[0]).pow(2).mean())

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    class Scores(pl.Callback):
        def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
            if not trainer.sanity_checking:
                scores.append(float(trainer.callback_metrics["val_loss"]))

    scores: list[float] = []
    rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 8)), 4)
    trainer = pl.Trainer(
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[LightningCallback(run), Scores(), *(ModelCheckpoint(str(folder), **saver) for saver in savers)],
        **arguments,
    )
    trainer.fit(Model(), rows, rows)
    return scores


STORIES = {
    "hf-epochs": (hugging_face, {"num_train_epochs": 3}),
    "hf-half": (hugging_face, {"num_train_epochs": 1.5}),
    "hf-steps": (hugging_face, {"max_steps": 4}),
    "hf-accumulation": (hugging_face, {"num_train_epochs": 2, "gradient_accumulation_steps": 3}),
    "pl-epochs": (lightning, {"max_epochs": 3, "savers": [{"save_top_k": -1, "save_last": True}]}),
    "pl-steps": (lightning, {"max_steps": 15, "savers": [{"every_n_train_steps": 4, "save_top_k": -1}]}),
    "pl-weights": (lightning, {"max_epochs": 1, "savers": [{"save_weights_only": True}]}),
    "pl-best": (
        lightning,
        {"max_epochs": 2, "savers": [{"every_n_train_steps": 5, "save_top_k": -1}, {"monitor": "val_loss"}]},
    ),
}


def main(folder: Path) -> None:
    scores = {}
    for name, (train, arguments) in STORIES.items():
        run = Recorder(name, folder / "runs", imds="http://127.0.0.1:9", model="m", dataset="d")
        scores[name] = train(run, folder / "saved" / name, **arguments)
        run.close()
    (folder / "scores.json").write_text(json.dumps(scores))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
