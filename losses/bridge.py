"""The one module that knows that there are two releases of pytorch-metric-learning (PML), 2.9 and 3.

All losses are written with the hooks of version 3: `default_distance`, `default_reducer`, `compute_loss` and
`regularization_terms`. Under version 2.9 its own hooks lead to these. Nothing here or elsewhere uses a name that is not
public in both.
"""

from importlib import metadata
from typing import Any

from pytorch_metric_learning import distances, losses, miners
from torch import Tensor

THREE = hasattr(losses, "BaseProxyLoss")
"""Whether version 3 is installed."""

# The documentation of version 3 names neither. Without them the classes here would silently be the library's own.
for _owner, _hook in ((distances.SNRDistance, "compute_mat"), (miners.MultiSimilarityMiner, "mine")):
    if not hasattr(_owner, _hook):
        raise ImportError(
            f"pytorch-metric-learning {metadata.version('pytorch-metric-learning')} has no {_owner.__name__}.{_hook}, "
            "which the losses override; install pytorch-metric-learning 2.9.0"
        )


def term(values: Tensor | int, indices: Any = None, kind: str = "already_reduced", **more: Any) -> dict[str, Any]:
    """A sub-loss as the reducers of the installed version take it.

    Args:
        values: the losses (n,), or a number as a tensor; 0, for nothing, is for version 2.9 alone.
        indices: what each of them belongs to: rows (n,), or a pair of rows; None, the default, for a number.
        kind: version 2.9's word for that: `element`, `pos_pair`, `neg_pair` or, the default, `already_reduced`.
        **more: `divisor`, for the library's `DivisorReducer`.
    """
    named = {} if THREE else {"reduction_type": kind}
    return {"losses": values, "indices": indices, **named, **more}


class BridgedLoss(losses.BaseMetricLossFunction):
    """PML's base of losses with the hooks of version 3 under both."""

    sub_losses: tuple[str, ...] = ("loss",)
    """Names of what `compute_loss` returns, without regularizers."""

    embedding_regularizer: Any
    embedding_reg_weight: float

    def penalties(self) -> list[str]:
        """Names of the regularizers that there are."""
        return ["embedding_reg_loss"] if self.embedding_regularizer else []

    def nothing(self) -> dict[str, Any]:
        """What `compute_loss` returns for a batch without anything to compute: the loss is 0, with zero gradients."""
        return {} if THREE else {name: term(0) for name in self.sub_losses}

    if not THREE:

        def default_distance(self) -> Any:
            """Version 3's hook: the distance of a loss that is given none."""
            return super().get_default_distance()

        def default_reducer(self) -> Any:
            """Version 3's hook: the reducer of a loss that is given none."""
            return super().get_default_reducer()

        def regularization_terms(self, embeddings: Tensor) -> dict[str, Any]:
            """Version 3's hook: the regularizers' sub-losses for embeddings (B, d)."""
            if self.embedding_regularizer is None:
                return {}
            return {"embedding_reg_loss": term(self.embedding_regularizer(embeddings) * self.embedding_reg_weight)}

        def get_default_distance(self) -> Any:
            """Version 2.9's hook."""
            return self.default_distance()

        def get_default_reducer(self) -> Any:
            """Version 2.9's hook."""
            return self.default_reducer()

        def sub_loss_names(self) -> list[str]:
            """Version 2.9's method: the names of all sub-losses, for each of which it makes a reducer."""
            return [*self.sub_losses, *self.penalties()]

        def add_embedding_regularization_to_loss_dict(self, loss_dict: dict[str, Any], embeddings: Tensor) -> None:
            """Version 2.9's hook after `compute_loss`."""
            loss_dict.update(self.regularization_terms(embeddings))
