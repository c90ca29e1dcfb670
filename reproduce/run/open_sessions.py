"""Opens the experiments that the commands `run` and `plan` work on, and checks them before the first training.

All faults of all methods are named at once. A setting that is refused later, in the search, is a failed trial.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from protocols.datasets.dataset_registry import entry_of
from protocols.datasets.listing import DataError
from protocols.machine.processes import run_in_subprocess
from protocols.metrics.metric_registry import check_metric_names, try_metric
from protocols.study import Study
from protocols.training.build_method import RefusedError
from protocols.training.first_step import NothingLearnedError, try_first_step
from protocols.trunks.embedding_model import embedding_size_of
from protocols.trunks.trunk_entry import TrunkError
from protocols.trunks.trunk_registry import trunk_entry
from protocols.users_code.sources import UsersSource, hashed_name, known_sources, remember_sources
from reproduce.errors import InputError
from reproduce.run.open_data import needs_folder
from reproduce.run.progress import Bars
from reproduce.run.session import Session, open_session
from reproduce.storage import StoragePaths, existing_store
from reproduce.terminal import say
from results.findings.experiment import handicaps
from results.spec.experiment_spec import Experiment
from results.spec.method import Method, sources_of
from results.spec.range import Range, corners, middle_of
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK
from results.store.versions import versions
from results.wording import counted, listed, verb

_OF_THIS_MACHINE = (MemoryError, OSError, RuntimeError)
"""What says something about this machine only; another one may train."""


def checked(name: str, experiment: Experiment) -> Experiment:
    """Return an experiment whose dataset, trunk and metrics exist; users' metrics get the hashes of their sources.

    Methods are checked when their cards are opened (`open_method`).
    """
    key = "dataset"
    try:
        entry_of(experiment.dataset.name)
        key = "trunk"
        if experiment.conditions.trunk.name != NO_TRUNK:
            trunk_entry(experiment.conditions.trunk)
        key = "metrics"
        check_metric_names(experiment.metrics)
    except (DataError, TrunkError, ValueError) as error:
        raise InputError(f"{name}: key {key!r}: {error}") from error
    metrics = tuple(hashed_name(metric, try_metric) for metric in experiment.metrics)
    return experiment.model_copy(update={"metrics": metrics})


def open_sessions(
    loaded: Mapping[str, Experiment],
    where: StoragePaths,
    weights: Path | None = None,
    *,
    plan: bool,
    device: str = "cpu",
) -> list[Session]:
    """Open the experiments of a file, with the progress for weights, images and features, and check their methods.

    A panel whose images have no folder is left out with a message, as long as another panel can be run. A `plan` needs
    neither images nor weights. All are open before the first is returned, so faults are reported before any training.
    """
    sessions = []
    known = {key: checked(key, experiment) for key, experiment in loaded.items()}
    without_images = [key for key, experiment in known.items() if needs_folder(experiment) and not plan]
    if len(without_images) == len(known) > 1:
        options = " and ".join(sorted(f"--data {known[key].dataset.name}=FOLDER" for key in without_images))
        raise InputError(f"{without_images[0].partition('/')[0]}: give at least one folder of images with {options}")
    for key, experiment in known.items():
        if key in without_images and len(known) > 1:
            say(f"{key}: not run, since there is no --data {experiment.dataset.name}=FOLDER")
            continue
        with Bars() as bars:
            session = open_session(key, experiment, where, bars, weights, outline=plan, device=device)
        sessions.append(session)
    found = [finding.sentences for session in sessions for finding in handicaps(session.plan)]
    found += [remark for session in sessions for remark in _equal_methods(session)]
    for remark in dict.fromkeys((*check_settings(sessions), *found, *_changed_sources(sessions, where))):
        say(f"note: {remark}")
    return sessions


def _equal_methods(session: Session) -> Iterator[str]:
    """Say which methods differ in nothing but values that their searches replace."""
    alike: dict[str, list[str]] = {}
    for key, study in session.studies().items():
        if study.row.ranges and not session.plan.defaults:
            searched = study.method.at(middle_of(study.row.ranges)).model_copy(update={"name": ""})
            alike.setdefault(repr((searched, study.row.ranges, study.setup.conditions)), []).append(key)
    for keys in (several for several in alike.values() if len(several) > 1):
        yield f"{listed(keys)} are one method: their cards differ at most in values that the search replaces"


def _changed_sources(sessions: Sequence[Session], where: StoragePaths) -> Iterator[str]:
    """Say which classes of users have another source than all their trainings in the store."""
    methods = [study.method for session in sessions for study in session.studies().values()]
    used = [(method.name, source) for method in methods for source in sources_of(method)]
    store = existing_store(str(where.store)) if used else None
    stored = versions(store.database) if store else []
    for method, source in used:
        alike = [one for one in stored if one.method == method and _undated(one.source) == _undated(source)]
        if alike and source not in [one.source for one in alike]:
            others = f"its {counted(alike[0].trainings, 'training')} of {alike[0].last[:16].replace('T', ' ')} UTC"
            yield f"{method}: {_undated(source)} changed since {others}, which stay in the store; it is trained anew"


def _undated(source: str) -> str:
    return source.partition(" (sha256 ")[0]


def check_settings(sessions: Sequence[Session]) -> tuple[str, ...]:
    """Try a batch of random embeddings with each method: in the middle, with both ends of its ranges and every choice.

    Returns:
        What the user should know about methods that can be trained.

    Raises:
        InputError: Methods cannot be trained; the message has the reasons of all of them.
    """
    faults: dict[str, list[str]] = {}
    remarks: dict[str, None] = {}
    for session in sessions:
        studies = session.studies()
        for key in sorted(session.experiment.search.ranges.keys() - studies.keys()):
            remarks[f"search.ranges: {key} is no searched method here"] = None
        if session.plan.defaults and min(session.experiment.search.searches, session.experiment.reproductions) < 2:
            remarks["search.default: what tuning gains takes --searches 2 and --reproductions 2, or more"] = None
        for key, study in studies.items():
            trunk = study.setup.conditions.trunk
            if trunk.name != NO_TRUNK and (note := trunk_entry(trunk).note):
                remarks[note] = None
            place = f"{session.name}, {key}" if len(sessions) > 1 else key
            try:
                remarks |= dict.fromkeys(f"{place}: {remark}" for remark in _remarks_on(session, study))
            except _OF_THIS_MACHINE:
                continue
            except ValueError as error:  # MethodError, HyperparameterError, and batches that cannot be drawn.
                faults.setdefault(str(error), []).append(place)
    if faults:
        text = "; ".join(f"{', '.join(places)}: {reason.rstrip('.')}" for reason, places in faults.items())
        raise InputError(
            f"nothing was trained, since these methods cannot be: {text}. Change their settings, the ranges "
            "(search.ranges) or training.batch_size, or leave these methods out"
        )
    return tuple(remarks)


def _remarks_on(session: Session, study: Study) -> tuple[str, ...]:
    spec = study.setup.example(study.method, session.protocol.kinds(study)[0])
    if study.method.loss is None:
        return _discriminants(spec)
    of_training = (spec.conditions.training, embedding_size_of(spec), study.setup.training_data(spec).train_targets)
    first_steps = study.method, study.row.ranges, of_training
    if sources_of(study.method):
        return tuple(run_in_subprocess(_try_there, known_sources(), *first_steps))
    return _try(*first_steps)


def _discriminants(spec: FoldSpec) -> tuple[str, ...]:
    """Say that the embeddings have fewer dimensions than were asked for, since there are fewer discriminants."""
    asked, size = spec.conditions.embedding_size, embedding_size_of(spec)
    if spec.embedder.init != "lda" or (asked is not None and asked <= size):
        return ()
    return (
        f"{counted(size + 1, 'training class')} {verb(size + 1, 'have')} {counted(size, 'discriminant')}, so its "
        "embeddings have no more dimensions",
    )


def _try_there(sources: Mapping[str, UsersSource], *first_step: Any) -> tuple[str, ...]:
    """Try users' code in a process of its own, since the code may change anything in it."""
    remember_sources(sources)
    return _try(*first_step)


def _try(method: Method, space: Mapping[str, Range], of_training: tuple[Any, ...]) -> tuple[str, ...]:
    """Try the middle of all ranges, then settings that together have every end and choice.

    Where such a setting is refused, each of its values is tried alone, and those that are refused are named.
    """
    middle = middle_of(space)
    remarks = try_first_step(method.at(middle), *of_training)
    refused: dict[str, None] = {}
    for corner in corners(space):
        if not _refusal(method, corner, of_training):
            continue
        for target, value in corner.items():
            if reason := _refusal(method, {**middle, target: value}, of_training):
                refused[f"at {target} {value}: {reason}"] = None
    if refused:
        raise RefusedError("; ".join(refused))
    return remarks


def _refusal(method: Method, setting: dict[str, JsonValue], of_training: tuple[Any, ...]) -> str | None:
    try:
        try_first_step(method.at(setting), *of_training)
    except NothingLearnedError:
        return None
    except ValueError as error:
        return str(error)
    return None
