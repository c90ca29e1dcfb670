"""Plans an experiment: counts its trainings, those in the store, and the time of the rest if it is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from protocols.datasets.splits import classes_of
from protocols.setup import Setup
from reproduce.run.session import Session
from results.spec.search_settings import SearchSettings
from results.spec.training_spec import FoldSpec
from results.store.store import Store, Timing
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
        seconds_each: Mean seconds of stored trainings under the same conditions: the method's own, or those of all
            methods. None if there is none, or if nothing is left to do.
    """

    title: str
    trainings: int
    in_store: int
    steps: int
    images: int
    seconds_each: float | None = None

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
        return None if self.seconds_each is None else self.to_do * self.seconds_each


def plan(
    session: Session, store: Store | None, timings: Callable[[], Sequence[Timing]] = lambda: ()
) -> list[MethodPlan]:
    """Plan each method of an opened experiment.

    Args:
        store: It is only read; None where there is none yet.
        timings: Gives how long stored trainings took. It is called if a method has something left to do.
    """
    plans = []
    for key, study in session.studies(store.searches if store else None).items():
        names = [] if store is None else session.protocol.foreseeable(study)
        kinds = session.protocol.kinds(study)
        steps = max(_steps(study.setup, kind) for kind in kinds)
        trainings = session.protocol.trainings_of(study) - study.skipped()
        in_store = 0 if store is None else len(store.finished_folds(names))
        alike = [] if trainings == in_store else timings()
        plans.append(
            MethodPlan(
                title=session.titles[key],
                trainings=trainings,
                in_store=in_store,
                steps=steps,
                images=steps * study.setup.conditions.training.batch_size,
                seconds_each=_seconds_each(key, kinds, alike),
            )
        )
    return plans


def _seconds_each(method: str, kinds: Sequence[FoldSpec], timings: Sequence[Timing]) -> float | None:
    conditions = [(kind.dataset, kind.conditions) for kind in kinds]
    alike = [one for one in timings if (one.dataset, one.conditions) in conditions]
    measured = [one for one in alike if one.method == method] or alike
    count = sum(one.trainings for one in measured)
    return sum(one.seconds for one in measured) / count if count else None


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
    training_images = len(setup.dataset.images.of_classes(classes_of(spec).train))
    return spec.conditions.training.max_epochs * spec.conditions.training.steps_per_epoch(training_images)
