"""What a method's card decides about its training and its search, and with it about how fair a comparison is."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from results.spec.search_settings import SearchedRange
from results.values import Record
from results.wording import counted

LOSS_LR, BATCHES = "loss_optimizer.lr", "batch.samples_per_class"


class Recipe(Record):
    """How a method is trained and searched in one experiment, beside the conditions that all methods share.

    Attributes:
        samples_per_class: Images of a class in a batch; 0 draws images at random.
        parameters: What the loss trains beside the network: `proxies`, vectors of the embedding's size for every class,
            or `others`; None for nothing.
        loss_lr: Learning rate of these parameters if it is not searched; None takes the network's.
        searched: The hyperparameters that are searched, by target.
        fixed: Values of the numbers among the arguments of the loss that are not searched.
        warmup_passes: Passes over the training images with a frozen trunk.
        warmup_steps: Steps with a frozen trunk, in place of the passes.
        falls: Whether the loss fell while random embeddings were trained with it before the run; None for losses of the
            suite and of pytorch-metric-learning.
    """

    samples_per_class: int
    parameters: Literal["proxies", "others"] | None = None
    loss_lr: float | None = None
    searched: tuple[str, ...] = ()
    fixed: dict[str, float] = Field(default={})
    warmup_passes: int = 0
    warmup_steps: int | None = None
    falls: bool | None = None

    def words(self, ranges: Mapping[str, SearchedRange] | None = None) -> dict[str, str]:
        """Return the recipe as a row of a table, by the name of each column, with the range of the rate if known."""
        m = "searched" if BATCHES in self.searched else str(self.samples_per_class or "drawn at random")
        rate = "the network's" if self.loss_lr is None else f"{self.loss_lr:g}"
        if LOSS_LR in self.searched:
            known = (ranges or {}).get(LOSS_LR)
            rate = f"searched, {known.low:g} to {known.high:g}" if known else "searched"
        own = {"proxies": "proxies", "others": "parameters", None: "nothing"}[self.parameters]
        names = [target.removeprefix("loss.") for target in self.searched]
        passes = counted(self.warmup_passes, "pass")
        frozen = passes if self.warmup_steps is None else counted(self.warmup_steps, "step")
        return {
            "images of a class in a batch": m,
            "trained beside the network": own,
            "learning rate of these": rate if self.parameters else "-",
            "searched hyperparameters": f"{len(names)}: {', '.join(names)}" if names else "-",
            "fixed": ", ".join(f"{name} {value:g}" for name, value in self.fixed.items()) or "-",
            "warm-up": frozen if self.warmup_steps or self.warmup_passes else "-",
        }
