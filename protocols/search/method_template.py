"""A method with its search space; a setting of the hyperparameters makes it a method that can be trained."""

from collections.abc import Mapping

from pydantic import Field, JsonValue

from protocols.search.space import SearchParameter
from results.spec.hyperparameters import method_at, values_at
from results.spec.recipe import Recipe
from results.spec.training_spec import MethodSpec
from results.values import Record


class MethodTemplate(Record):
    """A method at its defaults, with its search space.

    Attributes:
        method: The method with defaults for all hyperparameters.
        space: The hyperparameters to search, with their ranges; may be empty.
        given: Hyperparameters, by target, that the experiment sets or takes from a publication. `method` has them too.
        recipe: What the card decides about training and search; None in a template that no card made.
    """

    method: MethodSpec
    space: tuple[SearchParameter, ...] = ()
    given: dict[str, JsonValue] = Field(default={})
    recipe: Recipe | None = None

    def at(self, hyperparameters: Mapping[str, JsonValue]) -> MethodSpec:
        """Set hyperparameters of the method; see `results.spec.hyperparameters.method_at`."""
        return method_at(self.method, hyperparameters)

    def middle(self) -> dict[str, JsonValue]:
        """The setting in the middle of all ranges."""
        return {parameter.target: parameter.at(0.5) for parameter in self.space}

    def default_setting(self, network_lr: float) -> dict[str, JsonValue]:
        """The method's own values of what is searched, without those that are not set or outside their range.

        Args:
            network_lr: The network's learning rate where the method has none; parameters of a loss take it too.
        """
        lr = network_lr if self.method.lr is None else self.method.lr
        loss_lr = lr if self.method.loss_lr is None else self.method.loss_lr
        method = self.method.model_copy(update={"lr": lr, "loss_lr": loss_lr})
        own = zip(self.space, values_at(method, [parameter.target for parameter in self.space]), strict=True)
        return {parameter.target: value for parameter, value in own if parameter.holds(value)}
