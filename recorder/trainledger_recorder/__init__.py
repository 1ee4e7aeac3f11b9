"""Records the events of a training job or a server for trainledger; standard library only, never blocks either."""

from trainledger_recorder.callbacks import HuggingFaceCallback, LightningCallback
from trainledger_recorder.recorder import Recorder
from trainledger_recorder.serving import ServingRecorder

__all__ = ["HuggingFaceCallback", "LightningCallback", "Recorder", "ServingRecorder"]
__version__ = "0.1.0"
