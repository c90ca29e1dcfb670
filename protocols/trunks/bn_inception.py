"""BN-Inception (Ioffe and Szegedy 2015), the trunk of the MLRC protocol and of the papers that follow it.

Keys and shapes are those of the ImageNet weights of the Python package pretrainedmodels. These weights came from Caffe.
So all layers have one flat level of names, convolutions before batch normalisation have a bias, and pooling rounds up.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from protocols.trunks.weights import WeightFile

BN_INCEPTION_FILE = WeightFile(
    "bn_inception",
    "http://data.lip6.fr/cadene/pretrainedmodels/bn_inception-52deb4733.pth",
    ("last_linear.",),
)


class _Block(NamedTuple):
    """Output channels of an inception block's convolutions.

    The 3x3 branches begin with a reduction. 0 means that there is no 1x1 convolution, or no projection after the pool;
    a block without both halves the feature map (stride 2).
    """

    name: str
    conv1x1: int
    conv3x3: tuple[int, int]
    double3x3: tuple[int, int, int]
    pool: str
    projection: int

    @property
    def stride(self) -> int:
        return 1 if self.conv1x1 else 2

    @property
    def outputs(self) -> int:
        """Channels of the convolution branches; without a projection the pooled input adds its own."""
        return self.conv1x1 + self.conv3x3[-1] + self.double3x3[-1] + self.projection


_BLOCKS = (
    _Block("3a", 64, (64, 64), (64, 96, 96), "average", 32),
    _Block("3b", 64, (64, 96), (64, 96, 96), "average", 64),
    _Block("3c", 0, (128, 160), (64, 96, 96), "max", 0),
    _Block("4a", 224, (64, 96), (96, 128, 128), "average", 128),
    _Block("4b", 192, (96, 128), (96, 128, 128), "average", 128),
    _Block("4c", 160, (128, 160), (128, 160, 160), "average", 128),
    _Block("4d", 96, (128, 192), (160, 192, 192), "average", 128),
    _Block("4e", 0, (128, 192), (192, 256, 256), "max", 0),
    _Block("5a", 352, (192, 320), (160, 224, 224), "average", 128),
    _Block("5b", 352, (192, 320), (192, 224, 224), "max", 128),
)


_Layer = Callable[[Tensor], Tensor]
"""A convolution with its batch norm and ReLU."""


def _in_turn(x: Tensor, layers: Mapping[str, _Layer], *names: str) -> Tensor:
    for name in names:
        x = layers[name](x)
    return x


def _halved(x: Tensor) -> Tensor:
    """Caffe's 3x3 max pooling with stride 2, which rounds up: (n, c, h, w) -> (n, c, ceil((h - 1) / 2), ...)."""
    return functional.max_pool2d(x, 3, 2, ceil_mode=True)


class BNInception(nn.Module):
    """The network up to its last feature map.

    It maps BGR images (n, 3, h, w), with pixels in 0..255 minus the mean, to features (n, 1024, h / 32, w / 32).

    Attributes:
        folds_norms: Whether batch norms with fixed statistics are multiplied into their convolutions' weights, anew in
            every forward. It is faster on a GPU, and equal up to rounding; the stored weights stay as they are.
    """

    features = 1024

    def __init__(self) -> None:
        super().__init__()
        self.folds_norms = False
        self._layers: list[str] = []
        self._add("conv1_7x7_s2", 3, 64, 7, 2)
        self._add("conv2_3x3_reduce", 64, 64, 1)
        self._add("conv2_3x3", 64, 192, 3)
        inputs = 192
        for block in _BLOCKS:
            self._add_block(block, inputs)
            inputs = block.outputs + (0 if block.projection else inputs)

    def _add(self, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        self.add_module(name, nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2))
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outputs))
        self._layers.append(name)

    def _add_block(self, block: _Block, inputs: int) -> None:
        name, stride = f"inception_{block.name}", block.stride
        if block.conv1x1:
            self._add(f"{name}_1x1", inputs, block.conv1x1, 1)
        reduced, outputs = block.conv3x3
        self._add(f"{name}_3x3_reduce", inputs, reduced, 1)
        self._add(f"{name}_3x3", reduced, outputs, 3, stride)
        reduced, middle, outputs = block.double3x3
        self._add(f"{name}_double_3x3_reduce", inputs, reduced, 1)
        self._add(f"{name}_double_3x3_1", reduced, middle, 3)
        self._add(f"{name}_double_3x3_2", middle, outputs, 3, stride)
        if block.projection:
            self._add(f"{name}_pool_proj", inputs, block.projection, 1)

    def _pair(self, name: str) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
        convolution, norm = self.get_submodule(name), self.get_submodule(f"{name}_bn")
        assert isinstance(convolution, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        return convolution, norm

    def _layer(self, name: str) -> _Layer:
        convolution, norm = self._pair(name)
        return lambda x: functional.relu(norm(convolution(x)))

    def _folded_layers(self) -> dict[str, _Layer]:
        norms = [self._pair(name)[1] for name in self._layers]
        sizes = [norm.num_features for norm in norms]
        # All norms at once: one by one they would be six small operations for every convolution.
        weight, bias, mean, variance = (
            torch.cat([getattr(norm, key) for norm in norms])
            for key in ("weight", "bias", "running_mean", "running_var")
        )
        scale = weight * torch.rsqrt(variance + norms[0].eps)
        scales, shifts = scale.split(sizes), (bias - mean * scale).split(sizes)
        return {name: self._folded(name, *norm) for name, *norm in zip(self._layers, scales, shifts, strict=True)}

    def _folded(self, name: str, scale: Tensor, shift: Tensor) -> _Layer:
        convolution, _ = self._pair(name)
        assert convolution.bias is not None
        weight = convolution.weight * scale[:, None, None, None]
        bias = torch.addcmul(shift, convolution.bias, scale)
        stride, padding = convolution.stride, convolution.padding
        return lambda x: functional.relu(functional.conv2d(x, weight, bias, stride, padding))

    def _apply_block(self, block: _Block, x: Tensor, layers: Mapping[str, _Layer]) -> Tensor:
        name = f"inception_{block.name}"
        branches = [_in_turn(x, layers, f"{name}_1x1")] if block.conv1x1 else []
        branches.append(_in_turn(x, layers, f"{name}_3x3_reduce", f"{name}_3x3"))
        double = f"{name}_double_3x3"
        branches.append(_in_turn(x, layers, f"{double}_reduce", f"{double}_1", f"{double}_2"))
        if block.stride == 2:
            pooled = _halved(x)
        elif block.pool == "max":
            pooled = functional.max_pool2d(x, 3, 1, 1)
        else:
            # The zeros of the padding count in the average, as in Caffe and in pretrainedmodels.
            pooled = functional.avg_pool2d(x, 3, 1, 1, count_include_pad=True)
        branches.append(_in_turn(pooled, layers, f"{name}_pool_proj") if block.projection else pooled)
        return torch.cat(branches, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map of images; it is 7x7 for images of 224 and of 227 pixels."""
        folds = self.folds_norms and not self._pair(self._layers[0])[1].training
        layers = self._folded_layers() if folds else {name: self._layer(name) for name in self._layers}
        x = _halved(_in_turn(images, layers, "conv1_7x7_s2"))
        x = _halved(_in_turn(x, layers, "conv2_3x3_reduce", "conv2_3x3"))
        for block in _BLOCKS:
            x = self._apply_block(block, x, layers)
        return x
