"""Callbacks for the Hugging Face Trainer and for Lightning; neither library is needed unless it is used."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from trainledger_recorder.journal import now
from trainledger_recorder.recorder import Recorder

try:
    from transformers import TrainerCallback as _TrainerCallback
except ImportError:
    _TrainerCallback = object  # type: ignore[assignment,misc]

try:
    from lightning.pytorch import Callback as _Callback
except ImportError:
    try:
        from pytorch_lightning import Callback as _Callback  # type: ignore[no-redef]
    except ImportError:
        _Callback = object  # type: ignore[assignment,misc]

# So much of an epoch at its end may be missing: batches that were too few to accumulate.
_DROPPED = 0.05
# What the Trainer adds to the scores of an evaluation.
_NO_SCORES = ("_runtime", "_per_second", "epoch", "num_input_tokens_seen")


class HuggingFaceCallback(_TrainerCallback):  # type: ignore[misc,valid-type]
    """Records start, epochs, saves, evaluations and end of a `transformers.Trainer`; add it to `callbacks`.

    A save begins with what the Trainer did last before it: a step, the end of an epoch, a log or an evaluation.
    """

    def __init__(self, run: Recorder):
        self._run = run
        self._mark()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._run.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._mark()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._run.end()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        tokens = getattr(state, "num_input_tokens_seen", None) or None
        # The last epoch may read 2.97 where a partial accumulation was dropped; 2.5 is an epoch that was cut short.
        epoch = max(1, math.ceil(state.epoch - _DROPPED))
        part = _part(state.epoch - epoch + 1)
        self._run.epoch_completed(epoch, step=state.global_step, tokens_seen=tokens, fraction=part)
        self._mark()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        began, started_at = self._marked
        stalled = time.monotonic() - began
        self._run.checkpoint_saved(
            step=state.global_step, uri=folder, stall_seconds=stalled, save_started_at=started_at
        )

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
        for name, value in (metrics or {}).items():
            if isinstance(value, (int, float)) and not name.endswith(_NO_SCORES):
                self._run.evaluation(name, value, step=state.global_step, split="eval")
        self._mark()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._run.heartbeat(step=state.global_step)
        self._mark()

    def _mark(self) -> None:
        """Remember this moment: what the Trainer does next may be a save."""
        self._marked = time.monotonic(), now()


class LightningCallback(_Callback):  # type: ignore[misc,valid-type]
    """Records start, epochs, saves, evaluations and end of a Lightning `Trainer`; add it to `callbacks`."""

    def __init__(self, run: Recorder):
        self._run = run
        self._batch_count = 0

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        self._run.start()
        # Every way to save ends in this method; none of the hooks runs after it.
        if not hasattr(trainer.save_checkpoint, "__wrapped__"):
            trainer.save_checkpoint = self._recorded(trainer, trainer.save_checkpoint)

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self._run.end()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._run.end(exception)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._batch_count = batch_idx + 1

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        # A training that ends within an epoch ends it too. A dataset without a length has infinitely many batches.
        batches = trainer.num_training_batches
        part = _part(self._batch_count / batches) if self._batch_count and math.isfinite(batches) else None
        # Lightning counts epochs from 0.
        self._run.epoch_completed(trainer.current_epoch + 1, step=trainer.global_step, fraction=part)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if getattr(trainer, "sanity_checking", False):
            return
        for name, value in trainer.callback_metrics.items():
            if str(name).startswith(("val", "test", "eval")):
                self._run.evaluation(str(name), float(value), step=trainer.global_step)

    def _recorded(self, trainer: Any, save: Callable[..., None]) -> Callable[..., None]:
        @wraps(save)
        def recorded(filepath: Any, weights_only: bool | None = None, *more: Any, **named: Any) -> None:
            with self._run.checkpoint(step=trainer.global_step, uri=filepath, resumable=not weights_only):
                save(filepath, weights_only, *more, **named)

        return recorded


def _part(done: float) -> float | None:
    """The part of an epoch that was done; None for the whole."""
    return round(done, 4) if done < 1 - _DROPPED else None
