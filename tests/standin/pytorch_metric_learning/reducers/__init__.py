"""STAND-IN for pytorch-metric-learning 3 (our code, from the documentation).

DOCUMENTED: a term with a `divisor` raises ValueError in a reducer other than DivisorReducer, MultipleReducers may
route it (migration guide); an empty dict gives a differentiable zero; the scalar of a nonempty low-precision term is
float32.
GUESS: call `reducer(loss_dict, embeddings, labels)`; the hook's name (`reduce_losses`); what one reducer does with
several terms (reduces each, adds them); a term without indices is passed on as it is; unknown keys of a term are
refused.
"""

import torch
from torch import nn

__all__ = [
    *("AvgNonZeroReducer", "BaseReducer", "DivisorReducer", "DoNothingReducer", "MeanReducer", "MultipleReducers"),
    *("SumReducer", "ThresholdReducer"),
]


def _zero(embeddings):
    return (embeddings * 0).sum()


class BaseReducer(nn.Module):
    takes_divisor = False

    def forward(self, loss_dict, embeddings, labels=None):
        total = _zero(embeddings)
        for name, term in loss_dict.items():
            total = total + self._of_term(name, term, embeddings, labels)
        return total

    def _of_term(self, name, term, embeddings, labels):
        if unknown := term.keys() - {"losses", "indices", "divisor"}:
            raise TypeError(f"term {name} has unknown keys {sorted(unknown)}")
        losses, indices = term["losses"], term["indices"]
        if not torch.is_tensor(losses):
            raise TypeError(f"losses of term {name} must be a tensor, got {type(losses).__name__}")
        if "divisor" in term and not self.takes_divisor:
            raise ValueError(f"term {name} has a divisor; use DivisorReducer")
        if indices is None:
            return losses.reshape(())
        if not losses.numel():
            return _zero(embeddings)
        if losses.dtype in (torch.float16, torch.bfloat16):
            losses = losses.float()
        return self.reduce_losses(losses, term, embeddings, labels)

    def reduce_losses(self, losses, term, embeddings, labels):
        raise NotImplementedError(f"{type(self).__name__} does not implement the stand-in's hook reduce_losses")


class MeanReducer(BaseReducer):
    def reduce_losses(self, losses, term, embeddings, labels):
        return losses.mean()


class SumReducer(BaseReducer):
    def reduce_losses(self, losses, term, embeddings, labels):
        return losses.sum()


class ThresholdReducer(BaseReducer):
    def __init__(self, low=None, high=None):
        super().__init__()
        self.low, self.high = low, high

    def reduce_losses(self, losses, term, embeddings, labels):
        kept = torch.ones_like(losses, dtype=torch.bool)
        if self.low is not None:
            kept &= losses > self.low
        if self.high is not None:
            kept &= losses < self.high
        return losses[kept].sum() / kept.sum().clamp(min=1)


class AvgNonZeroReducer(ThresholdReducer):
    def __init__(self):
        super().__init__(low=0)


class DivisorReducer(BaseReducer):
    takes_divisor = True

    def reduce_losses(self, losses, term, embeddings, labels):
        divisor = torch.as_tensor(term.get("divisor", losses.numel()), dtype=losses.dtype, device=losses.device)
        return torch.where(divisor == 0, 0.0, losses.sum() / divisor.clamp(min=1e-30))


class DoNothingReducer(BaseReducer):
    def forward(self, loss_dict, embeddings, labels=None):
        return loss_dict


class MultipleReducers(BaseReducer):
    def __init__(self, reducers, default_reducer=None):
        super().__init__()
        self.reducers = nn.ModuleDict(reducers)
        self.default_reducer = MeanReducer() if default_reducer is None else default_reducer

    def _of_term(self, name, term, embeddings, labels):
        reducer = self.reducers[name] if name in self.reducers else self.default_reducer  # noqa: SIM401
        return reducer._of_term(name, term, embeddings, labels)
