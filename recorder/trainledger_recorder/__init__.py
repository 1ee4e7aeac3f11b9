"""Records the events of a training job for trainledger; standard library only, never blocks training."""

from trainledger_recorder.callbacks import HuggingFaceCallback, LightningCallback
from trainledger_recorder.recorder import Recorder

__all__ = ["HuggingFaceCallback", "LightningCallback", "Recorder"]
__version__ = "0.1.0"
