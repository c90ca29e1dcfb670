"""Figure of a search: its trials in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.figures.style import BLUE, GREY, ORANGE, PAGE_WIDTH, FigureError, new_figure, styled
from results.records.trials import Trial

_VALUE = "validation MAP@R, %"


@dataclass(frozen=True)
class SearchHistory:
    """The search of one method.

    Attributes:
        trials: Its finished trials in order.
        importances: Share of each hyperparameter in what separates the best trials from the others, over all searches
            of the method; empty if unknown.
    """

    trials: tuple[Trial, ...]
    importances: Mapping[str, float] = field(default_factory=dict)

    @property
    def values(self) -> dict[int, float]:
        """Scores of the trials that have one, by number of the trial."""
        return {trial.number: trial.score for trial in self.trials if trial.score is not None}


@styled
def search_history(search: SearchHistory) -> Figure:
    """Draw the value of every trial in order, and the best value up to each."""
    if not search.values:
        raise FigureError("a figure of a search needs a trial with a value")
    figure = new_figure(3.2, PAGE_WIDTH)
    axes = figure.add_subplot()
    raced_ones = {trial.number for trial in search.trials if trial.state == "raced"}
    for raced, marker in ((False, "o"), (True, "x")):
        shown = {number: 100 * value for number, value in search.values.items() if (number in raced_ones) == raced}
        if shown:
            name = "trial that got no more folds" if raced else "trial"
            axes.plot(list(shown), list(shown.values()), marker, color=GREY if raced else BLUE, label=name)
    values = [100 * value for value in search.values.values()]
    axes.step(list(search.values), np.maximum.accumulate(values), where="post", color=ORANGE, label="best so far")
    axes.set(xlabel="trial", ylabel=_VALUE)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid()
    figure.legend(loc="outside upper right", ncols=3)
    return figure


def caption(search: SearchHistory) -> str:
    """Explain the values of the trials, which of them were raced, and why some failed."""
    raced = sum(trial.state == "raced" for trial in search.trials)
    text = (
        "Each trial is one setting, trained on every fold. The best trial is chosen by this value, so the value is "
        "too high on average. The tables show new trainings with the best setting."
    )
    if raced:
        text += f" {raced} of {len(search.trials)} trials were clearly behind and got no more folds; their value is an"
        text += " estimate."
    if search.importances:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in search.importances.items())
        text += f" What separates the best quarter of the whole trials of all searches (PED-ANOVA): {shares}."
    failed: dict[str, list[str]] = {}
    for trial in search.trials:
        if trial.state == "failed" and trial.reason is not None:
            failed.setdefault(trial.reason, []).append(str(trial.number))
    reasons = "; ".join(f"{', '.join(numbers)} ({reason})" for reason, numbers in failed.items())
    return text + (f" Failed, since the method does not take the setting: {reasons}." if reasons else "")
