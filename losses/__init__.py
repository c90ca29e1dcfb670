"""Losses of deep metric learning. They need torch and pytorch-metric-learning, and no other package of the suite."""

from .anti_collapse import AntiCollapseLoss, SampleAnchorLoss
from .ccp import CCPLoss
from .center_contrastive import CenterContrastiveLoss
from .contextual import ContextualLoss
from .coupling_flow import CouplingFlow
from .hist import HISTLoss
from .k_center import greedy_k_center
from .library_losses import (
    ArcFaceLoss,
    CosFaceLoss,
    HistogramLoss,
    NCALoss,
    P2SGradLoss,
    SubCenterArcFaceLoss,
    TupletMarginLoss,
)
from .mean_field import MeanFieldClassWiseMultiSimilarityLoss, MeanFieldContrastiveLoss
from .memory_queue import MemoryQueue
from .memvir import MemVirLoss
from .neural_collapse import NONLLoss, NTCELoss
from .nir import NIRLoss
from .pair_losses import CosineContrastiveLoss, MultiSimilarityMiner, NTXentLoss, SignalToNoiseRatioContrastiveLoss
from .plugin import Clock, Needs, TrainingContext, TrainingPlugin, version_of
from .potential_field import PotentialFieldLoss
from .proxy_an import ProxyANLoss
from .proxy_anchor import ProxyAnchorLoss
from .proxy_gml import ProxyGMLLoss
from .proxy_isa import ProxyISALoss
from .proxy_nca import ProxyNCALoss
from .recall_at_k import RecallAtKLoss
from .roadmap import RoadmapLoss
from .schedule import Schedule
from .smooth_ap import SmoothAPLoss
from .soft_triple import SoftTripleLoss
from .xbm import XBMLoss

__all__ = [
    "AntiCollapseLoss",
    "ArcFaceLoss",
    "CCPLoss",
    "CenterContrastiveLoss",
    "Clock",
    "ContextualLoss",
    "CosFaceLoss",
    "CosineContrastiveLoss",
    "CouplingFlow",
    "HISTLoss",
    "HistogramLoss",
    "MeanFieldClassWiseMultiSimilarityLoss",
    "MeanFieldContrastiveLoss",
    "MemVirLoss",
    "MemoryQueue",
    "MultiSimilarityMiner",
    "NCALoss",
    "NIRLoss",
    "NONLLoss",
    "NTCELoss",
    "NTXentLoss",
    "Needs",
    "P2SGradLoss",
    "PotentialFieldLoss",
    "ProxyANLoss",
    "ProxyAnchorLoss",
    "ProxyGMLLoss",
    "ProxyISALoss",
    "ProxyNCALoss",
    "RecallAtKLoss",
    "RoadmapLoss",
    "SampleAnchorLoss",
    "Schedule",
    "SignalToNoiseRatioContrastiveLoss",
    "SmoothAPLoss",
    "SoftTripleLoss",
    "SubCenterArcFaceLoss",
    "TrainingContext",
    "TrainingPlugin",
    "TupletMarginLoss",
    "XBMLoss",
    "greedy_k_center",
    "version_of",
]
