"""Callbacks for the Hugging Face Trainer and for Lightning; neither library is needed unless it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


class HuggingFaceCallback(_TrainerCallback):  # type: ignore[misc,valid-type]
    """Records start, epochs, saves, evaluations and end of a `transformers.Trainer`; add it to `callbacks`."""

    def __init__(self, run: Recorder):
        self._run = run

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._run.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._run.end()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # The last epoch may read 2.97 where a partial accumulation was dropped.
        tokens = getattr(state, "num_input_tokens_seen", None) or None
        self._run.epoch_completed(round(state.epoch), step=state.global_step, tokens_seen=tokens)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self._run.checkpoint_saved(step=state.global_step, uri=folder)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
        for name, value in (metrics or {}).items():
            if isinstance(value, (int, float)) and not name.endswith(("_runtime", "_per_second", "epoch")):
                self._run.evaluation(name, value, step=state.global_step, split="eval")

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._run.heartbeat(step=state.global_step)


class LightningCallback(_Callback):  # type: ignore[misc,valid-type]
    """Records start, epochs, saves, evaluations and end of a Lightning `Trainer`; add it to `callbacks`."""

    def __init__(self, run: Recorder):
        self._run = run

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        self._run.start()

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self._run.end()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._run.end(exception)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        # Lightning counts epochs from 0.
        self._run.epoch_completed(trainer.current_epoch + 1, step=trainer.global_step)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if getattr(trainer, "sanity_checking", False):
            return
        for name, value in trainer.callback_metrics.items():
            if str(name).startswith(("val", "test", "eval")):
                self._run.evaluation(str(name), float(value), step=trainer.global_step)

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        # The file is written after this: the next event shows that it exists.
        self._run.heartbeat(step=trainer.global_step)

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any, **__: Any) -> None:
        saver = getattr(trainer, "checkpoint_callback", None)
        path = getattr(saver, "last_model_path", "") or getattr(saver, "best_model_path", "")
        if path and path != getattr(self, "_saved", None):
            self._saved = path
            self._run.checkpoint_saved(step=trainer.global_step, uri=path)
