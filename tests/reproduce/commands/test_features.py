"""`reproduce features extract`; tests/end_to_end/test_round_trips.py reads what it writes."""

import shutil

import numpy as np
import pytest
import torch

from protocols.trunks.trunk_registry import trunk_entry
from results.spec.trunk_spec import TrunkSpec
from tests.support.image_folders import make_folder


def extract(say, trunk, *options):
    common = ("--data", "images", "--to", "features", "--device", "cpu", "--cache", "cache")
    return say("features", "extract", "--trunk", trunk, *common, *options)


def test_features_of_a_folder_are_kept_in_the_cache(say, tmp_path):
    make_folder(tmp_path / "images", classes=9)
    options = ("--resize", "32", "--crop", "32")
    answer = extract(say, "efficientnet_lite0", *options).done()
    assert "features: 18 rows of 1280 features, 9 classes, from efficientnet_lite0" in " ".join(answer.out.split())
    before = np.load(tmp_path / "features" / "features.npy")
    again = extract(say, "efficientnet_lite0", *options)
    assert (again.code, "--to features: the folder is not empty; give a new folder" in again.err) == (2, True)
    shutil.rmtree(tmp_path / "features")
    assert extract(say, "efficientnet_lite0", *options).code == 0
    assert np.array_equal(np.load(tmp_path / "features" / "features.npy"), before)


def test_what_cannot_be_is_refused_in_one_line(say, tmp_path):
    make_folder(tmp_path / "images")
    assert "--crop 224 is larger than --resize 32" in extract(say, "efficientnet_lite0", "--resize", "32").err
    assert (
        "no such folder" in say("features", "extract", "--trunk", "efficientnet_lite0", "--data", "no", "--to", "f").err
    )


def test_a_name_alone_is_one_of_timm(say, tmp_path):
    pytest.importorskip("timm")
    make_folder(tmp_path / "images")
    torch.save(trunk_entry(TrunkSpec(name="timm:test_vit", weights="random")).build().state_dict(), "vit.pth")
    answer = extract(say, "test_vit", "--weights", "vit.pth", "--resize", "160", "--crop", "160").done()
    assert "from timm:test_vit" in " ".join(answer.out.split())
