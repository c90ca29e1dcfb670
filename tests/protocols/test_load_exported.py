"""A loaded model gives the embeddings of the training's own model, with the settings of its trunk."""

import json
from pathlib import Path

import torch

from protocols.load_exported import load_exported_model
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import trained_model
from results.spec.trunk_spec import InputFormat, TrunkSpec
from tests.support.toys import pattern_dataset, toy_fold


def test_a_loaded_model_has_the_input_format_of_its_training(tmp_path: Path) -> None:
    chosen = InputFormat(channels="grey", mean=(0.1,), std=(0.3,), scale=2)
    trunk = TrunkSpec(name="small_conv", weights="random", input_format=chosen)
    spec, data = toy_fold(pattern_dataset(tmp_path), trunk=trunk)
    weights = train_fold(spec, data).weights
    description = {"spec": spec.model_dump(mode="json"), "normalization": "unit"}
    (tmp_path / "model.json").write_text(json.dumps(description))
    torch.save(weights, tmp_path / "model.pt")
    images = torch.randint(0, 256, (3, 3, 8, 8), dtype=torch.uint8)
    loaded = load_exported_model(tmp_path).model
    in_other_format = trained_model(
        spec.model_copy(update={"trunk": trunk.model_copy(update={"input_format": None})}), weights, torch.device("cpu")
    )
    with torch.no_grad():
        assert torch.equal(loaded(images), trained_model(spec, weights, torch.device("cpu"))(images))
        assert not torch.allclose(loaded(images), in_other_format(images))
