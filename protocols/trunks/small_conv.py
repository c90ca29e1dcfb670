"""A small convolutional net, trained from scratch on `glyphs`."""

from torch import Tensor, nn


class SmallConv(nn.Module):
    """Four stages of 3x3 convolutions that halve the image: (n, c, h, w) -> (n, 128, h / 16, w / 16), rounded up.

    Group instead of batch normalisation: with MLRC's frozen running statistics a trunk without pretraining would have
    no normalisation at all.
    """

    features = 128

    def __init__(self, channels: int = 1) -> None:
        super().__init__()
        widths = (16, 32, 64, self.features)
        layers: list[nn.Module] = []
        for before, after in zip((channels, *widths), widths, strict=False):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(8, after), nn.ReLU()]
        self.stages = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """The last feature map of normalised images (n, channels, height, width)."""
        features: Tensor = self.stages(images)
        return features
