"""In a plain loop with a `Schedule` a loss is the method that the suite runs."""

import numpy as np
import pytest
import torch
from torch import nn

from losses import CCPLoss, NIRLoss, ProxyAnchorLoss, ProxyISALoss, Schedule, XBMLoss
from losses.bridge import THREE
from losses.plugin import Needs, TrainingPlugin
from protocols.images.samples import BatchSource
from protocols.training.batches import batches
from protocols.training.build_method import build_method
from protocols.training.optimizer import build_optimizer
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import model_of
from results.spec.component import Component
from results.spec.conditions import TrainingSettings
from results.spec.method import Method
from results.values import derive_seed
from tests.support.documentation import ROOT, blocks
from tests.support.small_setup import small_setup

METHODS = {
    "ProxyISALoss": {"memory_size": 24, "memory_start_pass": 1, "filter_start_pass": 2},
    "CCPLoss": {"proxies_per_class": 2, "pool_size": 3, "patience": 1},
    "NIRLoss": {"base_loss": "proxy_anchor", "n_blocks": 2, "num_classes": "$num_classes"},
    "TripletMarginLoss": {"margin": 0.1},
}


@pytest.mark.parametrize("name", METHODS)
def test_the_values_are_those_of_the_suite_s_loop(name, tmp_path):
    spec, data = five_epochs(Component(name=name, arguments=METHODS[name]), tmp_path)
    suite = train_fold(spec, data).result
    values = losses_of_plain_loop(spec, data, suite)
    assert len(values) == 5
    assert values == [point.loss for point in suite.curve[1:]]


class Recorder(nn.Module, TrainingPlugin):
    """A loss that records its hooks."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def on_epoch_start(self, clock):
        self.calls.append(("epoch", clock.epoch, clock.step))

    def on_step_start(self, clock):
        self.calls.append(("step", clock.step, clock.passes))

    def on_gradients(self, clock):
        self.calls.append(("gradients", clock.step))
        return clock.step != 1


def test_hooks_are_called_in_order_and_once_per_step():
    loss = Recorder()
    schedule = Schedule(loss, nn.Linear(2, 2), [0, 0, 1, 1, 1], batch_size=2)
    may_step = []
    for _ in range(3):
        schedule.start_step()
        schedule.start_step()
        may_step.append(schedule.gradients_ready())
    assert may_step == [True, False, True]
    assert loss.calls == [
        *(("epoch", 0, 0), ("step", 0, 0), ("gradients", 0), ("step", 1, 0), ("gradients", 1)),
        *(("epoch", 1, 2), ("step", 2, 0), ("gradients", 2)),
    ]


def test_the_trunk_is_frozen_during_the_warm_up():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    loss = Recorder()
    loss.needs = Needs(warmup_epochs=1)
    with pytest.raises(ValueError, match=r"frozen trunk at first \(warmup_epochs=1\); give trunk="):
        Schedule(loss, model, [0, 1], batch_size=1)
    schedule = Schedule(loss, model, [0, 1], batch_size=1, trunk=model[0])
    frozen = []
    for _ in range(3):
        schedule.start_step()
        frozen.append(not model[0].weight.requires_grad)
        assert model[1].weight.requires_grad
        schedule.gradients_ready()
    assert frozen == [True, True, False]


def test_a_loss_that_picks_samples_asks_for_images():
    loss = CCPLoss.from_card(num_classes=2, embedding_size=4)
    with pytest.raises(ValueError, match="CCPLoss picks its proxies among embeddings of training images; give images="):
        Schedule(loss, nn.Linear(2, 4), [0, 1], batch_size=2)


def with_scaler(name, scale, unscale, parts=1):
    """The network's weights after six steps of a plain loop with torch's scaler; a batch may be in parts."""
    torch.manual_seed(0)
    images, labels, network = torch.randn(64, 8), torch.arange(64) % 4, nn.Linear(8, 16)
    loss = SCALED[name]()
    groups = [{"params": network.parameters()}, *loss.param_groups(lr=1e-2, weight_decay=0.0)]
    optimizer = torch.optim.SGD(groups, lr=1e-2)
    schedule = Schedule(
        loss, network, labels, batch_size=16, trunk=network, warmup_epochs=0, images=lambda rows: images[rows]
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=scale != 1)
    schedule.evaluated({"map_at_r": 0.5})
    for batch in list(torch.arange(64).split(16))[:3] * 2:
        schedule.start_step()
        optimizer.zero_grad()
        for rows in batch.chunk(parts):
            scaler.scale(loss(network(images[rows]), labels[rows]) / parts).backward()
        if unscale:
            scaler.unscale_(optimizer)
        if schedule.gradients_ready():
            scaler.step(optimizer)
        scaler.update()
        schedule.evaluated({"map_at_r": 0.1})
    return network.weight.detach()


SCALED = {
    "CCPLoss": lambda: CCPLoss.from_card(num_classes=4, embedding_size=16, proxies_per_class=2, lam=20.0, patience=1),
    "NIRLoss": lambda: NIRLoss(ProxyAnchorLoss(4, 16), embedding_size=16, n_blocks=2, depth=1, width=16),
    "XBMLoss": lambda: XBMLoss.from_card(embedding_size=16, memory_size=32),
}


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("name", SCALED)
def test_a_gradient_scaler_changes_nothing(name, parts):
    """CCP adds to gradients, and by how much they are multiplied cannot be known where a loop weighs its losses."""
    plain = with_scaler(name, 1, unscale=False, parts=parts)
    assert torch.equal(with_scaler(name, 65536.0, unscale=True, parts=parts), plain)
    if name != "CCPLoss":
        assert torch.equal(with_scaler(name, 65536.0, unscale=False, parts=parts), plain)
        return
    line = rf"by {65536 // parts}, as by a GradScaler, and CCPLoss .* scaler.unscale_\(optimizer\)"
    with pytest.raises(ValueError, match=line):
        with_scaler(name, 65536.0, unscale=False, parts=parts)


@pytest.mark.parametrize(("name", "unscale"), [("CCPLoss", True), ("NIRLoss", True), ("NIRLoss", False)])
def test_a_step_that_the_scale_overflows_is_skipped_and_the_loop_goes_on(name, unscale):
    assert with_scaler(name, 3e38, unscale=unscale).isfinite().all()


def test_the_examples_of_the_docs_call_the_hooks():
    names = {}
    codes = [one for one in blocks(ROOT / "docs" / "losses_elsewhere.md", "python") if "schedule" in one]
    plain, scaled, *in_trainer = (one for one in codes if "lightning" not in one)
    exec(plain, names)
    exec(scaled, names)
    assert names["schedule"].step == 20
    assert len(in_trainer) == (not THREE)
    for code in in_trainer:
        exec(code, names)
        assert names["loss"].started, "CCP has picked its proxies"


def test_a_module_of_lightning_calls_the_hooks_as_a_plain_loop_does():
    pytest.importorskip("lightning")
    (code,) = (one for one in blocks(ROOT / "docs" / "losses_elsewhere.md", "python") if "LightningModule" in one)
    torch.manual_seed(0)
    exec(code, names := {})
    assert names["module"].schedule.step == 16
    torch.manual_seed(0)
    images, labels = torch.randn(64, 8), torch.arange(64) % 4
    model = nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 16))
    loss = ProxyISALoss(num_classes=4, embedding_size=16, memory_size=32)
    groups = [{"params": model.parameters()}, *loss.param_groups(lr=1e-2, weight_decay=0.0)]
    optimizer = torch.optim.Adam(groups, lr=1e-3)
    schedule = Schedule(loss, model, labels, batch_size=16, trunk=model[0])
    for rows in list(torch.arange(64).split(16)) * 4:
        schedule.start_step()
        optimizer.zero_grad()
        loss(model(images[rows]), labels[rows]).backward()
        if schedule.gradients_ready():
            optimizer.step()
    for ours, theirs in ((model, names["network"]), (loss, names["with_memory"])):
        for key, value in ours.state_dict().items():
            torch.testing.assert_close(theirs.state_dict()[key], value, msg=key)
    assert loss.memory_on, "without hooks it stays off"


# --- the reminder ---

WAITING = {
    "ProxyISALoss": (lambda: ProxyISALoss(4, 3, memory_size=50), "memory or filter off"),
    "CCPLoss": (lambda: CCPLoss.from_card(num_classes=4, embedding_size=3), "random proxies"),
}


@pytest.mark.parametrize("name", WAITING)
def test_a_loss_that_waits_for_hooks_says_so_with_the_remedy(name):
    make, missing = WAITING[name]
    with pytest.warns(UserWarning, match=f"the hooks of {name} are not called: {missing}.*losses.Schedule"):
        make()(torch.randn(8, 3, requires_grad=True), torch.arange(8) % 4)


def parts_of_training(spec, data):
    """Network, loss, optimizer, source of images and rows of the batches, as `train_fold` makes them from the seed."""
    torch.manual_seed(derive_seed("network", spec.seed))
    model = model_of(spec).place(torch.device("cpu"))
    torch.manual_seed(derive_seed("loss", spec.seed))
    targets = data.train_targets
    counts, batch_size = np.bincount(targets).tolist(), spec.conditions.training.batch_size
    method = build_method(spec.method, counts, model.dimensions, batch_size)
    optimizer = build_optimizer(spec.conditions.training.optimizer, model, method, spec.method)
    source = BatchSource(data.train, spec.conditions.images, torch.device("cpu"))
    rows = batches(targets, batch_size, spec.method.batch.samples_per_class, derive_seed("batches", spec.seed))
    return model, method, optimizer, source, rows


def pool_images(spec, source):
    """What `Schedule` takes as `images`, with the crops of the suite's pool."""
    crops = torch.Generator().manual_seed(derive_seed("pool", spec.seed))
    return lambda rows: source.training_batch(rows, crops)


def losses_of_plain_loop(spec, data, suite):
    """Mean loss of every epoch. Validation scores, which some losses act on, are those of the suite's training."""
    model, method, optimizer, source, rows = parts_of_training(spec, data)
    schedule = Schedule(
        method.loss,
        model,
        data.train_targets,
        spec.conditions.training.batch_size,
        images=pool_images(spec, source),
        steps_per_epoch=spec.conditions.training.iterations_per_epoch,
        seed=derive_seed("pool", spec.seed),
    )
    crops = torch.Generator().manual_seed(derive_seed("crops", spec.seed))
    means = []
    schedule.evaluated({"map_at_r": suite.curve[0].map_at_r})
    for point in suite.curve[1:]:
        values = []
        model.train()
        method.loss.train()
        for _ in range(spec.conditions.training.iterations_per_epoch):
            schedule.start_step()
            batch = next(rows)
            optimizer.zero_grad()
            loss = method(model(source.training_batch(batch, crops)), torch.from_numpy(data.train_targets[batch]))
            loss.backward()
            if schedule.gradients_ready():
                optimizer.step()
            values.append(loss.item())
        means.append(sum(values) / len(values))
        schedule.evaluated({"map_at_r": point.map_at_r})
    return means


def five_epochs(loss, folder):
    """A fold's training of a loss over five epochs, and its images."""
    settings = {**dict(small_setup(folder).conditions.training), "max_epochs": 5, "patience": 9}
    setup = small_setup(folder, training=TrainingSettings.model_validate(settings))
    spec = setup.fold_specs(Method(name="own", loss=loss, loss_lr=0.01), "reproduction", 0)[0]
    return spec, setup.training_data(spec)
