"""The figures of NIR's Table 3 against image-by-image references, SciPy, and one another as the table has them."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import entropy

from protocols.metrics import structure
from protocols.metrics.retrieval import normalized
from protocols.metrics.structure import class_concentration_variance, density, spectral_decay, uniformity

many = settings(deadline=None, max_examples=60)
shapes = given(n=st.integers(2, 40), d=st.integers(2, 6), classes=st.integers(2, 12), seed=st.integers(0, 10**6))


def _sample(n, d, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    embeddings = normalized(torch.randn(n, d, generator=generator, dtype=torch.float64))
    return embeddings, 3 * torch.randint(0, classes, (n,), generator=generator)


def _grouped(embeddings, labels):
    return [embeddings[labels == label].numpy() for label in labels.unique()]


def _cosine(one, other):
    return 1 - float(one @ other) / float(np.linalg.norm(one) * np.linalg.norm(other))


def _between(groups):
    centres = [group.mean(0) for group in groups]
    return float(np.mean([_cosine(one, other) for one, other in itertools.combinations(centres, 2)]))


@many
@shapes
def test_density_agrees_with_its_definition(n, d, classes, seed):
    embeddings, labels = _sample(n, d, classes, seed)
    groups = _grouped(embeddings, labels)
    several = [group for group in groups if len(group) > 1]
    assume(len(groups) > 1 and several)
    within = np.mean([np.mean([_cosine(a, b) for a, b in itertools.combinations(group, 2)]) for group in several])
    assert density(embeddings, labels) == pytest.approx(within / _between(groups), rel=1e-9)
    # Cosine distances: the length of embeddings plays no part.
    longer = embeddings * torch.linspace(0.5, 3, n, dtype=torch.float64)[:, None]
    assert density(longer, labels) == pytest.approx(within / _between(groups), rel=1e-9)


@many
@shapes
def test_concentration_agrees_with_its_definition(n, d, classes, seed):
    embeddings, labels = _sample(n, d, classes, seed)
    groups = _grouped(embeddings, labels)
    assume(len(groups) > 1)
    spread = np.mean([np.mean([_cosine(image, group.mean(0)) for image in group]) for group in groups])
    found = class_concentration_variance(embeddings, labels) * _between(groups)
    assert found == pytest.approx(spread, rel=1e-9, abs=1e-12)  # Between near centres a quotient is rounding.


@many
@shapes
def test_uniformity_agrees_with_scipy(n, d, classes, seed):
    embeddings, _ = _sample(n, d, classes, seed)
    expected = np.exp(-2 * pdist(embeddings.numpy(), "sqeuclidean")).mean()
    assert uniformity(embeddings) == pytest.approx(expected, rel=1e-9)
    assert uniformity(embeddings.float()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("elements", [1, 41, 42, 20 * 41, 10**6])
def test_chunks_of_pairs_do_not_matter(monkeypatch, elements):
    embeddings, _ = _sample(41, 4, 5, 0)
    whole = uniformity(embeddings)
    monkeypatch.setattr(structure, "PAIR_ELEMENTS", elements)
    assert uniformity(embeddings) == pytest.approx(whole, rel=1e-12)


@many
@shapes
def test_spectral_decay_agrees_with_scipy(n, d, classes, seed):
    embeddings, _ = _sample(n, d, classes, seed)
    spectrum = np.linalg.svd(embeddings.numpy(), compute_uv=False)
    assume(spectrum[-1] > 1e-6 * spectrum[0])
    flat = np.ones(min(n, d)) / min(n, d)
    expected = entropy(flat, spectrum / spectrum.sum())
    assert spectral_decay(embeddings) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert expected == pytest.approx(spectral_decay(3 * embeddings), rel=1e-9, abs=1e-12)


def test_a_flat_spectrum_has_no_decay_and_a_missing_direction_a_finite_one():
    assert spectral_decay(torch.eye(5)) == pytest.approx(0, abs=1e-7)
    assert spectral_decay(torch.zeros(5, 3)) == pytest.approx(0, abs=1e-7)
    missing = torch.eye(5)[:4]
    missing[3] = missing[2]
    eps = np.finfo(np.float32).eps
    spectrum = np.array([np.sqrt(2), 1, 1, np.sqrt(2) * eps])
    assert spectral_decay(missing) == pytest.approx(entropy(np.ones(4) / 4, spectrum / spectrum.sum()), rel=1e-5)


def test_collapsed_classes_have_no_density():
    embeddings, labels = torch.eye(3).repeat_interleave(4, dim=0), torch.arange(3).repeat_interleave(4)
    assert density(embeddings, labels) == pytest.approx(0, abs=1e-12)
    assert class_concentration_variance(embeddings, labels) == pytest.approx(0, abs=1e-12)
    assert uniformity(torch.ones(4, 1)) == 1


def test_what_cannot_be_computed_is_refused():
    one_class = torch.zeros(4, dtype=torch.int64)
    for metric in (density, class_concentration_variance):
        with pytest.raises(ValueError, match="two classes"):
            metric(torch.eye(4), one_class)
        with pytest.raises(ValueError, match="not finite"):
            metric(torch.full((4, 2), torch.nan), torch.arange(4))
    for figure in (uniformity, spectral_decay):
        with pytest.raises(ValueError, match="not finite"):
            figure(torch.full((4, 2), torch.inf))
