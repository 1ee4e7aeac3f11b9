"""A small training on the CPU that records itself: run by an interpreter that has PyTorch.

`train.py FOLDER IMDS EPOCHS [UPLOAD]` trains from the last checkpoint in FOLDER on; an epoch takes about half a second.
"""

import sys
import time
from pathlib import Path

import torch
from trainledger_recorder import Recorder


def main(folder: Path, imds: str, epochs: int) -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.randn(256, 8)
    y = x.sum(dim=1, keepdim=True)
    latest, first = folder / "latest.pt", 1
    facts = {"model": "mlp", "dataset": "sums", "dataset_samples": 256, "purpose": "pretrain"}
    with Recorder("cpu-1", folder / "runs", imds=imds, **facts) as run:
        if latest.exists():
            with run.phase("restore"):
                state = torch.load(latest)
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])
                first = state["epoch"] + 1
        for epoch in range(first, epochs + 1):
            began = time.monotonic()
            while time.monotonic() - began < 0.5:
                loss = torch.nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            run.epoch_completed(epoch, step=epoch, samples_seen=256 * epoch)
            if epoch % 2 == 0:
                with run.checkpoint(step=epoch, uri=latest):
                    held = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                    torch.save(held, latest)
            run.evaluation("eval_loss", float(loss), step=epoch)


main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
