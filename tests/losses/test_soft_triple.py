"""SoftTriple against the authors' code, and what the equations promise."""

import pytest
import torch
from torch.nn import functional

from losses import SoftTripleLoss
from tests.support.golden_files import case_name, golden


def center_spread(centers):
    """R of unit centres (C, K, d)."""
    n_classes, n_centers, _ = centers.shape
    distances = (2 + 1e-5 - 2 * centers @ centers.transpose(1, 2)).sqrt()
    return distances.triu(1).sum() / (n_classes * n_centers * (n_centers - 1))


def loss_of(case, **changes):
    loss = SoftTripleLoss(**{**case.params, **changes}).to(case.dtype)
    case.load(loss.fc, "fc")
    return loss


@pytest.mark.parametrize("case", golden("soft_triple"), ids=case_name)
def test_authors_loss_and_gradients_and_two_terms(case):
    loss = loss_of(case)
    case.check_loss(loss, fc=loss.fc)
    loss, embeddings, labels = loss_of(case, tau=0.0), case.tensor("embeddings"), case.tensor("labels")
    case.check(loss(embeddings, labels), case.arrays["loss_classify"], "loss_classify")
    logits = loss.get_logits(embeddings) - loss.margin * functional.one_hot(labels, loss.num_classes).to(case.dtype)
    case.check(functional.cross_entropy(loss.la * logits, labels), case.arrays["loss_classify"], "loss_classify")
    if case.params["centers_per_class"] > 1 and case.params["tau"] > 0:
        case.check(center_spread(loss_of(case).centers()), case.arrays["reg"], "reg")


def test_class_vector_is_the_center_itself_for_one_and_the_nearest_for_a_low_temperature():
    embeddings, labels = torch.randn(8, 5), torch.arange(8) % 4
    single = SoftTripleLoss(4, 5, centers_per_class=1)
    torch.testing.assert_close(single.class_vectors(embeddings, labels), single.centers()[labels, 0])
    sharp = SoftTripleLoss(4, 5, centers_per_class=3, gamma=1e-6)
    own = sharp.centers()[labels]
    nearest = torch.einsum("bd,bkd->bk", functional.normalize(embeddings, dim=1), own).argmax(dim=1)
    torch.testing.assert_close(sharp.class_vectors(embeddings, labels), own[torch.arange(8), nearest])


@pytest.mark.parametrize("special", ["none", "equal centres", "a centre of norm 0"])
def test_the_gradient_written_out_is_that_of_unit_centres(special):
    torch.manual_seed(0)
    loss = SoftTripleLoss(5, 6, centers_per_class=4).double()
    x, c = torch.randn(7, 6, dtype=torch.float64), loss.fc.detach().clone()
    if special == "equal centres":
        c[:, 1] = 2 * c[:, 0]
    if special == "a centre of norm 0":
        c[:, 3] = 0
    with torch.no_grad():
        loss.fc.copy_(c)
    embeddings, centers = x.clone().requires_grad_(), c.requires_grad_()
    unit = functional.normalize(centers, dim=0)
    total = ((functional.normalize(embeddings, dim=1) @ unit) ** 3).sum() + 2 * center_spread(unit.t().view(5, 4, 6))
    expected = torch.autograd.grad(total, (embeddings, centers))
    own = x.requires_grad_()
    cosines, spread = loss._similarity_and_spread(own)
    value = (cosines**3).sum() + 2 * spread
    torch.testing.assert_close(value, total, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(torch.autograd.grad(value, (own, loss.fc)), expected, rtol=1e-9, atol=1e-9)
