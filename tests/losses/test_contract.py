"""What every loss promises, whatever it computes: exact states and gradients, PML's conventions, odd batches."""

import copy
import inspect
import pickle
import re

import pytest
import torch
from pytorch_metric_learning import distances, reducers, regularizers
from pytorch_metric_learning import losses as pml
from torch.func import functional_call

import losses
from losses.bridge import THREE
from protocols.machine.torch_state import use_precision
from tests.support.loss_cases import CASES, B, C, D, assert_same_state, batch, cases, made, train, value_of
from tests.support.loss_cases import with_finite_gradients as finite

# --- settings ---


def test_defaults_are_those_of_the_docstrings():
    """A card that leaves a setting out trains with the default, which a paper published."""
    documented, defaults = {}, {}
    for cls in (getattr(losses, name) for name in losses.__all__):
        arguments = (inspect.getdoc(cls) or "").partition("Args:\n")[2]
        texts = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", arguments, re.M))
        for name, parameter in inspect.signature(cls).parameters.items():
            if texts and isinstance(value := parameter.default, str | int | float):
                text = re.findall(r"[Dd]efault\s+`?([\w.-]*\w)", texts[name])[0]
                documented[cls, name] = text == "True" if isinstance(value, bool) else type(value)(text)
                defaults[cls, name] = value
    assert documented == defaults
    assert len(defaults) > 80


def test_every_exported_loss_has_a_case():
    """A loss without one is not held to what this file asks. Those with a name of the library are tested beside it."""
    exported = {name for name in losses.__all__ if name.endswith("Loss")} - vars(pml).keys()
    of_cases = {cls.__name__ for case in CASES for part in case.make(C, D).modules() for cls in type(part).__mro__}
    assert exported - of_cases == set(), "add a case to tests/support/loss_cases.py"
    assert len(exported) > 15


# --- states, precision, gradients ---


@cases()
def test_states_and_copies_resume_a_training(case):
    uninterrupted = made(case)
    resumed = made(case, seed=1, steps=0)
    resumed.load_state_dict(copy.deepcopy(uninterrupted.state_dict()))
    twins = [resumed, copy.deepcopy(uninterrupted), pickle.loads(pickle.dumps(uninterrupted))]
    values = [train(twin, range(3, 8)) for twin in twins]
    assert values == [train(uninterrupted, range(3, 8))] * 3
    for twin in twins:
        assert_same_state(uninterrupted, twin)


@cases()
def test_evaluation_mode_changes_nothing(case):
    loss = made(case)
    before = copy.deepcopy(loss)
    loss.eval()(*batch())
    assert_same_state(loss, before)


@cases()
def test_a_batch_without_gradients_changes_nothing_in_training_mode(case):
    """A validation that forgets `loss.eval()`."""
    loss = made(case)
    before = copy.deepcopy(loss)
    with torch.no_grad():
        loss(*batch())
    assert_same_state(loss, before)


@cases()
def test_another_default_device_is_that_of_new_losses_only(case):
    loss, (embeddings, labels) = made(case), batch()
    expected = value_of(loss, embeddings, labels)
    with torch.device("meta"):
        assert {tensor.device.type for tensor in case.make(C, D).state_dict().values()} <= {"meta"}
        assert torch.equal(loss(embeddings, labels), expected)


@cases()
def test_the_dtype_of_a_loss_can_be_changed(case):
    loss = made(case)
    kept = {key: value.dtype for key, value in loss.state_dict().items() if not value.is_floating_point()}
    loss.to(torch.device("cpu"), torch.float64)
    for key, value in loss.state_dict().items():
        assert value.dtype == kept.get(key, torch.float64), key
    embeddings, labels = batch(dtype=torch.float64)
    value = finite(loss, embeddings, labels)
    assert value.dtype == torch.float64
    torch.testing.assert_close(value.float(), value_of(made(case), embeddings.float(), labels), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@cases()
def test_embeddings_of_another_dtype_change_no_parameter_and_only_round(case, dtype):
    embeddings, labels = batch(dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    loss = made(case)
    dtypes = {key: value.dtype for key, value in loss.state_dict().items()}
    given = embeddings.to(dtype)
    expected = value_of(loss, given.float(), labels)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != torch.float64):
        value = finite(loss, given, labels)
    if dtype == torch.float64:
        torch.testing.assert_close(value.float(), expected, rtol=1e-3, atol=1e-5)
    else:
        assert value.dtype == torch.float32
        assert value == expected
        torch.testing.assert_close(value, value_of(made(case), embeddings, labels), rtol=0.1, atol=0.01)
    assert {key: value.dtype for key, value in loss.state_dict().items()} == dtypes


@pytest.mark.gpu
@cases()
def test_follows_the_embeddings_to_the_gpu(case):
    use_precision("ieee")  # A test before may have trained with TF32 in products.
    embeddings, labels = batch()
    expected = value_of(made(case), embeddings, labels)
    for loss in (made(case), made(case).to("cuda")):
        value = finite(loss, embeddings.cuda(), labels)
        torch.testing.assert_close(value.cpu(), expected, rtol=1e-4, atol=1e-5)
        assert all(tensor.is_cuda for tensor in loss.state_dict().values())


@pytest.mark.parametrize("fast_mode", [True, pytest.param(False, marks=pytest.mark.long)])
@cases(smooth=True)
def test_gradients(case, fast_mode):
    """Along a random direction, or every entry."""
    loss = made(case, dtype=torch.float64).eval()
    embeddings, labels = batch(dtype=torch.float64)
    named = dict(loss.named_parameters())

    def value(x, *weights):
        return functional_call(loss, dict(zip(named, weights, strict=True)), (x, labels))

    inputs = [embeddings, *(parameter.detach().clone() for parameter in named.values())]
    assert torch.autograd.gradcheck(value, [x.requires_grad_() for x in inputs], fast_mode=fast_mode)


@cases(smooth=False)
def test_a_loss_with_selections_falls_along_its_gradient(case):
    loss = made(case, dtype=torch.float64).eval()
    embeddings, labels = batch(dtype=torch.float64)
    value = loss(embeddings.requires_grad_(), labels)
    (gradient,) = torch.autograd.grad(value, embeddings)
    assert loss(embeddings - 1e-4 * gradient / gradient.norm(), labels) < value


# --- PML's conventions ---


def terms_of(loss, embeddings, labels):
    """The sub-losses that a reducer gets."""
    loss.reducer = reducers.DoNothingReducer()
    return loss(embeddings, labels)


def mean_above_zero(part):
    kept = part["losses"][part["losses"] > 0]
    return kept.mean() if len(kept) else torch.zeros(())


@cases(keywords=True)
def test_reducers_and_names_of_the_sub_losses(case):
    embeddings, labels = batch()
    loss = made(case, steps=0)
    parts = terms_of(loss, embeddings, labels)
    assert set(parts) == set(loss.sub_losses)
    choices = {
        reducers.MeanReducer: lambda part: part["losses"].mean(),
        reducers.SumReducer: lambda part: part["losses"].sum(),
        reducers.AvgNonZeroReducer: mean_above_zero,
    }
    if case.divisors:
        choices[reducers.DivisorReducer] = lambda part: part["losses"].sum() / part["divisor"]
    for reducer, reduce in choices.items():
        if THREE and case.divisors and reducer is not reducers.DivisorReducer:
            with pytest.raises(ValueError, match="divisor"):
                made(case, reducer=reducer(), steps=0)(embeddings, labels)
            continue
        value = made(case, reducer=reducer(), steps=0)(embeddings, labels)
        expected = sum(part["losses"] if part["indices"] is None else reduce(part) for part in parts.values())
        torch.testing.assert_close(value, expected, msg=lambda text, r=reducer: f"{r.__name__}: {text}")


@cases(keywords=True, distances=True)
def test_distances(case):
    embeddings, labels = batch()
    cosine = made(case, steps=0)
    dot = made(case, steps=0, distance=distances.DotProductSimilarity(normalize_embeddings=False))
    if case.proxies is not None:
        for loss in (cosine, dot):
            rows = case.proxies(loss)
            rows.copy_(torch.nn.functional.normalize(rows))
    unit = torch.nn.functional.normalize(embeddings)
    expected = value_of(cosine, 7 * unit, labels)
    torch.testing.assert_close(value_of(dot, unit, labels), expected)
    assert not torch.isclose(value_of(dot, 7 * unit, labels), expected)
    # PML's own constructors assert it.
    with pytest.raises((ValueError, AssertionError)):
        made(case, steps=0, distance=distances.LpDistance())


@cases(keywords=True)
def test_regularizers(case):
    embeddings, labels = batch()
    plain, regularizer = made(case, steps=0), regularizers.LpRegularizer(p=2)
    regularized = made(case, steps=0, embedding_regularizer=regularizer, embedding_reg_weight=0.3)
    extra = value_of(regularized, embeddings, labels) - value_of(plain, embeddings, labels)
    torch.testing.assert_close(extra, 0.3 * regularizer(embeddings), rtol=1e-4, atol=1e-5)
    if case.proxies is not None:
        regularized = made(case, steps=0, weight_regularizer=regularizer, weight_reg_weight=0.3)
        extra = value_of(regularized, embeddings, labels) - value_of(plain, embeddings, labels)
        torch.testing.assert_close(extra, 0.3 * regularizer(case.proxies(plain)), rtol=1e-4, atol=1e-5)


@cases(mined=True)
def test_indices_tuple(case):
    embeddings, labels = batch()
    loss = made(case)
    everything, some = torch.arange(B), torch.tensor([0, 1])
    none_at_all = torch.tensor([], dtype=torch.long)
    expected = value_of(loss, embeddings, labels)
    torch.testing.assert_close(value_of(loss, embeddings, labels, (none_at_all,) * 3), expected)
    torch.testing.assert_close(value_of(loss, embeddings, labels, (everything,) * 3), expected)
    fewer = value_of(loss, embeddings, labels, (some, some, some, some))
    assert fewer.isfinite()
    assert fewer < expected


@cases(keywords=True)
def test_other_rows_as_references_are_refused(case):
    embeddings, labels = batch()
    with pytest.raises(ValueError, match="ref_emb"):
        made(case)(embeddings, labels, ref_emb=embeddings.clone(), ref_labels=labels.clone())


# --- odd batches ---


@cases()
def test_neither_the_order_of_a_batch_nor_the_type_of_its_labels_matters(case):
    embeddings, labels = batch(dtype=torch.float64)
    loss = made(case, dtype=torch.float64)
    order = torch.randperm(B, generator=torch.Generator().manual_seed(1))
    expected = value_of(loss, embeddings, labels)
    torch.testing.assert_close(value_of(loss, embeddings[order], labels[order]), expected)
    for dtype in (torch.int32, torch.uint8):
        assert value_of(loss, embeddings, labels.to(dtype)) == expected


@cases()
def test_batch_of_one_class_and_of_one_sample(case):
    embeddings, labels = batch()
    several = finite(made(case), embeddings, torch.full_like(labels, 2))
    single = finite(made(case), embeddings[:1], labels[:1])
    assert several >= 0 or not case.positive
    assert (several > 0 and single > 0) or not case.alone


@cases()
def test_two_classes(case):
    loss = made(case, num_classes=2, seed=2, dtype=torch.float64).eval()
    embeddings, labels = batch(num_classes=2, dtype=torch.float64)
    right = finite(loss, embeddings, labels)
    if case.proxies is not None:
        own = case.proxies(loss).reshape(2, -1, D).mean(1)
        assert loss(own[labels], labels) < loss(own[1 - labels], labels)
    assert right > 0 or not case.positive


def wrong_batches():
    embeddings, labels = batch()
    return {
        "label too large": (embeddings, labels.clone().fill_(C), "labels must be in"),
        "label negative": (embeddings, labels - C, "labels must be in"),
        "labels not whole": (embeddings, labels.float(), "integers"),
        "no labels": (embeddings, None, "labels are required"),
        "too few labels": (embeddings, labels[:-1], r"labels \(B\)"),
        "embeddings in three dimensions": (embeddings.reshape(B, 2, 4), labels, r"embeddings \(B, d\)"),
        "embeddings too narrow": (embeddings[:, :-1], labels, "dimensions"),
        "nothing": (embeddings[:0], labels[:0], "empty"),
    }


@cases()
def test_a_wrong_batch_is_refused_and_changes_no_state(case):
    loss = made(case)
    before = copy.deepcopy(loss)
    for fault, (embeddings, labels, message) in wrong_batches().items():
        if (fault.startswith("label ") and not case.classes) or (fault.endswith("narrow") and not case.sized):
            continue
        with pytest.raises(ValueError, match=message):
            loss(embeddings, labels)
        assert_same_state(loss, before)
