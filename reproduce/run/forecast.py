"""Plans an experiment: counts its trainings and those in the store. How long they take, the run itself tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from protocols.datasets.splits import classes_of
from protocols.setup import Setup
from reproduce.run.session import Session
from results.spec.search_settings import SearchSettings
from results.spec.training_spec import FoldSpec
from results.store.store import Store
from results.wording import in_words


@dataclass(frozen=True)
class MethodPlan:
    """The planned trainings of one method.

    Attributes:
        title: The method's title.
        trainings: Number of trainings of all its trials and reproductions; with racing at most.
        in_store: How many of them are in the store.
        steps: Number of optimizer steps of a training that early stopping does not end; 0 without a loss.
        images: Number of images, or rows of features, in the batches of these steps.
    """

    title: str
    trainings: int
    in_store: int
    steps: int
    images: int

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.trainings - self.in_store


def plan(session: Session, store: Store | None) -> list[MethodPlan]:
    """Plan each method of an opened experiment. The store is only read; None where there is none yet."""
    plans = []
    for key, study in session.studies(store.searches if store else None).items():
        names = [] if store is None else session.protocol.foreseeable(study)
        steps = max(_steps(study.setup, kind) for kind in session.protocol.kinds(study))
        plans.append(
            MethodPlan(
                title=session.titles[key],
                trainings=session.protocol.trainings_of(study) - study.skipped(),
                in_store=0 if store is None else len(store.finished_folds(names)),
                steps=steps,
                images=steps * study.setup.conditions.training.batch_size,
            )
        )
    return plans


def expectation(
    plans: Sequence[MethodPlan], search: SearchSettings, rate: float | None = None, workers: int = 1
) -> str:
    """Say how many trainings there are, how many are in the store, and by a rate how long the others take at most."""
    trainings, to_do = sum(method.trainings for method in plans), sum(method.to_do for method in plans)
    most = "at most " if search.racing or search.until_decided else ""
    counts = f"{most}{trainings:,} trainings, {trainings - to_do:,} in the store"
    if not to_do:
        return f"{counts}; nothing is left to do"
    if rate is None:
        return f"{counts}, {to_do:,} to do"
    needed = in_words(sum(method.to_do * method.images for method in plans) / rate / workers)
    return f"{counts}; at most {needed} of training at {rate:g} a second, {workers} at a time"


def _steps(setup: Setup, spec: FoldSpec) -> int:
    if spec.method.loss is None:
        return 0
    training_images = len(setup.dataset.images.of_classes(classes_of(spec).train))
    return spec.conditions.training.max_epochs * spec.conditions.training.steps_per_epoch(training_images)
