"""ArcFace and CosFace of pytorch-metric-learning, in full precision."""

from pytorch_metric_learning import losses as pml_losses

from .checks import FullPrecisionForward


class ArcFaceLoss(FullPrecisionForward, pml_losses.ArcFaceLoss):
    """Softmax over classes, with a margin added to the angle between a sample and its own class.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in degrees; default 28.6.
        scale: of the cosines; default 64.
        **kwargs: those of pytorch-metric-learning's class.

    Source: Deng et al., ArcFace, CVPR 2019; pytorch-metric-learning's class.
    """


class CosFaceLoss(FullPrecisionForward, pml_losses.CosFaceLoss):
    """Softmax over classes, with a margin subtracted from the cosine between a sample and its own class.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: in cosine units; default 0.35.
        scale: of the cosines; default 64.
        **kwargs: those of pytorch-metric-learning's class.

    Source: Wang et al., CosFace, CVPR 2018; pytorch-metric-learning's class.
    """
