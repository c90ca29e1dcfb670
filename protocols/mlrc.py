"""The protocol of A Metric Learning Reality Check (Musgrave, Belongie, Lim, ECCV 2020), for one method on one dataset.

Numbers in brackets are sections of the specification that this suite follows. It was written from the authors' code.

Other modules hold the rest of the protocol:

- class split and its four folds (2): `protocols.datasets.splits`
- transforms (3): `protocols.images`
- network (4): `protocols.trunks.embedding_model`
- optimizer and batches (5), validation, early stopping and checkpoint (6): `protocols.training.train_fold`
- hyperparameter search (7): `protocols.study`
- test scores (8): `protocols.evaluation.evaluate_run`
"""

from pydantic import JsonValue

from protocols.jobs import Lab, TrainJob
from protocols.study import RunningSearch, Study
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec

PROTOCOL = "mlrc"


def mlrc(search: RunningSearch, lab: Lab) -> list[RunRecord]:
    """Run the protocol: search on validation classes, reproduce the best setting, test the reproductions.

    Args:
        search: One search of a method. Its study has the search space, the budget and the setup that all methods share.
        lab: Makes the trainings and the tests.

    Returns:
        One record per reproduction.
    """
    # Search (7): Bayesian, one trial after another. A trial trains one setting on every fold; its score is the mean
    # over the folds of the best MAP@R on validation classes. Racing, an option that MLRC does not have, gives no more
    # folds to a trial that is clearly behind.
    study, hyperparameters = search.study, search.best_hyperparameters(lab)

    # Reproductions (8): the best setting is trained again from scratch, with fresh seeds, on every fold. The trial that
    # won the search is not one of the runs, because it was selected for its score (11.5).
    runs = reproductions(study, hyperparameters)
    results = iter(lab.train([TrainJob(spec, study.setup.run_fingerprint(specs)) for specs in runs for spec in specs]))
    trained = [tuple(next(results) for _ in specs) for specs in runs]

    # Test (8): test classes appear here for the first time. Each fold's model is scored alone (separated). Then the
    # embeddings of all folds' models are joined and scored once (concatenated).
    return lab.test([study.test_job(PROTOCOL, hyperparameters, run, folds) for run, folds in enumerate(trained)])


def reproductions(study: Study, hyperparameters: dict[str, JsonValue]) -> list[tuple[FoldSpec, ...]]:
    """Specify the trainings of every reproduction of a setting: for each one specification per fold."""
    return [study.trainings(hyperparameters, "reproduction", run) for run in range(study.row.reproductions)]
