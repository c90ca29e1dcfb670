"""BN-Inception (Ioffe and Szegedy 2015), the trunk of the MLRC protocol and of the papers that follow it.

Keys and shapes are those of the ImageNet weights of the Python package pretrainedmodels. These weights came from Caffe.
So all layers have one flat level of names, convolutions before batch normalisation have a bias, and pooling rounds up.
"""

from collections.abc import Mapping
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


def _halved(x: Tensor) -> Tensor:
    """Caffe's 3x3 max pooling with stride 2, which rounds up: (n, c, h, w) -> (n, c, ceil((h - 1) / 2), ...)."""
    return functional.max_pool2d(x, 3, 2, ceil_mode=True)


class BNInception(nn.Module):
    """The network up to its last feature map.

    It maps BGR images (n, 3, h, w), with pixels in 0..255 minus the mean, to features (n, 1024, h / 32, w / 32).

    Attributes:
        merges_layers: Whether layers with fixed batch norms are computed by `merged_layers`, which is faster on a GPU.
    """

    features = 1024

    def __init__(self) -> None:
        super().__init__()
        self.merges_layers = False
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

    def _apply_layers(self, x: Tensor, *names: str) -> Tensor:
        for name in names:
            x = functional.relu(self.get_submodule(f"{name}_bn")(self.get_submodule(name)(x)))
        return x

    def _apply_block(self, block: _Block, x: Tensor) -> Tensor:
        name = f"inception_{block.name}"
        branches = [self._apply_layers(x, f"{name}_1x1")] if block.conv1x1 else []
        branches.append(self._apply_layers(x, f"{name}_3x3_reduce", f"{name}_3x3"))
        double = f"{name}_double_3x3"
        branches.append(self._apply_layers(x, f"{double}_reduce", f"{double}_1", f"{double}_2"))
        if block.stride == 2:
            pooled = _halved(x)
        elif block.pool == "max":
            pooled = functional.max_pool2d(x, 3, 1, 1)
        else:
            # The zeros of the padding count in the average, as in Caffe and in pretrainedmodels.
            pooled = functional.avg_pool2d(x, 3, 1, 1, count_include_pad=True)
        branches.append(self._apply_layers(pooled, f"{name}_pool_proj") if block.projection else pooled)
        return torch.cat(branches, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map of images; it is 7x7 for images of 224 and of 227 pixels."""
        if self.merges_layers and not self.get_submodule("conv1_7x7_s2_bn").training:
            return merged_layers(self, images)
        x = _halved(self._apply_layers(images, "conv1_7x7_s2"))
        x = _halved(self._apply_layers(x, "conv2_3x3_reduce", "conv2_3x3"))
        for block in _BLOCKS:
            x = self._apply_block(block, x)
        return x


class _Folded(NamedTuple):
    """A convolution's weight and bias with its batch norm in them."""

    weight: Tensor
    bias: Tensor
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]

    def __call__(self, x: Tensor) -> Tensor:
        return functional.relu(functional.conv2d(x, self.weight, self.bias, self.stride, self.padding))


def merged_layers(network: BNInception, images: Tensor) -> Tensor:
    """Compute what a network with fixed batch norms computes, up to rounding, in fewer and smaller operations.

    - Batch norms are multiplied into the weights of their convolutions, anew each time, since these are trained.
    - The 1x1 convolutions of a block that read the same map are one convolution.
    - An average pool comes behind its projection, which leaves fewer channels. Both are linear.
    """
    layers = _folded_layers(network)
    x = _halved(layers["conv1_7x7_s2"](images))
    x = _halved(layers["conv2_3x3"](layers["conv2_3x3_reduce"](x)))
    for block in _BLOCKS:
        x = _merged_block(block, x, layers)
    return x


def _folded_layers(network: BNInception) -> dict[str, _Folded]:
    convolutions = {name: layer for name, layer in network.named_children() if isinstance(layer, nn.Conv2d)}
    norms = [layer for layer in network.children() if isinstance(layer, nn.BatchNorm2d)]
    # All norms at once: one by one they would be six small operations for every convolution.
    weights, biases, means, variances = (
        torch.cat([getattr(norm, key) for norm in norms]) for key in ("weight", "bias", "running_mean", "running_var")
    )
    scales = weights * torch.rsqrt(variances + norms[0].eps)
    sizes = [norm.num_features for norm in norms]
    parts = zip(convolutions.items(), scales.split(sizes), (biases - means * scales).split(sizes), strict=True)
    folded = {}
    for (name, layer), scale, shift in parts:
        assert layer.bias is not None
        weight, bias = layer.weight * scale[:, None, None, None], torch.addcmul(shift, layer.bias, scale)
        folded[name] = _Folded(weight, bias, layer.stride, layer.padding)
    return folded


def _merged_block(block: _Block, x: Tensor, layers: Mapping[str, _Folded]) -> Tensor:
    name = f"inception_{block.name}"
    kinds = [*["1x1"] * bool(block.conv1x1), "3x3_reduce", "double_3x3_reduce"]
    averages = block.stride == 1 and block.pool == "average"
    first = [layers[f"{name}_{kind}"] for kind in (*kinds, *["pool_proj"] * averages)]
    biases = [layer.bias for layer in first]
    if averages:
        biases[-1] = torch.zeros_like(biases[-1])
    maps = functional.conv2d(x, torch.cat([layer.weight for layer in first]), torch.cat(biases))
    parts = maps.split([len(layer.bias) for layer in first], dim=1)
    if averages:
        pooled = functional.avg_pool2d(parts[-1], 3, 1, 1, count_include_pad=True)
        pooled = functional.relu(pooled + first[-1].bias.to(pooled.dtype)[:, None, None])
    else:
        pooled = _halved(x) if block.stride == 2 else layers[f"{name}_pool_proj"](functional.max_pool2d(x, 3, 1, 1))
    *one, reduced, double = (functional.relu(part) for part in parts[: len(kinds)])
    double = layers[f"{name}_double_3x3_2"](layers[f"{name}_double_3x3_1"](double))
    return torch.cat([*one, layers[f"{name}_3x3"](reduced), double, pooled], 1)
