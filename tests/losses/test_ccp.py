"""Chance-constrained programming against the reference values, and how it starts, resumes and is copied."""

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional

from losses import CCPLoss, Needs, greedy_k_center
from losses.pair_losses import COPY
from tests.support.golden_files import case_name, golden
from tests.support.linear_trunk import CLOCK, Linear, context

# --- reference values ---


def objective(case):
    params = case.params
    base_params = params["base_params"]
    base_params.pop("epsilon", None)
    assert params["w_proxy"] == 1
    if params["base"] == "ms":
        base_params["threshold"] = base_params.pop("base")
    loss = CCPLoss.from_card(
        num_classes=params["n_classes"],
        embedding_size=params["embedding_size"],
        base=params["base"],
        proxies_per_class=params["proxies_per_class"],
        lam=params["lam"],
        w_sample=params["w_sample"],
        **base_params,
    ).to(case.dtype)
    trunk = Linear(case.tensor("w"))
    pool = torch.zeros(params["n_classes"], 100, params["embedding_size"], dtype=case.dtype)
    loss.bind(context(trunk, params["n_classes"], lambda per_class: pool[:, :per_class]))
    case.load(loss.proxies, "proxies")
    return loss, trunk


@pytest.mark.parametrize("case", golden("ccp_objective"), ids=case_name)
def test_objective_and_its_gradients(case):
    loss, trunk = objective(case)
    loss.previous_weights.copy_(case.tensor("w_prev").flatten())
    value = loss(trunk(case.tensor("x")), case.tensor("labels"))
    value.backward()
    case.check(value, case.arrays["loss"], "loss")
    case.check_gradient(trunk.weight.grad, "grad_loss_w")
    case.check_gradient(loss.proxies.grad, "grad_proxies")
    assert loss.on_gradients(CLOCK)
    case.check_gradient(trunk.weight.grad, "grad_loss_w")  # nothing is pulled in the first problem
    loss.instance.fill_(1)
    assert loss.on_gradients(CLOCK)
    case.check_gradient(trunk.weight.grad, "grad_objective_w")
    case.check_gradient(loss.proxies.grad, "grad_proxies")


@pytest.mark.parametrize("case", golden("ccp_controller"), ids=case_name)
def test_controller(case):
    params = case.params
    assert (params["min_evaluations"], params["min_delta"]) == (1, 1e-5)
    sizes = {"num_classes": 2, "embedding_size": 1, "proxies_per_class": 1, "pool_size": 2}
    loss = CCPLoss.from_card(**sizes, lam=params["lam"], patience=params["patience"]).double()
    trunk = Linear(torch.full((1, 1), -1.0, dtype=torch.float64))
    loss.bind(context(trunk, 2, lambda per_class: torch.zeros(2, per_class, 1, dtype=torch.float64)))
    solutions = []
    for evaluation, score in enumerate(case.arrays["monitor"]):
        before = loss.instance.item()
        # In one case the authors' code also lets lam decay from problem to problem.
        assert loss.strength() * params["lam_decay"] ** before == pytest.approx(
            case.arrays["lam"][evaluation], rel=1e-12
        )
        trunk.weight.data.fill_(evaluation)  # so that stored weights tell when they were stored
        loss.on_evaluation(CLOCK, {"map_at_r": score, "precision_at_1": -score})
        assert (loss.best_weights.item() == evaluation) == case.arrays["snapshot"][evaluation]
        assert (loss.instance.item() > before) == case.arrays["resolve"][evaluation]
        assert loss.instance.item() == case.arrays["instance"][evaluation]
        if loss.instance.item() > before:
            solutions.append(loss.previous_weights.item())
    np.testing.assert_array_equal(solutions, case.arrays["best_eval"])


@pytest.mark.parametrize("case", golden("ccp_run"), ids=case_name)
@pytest.mark.parametrize("resume_at", [None, 3, 7], ids=lambda e: f"resumed at {e}")
def test_a_whole_run(case, resume_at):
    """Gradient descent through several problems; resumed from its state in the middle it comes out the same."""
    run = Run(case)
    for evaluation in range(len(case.arrays["monitor"])):
        if evaluation == resume_at:
            run = run.resumed()
        case.check(run.value(), case.arrays["loss_before"][evaluation], f"loss {evaluation}")
        assert run.loss.strength() == pytest.approx(case.arrays["lam"][evaluation])
        before = run.loss.instance.item()
        run.train_and_evaluate(case.arrays["monitor"][evaluation])
        case.check(run.trunk.weight, case.arrays["w_after"][evaluation], f"w {evaluation}")
        case.check(run.loss.proxies, case.arrays["proxies_after"][evaluation], f"proxies {evaluation}")
        assert (run.loss.instance.item() > before) == case.arrays["resolve"][evaluation]
    case.check(run.loss.previous_weights.view(run.trunk.weight.shape), case.arrays["w_prev_final"], "w_prev")


class Run:
    def __init__(self, case):
        self.case, self.params = case, case.params
        self.x, self.labels = case.tensor("x"), case.tensor("labels")
        self.trunk, self.loss, self.pools = Linear(case.tensor("w0")), self.unbound(), 0
        self.bind()
        case.check(self.loss.proxies, case.arrays["proxies0"], "proxies0")

    def unbound(self):
        names = ("base", "embedding_size", "pos_margin", "neg_margin", "w_sample", "lam", "patience")
        chosen = {name: self.params[name] for name in (*names, "proxies_per_class", "pool_size")}
        return CCPLoss.from_card(num_classes=self.params["n_classes"], **chosen).double()

    def bind(self):
        self.loss.bind(context(self.trunk, self.params["n_classes"], self.embed_pool))

    def embed_pool(self, per_class):
        rows = self.case.tensor("pool_index")[self.pools]
        assert rows.shape[1] == per_class
        self.pools += 1
        with torch.no_grad():
            return self.trunk(self.x[rows])

    def resumed(self):
        """A new loss given this one's state, first loaded and then bound."""
        other = copy.copy(self)
        other.trunk, other.loss = Linear(self.trunk.weight.detach()), self.unbound()
        other.loss.load_state_dict(copy.deepcopy(self.loss.state_dict()))
        other.bind()
        assert other.pools == self.pools, "a resumed loss must not pick proxies again"
        return other

    def value(self):
        value = self.loss(self.trunk(self.x), self.labels)
        return value

    def train_and_evaluate(self, score):
        optimizer = torch.optim.SGD([*self.trunk.parameters(), *self.loss.parameters()], lr=self.params["lr"])
        for _ in range(self.params["steps_per_evaluation"]):
            optimizer.zero_grad()
            self.value().backward()
            assert self.loss.on_gradients(CLOCK)
            optimizer.step()
        self.loss.on_evaluation(CLOCK, {"map_at_r": score})


# --- properties ---


def test_named_base_losses_and_needs_are_those_of_the_docstring():
    bases = {name: CCPLoss.from_card(base=name, num_classes=2, embedding_size=2) for name in CCPLoss.named_bases}
    c1, c2, ms, triplet = (loss.base_loss for loss in bases.values())
    assert (c1.pos_margin, c1.neg_margin) == (1 - COPY, 0.5)
    assert (c2.pos_margin, c2.neg_margin) == (0, 0.3841)
    assert (ms.alpha, ms.beta, ms.base) == (2, 40, 0.5)
    assert triplet.margin == 0.0961
    assert {loss.needs for loss in bases.values()} == {Needs(normalization="ball", validation=True)}


@pytest.mark.parametrize("base", ["c2", "triplet"])
def test_a_proxy_equal_to_a_sample_costs_exactly_nothing(base):
    """It does right after proxies were picked; rounding noise would count as a violated positive margin of 0."""
    torch.manual_seed(0)
    loss = CCPLoss.from_card(num_classes=2, embedding_size=64, base=base, proxies_per_class=1, w_sample=0.0)
    embeddings = torch.randn(30, 64)
    with torch.no_grad():
        loss.proxies.copy_(embeddings[:2])
    features = embeddings[:2].clone().requires_grad_()
    value = loss(features, torch.arange(2))
    value.backward()
    assert value == 0
    assert features.grad.abs().max() == 0


@pytest.mark.parametrize(("k", "pool_size", "asked"), [(3, 5, 5), (3, 3, 3), (3, 2, 6), (3, 1, 3), (1, 1, 1)])
def test_pool_is_as_large_as_specified(k, pool_size, asked):
    sizes = []

    def embed_pool(per_class):
        sizes.append(per_class)
        return torch.arange(2 * per_class * 4.0).view(2, per_class, 4)

    loss = CCPLoss.from_card(num_classes=2, embedding_size=4, proxies_per_class=k, pool_size=pool_size)
    loss.bind(context(Linear(torch.zeros(1, 1)), 2, embed_pool))
    assert sizes == [asked]
    if pool_size == 1:  # nothing is picked: the draws become proxies in their order
        expected = torch.arange(2 * k * 4.0).view(2, k, 4).transpose(0, 1).reshape(2 * k, 4)
        assert torch.equal(loss.proxies, expected)


def bound(**params):
    torch.manual_seed(0)
    trunk, x = Linear(torch.randn(3, 4)), torch.randn(2, 50, 3)
    loss = CCPLoss.from_card(num_classes=2, embedding_size=4, proxies_per_class=2, pool_size=4, **params)

    def embed_pool(per_class):
        with torch.no_grad():
            return trunk(x[:, :per_class])

    loss.bind(context(trunk, 2, embed_pool))
    return loss, trunk


def test_state_loads_before_and_after_bind():
    loss, _ = bound(patience=1)
    for score in (0.5, 0.4, 0.7):
        loss.on_evaluation(CLOCK, {"map_at_r": score})
    state = copy.deepcopy(loss.state_dict())
    unbound, other = (
        CCPLoss.from_card(num_classes=2, embedding_size=4, proxies_per_class=2, pool_size=4),
        bound(patience=1)[0],
    )
    for resumed in (unbound, other):
        resumed.load_state_dict(state)
        assert all(torch.equal(value, state[key]) for key, value in resumed.state_dict().items())
        assert resumed.strength() == loss.strength() > 0


@pytest.mark.parametrize("case", golden("ccp_kcenter"), ids=case_name)
def test_greedy_k_center(case):
    params, pool = case.params, case.tensor("pool")
    k = params["proxies_per_class"]
    initial = case.tensor("initial")
    if params["normalize"]:
        pool, initial = functional.normalize(pool, dim=2), functional.normalize(initial, dim=2)
    picks, distances = greedy_k_center(pool, initial, k)
    np.testing.assert_array_equal(picks, case.arrays["selected_index"])
    case.check(distances, case.arrays["selected_sqdist"], "selected_sqdist")
    pool = case.tensor("pool")
    chosen = pool[torch.arange(len(pool))[:, None], picks]
    radius = torch.cdist(pool, chosen).amin(dim=2).amax(dim=1)
    np.testing.assert_allclose(radius, case.arrays["covering_radius"], rtol=1e-9, atol=1e-7)


def test_k_center_picks_duplicates_last_and_lowest_first():
    pool = torch.tensor([[[1.0], [1.0], [3.0], [3.0]]])
    picks, distances = greedy_k_center(pool, torch.zeros(1, 1, 1), 4)
    assert picks.tolist() == [[2, 0, 0, 0]]  # what is left has distance 0 to the chosen points: the lowest again
    assert distances.tolist() == [[9.0, 1.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="cannot choose 5 of 4"):
        greedy_k_center(pool, torch.zeros(1, 1, 1), 5)
