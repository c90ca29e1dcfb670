"""STAND-IN for pytorch-metric-learning 3, our own code, made from its documentation and not from its source.

It was written in November 2026 where version 3 could not be installed and only the beginning of each page of its
documentation be read. In tests it takes the library's place, so that a loss fails that uses what version 3 lacks. Its
numbers are no reference: the golden values are. Never install or ship it.

Each file's head says what is DOCUMENTED and what is a GUESS. Under the real version 3 run `make test-losses` first:
where the outcome is another than with this, a guess was wrong.

DOCUMENTED: the public modules, and that `__version__` is gone. Private modules of version 2.9 (utils.common_functions,
losses.base_metric_loss_function, losses.mixins, ...) are left out on purpose; version 3 may have some of them.
"""
