"""Published tables beside our runs: which runs fill a cell, what the cells say, and that nothing else is filled in."""

from dataclasses import replace

import pytest
from scipy import stats

from reports.published.join import join, published_layout
from reports.tables.formats import to_markdown
from reports.tables.result_table import table_of
from reproduce.config.experiment_file import suite_experiment
from results.findings.experiment import answer_of
from results.published.tables import PublishedColumn, published_table
from tests.support.published_world import MLRC, NOT_FILLED, PAPER, changed, experiment, runs_of, single_runs
from tests.support.sample_records import changed_plan, changed_run, with_own_loss

P1 = PublishedColumn("cub200", "precision_at_1", "separated")
JOINED_P1 = PublishedColumn("cub200", "precision_at_1", "concatenated")
SINGLE_P1 = PublishedColumn("cub200", "precision_at_1", "single")
CUB = published_table("mlrc_cub200")
NEAR = [0.59, 0.60, 0.605]
"""Around the 59.73 that MLRC published for Contrastive."""


def cell(joined, label, column=P1):
    (row,) = [row for row in joined.rows if row.label == label]
    return row.cells[column]


def mlrc(records=None, name="mlrc_cub200", **changes):
    return experiment(name, changed(MLRC, **changes), runs_of("contrastive", NEAR) if records is None else records)


def test_a_cell_holds_mean_interval_and_where_the_published_value_lies():
    joined = join(CUB, [mlrc()])
    found = cell(joined, "Contrastive")
    low, high = stats.t.interval(0.95, 2, loc=sum(NEAR) / 3, scale=stats.sem(NEAR))
    assert (found.ours.low, found.ours.high, found.ours.n) == (pytest.approx(low), pytest.approx(high), 3)
    assert low < 0.5973 < high
    assert (found.verdict, found.origin) == ("inside", "mlrc_cub200")
    assert cell(joined, "Contrastive", JOINED_P1).ours.mean == pytest.approx(sum(NEAR) / 3 + 0.1)
    higher = join(CUB, [mlrc(runs_of("contrastive", [0.65, 0.655, 0.66]))])
    assert cell(higher, "Contrastive").verdict == "above"
    # RP is half of P@1 here, 29.9; 31.98 is published.
    assert cell(joined, "Contrastive", PublishedColumn("cub200", "r_precision", "separated")).verdict == "below"
    assert {
        found.verdict for row in joined.rows if row.label != "Contrastive" for found in row.cells.values()
    } <= NOT_FILLED


def test_repeated_searches_are_the_unit_of_our_interval():
    runs = [
        changed_run(run, **{"search": search, "fingerprint": f"{run.fingerprint}-{search}"})
        for search, values in enumerate(([0.59, 0.60], [0.62, 0.63], [0.55, 0.56]))
        for run in runs_of("contrastive", values)
    ]
    whole = mlrc(runs, search={"trials": 50, "searches": 3})
    found = cell(join(CUB, [whole]), "Contrastive")
    assert (found.ours.mean, found.ours.n) == (pytest.approx(sum((0.595, 0.625, 0.555)) / 3), 3)
    assert found.ours.half_width == table_of(whole.answer).row("contrastive")["separated P@1"].half_width
    # Of the last search one run is missing.
    partly = replace(whole, answer=answer_of(replace(whole.measured, records=tuple(runs[:-1]))))
    found = cell(join(CUB, [partly]), "Contrastive")
    assert (found.ours.mean, found.ours.n) == (pytest.approx(0.61), 2)
    # The last start named other methods, so the experiment's own table does not have this one.
    others = changed_plan(whole.measured.plan, methods={}, runs={})
    alone = replace(whole, answer=answer_of(replace(whole.measured, plan=others)))
    assert cell(join(CUB, [alone]), "Contrastive").ours.n == 3
    assert "With a search of their own only 27 to 84 in 100" in published_layout(join(CUB, [alone])).caption


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trunk": {"name": "efficientnet_lite0"}}, "trunk efficientnet_lite0, published for BN-Inception"),
        ({"trunk": {"weights": "sha256:" + "0" * 64}}, "started from sha256 weights"),
        ({"trunk": {"frozen": True}}, "a frozen trunk"),
        ({"dataset": {"subset": True}}, "a subset of the dataset"),
        ({"images": {"crop": 96}}, "images of 96 pixels, published for 227"),
        ({"methods": ["mine/contrastive.yaml"]}, "a method card of its own"),
    ],
)
def test_runs_that_are_not_what_is_published_fill_nothing_and_are_told(changes, said):
    joined = join(CUB, [mlrc(**changes)])
    assert {found.verdict for found in joined.cells} <= NOT_FILLED
    (note,) = joined.notes
    assert said in note
    assert "mlrc_cub200 (contrastive)" in note


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (mlrc(runs_of("contrastive", NEAR, dimensions=64)), "256 dimensions, published for 512"),
        (mlrc(runs_of("contrastive", NEAR, fold_fingerprints=("a", "b"))), "2 models a run, published for 4"),
        (
            replace(mlrc(), answer=answer_of(with_own_loss(mlrc().measured, "contrastive"))),
            "a loss or miner of its own",
        ),
    ],
)
def test_runs_of_other_models_fill_nothing(stored, said):
    joined = join(CUB, [stored])
    assert {found.verdict for found in joined.cells} <= NOT_FILLED
    assert said in joined.notes[0]


@pytest.mark.parametrize("dataset", ["cub200", "cars196", "sop"])
def test_runs_of_the_shipped_file_fill_mlrcs_table_of_that_dataset(dataset):
    """Every method of the table, at the settings of the suite's own file for the dataset."""
    table, shipped = published_table(f"mlrc_{dataset}"), suite_experiment(f"mlrc_{dataset}")
    methods = [row.key for row in table.rows if row.key]
    runs = [run for method in methods for run in runs_of(method, NEAR, dataset=dataset)]
    stored = experiment(table.name, shipped.without_folder(), runs)
    joined = join(table, [stored])
    verdicts = {found.verdict for row in joined.rows if row.published.key for found in row.cells.values()}
    assert verdicts <= {"inside", "above", "below"}
    assert {row.label for row in joined.rows if not row.was_run} <= {"Pretrained (untrained baseline)"}


def test_runs_of_two_experiments_are_never_pooled():
    """The experiment with most runs fills a cell, of equal ones the latest, which comes first."""
    more = mlrc(runs_of("contrastive", [0.5, 0.6, 0.7, 0.8]), name="mlrc_cub200/more")
    assert cell(join(CUB, [mlrc(name="mlrc_cub200/few"), more]), "Contrastive").ours.n == 4
    assert (
        cell(join(CUB, [mlrc(name="mlrc_cub200/late"), mlrc(name="mlrc_cub200/early")]), "Contrastive").origin
        == "mlrc_cub200/late"
    )
    both = join(CUB, [mlrc(name="mlrc_cub200/few"), mlrc(runs_of("triplet", NEAR), name="mlrc_cub200/other")])
    assert {cell(both, "Contrastive").origin, cell(both, "Triplet").origin} == {"mlrc_cub200/few", "mlrc_cub200/other"}
    assert "Our runs are those of mlrc_cub200/few, mlrc_cub200/other." in both.notes


def test_a_papers_table_takes_only_the_experiment_of_its_name_and_its_panels():
    table, runs = published_table("proxy_isa_table1"), single_runs("proxy_isa", [0.66, 0.67])
    for name, filled in (("proxy_isa_table1/cub200", 1), ("proxy_isa_table1", 1), ("proxy_isa_table10", 0), ("own", 0)):
        joined = join(table, [experiment(name, PAPER, runs)])
        assert sum(found.ours is not None for found in joined.cells) == filled, name


def test_a_run_otherwise_than_its_file_fills_nothing():
    table, runs = published_table("proxy_isa_table1"), single_runs("proxy_isa", [0.66, 0.67])
    apart = experiment("proxy_isa_table1/cub200", PAPER, runs, ("training.max_epochs 2 where the file has 100",))
    joined = join(table, [apart])
    assert {found.verdict for found in joined.cells} <= NOT_FILLED
    assert "not shown, training.max_epochs 2 where the file has 100." in joined.notes[0]
    # An older run as the file says is found behind it.
    whole = experiment("proxy_isa_table1/cub200", PAPER, single_runs("proxy_isa", [0.66]))
    both = join(table, [apart, whole])
    assert cell(both, "Proxy-ISA", SINGLE_P1).ours.n == 1
    assert sum("not shown" in note for note in both.notes) == 1


def test_panels_fill_the_rows_of_their_dimensions_and_image_size():
    table = published_table("proxy_anchor_cub_cars")

    def panel(name, value, dimensions, crop):
        runs = single_runs("proxy_anchor", [value], dimensions=dimensions)
        settings = changed(PAPER, embedding_size=dimensions, images={"crop": crop})
        return experiment(f"proxy_anchor_cub_cars/{name}", settings, runs)

    joined = join(table, [panel("a", 0.61, 64, 224), panel("b", 0.68, 512, 224), panel("c", 0.71, 512, 256)])
    means = {row.label: row.cells[SINGLE_P1].ours.mean for row in joined.rows if row.cells[SINGLE_P1].ours is not None}
    dagger = "Proxy-Anchor (BN, 512), dagger rows (256x256 images, inferred)"
    assert means == {"Proxy-Anchor (BN, 64)": 0.61, "Proxy-Anchor (BN, 512)": 0.68, dagger: 0.71}


def test_doubled_pooling_fills_the_row_below_the_named_row_of_nirs_table_2():
    runs = single_runs("nir_proxy_anchor", [0.7])
    double = changed(PAPER, trunk={"name": "resnet50", "pooling": "average_max"})
    plain = changed(PAPER, trunk={"name": "resnet50"})
    stored = [experiment("nir_table2/double", double, runs), experiment("nir_table2/plain", plain, runs)]
    joined = join(published_table("nir_table2"), stored)
    filled = {(row.label, found.origin) for row in joined.rows for found in row.cells.values() if found.ours}
    assert filled == {
        ("PA + NIR (R50, 512)", "nir_table2/plain"),
        ("(method name lost in the text; row directly below PA + NIR, R50/512) (R50, 512)", "nir_table2/double"),
    }


def test_ablated_rows_are_filled_by_their_variants():
    table = published_table("proxy_isa_table3")
    settings = changed(
        PAPER,
        dataset={"name": "cars196"},
        methods=["untrained"],
        variants=[{"key": "proxy_isa_v", "of": "proxy_isa", "title": "V", "set": {}}],
    )
    runs = single_runs("proxy_isa_v", [0.85], dataset="cars196")
    joined = join(table, [experiment("proxy_isa_table3", settings, runs)])
    filled = {row.published.key for row in joined.rows for found in row.cells.values() if found.ours}
    assert filled == {"proxy_isa_v"}


def test_a_metric_that_a_run_was_not_evaluated_with_stays_empty():
    table = published_table("nir_table2")
    settings = changed(PAPER, trunk={"name": "resnet50"})
    runs = single_runs("nir_proxy_anchor", [0.7, 0.71], metrics_separated={"nmi": 0.7})
    partly = [runs[0], runs[1].model_copy(update={"metrics_separated": {}})]
    nmi, r2 = PublishedColumn("cub200", "nmi", "single"), PublishedColumn("cub200", "recall@2", "single")
    joined = join(table, [experiment("nir_table2/a", settings, runs)])
    assert cell(joined, "PA + NIR (R50, 512)", nmi).ours.n == 2
    assert cell(joined, "PA + NIR (R50, 512)", r2).verdict == "not run"
    joined = join(table, [experiment("nir_table2/a", settings, partly)])
    assert cell(joined, "PA + NIR (R50, 512)", nmi).verdict == "not run", "a part of the runs is another number"


def test_a_quoted_row_has_no_verdict_even_where_its_method_was_run():
    """SoftTriple's numbers in Proxy-ISA's Table 1 are those of its own paper, under that paper's settings."""
    table = published_table("proxy_isa_table1")
    column = PublishedColumn("cub200", "precision_at_1", "single")
    runs = [*single_runs("soft_triple", [0.65, 0.66]), *single_runs("proxy_isa", [0.65, 0.66])]
    joined = join(table, [experiment("proxy_isa_table1/cub200", PAPER, runs)])
    quoted, measured = cell(joined, "SoftTriplet", column), cell(joined, "Proxy-ISA", column)
    assert (quoted.verdict, quoted.ours) == ("quoted", None)
    assert quoted.published.origin.quoted_from == "Qian et al., ICCV 2019"
    assert measured.ours.n == 2
    layout = published_layout(joined)
    assert "1 of 12 cells that can be reproduced was run" not in layout.caption  # 8 measured cells, 1 of them run.
    assert "1 of 8 cells that can be reproduced was run" in layout.caption


def test_rows_that_cannot_be_compared_say_why():
    def verdicts(table, label):
        rows = [row for row in join(published_table(table), []).rows if row.published.label == label]
        return {(column.dataset, found.verdict) for row in rows for column, found in row.cells.items()}

    of_soft_triple = {("cub200", "source unclear"), ("cars196", "quoted")}
    assert verdicts("proxy_isa_table2", "SoftTriplet") == of_soft_triple, "quoted on one dataset only"
    assert {said for _, said in verdicts("proxy_gml_table2", "HDC")} == {"method not in the suite"}
    assert {said for _, said in verdicts("nir_table4", "PA + NIR: w/ Negative Pairs")} == {"cannot be determined"}


def test_steps_are_steps_of_one_model():
    table = published_table("ccp_table3")
    column = PublishedColumn("sop", "total_training_steps", "separated")
    published = next(row.cells[column] for row in table.rows if row.key == "triplet")
    settings = changed(MLRC, dataset={"name": "sop"}, methods=["triplet", "c2"], embedder_bias=False)
    steps = [int(published.value) - 2000, int(published.value) + 2000]
    records = [
        run.model_copy(update={"iterations": 4 * count})
        for method in ("triplet", "c2")
        for run, count in zip(runs_of(method, NEAR[:2], dataset="sop"), steps, strict=True)
    ]
    joined = join(table, [experiment("ccp_table3/sop", settings, records)])
    found = cell(joined, "Triplet", column)
    assert (found.ours.mean, found.scale, found.verdict) == (published.value, 1, "inside")
    assert f"{published.value:,.0f} ± " in to_markdown(published_layout(joined))


def test_the_published_value_stands_for_all_that_round_to_it():
    """59.73 is published; an interval that ends at 59.729 holds numbers that round to 59.73."""
    found = cell(join(CUB, [mlrc(runs_of("contrastive", [0.59727, 0.59728, 0.59728]))]), "Contrastive")
    assert found.ours.high < 0.5973
    assert found.verdict == "inside"
