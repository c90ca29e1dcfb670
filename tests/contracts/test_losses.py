"""Every loss can be resumed, copied, moved and differentiated exactly; its number of operations never grows."""

import copy
import pickle
from collections import Counter

import pytest
import torch
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.loss_contract import (
    assert_same_state,
    batch,
    cases,
    chosen,
    every_case,
    made,
    train,
    value_of,
    with_finite_gradients,
)


@every_case
def test_state_dict_resumes_a_training(case):
    uninterrupted = made(case)
    resumed = made(case, seed=1, steps=0)
    resumed.load_state_dict(copy.deepcopy(uninterrupted.state_dict()))
    assert train(uninterrupted, range(3, 8)) == train(resumed, range(3, 8))
    assert_same_state(uninterrupted, resumed)


@every_case
def test_copies_are_equal_and_independent(case):
    loss = made(case)
    state = copy.deepcopy(loss.state_dict())
    values = [train(twin, range(3, 6)) for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)))]
    for key, value in loss.state_dict().items():
        assert torch.equal(value, state[key]), key
    assert values == [train(loss, range(3, 6))] * 2


@every_case
def test_to_device_and_dtype(case):
    loss = made(case)
    kept = {key: value.dtype for key, value in loss.state_dict().items() if not value.is_floating_point()}
    loss.to(torch.device("cpu"), torch.float64)
    for key, value in loss.state_dict().items():
        assert value.dtype == kept.get(key, torch.float64), key
    embeddings, labels = batch(dtype=torch.float64)
    value = with_finite_gradients(loss, embeddings, labels)
    assert value.dtype == torch.float64
    torch.testing.assert_close(value.float(), value_of(made(case), embeddings.float(), labels), rtol=1e-3, atol=1e-5)


@pytest.mark.gpu
@every_case
def test_follows_the_embeddings_to_the_gpu(case):
    embeddings, labels = batch()
    expected = value_of(made(case), embeddings, labels)
    for loss in (made(case), made(case).to("cuda")):
        value = with_finite_gradients(loss, embeddings.cuda(), labels)
        torch.testing.assert_close(value.cpu(), expected, rtol=1e-4, atol=1e-5)
        assert all(tensor.is_cuda for tensor in loss.state_dict().values())


def gradients_are_right(case, fast_mode):
    loss = made(case, dtype=torch.float64).eval()
    embeddings, labels = batch(dtype=torch.float64)
    named = dict(loss.named_parameters())

    def value(x, *weights):
        return functional_call(loss, dict(zip(named, weights, strict=True)), (x, labels))

    inputs = [embeddings, *(parameter.detach().clone() for parameter in named.values())]
    assert torch.autograd.gradcheck(value, [x.requires_grad_() for x in inputs], fast_mode=fast_mode)


@cases(smooth=True)
def test_gradients_along_a_random_direction(case):
    gradients_are_right(case, fast_mode=True)


@pytest.mark.long
@pytest.mark.parametrize("case", chosen(smooth=True), ids=lambda case: case.name)
def test_every_entry_of_the_gradients(case):
    gradients_are_right(case, fast_mode=False)


@every_case
def test_loss_falls_along_its_gradient(case):
    loss = made(case, dtype=torch.float64).eval()
    embeddings, labels = batch(dtype=torch.float64)
    embeddings.requires_grad_()
    value = loss(embeddings, labels)
    (gradient,) = torch.autograd.grad(value, embeddings)
    step = 1e-4 / gradient.norm()
    assert loss(embeddings - step * gradient, labels) < value


@every_case
def test_evaluation_mode_changes_nothing(case):
    loss = made(case)
    before = copy.deepcopy(loss)
    loss.eval()(*batch())
    assert_same_state(loss, before)


@every_case
def test_autocast_adds_only_the_rounding_error_of_the_embeddings(case):
    embeddings, labels = batch()
    for dtype in (torch.bfloat16, torch.float16):
        loss = made(case)
        dtypes = {key: value.dtype for key, value in loss.state_dict().items()}
        rounded = embeddings.to(dtype)
        expected = value_of(loss, rounded.float(), labels)
        with torch.autocast("cpu", dtype=dtype):
            value = with_finite_gradients(loss, rounded, labels)
        assert value.dtype == torch.float32
        assert value == expected
        torch.testing.assert_close(value, value_of(made(case), embeddings, labels), rtol=0.1, atol=0.01)
        assert {key: value.dtype for key, value in loss.state_dict().items()} == dtypes


@every_case
def test_float64_embeddings_do_not_change_the_dtype_of_the_parameters(case):
    loss = made(case)
    dtypes = {key: value.dtype for key, value in loss.state_dict().items()}
    embeddings, labels = batch(dtype=torch.float64)
    expected = value_of(loss, embeddings.float(), labels)
    value = with_finite_gradients(loss, embeddings, labels)
    torch.testing.assert_close(value.float(), expected, rtol=1e-4, atol=1e-5)
    assert {key: value.dtype for key, value in loss.state_dict().items()} == dtypes


@pytest.mark.long
@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_compiled_losses_give_the_same_values(case):
    loss = made(case)
    torch.compiler.reset()
    compiled = torch.compile(copy.deepcopy(loss), backend="eager")
    for seed in range(2):
        values = []
        for each in (loss, compiled):
            embeddings, labels = batch(seed)
            value = each(embeddings.requires_grad_(), labels)
            values.append((value.detach(), torch.autograd.grad(value, embeddings)[0]))
        torch.testing.assert_close(values[1], values[0])


class CountOperations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations[func] += 1
        return func(*args, **(kwargs or {}))


def operations(case, size, num_classes):
    loss = made(case, num_classes=num_classes)
    embeddings, labels = batch(size=size, num_classes=num_classes)
    with CountOperations() as count:
        loss(embeddings.requires_grad_(), labels).backward()
    return count.operations


@cases(at_once=True)
def test_no_loop_over_samples_or_classes(case):
    few = operations(case, size=8, num_classes=4)
    many = operations(case, size=40, num_classes=30)
    assert sum(few.values()) > 5
    assert few == many
