import math
import warnings

import pytest
import torch
from pytorch_metric_learning.reducers import DoNothingReducer
from torch.nn.functional import cross_entropy

from losses import ProxyGMLLoss, proxy_gml
from tests.support.golden_files import case_name, golden


def made_from(case):
    hyperparameters = case.params
    k = hyperparameters.pop("k")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # case 06 is degenerate on purpose
        loss = ProxyGMLLoss(**hyperparameters).to(case.dtype)
    assert loss.k == k
    loss.proxies.data.copy_(case.tensor("proxies"))
    return loss


@pytest.mark.parametrize("case", golden("proxy_gml"), ids=case_name)
def test_loss_selection_and_terms_agree_with_the_authors_code(case):
    loss, embeddings, labels = made_from(case), case.tensor("embeddings"), case.tensor("labels")
    case.check_loss(loss, proxies=loss.proxies)
    terms = loss.compute_loss(embeddings, labels, None)
    similarity = loss.distance(embeddings, loss.proxies)
    selected = loss.select(similarity, labels)
    case.agree("similarity", similarity, "state_rtol")
    case.agree("selected", selected, None)
    case.agree("logits", loss.class_sums(similarity, selected), "state_rtol")
    case.agree("loss_cls", terms["loss"]["losses"].mean(), "loss_rtol")
    assert ("reg_loss" in terms) == (loss.reg_weight > 0)
    if loss.reg_weight:
        case.agree("loss_reg", terms["reg_loss"]["losses"] / loss.reg_weight, "loss_rtol")


def by_the_equations(loss, embeddings, labels):
    """Eqs. 3-12 sample by sample and proxy by proxy, with the matrices as they are printed."""
    unit = torch.nn.functional.normalize(embeddings)
    proxies = torch.nn.functional.normalize(loss.proxies.detach())
    owner = [j // loss.proxies_per_class for j in range(len(proxies))]
    sample_losses = []
    for x, y in zip(unit, labels.tolist(), strict=True):
        cosines = [float(x @ p) for p in proxies]
        rank = sorted(
            range(len(proxies)), key=lambda j: (loss.positive_mask and owner[j] == y, cosines[j]), reverse=True
        )
        chosen = rank[: loss.k]
        z = [sum(x @ proxies[j] for j in chosen if owner[j] == c) for c in range(loss.num_classes)]
        seen = [c in {owner[j] for j in chosen} or not loss.masked_softmax for c in range(loss.num_classes)]
        if not seen[y]:
            sample_losses.append(torch.zeros((), dtype=x.dtype))
            continue
        partition = sum(math.exp(zc) for zc, kept in zip(z, seen, strict=True) if kept)
        sample_losses.append(math.log(partition) - z[y])
    square = proxies @ proxies.T
    proxy_losses = []
    for j, row in enumerate(square):
        z = [sum(row[i] for i in range(len(proxies)) if owner[i] == c) for c in range(loss.num_classes)]
        proxy_losses.append(math.log(sum(math.exp(zc) for zc in z)) - z[owner[j]])
    return float(sum(sample_losses) / len(labels) + loss.reg_weight * sum(proxy_losses) / len(proxies))


@pytest.mark.parametrize("reg_weight", [0.0, 0.5])
@pytest.mark.parametrize("masked_softmax", [True, False])
@pytest.mark.parametrize("positive_mask", [True, False])
def test_the_eight_rows_of_table_1(positive_mask, masked_softmax, reg_weight):
    torch.manual_seed(3)
    loss = ProxyGMLLoss(
        6, 5, 3, r=0.3, reg_weight=reg_weight, positive_mask=positive_mask, masked_softmax=masked_softmax
    ).double()
    embeddings = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 5, 2, 2, 1, 4, 0])
    value = loss(embeddings, labels)
    assert value.item() == pytest.approx(by_the_equations(loss, embeddings.detach(), labels), rel=1e-9)
    value.backward()
    assert embeddings.grad.isfinite().all()
    assert loss.proxies.grad.isfinite().all()
    loss.reducer = DoNothingReducer()
    assert loss(embeddings, labels)["loss"]["losses"].shape == labels.shape


def test_a_sample_that_sees_no_proxy_of_its_class_teaches_nothing():
    loss = ProxyGMLLoss(2, 2, 1, r=0.5, reg_weight=0, positive_mask=False)
    loss.proxies.data.copy_(torch.eye(2))
    embeddings = torch.tensor([[1.0, 0.1], [1.0, 0.1]], requires_grad=True)
    value = loss(embeddings, torch.tensor([1, 1]))
    value.backward()
    assert value.item() == 0
    assert (embeddings.grad == 0).all()


@pytest.mark.parametrize(
    ("r", "num_classes", "per_class", "k"), [(0.07, 100, 1, 7), (0.1, 10, 3, 3), (0.05, 30, 3, 5), (1e-12, 9, 1, 1)]
)
def test_rounding_does_not_add_a_proxy(r, num_classes, per_class, k):
    assert ProxyGMLLoss(num_classes, 2, per_class, r=r, positive_mask=False).k == k


def test_proxies_start_uniformly_within_one_over_the_root_of_their_number():
    torch.manual_seed(0)
    starts = ProxyGMLLoss(500, 8, 5).proxies.detach() * 2500**0.5
    assert -1 < starts.min() < -0.999 < 0.999 < starts.max() < 1


def test_warns_when_own_proxies_fill_the_selection():
    with pytest.warns(UserWarning, match="no other class"):
        ProxyGMLLoss(10, 4, 12, r=0.05)
    with pytest.warns(UserWarning, match="k = 12 of 12 proxies per class") as warned:
        ProxyGMLLoss(10, 4, 12, r=0.1)
    assert warned[0].filename == __file__, "it names the line that made the loss"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ProxyGMLLoss(10, 4, 12, r=0.105).k == 13


@pytest.mark.parametrize("entries", [1, 30, 70, 10_000])
def test_the_cross_entropy_of_the_proxies_does_not_depend_on_the_size_of_its_blocks(entries, monkeypatch):
    monkeypatch.setattr(proxy_gml, "_ENTRIES", entries)
    torch.manual_seed(0)
    rows = torch.randn(23, 5, dtype=torch.float64, requires_grad=True)
    columns = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    classes = torch.randint(7, (23,))
    value, expected = proxy_gml.product_cross_entropy(rows, columns, classes), cross_entropy(rows @ columns, classes)
    torch.testing.assert_close(value, expected)
    got, wanted = (torch.autograd.grad(3 * x, (rows, columns)) for x in (value, expected))
    torch.testing.assert_close(got, wanted)
