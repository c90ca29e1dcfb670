"""PFML against values that were computed twice from its equations, and where its distances are smallest."""

import pytest
import torch

from losses import PotentialFieldLoss, potential_field
from tests.support.golden_files import case_name, golden


def loss_of(case, dtype):
    params = {name: value for name, value in case.params.items() if name != "smallest distance"}
    loss = PotentialFieldLoss(**params).to(dtype)
    case.load(loss.proxies, "proxies")
    return loss


@pytest.mark.parametrize("rows", [1, 7, 256], ids="blocks of {} rows".format)
@pytest.mark.parametrize(
    ("dtype", "of_loss", "of_gradients"), [(torch.float64, 1e-9, 1e-8), (torch.float32, 1e-4, 1e-3)]
)
@pytest.mark.parametrize("case", golden("pfml"), ids=case_name)
def test_published_equations(case, dtype, of_loss, of_gradients, rows, monkeypatch):
    monkeypatch.setattr(potential_field, "_ROWS", rows)
    loss, embeddings = loss_of(case, dtype), case.tensor("embeddings").to(dtype).requires_grad_()
    value = loss(embeddings, case.tensor("labels"))
    value.backward()
    torch.testing.assert_close(value.double(), case.tensor("loss"), rtol=of_loss, atol=0.0)
    for gradient, name in ((embeddings.grad, "grad_embeddings"), (loss.proxies.grad, "grad_proxies")):
        expected = case.tensor(name)
        largest = expected.abs().max().item()
        torch.testing.assert_close(gradient.double(), expected, rtol=0.0, atol=of_gradients * largest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("least", [0.0, 5e-5])
def test_coinciding_and_close_points(dtype, least):
    """Samples of classes 0, 1, 0, 1 at these angles, far from the proxies: two pairs below the floor of 1e-4."""
    loss = PotentialFieldLoss(2, 3, proxies_per_class=1).to(dtype)
    loss.proxies.data.copy_(torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]))
    angles = torch.tensor([0.0, least, 1e-3, 1e-3 + least], dtype=torch.float64)
    points = torch.stack([angles.cos(), angles.sin(), 0 * angles], dim=1).to(dtype).requires_grad_()
    value = loss(points, torch.tensor([0, 1, 0, 1]))
    value.backward()
    near, far = 1e-3 - least, 1e-3 + least
    expected = 2 * (2e12 + near**-3 + far**-3)
    torch.testing.assert_close(value.double(), value.new_tensor(expected).double(), rtol=1e-4, atol=0.0)
    # Pairs of a class lie within the radius, so that only the two close pairs of different classes push.
    by_near, by_far = 6 * near**-4, 6 * far**-4
    expected = points.new_tensor([by_far, by_near, -by_near, -by_far])
    torch.testing.assert_close(points.grad[:, 1], expected, rtol=1e-3, atol=0.0)
    assert points.grad.isfinite().all()
    assert loss.proxies.grad.isfinite().all()


def test_a_field_without_decay_is_a_constant():
    loss, points = PotentialFieldLoss(3, 4, proxies_per_class=2, alpha=0.0), torch.randn(4, 4, requires_grad=True)
    value = loss(points, torch.tensor([0, 0, 1, 2]))
    value.backward()
    # Of 90 ordered pairs, 24 are of one class: 4 and 3 and 3 points.
    assert value == 90 - 2 * 24
    assert points.grad.count_nonzero() == 0
