"""Losses of deep metric learning. They need torch and pytorch-metric-learning, and no other package of the suite."""

from losses.angular_margins import ArcFaceLoss, CosFaceLoss
from losses.ccp import CCPLoss
from losses.coupling_flow import CouplingFlow
from losses.hierarchical_proxy import HierarchicalProxyLoss
from losses.k_center import greedy_k_center
from losses.meaning import meaning_of
from losses.memory_queue import MemoryQueue
from losses.nir import NIRLoss
from losses.pair_losses import CosineContrastiveLoss, SignalToNoiseRatioContrastiveLoss
from losses.plugin import Clock, Needs, TrainingContext, TrainingPlugin
from losses.proxy_anchor import ProxyAnchorLoss
from losses.proxy_gml import ProxyGMLLoss
from losses.proxy_isa import ProxyISALoss
from losses.proxy_nca import ProxyNCALoss
from losses.soft_triple import SoftTripleLoss
from losses.xbm import XBMLoss

__all__ = [
    "ArcFaceLoss",
    "CCPLoss",
    "Clock",
    "CosFaceLoss",
    "CosineContrastiveLoss",
    "CouplingFlow",
    "HierarchicalProxyLoss",
    "MemoryQueue",
    "NIRLoss",
    "Needs",
    "ProxyAnchorLoss",
    "ProxyGMLLoss",
    "ProxyISALoss",
    "ProxyNCALoss",
    "SignalToNoiseRatioContrastiveLoss",
    "SoftTripleLoss",
    "TrainingContext",
    "TrainingPlugin",
    "XBMLoss",
    "greedy_k_center",
    "meaning_of",
]
