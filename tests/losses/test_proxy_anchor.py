import pytest
import torch
from pytorch_metric_learning.losses import ProxyAnchorLoss as PMLProxyAnchorLoss

from losses import ProxyAnchorLoss
from losses.bridge import THREE
from tests.support.golden_files import case_name, golden


@pytest.mark.parametrize("case", golden("proxy_anchor"), ids=case_name)
def test_agrees_with_the_authors_code_also_per_class(case):
    loss = ProxyAnchorLoss(**case.params).to(case.dtype)
    loss.proxies.data.copy_(case.tensor("proxies"))
    case.check_loss(loss, proxies=loss.proxies)
    case.agree("similarity", loss.get_logits(case.tensor("embeddings")), "state_rtol")
    terms = loss.compute_loss(case.tensor("embeddings"), case.tensor("labels"), None)
    for sign in ("pos", "neg"):
        case.agree(f"{sign}_loss_per_class", terms[f"{sign}_loss"]["losses"], "loss_rtol")
        assert terms[f"{sign}_loss"]["divisor"] == case.tensor(f"{sign}_divisor")


def test_pml_downcasts_its_proxies_or_refuses_and_ours_does_neither():
    embeddings, labels = torch.randn(4, 8).bfloat16(), torch.tensor([0, 1, 2, 0])
    theirs, ours = PMLProxyAnchorLoss(3, 8), ProxyAnchorLoss(3, 8)
    if THREE:
        with pytest.raises(ValueError, match="dtype"):
            theirs(embeddings, labels)
    else:
        theirs(embeddings, labels)
        assert theirs.proxies.dtype == torch.bfloat16
    assert ours(embeddings, labels).dtype == torch.float32
    assert ours.proxies.dtype == torch.float32
