"""What the tests of the contract share: batches, losses with a past, and what to compare.

The contract is what every loss promises, whatever it computes. Its tests go through all `loss_factories.CASES`.
"""

import copy

import torch

from tests.support.loss_factories import CASES, LossCase

C, D, B = 5, 8, 12


def chosen(**promised):
    return [case for case in CASES if all(getattr(case, key) == value for key, value in promised.items())]


def cases(**promised):
    """Decorator: one test goes through the losses that promise this; a failure names its loss."""

    def decorate(check):
        def test():
            for case in chosen(**promised):
                try:
                    check(case)
                except BaseException as error:
                    error.add_note(f"with the loss {case.name}")
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


every_case = cases()


def batch(seed=0, size=B, num_classes=C, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(size, D, generator=generator, dtype=dtype)
    labels = torch.randint(num_classes, (size,), generator=generator)
    return embeddings, labels


def made(case: LossCase, num_classes=C, seed=0, steps=3, dtype=torch.float32, **kwargs):
    """A loss a few steps into a training, so that state, if there is any, is not blank."""
    torch.manual_seed(seed)
    loss = case.make(num_classes, D, **kwargs).to(dtype)
    train(loss, range(steps), num_classes, dtype)
    return loss


def train(loss, seeds, num_classes=C, dtype=torch.float32):
    values = []
    for seed in seeds:
        embeddings, labels = batch(100 + seed, num_classes=num_classes, dtype=dtype)
        loss.zero_grad()
        value = loss(embeddings.requires_grad_(), labels)
        value.backward()
        with torch.no_grad():
            for parameter in loss.parameters():
                parameter.sub_(parameter.grad, alpha=0.05)
        values.append(value.detach())
    return values


def value_of(loss, *args):
    """The loss of a call that leaves `loss` as it was."""
    return copy.deepcopy(loss)(*args)


def assert_same_state(first, second):
    assert first.state_dict().keys() == second.state_dict().keys()
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key


def with_finite_gradients(loss, embeddings, labels):
    embeddings = embeddings.clone().requires_grad_()
    value = loss(embeddings, labels)
    value.backward()
    assert value.isfinite()
    assert embeddings.grad.isfinite().all()
    for name, parameter in loss.named_parameters():
        assert parameter.grad.isfinite().all(), name
    return value.detach()
