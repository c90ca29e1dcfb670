"""A warning for losses that wait for hooks which no loop calls."""

import warnings

CALLS = 100
"""Calls in training mode before the warning: an epoch of MLRC. A loss does not know how long a pass is."""


class HookReminder:
    """Mix-in for a loss that is not its method while nobody calls its hooks. It warns once."""

    # Class attributes, so that losses pickled by older releases have them.
    _hook_was_called = False
    _calls_without_hooks = 0

    def _count_call(self) -> None:
        """Count a call in training mode. Warn at call number `CALLS` if no hook was called and something is missing."""
        if self._hook_was_called or self._calls_without_hooks >= CALLS:
            return
        self._calls_without_hooks += 1
        if self._calls_without_hooks == CALLS and (missing := self._missing_without_hooks()):
            name, package = type(self).__name__, __package__
            warnings.warn(
                f"{name} was called {CALLS} times in training and its hooks were not: {missing}, so this is not the "
                f"method of its paper; use {package}.attach(loss, trainer) with a trainer of pytorch-metric-learning, "
                f"or {package}.Schedule in a loop of your own",
                stacklevel=2,
            )

    def _missing_without_hooks(self) -> str | None:
        """What the loss lacks now; None if it needs no hook in its present state."""
        raise NotImplementedError
