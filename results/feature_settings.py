"""Settings of an experiment whose trainings get features instead of images, and the settings that it cannot have."""

from typing import Any

from results.training_spec import ImageSettings
from results.trunk_spec import NO_TRUNK, TrunkSpec

FEATURES = "features"
"""Name of the dataset that is a file of features, without images and without a trunk."""

OWN_DATA = ("folder", FEATURES)
"""Names of the datasets that a user brings, which nobody published."""

AUGMENTATION = ("area", "ratio", "flip", "augmentation")
"""Settings of the crops for training. A frozen trunk gets the centre crop of each image, once."""


def samples_word(dataset: str) -> str:
    """Return what a dataset consists of, for people: rows, if it is a file of features, else images."""
    return "rows" if dataset == FEATURES else "images"


def with_no_trunk(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in the trunk of an experiment on features if its file names none.

    Args:
        values: The experiment, as read from its file.

    Returns:
        The same values, with the trunk `none` where the dataset has features and no images.
    """
    dataset = values.get("dataset")
    name = dataset.get("name") if isinstance(dataset, dict) else getattr(dataset, "name", None)
    if name != FEATURES or "trunk" in values:
        return values
    return {**values, "trunk": TrunkSpec(name=NO_TRUNK, weights=NO_TRUNK)}


def check_feature_settings(dataset: str, trunk: TrunkSpec, images: ImageSettings) -> None:
    """Refuse settings that have no effect on features, and a trunk for a dataset that has no images.

    Args:
        dataset: Name of the dataset.
        trunk: The trunk of the experiment.
        images: The transforms of the images.

    Raises:
        ValueError: A setting has no effect, or dataset and trunk do not fit.
    """
    if dataset == FEATURES:
        if trunk.model_copy(update={"width": None}) != TrunkSpec(name=NO_TRUNK, weights=NO_TRUNK):
            raise ValueError("dataset features has no images for a trunk; remove the key trunk")
        if images != ImageSettings():
            raise ValueError("dataset features has no images; remove the settings of images")
    elif trunk.name == NO_TRUNK:
        raise ValueError(f"trunk none is for dataset features; name a trunk for the images of {dataset}")
    elif trunk.width is not None:
        raise ValueError("trunk: width is set by the suite; remove it")
    if trunk.frozen:
        for key in AUGMENTATION:
            if getattr(images, key) != ImageSettings.model_fields[key].default:
                raise ValueError(
                    f"images: {key} has no effect on a frozen trunk, since there is no augmentation; remove it"
                )
