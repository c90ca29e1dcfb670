"""The shipped experiment files make all points of the papers' figures."""

import pytest

from reports.page.material import Material
from reports.paper_figures import PAPER_FIGURES
from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.deviations import deviations
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_on_dataset import open_method
from results.records.experiment_summary import ExperimentSummary
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_run

pytestmark = pytest.mark.late

# Number of points in each panel, counted by hand from the grids.
POINTS = {
    "proxy_gml_figure4": {"cars196": 90},
    "proxy_gml_figure5": {"cars196": 16},
    # Two methods, two kinds of embeddings, four batch sizes.
    "ccp_figure4": {"cub200": 16, "cars196": 16},
}


def finished(name, experiment):
    """A shipped experiment as if all of its rows had one run."""
    variants = {variant.key: variant for variant in experiment.variants}
    titles, records = {}, []
    for key in experiment.rows:
        card = load_variant(variants[key]) if key in variants else load_card(key)
        titles[key] = card.title
        folds = 1 if experiment.protocol == "standard" else experiment.folds
        records.append(
            some_run(
                key,
                0,
                0.5,
                dataset=experiment.dataset.name,
                protocol=experiment.protocol,
                fold_fingerprints=tuple(f"{key}-{fold}" for fold in range(folds)),
                hyperparameters=open_method(experiment.for_row(key), card).given,
                iterations=10,
            )
        )
    summary = ExperimentSummary(methods=titles, runs=dict.fromkeys(titles, 1), experiment=experiment)
    measured = MeasuredExperiment(summary, tuple(records))
    return Material(name, measured, deviations=deviations(name, summary))


@pytest.mark.parametrize("name", POINTS)
def test_every_row_is_a_point_of_its_figure(name):
    figure = PAPER_FIGURES[name]
    materials = {
        stored.partition("/")[2]: finished(stored, experiment)
        for stored, experiment in load_experiments(figure.experiment, {}).items()
    }
    _, values, _ = figure.draw(materials)
    assert values.groupby("panel").size().to_dict() == POINTS[name]
    assert set(values["n"]) == {1}
    if name.startswith("proxy_gml"):
        assert values["published"].notna().all(), "every point of the slides stands beside a run"
