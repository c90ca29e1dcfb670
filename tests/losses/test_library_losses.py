"""The library's losses that are written again here: units of angles, outliers, and what validation leaves alone."""

import math
import warnings

import pytest
import torch
from torch.nn import functional

from losses import ArcFaceLoss, P2SGradLoss, SubCenterArcFaceLoss

CLASSES, SIZE = 4, 6


@pytest.mark.parametrize("loss_class", [ArcFaceLoss, SubCenterArcFaceLoss])
def test_a_margin_is_in_degrees_or_in_radians_and_one_in_the_wrong_unit_is_told(loss_class):
    x, labels = torch.randn(8, SIZE, generator=torch.Generator().manual_seed(0)), torch.arange(8) % CLASSES

    def value(**margin):
        torch.manual_seed(0)
        return loss_class(CLASSES, SIZE, **margin)(x, labels)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value(margin=30.0) == value(margin_radians=math.radians(30))
        assert value(margin=0.0) != value()
    with pytest.warns(UserWarning, match=r"margin=0.5 is in degrees.* is margin_radians=0.5"):
        value(margin=0.5)
    with pytest.raises(ValueError, match=r"margin_radians=28.6 can only be degrees; give it as margin=28.6"):
        value(margin_radians=28.6)
    with pytest.raises(ValueError, match=r"give margin=30.0, in degrees, or margin_radians=0.5, not both"):
        value(margin=30.0, margin_radians=0.5)


def test_outliers_are_far_from_the_vector_to_which_most_of_their_class_are_nearest():
    loss = SubCenterArcFaceLoss(2, SIZE, sub_centers=2)
    loss.W.data = torch.eye(SIZE)[:, :4]
    near = functional.normalize(torch.eye(SIZE) + 0.1)
    # Class 0 lies at its second vector, but for one image at its first. Class 1 has one image, between two vectors.
    x, labels = near[[1, 1, 0, 1, 2]], torch.tensor([0, 0, 0, 0, 1])
    rows, centers = loss.get_outliers(5 * x, labels)
    assert rows.tolist() == [2]
    assert torch.equal(centers, torch.eye(SIZE)[:, [1, 2]])
    assert loss.get_outliers(x, labels, threshold_degrees=5)[0].tolist() == [0, 1, 2, 3, 4]
    assert loss.get_outliers(x, labels, 95)[0].tolist() == []


def test_only_a_step_of_training_brings_the_vectors_of_p2sgrad_to_length_one():
    loss = P2SGradLoss(SIZE, CLASSES)
    x, labels = torch.randn(8, SIZE), torch.arange(8) % CLASSES
    loss.weight.data *= 3
    with torch.no_grad():
        loss(x, labels)
    loss.eval()(x, labels)
    assert torch.equal(loss.weight.norm(dim=0).round(), torch.full((CLASSES,), 3.0))
    loss.train()(x, labels)
    torch.testing.assert_close(loss.weight.norm(dim=0), torch.ones(CLASSES))
