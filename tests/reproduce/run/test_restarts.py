"""A store does not say less, or other things, because somebody starts its experiment again and stops it."""

import pytest

from reproduce import interrupts
from reproduce.run import run_experiment
from reproduce.run.run_experiment import looks_to_come
from results.store.experiment_results import MeasuredExperiment
from tests.support.surfaces import SurfaceExecutor, noise, open_surface, peaked_at, run_surface, surface_file, value_of

FAST = {"searches": 3, "trials": 6, "sampler": {"startup_trials": 40}}
PROBED = {**FAST, "probe_ends": True, "enqueue": [{"loss.alpha": 8.0}]}
OTHER = "proxy_nca"
"""A card that version 3 of pytorch-metric-learning takes too."""


def flat(method, spec):
    return (0.1 if method == "untrained" else 0.3) + noise(spec, 0.02)


@pytest.fixture
def stopping(monkeypatch):
    """Return a function that lets the run look `asked` times for a stop request, and find one the next time."""

    def at(asked):
        left = iter(range(asked))

        def stop_if_requested():
            if next(left, None) is None:
                raise interrupts.StopRequest

        monkeypatch.setattr(interrupts, "stop_if_requested", stop_if_requested)

    yield at
    monkeypatch.undo()


def measured(session):
    return MeasuredExperiment.from_store(session.store, session.fingerprint)


def run_looks(session, surface):
    """Run an experiment until it is decided, as the command does."""
    for look in looks_to_come(session):
        finished = run_experiment.run(look, lambda: SurfaceExecutor(surface))
        if finished.answer.decided:
            break
    return finished


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_a_finished_experiment_of_two_rounds_stays_as_it_is(tmp_path, stopping, asked):
    content, surface = surface_file(PROBED, other=OTHER), peaked_at(3.0)
    finished, _ = run_surface(tmp_path, content, surface)
    assert any(one.opens for one in finished.answer.measured.plan.probed)
    before = open_surface(tmp_path, content)
    stopping(asked)
    with pytest.raises(KeyboardInterrupt):
        run_surface(tmp_path, content, surface)
    after = open_surface(tmp_path, content)
    assert measured(after).plan == measured(before).plan == finished.answer.measured.plan
    assert measured(after).records == finished.answer.measured.records


def test_an_experiment_that_runs_until_decided_stays_at_its_latest_look(tmp_path, stopping):
    search = {"until_decided": True, "trials": 2, "sampler": {"startup_trials": 40}}
    content = surface_file(search, other=f"{OTHER}, untrained", further="primary: {compare: proxy_anchor}")
    finished = run_looks(open_surface(tmp_path, content), flat)
    searches = finished.answer.measured.plan.experiment.search.searches
    assert searches > 3, "the first look does not decide"
    stopping(2)
    with pytest.raises(KeyboardInterrupt):
        run_looks(open_surface(tmp_path, content), flat)
    session = open_surface(tmp_path, content)
    assert measured(session).plan == finished.answer.measured.plan
    assert measured(session).records == finished.answer.measured.records


def test_added_searches_are_noted_where_ends_are_probed_too(tmp_path):
    for searches in (3, 4):
        search = {**PROBED, "searches": searches}
        finished, _ = run_surface(tmp_path, surface_file(search, other=OTHER), peaked_at(30.0))
    assert finished.answer.measured.plan.interim_looks == ("3 searches",)


def test_a_look_at_fewer_searches_afterwards_is_no_look_before(tmp_path):
    for searches in (4, 3, 4):
        search = {**FAST, "searches": searches, "trials": 2}
        finished, _ = run_surface(tmp_path, surface_file(search, other=OTHER), flat)
    assert finished.answer.measured.plan.interim_looks == ()


CARD = """
title: Mine
source: me
loss: {name: AngularLoss, arguments: {alpha: %s}}
batch: {samples_per_class: 4}
search:
  loss.alpha: {scale: linear, low: 1.0, high: 80.0}
"""


def test_runs_of_an_earlier_card_are_left_out_without_a_search_too(tmp_path):
    card = tmp_path / "mine.yaml"
    content = surface_file({"trials": 0, "searches": 1}, other=card).replace("reproductions: 1", "reproductions: 5")

    def surface(method, spec):
        if method == "mine" and len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(method)
        return flat(method, spec)

    card.write_text(CARD % 40)
    run_surface(tmp_path, content, flat)
    assert len(measured(open_surface(tmp_path, content)).runs["mine"]) == 5
    card.write_text(CARD % 60)
    trained = []
    with pytest.raises(KeyboardInterrupt):
        run_surface(tmp_path, content, surface)
    runs = measured(open_surface(tmp_path, content)).runs
    assert {run.specs[0].method.values_of(["loss.alpha"])["loss.alpha"] for run in runs.get("mine", ())} <= {60}
    assert len(runs["proxy_anchor"]) == 5


def test_a_probe_that_fails_leaves_its_end_open_and_the_table_is_written(tmp_path, capsys):
    content = surface_file(PROBED, other=OTHER)

    def surface(method, spec):
        if method == "proxy_anchor" and value_of(spec, "loss.alpha") < 7:
            raise MemoryError("cannot allocate")
        return peaked_at(3.0)(method, spec)

    finished, _ = run_surface(tmp_path, content, surface)
    assert "The ends stay open, because a probe failed" in capsys.readouterr().out
    assert not finished.answer.interim
    assert finished.answer.measured.plan.probed == ()
    assert [*(tmp_path / "tables").glob("*")]
    finished, _ = run_surface(tmp_path, content, peaked_at(3.0))
    assert any(one.opens for one in finished.answer.measured.plan.probed)


def test_a_search_that_tries_every_value_has_no_wider_ranges(tmp_path):
    search = {"searches": 3, "trials": 31, "probe_ends": True, "sampler": {"startup_trials": 40}}
    content = surface_file(search, other="fastap").replace("[proxy_anchor, fastap]", "[fastap]")
    finished, executor = run_surface(
        tmp_path, content, lambda _, spec: 0.3 + noise(spec, 0.002) + 0.002 * value_of(spec, "loss.num_bins")
    )
    row = open_surface(tmp_path, content).plan.rows["fastap"]
    assert row.ranges["loss.num_bins"].exhaustive
    assert finished.answer.measured.plan.probed == ()
    assert len(executor.trained) == 2 * 3 * (row.trials + 1), "two folds, three searches, a run of each"


def test_nothing_is_probed_where_no_fold_of_a_run_is_validated(tmp_path):
    content = surface_file(PROBED, other=OTHER, further="protocol: standard").replace("max_epochs: 4", "max_epochs: 1")
    finished, _ = run_surface(tmp_path, content, peaked_at(3.0))
    assert not finished.answer.interim
    assert finished.answer.measured.plan.probed == ()


def test_an_end_of_a_closed_form_without_validated_runs_is_not_probed_and_stays_open(tmp_path):
    searched = {"searches": 3, "trials": 2, "enqueue": [{"embedder.shrinkage": 0.5}], "probe_ends": True}
    ranges = {"ranges": {"lda": {"embedder.shrinkage": {"low": 0.1, "high": 0.5}}}}
    content = surface_file({**searched, **ranges}, other="lda", further="protocol: standard")
    finished, _ = run_surface(
        tmp_path, content, lambda method, spec: value_of(spec, "embedder.shrinkage") if method == "lda" else 0.3
    )
    assert "lda" not in {one.method for one in finished.answer.measured.plan.probed}
    assert finished.answer.question.methods["lda"].open_ends


def test_a_method_without_results_is_named_where_ends_are_not_probed(tmp_path, capsys):
    def surface(method, spec):
        if method == OTHER:
            raise MemoryError("cannot allocate")
        return peaked_at(3.0)(method, spec)

    run_surface(tmp_path, surface_file(PROBED, other=OTHER), surface)
    assert "Ends of ranges are not probed, because proxy_nca has no results" in capsys.readouterr().out
