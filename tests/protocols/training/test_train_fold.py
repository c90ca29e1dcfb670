"""One training as a pure function (specification, sections 5 and 6; 11.13, 11.20, 11.22)."""

import random
from dataclasses import fields, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import losses
from losses.plugin import Needs, TrainingPlugin
from protocols.datasets.dataset import FoldData
from protocols.datasets.splits import SplitError, mlrc_split
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.metrics.retrieval import QueryScores
from protocols.training import train_fold as training
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel, embed_crops
from results.spec.component import Component
from results.spec.conditions import OptimizerSettings
from results.spec.method import Batch, Method
from tests.support.toys import CONTRASTIVE, PROXIES, UNTRAINED, same_weights, toy_fold
from tests.support.toys import settings as short

RECORDING = Method(name="recording", loss=Component(name="RecordingLoss"), samples_per_class=2, loss_lr=0.1)


class RecordingLoss(TrainingPlugin, nn.Module):
    """Pulls embeddings to a proxy per class, and writes down what the loop does with it."""

    calls: ClassVar = []
    networks: ClassVar = []
    contexts: ClassVar = []

    def __init__(self, num_classes, embedding_size):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(num_classes, embedding_size))
        self.steps = 0

    def forward(self, embeddings, labels, indices_tuple=None):
        self.calls.append(("forward", (tuple(embeddings.shape), labels.clone(), self.training)))
        self.steps += 1
        return (embeddings - self.proxies[labels]).square().mean()

    def param_groups(self, lr, weight_decay):
        self.calls.append(("param_groups", (lr, weight_decay)))
        return super().param_groups(lr, weight_decay)

    def bind(self, context):
        self.calls.append(("bind", context.num_classes))
        self.contexts.append(context)

    def _keep_network(self):
        self.networks.append([p.detach().clone() for p in self.contexts[-1].trunk_parameters])

    def on_epoch_start(self, clock):
        self.calls.append(("on_epoch_start", clock))
        self._keep_network()

    def on_step_start(self, clock):
        self.calls.append(("on_step_start", clock))

    def on_gradients(self, clock):
        self.calls.append(("on_gradients", clock))
        return True

    def on_evaluation(self, clock, metrics):
        self.calls.append(("on_evaluation", (clock, dict(metrics))))


class WarmingLoss(RecordingLoss):
    needs = Needs(warmup_epochs=1)


class BallLoss(RecordingLoss):
    needs = Needs(normalization="ball")


class SkippingLoss(RecordingLoss):
    def on_gradients(self, clock):
        return False


class LateNanLoss(RecordingLoss):
    def forward(self, embeddings, labels, indices_tuple=None):
        value = super().forward(embeddings, labels)
        return value * float("nan") if self.steps > 5 else value


class CarefulLoss(RecordingLoss):
    """Not finite at one step, which it asks the loop to skip, as NIR does."""

    def forward(self, embeddings, labels, indices_tuple=None):
        value = super().forward(embeddings, labels)
        self.finite = self.steps != 3
        return value if self.finite else value * float("inf")

    def on_gradients(self, clock):
        return self.finite


@pytest.fixture(autouse=True)
def recording(monkeypatch):
    for cls in (RecordingLoss, WarmingLoss, BallLoss, SkippingLoss, LateNanLoss, CarefulLoss):
        monkeypatch.setattr(losses, cls.__name__, cls, raising=False)
    for kept in (RecordingLoss.calls, RecordingLoss.networks, RecordingLoss.contexts):
        kept.clear()


def _named(loss, **changes):
    return RECORDING.model_copy(update={"loss": Component(name=loss), **changes})


def _outcome(result):
    """The part of a result that the specification decides."""
    return result.model_dump(exclude={"wall_time", "provenance"})


def _scripted(monkeypatch, script):
    """Validation number i scores script(i); returns the list that the networks' weights at each are put into."""
    networks = []
    embed_crops = training.embed_crops

    def keep(model, *rest):
        networks.append({key: value.clone() for key, value in model.state_dict().items()})
        return embed_crops(model, *rest)

    def score(embeddings, labels):
        value = torch.tensor([[0.0, 0.0, script(len(networks) - 1)]], dtype=torch.float64)
        return QueryScores(labels[:1], value, {}, {})

    monkeypatch.setattr(training, "embed_crops", keep)
    monkeypatch.setattr(training, "query_scores", score)
    return networks


# Purity


@pytest.mark.parametrize("method", [CONTRASTIVE, PROXIES], ids=lambda method: method.name)
def test_the_same_specification_gives_the_same_bits(dataset, method):
    spec, data = toy_fold(dataset, method)
    first = train_fold(spec, data)
    torch.manual_seed(999)
    np.random.seed(999)  # noqa: NPY002 - the global state must not matter
    random.seed(999)
    again = train_fold(spec, data)
    assert _outcome(first.result) == _outcome(again.result)
    assert same_weights(first.weights, again.weights)
    assert first.result.fingerprint == spec.fingerprint
    assert 0 < first.result.wall_time < 600
    assert first.result.curve[-1].loss is not None


@pytest.mark.parametrize("change", ["seed", "fold", "lr", "crops"])
def test_whatever_the_specification_says_matters(dataset, change):
    changes = {
        "seed": {"seed": 2},
        "fold": {"fold": 1},
        "lr": {"training": short(lr=2e-2)},
        "crops": {"images": toy_fold(dataset)[0].conditions.images.model_copy(update={"area": (0.9, 1.0)})},
    }
    one = train_fold(*toy_fold(dataset))
    other = train_fold(*toy_fold(dataset, **changes[change]))
    assert not same_weights(one.weights, other.weights)
    assert one.result.fingerprint != other.result.fingerprint
    assert one.result.curve != other.result.curve


def test_methods_of_one_seed_start_from_the_same_network(dataset):
    training_settings = short(lr=0.0, max_epochs=1)
    weights = [train_fold(*toy_fold(dataset, method, training_settings)).weights for method in (CONTRASTIVE, PROXIES)]
    assert same_weights(*weights)
    other = train_fold(*toy_fold(dataset, CONTRASTIVE, training_settings, seed=2)).weights
    assert not same_weights(weights[0], other)


def test_the_process_keeps_its_random_numbers_and_settings(dataset):
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    algorithms = torch.are_deterministic_algorithms_enabled()
    train_fold(*toy_fold(dataset))
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]
    assert (before[2][1] == after[2][1]).all()
    assert before[2][2:] == after[2][2:]
    assert torch.are_deterministic_algorithms_enabled() == algorithms


@pytest.mark.parametrize("precision", ["float32", "amp"])
def test_memory_is_filled_where_kernels_of_the_cpu_leave_some_unset(dataset, precision):
    seen = []
    given = toy_fold(dataset, training=short(max_epochs=1, precision=precision))
    train_fold(*given, observe=lambda *_: seen.append(torch.utils.deterministic.fill_uninitialized_memory))
    assert set(seen) == {precision == "amp"}


# Stopping and checkpoint


PATIENCE = [  # validate every, patience, epochs done at the stop, validations without improvement (section 6)
    pytest.param(2, 9, 10, 5, id="cub200"),
    pytest.param(5, 14, 15, 3, id="cars196"),
    pytest.param(20, 39, 40, 2, id="sop"),
    pytest.param(2, 4, 6, 3, id="patience is over, not reached"),
]


@pytest.mark.parametrize(("every", "patience", "stop", "validations"), PATIENCE)
def test_training_stops_by_the_table(dataset, every, patience, stop, validations):
    rhythm = short(
        lr=0.0, iterations_per_epoch=1, batch_size=2, max_epochs=1000, validate_every=every, patience=patience
    )
    result = train_fold(*toy_fold(dataset, training=rhythm)).result
    assert result.stopped_by == "patience"
    assert result.iterations == stop
    assert [point.iteration for point in result.curve] == list(range(0, stop + 1, every))
    assert len(result.curve) == validations + 1


def test_epoch_0_is_scored_but_never_wins(dataset):
    trained = train_fold(*toy_fold(dataset, training=short(lr=0.0, max_epochs=4)))
    result = trained.result
    assert len({point.map_at_r for point in result.curve}) == 1
    assert result.untrained_map_at_r == result.curve[0].map_at_r == result.best_map_at_r
    assert result.best_iteration == 2, "the first trained epoch"
    assert not result.beats_untrained
    assert [event.kind for event in result.events] == ["no gain"]
    assert result.status == "ok"


def test_the_checkpoint_is_the_first_of_the_best(dataset, monkeypatch):
    networks = _scripted(monkeypatch, [0.1, 0.2, 0.7, 0.3, 0.7, 0.5].__getitem__)
    trained = train_fold(*toy_fold(dataset, training=short(max_epochs=5)))
    result = trained.result
    assert (result.best_iteration, result.best_map_at_r) == (4, 0.7)
    assert result.beats_untrained
    assert result.events == ()
    assert result.stopped_by == "max_epochs"
    assert same_weights(trained.weights, networks[2])
    assert not same_weights(trained.weights, networks[4])
    assert result.objective == 0.7


def test_the_curve_holds_the_mean_loss_since_the_last_validation(dataset, monkeypatch):
    class CountingLoss(RecordingLoss):
        def forward(self, embeddings, labels, indices_tuple=None):
            value = super().forward(embeddings, labels)
            return value - value.detach() + self.steps

    monkeypatch.setattr(losses, "CountingLoss", CountingLoss, raising=False)
    spec, data = toy_fold(dataset, _named("CountingLoss"), short(max_epochs=5, validate_every=2))
    curve = train_fold(spec, data).result.curve
    # Losses 1 to 10, two an epoch.
    assert [point.loss for point in curve] == [None, 2.5, 6.5, 9.5]


# Failures


def test_a_loss_that_is_not_finite_scores_0(dataset):
    wild = short(optimizer=OptimizerSettings(name="SGD", lr=1e30, arguments={}), iterations_per_epoch=5)
    spec, data = toy_fold(dataset, PROXIES, wild)
    trained = train_fold(spec, data)
    result = trained.result
    assert (result.status, result.stopped_by) == ("nan", "nan")
    assert (result.best_map_at_r, result.best_iteration, result.objective) == (0.0, 0, 0.0)
    assert not result.beats_untrained
    assert "not finite at iteration" in (result.reason or "")
    assert [(event.kind, event.iteration) for event in result.events] == [("diverged", result.iterations)]
    assert len(result.curve) == 1
    assert result.untrained_map_at_r == result.curve[0].map_at_r > 0
    # Failed before its first validation: the weights it started from.
    start = train_fold(*toy_fold(dataset, PROXIES, short(lr=0.0, max_epochs=1)))
    assert same_weights(trained.weights, start.weights)


def test_a_late_failure_keeps_the_last_checkpoint(dataset, monkeypatch):
    networks = _scripted(monkeypatch, [0.1, 0.5, 0.3].__getitem__)
    trained = train_fold(*toy_fold(dataset, _named("LateNanLoss"), short(max_epochs=9)))
    assert trained.result.reason == "loss not finite at iteration 5"
    assert trained.result.status == "nan"
    assert trained.result.iterations == 5
    assert (trained.result.best_map_at_r, trained.result.objective) == (0.0, 0.0)
    assert trained.result.best_iteration == 2, "the best validation before, whose weights are tested"
    assert len(networks) == 3
    assert same_weights(trained.weights, networks[1])


def test_embeddings_that_are_not_finite_end_a_training_at_its_validation(dataset, monkeypatch):
    monkeypatch.setattr(training, "embed_crops", lambda *of: torch.full((len(embed_crops(*of)), 4), torch.nan))
    result = train_fold(*toy_fold(dataset, PROXIES, short())).result
    assert (result.status, result.reason) == ("nan", "validation embeddings not finite at iteration 0")


# The untrained trunk


def test_an_untrained_trunk_is_scored_as_it_is(dataset):
    spec, data = toy_fold(dataset, UNTRAINED, embedding_size=None)
    trained = train_fold(spec, data)
    result = trained.result
    assert (result.status, result.stopped_by, result.iterations, result.best_iteration) == ("ok", "untrained", 0, 0)
    assert len(result.curve) == 1
    assert result.curve[0].loss is None
    assert result.best_map_at_r == result.untrained_map_at_r == result.curve[0].map_at_r > 0
    assert not result.beats_untrained
    assert result.events == ()
    model = EmbeddingModel(spec.conditions.trunk, None)
    model.load_state_dict(trained.weights)
    assert not any(key.startswith("embedder") for key in trained.weights)


# Hooks


def test_hooks_are_called_in_the_contracts_order(dataset):
    # 24 training images, batches of 8, two iterations an epoch: three iterations are a pass.
    train_fold(*toy_fold(dataset, RECORDING, short(max_epochs=3, validate_every=2)))
    step = ["on_step_start", "forward", "on_gradients"]
    epoch = ["on_epoch_start", *step, *step]
    assert [name for name, _ in RecordingLoss.calls] == [
        "param_groups",
        "bind",
        "on_evaluation",
        *epoch,
        *epoch,
        "on_evaluation",
        *epoch,
        "on_evaluation",
    ]


def test_batches_reach_the_loss_as_the_method_wants_them(dataset):
    train_fold(*toy_fold(dataset, RECORDING, fold=2))
    assert RecordingLoss.calls[1] == ("bind", 6)
    seen = set()
    for name, value in RecordingLoss.calls:
        if name == "forward":
            shape, labels, in_training = value
            assert shape == (8, 8)
            assert in_training
            # Ranks 4 to 7, 0 and 1 become 0 to 5; two images a class, side by side.
            assert torch.equal(labels[::2], labels[1::2])
            seen |= set(labels.tolist())
    assert seen == set(range(6))


def test_drawing_a_pool_does_not_disturb_the_training(dataset, monkeypatch):
    class PoolingLoss(RecordingLoss):
        def on_step_start(self, clock):
            assert not self.contexts[-1].embed_pool(2).requires_grad
            torch.randn(3, generator=self.contexts[-1].generator)

    monkeypatch.setattr(losses, "PoolingLoss", PoolingLoss, raising=False)
    plain = train_fold(*toy_fold(dataset, RECORDING))
    pooling = train_fold(*toy_fold(dataset, _named("PoolingLoss", name="recording")))
    assert same_weights(plain.weights, pooling.weights)
    assert plain.result.curve == pooling.result.curve


def _changed(before, after):
    return [not torch.equal(one, other) for one, other in zip(before, after, strict=True)]


@pytest.mark.parametrize("optimizer", ["RMSprop", "AdamW"])
def test_a_warm_up_freezes_the_trunk(dataset, optimizer):
    # Three iterations are a pass over the 24 training images, here an epoch as well.
    rate = OptimizerSettings(name=optimizer, lr=1e-2, weight_decay=0.1, arguments={})
    train_fold(*toy_fold(dataset, _named("WarmingLoss"), short(optimizer=rate, iterations_per_epoch=3)))
    start, warmed, trained = RecordingLoss.networks
    embedder = [False] * (len(start) - 2) + [True, True]
    assert _changed(start, warmed) == embedder
    assert all(_changed(warmed, trained))
    assert all(p.requires_grad for p in RecordingLoss.contexts[0].trunk_parameters)


@pytest.mark.parametrize(("asked", "steps"), [(None, 3), (0, 0), (1, 3), (2, 6)])
def test_a_warm_up_is_counted_in_passes_and_the_method_has_the_last_word(dataset, asked, steps):
    train_fold(*toy_fold(dataset, _named("WarmingLoss").at({"warmup.passes": asked}), short(max_epochs=4)))
    clocks = [value for name, value in RecordingLoss.calls if name == "on_step_start"]
    assert [clock.warmup for clock in clocks] == [step < steps for step in range(8)]
    # Two iterations an epoch: the trunk stands still as long as the warm-up covers the whole epoch.
    still = [not any(_changed(a[:-2], b[:-2])) for a, b in pairwise(RecordingLoss.networks)]
    assert still == [2 * epoch + 2 <= steps for epoch in range(3)]


@pytest.mark.parametrize(("batch_size", "passes"), [(10, [0, 0, 1, 1, 2, 2]), (20, [0, 1, 2, 3, 4, 5])])
def test_whole_passes_leave_the_rest_of_the_images_out(dataset, batch_size, passes):
    shuffled = RECORDING.at({"batch.samples_per_class": 0})
    train_fold(*toy_fold(dataset, shuffled, short(batch_size=batch_size, max_epochs=3)))
    clocks = [value for name, value in RecordingLoss.calls if name == "on_step_start"]
    assert [clock.passes for clock in clocks] == passes
    assert {(clock.steps_per_epoch, clock.total_steps) for clock in clocks} == {(2, 6)}


def test_a_loss_can_skip_steps(dataset):
    trained = train_fold(*toy_fold(dataset, _named("SkippingLoss")))
    assert trained.result.iterations == 6
    assert not any(_changed(RecordingLoss.networks[0], RecordingLoss.networks[-1]))
    assert len({point.map_at_r for point in trained.result.curve}) == 1


def test_evaluation_normalises_as_the_loss_wants(dataset, monkeypatch):
    kinds = []
    normalized = training.normalized

    def spy(embeddings, kind):
        kinds.append(kind)
        return normalized(embeddings, kind)

    monkeypatch.setattr(training, "normalized", spy)
    train_fold(*toy_fold(dataset, _named("BallLoss"), short(max_epochs=1)))
    assert kinds == ["ball", "ball"]
    kinds.clear()
    for method in (RECORDING, CONTRASTIVE, UNTRAINED):
        train_fold(*toy_fold(dataset, method, short(max_epochs=1)))
    assert set(kinds) == {"unit"}


def test_the_losss_own_parameters_have_their_own_rate(dataset):
    # The network stands still; only the loss learns.
    still = short(lr=0.0, max_epochs=4, iterations_per_epoch=10)
    trained = train_fold(*toy_fold(dataset, PROXIES, still))
    start = train_fold(*toy_fold(dataset, PROXIES, short(lr=0.0, max_epochs=1)))
    assert same_weights(trained.weights, start.weights)
    means = [point.loss for point in trained.result.curve[1:]]
    assert means[-1] < means[0]


@pytest.mark.parametrize("fold", range(4))
def test_a_fold_holds_its_own_classes_only(dataset, fold):
    split = mlrc_split(16)
    _, data = toy_fold(dataset, fold=fold)
    assert set(data.train.labels.tolist()) == set(split.folds[fold].train)
    assert set(data.validation.labels.tolist()) == set(split.folds[fold].validation)
    assert len(data.train) + len(data.validation) == 8 * 4
    rows = set(data.train.rows.tolist()) | set(data.validation.rows.tolist())
    test = data_for_testing(dataset, split)
    assert set(test.images.labels.tolist()) == set(split.test)
    assert not rows & set(test.images.rows.tolist())
    assert {field.name for field in fields(FoldData)} == {"train", "validation"}


def test_targets_count_from_0_in_rank_order(dataset):
    # Fold 2 trains on ranks 4 to 7, 0 and 1.
    _, data = toy_fold(dataset, fold=2)
    target_of = dict(zip(data.train.labels.tolist(), data.train_targets.tolist(), strict=True))
    assert target_of == {0: 0, 1: 1, 4: 2, 5: 3, 6: 4, 7: 5}
    assert data.train_targets.dtype == np.int64


@pytest.mark.parametrize("part", ["train", "validation"])
@pytest.mark.parametrize("classes", [(0,), (0, 1, 2, 3, 4, 5, 9), (6, 7, 9), (6,), ()])
def test_other_classes_are_found(dataset, part, classes):
    spec, data = toy_fold(dataset)
    with pytest.raises(SplitError, match=r"^fold 0: "):
        replace(data, **{part: dataset.images.of_classes(classes)}).check(spec)


def test_the_images_of_another_fold_are_refused(dataset):
    with pytest.raises(SplitError, match=r"^fold 0: the classes of the images differ from those in the specification"):
        train_fold(toy_fold(dataset)[0], toy_fold(dataset, fold=1)[1])


@pytest.mark.parametrize(
    ("method", "batch", "counted"),
    [
        (CONTRASTIVE, 8, 0),
        (CONTRASTIVE.model_copy(update={"batch": Batch(samples_per_class=1, classes="once")}), 4, 6),
        (CONTRASTIVE.at({"batch.samples_per_class": 0}), 24, 0),
        (PROXIES.model_copy(update={"batch": PROXIES.batch.model_copy(update={"classes": "once"})}), 4, 0),
    ],
    ids=["two of a class", "one of a class", "all images at random", "proxies"],
)
def test_batches_without_two_images_of_a_class_are_counted_where_a_loss_needs_them(dataset, method, batch, counted):
    result = train_fold(*toy_fold(dataset, method, short(batch_size=batch))).result
    assert result.batches_without_pairs == counted
    assert ("no pairs" in [event.kind for event in result.events]) == bool(counted)
    assert ("batches_without_pairs" in result.model_dump_json()) == bool(counted)
    assert type(result).model_validate_json(result.model_dump_json()) == result
