"""Ends of ranges are probed after the searches; ranges are widened where values beyond are better."""

import math
from contextlib import suppress
from dataclasses import replace
from itertools import permutations

import pytest

from reproduce.outputs.store_files import merge_stores
from reproduce.run.ends import in_latest_round, rounds_words
from reproduce.storage import open_store, storage_paths
from results.spec.ends import ROUNDS
from results.store.experiment_results import MeasuredExperiment
from tests.support.surfaces import open_surface, peaked_at, run_surface, surface_file, value_of

SEARCH = {"searches": 3, "trials": 6, "probe_ends": True}
OTHER = "proxy_nca"
"""A card that version 3 of pytorch-metric-learning takes too."""


@pytest.fixture(scope="module")
def widened(tmp_path_factory):
    return run_surface(tmp_path_factory.mktemp("widened"), surface_file(SEARCH, other=OTHER), peaked_at(3.0))


@pytest.fixture(scope="module")
def shut(tmp_path_factory):
    return run_surface(tmp_path_factory.mktemp("shut"), surface_file(SEARCH, other=OTHER), peaked_at(9.0))


def stopped_after(trainings):
    def surface(method, spec):
        nonlocal trainings
        trainings -= 1
        if trainings < 0:
            raise KeyboardInterrupt
        return peaked_at(3.0)(method, spec)

    return surface


def plan_of(finished):
    return finished.answer.measured.plan


def test_a_better_value_beyond_the_end_widens_the_range(widened):
    finished, _ = widened
    plan = plan_of(finished)
    first = plan.probed[0]
    assert (first.method, first.target, first.end, first.low, first.high) == (
        *("proxy_anchor", "loss.alpha", "low"),
        *(8.0, 128.0),
    )
    assert first.beyond == pytest.approx(4.0), "a quarter of the width, on a log scale"
    assert first.opens
    assert first.gain == pytest.approx(0.05 * math.log(2), abs=0.01)
    assert plan.rows["proxy_anchor"].ranges["loss.alpha"].ends == (pytest.approx(2.0), 128.0)
    found = [run.hyperparameters["loss.alpha"] for run in finished.answer.measured.runs["proxy_anchor"]]
    assert all(2 <= alpha < 8 for alpha in found), "the searches went on beyond the old end"


def test_all_searches_get_as_many_trials_more(widened):
    finished, executor = widened
    trials = {key: row.trials for key, row in plan_of(finished).rows.items()}
    rounds = 1 + sum(one.opens for one in plan_of(finished).probed if one.low != 8.0)
    assert trials == dict.fromkeys(trials, 6 + 3 * rounds)
    assert rounds <= ROUNDS
    assert len({spec.fingerprint for spec in executor.trained}) == len(executor.trained), "nothing is trained twice"


def test_a_value_beyond_the_end_that_is_no_better_shuts_it(tmp_path):
    finished, _ = run_surface(tmp_path, surface_file(SEARCH, other=OTHER), peaked_at(8.2))
    plan = plan_of(finished)
    (probe,) = [one for one in plan.probed if one.target == "loss.alpha"]
    assert not probe.opens
    assert plan.rows["proxy_anchor"].ranges["loss.alpha"].ends == (8.0, 128.0)
    assert "it is no limit" in " ".join(finding.text for finding in finished.answer.findings)


def test_a_run_that_stops_in_a_round_goes_on_where_it_stopped(tmp_path, widened):
    whole, executor = widened

    for trainings in (60, 40):
        with pytest.raises(KeyboardInterrupt):
            run_surface(tmp_path, surface_file(SEARCH, other=OTHER), stopped_after(trainings))
    finished, last = run_surface(tmp_path, surface_file(SEARCH, other=OTHER), peaked_at(3.0))
    assert len(last.trained) < len(executor.trained)
    one, other = (each.answer.measured for each in (finished, whole))
    assert plan_of(finished).probed == plan_of(whole).probed
    assert [run.hyperparameters for run in one.records] == [run.hyperparameters for run in other.records]


def test_only_whole_searches_have_runs_while_a_round_goes_on(tmp_path, widened):
    _, executor = widened
    with pytest.raises(KeyboardInterrupt):
        run_surface(tmp_path, surface_file(SEARCH, other=OTHER), stopped_after(len(executor.trained) - 9))
    opened = open_surface(tmp_path, surface_file(SEARCH, other=OTHER))
    plan = opened.store.experiment(opened.fingerprint)
    studies = opened.store.searches.of_experiment(opened.fingerprint)
    counts = {place: len(study.finished(plan.rows[place[0]].trials)) for place, study in studies.items()}
    assert set(counts.values()) >= {9}, "the second round was stopped after a search and before another"
    assert min(counts.values()) < 9
    runs = MeasuredExperiment.from_store(opened.store, opened.fingerprint).records
    assert {(run.method, run.search) for run in runs if run.study} == {
        place for place, count in counts.items() if count == 9
    }


def merged(folder, *stores):
    target = storage_paths(str(folder / "store.sqlite"))
    for store in stores:
        merge_stores(target, store)
    return open_store(target)


def listed(store, experiment):
    studies = {place: study.fingerprint for place, study in store.searches.of_experiment(experiment).items()}
    return studies, [(run.method, run.search, run.fingerprint) for run in store.experiment_runs(experiment)]


def test_stores_of_several_rounds_become_that_of_the_latest(tmp_path):
    file, stages = surface_file(SEARCH, other=OTHER), []
    for trainings, trials in ((80, 0), (28, 9), (999, 9)):
        with suppress(KeyboardInterrupt):
            run_surface(tmp_path, file, stopped_after(trainings))
        opened = open_surface(tmp_path, file)
        assert opened.store.experiment(opened.fingerprint).rows["proxy_anchor"].trials == trials
        (tmp_path / str(trainings)).mkdir()
        stages.append(replace(opened.paths, store=tmp_path / str(trainings) / "store.sqlite"))
        opened.store.database.copy_to(stages[-1].store)
    latest = listed(opened.store, opened.fingerprint)
    assert len(latest[1]) == 6
    for number, order in enumerate(permutations(stages)):
        store = merged(tmp_path / f"merged {number}", *order)
        assert listed(store, opened.fingerprint) == latest
        assert store.experiment(opened.fingerprint) == opened.store.experiment(opened.fingerprint)


def test_a_method_of_each_machine_can_be_merged_again_after_a_time_limit(tmp_path):
    file, fingerprints = surface_file(SEARCH, other=OTHER), {}
    tasks = {method: tmp_path / method for method in ("proxy_anchor", OTHER)}
    for trainings in (44, 999):
        for method, folder in tasks.items():
            folder.mkdir(exist_ok=True)
            own = file.replace(f"[proxy_anchor, {OTHER}]", f"[{method}]")
            with suppress(KeyboardInterrupt):
                run_surface(folder, own, stopped_after(trainings))
            fingerprints[method] = open_surface(folder, own).fingerprint
        store = merged(tmp_path, *(storage_paths(str(folder / "store.sqlite")) for folder in tasks.values()))
    for method, folder in tasks.items():
        task = open_store(storage_paths(str(folder / "store.sqlite")))
        assert len(task.experiment_runs(fingerprints[method])) == 3
        assert listed(store, fingerprints[method]) == listed(task, fingerprints[method])
    _, executor = run_surface(tmp_path, file, peaked_at(3.0))
    assert {spec.method.name for spec in executor.trained} == {OTHER}, "one machine widened a range, the other did not"


def test_again_trains_nothing(tmp_path):
    run_surface(tmp_path, surface_file(SEARCH, other=OTHER), peaked_at(3.0))
    finished, executor = run_surface(tmp_path, surface_file(SEARCH, other=OTHER), peaked_at(3.0))
    assert executor.trained == []
    assert finished.made == 0


def test_a_plan_is_of_the_round_that_the_store_has_reached(tmp_path):
    def session():
        return open_surface(tmp_path, surface_file(SEARCH, other=OTHER))

    opened = session()
    assert in_latest_round(opened, opened.store) == (opened, 2), "nothing is in the store"
    first = rounds_words(opened, 2)
    assert "expected in the first round" in first[0]
    assert "at most twice" in first[1]
    finished, _ = run_surface(tmp_path, surface_file(SEARCH, other=OTHER), peaked_at(3.0))
    opened = session()
    reached, rounds = in_latest_round(opened, opened.store)
    for key, row in reached.plan.rows.items():
        assert (row.ranges, row.trials) == (plan_of(finished).rows[key].ranges, 9), "no end opened in the second round"
    assert rounds == 0, "no end is pressed"
    second = rounds_words(reached, 1)
    assert "expected" not in second[0]
    assert "at most once more" in second[1]


def test_an_end_that_is_probed_in_both_rounds_is_no_riddle_to_a_plan(tmp_path):
    def surface(method, spec):
        falls = 0.2 * abs(value_of(spec, "loss.margin") - 0.5) if method == "proxy_anchor" else 0.0
        return peaked_at(0.3)(method, spec) - falls

    file = surface_file({**SEARCH, "trials": 12}, other=OTHER)
    finished, _ = run_surface(tmp_path, file, surface)
    margins = [one for one in plan_of(finished).probed if one.target == "loss.margin"]
    assert [one.opens for one in margins] == [False, False]
    opened = open_surface(tmp_path, file)
    reached, rounds = in_latest_round(opened, opened.store)
    assert reached.plan.rows["proxy_anchor"].trials == plan_of(finished).rows["proxy_anchor"].trials == 24
    assert rounds == 0
    assert rounds_words(reached, rounds) == []


def test_without_the_setting_nothing_is_probed(tmp_path):
    search = {key: value for key, value in SEARCH.items() if key != "probe_ends"}
    finished, _ = run_surface(tmp_path, surface_file(search, other=OTHER), peaked_at(3.0))
    assert plan_of(finished).probed == ()


def test_the_searches_of_an_experiment_that_did_not_probe_are_found(tmp_path):
    search = {key: value for key, value in SEARCH.items() if key != "probe_ends"}
    _, first = run_surface(tmp_path, surface_file(search, other=OTHER), peaked_at(3.0))
    known = {spec.fingerprint for spec in first.trained}
    _, second = run_surface(tmp_path, surface_file(SEARCH, other=OTHER), peaked_at(3.0))
    assert second.trained
    assert not known & {spec.fingerprint for spec in second.trained}


def test_what_is_kept_of_it_is_read_back(widened):
    measured = widened[0].answer.measured
    kept = MeasuredExperiment.from_json(measured.to_json())
    assert kept.plan.probed == measured.plan.probed
    assert kept.plan.rows["proxy_anchor"].trials == measured.plan.rows["proxy_anchor"].trials
    assert len(kept.searches["proxy_anchor", 0]) == kept.plan.rows["proxy_anchor"].trials


def test_an_open_session_knows_the_trials_of_the_file(tmp_path):
    assert open_surface(tmp_path, surface_file(SEARCH, other=OTHER)).plan.rows["proxy_anchor"].trials == 6
