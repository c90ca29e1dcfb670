"""Draws a random sample of the stored trainings of an experiment that this code can train again."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

import optuna
from optuna.trial import TrialState

from protocols.kept_sources import remember_kept_sources
from protocols.search.optuna_search import IDENTITY, TRAININGS
from protocols.training.build_method import MethodError
from protocols.training.component_versions import with_versions
from reproduce.errors import InputError
from reproduce.outputs.find_runs import NamedExperiment
from reproduce.outputs.search_histories import belongs_to
from results.experiment_spec import Experiment
from results.experiment_summary import OTHER_VERSION
from results.records import FoldResult
from results.seeds import search_seed
from results.source_names import sources_of_training
from results.store import Store
from results.training_spec import TRAINING_VERSION, FoldSpec


@dataclass(frozen=True)
class StoredTraining:
    """A training of an experiment in the store.

    Attributes:
        experiment: Name of the experiment.
        settings: The experiment.
        spec: All that decided the training.
        result: Its stored result.
        keeps_checkpoint: Whether a test evaluation was made with its weights.
    """

    experiment: str
    settings: Experiment
    spec: FoldSpec
    result: FoldResult
    keeps_checkpoint: bool

    @property
    def called(self) -> str:
        """The training's name in messages."""
        purpose = "reproduction" if self.keeps_checkpoint else "search or choice of the epoch"
        spec = self.spec
        return f"{self.experiment}, {spec.method.name}, fold {spec.fold} ({purpose}) {spec.fingerprint[:12]}"


@dataclass(frozen=True)
class Sample:
    """A random sample of trainings.

    Attributes:
        drawn: The trainings to make again.
        of: Number of trainings that they were drawn from.
        other_versions: Number of trainings that another version of the code made; they are not drawn from.
    """

    drawn: tuple[StoredTraining, ...]
    of: int
    other_versions: int


def draw_sample(trainings: Iterable[StoredTraining], store: Store, size: int, seed: int) -> Sample:
    """Draw trainings at random. The same seed draws the same ones from an unchanged store.

    Args:
        trainings: The trainings of the experiments.
        store: The store, which has the copies of users' sources.
        size: Number of trainings to draw; fewer if there are fewer.
        seed: Seed of the draw.
    """
    by_fingerprint = {training.spec.fingerprint: training for training in trainings}
    ordered = [by_fingerprint[fingerprint] for fingerprint in sorted(by_fingerprint)]
    for training in ordered:
        remember_kept_sources(store.artifacts, sources_of_training(training.spec))
    possible = [training for training in ordered if _is_of_this_version(training.spec)]
    drawn = random.Random(seed).sample(possible, min(size, len(possible)))
    return Sample(tuple(drawn), len(possible), len(ordered) - len(possible))


def stored_trainings(
    store: Store, experiment: NamedExperiment, studies: optuna.storages.BaseStorage | None
) -> list[StoredTraining]:
    """Return the finished trainings of an experiment: those of its runs, and those of its searches.

    Args:
        store: The store.
        experiment: The experiment.
        studies: Optuna's storage of the searches; None if there is none.

    Raises:
        InputError: The experiment was stored by another version of the suite.
    """
    summary = store.experiment(experiment.fingerprint)
    settings = summary.experiment
    if settings is None:
        raise InputError(f"{experiment.name}: kept with {OTHER_VERSION}; use that version to verify it")
    records = store.experiment_runs(experiment.fingerprint)
    tested = {fingerprint for record in records for fingerprint in record.fold_fingerprints}
    others = {fingerprint for record in records for fingerprint in record.chosen_by}
    if studies is not None:
        data = {record.data_fingerprint for record in records}
        others |= set(_trainings_of_searches(studies, settings, set(summary.methods), data))
    stored = store.fold_results(sorted(tested | others))
    return [
        StoredTraining(experiment.name, settings, spec, result, fingerprint in tested)
        for fingerprint, (spec, result) in stored.items()
    ]


def _trainings_of_searches(
    studies: optuna.storages.BaseStorage, settings: Experiment, methods: set[str], data: set[str]
) -> Iterable[str]:
    """Yield the fingerprints of the trainings of all finished trials of an experiment's searches."""
    seeds = {search_seed(settings.seed, number) for number in range(settings.search.searches)}
    for study in studies.get_all_studies():
        identity = study.user_attrs.get(IDENTITY)
        if not isinstance(identity, dict) or identity["method"]["name"] not in methods:
            continue
        # A repeated search has a seed of its own.
        as_first = {**identity, "seed": settings.seed}
        row = settings.for_row(identity["method"]["name"])
        if identity["seed"] in seeds and belongs_to(as_first, row, data):
            for trial in studies.get_all_trials(study._study_id, deepcopy=False, states=(TrialState.COMPLETE,)):
                yield from trial.user_attrs.get(TRAININGS, ())


def _is_of_this_version(spec: FoldSpec) -> bool:
    """Return whether this code trains what the specification means: same training version, same classes."""
    try:
        return spec.training_version == TRAINING_VERSION and with_versions(spec.method).versions == spec.method.versions
    except MethodError:
        return False
