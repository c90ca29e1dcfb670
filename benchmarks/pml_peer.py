"""pytorch-metric-learning's trainer and tester on a fold, as its users write it: the peer of `make bench-gpu`.

    python -m benchmarks.pml_peer FOLDER DEVICE STEPS SIDE BATCH WORKERS

Prints "ready" once the model is built, waits for a line, trains five epochs, and prints the steps a second: after the
first epoch, and from the start. A validation is after the first epoch and after the fifth.
"""

import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from pytorch_metric_learning import distances, losses, samplers, testers, trainers
from pytorch_metric_learning.utils import inference
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import nn
from torch.utils.data import Dataset

from protocols.datasets.splits import mlrc_split
from protocols.trunks.bn_inception import BNInception


class Pictures(Dataset[Any]):
    """The images of some classes, with torchvision's transforms where it is there."""

    def __init__(self, folders: list[Path], side: int, train: bool) -> None:
        self.files = [(path, label) for label, folder in enumerate(folders) for path in sorted(folder.iterdir())]
        self.labels = [label for _, label in self.files]
        self.transform = transform(side, train)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.files[index]
        with Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


def transform(side: int, train: bool) -> Any:
    try:
        from torchvision import transforms as t
    except ImportError:
        return lambda image: torch.from_numpy(np.array(image.resize((side, side)))).permute(2, 0, 1) / 255
    crop = [t.RandomResizedCrop(side, scale=(0.16, 1)), t.RandomHorizontalFlip()] if train else [t.CenterCrop(side)]
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    return t.Compose([t.Resize(round(side * 256 / 227)), *crop, t.ToTensor(), t.Normalize(mean, std)])


class Trunk(nn.Module):
    """BN-Inception with average pooling and frozen batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.network = BNInception()

    def train(self, mode: bool = True) -> "Trunk":
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
                module.requires_grad_(False)
        return self

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.network(images).mean((2, 3))


def main() -> None:
    """Train as the arguments say."""
    folder, device, steps, side, batch, workers = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
    logging.getLogger().setLevel(logging.ERROR)
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    fold = mlrc_split(len(folders)).folds[0]
    train, validation = (
        Pictures([folders[rank] for rank in ranks], side, ranks is fold.train)
        for ranks in (fold.train, fold.validation)
    )
    models = {"trunk": Trunk().to(device), "embedder": nn.Linear(1024, 128).to(device)}
    loss = losses.ProxyAnchorLoss(len(fold.train), 128).to(device)
    rms = {"lr": 1e-6, "weight_decay": 1e-4, "momentum": 0.9}
    optimizers = {
        "trunk_optimizer": torch.optim.RMSprop([p for p in models["trunk"].parameters() if p.requires_grad], **rms),
        "embedder_optimizer": torch.optim.RMSprop(models["embedder"].parameters(), **rms),
        "metric_loss_optimizer": torch.optim.RMSprop(loss.parameters(), lr=1e-4),
    }
    tester = testers.GlobalEmbeddingSpaceTester(
        dataloader_num_workers=workers,
        data_device=device,
        batch_size=2 * batch,
        accuracy_calculator=AccuracyCalculator(
            include=("mean_average_precision_at_r",),
            k="max_bin_count",
            knn_func=inference.CustomKNN(distances.LpDistance()),  # The defaults need faiss; MAP@R needs no clusters.
            kmeans_func=lambda *_: None,
            device=torch.device(device),
        ),
    )
    times = []

    def at_end(trainer: Any) -> None:
        if trainer.epoch in (1, 5):
            tester.test({"val": validation}, trainer.epoch, models["trunk"], models["embedder"])
            times.append(time.perf_counter())

    trainer = trainers.MetricLossOnly(
        models,
        optimizers,
        batch,
        {"metric_loss": loss},
        train,
        sampler=samplers.MPerClassSampler(train.labels, 4, batch),
        dataloader_num_workers=workers,
        data_device=device,
        iterations_per_epoch=steps,
        end_of_epoch_hook=at_end,
    )
    print("ready", flush=True)
    if not sys.stdin.readline():  # The benchmark has ended.
        return
    started = time.perf_counter()
    trainer.train(num_epochs=5)
    print(4 * steps / (times[1] - times[0]), 5 * steps / (times[1] - started))


if __name__ == "__main__":
    main()
