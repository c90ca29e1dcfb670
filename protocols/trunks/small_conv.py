"""A small convolutional network for training from scratch on `glyphs`."""

from torch import Tensor, nn


class SmallConv(nn.Module):
    """Four 3x3 convolutions with stride 2: images (n, c, h, w) to features (n, 128, h / 16, w / 16), rounded up.

    The network has group normalisation instead of batch normalisation. MLRC freezes the running statistics of batch
    normalisation; without pretraining they would normalise nothing.

    Args:
        channels: Channels c of the images.
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
