"""Records what a training job does as trainledger run events; standard library only, and never in training's way."""

from trainledger_recorder.callbacks import HuggingFaceCallback, LightningCallback
from trainledger_recorder.recorder import Recorder

__all__ = ["HuggingFaceCallback", "LightningCallback", "Recorder"]
__version__ = "0.1.0"
