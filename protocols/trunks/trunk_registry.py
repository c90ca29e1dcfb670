"""The trunks by name, with their input formats and ImageNet weights."""

from functools import partial
from pathlib import Path

from torch import Tensor, nn

from protocols.trunks.bn_inception import BN_INCEPTION_FILE, BNInception
from protocols.trunks.efficientnet_lite import EfficientNetLite, imagenet_weights
from protocols.trunks.outside_trunks import (
    GOOGLENET_FILE,
    IMAGENET_FORMAT,
    RESNET50_FILE,
    RESNET101_FILE,
    file_entry,
    timm_entry,
    torchvision_trunk,
    try_trunk,
)
from protocols.trunks.trunk_entry import (
    IMAGENET,
    RANDOM,
    TrunkEntry,
    TrunkError,
    identified,
    identify_weights,
    is_identified,
    is_path,
    names_own_file,
    use_weights,
)
from protocols.users_code.sources import SourceError, hashed_name
from results.spec.component import SourceName
from results.spec.trunk_spec import NO_TRUNK, PRETRAINED, InputFormat, TrunkSpec

# torchvision's GoogLeNet converts inputs from ImageNet's format to this one (`transform_input`).
_CENTRED_FORMAT = InputFormat(channels="RGB", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))

# Blue, green, red, of pixels in 0..255 (specification, section 3).
_CAFFE_FORMAT = InputFormat(channels="BGR", mean=(104.0, 117.0, 128.0), std=(1.0, 1.0, 1.0), scale=255.0)


class SmallConv(nn.Module):
    """A small network for training from scratch on `glyphs`: four 3x3 convolutions with stride 2.

    It maps images (n, c, h, w) to features (n, 128, h / 16, w / 16), rounded up. The network has group normalisation
    instead of batch normalisation. MLRC freezes the running statistics of batch normalisation; without pretraining they
    would normalise nothing.
    """

    features = 128

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        widths = (16, 32, 64, self.features)
        layers: list[nn.Module] = []
        for before, after in zip((channels, *widths), widths, strict=False):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(8, after), nn.ReLU(inplace=True)]
        self.stages = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map of normalised images (n, channels, height, width)."""
        features: Tensor = self.stages(images)
        return features


TRUNKS = {
    "small_conv": TrunkEntry(
        SmallConv, InputFormat(channels="grey", mean=(0.5,), std=(0.5,)), channels_last_on_cpu=False
    ),
    "efficientnet_lite0": TrunkEntry(EfficientNetLite, IMAGENET_FORMAT, packaged=partial(imagenet_weights, "0")),
    "efficientnet_lite2": TrunkEntry(
        partial(EfficientNetLite, width=1.1, depth=1.2, side=260),
        IMAGENET_FORMAT,
        packaged=partial(imagenet_weights, "2"),
    ),
    "bn_inception": TrunkEntry(BNInception, _CAFFE_FORMAT, file=BN_INCEPTION_FILE),
    "googlenet": TrunkEntry(partial(torchvision_trunk, "googlenet"), _CENTRED_FORMAT, file=GOOGLENET_FILE),
    "resnet50": TrunkEntry(partial(torchvision_trunk, "resnet50"), IMAGENET_FORMAT, file=RESNET50_FILE),
    "resnet101": TrunkEntry(partial(torchvision_trunk, "resnet101"), IMAGENET_FORMAT, file=RESNET101_FILE),
}

_TIMM = "timm:"


def trunk_entry(spec: TrunkSpec) -> TrunkEntry:
    """Look up a trunk."""
    entry = _entry_of(spec.name)
    if not entry.accepts(spec.weights):
        raise TrunkError(f"trunk {spec.name}: no weights {spec.weights!r}; known are {', '.join(entry.weights)}")
    chosen = spec.input_format
    if chosen is not None and chosen.n_channels != entry.input.n_channels:
        raise TrunkError(
            f"trunk {spec.name} takes {entry.input.channels} images; its input_format has {chosen.channels}"
        )
    return entry


def _entry_of(name: str) -> TrunkEntry:
    if name in TRUNKS:
        return TRUNKS[name]
    if name.startswith(_TIMM):
        return timm_entry(name.removeprefix(_TIMM))
    if SourceName.parse(name):
        return file_entry(_with_hash(name))
    raise TrunkError(
        f"unknown trunk {name!r}; known are {', '.join(sorted(TRUNKS))}, timm:MODEL, and functions of your own such "
        "as ./my_trunk.py:build"
    )


def _with_hash(name: str) -> str:
    try:
        return hashed_name(name, try_trunk)
    except SourceError as error:
        raise TrunkError(f"trunk {name}: {error}") from error


def identified_trunk(spec: TrunkSpec, weights: Path | None = None) -> TrunkSpec:
    """Check the weights of a trunk, and download them if they are missing. Call this before any training.

    Trainings only read the weights, so an error about missing or wrong weights comes before any work.
    """
    if spec.name == NO_TRUNK:
        if weights is not None:
            raise TrunkError(f"--weights {weights}: features have no trunk; leave out --weights")
        return spec
    entry = trunk_entry(spec)
    if entry.outside and not spec.name.startswith(_TIMM):
        spec = spec.model_copy(update={"name": _with_hash(spec.name)})
    if weights is None and is_path(spec.weights):
        weights, spec = Path(spec.weights), spec.model_copy(update={"weights": IMAGENET})
    file = entry.file
    if weights is not None:
        if file is None or spec.weights == RANDOM:
            raise TrunkError(
                f"--weights {weights}: trunk {spec.name} with {spec.weights} weights reads no file; leave out --weights"
            )
        use_weights(weights)
    if entry.packaged and spec.weights == IMAGENET:
        entry.packaged()
    outline = entry.outline()
    if weights is None and entry.pretrained and spec.weights == PRETRAINED:
        return spec.model_copy(update={"weights": identified(entry.pretrained())})
    if file is None or spec.weights == RANDOM or is_identified(spec.weights):
        return spec
    wanted = spec.weights if names_own_file(spec.weights) else IMAGENET
    return spec.model_copy(update={"weights": identify_weights(file, wanted, outline)})
