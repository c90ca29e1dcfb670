"""How the seeds of trainings derive from the experiment's seed (specification, section 11, decision 6).

Seeds do not depend on the method. So reproduction 3 of two methods starts from the same networks.
"""

from typing import Literal

from results.values import derive_seed

Purpose = Literal["search", "reproduction", "calibration"]
"""What a training is for: a trial of the search, a reproduction of the best setting, or a measurement of speed."""


def search_seed(seed: int, search: int) -> int:
    """Return the seed that all seeds of one search derive from; the first search has the experiment's seed itself."""
    return seed if search == 0 else derive_seed(seed, "searches", search)


def training_seed(seed: int, search: int, purpose: Purpose, number: int, fold: int) -> int:
    """Return the seed of a training."""
    return derive_seed(search_seed(seed, search), purpose, number, fold)
