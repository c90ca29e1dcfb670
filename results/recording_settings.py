"""Which embeddings a run keeps during its trainings, for figures."""

from typing import Literal

from pydantic import Field, model_validator

from results.values import Record


class RecordingSettings(Record):
    """Embeddings to keep during the trainings of the reproductions, for figures. They change no training.

    Attributes:
        images: Whose embeddings are kept. The final training of protocol `standard` has no validation images.
        per_class: Number of images of each class, drawn at random; None takes all.
        classes: Number of classes, at equal intervals; None takes all.
        epochs: Epochs after which embeddings and proxies are kept; 0 is the untrained network.
        problems: Whether to keep the solution of each problem of CCP, with its numbers: the network with the best
            validation score of the problem.
    """

    images: Literal["training", "validation"] = "training"
    per_class: int | None = Field(default=None, ge=1)
    classes: int | None = Field(default=None, ge=2)
    epochs: tuple[int, ...] = ()
    problems: bool = False

    @model_validator(mode="after")
    def _not_empty(self) -> "RecordingSettings":
        if not self.epochs and not self.problems:
            raise ValueError("needs epochs, or problems: true")
        return self
