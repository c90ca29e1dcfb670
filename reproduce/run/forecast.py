"""Plans an experiment: counts its trainings, those in the store, and the time of the rest if it is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from protocols.datasets.splits import from_ranges
from protocols.setup import Setup
from reproduce.run.session import Session
from results.records.records import FoldResult
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
        steps: Number of optimizer steps of a training that early stopping does not end.
        images: Number of images, or rows of features, in the batches of these steps.
        measured: Seconds of the stored trainings under the same conditions: the method's own, or those of all methods.
    """

    title: str
    trainings: int
    in_store: int
    steps: int
    images: int
    measured: tuple[float, ...] = ()

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.trainings - self.in_store

    def seconds(self, rate: float | None = None) -> float | None:
        """Return how long what is to do takes, one training after another; None if that is not known.

        Args:
            rate: Images per second. All steps are counted then, so the time is an upper bound.
        """
        if not self.to_do or not self.steps:
            # A method without a loss only embeds images.
            return 0.0
        if rate is not None:
            return self.to_do * self.images / rate
        return self.to_do * fmean(self.measured) if self.measured else None


def plan(session: Session, store: Store | None, trained: Sequence[FoldResult] = ()) -> list[MethodPlan]:
    """Plan each method of an opened experiment. The store is only read; None where there is none yet."""
    plans = []
    for key, study in session.studies(store.searches if store else None).items():
        setup = study.setup
        specs = [] if store is None else session.protocol.foreseeable(study)
        kinds = session.protocol.kinds(study)
        conditions = [(kind.dataset, kind.conditions) for kind in kinds]
        alike = [one for one in trained if (one.spec.dataset, one.spec.conditions) in conditions]
        own = [one for one in alike if one.spec.method.name == key]
        steps = max(_steps(setup, kind) for kind in kinds)
        plans.append(
            MethodPlan(
                title=session.titles[key],
                trainings=session.protocol.trainings_of(study) - study.skipped(),
                in_store=0 if store is None else len(store.finished_folds([spec.fingerprint for spec in specs])),
                steps=steps,
                images=steps * setup.conditions.training.batch_size,
                measured=tuple(one.wall_time for one in own or alike if one.iterations),
            )
        )
    return plans


def expectation(plans: Sequence[MethodPlan], workers: int, search: SearchSettings, rate: float | None = None) -> str:
    """Say how many trainings there are, how many are in the store, and how long the others take if that is known."""
    trainings, to_do = sum(method.trainings for method in plans), sum(method.to_do for method in plans)
    known = [seconds for method in plans if (seconds := method.seconds(rate)) is not None]
    needed = in_words(sum(known) / workers)
    if not to_do:
        left = "nothing is left to do"
    elif len(known) < len(plans):
        left = "how long they take is not known; `plan --rate IMAGES_PER_SECOND` tells, or the first trainings"
    elif rate is not None:
        left = f"at most {needed} of training at {rate:g} a second, {workers} at a time"
    else:
        left = f"about {needed} left, {workers} at a time, by the trainings in the store"
    most = "at most " if search.racing or search.until_decided else ""
    return f"{most}{trainings:,} trainings, {trainings - to_do:,} in the store; {left}"


def _steps(setup: Setup, spec: FoldSpec) -> int:
    if spec.method.loss is None:
        return 0
    training_images = len(setup.dataset.images.of_classes(from_ranges(spec.train_classes)))
    return spec.conditions.training.max_epochs * spec.conditions.training.steps_per_epoch(training_images)
