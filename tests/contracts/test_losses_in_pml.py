"""Every loss follows the conventions of pytorch-metric-learning and trains in its trainer."""

import copy

import pytest
import torch
from pytorch_metric_learning import distances, reducers, regularizers, trainers
from pytorch_metric_learning.losses import ContrastiveLoss, MultipleLosses

from tests.support.loss_contract import B, C, D, batch, cases, every_case, made, value_of


def by_hand(sub_losses, reduce):
    parts = (
        part["losses"] if part["reduction_type"] == "already_reduced" else reduce(part) for part in sub_losses.values()
    )
    return sum(parts)


def mean_above_zero(part):
    kept = part["losses"][part["losses"] > 0]
    return kept.mean() if len(kept) else torch.zeros(())


@cases(keywords=True)
def test_reducers(case):
    embeddings, labels = batch()
    sub_losses = made(case, reducer=reducers.DoNothingReducer(), steps=0)(embeddings, labels)
    choices = {
        reducers.MeanReducer: lambda part: part["losses"].mean(),
        reducers.SumReducer: lambda part: part["losses"].sum(),
        reducers.AvgNonZeroReducer: mean_above_zero,
    }
    if case.divisors:
        choices[reducers.DivisorReducer] = lambda part: part["losses"].sum() / part["divisor"]
    for reducer, reduce in choices.items():
        value = made(case, reducer=reducer(), steps=0)(embeddings, labels)
        torch.testing.assert_close(value, by_hand(sub_losses, reduce), msg=lambda m, r=reducer: f"{r.__name__}: {m}")


@cases(keywords=True)
def test_names_of_the_sub_losses(case):
    loss = made(case, steps=0)
    parts = made(case, reducer=reducers.DoNothingReducer(), steps=0)(*batch())
    assert set(parts) == set(loss.sub_loss_names())


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


@every_case
def test_multiple_losses(case):
    embeddings, labels = batch()
    loss = made(case)
    both = MultipleLosses([copy.deepcopy(loss), ContrastiveLoss()], weights=[0.5, 2.0])
    expected = 0.5 * value_of(loss, embeddings, labels) + 2 * ContrastiveLoss()(embeddings, labels)
    torch.testing.assert_close(both(embeddings, labels), expected)


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


@every_case
def test_inside_pml_trainer(case):
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(*batch(size=40))
    trunk, loss = torch.nn.Linear(D, D), made(case)
    before = copy.deepcopy(trunk.state_dict())
    optimizers = {"trunk_optimizer": torch.optim.SGD(trunk.parameters(), lr=0.1)}
    if own := list(loss.parameters()):
        optimizers["metric_loss_optimizer"] = torch.optim.SGD(own, lr=0.1)
    trainer = trainers.MetricLossOnly(
        models={"trunk": trunk},
        optimizers=optimizers,
        batch_size=10,
        loss_funcs={"metric_loss": loss},
        dataset=data,
        dataloader_num_workers=0,
        data_device=torch.device("cpu"),
        dtype=torch.float32,
    )
    trainer.train(num_epochs=1)
    assert not torch.equal(trunk.weight, before["weight"])
    assert all(parameter.isfinite().all() for parameter in [*trunk.parameters(), *loss.parameters()])


@cases(logits=True)
def test_logits(case):
    embeddings, _ = batch()
    loss = made(case)
    logits = loss.get_logits(embeddings)
    assert logits.shape == (B, C)
    torch.testing.assert_close(logits, loss.get_logits(embeddings.double()).float(), rtol=1e-4, atol=1e-5)
    half = loss.get_logits(embeddings.bfloat16())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, loss.get_logits(embeddings.bfloat16().float()), rtol=1e-5, atol=1e-5)


@cases(keywords=True)
def test_refuses_reference_embeddings(case):
    embeddings, labels = batch()
    with pytest.raises(ValueError, match="ref_emb"):
        made(case)(embeddings, labels, ref_emb=embeddings.clone(), ref_labels=labels.clone())


@cases(keywords=True)
def test_the_batch_itself_is_accepted_as_reference(case):
    embeddings, labels = batch()
    embeddings = embeddings.bfloat16()
    loss = made(case)
    assert value_of(loss, embeddings, labels, None, embeddings, labels) == value_of(loss, embeddings, labels)
