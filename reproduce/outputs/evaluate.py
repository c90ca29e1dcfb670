"""Scores an exported model, a trunk or features on data that nothing is trained on."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.export.passes import move_to_device_pass

from protocols.datasets.dataset import Dataset
from protocols.evaluation.evaluate_run import TestData, test_data
from protocols.images.packing import Progress
from protocols.images.samples import evaluation_batches_of
from protocols.machine.torch_state import use_precision
from protocols.metrics.retrieval import normalized, query_scores
from reproduce.errors import InputError, read_text
from reproduce.outputs.portable_model import SEEN
from results.answer.intervals import Interval
from results.answer.over_classes import class_half_widths
from results.records.artifacts import read_contents
from results.spec.conditions import ImageSettings
from results.spec.data_choice import samples_word
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import counted, first_line, verb


@dataclass(frozen=True)
class ExportedModel:
    """A model that `export model` or `fit` wrote, how it gets images, and the file of what it has seen."""

    program: Path
    images: ImageSettings
    seen: Path

    @classmethod
    def read(cls, folder: Path) -> "ExportedModel":
        """Read the folder; raise InputError if it is none."""
        try:
            about = json.loads(read_text(folder / "model.json"))
            images = ImageSettings.model_validate(about["spec"]["conditions"]["images"])
        except (InputError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder}: holds no model; give a folder that `export model` or `fit` wrote") from error
        return cls(folder / "model.pt2", images, folder / SEEN)

    def embed(self, data: TestData, device: torch.device) -> Tensor:
        """Compute normalized embeddings (n, d)."""
        try:
            program = torch.export.load(self.program)
            module = move_to_device_pass(program, device).module()
            batches = evaluation_batches_of(data.images, self.images, device, keep=False).batches()
            with torch.no_grad():  # Packed grey images have one channel.
                return torch.cat([module(b.expand(-1, 3, -1, -1) if b.ndim == 4 else b) for b in batches])
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            raise InputError(f"{self.program}: cannot embed these data ({first_line(error)})") from error

    def notes_on_seen(self, dataset: Dataset, data: TestData) -> Iterator[str]:
        """Say how many of the tested samples and classes the model was trained or chosen on."""
        word, tested = samples_word(dataset.name), dataset.contents
        tested = tested[tested["rank"].isin(data.images.labels)]
        if not self.seen.is_file():
            yield f"which {word} the model was trained on is not known; `run` its experiment again, and export it anew"
            return
        seen = read_contents(self.seen)
        again = tested[tested["sha256"].isin(set(seen["sha256"]) - {""})]
        classes = set(again["class"])
        known = (
            f"the model was trained or chosen on {len(again):,} of these {word}, of {counted(len(classes), 'class')}"
        )
        if classes:
            yield f"{known}, so the scores are too high"
        if named := (set(tested["class"]) & set(seen["class"])) - classes:
            yield (
                f"{len(named):,} of these classes {verb(len(named), 'have')} the name of a class that the model was "
                "trained or chosen on "
                f"({min(named)}); if they are the same, the scores are too high"
            )


def data_of_split(dataset: Dataset, split: str | None) -> TestData:
    """Return the test classes of a split; without one all classes, or those that given queries are of."""
    if split is None and (dataset.is_query is None or not dataset.are_test_classes_given):
        return TestData(dataset.images, dataset.is_query)
    return test_data(dataset, dataset.split(split or "conventional"))


def raw_rows(data: TestData) -> Tensor:
    """Return features as they are, normalized (n, c)."""
    rows = evaluation_batches_of(data.images, ImageSettings(), torch.device("cpu")).batches()
    return normalized(torch.cat(list(rows)))


def scores(embeddings: Tensor, data: TestData, progress: Progress | None = None) -> dict[str, Interval]:
    """Compute the metrics of MLRC, means over the queries, with 95 % intervals over the classes.

    Classes are drawn again, as for the pairs of an experiment; for single scores this is too short where classes are
    confused.
    """
    use_precision("float32")
    labels = torch.from_numpy(data.images.labels)
    found = query_scores(embeddings, labels, data.is_query, progress=progress)
    counts, means = found.of_classes(labels.unique())
    widths, classes = class_half_widths(counts.numpy(), means.numpy()), int((counts > 0).sum())
    mean = found.mean()
    return {
        name: Interval(getattr(mean, name), w, classes)
        for name, w in zip(HEADLINE_METRICS, widths.tolist(), strict=True)
    }
