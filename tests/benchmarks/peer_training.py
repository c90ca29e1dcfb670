"""A fold trained by pytorch-metric-learning (PML) as one of its users writes it, for `peer_fold`."""

import io
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from pytorch_metric_learning import samplers, testers, trainers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import Tensor, nn
from torch.utils.data import Dataset as TorchDataset

from protocols.images.crops import random_box
from protocols.images.packed_images import LabelledImages
from protocols.training.build_method import build_method
from protocols.training.fold_data import FoldData
from protocols.trunks.embedding_model import EmbeddingModel, model_of
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from results.values import derive_seed


@dataclass(frozen=True)
class FoldWork:
    """The training that both sides make.

    Attributes:
        name: Its name in the table.
        bar: How many times as fast as PML the suite shall be.
        spec: The training; its seed is replaced in every round.
        data: Images of the fold.
        files: By position in the pack, the file of an image; None where the images are arrays.
        workers: Processes of PML's DataLoaders.
    """

    name: str
    bar: float
    spec: FoldSpec
    data: FoldData
    files: list[Path] | None
    workers: int


class PillowImages(TorchDataset[tuple[Tensor, int]]):
    """Images with the suite's transforms, as a user of PML without torchvision writes them.

    Args:
        work: The training.
        images: The selection of images.
        training: Whether to cut random crops.
    """

    def __init__(self, work: FoldWork, images: LabelledImages, *, training: bool) -> None:
        self.images, self.files, self.settings, self.training = (
            images,
            work.files,
            work.spec.conditions.images,
            training,
        )
        model = EmbeddingModel(TrunkSpec(name=work.spec.conditions.trunk.name, weights="random"), None)
        self.mean, self.std, self.channels = model.mean, model.std, model.channels

    def __len__(self) -> int:
        return len(self.images)

    def _picture(self, index: int) -> Image.Image:
        if self.files is None:
            return Image.fromarray(self.images.image(index)[..., 0])
        with Image.open(self.files[int(self.images.rows[index])]) as file:
            picture = file.convert("RGB")
        assert self.settings.resize is not None
        scale = self.settings.resize / min(picture.size)
        size = (int(scale * picture.width + 1e-6), int(scale * picture.height + 1e-6))
        return picture.resize(size, Image.Resampling.BILINEAR)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture, side = self._picture(index), self.settings.crop
        if self.training:
            top, left, height, width = random_box(picture.height, picture.width, self.settings, torch.default_generator)
            picture = picture.crop((left, top, left + width, top + height))
            picture = picture.resize((side, side), Image.Resampling.BILINEAR)
            if self.settings.flip and torch.rand(()) < 0.5:
                picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        else:
            left, top = round((picture.width - side) / 2), round((picture.height - side) / 2)
            picture = picture.crop((left, top, left + side, top + side))
        pixels = torch.from_numpy(np.array(picture)).view(side, side, -1).permute(2, 0, 1).float() / 255
        return (pixels - self.mean) / self.std, int(self.images.labels[index])


class PooledTrunk(nn.Module):
    """A trunk with average pooling: normalised images (n, c, h, w) to features (n, f)."""

    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk

    def forward(self, images: Tensor) -> Tensor:
        """Compute the pooled features of a batch."""
        features: Tensor = self.trunk(images).mean((2, 3))
        return features


def train_by_pml(work: FoldWork, spec: FoldSpec) -> float:
    """Train with PML's trainer and tester; return the last validation MAP@R."""
    training = spec.conditions.training
    torch.manual_seed(derive_seed("network", spec.seed))
    model = model_of(spec)
    models = {"trunk": PooledTrunk(model.trunk), "embedder": model.embedder}
    make: Any = getattr(torch.optim, training.optimizer.name)
    rates = {"lr": training.optimizer.lr, "weight_decay": training.optimizer.weight_decay}
    optimizers = {
        f"{name}_optimizer": make(part.parameters(), **rates, **training.optimizer.arguments)
        for name, part in models.items()
    }
    calculator = AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r"), k="max_bin_count"
    )
    tester = testers.GlobalEmbeddingSpaceTester(
        dataloader_num_workers=work.workers, accuracy_calculator=calculator, data_device=torch.device("cpu")
    )
    validation = {"val": PillowImages(work, work.data.validation, training=False)}
    scores = []

    def validate(trainer: Any = None) -> None:
        epoch = 0 if trainer is None else trainer.epoch
        if epoch % training.validate_every == 0:
            accuracies = tester.test(validation, epoch, models["trunk"], models["embedder"])["val"]
            scores.append(accuracies["mean_average_precision_at_r_level0"])

    trainer = trainers.MetricLossOnly(
        models,
        optimizers,
        training.batch_size,
        {"metric_loss": build_method(spec.method, 1, model.dimensions).loss},
        PillowImages(work, work.data.train, training=True),
        loss_weights={"metric_loss": 1},
        sampler=samplers.MPerClassSampler(work.data.train.labels, spec.method.samples_per_class),
        iterations_per_epoch=training.iterations_per_epoch,
        dataloader_num_workers=work.workers,
        data_device=torch.device("cpu"),
        freeze_trunk_batchnorm=True,
        end_of_epoch_hook=validate,
    )
    torch.manual_seed(spec.seed)
    np.random.seed(spec.seed)  # noqa: NPY002 -- the sampler draws from numpy's global generator
    with redirect_stderr(io.StringIO()):  # Progress bars.
        validate()
        trainer.train(num_epochs=training.max_epochs)
    return float(scores[-1])
