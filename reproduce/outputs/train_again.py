"""Trains stored trainings again, with the same data, in this process. Nothing in the store changes."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError

import torch

from protocols.datasets.dataset import fold_data
from protocols.training.build_method import MethodError
from protocols.training.check_method import with_versions
from protocols.training.train_fold import train_fold
from protocols.users_code.kept import remember_kept_sources
from reproduce.errors import InputError, WorkFailedError
from reproduce.run.open_data import OpenedData
from reproduce.run.tasks import another_result
from results.atomic_files import BAD_ZIP
from results.records.artifacts import weights_path
from results.records.provenance import CUDA_GRAPHS, DECIDING_PACKAGES, Provenance
from results.records.records import FoldResult
from results.spec.training_spec import TRAINING_VERSION, FoldSpec, sources_of_training
from results.store.store import Start, Store
from results.wording import first_line

_MACHINE = ("device", "threads", "cpu_count", "host_system", "processor")


@dataclass(frozen=True)
class StoredTraining:
    """A training of an experiment in the store.

    Attributes:
        start: The experiment.
        result: Its stored result.
        keeps_checkpoint: Whether a test evaluation was made with its weights.
    """

    start: Start
    result: FoldResult
    keeps_checkpoint: bool

    @property
    def called(self) -> str:
        """The training's name in messages."""
        purpose = "reproduction" if self.keeps_checkpoint else "search or choice of the epoch"
        spec = self.result.spec
        return f"{self.start.name}, {spec.method.name}, fold {spec.fold} ({purpose}) {spec.fingerprint[:12]}"


def stored_trainings(store: Store, experiment: Start) -> list[StoredTraining]:
    """Return the finished trainings of an experiment: those of its runs, and those of its searches."""
    summary, records = experiment.summary, store.experiment_runs(experiment.fingerprint)
    tested = {fingerprint for record in records for fingerprint in record.fold_fingerprints}
    others = {fingerprint for record in records for fingerprint in record.chosen_by}
    for (method, _), study in store.searches.of_experiment(experiment.fingerprint).items():
        if method in summary.rows:
            others |= {fingerprint for trial in study.trials for fingerprint in trial.trainings}
    return [
        StoredTraining(experiment, result, fingerprint in tested)
        for fingerprint, result in store.fold_results(tested | others).items()
    ]


def random_sample(store: Store, trainings: Iterable[StoredTraining], size: int, seed: int) -> list[StoredTraining]:
    """Take trainings that this version of the code made, at random. The same seed takes the same ones."""
    by_fingerprint = {training.result.fingerprint: training for training in trainings}
    for training in by_fingerprint.values():
        remember_kept_sources(store.artifacts, sources_of_training(training.result.spec))
    possible = [training for _, training in sorted(by_fingerprint.items()) if _is_of_this_version(training.result.spec)]
    return random.Random(seed).sample(possible, min(size, len(possible)))


def _is_of_this_version(spec: FoldSpec) -> bool:
    """Return whether this code trains what the specification means: same training version, same classes."""
    try:
        return spec.training_version == TRAINING_VERSION and with_versions(spec.method).versions == spec.method.versions
    except MethodError:
        return False


@dataclass(frozen=True)
class Comparison:
    """How a training that was made again differs from the stored one, and how the two machines differ, in words.

    The first is empty if everything is equal.
    """

    difference: str
    machines: tuple[str, ...]

    def __str__(self) -> str:
        where = f"; made with {', '.join(self.machines)}" if self.machines else ""
        return f"{self.difference}{where}" if self.difference else "equal"


def train_again(training: StoredTraining, data: OpenedData, artifacts: Path) -> Comparison:
    """Make a training again, and compare it with the stored one, and with its checkpoint if it should have one."""
    stored, spec = training.result, training.result.spec
    dataset = data.of_training(spec, training.start.summary.experiment, f"of {training.called}")
    images = fold_data(dataset, spec)
    try:
        again = train_fold(spec, images, device=data.device)
    except (InputError, OSError, RuntimeError) as error:
        raise WorkFailedError(f"{training.called}: cannot be trained again ({first_line(error)})") from error
    checkpoint, difference = weights_path(artifacts, spec), another_result(stored, again.result)
    if training.keeps_checkpoint and not difference:
        try:
            kept = torch.load(checkpoint, map_location="cpu", weights_only=True)
            same_names = kept.keys() == again.weights.keys()
            equal = same_names and all(torch.equal(kept[name], own.cpu()) for name, own in again.weights.items())
            difference = "" if equal else f"other weights than those in {checkpoint}"
        except (OSError, RuntimeError, EOFError, UnpicklingError, *BAD_ZIP) as error:
            difference = f"{checkpoint} cannot be loaded ({type(error).__name__})"
    return Comparison(difference, _other_machine(stored.provenance, again.result.provenance))


def _other_machine(stored: Provenance, again: Provenance) -> tuple[str, ...]:
    before, now = ({**dict(origin), **origin.versions, **origin.math} for origin in (stored, again))
    deciding = (*_MACHINE, *DECIDING_PACKAGES, *sorted(stored.math.keys() - {CUDA_GRAPHS}))
    return tuple(
        f"{name.replace('_', ' ')} {now[name]} instead of {before[name] or 'unknown'}"
        for name in deciding
        if name in before and name in now and before[name] != now[name]
    )
