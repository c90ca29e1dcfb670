"""Trains stored trainings again, with the same data, in this process. Nothing in the store changes."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor

from protocols.splits import SplitError
from protocols.training.build_method import MethodError
from protocols.training.check_method import with_versions
from protocols.training.fold_data import fold_data
from protocols.training.train_fold import TrainedFold, train_fold
from protocols.trunks.weights import TrunkError
from protocols.users_code.kept import remember_kept_sources
from protocols.users_code.sources import SourceError
from reproduce.errors import WorkFailedError, as_input_errors
from reproduce.run.open_data import OpenedData
from results.atomic_files import BAD_ZIP
from results.records.artifacts import weights_path
from results.records.provenance import CUDA_GRAPHS, DECIDING_PACKAGES, Provenance
from results.records.records import FoldResult
from results.spec.source_names import sources_of_training
from results.spec.training_spec import TRAINING_VERSION, FoldSpec
from results.store.store import Start, Store
from results.wording import first_line

_CIRCUMSTANCES = {"wall_time", "provenance"}


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
        if method in summary.methods:
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
    """How a training that was made again differs from the stored one.

    Attributes:
        differences: What differs, in words; empty if everything is equal bit for bit.
        machines: What differs between the machines and packages of the two, in words.
    """

    differences: tuple[str, ...]
    machines: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in one line."""
        where = f"; made with {', '.join(self.machines)}" if self.machines else ""
        return f"differs: {', '.join(self.differences)}{where}" if self.differences else "equal bit for bit"


def train_again(training: StoredTraining, data: OpenedData, artifacts: Path) -> Comparison:
    """Make a training again, and compare it with the stored one."""
    spec = training.result.spec
    dataset = data.of_training(spec, training.start.summary.experiment, f"of {training.called}")
    with as_input_errors():
        images = fold_data(dataset, spec)
    try:
        again = train_fold(spec, images, device=data.device)
    except (MethodError, SplitError, SourceError, TrunkError, OSError, RuntimeError) as error:
        raise WorkFailedError(f"{training.called}: cannot be trained again ({first_line(error)})") from error
    return compare_training(
        training.result, again, weights_path(artifacts, spec) if training.keeps_checkpoint else None
    )


def compare_training(stored: FoldResult, again: TrainedFold, weights: Path | None) -> Comparison:
    """Compare a training with its stored result, and with its checkpoint if it should have one."""
    differences = list(_different_fields(stored, again.result))
    if weights is not None:
        differences += _different_tensors(weights, again.weights)
    machines = tuple(_different_machines(stored.provenance, again.result.provenance))
    return Comparison(tuple(differences), machines)


def _different_fields(stored: FoldResult, again: FoldResult) -> Iterator[str]:
    first, second = stored.model_dump(exclude=_CIRCUMSTANCES), again.model_dump(exclude=_CIRCUMSTANCES)
    for name, value in first.items():
        if value != second[name]:
            yield "the curve" if name == "curve" else f"{name} {second[name]} instead of {value}"
    scores = stored.best_map_at_r, again.best_map_at_r
    if scores[0] is not None and scores[1] is not None and scores[0] != scores[1]:
        yield f"the best MAP@R by {100 * (scores[1] - scores[0]):+.4f} points"


def _different_tensors(stored: Path, again: dict[str, Tensor]) -> Iterator[str]:
    """Yield what differs between a checkpoint and new weights."""
    if not stored.is_file():
        yield f"the checkpoint {stored} is missing"
        return
    try:
        first = torch.load(stored, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError, *BAD_ZIP) as error:
        yield f"{stored} cannot be loaded ({type(error).__name__})"
        return
    differing = [name for name in first.keys() | again.keys() if not _equal(first.get(name), again.get(name))]
    if differing:
        yield f"{len(differing)} of {len(first)} tensors in {stored.name}"


def _equal(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether two tensors are equal bit for bit, NaN included."""
    if first is None or second is None or first.dtype != second.dtype or first.shape != second.shape:
        return False
    return first.contiguous().numpy().tobytes() == second.cpu().contiguous().numpy().tobytes()


def _different_machines(stored: Provenance, again: Provenance) -> Iterator[str]:
    for name in ("device", "threads", "cpu_count", "host_system", "processor"):
        if getattr(stored, name) != getattr(again, name):
            yield f"{name.replace('_', ' ')} {getattr(again, name)} instead of {getattr(stored, name) or 'unknown'}"
    before, now = ({**origin.versions, **origin.math} for origin in (stored, again))
    for name in (*DECIDING_PACKAGES, *sorted(stored.math.keys() - {CUDA_GRAPHS})):
        if name in before and name in now and before[name] != now[name]:
            yield f"{name} {now[name]} instead of {before[name]}"
