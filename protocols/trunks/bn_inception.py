"""BN-Inception (Ioffe and Szegedy 2015), the trunk of the MLRC protocol and of the papers that follow it.

Keys and shapes are those of the ImageNet weights of the Python package pretrainedmodels. These weights came from Caffe.
So all layers have one flat level of names, convolutions before batch normalisation have a bias, and pooling rounds up.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from protocols.trunks.trunk_entry import WeightFile

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
    def averages(self) -> bool:
        """Whether the pool before the projection is an average."""
        return self.projection > 0 and self.pool == "average"

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
    weights_per_channel: Tensor

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
        weights: Any = [self.get_submodule(name).weight for group in _MERGED for name in group]
        per_channel = [torch.full(weight.shape[:1], weight[0].numel()) for weight in weights]
        self.register_buffer("weights_per_channel", torch.cat(per_channel), persistent=False)

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
    """Convolutions of one map as one: weight and bias with their batch norms in them, output channels of each."""

    weight: Tensor
    bias: Tensor
    channels: list[int]


def _first_layers(block: _Block) -> list[str]:
    """The 1x1 convolutions that read a block's input; the projection of an average pool is the last of them."""
    kinds = [*["1x1"] * bool(block.conv1x1), "3x3_reduce", "double_3x3_reduce"]
    return [f"inception_{block.name}_{kind}" for kind in (*kinds, *["pool_proj"] * block.averages)]


def _merged() -> list[list[str]]:
    """All convolutions in the order of their weights in one tensor, those together that are computed together."""
    groups = [["conv1_7x7_s2"], ["conv2_3x3_reduce"], ["conv2_3x3"]]
    for block in _BLOCKS:
        kinds = ["3x3", "double_3x3_1", "double_3x3_2", *["pool_proj"] * (block.projection > 0 and not block.averages)]
        groups += [_first_layers(block), *([f"inception_{block.name}_{kind}"] for kind in kinds)]
    return groups


_MERGED = _merged()
_Pair = tuple[int, int]


def merged_layers(network: BNInception, images: Tensor) -> Tensor:
    """Compute what a network with fixed batch norms computes, up to rounding, in fewer and smaller operations.

    - Batch norms are multiplied into the weights of their convolutions, anew each time, since these are trained. The
      weights of all layers are one tensor for that: one by one they would be ten small operations for each.
    - The 1x1 convolutions of a block that read the same map are one convolution.
    - An average pool comes behind its projection, which leaves fewer channels. Both are linear.
    """
    folded = _folded_layers(network, _convolution_type(images))

    def layer(name: str, x: Tensor) -> Tensor:
        convolution: Any = network.get_submodule(name)
        weight, bias, _ = folded[name]
        if x.is_cuda:
            rectify: Any = _ConvolutionRelu.apply
            rectified: Tensor = rectify(x, weight, bias, convolution.stride, convolution.padding)
            return rectified
        return functional.relu(functional.conv2d(x, weight, bias, convolution.stride, convolution.padding))

    x = _halved(layer("conv1_7x7_s2", images))
    x = _halved(layer("conv2_3x3", layer("conv2_3x3_reduce", x)))
    for block in _BLOCKS:
        x = _merged_block(block, x, folded[_first_layers(block)[0]], layer)
    return x


def _convolution_type(images: Tensor) -> torch.dtype:
    kind = images.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else images.dtype


def _folded_layers(network: BNInception, kind: torch.dtype) -> dict[str, _Folded]:
    """The convolutions with their batch norms in them, those together that are computed together, by the first name."""
    names = [name for group in _MERGED for name in group]
    convolutions: Any = [network.get_submodule(name) for name in names]
    norms: Any = [network.get_submodule(f"{name}_bn") for name in names]
    scales, biases = _scales_and_biases(convolutions, norms)
    # The channels last, as on a GPU, where nothing is copied then.
    kernels = [layer.weight.permute(0, 2, 3, 1) for layer in convolutions]
    scale: Any = _Scaled.apply
    weights = scale(torch.cat([kernel.flatten() for kernel in kernels]), scales, network.weights_per_channel)
    shapes = {name: kernel.shape for name, kernel in zip(names, kernels, strict=True)}
    channels = [[shapes[name][0] for name in group] for group in _MERGED]
    sizes = [sum(shapes[name].numel() for name in group) for group in _MERGED]
    weights_of = weights.to(kind).split(sizes)
    biases_of = biases.to(kind).split([sum(outputs) for outputs in channels])
    folded = {}
    for (first, *_), weight, bias, outputs in zip(_MERGED, weights_of, biases_of, channels, strict=True):
        folded[first] = _Folded(weight.view(-1, *shapes[first][1:]).permute(0, 3, 1, 2), bias, outputs)
    return folded


def _scales_and_biases(convolutions: Any, norms: Any) -> tuple[Tensor, Tensor]:
    """What fixed batch norms multiply each output channel of their convolutions by, and what they leave to add."""
    gains, shifts = torch.cat([norm.weight for norm in norms]), torch.cat([norm.bias for norm in norms])
    means = torch.cat([norm.running_mean for norm in norms])
    variances = torch.cat([norm.running_var for norm in norms])
    scales = gains * torch.rsqrt(variances + norms[0].eps)
    biases = torch.cat([layer.bias for layer in convolutions])
    return scales, torch.addcmul(shifts - means * scales, biases, scales)


class _ConvolutionRelu(torch.autograd.Function):
    """A convolution with bias and ReLU in one kernel of cuDNN, which torch has without a gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: _Pair, padding: _Pair) -> Tensor:
        x = x.to(weight.dtype)
        output: Tensor = torch.cudnn_convolution_relu(x, weight, bias, stride, padding, (1, 1), 1)
        context.save_for_backward(x, weight, output)
        context.stride, context.padding = stride, padding
        return output

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None, None]:
        x, weight, output = context.saved_tensors
        gradient = torch.ops.aten.threshold_backward(gradient, output, 0)
        sizes, wanted = [len(weight)], [context.needs_input_grad[0], True, True]
        how = (context.stride, context.padding, (1, 1), False, (0, 0), 1, wanted)
        of_x, of_weight, of_bias = torch.ops.aten.convolution_backward(gradient, x, weight, sizes, *how)
        return of_x, of_weight, of_bias, None, None


class _Scaled(torch.autograd.Function):
    """Weights times the scales of their output channels; torch's own gradient of the scales would sort all weights."""

    @staticmethod
    def forward(context: Any, weights: Tensor, scales: Tensor, per_channel: Tensor) -> Tensor:
        each = scales.repeat_interleave(per_channel, output_size=len(weights))
        context.save_for_backward(weights, each, per_channel)
        return weights * each

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        weights, each, per_channel = context.saved_tensors
        of_scales = None
        if context.needs_input_grad[1]:
            of_scales = torch.segment_reduce(gradient * weights, "sum", lengths=per_channel, unsafe=True)
        return gradient * each, of_scales, None


def _merged_block(block: _Block, x: Tensor, first: _Folded, layer: Callable[[str, Tensor], Tensor]) -> Tensor:
    name = f"inception_{block.name}"
    behind = first.channels[-1] if block.averages else 0
    bias, bias_behind = first.bias.split([sum(first.channels) - behind, behind])
    maps = functional.conv2d(x, first.weight, functional.pad(bias, (0, behind)))
    parts = maps.split(first.channels, dim=1)
    if block.averages:
        pooled = functional.avg_pool2d(parts[-1], 3, 1, 1, count_include_pad=True)
        pooled, parts = functional.relu(pooled + bias_behind[:, None, None]), parts[:-1]
    else:
        pooled = _halved(x) if block.stride == 2 else layer(f"{name}_pool_proj", functional.max_pool2d(x, 3, 1, 1))
    *one, reduced, double = (functional.relu(part) for part in parts)
    double = layer(f"{name}_double_3x3_2", layer(f"{name}_double_3x3_1", double))
    return torch.cat([*one, layer(f"{name}_3x3", reduced), double, pooled], 1)
