"""The protocol of A Metric Learning Reality Check (Musgrave, Belongie, Lim, ECCV 2020), for one method on one dataset.

Numbers in brackets are sections of the specification that this suite follows. It was written from the authors' code.

Other modules hold the rest of the protocol:

- class split and its four folds (2): `protocols.splits`
- transforms (3): `protocols.images`
- network (4): `protocols.trunks.embedding_model`
- optimizer and batches (5), validation, early stopping and checkpoint (6): `protocols.training.train_fold`
- hyperparameter search (7): `protocols.search.study`
- test scores (8): `protocols.evaluation.evaluate_run`
"""

from pydantic import JsonValue

from protocols.jobs import Lab, TrainJob, evaluation_job
from protocols.search.study import Study
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec

PROTOCOL = "mlrc"
SPLIT = "mlrc"


def mlrc(study: Study, lab: Lab) -> list[RunRecord]:
    """Run the protocol: search on validation classes, reproduce the best setting, test the reproductions.

    Args:
        study: One search of a method: its search space and budget, and the problem that all methods share.
        lab: Makes the trainings and the tests.

    Returns:
        One record per reproduction.
    """
    # Search (7): Bayesian, one trial after another. A trial trains one setting on every fold; its score is the mean
    # over the folds of the best MAP@R on validation classes. Racing, an option that MLRC does not have, gives no more
    # folds to a trial that is clearly behind.
    hyperparameters = study.best_hyperparameters(lab)

    # Reproductions (8): the best setting is trained again from scratch, with fresh seeds, on every fold. The trial that
    # won the search is not one of the runs, because it was selected for its score (11.5).
    runs = reproductions(study, hyperparameters)
    results = lab.train([TrainJob(spec, study.problem.run_name(specs)) for specs in runs for spec in specs])

    # Test (8): test classes appear here for the first time. Each fold's model is scored alone (separated). Then the
    # embeddings of all folds' models are joined and scored once (concatenated).
    tests = []
    for run, specs in enumerate(runs):
        folds = results[run * len(specs) : (run + 1) * len(specs)]
        named_results = [(f"fold {spec.fold}", fold) for spec, fold in zip(specs, folds, strict=True)]
        tests.append(evaluation_job(study.problem, PROTOCOL, specs, named_results, hyperparameters, run, study.name))
    return lab.test(tests)


def reproductions(study: Study, hyperparameters: dict[str, JsonValue]) -> list[tuple[FoldSpec, ...]]:
    """Specify the trainings of every reproduction.

    Args:
        study: The method, its problem and the search that found the setting.
        hyperparameters: The setting to train, by target (such as `loss.margin`).

    Returns:
        For each reproduction one specification per fold.
    """
    method = study.method.at(hyperparameters)
    return [study.problem.fold_specs(method, "reproduction", run) for run in range(study.n_reproductions)]


def trainings_of(study: Study) -> int:
    """Total number of trainings for one method, without racing: searches x folds x (trials + reproductions)."""
    return len(study.searches()) * study.problem.folds * (study.n_trials + study.n_reproductions)


def foreseeable(study: Study) -> list[FoldSpec]:
    """Trainings that are determined now.

    Later trials depend on the scores of earlier ones, so their trainings are not in the list.
    """
    specs: list[FoldSpec] = []
    for search in study.searches():
        specs += search.known_specs()
        hyperparameters = search.found_hyperparameters()
        if hyperparameters is not None:
            specs += [spec for run in reproductions(search, hyperparameters) for spec in run]
    return specs


def kinds(study: Study) -> list[FoldSpec]:
    """One example of each kind of training: there is one kind."""
    return [study.problem.fold_specs(study.method.method, "reproduction", 0)[0]]
