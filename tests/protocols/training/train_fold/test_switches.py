"""When the switches of the methods flip in a training whose "epoch" is a number of iterations and not a pass.

The toy fold has 6 + 2 classes of 4 images on the training side of 16; a batch of 8 makes a pass every few iterations.
"""

import losses
from losses import ProxyISALoss
from protocols.training.train_fold import train_fold
from results.spec.training_spec import Component, MethodSpec
from tests.support.toys import pattern_dataset, settings, toy_fold

BATCH = 8
EPOCHS, ITERATIONS = 4, 7


def observed(monkeypatch, folder, cls, method, look):
    """(passes, what `look` sees) at every step of a short training, and its number of training images."""
    seen = []

    class Observed(cls):
        def on_step_start(self, clock):
            super().on_step_start(clock)
            seen.append((clock.passes, look(self, clock)))

    monkeypatch.setattr(losses, cls.__name__, Observed)
    training = settings(max_epochs=EPOCHS, iterations_per_epoch=ITERATIONS, batch_size=BATCH)
    spec, data = toy_fold(pattern_dataset(folder), method, training)
    assert train_fold(spec, data).result.status == "ok"
    assert len(seen) == EPOCHS * ITERATIONS
    return seen, len(data.train)


def method(name, **arguments):
    return MethodSpec(name="m", loss=Component(name=name, arguments=arguments), samples_per_class=1, loss_lr=0.01)


def first(seen, wanted):
    return next(step for step, (_, what) in enumerate(seen) if wanted(what))


def test_proxy_isas_memory_and_filter_start_after_two_and_three_passes(monkeypatch, tmp_path):
    seen, n_images = observed(
        monkeypatch,
        tmp_path,
        ProxyISALoss,
        method("ProxyISALoss", memory_size="$training_images"),
        lambda loss, _: (bool(loss.memory_on), bool(loss.filter_on)),
    )
    assert [passes for passes, _ in seen] == [step * BATCH // n_images for step in range(len(seen))]
    assert [what for _, what in seen] == [(passes >= 2, passes >= 3) for passes, _ in seen]
    memory, filtering = (first(seen, lambda what, i=i: what[i]) for i in (0, 1))
    # Not at the epochs of the protocol, which are not passes.
    assert memory == -(-2 * n_images // BATCH) != 2 * ITERATIONS
    assert filtering == -(-3 * n_images // BATCH) != 3 * ITERATIONS
