"""Losses that are given no arguments have those of their papers, which are typed by hand here."""

import inspect

import losses

# Cosines and weights as their papers print them; CCP's are those of its supplement, NIR's omega that of CUB200.
DEFAULTS: dict[str, dict[str, float]] = {
    "ProxyAnchorLoss": {"alpha": 32, "margin": 0.1},
    "ProxyISALoss": {"alpha": 32, "margin": 0.1, "V": 100, "k": 0.9, "lam": 0.1, "h": 0.15, "tau": 1.5},
    "ProxyGMLLoss": {"proxies_per_class": 12, "r": 0.05, "reg_weight": 0.3},
    "SoftTripleLoss": {"centers_per_class": 10, "la": 20, "gamma": 0.1, "margin": 0.01, "tau": 0.2},
    "NIRLoss": {"omega": 0.0075},
    "CCPLoss": {"lam": 2e-4, "w_sample": 0.1},
    "XBMLoss": {"start_iteration": 1000, "weight": 1},
    "HISTLoss": {"tau": 32, "alpha": 0.9, "lam": 1, "hidden": 512},
    "ContextualLoss": {"k": 4, "eps": 0.05, "gamma": 0.1, "reg_similarity": 0.3, "pos_margin": 0.75, "neg_margin": 0.6},
    "HierarchicalProxyLoss": {"coarse_weight": 0.1, "period": 1},
}


def test_defaults_are_those_of_the_papers() -> None:
    for name, expected in DEFAULTS.items():
        parameters = inspect.signature(getattr(losses, name)).parameters
        assert {key: parameters[key].default for key in expected} == expected, name
